//! The rows of `worldMeta`: properties of the world, its limits, and the registry's lists.

use std::collections::BTreeMap;

use cg_format::Space;
use cg_format::frame::{Codec, Draft, FrameView, LEN_BYTES};
use cg_format::key::Family;
use cg_format::wire::{Reader, Writer};
use cg_format::{DecodeError, Problem, Section};
use cg_registry::Catalog;
use cg_registry::codec::is_registry_row;

use crate::engine::{ALL_KEYS, Batch, Readable, ReadableExt as _, Stamp};
use crate::storage::error::{Damage, Error, OpenError};
use crate::storage::options::{StoreLimits, WorldOptions};
use crate::storage::record_shape::RecordSettings;
use crate::storage::record_shape::RecordShape;

/// The row of the world's limits: six `u64`, in the order chunk, entity, property, batch, object, record. Worlds of
/// earlier drafts have the first four.
const LIMITS_KEY: &[u8] = b"limits";
/// The row of the shape of the record tree: its four settings, `u32` each.
const RECORD_SHAPE_KEY: &[u8] = b"recordShape";

/// The row of `worldMeta` with the tombstone horizon, a `u64`.
const TOMBSTONE_HORIZON_KEY: &[u8] = b"forgottenBefore";

/// The rows that a world reads first, so that damage in them is found before anything is written.
#[derive(Debug)]
pub(crate) struct WorldRows {
    pub(crate) catalog: Catalog,
    /// `None` in an engine that holds no world yet.
    pub(crate) limits: Option<StoreLimits>,
    /// The tombstone horizon: the first commit whose tombstones are kept.
    pub(crate) tombstone_horizon: u64,
    /// `None` in an engine that holds no world yet, and in worlds of earlier drafts.
    pub(crate) record_shape: Option<RecordShape>,
}

impl WorldRows {
    /// Reads the rows of an engine. Costs a scan of `worldMeta`, which holds the registry and a few other rows.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the frame of a row, the limits, the tombstone horizon or the shape of the records are
    /// damaged; [`Error::Registry`] if the registry does not decode.
    pub(crate) fn read(view: &dyn Readable) -> Result<Self, Error> {
        let (catalog, limits) = (read_catalog(view)?, read_limits(view)?);
        let tombstone_horizon = read_tombstone_horizon(view)?;
        Ok(Self { catalog, limits, tombstone_horizon, record_shape: read_record_shape(view)? })
    }

    /// The shape of the record tree: the stored one, otherwise the requested one.
    ///
    /// # Errors
    /// [`OpenError::RecordShape`] if the requested shape differs from the stored one.
    pub(crate) fn shape_for(&self, options: &WorldOptions) -> Result<RecordShape, OpenError> {
        match (self.record_shape, options.records) {
            (Some(stored), Some(offered)) if stored != offered => {
                Err(OpenError::RecordShape { stored, offered })
            }
            (stored, offered) => Ok(stored.or(offered).unwrap_or_default()),
        }
    }
}

/// Whether a row is one of the world's own properties.
pub(crate) fn is_property(key: &[u8]) -> bool {
    matches!(key, b"seed" | b"key" | b"time")
}

/// The world's limits, or `None` in an engine that holds no world yet.
fn read_limits(view: &dyn Readable) -> Result<Option<StoreLimits>, Error> {
    let Some(row) = view.get(Space::WorldMeta, LIMITS_KEY)? else { return Ok(None) };
    let limits =
        FrameView::open(Space::WorldMeta, LIMITS_KEY, &row).and_then(|frame| decode_limits(frame.payload()));
    limits.map(Some).map_err(|problem| {
        Damage::of_row(Space::WorldMeta, LIMITS_KEY, "the row of the world's limits", problem)
    })
}

/// The tombstone horizon; 0 in a world in which none was set.
fn read_tombstone_horizon(view: &dyn Readable) -> Result<u64, Error> {
    let Some(row) = view.get(Space::WorldMeta, TOMBSTONE_HORIZON_KEY)? else { return Ok(0) };
    let commit = FrameView::open(Space::WorldMeta, TOMBSTONE_HORIZON_KEY, &row)
        .and_then(|frame| decode_tombstone_horizon(frame.payload()));
    let what = "the row that says which deletions are forgotten";
    commit.map_err(|problem| Damage::of_row(Space::WorldMeta, TOMBSTONE_HORIZON_KEY, what, problem))
}

fn decode_tombstone_horizon(payload: &[u8]) -> Result<u64, DecodeError> {
    let mut reader = Reader::at_offset(payload, LEN_BYTES as u64, Section::Frame);
    let commit = reader.u64("forgotten before")?;
    reader.end("bytes after the commit")?;
    Ok(commit)
}

