//! Any bytes as NBT.
#![no_main]

#[path = "../src/budget.rs"]
mod budget;
#[path = "../src/nbt.rs"]
mod nbt;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    budget::within(|| nbt::check(bytes));
});
