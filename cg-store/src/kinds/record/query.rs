//! Queries: all records of the leaves that an area touches.

use std::ops::{Bound, ControlFlow};

use cg_format::key::{self, Family, RecordLeaf};
use cg_format::record::RecordView;
use cg_format::{BlockBox, Dimension, RecordId, Space};

use super::decode;
use crate::engine::{ALL_KEYS, Met, Readable, scan_skipping_damage};
use crate::storage::error::{Damage, Error};
use crate::storage::record_shape::Cover;
use crate::storage::record_shape::RecordShape;

/// Which records are wanted: all of an area, or of these the newer ones, or those of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordQuery {
    dimension: Dimension,
    area: BlockBox,
    after: Option<i64>,
    kind: Option<String>,
}

impl RecordQuery {
    /// Every record of the leaves that a box touches: those outside the box too, as far as its leaves reach.
    pub const fn new(dimension: Dimension, area: BlockBox) -> Self {
        Self { dimension, area, after: None, kind: None }
    }

    /// Only those with a later timestamp.
    #[must_use]
    pub const fn after(mut self, timestamp: i64) -> Self {
        self.after = Some(timestamp);
        self
    }

    /// Only those of a kind.
    #[must_use]
    pub fn of_kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    pub(crate) const fn place(&self) -> (Dimension, &BlockBox) {
        (self.dimension, &self.area)
    }

    pub(crate) fn wants(&self, record: &RecordView<'_>) -> bool {
        self.after.is_none_or(|after| record.timestamp > after)
            && self.kind.as_ref().is_none_or(|kind| record.kind == kind)
    }
}

/// How a scan of an area ended.
enum End<B> {
    /// The caller has enough.
    Broken(B),
    /// The next leaf that the area touches lies elsewhere, if there is one.
    Leaf(Option<RecordLeaf>),
}

/// Shows the records of the leaves that a box touches, in the order of their keys, which all begin with a prefix: an
/// overlay's lease, or nothing.
pub(crate) fn scan_area<B>(
    view: &dyn Readable,
    prefix: &[u8],
    shape: RecordShape,
    dimension: Dimension,
    area: &BlockBox,
    mut visit: impl FnMut(Result<(RecordId, RecordView<'_>), Error>) -> ControlFlow<B>,
) -> Result<Option<B>, Error> {
    let cover = Cover::new(shape, dimension, area);
    let mut next = cover.first();
    while let Some(leaf) = next {
        let from = [prefix, &key::record_leaf(&leaf)].concat();
        // The beginning of every key of the leaf that was met last, which the area touches.
        let mut touched = from.clone();
        let range = (Bound::Included(&from[..]), Bound::Unbounded);
        let ended = scan_skipping_damage(view, Family::Record, range, |met| {
            let (key, row) = match met {
                Met::Row(key, row) => (key, row),
                Met::Gap { error, .. } => return visit(Err(error.into())).map_break(End::Broken),
            };
            let Some(of_world) = key.strip_prefix(prefix) else {
                return ControlFlow::Break(End::Leaf(None));
            };
            if Space::of_row(Family::Record, of_world) != Some(Space::Record) {
                return ControlFlow::Break(End::Leaf(None));
            }
            // Keys that are none cannot be placed; verification reports them.
            let Ok((leaf, id)) = key::decode_record(of_world) else { return ControlFlow::Continue(()) };
            if leaf.path.numbers().len() != shape.settings().num_levels as usize {
                return ControlFlow::Continue(());
            }
            if !key.starts_with(&touched) || key.len() != touched.len() + RecordId::LEN_BYTES {
                let here = cover.first_from(&leaf);
                if here != Some(leaf) {
                    return ControlFlow::Break(End::Leaf(here));
                }
                touched.truncate(prefix.len());
                touched.extend(key::record_leaf(&leaf));
            }
            visit(decode(id, key, row).map(|record| (id, record))).map_break(End::Broken)
        })?;
        match ended {
            Some(End::Broken(value)) => return Ok(Some(value)),
            Some(End::Leaf(leaf)) => next = leaf,
            None => next = None,
        }
    }
    Ok(None)
}

/// Shows every record of a view. A key that is none is shown as an error.
pub(crate) fn scan_records<B>(
    view: &dyn Readable,
    mut visit: impl FnMut(Result<(RecordId, RecordView<'_>), Error>) -> ControlFlow<B>,
) -> Result<Option<B>, Error> {
    let ended = scan_skipping_damage(view, Family::Record, ALL_KEYS, |met| {
        let (key, row) = match met {
            Met::Row(key, row) => (key, row),
            Met::Gap { error, .. } => return visit(Err(error.into())),
        };
        if Space::of_row(Family::Record, key) != Some(Space::Record) {
            return ControlFlow::Continue(());
        }
        let id = key::decode_record(key)
            .map_err(|problem| Damage::of_row(Space::Record, key, "a record", problem));
        visit(id.and_then(|(_, id)| Ok((id, decode(id, key, row)?))))
    })?;
    Ok(ended)
}
