//! The records of a segmented world: those of its segments, and those of its root.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use cg_format::record::Record;
use cg_format::{BlockArea, BlockBox, BlockPos, RecordId, key};
use cg_store::Error;
use cg_store::error::ConflictKey;
use cg_store::layer::{Base as _, leaf_of};
use cg_store::records::{RecordQuery, RecordShape};

use super::home::SegmentHome;
use super::rows::SegmentState;
use super::transfers::Transfers;
use super::world::SegmentedWorld;

/// The spatial records of a segmented world, wherever they are. Calls are named as those of
/// [`Records`](cg_store::records::Records).
///
/// They are written in a [transaction](SegmentedWorld::transaction) of the segment of their position.
///
/// ```
/// use cg_format::record::Record;
/// use cg_store::prelude::*;
/// use cg_store::records::RecordQuery;
/// use cg_layers::{SegmentOptions, SegmentedWorld};
/// let world = SegmentedWorld::in_memory(&[], &SegmentOptions::default())?;
/// let dimensions = vec![Name::new("game:overworld")?];
/// let names = world.register(&Registration { dimensions, ..Registration::default() })?;
/// let overworld = names.dimension("game:overworld").expect("just registered");
/// for (n, x) in [(1, -0.5), (2, 0.5)] {
///     let position = EntityPos::from_f64(overworld, [x, 64.0, 0.0])?;
///     world.transaction(ChunkAt::new(overworld, position.block().chunk()), |tx| {
///         tx.put_record(RecordId::from_bytes([n; 16]), Record::new(position, "game:grave", 0, vec![])?);
///         Ok::<_, Box<dyn std::error::Error>>(())
///     })?;
/// }
/// // They are on both sides of a border.
/// let around = BlockBox::new(BlockPos::new(-8, 60, -8), BlockPos::new(8, 70, 8));
/// assert_eq!(world.records().in_box(&RecordQuery::new(overworld, around))?.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SegmentedRecords<'w, H: SegmentHome> {
    world: &'w SegmentedWorld<H>,
}

impl<H: SegmentHome> SegmentedWorld<H> {
    /// The spatial records of all segments, and those of the root.
    pub const fn records(&self) -> SegmentedRecords<'_, H> {
        SegmentedRecords { world: self }
    }
}

impl<H: SegmentHome> SegmentedRecords<'_, H> {
    /// The last committed state of a record, or `None` if there is none. One key read in the root and two in the segment,
    /// which is opened.
    ///
    /// # Errors
    /// As [`SegmentedWorld::load`].
    pub fn get(&self, id: RecordId) -> Result<Option<Record>, Error> {
        Ok(self.world.find_record(id)?.here().map(|(record, _)| Arc::unwrap_or_clone(record)))
    }

    /// The records that a query selects and that are in its area, in the order of the tree. Costs what
    /// [`in_leaves`](Self::in_leaves) costs.
    ///
    /// # Errors
    /// As [`in_leaves`](Self::in_leaves).
    pub fn in_box(&self, query: &RecordQuery) -> Result<Vec<(RecordId, Record)>, Error> {
        let (_, area) = query.place();
        let mut found = self.in_leaves(query)?;
        found.retain(|(_, record)| area.contains(record.position.block()));
        Ok(found)
    }

    /// The records that a query selects, in the order of the tree: all of the leaves that overlap its area, also of those
    /// that reach over a border.
    ///
    /// Costs the query in the root and in each stored segment that these leaves touch. Opens these segments. What is written
    /// meanwhile may be found or not.
    ///
    /// # Errors
    /// As [`Records::in_leaves`](cg_store::records::Records::in_leaves), and the errors of opening segments.
    pub fn in_leaves(&self, query: &RecordQuery) -> Result<Vec<(RecordId, Record)>, Error> {
        self.world.records_in(query)
    }
}

impl<H: SegmentHome> fmt::Debug for SegmentedRecords<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SegmentedRecords").field(self.world).finish()
    }
}

impl<H: SegmentHome> Transfers<H> {
    /// The records of the leaves that overlap an area, in the order of the tree, each once.
    ///
    /// The root comes last: a merge brings records to it, and none leaves it for a segment before it is deleted there. So one
    /// that goes there meanwhile is found, if it is not found in its segment.
    pub(super) fn records_in(&self, query: &RecordQuery) -> Result<Vec<(RecordId, Record)>, Error> {
        self.try_to_resolve();
        let root = self.root();
        let shape = root.world().record_shape();
        let (dimension, area) = query.place();
        let leaves = whole_leaves(shape, area);
        let dead = self.borders().dead_copies()?;
        let mut parts = Vec::new();
        for segment in root.segments(SegmentState::There) {
            if segment.dimension == dimension && leaves.meets(&segment.blocks(root.side_chunks())) {
                let found = self.open().with_stored(segment, |world| world.records_in(query))?;
                let mut found = found.unwrap_or_default();
                found.retain(|(id, _)| dead.get(id) != Some(&segment));
                parts.push((Some(segment), found));
            }
        }
        let mut of_root = Vec::new();
        for (id, record) in root.world().records_in(query)? {
            // What a segment has hides what a host put into the root under the same key.
            if self.borders().home_of(&ConflictKey::Record(id))?.is_none() {
                of_root.push((id, record));
            }
        }
        parts.push((None, of_root));
        parts.retain(|(_, found)| !found.is_empty());
        if let [(_, _)] | [] = parts[..] {
            return Ok(parts.pop().map(|(_, found)| found).unwrap_or_default());
        }
        let mut all = BTreeMap::new();
        for (home, found) in parts {
            for (id, record) in found {
                // It went from one to another meanwhile, if there are two.
                if !all.contains_key(&id) || root.segment_with(&ConflictKey::Record(id))? == home {
                    all.insert(id, record);
                }
            }
        }
        let mut found: Vec<_> = all.into_iter().collect();
        found.sort_by_cached_key(|(id, record)| key::record(&leaf_of(shape, record), *id));
        Ok(found)
    }
}

/// The blocks of all leaves that overlap an area.
fn whole_leaves(shape: RecordShape, area: &BlockArea) -> BlockArea {
    let side = shape.leaf_side_blocks();
    let first = |axis: i64| axis.div_euclid(side).saturating_mul(side);
    let last = |axis: i64| first(axis).saturating_add(side - 1);
    BlockArea::union(area.boxes().iter().map(|area| {
        let (min, max) = (area.min(), area.max());
        BlockBox::new(
            BlockPos::new(first(min.x), first(min.y), first(min.z)),
            BlockPos::new(last(max.x), last(max.y), last(max.z)),
        )
    }))
}
