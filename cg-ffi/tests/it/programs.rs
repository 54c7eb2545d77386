//! Programs of arbitrary calls, as the fuzz target runs them.

use crate::fuzzed;

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
