//! The input of the policy for one cube.

use cg_format::Tier;

use crate::GameTick;

/// The observed state of the chunks of one cube in one tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Observation {
    /// The tier of the chunks. A cube with chunks in several tiers has one observation for each.
    pub tier: Tier,
    /// The present stay: the host keeps the cube loaded, or a player is near.
    pub stay: Option<Stay>,
    /// Whether the place is pinned.
    pub pinned: bool,
    /// When the cube was last accessed.
    pub last_access: GameTick,
    /// Blocks from the cube to the nearest player at the last check, on the axis with the greatest distance; `None`
    /// without players in the dimension.
    pub nearest_player_blocks: Option<u64>,
    /// The same from the L2 cluster around the cube. It is never greater.
    pub cluster_player_blocks: Option<u64>,
}

impl Observation {
    /// Chunks in a tier, in a dimension without players.
    pub const fn alone(tier: Tier, last_access: GameTick) -> Self {
        Self {
            tier,
            stay: None,
            pinned: false,
            last_access,
            nearest_player_blocks: None,
            cluster_player_blocks: None,
        }
    }
}

/// The stay of a player or the host at a cube.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stay {
    /// Whether the host keeps chunks of the cube loaded; otherwise a player is near.
    pub loaded: bool,
    /// Whether its chunks were requested, now or shortly before. Chunks that no load requests stay in their tier.
    pub accessed: bool,
    /// The beginning of the uninterrupted stay.
    pub since: GameTick,
}
