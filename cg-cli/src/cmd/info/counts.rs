//! What a world holds, counted; of a segmented world the sum over its worlds.

use std::collections::BTreeMap;
use std::path::Path;

use cg_anvil::mapping::{ImportedObjects, ObjectCount};
use cg_format::Dimension;
use cg_layers::OnDisk;
use cg_store::World;
use cg_store::verify::{Census, TierCensus};
use serde::Serialize;

use crate::args::options;
use crate::cmd::directory_of;
use crate::output::{Failure, Output};

/// The counts of a world, or the sums over all worlds of a segmented one.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) census: Census,
    pub(super) imported: ImportedObjects,
    pub(super) snapshots: SnapshotsReport,
    pub(super) quarantined: RowsReport,
    /// The segments of each dimension, those that are left out too; `None` of a world that is not segmented.
    pub(super) segments: Option<BTreeMap<Dimension, u64>>,
    pub(super) left_out: Vec<LeftOut>,
}

#[derive(Debug, Serialize)]
pub(super) struct TierReport {
    pub(super) keys: u64,
    pub(super) chunks: u64,
    pub(super) bytes: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct ObjectsReport {
    pub(super) objects: u64,
    pub(super) bytes: u64,
}

#[derive(Debug, Default, Clone, Copy, Serialize)]
pub(super) struct SnapshotsReport {
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) unreadable: u64,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct RowsReport {
    pub(super) count: u64,
    pub(super) bytes: u64,
}

/// A segment that is not counted.
#[derive(Debug, Serialize)]
pub(super) struct LeftOut {
    pub(super) world: String,
    pub(super) why: String,
}

impl Counts {
    pub(super) fn of_world(world: &World) -> Result<Self, Failure> {
        let mut counts = Self::default();
        counts.add(world)?;
        Ok(counts)
    }

    /// Opens one segment at a time.
    pub(super) fn of_segmented(dir: &Path, out: &Output) -> Result<Self, Failure> {
        let mut counts = Self { segments: Some(BTreeMap::new()), ..Self::default() };
        let progress = out.progress("worlds counted");
        let counted = OnDisk::for_each_world(dir, &options(), |segment, world| {
            if let (Some(segment), Some(all)) = (segment, &mut counts.segments) {
                *all.entry(segment.dimension).or_default() += 1;
            }
            match world.map_err(Failure::from).and_then(|world| counts.add(world)) {
                Err(failure) if segment.is_some() => {
                    let (world, why) = (directory_of(segment), failure.to_string());
                    counts.left_out.push(LeftOut { world, why });
                }
                added => added?,
            }
            progress.inc(1);
            Ok::<_, Failure>(())
        });
        progress.finish_and_clear();
        counted.map(|()| counts)
    }

    /// Adds what one world holds, all of it or nothing.
    fn add(&mut self, world: &World) -> Result<(), Failure> {
        let (census, imported) = (world.tiers().census()?, ImportedObjects::count(world)?);
        let (snapshots, rows) = (world.snapshots().list()?, world.quarantine().list()?);
        self.add_census(&census);
        self.add_imported(imported);
        for saved in snapshots {
            match saved {
                Ok(saved) => {
                    self.snapshots.count += 1;
                    self.snapshots.bytes += saved.len_bytes;
                }
                Err(_) => self.snapshots.unreadable += 1,
            }
        }
        self.quarantined.count += rows.len() as u64;
        self.quarantined.bytes += rows.iter().map(|row| row.bytes.len() as u64).sum::<u64>();
        Ok(())
    }

    fn add_census(&mut self, other: &Census) {
        let all = &mut self.census;
        for (dimension, chunks) in &other.dimensions {
            *all.dimensions.entry(*dimension).or_default() += chunks;
        }
        for (all, other) in all.tiers.iter_mut().zip(&other.tiers) {
            all.keys += other.keys;
            all.chunks += other.chunks;
            all.bytes += other.bytes;
        }
        all.entities += other.entities;
        all.detached += other.detached;
        all.objects += other.objects;
        all.records += other.records;
        all.damaged += other.damaged;
    }

    fn add_imported(&mut self, other: ImportedObjects) {
        let ImportedObjects { columns, points, entity_slots, kept_slots, files, data_versions } = other;
        let all = &mut self.imported;
        for (all, other) in [
            (&mut all.columns, columns),
            (&mut all.points, points),
            (&mut all.entity_slots, entity_slots),
            (&mut all.kept_slots, kept_slots),
            (&mut all.files, files),
        ] {
            all.objects += other.objects;
            all.bytes += other.bytes;
        }
        for (version, columns) in data_versions {
            *all.data_versions.entry(version).or_default() += columns;
        }
    }
}

impl From<ObjectCount> for ObjectsReport {
    fn from(count: ObjectCount) -> Self {
        Self { objects: count.objects, bytes: count.bytes }
    }
}

impl From<TierCensus> for TierReport {
    fn from(census: TierCensus) -> Self {
        Self { keys: census.keys, chunks: census.chunks, bytes: census.bytes }
    }
}
