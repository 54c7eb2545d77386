//! Any bytes as the NBT of a schematic.
#![no_main]

#[path = "../src/budget.rs"]
mod budget;
#[path = "../src/schem.rs"]
mod schem;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    budget::within(|| schem::check(bytes));
});
