//! Observation of a place: its last use, the players there or near it, and its pins.

mod last_access;
mod motion;
mod pinned;
mod player_distance;
mod presence;

pub use last_access::{Heat, LastAccess};
pub use motion::{Motion, Path, PlayerAt};
pub use pinned::{PinId, Pinned};
pub use player_distance::PlayerDistance;
pub use presence::{HoldError, HoldId, Presence};

pub use crate::observation::{Observation, Stay};

use cg_format::{ChunkAt, ChunkBox, ClusterTier, Dimension, Tier};

use crate::{CubeAt, Decision, GameTick, NextMove, Step, TierPolicy};

/// All observers of a world and its policy.
///
/// The store reports events ([`touch`](Self::touch), [`check_players`](Self::check_players), [`hold`](Self::hold),
/// [`pin`](Self::pin)). Then it asks what is [`due`](Self::due), cube by cube, as its budget allows. Moments must not
/// go back: take them from a [`GameClock`](crate::GameClock). If that clock is set back, call
/// [`restart`](Self::restart).
///
/// ```
/// use cg_format::{BlockPos, ChunkAt, Dimension, EntityId, Tier};
/// use cg_tiering::{CubeAt, GameTick, Observers, PlayerAt, TierPolicy};
/// let mut seen = Observers::new(TierPolicy::default(), GameTick::new(0));
/// let (overworld, block) = (Dimension::new(0), BlockPos::new(100, 64, 100));
/// let player = PlayerAt { id: EntityId::from_bytes([7; 16]), dimension: overworld, block };
/// let home = ChunkAt::new(overworld, block.chunk());
/// seen.check_players(&[player], GameTick::new(1));
/// seen.touch(home, GameTick::new(1));
/// // The player leaves, and half an hour later the home is as cold as can be.
/// seen.check_players(&[], GameTick::new(2000));
/// let due = seen.due(CubeAt::of(home), Tier::L0, GameTick::new(40_000)).expect("it was left long ago");
/// assert_eq!(due.to, Tier::L2);
/// assert_eq!(due.reason.to_string(), "not loaded for 38000 ticks, cold from 36000 on");
/// ```
#[derive(Debug, Clone)]
pub struct Observers {
    policy: TierPolicy,
    heat: LastAccess,
    motion: Motion,
    distance: PlayerDistance,
    presence: Presence,
    pinned: Pinned,
}

impl Observers {
    /// Creates observers without players. Every chunk counts as accessed when the world was opened.
    pub fn new(policy: TierPolicy, opened_at: GameTick) -> Self {
        Self {
            policy,
            heat: LastAccess::new(opened_at),
            motion: Motion::default(),
            distance: PlayerDistance::default(),
            presence: Presence::default(),
            pinned: Pinned::default(),
        }
    }

    /// Starts again at a moment that may be earlier than recorded ones. Loaded places and pins stay. Players are
    /// unknown until the next check, and every chunk counts as accessed now.
    pub fn restart(&mut self, now: GameTick) {
        self.heat.restart(now);
        self.motion = Motion::default();
        self.distance = PlayerDistance::default();
        self.presence.restart(now);
    }

    /// The policy.
    pub const fn policy(&self) -> &TierPolicy {
        &self.policy
    }

    /// Changes the policy from now on. A new near distance applies from the next check of players.
    pub const fn set_policy(&mut self, policy: TierPolicy) {
        self.policy = policy;
    }

    /// The last access of each cube, for loading and storing it.
    pub const fn heat(&mut self) -> &mut LastAccess {
        &mut self.heat
    }

    /// Records that an existing chunk was requested, or that a chunk was saved. Costs two lookups in hash maps.
    pub fn touch(&mut self, chunk: ChunkAt, now: GameTick) {
        let cube = CubeAt::of(chunk);
        self.heat.touch(cube, now);
        self.presence.access(cube);
    }

    /// Records that chunks of a cube changed their tier.
    pub fn moved(&mut self, cube: CubeAt, now: GameTick) {
        self.heat.moved(cube, now);
    }

