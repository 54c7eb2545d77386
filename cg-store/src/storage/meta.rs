//! The rows of `worldMeta`: properties of the world, its limits, and the registry's lists.

use std::collections::BTreeMap;
#[cfg(feature = "rocks")]
use std::path::Path;

use cg_format::frame::{Codec, Draft, FrameView, LEN_BYTES, Stamp};
use cg_format::key::Family;
use cg_format::lineage::Lineage;
use cg_format::wire::{Reader, Writer};
use cg_format::{DecodeError, Problem, Section, Space};
use cg_registry::Catalog;
use cg_registry::codec::is_registry_row;
use uuid::Uuid;

#[cfg(feature = "rocks")]
use crate::engine::RocksEngine;
use crate::engine::{ALL_KEYS, Batch, Readable, ReadableExt as _};
use crate::storage::directory::{State, WorldFile};
use crate::storage::error::{Damage, Error, OpenError};
use crate::storage::history;
use crate::storage::meta_view::MetaView;
use crate::storage::options::{StoreLimits, WorldOptions};
use crate::storage::record_settings::RecordSettings;
use crate::storage::record_shape::RecordShape;

/// The world's limits: six `u64`, in the order chunk, entity, property, batch, object, record. Worlds of earlier drafts
/// have the first four.
pub(crate) const LIMITS: MetaRow<StoreLimits> = MetaRow {
    key: "limits",
    what: "the row of the world's limits",
    encode: encode_limits,
    decode: decode_limits,
};

/// The shape of the record tree: its four settings, `u32` each.
pub(crate) const RECORD_SHAPE: MetaRow<RecordShape> = MetaRow {
    key: "recordShape",
    what: "the row of the shape of the records",
    encode: encode_record_shape,
    decode: decode_record_shape,
};

/// The tombstone horizon: the first commit whose tombstones are kept, a `u64`.
pub(crate) const TOMBSTONE_HORIZON: MetaRow<u64> = MetaRow {
    key: "forgottenBefore",
    what: "the row that says which deletions are forgotten",
    encode: |commit, out| Writer::new(out).u64(*commit),
    decode: |payload| decode_u64(payload, "forgotten before", "bytes after the commit"),
};

/// The row that replaces `world.cg` in a world without a directory: the world's UUID, that of its incarnation, and its
/// signature, if it has one.
pub(crate) const IDENTITY: MetaRow<WorldFile> = MetaRow {
    key: "identity",
    what: "the row of the world's identity",
    encode: |file, out| {
        out.extend(file.uuid.as_bytes());
        out.extend(file.incarnation.as_bytes());
        out.extend(file.signature.iter().flat_map(String::as_bytes));
    },
    decode: |payload| {
        let mut reader = Reader::at_offset(payload, LEN_BYTES as u64, Section::Frame);
        let mut uuid = |field| reader.array(field).map(Uuid::from_bytes);
        let (uuid, incarnation) = (uuid("uuid")?, uuid("incarnation")?);
        let here = reader.clone();
        let bytes = reader.take("signature", reader.left_bytes())?;
        let text = str::from_utf8(bytes).map_err(|error| {
            let found = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
            here.error(Problem::NotUtf8 { field: "signature", found })
        })?;
        let signature = (!text.is_empty()).then(|| text.to_owned());
        Ok(WorldFile { uuid, incarnation, state: State::Ready, signature })
    },
};

/// The UUID of a world in a directory, which `world.cg` there must have too.
pub(crate) const WORLD: MetaRow<Uuid> = MetaRow {
    key: "world",
    what: "the row of the world's UUID",
    encode: |uuid, out| out.extend(uuid.as_bytes()),
    decode: |payload| {
        let mut reader = Reader::at_offset(payload, LEN_BYTES as u64, Section::Frame);
        let uuid = reader.array("uuid").map(Uuid::from_bytes)?;
        reader.end("bytes after the UUID")?;
        Ok(uuid)
    },
};

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
    /// `None` also in a world with a directory, which has it in `world.cg`.
    pub(crate) identity: Option<WorldFile>,
    /// `None` in a world without a directory, and in worlds of earlier drafts.
    pub(crate) world: Option<Uuid>,
    /// The openings that made the world's commits.
    pub(crate) lineage: Lineage,
    /// All rows of `worldMeta`.
    pub(crate) view: MetaView,
    /// Whether the engine is known to have no row of any family.
    pub(crate) is_new: bool,
}

impl WorldRows {
    /// The rows of a world that is not stored yet, in an engine without rows.
    #[cfg(feature = "rocks")]
    pub(crate) fn of_new(catalog: Catalog) -> Self {
        Self {
            catalog,
            limits: None,
            tombstone_horizon: 0,
            record_shape: None,
            identity: None,
            world: None,
            lineage: Lineage::default(),
            view: MetaView::default(),
            is_new: true,
        }
    }

    /// Reads the rows of an engine. Costs one scan of `worldMeta`, which holds the registry and a few other rows.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the frame of a row, the limits, the tombstone horizon, the shape of the records or the
    /// openings are damaged; [`Error::Registry`] if the registry does not decode.
    pub(crate) fn read(engine: &dyn Readable) -> Result<Self, Error> {
        Self::of(MetaView::read(engine)?)
    }

