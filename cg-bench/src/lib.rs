//! Worlds from a seed, the demonstration that stores one, and the benchmarks of the workspace.
//!
//! Nothing here is part of the product. [`world`] makes chunks in which every section of the format is in use,
//! [`fill`] puts them into a store, [`settled`] has them end in one tier, [`compare`] holds a stored world against a
//! fresh generation, and [`survey`] sums up what a stored world holds; [`raw`] is the RocksDB that the store is measured
//! against, [`stored`] makes worlds for both, [`saves`] finds the real ones, [`order`] is the little statistics that a benchmark needs. The benchmarks under `benches/` and the binaries
//! `cg-demo` and `cg-tiers` are made of these.
//!
//! ```
//! use cg_bench::world::{Generator, Scene};
//! use cg_format::{BlockPos, ChunkPos};
//! use cg_registry::Catalog;
//!
//! let mut catalog = Catalog::new();
//! catalog.register(&Generator::registration())?;
//! let generator = Generator::new(Scene::Hills, 7, &catalog)?;
//!
//! let deep = generator.chunk(ChunkPos::new(0, -4, 0)?);
//! let bedrock = catalog.block_id("minecraft:bedrock").unwrap();
//! assert_eq!(deep.chunk.block(BlockPos::new(3, -64, 5).local()), bedrock);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod compare;
pub mod fill;
pub mod order;
pub mod raw;
pub mod saves;
pub mod settled;
pub mod stored;
pub mod survey;
pub mod world;
