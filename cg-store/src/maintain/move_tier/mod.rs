//! Moves of chunks between tiers. Content, versions and schema generations are preserved: a move is not a change.
//!
//! The unit is the 4³ cube: one warm cluster, or two groups of a cold one.
//!
//! | move | one batch of |
//! |---|---|
//! | [`promote`] | puts into L0 |
//! | [`demote_warm`] | the warm cluster, and deletions of the hot rows that are now in it |
//! | [`ColdMerge`] | the cold cluster, and deletions of the warm clusters and hot rows that are now in it |
//! | [`drop_shadows`] | a cluster without the slots that a hotter tier hides |
//! | [`purge_tombstones`] | deletions of the tombstones of chunks deleted before the horizon and stored in no cluster |
//!
//! **Invariants**. The live copy of a chunk is in the lowest-numbered tier that has it, before and after every move;
//! copies below are older or equal. Each row that a move read or replaces is guarded: a save in between makes the move
//! fail, never the save. Moves of several cubes may be [one batch](commit_together). One move runs at a time, so no other move changes a row of a cluster meanwhile. Damage is
//! never moved and never treated as absence: the content of a damaged row stays there.

mod cold;
mod cube;
mod shadow;
#[cfg(test)]
mod tests;
mod together;

use std::borrow::Cow;

use cg_format::cluster::{AssembleError, ClusterBuilder, Slot, SlotInfo, StoredCluster};
use cg_format::frame::{Codec, Stamp};
use cg_format::{ChunkAt, ClusterTier, DecodeError, Limits, Space, key};
use cg_tiering::{CubeAt, Heat};
use cube::{HotRows, bit, guard_of, number_of};

use crate::engine::{Batch, Engine, ErrorKind, Guard, Readable};
use crate::maintain::state::{RowAt, commit_or_conflict};
use crate::maintain::tiering::put_heat;
use crate::read::chunk::hot_row_of;
use crate::rt::stats::Counters;
use crate::storage::error::{Damage, Error};
pub(crate) use cold::{ColdEnd, ColdMerge, CubeMade};
pub(crate) use cube::{hot_keys, row_of};
pub(crate) use shadow::{drop_shadows, purge_tombstones, tombstones_to_purge};
pub(crate) use together::commit_together;

/// The amount of work that a move did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Moved {
    /// The chunks that are now in another tier. For a rewritten cluster, the slots that it lost; for a purge, the
    /// tombstones.
    pub(crate) chunks: u64,
    /// Bytes of the rows that were read.
    pub(crate) bytes_read: u64,
    /// Bytes of the rows that were written.
    pub(crate) bytes_written: u64,
}

impl std::ops::AddAssign for Moved {
    fn add_assign(&mut self, other: Self) {
        self.chunks += other.chunks;
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
    }
}

/// The result of a move.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// There was nothing to move.
    Nothing,
    /// The move was committed.
    Done(Moved),
    /// A commit changed what was to be moved; nothing was written.
    Conflict,
    /// A row is damaged, so its content stays where it is; nothing was written.
    Damaged(Error),
    /// The cluster would be too large; nothing was written.
    TooLarge,
}

/// The reads, guards and writes of a move.
#[derive(Debug, Default, Clone)]
pub(crate) struct MoveWrites {
    batch: Batch,
    guards: Vec<Guard>,
    moved: Moved,
}

impl MoveWrites {
    fn append(&mut self, other: Self) {
        self.batch.append(other.batch);
        self.guards.extend(other.guards);
        self.moved += other.moved;
    }

    fn has_guard(&self, (space, key): &RowAt) -> bool {
        self.guards.iter().any(|guard| guard.space == *space && guard.key == *key)
    }

    fn commit(self, engine: &dyn Engine, counters: &Counters) -> Result<Outcome, Error> {
        Ok(self.try_commit(engine, counters)?.unwrap_or(Outcome::Conflict))
    }

    /// Commits the move. An inner `Err` is a row that a commit has changed; nothing was written.
    fn try_commit(
        mut self,
        engine: &dyn Engine,
        counters: &Counters,
    ) -> Result<Result<Outcome, RowAt>, Error> {
        if self.batch.is_empty() {
            return Ok(Ok(Outcome::Nothing));
        }
        let bytes = self.batch.len_bytes();
        self.moved.bytes_written = bytes;
        let rows = self.batch.op_count() as u64;
        if let Some(row) = commit_or_conflict(engine, self.batch, &self.guards)? {
            return Ok(Err(row));
        }
        Counters::add(&counters.moves, 1);
        Counters::add(&counters.rows_written, rows);
        Counters::add(&counters.bytes_written, bytes);
        Ok(Ok(Outcome::Done(self.moved)))
    }
}

/// A move that was read and is not committed, or why there is none.
pub(crate) type Prepared = Result<MoveWrites, Outcome>;

/// Commits a move, if there is one.
fn commit_prepared(engine: &dyn Engine, counters: &Counters, prepared: Prepared) -> Result<Outcome, Error> {
    prepared.map_or_else(Ok, |writes| writes.commit(engine, counters))
}

/// Separates damage, which blocks one move, from errors that block all of them.
pub(crate) fn split_damage<T>(done: Result<T, Error>) -> Result<Result<T, Error>, Error> {
    match done {
        Err(error) if error.kind() == ErrorKind::Damaged => Ok(Err(error)),
        done => done.map(Ok),
    }
}

/// Converts an error about damage into the result of a move.
pub(crate) fn past_damage(end: Result<Outcome, Error>) -> Result<Outcome, Error> {
    Ok(split_damage(end)?.unwrap_or_else(Outcome::Damaged))
}

