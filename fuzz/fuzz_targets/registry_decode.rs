//! Any bytes as the rows of a registry.
#![no_main]

#[path = "../src/budget.rs"]
mod budget;
#[path = "../src/registry.rs"]
mod registry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    budget::within(|| registry::check(bytes));
});
