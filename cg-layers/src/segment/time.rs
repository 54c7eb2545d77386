//! The game time and the players, as segments are told of them.
//!
//! **Invariants**.
//! - A segment knows the time before a caller uses it. A chunk that is saved or loaded there counts as accessed at that
//!   time, and not at the time when the segment was closed.
//! - A segment is told of every player that can matter to a chunk of it, in whatever segment the player is. A player
//!   that is farther away than [`Reach`] matters no more than one that is not there: a chunk is as far from both.

use std::collections::BTreeMap;
use std::sync::Arc;

use cg_format::Dimension;
use cg_store::layer::{Mutex, note_tick, rank};
use cg_store::{World, WorldOptions};
use cg_tiering::{GameTick, Motion, Path, PlayerAt};

use super::pos::SegmentPos;

/// The side of the cubes that make up the surroundings of a player, in blocks.
const CUBE_BLOCKS: u64 = 64;
const CHUNK_BLOCKS: u64 = 16;

/// What segments were told last.
#[derive(Debug)]
pub(super) struct GameTime {
    reach: Reach,
    state: Mutex<State, rank::SegmentTime>,
}

#[derive(Debug)]
struct State {
    /// The motion of all players.
    motion: Motion,
    told: Arc<Told>,
}

/// How far a player reaches.
#[derive(Debug, Clone, Copy)]
struct Reach {
    side_chunks: u32,
    /// From any point of a player's path, on the axis with the greatest distance.
    blocks: u64,
    lookahead_ticks: u64,
}

/// A moment, and where players were.
#[derive(Debug)]
pub(super) struct Told {
    now: GameTick,
    reach: Reach,
    players: BTreeMap<Dimension, Vec<(PlayerAt, Path)>>,
}

impl GameTime {
    /// Begins at a moment, without players. The options are those of a segment.
    pub(super) fn new(now: GameTick, side_chunks: u32, options: &WorldOptions) -> Self {
        let reach = Reach::of(side_chunks, options);
        let told = Arc::new(Told { now, reach, players: BTreeMap::new() });
        Self { reach, state: Mutex::new(State { motion: Motion::default(), told }) }
    }

    /// Takes the time and the places of all players, for the segments that are opened from now on.
    pub(super) fn set(&self, now: GameTick, all: &[PlayerAt]) -> Arc<Told> {
        let mut state = self.state.lock();
        state.motion.update(all, now);
        let mut players = BTreeMap::<_, Vec<_>>::new();
        for player in all {
            let path = state.motion.path(player, self.reach.lookahead_ticks);
            players.entry(player.dimension).or_default().push((*player, path));
        }
        state.told = Arc::new(Told { now, reach: self.reach, players });
        Arc::clone(&state.told)
    }

    /// What was taken last.
    pub(super) fn told(&self) -> Arc<Told> {
        Arc::clone(&self.state.lock().told)
    }
}

impl Reach {
    fn of(side_chunks: u32, options: &WorldOptions) -> Self {
        let policy = &options.tiers;
        let near_blocks = policy.near_distance_blocks.saturating_add(CUBE_BLOCKS);
        let prefetched_blocks = options.prefetch.as_ref().map_or(0, |prefetch| {
            let around = prefetch.width_chunks.max(prefetch.height_chunks);
            (u64::from(prefetch.ahead_chunks) + u64::from(around) + 1) * CHUNK_BLOCKS
        });
        let blocks = policy.cold_distance_blocks.max(near_blocks).max(prefetched_blocks);
        Self { side_chunks, blocks, lookahead_ticks: policy.lookahead_ticks }
    }
}

impl Told {
    /// Tells the world of a segment.
    pub(super) fn tell(&self, segment: SegmentPos, world: &World) {
        note_tick(world, self.now, &self.players_for(segment));
    }

    /// The players that can matter to chunks of a segment.
    pub(super) fn players_for(&self, segment: SegmentPos) -> Vec<PlayerAt> {
        let Some(players) = self.players.get(&segment.dimension) else { return Vec::new() };
        let place = segment.blocks(self.reach.side_chunks);
        let reaches = |path: &Path| path.distance_blocks(&place) <= self.reach.blocks;
        players.iter().filter(|(_, path)| reaches(path)).map(|(player, _)| *player).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::{BlockPos, EntityId};
    use cg_tiering::TierPolicy;

    const OVERWORLD: Dimension = Dimension::new(1);

    fn player(n: u8, x: i64, z: i64) -> PlayerAt {
        let block = BlockPos::new(x, 64, z);
        PlayerAt { id: EntityId::from_bytes([n; 16]), dimension: OVERWORLD, block }
    }

    fn told_of(time: &GameTime, x: i64) -> Vec<EntityId> {
        let segment = SegmentPos { dimension: OVERWORLD, x, y: 0, z: 0 };
        time.told().players_for(segment).into_iter().map(|player| player.id).collect()
    }

    #[test]
    fn a_segment_is_told_of_the_players_that_can_matter_to_it() {
        let options = WorldOptions::default();
        let reach = i64::try_from(options.tiers.cold_distance_blocks).unwrap();
        let time = GameTime::new(GameTick::new(0), 16, &options);
        let [within, beyond] = [player(1, 256 + reach - 1, 0), player(2, 256 + reach + 1, 0)];
        let behind = player(3, 0, -reach);
        time.set(GameTick::new(1), &[within, beyond, behind]);
        assert_eq!(told_of(&time, 0), [within.id, behind.id]);
        assert_eq!(told_of(&time, 1), [within.id, beyond.id, behind.id], "the next one is nearer");
        assert_eq!(told_of(&time, -1), [behind.id]);
        let elsewhere = SegmentPos { dimension: Dimension::new(2), x: 0, y: 0, z: 0 };
        assert_eq!(time.told().players_for(elsewhere), []);
        let ends = [i64::MIN, i64::MAX].map(|x| told_of(&time, x));
        assert_eq!(ends, [[], []], "the ends of the world are far");
    }

    #[test]
    fn what_a_player_will_reach_counts() {
        let (time, moving) = (GameTime::new(GameTick::new(0), 16, &WorldOptions::default()), 5);
        let mut seen = Vec::new();
        for tick in 0..=20 {
            let walks = player(1, -3000 + moving * tick, 0);
            time.set(GameTick::new(tick.unsigned_abs()), &[walks]);
            seen.push(told_of(&time, -6).len());
        }
        // It will be 1,000 blocks further on in ten seconds.
        assert_eq!((seen.first(), seen.last()), (Some(&0), Some(&1)), "{seen:?}");
    }

    #[test]
    fn all_that_matters_is_within_reach() {
        let tiers =
            TierPolicy { cold_distance_blocks: 200, near_distance_blocks: 180, ..TierPolicy::default() };
        let narrow = WorldOptions { tiers, ..WorldOptions::default() };
        assert_eq!(Reach::of(16, &narrow).blocks, 244, "the surroundings consist of whole cubes");
        let prefetch = Some(cg_store::PrefetchOptions { width_chunks: 32, ..Default::default() });
        assert_eq!(Reach::of(16, &WorldOptions { prefetch, ..narrow }).blocks, 36 * 16);
    }
}
