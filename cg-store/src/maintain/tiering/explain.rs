//! The tier of a chunk: which, since when, why, and when it will change.

use cg_format::{ChunkAt, ClusterTier, Tier};
use cg_tiering::{CubeAt, Decision, GameTick, NextMove};

use super::read_cold_heat;
use crate::engine::CommitSeq;
use crate::maintain::state::MaintainState;
use crate::read::chunk::{Rows, find};
use crate::storage::error::Error;

/// The result of [`Tiers::explain`](crate::tiers::Tiers::explain) for a stored chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TierReport {
    /// The tier with its live copy.
    pub tier: Tier,
    /// The commit that last changed its content.
    pub version: CommitSeq,
    /// When a chunk of its 4³ cube was last accessed; for a cold chunk, any chunk of its cold cluster. `None` if that
    /// is not recorded: then it counts as accessed when the world was opened.
    pub last_access: Option<GameTick>,
    /// When chunks of its cube last changed their tier, if that is recorded.
    pub moved_at: Option<GameTick>,
    /// The tier in which it should be, and why.
    pub decision: Decision,
    /// When it will move if players do not move and do not access it; `None` if it stays where it is.
    pub next_move: Option<NextMove>,
}

impl MaintainState {
    /// See [`Tiers::explain`](crate::tiers::Tiers::explain).
    pub(crate) fn explain_tier(&self, at: ChunkAt) -> Result<Option<TierReport>, Error> {
        self.shared.check_open()?;
        let found = find(Rows::Now(&*self.shared.engine()?), &self.shared.counters, at, |stored| {
            Ok((stored.tier, stored.version))
        })?;
        let Some((tier, version)) = found.here() else { return Ok(None) };
        let version = CommitSeq::new(self.read.deltas.version(at, version.get()));
        let cube = CubeAt::of(at);
        let cold = match tier {
            Tier::L2 => read_cold_heat(&*self.shared.engine()?, cube.cluster(ClusterTier::L2))?.0,
            Tier::L0 | Tier::L1 => None,
        };
        self.load_heat(cube)?;
        let now = self.activity.tiering.now();
        Ok(Some(self.activity.tiering.observers(|seen| {
            let heat = seen.heat().get(cube);
            TierReport {
                tier,
                version,
                last_access: heat.or(cold).map(|heat| heat.last_access),
                moved_at: heat.and_then(|heat| heat.moved_at),
                decision: seen.decide(cube, tier, now),
                next_move: seen.next_move(cube, tier, now),
            }
        })))
    }
}
