//! Promotion: the chunks of a cube that are in clusters get rows of their own.

use cg_format::cluster::StoredCluster;
use cg_format::frame::{Codec, Draft, Stamp};
use cg_format::{ChunkAt, ClusterTier, Limits, Space, key};
use cg_tiering::CubeAt;

use super::cube::{HotRows, bit, group_of, row_of};
use super::{MoveWrites, Outcome};
use crate::engine::{Engine, Guard, Readable as _};
use crate::rt::stats::Counters;
use crate::storage::error::{Damage, Error};

/// Puts every live chunk of a cube into the hottest tier. The copies in its clusters are shadowed from then on.
///
/// Costs one scan, up to two cluster reads and the decompression of one group of each.
pub(crate) fn promote(engine: &dyn Engine, counters: &Counters, cube: CubeAt) -> Result<Outcome, Error> {
    let view = engine.snapshot()?;
    let mut writes = MoveWrites::default();
    let mut filled = HotRows::read(&view, cube, &mut writes)?.places;
    // Chunks that are already hot are neither moved nor counted.
    writes.moved.bytes_read = 0;
    for tier in [ClusterTier::L1, ClusterTier::L2] {
        let (space, row_key) = row_of(cube.cluster(tier));
        let Some(row) = view.get(space, &row_key)? else { continue };
        let damage = |problem| Damage::of_row(space, &row_key, cube.to_string(), problem);
        let cluster = StoredCluster::open(tier, &row_key, &row).map_err(damage)?;
        let group = group_of(cube, tier);
        let live: Vec<_> = cluster
            .slots()
            .filter(|(slot, _)| slot.group() == group && filled & bit(slot.in_group()) == 0)
            .collect();
        if live.is_empty() {
            continue;
        }
        let bytes = cluster.group(group, &mut Limits::default()).map_err(damage)?;
        let bytes = bytes.expect("the directory has slots of the group");
        Counters::add(&counters.bytes_decompressed, bytes.decompressed_bytes() as u64);
        writes.guards.push(Guard::same(space, row_key, &row));
        writes.moved.bytes_read += row.len() as u64;
        for (slot, info) in live {
            let pos = slot.chunk(cube.cluster(tier).pos).expect("a cube lies inside the world");
            let at = ChunkAt::new(cube.dimension(), pos);
            let value = bytes.chunk(slot).expect("the group holds what the directory says");
            let draft = Draft::plain(Codec::None, info.schema_generation, |out| out.extend_from_slice(value));
            writes.guards.push(Guard::absent(Space::ChunkL0, key::chunk(at)));
            writes.batch.put(Space::ChunkL0, key::chunk(at), draft, Stamp::Keep(info.version));
            writes.moved.chunks += 1;
            filled |= bit(slot.in_group());
        }
    }
    writes.commit(engine, counters)
}
