//! Where a chunk lies, since when, why, and when it will move.

use cg_format::{ChunkAt, ClusterTier, Tier};
use cg_tiering::{CubeAt, Decision, GameTick, NextMove};

use super::read_cold_heat;
use crate::api::world::World;
use crate::read::chunk::find;
use crate::storage::error::Error;

/// What [`World::explain_tier`] tells of a stored chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TierReport {
    /// The tier with its live copy.
    pub tier: Tier,
    /// The commit that last changed its content.
    pub version: u64,
    /// When a chunk of its 4³ cube was last accessed, or, of a cold chunk, any chunk of its cold cluster; `None` if that
    /// is not remembered. It counts as accessed when the world was opened then.
    pub last_access: Option<GameTick>,
    /// When chunks of its cube last changed their tier, if that is remembered.
    pub moved_at: Option<GameTick>,
    /// Where it belongs, and why.
    pub decision: Decision,
    /// When it will move if nobody comes, goes or asks for it; `None` if it stays where it is.
    pub next_move: Option<NextMove>,
}

impl World {
    /// Says in which tier a chunk lies, why, and when it will move; `None` if it is not stored. Counts as no access.
    ///
    /// Costs one key read when hot, up to three when cold, and one or two for what is stored of its heat.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged.
    pub fn explain_tier(&self, at: ChunkAt) -> Result<Option<TierReport>, Error> {
        let inner = self.settled()?;
        inner.check_open()?;
        let found = find(&*inner.engine()?, &inner.counters, at, |stored| Ok((stored.tier, stored.version)))?;
        let Some((tier, version)) = found.here() else { return Ok(None) };
        let version = inner.deltas.commits(at).last().map_or(version, |delta| version.max(*delta));
        let cube = CubeAt::of(at);
        let cold = match tier {
            Tier::L2 => read_cold_heat(&*inner.engine()?, cube.cluster(ClusterTier::L2))?.0,
            Tier::L0 | Tier::L1 => None,
        };
        inner.learn_heat(cube)?;
        let now = inner.tiering.now();
        Ok(Some(inner.tiering.observers(|seen| {
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
