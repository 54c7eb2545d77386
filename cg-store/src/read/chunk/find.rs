//! Finds a chunk: as a hot row, otherwise in its warm cluster, otherwise in its cold one.
//!
//! **Invariant**: the live copy of a chunk is the one in the lowest-numbered tier that has it. A lookup ends at the
//! first tier that has the key, damaged or not, so damage is never skipped in favour of an older copy.

use cg_format::cluster::{GroupBytes, Slot, SlotInfo, StoredCluster};
use cg_format::frame::{FrameKind, FrameView};
use cg_format::{ChunkAt, ClusterTier, Limits, Lookup, Problem, Section, Space, Tier, key};

use super::StoredChunk;
use crate::engine::{CommitSeq, Engine, Readable};
use crate::rt::stats::Counters;
use crate::storage::error::{Damage, Error};

/// Finds a chunk's live copy and calls `read` with it.
///
/// Costs one key read if the chunk is hot, otherwise up to three. It costs twice that if the chunk was not found hot or
/// warm while there were commits. Of a cluster, only the chunk's 4³ group is decompressed.
pub(crate) fn find<T>(
    engine: &dyn Engine,
    counters: &Counters,
    at: ChunkAt,
    read: impl FnOnce(StoredChunk<'_>) -> Result<T, Error>,
) -> Result<Lookup<T>, Error> {
    let before = engine.batch_count();
    match look_up(engine, counters, at, || engine.batch_count() != before, read)? {
        Found::Certain(found) => Ok(found),
        Found::Torn(read) => find_in(&engine.snapshot()?, counters, at, read),
    }
}

/// As [`find`], in a view that does not change.
pub(crate) fn find_in<T>(
    view: &dyn Readable,
    counters: &Counters,
    at: ChunkAt,
    read: impl FnOnce(StoredChunk<'_>) -> Result<T, Error>,
) -> Result<Lookup<T>, Error> {
    match look_up(view, counters, at, || false, read)? {
        Found::Certain(found) => Ok(found),
        Found::Torn(_) => unreachable!("nothing moves in a snapshot"),
    }
}

/// The result of a lookup, or the unused `read` if the lookup may have seen two states.
enum Found<T, R> {
    Certain(Lookup<T>),
    Torn(R),
}

/// Searches the tiers one after the other.
///
/// Between two reads the chunk may be saved into the hottest tier, and its slot then be dropped from its cluster. Then
/// no read finds the live copy. That takes commits. So a result from the cold tier, or none, is valid only if there
/// were no commits since the lookup began.
fn look_up<T, R: FnOnce(StoredChunk<'_>) -> Result<T, Error>>(
    view: &dyn Readable,
    counters: &Counters,
    at: ChunkAt,
    has_moved: impl Fn() -> bool,
    read: R,
) -> Result<Found<T, R>, Error> {
    let key = key::chunk(at);
    Counters::add(&counters.engine_reads, 1);
    if let Some(row) = view.get(Space::ChunkL0, &key)? {
        Counters::add(&counters.bytes_read, row.len() as u64);
        return Ok(Found::Certain(match hot(at, &key, &row)? {
            Lookup::Found(chunk) => read(chunk).map(Lookup::Found)?,
            Lookup::Tombstone | Lookup::NotFound => Lookup::Tombstone,
        }));
    }
    for tier in [ClusterTier::L1, ClusterTier::L2] {
        let pos = at.pos.cluster(tier);
        let (space, key) = (Space::of_cluster(tier), key::cluster(at.dimension, pos));
        Counters::add(&counters.engine_reads, 1);
        let Some(row) = view.get(space, &key)? else { continue };
        Counters::add(&counters.bytes_read, row.len() as u64);
        Counters::add(&counters.clusters_read, 1);
        if tier == ClusterTier::L2 && has_moved() {
            return Ok(Found::Torn(read));
        }
        let damage = |problem| Damage::of_chunk(space, &key, at, problem);
        let cluster = StoredCluster::open(tier, &key, &row).map_err(damage)?;
        let slot = Slot::of(at.pos, tier);
        let Some(info) = cluster.chunk_info(slot) else { continue };
        let group = cluster.group(slot.group(), &mut Limits::default()).map_err(damage)?;
        let group = group.expect("the directory has the slot, so it has its group");
        Counters::add(&counters.bytes_decompressed, group.decompressed_bytes() as u64);
        return Ok(Found::Certain(read(in_group(at, tier, info, &group)).map(Lookup::Found)?));
    }
    Ok(if has_moved() { Found::Torn(read) } else { Found::Certain(Lookup::NotFound) })
}

/// A chunk of a group, which the directory of its cluster contains.
pub(super) fn in_group<'g>(
    at: ChunkAt,
    tier: ClusterTier,
    info: SlotInfo,
    group: &'g GroupBytes<'_>,
) -> StoredChunk<'g> {
    let SlotInfo { version, schema_generation } = info;
    let value = group.chunk(Slot::of(at.pos, tier)).expect("the group holds what the directory says");
    StoredChunk { at, version: CommitSeq::new(version), schema_generation, tier: tier.tier(), value }
}

/// Opens a row of `chunkl0`: a chunk or a tombstone.
pub(crate) fn hot<'r>(at: ChunkAt, key: &[u8], row: &'r [u8]) -> Result<Lookup<StoredChunk<'r>>, Error> {
    let damage = |problem| Damage::of_chunk(Space::ChunkL0, key, at, problem);
    let frame = FrameView::open(Space::ChunkL0, key, row).map_err(damage)?;
    let header = frame.header();
    match header.kind {
        FrameKind::Tombstone => Ok(Lookup::Tombstone),
        FrameKind::Plain => Ok(Lookup::Found(StoredChunk {
            at,
            version: CommitSeq::new(header.version),
            schema_generation: header.schema_generation,
            tier: Tier::L0,
            value: frame.payload(),
        })),
        FrameKind::Cluster | FrameKind::Deltas => {
            let found = header.kind.byte().into();
            let problem = Problem::OutOfRange { field: "kind", found, allowed: "1 (plain) or 3 (tombstone)" };
            Err(damage(cg_format::DecodeError::new(Section::Frame, 1, problem)))
        }
    }
}
