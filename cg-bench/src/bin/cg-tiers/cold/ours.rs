//! A save as a world whose chunks are all cold.

use std::path::Path;
use std::time::{Duration, Instant};

use cg_anvil::import::{ImportOptions, import, open_or_create};
use cg_bench::process::disk_bytes;
use cg_format::key::Family;
use cg_store::view::Area;
use cg_store::{World, WorldOptions};
use cg_tiering::GameTick;

use crate::failure::Failure;

/// More than any policy waits for.
const YEAR_TICKS: u64 = 365 * 24 * 3600 * GameTick::PER_SECOND;

/// Families that are printed together.
const GROUPS: [(&str, &[Family]); 6] = [
    ("cold chunks", &[Family::ChunkL2]),
    ("hot and warm chunks", &[Family::ChunkL0, Family::ChunkL1, Family::ChunkDelta]),
    ("objects", &[Family::Object]),
    ("entities", &[Family::Entity]),
    ("opacity", &[Family::OpacityMap]),
    ("rest", &[Family::WorldMeta, Family::WorldProperties, Family::Index, Family::Record, Family::Snapshot]),
];

/// Bytes that the world takes on disk once it is closed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ours {
    pub(super) chunks: u64,
    /// Sorted files and blob files of each of [`GROUPS`].
    groups: [u64; GROUPS.len()],
    /// Files that every world has: the log, the manifest, records of options and messages, and `world.cg`.
    pub(super) engine_files_bytes: u64,
}

impl Ours {
    /// Imports, demotes and closes. Also returns how long the demotion took.
    pub(super) fn measure(save: &Path) -> Result<(Self, Duration), Failure> {
        let folder = tempfile::tempdir()?;
        let dir = folder.path().join("world");
        let options = WorldOptions { cache_bytes: 32 << 20, ..WorldOptions::default() };
        let world = open_or_create(&dir, &options)?;
        import(save, &world, &ImportOptions::default(), |_| {})?;
        let imported = world.content_hash(Area::World)?;
        let start = Instant::now();
        let moved = world.tiers().demote_all(YEAR_TICKS, |_| {})?;
        let time = start.elapsed();
        if moved.refused > 0 || world.content_hash(Area::World)? != imported {
            return Err(format!("the demotion changed the world, or refused: {moved:?}").into());
        }
        world.close()?;
        drop(world);
        let on_disk = disk_bytes(&dir)?;
        let world = World::builder().options(&options).open_read_only(&dir)?;
        let mut ours = Self::of_families(&world)?;
        ours.engine_files_bytes = on_disk.saturating_sub(ours.stored_bytes());
        if world.content_hash(Area::World)? != imported {
            return Err("the world opens with another content".into());
        }
        Ok((ours, time))
    }

    fn of_families(world: &World) -> Result<Self, Failure> {
        let usage = world.usage()?;
        let mut ours = Self { chunks: world.tiers().census()?.chunks(), ..Self::default() };
        for held in &usage.families {
            let group = GROUPS.iter().position(|(_, families)| families.contains(&held.family));
            let group = group.ok_or_else(|| format!("no column for the family {}", held.family.name()))?;
            ours.groups[group] += held.table_bytes + held.blob_bytes;
        }
        Ok(ours)
    }

    /// The bytes of each group of families, by its name.
    pub(super) fn groups(&self) -> [(&'static str, u64); GROUPS.len()] {
        std::array::from_fn(|group| (GROUPS[group].0, self.groups[group]))
    }

    /// All that grows with the world.
    pub(super) fn stored_bytes(&self) -> u64 {
        self.groups.iter().sum()
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.chunks += other.chunks;
        self.engine_files_bytes += other.engine_files_bytes;
        for (sum, bytes) in self.groups.iter_mut().zip(other.groups) {
            *sum += bytes;
        }
    }
}
