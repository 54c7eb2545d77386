//! Tests through the functions of the header, as a program in C calls them.
#![expect(
    clippy::undocumented_unsafe_blocks,
    clippy::too_many_lines,
    clippy::type_complexity,
    clippy::large_stack_arrays,
    clippy::trivially_copy_pass_by_ref,
    reason = "each call is one of the interface, which takes pointers, and what it may be given is what is tested"
)]

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
