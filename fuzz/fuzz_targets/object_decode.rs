//! Any bytes as an object.
#![no_main]

#[path = "../src/budget.rs"]
mod budget;
#[path = "../src/object.rs"]
mod object;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    budget::within(|| object::check(bytes));
});
