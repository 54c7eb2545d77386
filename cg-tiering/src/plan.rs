//! The plan: moves by cluster, the most useful first, as far as a budget allows.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use cg_format::{ClusterTier, Tier};

use crate::{ClusterAt, CubeAt, Decision, GameTick, Reason};

/// Chunks of one cube that are due for another tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Candidate {
    /// The cube.
    pub cube: CubeAt,
    /// The tier of the chunks.
    pub from: Tier,
    /// Their new tier, and the reason.
    pub decision: Decision,
    /// The number of chunks. An estimate is enough at first.
    pub chunks: u32,
    /// The bytes to read for them.
    pub bytes: u64,
    /// The last access of the cube. Of two equally useful demotions the colder one goes first.
    pub last_access: GameTick,
    /// Blocks to the nearest player. Of two promotions the nearer one goes first.
    pub nearest_player_blocks: Option<u64>,
}

/// The limits for one call. A step begins while anything is left, so every budget makes progress. It is exceeded by at
/// most one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Bytes to read.
    pub bytes: u64,
    /// Chunks to move.
    pub chunks: u64,
}

/// One cube's share of a move: the unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step {
    /// The row that is written or split up: the L1 cluster for a move to L0 or L1, the L2 cluster for a move to L2.
    pub cluster: ClusterAt,
    /// The new tier.
    pub to: Tier,
    /// The cube whose chunks move. A promotion moves all chunks in tiers other than `to`, a demotion all in hotter
    /// tiers.
    pub cube: CubeAt,
    /// The reason.
    pub reason: Reason,
    /// The number of chunks, as offered.
    pub chunks: u32,
    /// The bytes to read, as offered.
    pub bytes: u64,
    /// The number of steps of this move that follow. After the step with 0 the move is complete and must be committed.
    pub remaining_steps: usize,
}

/// The remaining work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Left {
    /// Moves, each of one cluster.
    pub moves: u64,
    /// Steps, each of one cube.
    pub steps: u64,
    /// Chunks.
    pub chunks: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Moves to perform, grouped by cluster and ordered by use.
///
/// Promotions come first, those nearest to a player before the others. Then come demotions: first those that remove the
/// most keys; of equal ones the coldest. Moves that are equal in all this keep the order of their offers, so no place
/// is preferred because of its position.
///
/// Steps are taken one at a time as far as a [`Budget`] allows. The plan keeps the rest for the next time, even in the
/// middle of a move. Offering and taking cost a few comparisons.
///
/// ```
/// use cg_format::{ChunkAt, ChunkPos, Dimension, Tier};
/// use cg_tiering::{Budget, Candidate, CubeAt, Decision, GameTick, MovePlan, Reason};
/// let far = Decision { to: Tier::L2, reason: Reason::Far { distance_blocks: None, cold_distance_blocks: 512 } };
/// let mut plan = MovePlan::new();
/// for x in [0, 4, 8] {
///     plan.offer(Candidate {
///         cube: CubeAt::of(ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0))),
///         from: Tier::L0,
///         decision: far,
///         chunks: 64,
///         bytes: 100_000,
///         last_access: GameTick::new(0),
///         nearest_player_blocks: None,
///     });
/// }
/// // One L2 cluster, three cubes; the budget ends in the middle.
/// let mut budget = Budget { bytes: 150_000, chunks: 1000 };
/// let now: Vec<_> = std::iter::from_fn(|| plan.next_step(&mut budget)).map(|step| step.remaining_steps).collect();
/// assert_eq!(now, [2, 1]);
/// let mut budget = Budget::UNLIMITED;
/// assert_eq!(plan.next_step(&mut budget).map(|step| step.remaining_steps), Some(0));
/// assert!(plan.is_empty());
/// ```
#[derive(Debug, Clone, Default)]
pub struct MovePlan {
    /// The moves that have not begun, by rank.
    waiting: BTreeMap<Rank, Move>,
    ranks: HashMap<(ClusterAt, Tier), Rank>,
    begun: Option<Move>,
    offers: u64,
    left: Left,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Move {
    cluster: ClusterAt,
    to: Tier,
    groups: Vec<Group>,
    /// The first group that is not done.
    next: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    cube: CubeAt,
    reason: Reason,
    shares: Vec<Share>,
}

/// The content of one offer: the chunks of a cube in one tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Share {
    from: Tier,
    chunks: u32,
    bytes: u64,
    last_access: GameTick,
    nearest_player_blocks: Option<u64>,
}

/// The order of moves: smaller goes first. The number of the first offer makes it unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Promotion { nearest_blocks: u64, offer: u64 },
    Demotion { freed_keys: Reverse<u64>, last_access: GameTick, offer: u64 },
}

impl Budget {
    /// No limits.
    pub const UNLIMITED: Self = Self { bytes: u64::MAX, chunks: u64::MAX };

    /// Whether no step may begin any more.
    pub const fn is_spent(&self) -> bool {
        self.bytes == 0 || self.chunks == 0
    }

    const fn spend(&mut self, step: &Step) {
        self.bytes = self.bytes.saturating_sub(step.bytes);
        self.chunks = self.chunks.saturating_sub(step.chunks as u64);
    }
}

