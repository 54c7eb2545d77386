//! Tests through the functions of the header, as a program in C calls them.

mod calls;
mod columns;
#[path = "../../../fuzz/src/ffi/mod.rs"]
mod fuzzed;
mod handles;
mod header;
mod lies;
mod life;
mod numbers;
mod panics;
mod programs;
mod queues;
mod settings;
mod support;
mod writes;
