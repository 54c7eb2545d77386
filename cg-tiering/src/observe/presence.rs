//! Presence: which cubes are kept loaded or are around a player, and since when.

use std::collections::{BTreeMap, BTreeSet};

use cg_format::{BlockPos, ChunkAt, ChunkBox, ClusterTier, Dimension, EntityId};

use super::motion::PlayerAt;
use crate::hash::CubeMap;
use crate::observation::Stay;
use crate::{CubeAt, GameTick};

/// Identifies a box that the host keeps loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldId(u64);

impl HoldId {
    /// A number that is unique among all such boxes of this world, for traces.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// A place is too large to be kept loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a box over {cubes} cubes of 4x4x4 chunks cannot be held as loaded, {max_cubes} can; pin it instead")]
pub struct HoldError {
    /// The number of cubes of the box; saturates.
    pub cubes: u64,
    /// The maximum number of cubes.
    pub max_cubes: u64,
}

/// The cubes that are kept loaded or are around players.
///
/// An update costs only what changed. A player that stays among the same cubes costs six shifts; one that crosses a
/// border costs two faces of its surroundings. Memory depends on the surroundings, not on the world.
///
/// ```
/// use cg_format::{BlockPos, ChunkAt, Dimension, EntityId};
/// use cg_tiering::{CubeAt, GameTick, PlayerAt, Presence};
/// let mut presence = Presence::default();
/// let block = BlockPos::new(8, 70, -3);
/// let player = PlayerAt { id: EntityId::from_bytes([1; 16]), dimension: Dimension::new(0), block };
/// presence.check(&[player], 128, GameTick::new(5), |_| false, |_| ());
/// assert_eq!(presence.len(), 5 * 5 * 5);
/// let here = CubeAt::of(ChunkAt::new(player.dimension, block.chunk()));
/// presence.access(here);
/// // Half a minute later the player is still there: what was asked for has earned a hot place.
/// assert_eq!(presence.take_settled(GameTick::new(604), 600, 1000), []);
/// assert_eq!(presence.take_settled(GameTick::new(605), 600, 1000), [here]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Presence {
    cubes: CubeMap<Here>,
    around: BTreeMap<EntityId, Around>,
    held: BTreeMap<HoldId, Window>,
    /// Cubes that were requested and not taken yet, by the beginning of their stay.
    settling: BTreeSet<(GameTick, CubeAt)>,
    next_hold: u64,
    checks: u64,
}

#[derive(Debug, Clone, Copy)]
struct Here {
    players: u32,
    holds: u32,
    accessed: bool,
    since: GameTick,
}

#[derive(Debug, Clone, Copy)]
struct Around {
    window: Window,
    /// The check in which the player was last listed.
    check: u64,
}

/// A box of cubes, with inclusive corners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    dimension: Dimension,
    min: [i64; 3],
    max: [i64; 3],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Player,
    Host,
}

impl Presence {
    /// The largest box that can be kept loaded: two million chunks.
    pub const MAX_HELD_CUBES: u64 = 1 << 15;

    /// Sets the players' positions at a check. Players that are not listed have left.
    ///
    /// Calls `accessed` for each cube that is present now and was not before: whether its chunks were requested
    /// recently. Calls `left` for each cube that is no longer present.
    pub fn check(
        &mut self,
        players: &[PlayerAt],
        near_distance_blocks: u64,
        now: GameTick,
        mut accessed: impl FnMut(CubeAt) -> bool,
        mut left: impl FnMut(CubeAt),
    ) {
        self.checks += 1;
        for player in players {
            let window = Window::around(player.dimension, player.block, near_distance_blocks);
            let before = self.around.insert(player.id, Around { window, check: self.checks });
            let before = before.map(|around| around.window);
            if before != Some(window) {
                self.enter(Who::Player, before, window, now, &mut accessed);
                self.leave(Who::Player, before, Some(window), &mut left);
            }
        }
        let mut gone = Vec::new();
        self.around.retain(|_, around| {
            let listed = around.check == self.checks;
            if !listed {
                gone.push(around.window);
            }
            listed
        });
        for window in gone {
            self.leave(Who::Player, Some(window), None, &mut left);
        }
    }

