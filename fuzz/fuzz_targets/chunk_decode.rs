//! Any bytes as a chunk.
#![no_main]

#[path = "../src/chunk.rs"]
mod chunk;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    chunk::check(bytes);
});