/// Adds the row of the tombstone horizon to a batch.
pub(crate) fn put_tombstone_horizon(batch: &mut Batch, commit: u64) {
    let row = Draft::plain(Codec::None, 0, |out| Writer::new(out).u64(commit));
    batch.put(Space::WorldMeta, TOMBSTONE_HORIZON_KEY, row, Stamp::Commit);
}

/// Adds the row of the world's limits to a batch.
pub(crate) fn put_limits(batch: &mut Batch, limits: &StoreLimits) {
    let draft = Draft::plain(Codec::None, 0, |out| {
        let mut writer = Writer::new(out);
        let StoreLimits {
            chunk_bytes,
            entity_bytes,
            property_bytes,
            object_bytes,
            record_bytes,
            batch_bytes,
        } = *limits;
        for limit in [chunk_bytes, entity_bytes, property_bytes, batch_bytes, object_bytes, record_bytes] {
            writer.u64(limit);
        }
    });
    batch.put(Space::WorldMeta, LIMITS_KEY, draft, Stamp::Commit);
}

fn decode_limits(payload: &[u8]) -> Result<StoreLimits, DecodeError> {
    let mut reader = Reader::at_offset(payload, LEN_BYTES as u64, Section::Frame);
    let mut limits = StoreLimits {
        chunk_bytes: reader.u64("chunk limit")?,
        entity_bytes: reader.u64("entity limit")?,
        property_bytes: reader.u64("property limit")?,
        batch_bytes: reader.u64("batch limit")?,
        ..StoreLimits::default()
    };
    if reader.left_bytes() > 0 {
        limits.object_bytes = reader.u64("object limit")?;
        limits.record_bytes = reader.u64("record limit")?;
    }
    reader.end("bytes after the limits")?;
    Ok(limits)
}

/// The shape of the record tree, or `None` if it was never written.
fn read_record_shape(view: &dyn Readable) -> Result<Option<RecordShape>, Error> {
    let Some(row) = view.get(Space::WorldMeta, RECORD_SHAPE_KEY)? else { return Ok(None) };
    let shape = FrameView::open(Space::WorldMeta, RECORD_SHAPE_KEY, &row)
        .and_then(|frame| decode_record_shape(frame.payload()));
    shape.map(Some).map_err(|problem| {
        let what = "the row of the shape of the records";
        Damage::of_row(Space::WorldMeta, RECORD_SHAPE_KEY, what, problem)
    })
}

/// Adds the row of the shape of the record tree to a batch.
pub(crate) fn put_record_shape(batch: &mut Batch, shape: RecordShape) {
    let RecordSettings { leaf_square_size, tree_degree, num_levels, roots_per_table } = shape.settings();
    let draft = Draft::plain(Codec::None, 0, |out| {
        let mut writer = Writer::new(out);
        for setting in [leaf_square_size, tree_degree, num_levels, roots_per_table] {
            writer.u32(setting);
        }
    });
    batch.put(Space::WorldMeta, RECORD_SHAPE_KEY, draft, Stamp::Commit);
}

fn decode_record_shape(payload: &[u8]) -> Result<RecordShape, DecodeError> {
    let mut reader = Reader::at_offset(payload, LEN_BYTES as u64, Section::Frame);
    let here = reader.clone();
    let settings = RecordSettings {
        leaf_square_size: reader.u32("leaf square size")?,
        tree_degree: reader.u32("tree degree")?,
        num_levels: reader.u32("num levels")?,
        roots_per_table: reader.u32("roots per table")?,
    };
    reader.end("bytes after the shape")?;
    RecordShape::new(settings).map_err(|_| {
        let (field, found) = ("leaf square size of settings", settings.leaf_square_size.into());
        here.error(Problem::OutOfRange { field, found, allowed: "settings that make a tree" })
    })
}

/// The stored registry; a new one if there is none.
///
/// # Errors
/// [`Error::Corrupt`] if a row's frame is damaged, [`Error::Registry`] if its content does not decode.
pub fn read_catalog(view: &dyn Readable) -> Result<Catalog, Error> {
    let rows = registry_rows(view)?;
    if rows.is_empty() {
        return Ok(Catalog::new());
    }
    Ok(Catalog::decode(rows.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())))?)
}

/// The rows of the registry by name. Their frames are checked.
///
/// # Errors
/// [`Error::Corrupt`] if a row is damaged.
pub fn registry_rows(view: &dyn Readable) -> Result<BTreeMap<String, Vec<u8>>, Error> {
    let mut rows = BTreeMap::new();
    view.try_scan(Family::WorldMeta, ALL_KEYS, |key, row| {
        if let Some(name) = str::from_utf8(key).ok().filter(|name| is_registry_row(name)) {
            let frame = FrameView::open(Space::WorldMeta, key, row)
                .map_err(|problem| Damage::of_row(Space::WorldMeta, key, "a registry row", problem))?;
            rows.insert(name.to_owned(), frame.payload().to_vec());
        }
        Ok::<_, Error>(())
    })?;
    Ok(rows)
}