impl MovePlan {
    /// Creates an empty plan.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a due move. An offer of the same chunks replaces an earlier one, unless its move has begun; then the offer
    /// is ignored.
    ///
    /// A decision to stay in the present tier is ignored. A plan may become outdated: call
    /// [`Observers::confirms`](crate::Observers::confirms) before a step is performed.
    pub fn offer(&mut self, candidate: Candidate) {
        let Candidate { cube, from, decision, chunks, bytes, last_access, nearest_player_blocks } = candidate;
        if decision.to == from {
            return;
        }
        let row = if decision.to == Tier::L2 { ClusterTier::L2 } else { ClusterTier::L1 };
        let cluster = cube.cluster(row);
        // The rest is counted in one number; no cube holds this many bytes.
        let bytes = bytes.min(1 << 40);
        if self.begun.as_ref().is_some_and(|begun| begun.cluster == cluster && begun.to == decision.to) {
            return;
        }
        let offer = self.offers;
        self.offers += 1;
        let known = self.ranks.remove(&(cluster, decision.to));
        let known = known.and_then(|rank| Some((rank.offer(), self.waiting.remove(&rank)?)));
        let (offer, mut planned) = known.unwrap_or_else(|| (offer, Move::new(cluster, decision.to)));
        self.uncount(&planned);
        planned.add(cube, decision.reason, Share { from, chunks, bytes, last_access, nearest_player_blocks });
        self.count(&planned);
        let rank = planned.rank(offer);
        self.ranks.insert(planned.key(), rank);
        self.waiting.insert(rank, planned);
    }

    /// Takes the next step and subtracts its cost from the budget; `None` if the budget is spent or nothing is left.
    pub fn next_step(&mut self, budget: &mut Budget) -> Option<Step> {
        if budget.is_spent() {
            return None;
        }
        let mut planned = if let Some(begun) = self.begun.take() {
            begun
        } else {
            let (_, first) = self.waiting.pop_first()?;
            self.ranks.remove(&first.key());
            first
        };
        self.uncount(&planned);
        let step = planned.take_step()?;
        if step.remaining_steps > 0 {
            self.count(&planned);
            self.begun = Some(planned);
        }
        budget.spend(&step);
        Some(step)
    }

    /// Drops the rest of the move that has begun, for example because of a save meanwhile.
    pub fn abandon(&mut self) {
        if let Some(begun) = self.begun.take() {
            self.uncount(&begun);
        }
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The remaining work.
    pub const fn left(&self) -> Left {
        self.left
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.begun.is_none()
    }

    fn count(&mut self, planned: &Move) {
        let Left { moves, steps, chunks, bytes } = planned.left();
        self.left.moves += moves;
        self.left.steps += steps;
        self.left.chunks += chunks;
        self.left.bytes += bytes;
    }

    fn uncount(&mut self, planned: &Move) {
        let Left { moves, steps, chunks, bytes } = planned.left();
        self.left.moves -= moves;
        self.left.steps -= steps;
        self.left.chunks -= chunks;
        self.left.bytes -= bytes;
    }
}

impl Move {
    const fn new(cluster: ClusterAt, to: Tier) -> Self {
        Self { cluster, to, groups: Vec::new(), next: 0 }
    }

    const fn key(&self) -> (ClusterAt, Tier) {
        (self.cluster, self.to)
    }

    fn add(&mut self, cube: CubeAt, reason: Reason, share: Share) {
        let known = self.groups.iter_mut().find(|group| group.cube == cube);
        let Some(group) = known else {
            self.groups.push(Group { cube, reason, shares: vec![share] });
            return;
        };
        group.reason = reason;
        match group.shares.iter_mut().find(|known| known.from == share.from) {
            Some(known) => *known = share,
            None => group.shares.push(share),
        }
    }

    fn take_step(&mut self) -> Option<Step> {
        let group = self.groups.get(self.next)?;
        self.next += 1;
        Some(Step {
            cluster: self.cluster,
            to: self.to,
            cube: group.cube,
            reason: group.reason,
            chunks: group.chunks(),
            bytes: group.bytes(),
            remaining_steps: self.groups.len() - self.next,
        })
    }

    fn left(&self) -> Left {
        let groups = self.groups.get(self.next..).unwrap_or(&[]);
        Left {
            moves: u64::from(!groups.is_empty()),
            steps: groups.len() as u64,
            chunks: groups.iter().map(|group| u64::from(group.chunks())).sum(),
            bytes: groups.iter().map(Group::bytes).fold(0, u64::saturating_add),
        }
    }

    fn rank(&self, offer: u64) -> Rank {
        let shares = || self.groups.iter().flat_map(|group| &group.shares);
        if self.to == Tier::L0 {
            let nearest_blocks = shares().filter_map(|share| share.nearest_player_blocks).min();
            return Rank::Promotion { nearest_blocks: nearest_blocks.unwrap_or(u64::MAX), offer };
        }
        let freed_keys = Reverse(shares().map(Share::keys).sum());
        let last_access = shares().map(|share| share.last_access).min().unwrap_or_default();
        Rank::Demotion { freed_keys, last_access, offer }
    }
}

impl Group {
    fn chunks(&self) -> u32 {
        self.shares.iter().map(|share| share.chunks).fold(0, u32::saturating_add)
    }

    fn bytes(&self) -> u64 {
        self.shares.iter().map(|share| share.bytes).fold(0, u64::saturating_add)
    }
}

impl Share {
    /// The rows that the move removes: a row for each hot chunk, one for a warm cube.
    fn keys(&self) -> u64 {
        if self.from == Tier::L0 { self.chunks.into() } else { 1 }
    }
}

impl Rank {
    const fn offer(self) -> u64 {
        match self {
            Self::Promotion { offer, .. } | Self::Demotion { offer, .. } => offer,
        }
    }
}

#[cfg(test)]
mod tests;
