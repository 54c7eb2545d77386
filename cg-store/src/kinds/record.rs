//! Spatial records: data of a host at points of the world, found by area.
//!
//! Records are in the leaves of trees whose [shape] the world stores. A query returns all records of the leaves that
//! overlap an area, without a test of each point. Each record has two rows in the same commit: itself under its leaf,
//! and its [leaf](Space::RecordPlace) under its UUID.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use cg_format::frame::{Codec, Draft, Stamp};
use cg_format::key::{self, Family, RecordLeaf};
use cg_format::record::{Record, RecordView};
use cg_format::{BlockArea, BlockBox, Dimension, RecordId, Space};

use crate::engine::{ALL_KEYS, Batch, EngineError, Met, Readable, scan_skipping_damage};
use crate::storage::error::{Damage, Error};
use crate::storage::meta::open_row;
use crate::storage::record_area::AreaCover;
use crate::storage::record_shape::RecordShape;

/// Decodes a record's row.
///
/// # Errors
/// [`Error::Corrupt`] if the row is damaged.
pub fn decode<'a>(id: RecordId, key: &[u8], row: &'a [u8]) -> Result<RecordView<'a>, Error> {
    open_row(Space::Record, key, row, || format!("record {id}"), |frame| RecordView::decode(frame.payload()))
}

/// Decodes the row with the leaf of a record.
pub(crate) fn decode_place(id: RecordId, row: &[u8]) -> Result<RecordLeaf, Error> {
    let key = key::record_place(id);
    let what = || format!("the place of record {id}");
    open_row(Space::RecordPlace, &key, row, what, |frame| key::decode_record_leaf(frame.payload()))
}

/// One record before and after.
#[derive(Debug)]
pub(crate) struct RecordChange {
    /// Its previous leaf; `None` if it did not exist.
    pub(crate) old: Option<RecordLeaf>,
    pub(crate) leaf: Option<RecordLeaf>,
    /// `None` is a deletion.
    pub(crate) new: Option<Arc<Record>>,
}

impl RecordChange {
    /// Adds its rows to a batch.
    pub(crate) fn put_rows(&self, batch: &mut Batch, id: RecordId) {
        if let Some(old) = self.old.filter(|old| Some(*old) != self.leaf) {
            batch.delete(Space::Record, key::record(&old, id));
        }
        let (Some(leaf), Some(record)) = (&self.leaf, &self.new) else {
            batch.delete(Space::RecordPlace, key::record_place(id));
            return;
        };
        let draft = Draft::plain(Codec::None, 0, |out| record.encode(out));
        batch.put(Space::Record, key::record(leaf, id), draft, Stamp::Commit);
        if self.old != self.leaf {
            let draft = Draft::plain(Codec::None, 0, |out| out.extend(key::record_leaf(leaf)));
            batch.put(Space::RecordPlace, key::record_place(id), draft, Stamp::Commit);
        }
    }

    /// The maximum size of its rows.
    pub(crate) fn max_rows_bytes(&self) -> usize {
        /// Two keys, two frames, a leaf.
        const ROWS_BYTES: usize = 512;
        ROWS_BYTES + self.new.as_ref().map_or(0, |record| record.len_bytes())
    }
}

/// The leaf of a record.
pub fn leaf_of(shape: RecordShape, record: &Record) -> RecordLeaf {
    shape.leaf(record.position.dimension(), record.position.block())
}

/// A query for records: all of an area, or only newer ones, or only those of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordQuery {
    dimension: Dimension,
    area: BlockArea,
    after: Option<i64>,
    kind: Option<String>,
}

impl RecordQuery {
    /// Every record of the leaves that overlap a box. These leaves may reach outside the box.
    pub fn new(dimension: Dimension, area: BlockBox) -> Self {
        Self::in_area(dimension, area.into())
    }

