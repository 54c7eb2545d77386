//! What is known of a cube when the policy is asked about it.

use cg_format::Tier;

use crate::GameTick;

/// What is known about the chunks of one cube that lie in one tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Observation {
    /// The tier in which the chunks lie. A cube with chunks in several tiers is asked about once for each.
    pub tier: Tier,
    /// Whether they are held: by the host, which holds them as loaded, or by a player that is near.
    pub stay: Option<Stay>,
    /// Whether the place is pinned.
    pub pinned: bool,
    /// When the cube was last accessed.
    pub last_access: GameTick,
    /// Blocks from the cube to the nearest player at the last check, on the axis where they are farthest apart; `None`
    /// without players in the dimension.
    pub nearest_player_blocks: Option<u64>,
    /// The same from the L2 cluster around the cube, which is never farther.
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

/// That a player or the host is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stay {
    /// Whether the host holds chunks of the cube as loaded; otherwise a player is near.
    pub loaded: bool,
    /// Whether its chunks were asked for, now or shortly before; what no load asks for stays where it is.
    pub accessed: bool,
    /// Since when a player or the host was there without a pause.
    pub since: GameTick,
}
