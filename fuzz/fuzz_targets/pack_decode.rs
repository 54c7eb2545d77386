//! Any bytes as a pack file.
#![no_main]

#[path = "../src/budget.rs"]
mod budget;
#[path = "../src/pack.rs"]
mod pack;
#[path = "../src/parts.rs"]
mod parts;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    budget::within(|| pack::check(bytes));
});