    /// Every record of the leaves that overlap any of some boxes, each record once. Without a box there is none.
    ///
    /// ```
    /// use cg_format::record::Record;
    /// use cg_store::prelude::*;
    /// use cg_store::records::RecordQuery;
    /// let world = World::builder().in_memory()?;
    /// let overworld = world.registry().register_dimension("game:overworld")?;
    /// world.transaction(|tx| {
    ///     let position = EntityPos::from_f64(overworld, [3.0, 4.0, 5.0])?;
    ///     tx.put_record(RecordId::from_bytes([7; 16]), Record::new(position, "game:grave", 0, vec![])?);
    ///     Ok::<_, Error>(())
    /// })?;
    /// let cube = |side| BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(side, side, side));
    /// let both = RecordQuery::in_areas(overworld, [cube(9), cube(20)]);
    /// assert_eq!(world.records().in_box(&both)?.len(), 1);
    /// assert_eq!(world.records().in_box(&RecordQuery::in_areas(overworld, []))?, []);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn in_areas(dimension: Dimension, boxes: impl IntoIterator<Item = BlockBox>) -> Self {
        Self::in_area(dimension, BlockArea::union(boxes))
    }

    /// Every record of the leaves that overlap an area, each once.
    pub const fn in_area(dimension: Dimension, area: BlockArea) -> Self {
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

    /// The area that is asked about.
    pub const fn place(&self) -> (Dimension, &BlockArea) {
        (self.dimension, &self.area)
    }

    /// Whether it asks for a record of its area.
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

/// Where a key is.
enum Place {
    /// In a leaf that overlaps the area.
    Inside(RecordId),
    /// Nowhere: it does not decode, or is of another shape. Verification reports it.
    Nowhere,
    /// In another leaf. The next overlapping one, if there is one.
    Before(Option<RecordLeaf>),
}

/// The keys of an area.
struct AreaKeys<'k> {
    prefix: &'k [u8],
    cover: AreaCover,
    level_count: usize,
    /// The prefix of every key of the current leaf, which overlaps the area.
    touched: Vec<u8>,
}

impl AreaKeys<'_> {
    fn first_of(&self, leaf: &RecordLeaf) -> Vec<u8> {
        [self.prefix, &key::record_leaf(leaf)].concat()
    }

    fn place(&mut self, key: &[u8]) -> Place {
        let of_world = key.strip_prefix(self.prefix);
        let of_world = of_world.filter(|key| Space::of_row(Family::Record, key) == Some(Space::Record));
        let Some(of_world) = of_world else { return Place::Before(None) };
        let Ok((leaf, id)) = key::decode_record(of_world) else { return Place::Nowhere };
        if leaf.path.numbers().len() != self.level_count {
            return Place::Nowhere;
        }
        if !key.starts_with(&self.touched) || key.len() != self.touched.len() + RecordId::LEN_BYTES {
            let here = self.cover.first_from(&leaf);
            if here != Some(leaf) {
                return Place::Before(here);
            }
            self.touched = self.first_of(&leaf);
        }
        Place::Inside(id)
    }
}