    /// Starts again at a moment. Boxes that are kept loaded stay and count from that moment. Players are unknown until
    /// the next check.
    pub fn restart(&mut self, now: GameTick) {
        let held = std::mem::take(&mut self.held);
        *self = Self { next_hold: self.next_hold, checks: self.checks, ..Self::default() };
        for (id, window) in held {
            self.hold_window(id, window, now);
        }
    }

    /// Keeps the chunks of a box loaded until they are released.
    ///
    /// # Errors
    /// [`HoldError`] for a box of more than [`MAX_HELD_CUBES`](Self::MAX_HELD_CUBES) cubes.
    pub fn hold(
        &mut self,
        dimension: Dimension,
        place: &ChunkBox,
        now: GameTick,
    ) -> Result<HoldId, HoldError> {
        let window = Window::of(dimension, place);
        let cubes = window.count();
        if cubes > Self::MAX_HELD_CUBES {
            return Err(HoldError { cubes, max_cubes: Self::MAX_HELD_CUBES });
        }
        let id = HoldId(self.next_hold);
        self.next_hold += 1;
        self.hold_window(id, window, now);
        Ok(id)
    }

    fn hold_window(&mut self, id: HoldId, window: Window, now: GameTick) {
        self.held.insert(id, window);
        self.enter(Who::Host, None, window, now, &mut |_| true);
        for cube in window.cubes() {
            self.access(cube);
        }
    }

    /// Releases a box. Returns whether the id was valid. Calls `left` for each cube that is no longer present.
    pub fn release(&mut self, id: HoldId, mut left: impl FnMut(CubeAt)) -> bool {
        let window = self.held.remove(&id);
        self.leave(Who::Host, window, None, &mut left);
        window.is_some()
    }

    /// All boxes that the host keeps loaded, each extended to whole cubes.
    pub fn holds(&self) -> impl Iterator<Item = (HoldId, Dimension, ChunkBox)> {
        self.held.iter().map(|(id, window)| (*id, window.dimension, window.chunks()))
    }

    /// Records that a chunk of a cube was requested. Costs one lookup in a hash map.
    pub fn access(&mut self, cube: CubeAt) {
        if let Some(here) = self.cubes.get_mut(&cube).filter(|here| !here.accessed) {
            here.accessed = true;
            self.settling.insert((here.since, cube));
        }
    }

    /// The cube's stay, if it is present.
    pub fn stay(&self, cube: CubeAt) -> Option<Stay> {
        self.cubes.get(&cube).map(|here| Stay {
            loaded: here.holds > 0,
            accessed: here.accessed,
            since: here.since,
        })
    }

    /// Takes at most `max_cubes` cubes that were present for `after_ticks` and were requested, each once in a stay, the
    /// longest stays first.
    ///
    /// Their chunks are to be promoted. The cost depends on the number of returned cubes.
    pub fn take_settled(&mut self, now: GameTick, after_ticks: u64, max_cubes: usize) -> Vec<CubeAt> {
        let mut settled = Vec::new();
        while settled.len() < max_cubes {
            let Some(first) = self.settling.first().copied() else { break };
            if now.since(first.0) < after_ticks {
                break;
            }
            self.settling.remove(&first);
            settled.push(first.1);
        }
        settled
    }

    /// The next moment at which [`take_settled`](Self::take_settled) may return a cube, if no player arrives.
    pub fn next_settled(&self, after_ticks: u64) -> Option<GameTick> {
        let (since, _) = self.settling.first()?;
        Some(GameTick::new(since.get().saturating_add(after_ticks)))
    }

    /// Returns a cube that was taken and could not be promoted. It is taken again if it is still present.
    pub fn again(&mut self, cube: CubeAt) {
        if let Some(here) = self.cubes.get(&cube) {
            self.settling.insert((here.since, cube));
        }
    }

