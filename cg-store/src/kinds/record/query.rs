//! Queries: all records of the leaves that overlap an area.

use std::ops::{Bound, ControlFlow};

use cg_format::key::{self, Family, RecordLeaf};
use cg_format::record::RecordView;
use cg_format::{BlockBox, Dimension, RecordId, Space};

use super::decode;
use crate::engine::{ALL_KEYS, Met, Readable, scan_skipping_damage};
use crate::storage::error::{Damage, Error};
use crate::storage::record_shape::Cover;
use crate::storage::record_shape::RecordShape;

/// A query for records: all of an area, or only newer ones, or only those of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordQuery {
    dimension: Dimension,
    area: BlockBox,
    after: Option<i64>,
    kind: Option<String>,
}

impl RecordQuery {
    /// Every record of the leaves that overlap a box. These leaves may reach outside the box.
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

    /// The box that is asked about.
    pub const fn place(&self) -> (Dimension, &BlockBox) {
        (self.dimension, &self.area)
    }

    /// Whether it asks for a record of its box.
    pub fn wants(&self, record: &RecordView<'_>) -> bool {
        self.after.is_none_or(|after| record.timestamp > after)
            && self.kind.as_ref().is_none_or(|kind| record.kind == kind)
    }
}

/// The result of a scan of an area.
enum End<B> {
    /// The caller stopped it.
    Broken(B),
    /// The next overlapping leaf is at another key, if there is one.
    Leaf(Option<RecordLeaf>),
}

/// Visits the records of the leaves that overlap a box, in the order of their keys. All keys have a prefix: an
/// overlay's lease, or nothing.
///
/// # Errors
/// [`Error::Corrupt`] at the first damaged row.
pub fn scan_area<B>(
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
        // The prefix of every key of the current leaf, which overlaps the area.
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
            // A key that does not decode is skipped; verification reports it.
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

/// Visits every record of a view. A key that does not decode is visited as an error.
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