/// Visits the records of the leaves that overlap an area, each once, in the order of their keys. All keys have a
/// prefix: an overlay's lease, or nothing.
///
/// # Errors
/// [`Error::Corrupt`] at the first damaged row.
pub fn scan_area<B>(
    view: &dyn Readable,
    prefix: &[u8],
    shape: RecordShape,
    dimension: Dimension,
    area: &BlockArea,
    mut visit: impl FnMut(Result<(RecordId, RecordView<'_>), Error>) -> ControlFlow<B>,
) -> Result<Option<B>, Error> {
    let cover = AreaCover::new(shape, dimension, area);
    let Some(last) = cover.last() else { return Ok(None) };
    let level_count = shape.settings().num_levels as usize;
    let mut keys = AreaKeys { prefix, cover, level_count, touched: Vec::new() };
    let mut next = keys.cover.first().map(|leaf| keys.first_of(&leaf));
    let at_once = view.ranges_at_once(Family::Record);
    if at_once > 1
        && let Some(ranges) = keys.cover.ranges(prefix, at_once)
    {
        let mut broken = None;
        let scanned = view.scan_ranges(Family::Record, &ranges, &mut |key, row| {
            next = Some([key, &[0]].concat());
            let Place::Inside(id) = keys.place(key) else { return ControlFlow::Continue(()) };
            visit(decode(id, key, row).map(|record| (id, record))).map_break(|value| broken = Some(value))
        });
        match scanned {
            // Damage is passed over below, after the rows before it.
            Err(EngineError::Corrupt { .. }) => {}
            scanned => return Ok(scanned.map(|()| broken)?),
        }
    }
    // The greatest key that a record of the area can have.
    let end = [keys.first_of(&last), [0xff; RecordId::LEN_BYTES].into()].concat();
    while let Some(from) = next {
        keys.touched.clone_from(&from);
        let range = (Bound::Included(&from[..]), Bound::Included(&end[..]));
        let ended = scan_skipping_damage(view, Family::Record, range, |met| match met {
            Met::Row(key, row) => match keys.place(key) {
                Place::Inside(id) => {
                    visit(decode(id, key, row).map(|record| (id, record))).map_break(End::Broken)
                }
                Place::Nowhere => ControlFlow::Continue(()),
                Place::Before(leaf) => ControlFlow::Break(End::Leaf(leaf)),
            },
            Met::Gap { error, .. } => visit(Err(error.into())).map_break(End::Broken),
        })?;
        match ended {
            Some(End::Broken(value)) => return Ok(Some(value)),
            Some(End::Leaf(leaf)) => next = leaf.map(|leaf| keys.first_of(&leaf)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Engine as _, Level, MemEngine, RowVisitor, Scan, Value};
    use cg_format::BlockPos;
    use cg_format::entity::EntityPos;
    use std::sync::Mutex;

    /// Rows whose scans are noted.
    struct Noted {
        engine: MemEngine,
        /// The number of rows that each scan returned.
        scans: Mutex<Vec<usize>>,
    }

    impl Readable for Noted {
        fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value<'_>>, EngineError> {
            self.engine.get(space, key)
        }

        fn get_many(&self, keys: &[(Space, &[u8])]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
            self.engine.get_many(keys)
        }

        fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
            let (from, to) = scan.range;
            assert!(!matches!(from, Bound::Unbounded) && !matches!(to, Bound::Unbounded), "{:?}", scan.range);
            let mut count = 0;
            self.engine.scan_rows(scan, &mut |key, row| {
                count += 1;
                visit(key, row)
            })?;
            self.scans.lock().unwrap().push(count);
            Ok(())
        }
    }

    #[test]
    fn a_scan_of_an_area_ends_with_its_last_leaf() {
        let (shape, dimension) = (RecordShape::default(), Dimension::new(3));
        let mut batch = Batch::new();
        let corners = [-300, -17, -1, 0, 15, 16, 500];
        for (n, x) in corners.into_iter().enumerate() {
            let block = BlockPos::new(x, x, x);
            let leaf = shape.leaf(dimension, block);
            let position = EntityPos::new(dimension, block, [0.0; 3]).unwrap();
            let record = Record::new(position, "mark", 0, Vec::new()).unwrap();
            let id = RecordId::from_bytes([if n % 2 == 0 { 0xff } else { 0 }; 16]);
            let change = RecordChange { old: None, leaf: Some(leaf), new: Some(Arc::new(record)) };
            change.put_rows(&mut batch, id);
        }
        let engine = MemEngine::new();
        engine.commit(batch, &[], Level::Process).unwrap();
        let noted = Noted { engine, scans: Mutex::default() };
        for (from, to, expected) in
            [(0, 0, 2), (-16, 15, 3), (16, 16, 1), (17, 400, 1), (-1000, 1000, 7), (600, 700, 0)]
        {
            let corner = |x| BlockPos::new(x, x, x);
            let area = BlockArea::from(BlockBox::new(corner(from), corner(to)));
            let mut found = 0;
            let ended = scan_area(&noted, &[], shape, dimension, &area, |record| {
                record.unwrap();
                found += 1;
                ControlFlow::<()>::Continue(())
            });
            assert_eq!((ended.unwrap(), found), (None, expected), "{from} to {to}");
        }
        assert!(!noted.scans.lock().unwrap().is_empty());
        let nowhere = BlockArea::union([]);
        let none = scan_area(&noted, &[], shape, dimension, &nowhere, |_| ControlFlow::Break(()));
        assert_eq!(none.unwrap(), None);
    }
}