    /// As [`read`](Self::read), of rows that were read already.
    ///
    /// # Errors
    /// As [`read`](Self::read), except those of an engine.
    pub(crate) fn of(view: MetaView) -> Result<Self, Error> {
        Ok(Self {
            catalog: read_catalog(&view)?,
            limits: LIMITS.get(&view)?,
            tombstone_horizon: TOMBSTONE_HORIZON.get(&view)?.unwrap_or(0),
            record_shape: RECORD_SHAPE.get(&view)?,
            identity: None,
            world: None,
            lineage: history::read(&view)?,
            view,
            is_new: false,
        })
    }

    /// Reads the rows of the engine in a directory, and checks that they are those of the world that its `world.cg` names.
    ///
    /// # Errors
    /// As [`read`](Self::read); [`OpenError::OtherWorld`];
    /// [`EngineError::OtherHistory`](crate::engine::EngineError::OtherHistory).
    #[cfg(feature = "rocks")]
    pub(crate) fn read_in(engine: &RocksEngine, path: &Path, file: &WorldFile) -> Result<Self, Error> {
        let mut read = Self::read(engine)?;
        read.world = WORLD.get(&read.view)?;
        match read.world {
            Some(rows) if rows != file.uuid => {
                Err(OpenError::OtherWorld { path: path.into(), file: file.uuid, rows }.into())
            }
            _ => {
                let checked = engine.check_history(&read.lineage);
                checked.map_err(|source| OpenError::Engine { at: path.into(), source })?;
                Ok(read)
            }
        }
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

/// Decodes a row that holds one number. The names are those of the number, and of what may not be after it.
pub(crate) fn decode_u64(
    payload: &[u8],
    field: &'static str,
    after: &'static str,
) -> Result<u64, DecodeError> {
    let mut reader = Reader::at_offset(payload, LEN_BYTES as u64, Section::Frame);
    let number = reader.u64(field)?;
    reader.end(after)?;
    Ok(number)
}

fn encode_limits(limits: &StoreLimits, out: &mut Vec<u8>) {
    let StoreLimits { chunk_bytes, entity_bytes, property_bytes, object_bytes, record_bytes, batch_bytes } =
        *limits;
    let mut writer = Writer::new(out);
    for limit in [chunk_bytes, entity_bytes, property_bytes, batch_bytes, object_bytes, record_bytes] {
        writer.u64(limit);
    }
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

fn encode_record_shape(shape: &RecordShape, out: &mut Vec<u8>) {
    let RecordSettings { leaf_square_size, tree_degree, num_levels, roots_per_table } = shape.settings();
    let mut writer = Writer::new(out);
    for setting in [leaf_square_size, tree_degree, num_levels, roots_per_table] {
        writer.u32(setting);
    }
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
            let bytes = |frame: FrameView<'_>| Ok(frame.payload().to_vec());
            let bytes = open_row(Space::WorldMeta, key, row, || "a registry row", bytes)?;
            rows.insert(name.to_owned(), bytes);
        }
        Ok::<_, Error>(())
    })?;
    Ok(rows)
}

/// Checks the frame of a row, and decodes what it holds. `what` names that in an error.
///
/// # Errors
/// [`Error::Corrupt`] if the frame or its content is damaged.
pub fn open_row<'r, T, W: Into<String>>(
    space: Space,
    key: &[u8],
    row: &'r [u8],
    what: impl FnOnce() -> W,
    decode: impl FnOnce(FrameView<'r>) -> Result<T, DecodeError>,
) -> Result<T, Error> {
    let decoded = FrameView::open(space, key, row).and_then(decode);
    decoded.map_err(|problem| Damage::of_row(space, key, what(), problem))
}

/// A row of `worldMeta` with a fixed key.
#[derive(Debug)]
pub struct MetaRow<T: 'static> {
    /// Its key.
    pub key: &'static str,
    /// The name of the row's content, for errors.
    pub what: &'static str,
    /// Appends a value.
    pub encode: fn(&T, &mut Vec<u8>),
    /// The inverse of `encode`.
    pub decode: fn(&[u8]) -> Result<T, DecodeError>,
}

impl<T> MetaRow<T> {
    /// The value, or `None` if it was never written.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the row is damaged, and if the engine fails.
    pub fn get(&self, view: &dyn Readable) -> Result<Option<T>, Error> {
        let key = self.key.as_bytes();
        let Some(row) = view.get(Space::WorldMeta, key)? else { return Ok(None) };
        let decode = |frame: FrameView<'_>| (self.decode)(frame.payload());
        open_row(Space::WorldMeta, key, &row, || self.what, decode).map(Some)
    }

    /// Adds the row to a batch.
    pub fn put(&self, batch: &mut Batch, value: &T) {
        let row = Draft::plain(Codec::None, 0, |out| (self.encode)(value, out));
        batch.put(Space::WorldMeta, self.key, row, Stamp::Commit);
    }
}

/// A world, or a layer over worlds, and which of its lives this is.
///
/// Versions of two incarnations are never compared. A base whose identity differs from the one that an overlay remembers is
/// not the base that the overlay was written over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The world, for ever. A copy has the same.
    pub uuid: Uuid,
    /// Drawn anew whenever the content may go back: when a copy lives on, and when commits were lost.
    pub incarnation: Uuid,
}
