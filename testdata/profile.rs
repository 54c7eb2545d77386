//! Every test program is compiled with the checks that the tests rely on.

use std::hint::black_box;
use std::panic::catch_unwind;

#[test]
fn debug_assertions_and_overflow_checks_are_on() {
    assert!(black_box(cfg!(debug_assertions)), "this profile has no debug assertions");
    let sum = catch_unwind(|| black_box(u8::MAX) + black_box(1));
    assert!(sum.is_err(), "255 + 1 is {sum:?}: this profile has no overflow checks");
}
