//! Any bytes as a region file.
#![no_main]

#[path = "../src/budget.rs"]
mod budget;
#[path = "../src/column.rs"]
mod column;
#[path = "../src/region.rs"]
mod region;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    budget::within(|| region::check(bytes));
});
