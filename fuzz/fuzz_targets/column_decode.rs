//! Any bytes as the NBT of a column.
#![no_main]

#[path = "../src/budget.rs"]
mod budget;
#[path = "../src/column.rs"]
mod column;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    budget::within(|| column::check(bytes));
});
