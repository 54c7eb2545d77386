//! Any bytes as a row of an overlay or an arena.
#![no_main]

#[path = "../src/budget.rs"]
mod budget;
#[path = "../src/overlay.rs"]
mod overlay;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    budget::within(|| overlay::check(bytes));
});
