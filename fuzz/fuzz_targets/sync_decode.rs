//! Any bytes as a message between a server and a cache of it.
#![no_main]

#[path = "../src/budget.rs"]
mod budget;
#[path = "../src/sync.rs"]
mod sync;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    budget::within(|| sync::check(bytes));
});
