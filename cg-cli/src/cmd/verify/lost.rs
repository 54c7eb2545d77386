//! Chunks that cannot be read, with the commands that give them up and bring them back.

use std::cmp::Reverse;
use std::path::Path;

use cg_format::{ChunkBox, ChunkPos};
use cg_registry::{Catalog, ListKind};
use cg_snapshot::file::read_info;
use cg_snapshot::{Region, SnapshotInfo};
use cg_store::World;
use cg_store::quarantine::LostChunks;
use serde::Serialize;

use crate::cmd::name_of;
use crate::output::Failure;
use crate::place::Place;

/// Chunks that cannot be read.
#[derive(Debug, Serialize)]
pub(super) struct Lost {
    dimension: String,
    min: [i64; 3],
    max: [i64; 3],
    pub(super) command: String,
    /// Snapshots of the world that have these chunks, or some, the newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) copies: Vec<EarlierCopy>,
}

/// An older state of damaged chunks.
#[derive(Debug, Serialize)]
pub(super) struct EarlierCopy {
    snapshot: String,
    created_ms: u64,
    pub(super) command: String,
}

/// The snapshots that the world keeps and whose heads are readable, the newest first.
pub(super) fn snapshots(world: &World) -> Result<Vec<(String, SnapshotInfo)>, Failure> {
    let mut found = Vec::new();
    for kept in world.snapshots().list()?.into_iter().flatten() {
        // What is wrong with a snapshot is a problem of its own.
        let info = world.snapshots().open(&kept.name)?.and_then(|reader| read_info(reader).ok());
        found.extend(info.map(|info| (kept.name, info)));
    }
    found.sort_by_key(|(_, info)| Reverse(info.created_ms));
    Ok(found)
}

impl Lost {
    /// Chunks of an arena, which are given up.
    pub(super) fn of_arena(
        arena: u32,
        chunks: &LostChunks,
        world: &Place,
        pool: &Path,
        catalog: &Catalog,
    ) -> Self {
        let (world, pool) = (quoted(&world.to_string()), quoted(&pool.display().to_string()));
        let dimension = name_of(catalog, ListKind::Dimensions, chunks.dimension.get());
        let corners = corners(&chunks.bounds);
        let command = format!(
            "cg overlay reset-damaged {world} {pool} --arena {arena} --dimension {} --box {corners} --yes",
            quoted(&dimension)
        );
        let [min, max] = [chunks.bounds.min(), chunks.bounds.max()].map(coordinates);
        Self { dimension, min, max, command, copies: Vec::new() }
    }

    /// Chunks of a world, which are quarantined.
    pub(super) fn new(
        chunks: &LostChunks,
        world: &Place,
        catalog: &Catalog,
        snapshots: &[(String, SnapshotInfo)],
    ) -> Self {
        let LostChunks { dimension, bounds } = chunks;
        let bad = Region::new(*dimension, bounds.blocks());
        let dimension = name_of(catalog, ListKind::Dimensions, dimension.get());
        let area = corners(bounds);
        let world = quoted(&world.to_string());
        let command =
            format!("cg quarantine add {world} --dimension {} --box {area} --yes", quoted(&dimension));
        let has_some = |info: &SnapshotInfo| {
            let here = catalog.dimension(info.dimension.as_str());
            here.is_some_and(|here| Region::new(here, info.region.area()).meets(&bad))
        };
        let copies = snapshots.iter().filter(|(_, info)| has_some(info)).map(|(name, info)| EarlierCopy {
            snapshot: name.clone(),
            created_ms: info.created_ms,
            command: format!("cg snapshot restore {world} {} --box {area}", quoted(name)),
        });
        let copies = copies.collect();
        Self { dimension, min: coordinates(bounds.min()), max: coordinates(bounds.max()), command, copies }
    }
}

fn coordinates(pos: ChunkPos) -> [i64; 3] {
    [pos.x(), pos.y(), pos.z()]
}

/// A box as `--box` takes it.
fn corners(bounds: &ChunkBox) -> String {
    let (first, last) = (bounds.blocks().min(), bounds.blocks().max());
    [first.x, first.y, first.z, last.x, last.y, last.z].map(|c| c.to_string()).join(" ")
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:,@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
