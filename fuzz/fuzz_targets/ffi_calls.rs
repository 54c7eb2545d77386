//! Any bytes as a program of calls of the C interface.
#![no_main]

#[path = "../src/budget.rs"]
mod budget;
#[path = "../src/ffi/mod.rs"]
mod ffi;

/// What a world in memory takes, and a call with the most heights.
const WORLD_BYTES: u64 = 32 << 20;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    budget::within(|| {
        let counted = allocation_counter::measure(|| ffi::run(bytes));
        let most = WORLD_BYTES + 64 * bytes.len() as u64;
        assert!(counted.bytes_max <= most, "it took {} bytes of memory, more than {most}", counted.bytes_max);
    });
});
