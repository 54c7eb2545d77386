//! The world on disk: chunks, entities and registries in one transaction, on RocksDB or in memory.
#![forbid(unsafe_code)]

pub mod engine;
