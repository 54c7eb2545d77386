//! Any bytes as an archive of a world.
#![no_main]

#[path = "../src/archive.rs"]
mod archive;
#[path = "../src/budget.rs"]
mod budget;
#[path = "../src/parts.rs"]
mod parts;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    budget::within(|| archive::check(bytes));
});
