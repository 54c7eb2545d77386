//! Any bytes as a cluster.
#![no_main]

#[path = "../src/budget.rs"]
mod budget;
#[path = "../src/cluster.rs"]
mod cluster;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    budget::within(|| cluster::check(bytes));
});
