//! Folds the deltas of a chunk into it.

use std::ops::Bound;

use cg_format::chunk::Chunk;
use cg_format::delta::{ApplyError, DeltaView};
use cg_format::frame::{self, FrameKind, FrameView};
use cg_format::key::{self, Family};
use cg_format::{DecodeError, Problem, Section, Space};
use cg_registry::Catalog;

use super::Deltas;
use crate::engine::{Readable, ReadableExt as _};
use crate::read::chunk::StoredChunk;
use crate::read::chunk::decode::{decode_as_stored, schema_of};
use crate::storage::error::{Damage, Error};

/// Decodes a chunk with the schema of its row and applies its deltas. The version is that of the last delta.
///
/// Deltas that are [`Stored`](Deltas::Stored) are read from `view`, which must be a view with the row.
pub(crate) fn fold(
    catalog: &Catalog,
    stored: StoredChunk<'_>,
    deltas: &Deltas,
    view: &dyn Readable,
) -> Result<(Chunk, u64), Error> {
    let (mut chunk, mut version) = (decode_as_stored(catalog, stored)?, stored.version.get());
    if matches!(deltas, Deltas::None) {
        return Ok((chunk, version));
    }
    let schema = schema_of(catalog, stored)?;
    let mut apply = |row_key: &[u8], delta: Result<(u64, DeltaView<'_>), DecodeError>| {
        let applied = delta.and_then(|(seq, delta)| {
            version = seq;
            delta.fold_into(&mut chunk, &schema).map_err(|why| unfit(&why))
        });
        applied.map_err(|problem| Damage::of_chunk(Space::ChunkDelta, row_key, stored.at, problem))
    };
    match deltas {
        Deltas::None => {}
        Deltas::Cached(cached) => {
            // A row that was written meanwhile already contains the deltas up to its version.
            for (seq, says) in cached.iter().filter(|(seq, _)| *seq > stored.version.get()) {
                apply(&key::delta(stored.at, seq), DeltaView::new(says).map(|delta| (seq, delta)))?;
            }
        }
        Deltas::Stored => {
            let (first, last) =
                (key::delta(stored.at, stored.version.get()), key::delta(stored.at, u64::MAX));
            let range = (Bound::Excluded(&first[..]), Bound::Included(&last[..]));
            view.try_scan(Family::ChunkDelta, range, |row_key, row| {
                apply(row_key, read(row_key, row).map(|(seq, delta, _)| (seq, delta)))
            })?;
        }
    }
    Ok((chunk, version))
}

/// Decodes a delta's row: the commit, and the payload as a view and as bytes.
pub(crate) fn read<'r>(row_key: &[u8], row: &'r [u8]) -> Result<(u64, DeltaView<'r>, &'r [u8]), DecodeError> {
    let (_, seq) = key::decode_delta(row_key)?;
    let frame = FrameView::open(Space::ChunkDelta, row_key, row)?;
    if frame.header().kind != FrameKind::Deltas {
        let found = frame.header().kind.byte().into();
        return Err(DecodeError::new(
            Section::Frame,
            1,
            Problem::OutOfRange { field: "kind", found, allowed: "4 (deltas)" },
        ));
    }
    Ok((seq, DeltaView::new(frame.payload())?, frame.payload()))
}

/// The damage of a delta that cannot be applied to its chunk.
fn unfit(why: &ApplyError) -> DecodeError {
    let found = match why {
        ApplyError::CarriesComponents { block, .. } => block.get(),
        _ => 0,
    };
    let allowed = "blocks without components, in layers that are there, in place of such";
    let problem = Problem::OutOfRange { field: "set block", found, allowed };
    DecodeError::new(Section::Delta, frame::LEN_BYTES as u64, problem)
}
