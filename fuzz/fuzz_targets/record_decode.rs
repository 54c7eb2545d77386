//! Any bytes as a record.
#![no_main]

#[path = "../src/budget.rs"]
mod budget;
#[path = "../src/record.rs"]
mod record;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    budget::within(|| record::check(bytes));
});
