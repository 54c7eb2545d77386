//! Everything a contributor or CI runs: set-up, tests, benchmarks, checks.

fn main() {}
