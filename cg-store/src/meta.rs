//! The rows of `worldMeta`: properties of the world, its limits, and the registry's lists.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use cg_format::Space;
use cg_format::frame::{Codec, Draft, FrameView};
use cg_format::key::Family;
use cg_format::wire::{Reader, Writer};
use cg_format::{DecodeError, Section};
use cg_registry::Catalog;
use cg_registry::codec::is_registry_row;

use crate::engine::{ALL_KEYS, Batch, ReadView, Stamp};
use crate::error::{Damage, Error};
use crate::forget::read_forgotten;
use crate::options::StoreLimits;

/// The row that holds the world's limits: four `u64`, chunk, entity, property, batch.
const LIMITS_KEY: &[u8] = b"limits";

/// What a world must know before it begins: damage in it is found before anything is written.
#[derive(Debug)]
pub(crate) struct WorldRows {
    pub(crate) catalog: Catalog,
    /// Absent in an engine that holds no world yet.
    pub(crate) limits: Option<StoreLimits>,
    /// The first commit whose deletions are kept.
    pub(crate) forgotten_before: u64,
}

impl WorldRows {
    /// Reads the rows of an engine. Costs a scan of `worldMeta`, which holds the registry and a handful of rows beside it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a row's frame, the limits or what is forgotten are damaged, [`Error::Registry`] if the registry does not decode.
    pub(crate) fn read<V: ReadView>(view: &V) -> Result<Self, Error> {
        let (catalog, limits) = (read_catalog(view)?, read_limits(view)?);
        Ok(Self { catalog, limits, forgotten_before: read_forgotten(view)? })
    }
}

/// Whether a row is one of the world's own properties.
pub(crate) fn is_property(key: &[u8]) -> bool {
    matches!(key, b"seed" | b"key" | b"time")
}

/// The world's limits, or `None` in an engine that holds no world yet.
fn read_limits<V: ReadView>(view: &V) -> Result<Option<StoreLimits>, Error> {
    let Some(row) = view.get(Space::WorldMeta, LIMITS_KEY)? else { return Ok(None) };
    let limits =
        FrameView::open(Space::WorldMeta, LIMITS_KEY, &row).and_then(|frame| decode_limits(frame.payload()));
    limits.map(Some).map_err(|problem| {
        Damage::of_row(Space::WorldMeta, LIMITS_KEY, "the row of the world's limits", problem)
    })
}

/// Adds the row with the world's limits to a batch.
pub(crate) fn put_limits(batch: &mut Batch, limits: &StoreLimits) {
    let draft = Draft::plain(Codec::None, 0, |out| {
        let mut writer = Writer::new(out);
        for limit in [limits.chunk_bytes, limits.entity_bytes, limits.property_bytes, limits.batch_bytes] {
            writer.u64(limit);
        }
    });
    batch.put(Space::WorldMeta, LIMITS_KEY, draft, Stamp::Commit);
}

fn decode_limits(payload: &[u8]) -> Result<StoreLimits, DecodeError> {
    let mut reader = Reader::at_offset(payload, cg_format::frame::LEN_BYTES as u64, Section::Frame);
    let limits = StoreLimits {
        chunk_bytes: reader.u64("chunk limit")?,
        entity_bytes: reader.u64("entity limit")?,
        property_bytes: reader.u64("property limit")?,
        batch_bytes: reader.u64("batch limit")?,
    };
    reader.end("bytes behind the limits")?;
    Ok(limits)
}

/// The registry as it is stored; a new one if there is none.
///
/// # Errors
/// [`Error::Corrupt`] if a row's frame is damaged, [`Error::Registry`] if its content does not decode.
pub(crate) fn read_catalog<V: ReadView>(view: &V) -> Result<Catalog, Error> {
    let rows = registry_rows(view)?;
    if rows.is_empty() {
        return Ok(Catalog::new());
    }
    Ok(Catalog::decode(rows.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())))?)
}

/// The registry's rows by name, their frames checked.
pub(crate) fn registry_rows<V: ReadView>(view: &V) -> Result<BTreeMap<String, Vec<u8>>, Error> {
    let mut rows = BTreeMap::new();
    let failed = view.scan(Family::WorldMeta, ALL_KEYS, |key, row| {
        let Some(name) = str::from_utf8(key).ok().filter(|name| is_registry_row(name)) else {
            return ControlFlow::Continue(());
        };
        match FrameView::open(Space::WorldMeta, key, row) {
            Ok(frame) => {
                rows.insert(name.to_owned(), frame.payload().to_vec());
                ControlFlow::Continue(())
            }
            Err(problem) => {
                ControlFlow::Break(Damage::of_row(Space::WorldMeta, key, "a registry row", problem))
            }
        }
    })?;
    failed.map_or(Ok(rows), Err)
}
