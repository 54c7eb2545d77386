//! Reading chunks with what their deltas say.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::delta::{ApplyError, Delta};
use cg_format::frame::{self, FrameKind, FrameView};
use cg_format::key::{self, Family};
use cg_format::{ChunkAt, DecodeError, Lookup, Problem, Section, Space};
use cg_registry::Catalog;

use super::WithDeltas;
use crate::chunk::decode::{decode_as_stored, schema_of};
use crate::chunk::{Area, StoredChunk, find_in, walk};
use crate::engine::{Engine, ReadView};
use crate::error::{Damage, Error};
use crate::stats::Counters;
use crate::world::Inner;

/// Decodes a chunk with the schema of its row and applies what its deltas say; its version is that of the last.
///
/// The row and the deltas must be of one view.
pub(crate) fn fold_stored<V: ReadView>(
    view: &V,
    catalog: &Catalog,
    stored: StoredChunk<'_>,
) -> Result<(Chunk, u64), Error> {
    let mut chunk = decode_as_stored(catalog, stored)?;
    let schema = schema_of(catalog, stored)?;
    let mut version = stored.version;
    let (first, last) = (key::delta(stored.at, stored.version), key::delta(stored.at, u64::MAX));
    let range = (Bound::Excluded(&first[..]), Bound::Included(&last[..]));
    let failed = view.scan(Family::ChunkDelta, range, |row_key, row| {
        let damage = |problem| Damage::of_chunk(Space::ChunkDelta, row_key, stored.at, problem);
        let applied = read(row_key, row).and_then(|(seq, delta)| {
            delta.apply(&mut chunk, &schema).map_err(|why| unfit(&why))?;
            Ok(seq)
        });
        match applied {
            Ok(seq) => {
                version = seq;
                ControlFlow::Continue(())
            }
            Err(problem) => ControlFlow::Break(damage(problem)),
        }
    })?;
    failed.map_or(Ok((chunk, version)), Err)
}

/// A delta's row.
pub(crate) fn read(row_key: &[u8], row: &[u8]) -> Result<(u64, Delta), DecodeError> {
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
    Ok((seq, Delta::decode(frame.payload())?))
}

/// A delta that says what cannot be done to its chunk.
fn unfit(why: &ApplyError) -> DecodeError {
    let found = match why {
        ApplyError::CarriesComponents { block, .. } => block.get(),
        _ => 0,
    };
    let allowed = "blocks without components, in layers that are there, in place of such";
    let problem = Problem::OutOfRange { field: "set block", found, allowed };
    DecodeError::new(Section::Delta, frame::LEN_BYTES as u64, problem)
}

/// Shows a chunk's bytes with its deltas folded in, in the schema generation of its row.
fn show_folded<V: ReadView, T>(
    view: &V,
    catalog: &Catalog,
    stored: StoredChunk<'_>,
    show: impl FnOnce(StoredChunk<'_>) -> T,
) -> Result<T, Error> {
    let (chunk, version) = fold_stored(view, catalog, stored)?;
    let value = chunk.to_bytes();
    Ok(show(StoredChunk { value: &value, version, ..stored }))
}

/// What the deltas of a view say, for walks over it.
pub(crate) struct Folding<'v, V> {
    view: &'v V,
    catalog: Arc<Catalog>,
    with_deltas: WithDeltas,
}

impl<'v, V: ReadView> Folding<'v, V> {
    /// Reads the keys of all deltas.
    pub(crate) fn of<E: Engine>(world: &Inner<E>, view: &'v V) -> Result<Self, Error> {
        Ok(Self { view, catalog: world.registry.catalog(), with_deltas: WithDeltas::of(view)? })
    }

    /// The version of a chunk whose row has one.
    pub(crate) fn version(&self, at: ChunkAt, of_row: u64) -> u64 {
        self.with_deltas.last(at).map_or(of_row, |last| of_row.max(last))
    }

    /// Shows what a walk has come to, with its deltas folded in.
    pub(crate) fn show<B>(
        &self,
        stored: Result<StoredChunk<'_>, Error>,
        visit: &mut impl FnMut(Result<StoredChunk<'_>, Error>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        match stored {
            Ok(stored) if self.with_deltas.has(stored.at) => {
                match show_folded(self.view, &self.catalog, stored, |stored| visit(Ok(stored))) {
                    Ok(flow) => flow,
                    Err(error) => visit(Err(error)),
                }
            }
            stored => visit(stored),
        }
    }
}

/// As [`walk`], every chunk with its deltas folded in. Reads the keys of all deltas first.
pub(crate) fn walk_folded<V: ReadView, E: Engine, B>(
    world: &Inner<E>,
    view: &V,
    area: Area,
    mut visit: impl FnMut(Result<StoredChunk<'_>, Error>) -> ControlFlow<B>,
) -> Result<Option<B>, Error> {
    let folding = Folding::of(world, view)?;
    walk(view, &world.counters, area, |stored| folding.show(stored, &mut visit))
}

/// Finds a chunk in a view and shows its bytes with its deltas folded in.
pub(crate) fn find_folded_in<V: ReadView, T>(
    view: &V,
    counters: &Counters,
    catalog: &Catalog,
    at: ChunkAt,
    read: impl FnOnce(StoredChunk<'_>) -> Result<T, Error>,
) -> Result<Lookup<T>, Error> {
    find_in(view, counters, at, |stored| show_folded(view, catalog, stored, read)?)
}