    /// The number of cubes that are kept loaded or are around players.
    pub fn len(&self) -> usize {
        self.cubes.len()
    }

    /// Whether no cube is present.
    pub fn is_empty(&self) -> bool {
        self.cubes.is_empty()
    }

    /// Adds a holder to the cubes where it is now and was not before.
    fn enter(
        &mut self,
        who: Who,
        before: Option<Window>,
        after: Window,
        now: GameTick,
        accessed: &mut impl FnMut(CubeAt) -> bool,
    ) {
        for cube in after.cubes().filter(|cube| !holds(before, *cube)) {
            let here = self.cubes.entry(cube).or_insert_with(|| {
                let accessed = accessed(cube);
                if accessed {
                    self.settling.insert((now, cube));
                }
                Here { players: 0, holds: 0, accessed, since: now }
            });
            *here.count(who) += 1;
        }
    }

    /// Removes a holder from the cubes where it was before and is not now. A move enters first, so that no stay is
    /// interrupted.
    fn leave(
        &mut self,
        who: Who,
        before: Option<Window>,
        after: Option<Window>,
        left: &mut impl FnMut(CubeAt),
    ) {
        for cube in before.iter().flat_map(Window::cubes).filter(|cube| !holds(after, *cube)) {
            let here = self.cubes.get_mut(&cube).expect("counted when the window came");
            *here.count(who) -= 1;
            if here.players == 0 && here.holds == 0 {
                self.settling.remove(&(here.since, cube));
                self.cubes.remove(&cube);
                left(cube);
            }
        }
    }
}

fn holds(window: Option<Window>, cube: CubeAt) -> bool {
    window.is_some_and(|window| window.contains(cube))
}

impl Here {
    const fn count(&mut self, who: Who) -> &mut u32 {
        match who {
            Who::Player => &mut self.players,
            Who::Host => &mut self.holds,
        }
    }
}

impl Window {
    /// The cubes within a distance of a block, limited to the world.
    fn around(dimension: Dimension, center: BlockPos, distance_blocks: u64) -> Self {
        let distance = i64::try_from(distance_blocks).unwrap_or(i64::MAX);
        let below = |at: i64| at.saturating_sub(distance) >> 6;
        let above = |at: i64| at.saturating_add(distance) >> 6;
        let BlockPos { x, y, z } = center;
        Self { dimension, min: [below(x), below(y), below(z)], max: [above(x), above(y), above(z)] }
    }

    /// The cubes that contain a part of a box.
    fn of(dimension: Dimension, place: &ChunkBox) -> Self {
        let cube = |pos: cg_format::ChunkPos| {
            let pos = ChunkAt::new(dimension, pos).pos.cluster(ClusterTier::L1);
            [pos.x(), pos.y(), pos.z()]
        };
        Self { dimension, min: cube(place.min()), max: cube(place.max()) }
    }

    fn count(&self) -> u64 {
        let side = |axis: usize| self.max[axis].abs_diff(self.min[axis]).saturating_add(1);
        side(0).saturating_mul(side(1)).saturating_mul(side(2))
    }

    fn chunks(&self) -> ChunkBox {
        let corner = |at| CubeAt::within(self.dimension, at).chunks();
        ChunkBox::new(corner(self.min).min(), corner(self.max).max())
    }

    fn contains(&self, cube: CubeAt) -> bool {
        let at = cube.coordinates();
        cube.dimension() == self.dimension
            && (0..3).all(|axis| self.min[axis] <= at[axis] && at[axis] <= self.max[axis])
    }

    fn cubes(&self) -> impl Iterator<Item = CubeAt> + use<> {
        let Self { dimension, min, max } = *self;
        (min[0]..=max[0]).flat_map(move |x| {
            (min[1]..=max[1])
                .flat_map(move |y| (min[2]..=max[2]).map(move |z| CubeAt::within(dimension, [x, y, z])))
        })
    }
}

#[cfg(test)]
mod tests;
