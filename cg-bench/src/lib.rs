#![doc = include_str!("../README.md")]
//!
//! # What is where
//! [`world`] makes chunks in which every section of the format is in use, [`fill`] puts them into a store, [`settled`] has
//! them end in one tier, [`compare`] holds a stored world against a fresh generation, and [`survey`] sums up what a stored
//! world holds. [`raw`] is the RocksDB that the store is measured against, [`stored`] makes worlds for both, [`saves`]
//! finds the real ones, [`order`] is the little statistics that a benchmark needs, [`process`] what the system says of a
//! run. The benchmarks under `benches/` and the binaries `cg-compare`, `cg-demo` and `cg-tiers` are made of these.
#![forbid(unsafe_code)]

pub mod compare;
pub mod fill;
pub mod order;
pub mod process;
pub mod raw;
pub mod saves;
pub mod settled;
pub mod stored;
pub mod survey;
pub mod world;
