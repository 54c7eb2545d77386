//! Any bytes as a row.
#![no_main]

#[path = "../src/budget.rs"]
mod budget;
#[path = "../src/frame.rs"]
mod frame;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    budget::within(|| frame::check(bytes));
});
