//! The rows in which the changes of a commit are stored.
//!
//! | rows of one commit | how many |
//! |---|---|
//! | chunk, tombstone or delta | one per changed chunk |
//! | deletion of a delta | one per delta of a chunk that is saved or deleted as a whole |
//! | opacity patch | one per chunk whose outline changed |
//! | change mark | one per touched 4³ and per touched 16³ cube |
//! | entity | one per changed entity |
//! | property | one per changed property |
//! | object | one per changed object |
//! | record | one per changed record, another per record that moved to another leaf, and its place |
//! | snapshot | one for each mebibyte of a saved one, and one more; one per row of a deleted one |
//! | commit sequence | one, by the engine |

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::frame::{Codec, Draft};
use cg_format::{ChunkAt, ClusterTier, EntityId, Lookup, Space, key};
use cg_registry::{Catalog, Schema};

use super::changes::{Changeable, Changes, ChunkChange};
use super::check::is_alike;
use super::named_cells::NamedCells;
use crate::each_kind;
use crate::engine::{Batch, Stamp};
use crate::kinds::{kind, opacity};
use crate::read::chunk::hot_row;
use crate::read::delta::{DeltaIndex, MAX_DELTAS, delta_row};
use crate::rt::stats::Counters;
use crate::storage::change_log::Logged;
use crate::storage::error::Error;
use crate::storage::staged;

/// The rows of a commit, except what needs its number.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    batch: Batch,
    deltas: Vec<(ChunkAt, Draft)>,
    /// The chunks that are saved or deleted as a whole.
    whole: Vec<ChunkAt>,
    /// The schema generation of the outlines; `None` if the opacity map is not kept.
    outlines: Option<u32>,
    /// What the log of changes gets; `None` if the world keeps none.
    logged: Option<Vec<Logged>>,
}

/// Encodes the rows of a commit.
pub(crate) struct RowWriter<'a> {
    catalog: &'a Catalog,
    /// The names by which outlines are drawn; `None` if the opacity map is not kept.
    outlines: Option<Schema>,
    /// Set if a chunk may be stored as a delta.
    deltas: Option<&'a DeltaIndex>,
    /// What compresses the rows of long chunks.
    hot_codec: Codec,
    /// The last chunk that was stored as a whole.
    last: Option<LastChunk>,
    rows: Rows,
}

/// A chunk that was encoded, so that the next one may share its row.
struct LastChunk {
    chunk: Arc<Chunk>,
    /// Set when a second chunk has shared it.
    row: Option<Draft>,
}

impl Changes {
    /// Encodes the rows of the commit. Costs the encoding of every chunk and, if the opacity map is kept, of its
    /// outline.
    ///
    /// `map` are the names by which the opacity map is drawn: the current ones of the world, which may be newer than
    /// those of the changes.
    ///
    /// If `deltas` has room for a chunk, the chunk is compared with the stored one first, to write a delta if that is
    /// smaller. Where the host named the cells that it changed, only these are compared.
    ///
    /// With `is_logged` the commit gets rows in the log of changes.
    pub(crate) fn encode(
        &self,
        map: Option<&Catalog>,
        deltas: Option<&DeltaIndex>,
        hot_codec: Codec,
        is_logged: bool,
    ) -> Rows {
        let rows = Rows { outlines: map.map(Catalog::current_generation), ..Rows::default() };
        let outlines = map.map(Catalog::current_schema);
        let mut out = RowWriter { catalog: &self.catalog, outlines, deltas, hot_codec, last: None, rows };
        each_kind!(self, |changes: K| {
            for (key, change) in changes {
                K::put_rows(&mut out, key, change);
            }
        });
        put_change_marks(out.batch(), self.chunks.iter().map(|(at, _)| *at));
        if let Some(change) = &self.snapshot {
            change.put_rows(out.batch());
        }
        // A log that began after the changes were prepared has no rows to replace.
        out.rows.logged = is_logged.then(|| self.logged.clone().unwrap_or_else(|| self.unlogged()));
        out.rows
    }
}

