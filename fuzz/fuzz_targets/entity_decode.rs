//! Any bytes as an entity.
#![no_main]

#[path = "../src/budget.rs"]
mod budget;
#[path = "../src/entity.rs"]
mod entity;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    budget::within(|| entity::check(bytes));
});
