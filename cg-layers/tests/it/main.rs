//! Layers over worlds from outside, one module per behaviour.

#[allow(dead_code, unused_imports, unused_macros, reason = "the tests of each crate use a part of it")]
#[path = "../../../testdata/fixture.rs"]
mod fixture;
mod illegal_values;
mod overlay;
mod segment;
#[path = "../../../testdata/surviving.rs"]
mod surviving;
