//! Programs of arbitrary calls, as the fuzz target runs them.

use std::fs;
use std::path::Path;

use crate::fuzzed;

#[test]
fn programs_that_are_committed_for_the_fuzz_target_leave_worlds_that_verify() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/ffi_calls");
    let mut programs = 0;
    for entry in fs::read_dir(corpus).expect("the corpus is committed") {
        let path = entry.expect("listed").path();
        // A test that fails says only what it prints.
        println!("{}", path.display());
        fuzzed::run(&fs::read(&path).expect("readable"));
        programs += 1;
    }
    assert!(programs > 0, "nothing is committed for the target");
}

#[test]
fn programs_of_arbitrary_calls_leave_worlds_that_verify() {
    let programs = if std::env::var_os("CG_LONG_TESTS").is_some() { 20_000 } else { 300 };
    // A generator of its own (SplitMix64), so that each run has the same programs.
    let mut state = 0_u64;
    let mut random = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    };
    for _ in 0..programs {
        let len = random() % 1500;
        let bytes: Vec<u8> = (0..len).map(|_| random() as u8).collect();
        fuzzed::run(&bytes);
    }
}
