//! The census: counts what a world holds, row by row.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use cg_format::cluster::StoredCluster;
use cg_format::entity::Owner;
use cg_format::frame::{self, FrameKind, FrameView};
use cg_format::key::Family;
use cg_format::{ClusterTier, Dimension, Space, Tier};

use crate::admin::Admin;
use crate::engine::{ALL_KEYS, EngineError, Met, Readable, scan_skipping_damage};
use crate::kinds::object::scan_objects;
use crate::kinds::record::scan_records;
use crate::read::chunk::{Area, walk};
use crate::read::iterate::entities;
use crate::storage::error::Error;

/// The counts of what a world holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Census {
    /// Live chunks of each dimension that has any.
    pub dimensions: BTreeMap<Dimension, u64>,
    /// The counts of each tier, hottest first, as in [`Tier::ALL`].
    pub tiers: [TierCensus; 3],
    /// 4³ cubes with a stored last access.
    pub heat_rows: u64,
    /// Entities that decode, including the [`detached`](Self::detached) ones.
    pub entities: u64,
    /// Entities that no chunk owns.
    pub detached: u64,
    /// Objects that are not deleted.
    pub objects: u64,
    /// Spatial records.
    pub records: u64,
    /// Damaged rows that were found. Their content is not counted.
    pub damaged: u64,
}

/// The counts of one tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TierCensus {
    /// Rows, including tombstones.
    pub keys: u64,
    /// Live chunks whose newest copy is in this tier.
    pub chunks: u64,
    /// Copies of chunks in this tier, including those that a hotter tier shadows.
    pub copies: u64,
    /// Bytes of the rows' keys and values before the engine compresses them.
    pub bytes: u64,
}

impl Census {
    /// All live chunks.
    pub fn chunks(&self) -> u64 {
        self.dimensions.values().sum()
    }

    /// The counts of a tier.
    pub const fn tier(&self, tier: Tier) -> TierCensus {
        let [hot, warm, cold] = self.tiers;
        match tier {
            Tier::L0 => hot,
            Tier::L1 => warm,
            Tier::L2 => cold,
        }
    }
}

/// Visits the readable rows of a family.
fn each_row(
    view: &dyn Readable,
    family: Family,
    mut show: impl FnMut(&[u8], &[u8]),
) -> Result<(), EngineError> {
    scan_skipping_damage(view, family, ALL_KEYS, |met| {
        if let Met::Row(key, row) = met {
            show(key, row);
        }
        ControlFlow::<()>::Continue(())
    })?;
    Ok(())
}

/// The families of chunks, hottest first, as in [`Tier::ALL`].
const CHUNK_FAMILIES: [Family; 3] = [Family::ChunkL0, Family::ChunkL1, Family::ChunkL2];

/// The number of chunks in a row according to its frame or directory; 0 for a damaged row.
fn copies(family: Family, key: &[u8], row: &[u8]) -> u64 {
    let cluster =
        |tier| StoredCluster::open(tier, key, row).map_or(0, |cluster| cluster.present_count() as u64);
    match family {
        Family::ChunkL1 => cluster(ClusterTier::L1),
        Family::ChunkL2 => cluster(ClusterTier::L2),
        _ => {
            let is_sound = FrameView::open(Space::ChunkL0, key, row).is_ok();
            u64::from(is_sound && frame::kind_of(row) == Some(FrameKind::Plain))
        }
    }
}

impl Admin<'_> {
    /// See [`World::census`](crate::tiers::Tiers::census).
    pub(crate) fn census(&self) -> Result<Census, Error> {
        let engine = self.commit.drained_engine()?;
        let view = engine.snapshot()?;
        let mut census = Census::default();
        for (tier, family) in census.tiers.iter_mut().zip(CHUNK_FAMILIES) {
            each_row(&view, family, |key, row| {
                tier.keys += 1;
                tier.bytes += (key.len() + row.len()) as u64;
                tier.copies += copies(family, key, row);
            })?;
        }
        each_row(&view, Family::Index, |key, _| {
            census.heat_rows += u64::from(Space::of_row(Family::Index, key) == Some(Space::Heat));
        })?;
        walk(&view, &self.shared.counters, Area::World, |stored| {
            match stored {
                Ok(stored) => {
                    *census.dimensions.entry(stored.at.dimension).or_default() += 1;
                    let [hot, warm, cold] = &mut census.tiers;
                    let tier = match stored.tier {
                        Tier::L0 => hot,
                        Tier::L1 => warm,
                        Tier::L2 => cold,
                    };
                    tier.chunks += 1;
                }
                Err(_) => census.damaged += 1,
            }
            ControlFlow::<()>::Continue(())
        })?;
        entities(&view, |entity| {
            match entity {
                Ok((_, entity)) => {
                    census.entities += 1;
                    census.detached += u64::from(matches!(entity.owner, Owner::Detached(_)));
                }
                Err(_) => census.damaged += 1,
            }
            ControlFlow::<()>::Continue(())
        })?;
        scan_objects(&view, b"", None, |object| {
            match object {
                Ok((_, object)) => census.objects += u64::from(object.bytes.is_some()),
                Err(_) => census.damaged += 1,
            }
            ControlFlow::<()>::Continue(())
        })?;
        scan_records(&view, |record| {
            match record {
                Ok(_) => census.records += 1,
                Err(_) => census.damaged += 1,
            }
            ControlFlow::<()>::Continue(())
        })?;
        Ok(census)
    }
}
