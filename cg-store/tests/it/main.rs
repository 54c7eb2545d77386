//! The store from outside, one module per behaviour.

mod engine;
#[cfg(feature = "rocks")]
mod readme;
mod world;
