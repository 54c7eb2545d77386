//! Any bytes as a trace or as heat.
#![no_main]

#[path = "../src/budget.rs"]
mod budget;
#[path = "../src/trace.rs"]
mod trace;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    budget::within(|| trace::check(bytes));
});
