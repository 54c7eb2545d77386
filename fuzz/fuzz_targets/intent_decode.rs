//! Any bytes as an intent or a part of one.
#![no_main]

#[path = "../src/budget.rs"]
mod budget;
#[path = "../src/intent.rs"]
mod intent;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    budget::within(|| intent::check(bytes));
});