impl RowWriter<'_> {
    pub(super) const fn batch(&mut self) -> &mut Batch {
        &mut self.rows.batch
    }

    /// Puts a delta if the chunk may have another one and it is worth it, else the whole chunk or its tombstone; and
    /// the chunk's outline if that changes.
    pub(super) fn put_chunk(&mut self, at: ChunkAt, change: &ChunkChange) {
        let has_room = self.deltas.is_some_and(|deltas| deltas.has_room(at));
        if let Some(row) = has_room.then(|| self.delta(change)).flatten() {
            self.rows.deltas.push((at, row));
        } else {
            let generation = self.catalog.current_generation();
            let row = match &change.new {
                Some(new) => self.whole_row(new),
                None => Draft::tombstone(generation),
            };
            self.batch().put(Space::ChunkL0, key::chunk(at), row, Stamp::Commit);
            self.rows.whole.push(at);
        }
        if let Some(patch) = self.patch(change) {
            self.batch().put(Space::OpacityPatch, key::opacity_patch(at), patch, Stamp::Commit);
        }
    }

    /// The row of a chunk. Equal neighbours in a commit share one encoding.
    fn whole_row(&mut self, chunk: &Arc<Chunk>) -> Draft {
        let generation = self.catalog.current_generation();
        if let Some(last) = &mut self.last
            && is_alike(&last.chunk, chunk)
        {
            return last.row.get_or_insert_with(|| hot_row(chunk, generation, self.hot_codec)).clone();
        }
        self.last = Some(LastChunk { chunk: Arc::clone(chunk), row: None });
        hot_row(chunk, generation, self.hot_codec)
    }

    pub(super) fn put_entity(&mut self, id: EntityId, entity: Option<&Entity>) {
        let generation = self.catalog.current_generation();
        match entity {
            Some(entity) => {
                let row = entity_row(entity, generation);
                self.batch().put(Space::Entity, key::entity(id), row, Stamp::Commit);
            }
            None => self.batch().delete(Space::Entity, key::entity(id)),
        }
    }

    /// The delta row, if a delta is worth it.
    fn delta(&self, change: &ChunkChange) -> Option<Draft> {
        match (&change.old, &change.new) {
            (Lookup::Found(old), Some(new)) if old.is_current => {
                let named = change.named.as_deref().map(NamedCells::cells);
                delta_row(&old.chunk, new, named, &self.catalog.current_schema())
            }
            _ => None,
        }
    }

    /// The opacity patch; `None` if the outline stays as it was, or the map is not kept.
    fn patch(&self, change: &ChunkChange) -> Option<Draft> {
        let old = match &change.old {
            Lookup::Found(old) => Some(&*old.chunk),
            Lookup::Tombstone | Lookup::NotFound => None,
        };
        opacity::patch(old, change.new.as_deref(), self.outlines.as_ref()?)
    }
}

/// Adds one mark per touched cube of each cluster tier. So "changed since" visits only what changed.
pub(crate) fn put_change_marks(batch: &mut Batch, chunks: impl Iterator<Item = ChunkAt> + Clone) {
    for tier in [ClusterTier::L1, ClusterTier::L2] {
        // The chunks of a column are neighbours, so most repeats are dropped before the sort.
        let mut cubes: Vec<_> = chunks.clone().map(|at| (at.dimension, at.pos.cluster(tier))).collect();
        cubes.dedup();
        cubes.sort_unstable();
        cubes.dedup();
        for (dimension, cluster) in cubes {
            let mark = Draft::plain(Codec::None, 0, |_| {});
            batch.put(Space::ChangeMark, key::change_mark(dimension, cluster), mark, Stamp::Commit);
        }
    }
}

impl Rows {
    /// The schema generation by which the outlines in it are drawn; `None` if it has none.
    pub(crate) const fn outlines(&self) -> Option<u32> {
        self.outlines
    }

    /// Whether it has rows of the log of changes, if the commit changes something that is logged.
    pub(crate) const fn is_logged(&self) -> bool {
        self.logged.is_some()
    }

    /// The approximate size of the batch, without the deletion of deltas.
    pub(crate) fn len_bytes(&self) -> u64 {
        let delta = |(_, row): &(ChunkAt, Draft)| (key::DELTA_LEN_BYTES + row.len_bytes()) as u64;
        let log_bytes = self.logged.iter().flatten().map(Logged::max_len_bytes).sum::<u64>();
        self.batch.len_bytes() + self.deltas.iter().map(delta).sum::<u64>() + log_bytes
    }

    /// The maximum size of the batch, with the deletion of deltas.
    pub(crate) fn max_len_bytes(&self) -> u64 {
        self.len_bytes() + (self.whole.len() * MAX_DELTAS * key::DELTA_LEN_BYTES) as u64
    }

    /// Refuses a batch that cannot be staged in parts of at most `max_batch_bytes`.
    pub(super) fn check_parts(&self, max_batch_bytes: u64) -> Result<(), Error> {
        Ok(staged::check(&self.batch, max_batch_bytes)?)
    }

    /// Returns the batch of the commit with this number, and the chunks whose deltas it deletes. Its own deltas enter
    /// the index before they are written, because a reader that finds none there reads the row alone.
    pub(crate) fn numbered(self, seq: u64, index: &DeltaIndex, counters: &Counters) -> (Batch, Vec<ChunkAt>) {
        let Self { mut batch, deltas, whole, outlines: _, logged } = self;
        for logged in logged.iter().flatten() {
            logged.put(&mut batch, seq);
        }
        for at in &whole {
            index.delete_rows(&mut batch, *at);
        }
        Counters::add(&counters.deltas_written, deltas.len() as u64);
        for (at, row) in deltas {
            index.add(at, seq, row.payload());
            batch.put(Space::ChunkDelta, key::delta(at, seq), row, Stamp::Commit);
        }
        (batch, whole)
    }
}

pub(super) fn entity_row(entity: &Entity, generation: u32) -> Draft {
    Draft::plain(Codec::None, generation, |out| entity.encode(out))
}
