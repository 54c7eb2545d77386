//! Any bytes as a delta.
#![no_main]

#[path = "../src/budget.rs"]
mod budget;
#[path = "../src/delta.rs"]
mod delta;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    budget::within(|| delta::check(bytes));
});