    /// Sets the positions of all players of all dimensions.
    ///
    /// Cheap for players that stay among the same cubes. The caller may call it every tick, or seldom.
    pub fn check_players(&mut self, players: &[PlayerAt], now: GameTick) {
        self.motion.update(players, now);
        let horizon = self.policy.lookahead_ticks;
        self.distance.check(players.iter().map(|player| (*player, self.motion.path(player, horizon))));
        let Self { presence, heat, policy, .. } = self;
        let (near, recent_ticks) = (policy.near_distance_blocks, policy.warm_after_ticks);
        // The two closures never run at the same time, but both borrow the heat.
        let heat = std::cell::RefCell::new(heat);
        let accessed = |cube| {
            let known = heat.borrow().get(cube);
            known.is_some_and(|heat| now.since(heat.last_access) < recent_ticks)
        };
        presence.check(players, near, now, accessed, |cube| heat.borrow_mut().refresh(cube, now));
    }

    /// Keeps the chunks of a box loaded: they are never demoted, and become hot after some time.
    ///
    /// # Errors
    /// [`HoldError`] for a box that is too large.
    pub fn hold(
        &mut self,
        dimension: Dimension,
        place: &ChunkBox,
        now: GameTick,
    ) -> Result<HoldId, HoldError> {
        self.presence.hold(dimension, place, now)
    }

    /// Releases a box that was kept loaded. Returns whether the id was valid.
    pub fn release(&mut self, id: HoldId, now: GameTick) -> bool {
        let Self { presence, heat, .. } = self;
        presence.release(id, |cube| heat.refresh(cube, now))
    }

    /// Pins the chunks of a box: they are not demoted.
    pub fn pin(&mut self, dimension: Dimension, place: ChunkBox) -> PinId {
        self.pinned.pin(dimension, place)
    }

    /// Removes a pin. Returns whether it existed.
    pub fn unpin(&mut self, id: PinId) -> bool {
        self.pinned.unpin(id)
    }

    /// All boxes that are kept loaded, each extended to whole cubes.
    pub fn holds(&self) -> impl Iterator<Item = (HoldId, Dimension, ChunkBox)> {
        self.presence.holds()
    }

    /// All pins.
    pub fn pins(&self) -> impl Iterator<Item = (PinId, Dimension, ChunkBox)> {
        self.pinned.pins()
    }

    /// The observation of the chunks of a cube in a tier.
    pub fn observe(&self, cube: CubeAt, tier: Tier) -> Observation {
        let blocks_of = |tier| cube.cluster(tier).blocks();
        let nearest = |tier| self.distance.nearest_blocks(cube.dimension(), &blocks_of(tier));
        Observation {
            tier,
            stay: self.presence.stay(cube),
            pinned: self.pinned.contains(cube),
            last_access: self.heat.last_access(cube),
            nearest_player_blocks: nearest(ClusterTier::L1),
            cluster_player_blocks: nearest(ClusterTier::L2),
        }
    }

    /// The tier where the chunks of a cube in a tier belong. See [`TierPolicy::decide`].
    pub fn decide(&self, cube: CubeAt, tier: Tier, now: GameTick) -> Decision {
        self.policy.decide(&self.observe(cube, tier), now)
    }

    /// Where to move them now, if at all. See [`TierPolicy::due`].
    pub fn due(&self, cube: CubeAt, tier: Tier, now: GameTick) -> Option<Decision> {
        self.policy.due(&self.observe(cube, tier), now)
    }

    /// When they will move. See [`TierPolicy::next_move`].
    pub fn next_move(&self, cube: CubeAt, tier: Tier, now: GameTick) -> Option<NextMove> {
        self.policy.next_move(&self.observe(cube, tier), now)
    }

    /// Whether a step that was planned earlier is still right: no player arrived or left meanwhile.
    pub fn confirms(&self, step: &Step, now: GameTick) -> bool {
        match step.to {
            Tier::L0 => self.decide(step.cube, Tier::L2, now).to == Tier::L0,
            colder => self.decide(step.cube, Tier::L0, now).to >= colder,
        }
    }

    /// Takes at most this many cubes whose stay became long enough for promotion since the last call, each once in a
    /// stay.
    ///
    /// Their chunks in clusters are [`due`](Self::due) for tier L0.
    pub fn take_settled(&mut self, now: GameTick, max_cubes: usize) -> Vec<CubeAt> {
        self.presence.take_settled(now, self.policy.promote_after_ticks, max_cubes)
    }

    /// The next moment at which [`take_settled`](Self::take_settled) may return a cube, if no player arrives.
    pub fn next_settled(&self) -> Option<GameTick> {
        self.presence.next_settled(self.policy.promote_after_ticks)
    }

    /// Returns a settled cube that could not be promoted, so that it is taken again later.
    pub fn again(&mut self, cube: CubeAt) {
        self.presence.again(cube);
    }
}

#[cfg(test)]
mod tests;
