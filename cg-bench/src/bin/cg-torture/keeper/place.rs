//! Where the worlds of a keeper are, and how they are opened.

use std::path::{Path, PathBuf};

use cg_layers::{OnDisk, SegmentOptions, SegmentedWorld};
use cg_store::prelude::*;

use crate::failure::Failure;
use crate::rng::Rng;
use crate::subject;

/// Large objects, so that files and archives have many parts.
pub(super) const LARGE: u64 = 40;
/// How often each is written.
pub(super) const ROUNDS: u64 = 3;
const LARGE_BYTES: usize = 40_000;
/// The archive that is restored.
pub(super) const SOURCE: &str = "source";
const SIDE_CHUNKS: u32 = 16;

pub(super) fn world_in(dir: &Path) -> PathBuf {
    dir.join("world")
}

pub(super) fn segmented_in(dir: &Path) -> PathBuf {
    dir.join("segmented")
}

pub(super) fn archive_in(dir: &Path) -> PathBuf {
    dir.join("archive")
}

pub(super) fn restored_in(dir: &Path) -> PathBuf {
    dir.join("restored")
}

pub(super) fn open(dir: &Path) -> Result<World, Error> {
    World::builder().options(&subject::options()).open(dir)
}

pub(super) fn open_segmented(dir: &Path) -> Result<SegmentedWorld<OnDisk>, Error> {
    SegmentedWorld::open(segmented_in(dir), &[], &segment_options())
}

pub(super) fn segment_options() -> SegmentOptions {
    SegmentOptions { side_chunks: SIDE_CHUNKS, max_open: 2, world: subject::options() }
}

/// Bytes that do not compress.
pub(super) fn large(seed: u64, round: u64, number: u64) -> Vec<u8> {
    let mut rng = Rng::stream(seed, round * LARGE + number);
    let words = std::iter::repeat_with(|| rng.next().to_le_bytes());
    words.take(LARGE_BYTES / 8).flatten().collect()
}

/// The bytes of the snapshot.
pub(super) fn snapshot(seed: u64) -> Vec<u8> {
    large(seed, ROUNDS, 0)
}

/// A chunk in a segment.
pub(super) fn chunk_in(world: &SegmentedWorld<OnDisk>, segment: u64) -> Result<ChunkAt, Failure> {
    let dimension = world.catalog().dimension("torture:first").ok_or("no dimension")?;
    Ok(ChunkAt::new(dimension, ChunkPos::new(segment as i64 * i64::from(SIDE_CHUNKS), 0, 0)?))
}