/// Puts every live chunk of a cube into the hottest tier. The copies in its clusters are shadowed from then on.
///
/// Costs one scan, up to two cluster reads and the decompression of the cube's groups. Damage in one of them is an
/// error, and nothing is moved.
pub(crate) fn promote(engine: &dyn Engine, counters: &Counters, cube: CubeAt) -> Result<Outcome, Error> {
    let prepared = promotion(&engine.snapshot()?, counters, cube)?;
    commit_prepared(engine, counters, prepared)
}

/// Reads what [`promote`] commits.
pub(crate) fn promotion(view: &dyn Readable, counters: &Counters, cube: CubeAt) -> Result<Prepared, Error> {
    let mut writes = MoveWrites::default();
    let mut filled = HotRows::read(view, cube, &mut writes)?.places;
    // Chunks that are already hot are neither moved nor counted.
    writes.moved.bytes_read = 0;
    for tier in [ClusterTier::L1, ClusterTier::L2] {
        let (space, row_key) = row_of(cube.cluster(tier));
        let Some(row) = view.get(space, &row_key)? else { continue };
        let damage = |problem| Damage::of_row(space, &row_key, cube.to_string(), problem);
        let cluster = StoredCluster::open(tier, &row_key, &row).map_err(damage)?;
        let number = number_of(cube, tier);
        let is_live = |slot: Slot| slot.cube() == number && filled & bit(slot.in_cube()) == 0;
        let live: Vec<_> = cluster.slots().filter(|(slot, _)| is_live(*slot)).collect();
        if live.is_empty() {
            continue;
        }
        writes.guards.push(Guard::same(space, row_key, &row));
        writes.moved.bytes_read += row.len() as u64;
        let taken = each_value(&cluster, &live, counters, |slot, info, value| {
            let pos = slot.chunk(cube.cluster(tier).pos).expect("a cube lies inside the world");
            let at = ChunkAt::new(cube.dimension(), pos);
            let draft = hot_row_of(&value, info.schema_generation, Codec::Lz4);
            writes.guards.push(Guard::absent(Space::ChunkL0, key::chunk(at)));
            writes.batch.put(Space::ChunkL0, key::chunk(at), draft, Stamp::Keep(info.version));
            writes.moved.chunks += 1;
            filled |= bit(slot.in_cube());
        });
        taken.map_err(damage)?;
    }
    Ok(Ok(writes))
}

/// Calls `take` with the bytes of some chunks of a cluster, which are in its order. Decompresses each of their groups once.
fn each_value(
    cluster: &StoredCluster<'_>,
    chunks: &[(Slot, SlotInfo)],
    counters: &Counters,
    mut take: impl FnMut(Slot, SlotInfo, Cow<'_, [u8]>),
) -> Result<(), DecodeError> {
    let mut limits = Limits::default();
    for members in chunks.chunk_by(|(a, _), (b, _)| cluster.group_of(*a) == cluster.group_of(*b)) {
        let group = cluster.group(cluster.group_of(members[0].0), &mut limits)?;
        let group = group.expect("the directory has slots of the group");
        Counters::add(&counters.bytes_decompressed, group.decompressed_bytes() as u64);
        for (slot, info) in members {
            let value = group.chunk(*slot).expect("the group holds what the directory says");
            take(*slot, *info, value);
        }
    }
    Ok(())
}

/// Merges the hot rows of a cube into its warm cluster and deletes them. Puts the heat row by which ticks find the
/// cluster when it is due to be demoted.
///
/// Tombstones stay: they hide what the cold cluster may hold, and report the deletion to readers. Costs one scan of up
/// to 64 rows, one cluster read, and the compression of the groups that change.
pub(crate) fn demote_warm(
    engine: &dyn Engine,
    counters: &Counters,
    cube: CubeAt,
    heat: Heat,
) -> Result<Outcome, Error> {
    let prepared = warm_demotion(&engine.snapshot()?, cube, heat)?;
    commit_prepared(engine, counters, prepared)
}

/// Reads what [`demote_warm`] commits.
pub(crate) fn warm_demotion(view: &dyn Readable, cube: CubeAt, heat: Heat) -> Result<Prepared, Error> {
    let mut writes = MoveWrites::default();
    let hot = HotRows::read(view, cube, &mut writes)?;
    if hot.rows.iter().all(|row| row.value.is_none()) {
        return Ok(Err(Outcome::Nothing));
    }
    let tier = ClusterTier::L1;
    let (space, row_key) = row_of(cube.cluster(tier));
    let damage = |problem| Damage::of_row(space, &row_key, cube.to_string(), problem);
    let old = view.get(space, &row_key)?;
    let base = old.as_deref().map(|row| StoredCluster::open(tier, &row_key, row));
    let base = base.transpose().map_err(damage)?;
    writes.guards.push(guard_of(cube.cluster(tier), old.as_deref()));
    writes.moved.bytes_read += old.as_ref().map_or(0, |row| row.len() as u64);
    let mut builder = base.as_ref().map_or(ClusterBuilder::new(tier), ClusterBuilder::over);
    hot.move_into(tier, &mut builder, &mut writes);
    match builder.finish(&mut Limits::default()) {
        Ok(cluster) => {
            let cluster = cluster.expect("at least one chunk was put");
            writes.batch.put(space, row_key, cluster, Stamp::Commit);
            put_heat(&mut writes.batch, cube, heat);
            Ok(Ok(writes))
        }
        Err(AssembleError::Damaged(problem)) => Err(damage(problem)),
        Err(AssembleError::TooLarge { .. }) => Ok(Err(Outcome::TooLarge)),
        Err(error) => unreachable!("a stored chunk fits its own slot: {error}"),
    }
}
