//! Any bytes as a key.
#![no_main]

#[path = "../src/budget.rs"]
mod budget;
#[path = "../src/key.rs"]
mod key;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    budget::within(|| key::check(bytes));
});
