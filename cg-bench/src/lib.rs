//! Workloads, benchmarks and the demonstration world.
#![forbid(unsafe_code)]
