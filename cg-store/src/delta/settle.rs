//! Folding a chunk's deltas into its row: a rearrangement that changes no content and no version.

use std::ops::{Bound, ControlFlow};

use cg_format::frame::{Codec, Draft, Stamp};
use cg_format::key::{self, Family};
use cg_format::{ChunkAt, Lookup, Space};

use super::fold_stored;
use crate::chunk::find_in;
use crate::engine::{Batch, Engine, EngineError, Guard, Level, ReadView as _};
use crate::error::Error;
use crate::stats::Counters;
use crate::tiering::Written;
use crate::world::Inner;

/// How folding a chunk's deltas ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// Its row says it all now.
    Done,
    /// A commit changed the row meanwhile; nothing was written.
    Overtaken,
    /// No delta of it is written.
    Nothing,
}

impl<E: Engine> Inner<E> {
    /// Puts a chunk as its row and its deltas say into a row of its own, of the same version and schema generation, and
    /// deletes the deltas.
    ///
    /// Guarded is the row alone. A delta that is committed meanwhile is newer than what was folded, so it goes on the
    /// new row as it would have gone on the old one; whoever takes deltas away replaces the row too. Of a chunk in a
    /// cluster it is guarded that no row of its own was put; its cluster may change its place, not its content.
    pub(crate) fn settle_deltas(&self, at: ChunkAt) -> Result<Settled, Error> {
        let engine = self.engine()?;
        let view = engine.snapshot();
        let row_key = key::chunk(at);
        let guard = match view.get(Space::ChunkL0, &row_key)? {
            Some(row) => Guard::same(Space::ChunkL0, row_key, &row),
            None => Guard::absent(Space::ChunkL0, row_key),
        };
        let catalog = self.registry.catalog();
        let found = find_in(&view, &self.counters, at, |stored| {
            let (chunk, version) = fold_stored(&view, &catalog, stored)?;
            Ok((chunk, version, stored.version, stored.schema_generation))
        })?;
        let (mut batch, mut last) = (Batch::new(), None);
        let (from, to) = (key::delta(at, 0), key::delta(at, u64::MAX));
        let range = (Bound::Included(&from[..]), Bound::Included(&to[..]));
        view.scan(Family::ChunkDelta, range, |delta, _| {
            last = key::decode_delta(delta).ok().map(|(_, seq)| seq);
            batch.delete(Space::ChunkDelta, delta);
            ControlFlow::<()>::Continue(())
        })?;
        match found {
            Lookup::Here((chunk, version, of_row, generation)) if version > of_row => {
                let row = Draft::plain(Codec::None, generation, |out| chunk.encode(out));
                batch.put(Space::ChunkL0, row_key, row, Stamp::Keep(version));
            }
            // What is older than the row says nothing any more.
            Lookup::Here(_) | Lookup::Deleted => {}
            Lookup::NotHere => return Ok(Settled::Nothing),
        }
        let Some(last) = last else { return Ok(Settled::Nothing) };
        let (rows, bytes, put) = (batch.op_count() as u64, batch.len_bytes(), Written::of(&batch));
        match engine.commit(batch.rearranging(), &[guard], Level::Process) {
            Ok(_) => {}
            Err(EngineError::Conflict { .. }) => return Ok(Settled::Overtaken),
            Err(error) => return Err(error.into()),
        }
        self.tiering.wrote(put);
        self.deltas.forget_up_to(at, last);
        Counters::add(&self.counters.chunks_settled, 1);
        Counters::add(&self.counters.rows_written, rows);
        Counters::add(&self.counters.bytes_written, bytes);
        Ok(Settled::Done)
    }
}
