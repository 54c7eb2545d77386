//! Any bytes as a snapshot file.
#![no_main]

#[path = "../src/budget.rs"]
mod budget;
#[path = "../src/parts.rs"]
mod parts;
#[path = "../src/snapshot.rs"]
mod snapshot;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    budget::within(|| snapshot::check(bytes));
});
