//! Chunks, as an overlay stores them: a delta to the base's chunk where it is worth it, with the ancestor beside it.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::frame::{Codec, Draft};
use cg_format::overlay::{Origin, OverlayRow, OverlayValue};
use cg_format::{ChunkAt, DecodeError, Space, key};
use cg_store::Error;
use cg_store::engine::Stamp;
use cg_store::layer::kind::Chunks;
use cg_store::layer::{Base, Found};

use super::overlay_kind::{Edit, OverlayKind, Rows};
use crate::store::lease_view::LeaseView;
use crate::store::row::Row;
use crate::store::state::Store;
use crate::store::writer::RowWriter;

impl OverlayKind for Chunks {
    const SPACE: Space = Space::ChunkL0;
    const HAS_SCHEMA: bool = true;

    fn row_key(lease: u64, at: &ChunkAt) -> Vec<u8> {
        key::overlay_chunk(lease, *at).to_vec()
    }

    fn key_of(row_key: &[u8]) -> Result<ChunkAt, DecodeError> {
        key::decode_overlay_chunk(row_key).map(|(_, at)| at)
    }

    fn decode<S: Base>(
        rows: &LeaseView<'_, S>,
        at: &ChunkAt,
        _: &[u8],
        row: &[u8],
    ) -> Result<Row<Arc<Chunk>>, Error> {
        rows.store.decode_chunk(rows.lease, *at, row)
    }

    /// Reads memory first.
    fn read<S: Base>(store: &Store<S>, lease: u64, at: &ChunkAt) -> Result<Option<Row<Arc<Chunk>>>, Error> {
        store.chunk(lease, *at)
    }

    fn rows<S: Base>(_: &Store<S>, lease: u64, at: &ChunkAt, _: Option<&Arc<Chunk>>) -> Rows {
        [Self::SPACE, Space::ChunkDelta].map(|space| Some((space, Self::row_key(lease, at))))
    }

    fn encode(chunk: &Arc<Chunk>, out: &mut Vec<u8>) {
        chunk.encode(out);
    }

    /// Stores a chunk as a delta to the base's chunk, if that is worth it, and the base's chunk as its ancestor.
    fn put_rows<S: Base>(out: &mut RowWriter<'_, S>, (at, new, origin): &Edit<Self>) -> Result<(), Error> {
        let below = new.as_ref().and_then(|_| out.store.below(*at, *origin));
        let delta = new.as_deref().zip(below.as_deref()).filter(|_| out.store.deltas);
        let delta = delta.and_then(|(new, below)| out.store.delta(below, new));
        put_ancestor(out, (at, new.as_deref(), origin), below)?;
        out.over.push(delta.is_some().then_some(*origin));
        let draft = Draft::plain(Codec::None, out.generation, |out| match (delta, new) {
            (Some(delta), _) => {
                OverlayRow::encode(
                    *origin,
                    OverlayValue::Changed(|out: &mut Vec<u8>| out.extend(delta)),
                    out,
                );
            }
            (None, new) => {
                let value = new.as_deref().map(|new| |out: &mut Vec<u8>| new.encode(out));
                OverlayRow::encode(*origin, value, out);
            }
        });
        out.batch.put(Self::SPACE, Self::row_key(out.lease, at), draft, Stamp::Commit);
        Ok(())
    }

    fn find<S: Base>(base: &S, at: &ChunkAt) -> Result<Found<Arc<Chunk>>, Error> {
        base.find_chunk(*at)
    }
}

/// Puts the ancestor of a chunk beside its row, as the delta back to it if that is worth it, or deletes it. Where the
/// base had nothing there is none, and that of a row before a deletion does not count. `below` is the base's chunk of
/// the row's origin, if the base has it still.
fn put_ancestor<S: Base>(
    out: &mut RowWriter<'_, S>,
    (at, new, origin): (&ChunkAt, Option<&Chunk>, &Origin),
    below: Option<Arc<Chunk>>,
) -> Result<(), Error> {
    let Some(new) = new.filter(|_| *origin != Origin::ABSENT) else { return Ok(()) };
    let (store, row_key) = (out.store, key::overlay_chunk(out.lease, *at));
    let ancestor = match below {
        Some(below) => Some(below),
        // That of the row before counts on, unless the row shows another state of the base. If one of them is damaged,
        // the chunk is merged as a whole.
        None => match Chunks::read(store, out.lease, at).ok().flatten() {
            Some(row) if row.origin == *origin && row.over.is_none_or(|over| over == *origin) => {
                store.ancestor(out.lease, *at, &row).ok().flatten()
            }
            _ => None,
        },
    };
    let Some(ancestor) = ancestor else {
        out.batch.delete(Space::ChunkDelta, row_key);
        out.ancestors += 1;
        return Ok(());
    };
    let back = store.delta(new, &ancestor);
    if back.is_none() && store.has_whole_ancestor(&row_key, *origin)? {
        return Ok(());
    }
    let draft = Draft::plain(Codec::None, out.generation, |out| {
        if let Some(back) = back {
            let back = OverlayValue::Changed(|out: &mut Vec<u8>| out.extend(back));
            OverlayRow::encode(*origin, back, out);
        } else {
            let whole = OverlayValue::Here(|out: &mut Vec<u8>| ancestor.encode(out));
            OverlayRow::encode(*origin, whole, out);
        }
    });
    out.batch.put(Space::ChunkDelta, row_key, draft, Stamp::Commit);
    out.ancestors += 1;
    Ok(())
}
