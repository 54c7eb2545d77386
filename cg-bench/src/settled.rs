//! Worlds whose chunks all lie in one tier.

use cg_format::Tier;
use cg_format::key::Family;
use cg_store::engine::ALL_KEYS;
use cg_store::tiers::MoveCounts;
use cg_store::{Error, World, WorldOptions};
use cg_tiering::{GameTick, TierPolicy};

/// An hour of game time, and ten minutes more for moves that wait for each other.
const LONG_TICKS: u64 = 70 * 60 * GameTick::PER_SECOND;

/// The policy under which unused chunks end in a tier and go no further: those of [`Tier::L1`] are demoted
/// neither by time nor by distance.
pub fn policy(tier: Tier) -> TierPolicy {
    match tier {
        Tier::L0 => TierPolicy {
            warm_after_ticks: u64::MAX,
            cold_after_ticks: u64::MAX,
            hysteresis_ticks: u64::MAX,
            ..TierPolicy::default()
        },
        Tier::L1 => {
            TierPolicy { cold_after_ticks: u64::MAX, hysteresis_ticks: u64::MAX, ..TierPolicy::default() }
        }
        Tier::L2 => TierPolicy::default(),
    }
}

/// Options for a world in which chunks end in a tier.
#[must_use]
pub fn options(tier: Tier, options: WorldOptions) -> WorldOptions {
    WorldOptions { tiers: policy(tier), ..options }
}

/// Lets game time pass without players until every chunk is in the tier that the world's policy wants, and compacts.
///
/// Hot rows are compacted too, though they do not move. Otherwise RocksDB begins to compact them at each opening, beside
/// what is measured then.
///
/// # Errors
/// As [`Tiers::demote_all`](cg_store::tiers::Tiers::demote_all).
pub fn settle(world: &World) -> Result<MoveCounts, Error> {
    let moved = world.tiers().demote_all(LONG_TICKS, |_| {})?;
    world.engine().compact(Family::ChunkL0, ALL_KEYS)?;
    Ok(moved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fill::fill;
    use crate::world::{Generator, Scene};
    use cg_format::{ChunkBox, ChunkPos};

    #[test]
    fn every_chunk_ends_in_the_tier() {
        for tier in Tier::ALL {
            let world =
                World::builder().options(&options(tier, WorldOptions::default())).in_memory().unwrap();
            let generator = Generator::in_world(Scene::Flat, 7, &world).unwrap();
            let area = ChunkBox::new(ChunkPos::constant(-1, -1, -1), ChunkPos::constant(4, 4, 4));
            fill(&world, &generator, area, |_| {}).unwrap();
            settle(&world).unwrap();
            let census = world.tiers().census().unwrap();
            let chunks = Tier::ALL.map(|tier| census.tier(tier).chunks);
            let mut expected = [0; 3];
            expected[tier as usize] = 216;
            assert_eq!(chunks, expected, "{tier:?}");
        }
    }
}
