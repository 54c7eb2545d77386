//! Any bytes as a tile or a patch of opacity.
#![no_main]

#[path = "../src/budget.rs"]
mod budget;
#[path = "../src/opacity.rs"]
mod opacity;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    budget::within(|| opacity::check(bytes));
});
