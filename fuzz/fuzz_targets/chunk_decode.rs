//! Any bytes as a chunk.
#![no_main]

#[path = "../src/budget.rs"]
mod budget;
#[path = "../src/chunk.rs"]
mod chunk;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    budget::within(|| chunk::check(bytes));
});
