//! Reads chunks with their deltas folded in.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::delta::{ApplyError, DeltaView};
use cg_format::frame::{self, FrameKind, FrameView};
use cg_format::key::{self, Family};
use cg_format::{ChunkAt, DecodeError, Problem, Section, Space};
use cg_registry::{Catalog, Schema};

use super::{CachedDeltas, WithDeltas};
use crate::engine::{CommitSeq, Readable, ReadableExt as _};
use crate::read::chunk::decode::{decode_as_stored, schema_of};
use crate::read::chunk::{Area, StoredChunk, walk};
use crate::read::state::ReadState;
use crate::storage::error::{Damage, Error};

/// Decodes a chunk with the schema of its row and applies its deltas. The version is that of the last delta.
///
/// The row and the deltas must be of one view.
pub(crate) fn fold_stored(
    view: &dyn Readable,
    catalog: &Catalog,
    stored: StoredChunk<'_>,
) -> Result<(Chunk, u64), Error> {
    let mut folded = Folded::begin(catalog, stored)?;
    let (first, last) = (key::delta(stored.at, stored.version.get()), key::delta(stored.at, u64::MAX));
    let range = (Bound::Excluded(&first[..]), Bound::Included(&last[..]));
    view.try_scan(Family::ChunkDelta, range, |row_key, row| {
        read(row_key, row)
            .and_then(|(seq, delta, _)| folded.apply(seq, &delta))
            .map_err(|problem| Damage::of_chunk(Space::ChunkDelta, row_key, stored.at, problem))
    })?;
    Ok((folded.chunk, folded.version))
}

/// As [`fold_stored`], with deltas from memory that were taken before the row was read.
pub(crate) fn fold_cached(
    cached: &CachedDeltas,
    catalog: &Catalog,
    stored: StoredChunk<'_>,
) -> Result<(Chunk, u64), Error> {
    let mut folded = Folded::begin(catalog, stored)?;
    // A row that was written meanwhile already contains the deltas up to its version.
    for (seq, says) in cached.iter().filter(|(seq, _)| *seq > stored.version.get()) {
        let applied = DeltaView::new(says).and_then(|delta| folded.apply(seq, &delta));
        applied.map_err(|problem| {
            Damage::of_chunk(Space::ChunkDelta, &key::delta(stored.at, seq), stored.at, problem)
        })?;
    }
    Ok((folded.chunk, folded.version))
}

/// A chunk with some of its deltas applied.
struct Folded {
    chunk: Chunk,
    schema: Schema,
    version: u64,
}

impl Folded {
    fn begin(catalog: &Catalog, stored: StoredChunk<'_>) -> Result<Self, Error> {
        let chunk = decode_as_stored(catalog, stored)?;
        Ok(Self { chunk, schema: schema_of(catalog, stored)?, version: stored.version.get() })
    }

    fn apply(&mut self, seq: u64, delta: &DeltaView<'_>) -> Result<(), DecodeError> {
        delta.fold_into(&mut self.chunk, &self.schema).map_err(|why| unfit(&why))?;
        self.version = seq;
        Ok(())
    }
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

/// Calls `show` with the bytes of a chunk with its deltas folded in, in the schema generation of its row.
pub(crate) fn show_folded<T>(
    (chunk, version): (Chunk, u64),
    stored: StoredChunk<'_>,
    show: impl FnOnce(StoredChunk<'_>) -> T,
) -> T {
    let value = chunk.to_bytes();
    show(StoredChunk { value: &value, version: CommitSeq::new(version), ..stored })
}

/// The deltas of a view, for walks over it.
pub(crate) struct Folding<'v> {
    view: &'v dyn Readable,
    catalog: Arc<Catalog>,
    with_deltas: WithDeltas,
}

impl<'v> Folding<'v> {
    /// Reads the keys of all deltas.
    pub(crate) fn of(read: &ReadState, view: &'v dyn Readable) -> Result<Self, Error> {
        Ok(Self { view, catalog: read.shared.registry.catalog(), with_deltas: WithDeltas::of(view)? })
    }

    /// The version of a chunk, given the version of its row.
    pub(crate) fn version(&self, at: ChunkAt, of_row: u64) -> u64 {
        self.with_deltas.last(at).map_or(of_row, |last| of_row.max(last))
    }

    /// Visits a chunk of a walk with its deltas folded in.
    pub(crate) fn show<B>(
        &self,
        stored: Result<StoredChunk<'_>, Error>,
        visit: &mut impl FnMut(Result<StoredChunk<'_>, Error>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        match stored {
            Ok(stored) if self.with_deltas.has(stored.at) => {
                match fold_stored(self.view, &self.catalog, stored) {
                    Ok(folded) => show_folded(folded, stored, |stored| visit(Ok(stored))),
                    Err(error) => visit(Err(error)),
                }
            }
            stored => visit(stored),
        }
    }
}

/// As [`walk`], every chunk with its deltas folded in. Reads the keys of all deltas first.
pub(crate) fn walk_folded<B>(
    read: &ReadState,
    view: &dyn Readable,
    area: Area,
    mut visit: impl FnMut(Result<StoredChunk<'_>, Error>) -> ControlFlow<B>,
) -> Result<Option<B>, Error> {
    let folding = Folding::of(read, view)?;
    walk(view, &read.shared.counters, area, |stored| folding.show(stored, &mut visit))
}
