//! `cg tiers --explain`: which tier, since when, why, and when the chunk will move.

use std::fmt;

use cg_format::ChunkAt;
use cg_registry::ListKind;
use cg_store::World;
use cg_tiering::GameTick;
use serde::Serialize;

use super::span::ticks_text;
use crate::args::{DimensionArg, chunk_pos};
use crate::cmd::info::tier_name;
use crate::cmd::name_of;
use crate::output::{Failure, Outcome, Output};

#[derive(Debug, Serialize)]
struct Report {
    dimension: String,
    chunk: [i64; 3],
    tier: &'static str,
    version: u64,
    last_access_ticks: Option<u64>,
    moved_ticks: Option<u64>,
    belongs_in: &'static str,
    reason: String,
    next: Option<Next>,
    #[serde(skip)]
    now_ticks: u64,
}

#[derive(Debug, Serialize)]
struct Next {
    tier: &'static str,
    after_ticks: u64,
}

pub(super) fn run(
    world: &World,
    dimension: &DimensionArg,
    place: &[i64],
    out: &Output,
) -> Result<Outcome, Failure> {
    let catalog = world.catalog();
    let dimension = dimension.find(&catalog)?;
    let pos = chunk_pos(place)?;
    let Some(found) = world.tiers().explain(ChunkAt::new(dimension, pos))? else {
        return Err(Failure::absent(format!("chunk {pos} is not stored")));
    };
    let report = Report {
        dimension: name_of(&catalog, ListKind::Dimensions, dimension.get()),
        chunk: [pos.x(), pos.y(), pos.z()],
        tier: tier_name(found.tier),
        version: found.version.get(),
        last_access_ticks: found.last_access.map(GameTick::get),
        moved_ticks: found.moved_at.map(GameTick::get),
        belongs_in: tier_name(found.decision.to),
        reason: found.decision.reason.to_string(),
        next: found.next_move.map(|next| Next { tier: tier_name(next.to), after_ticks: next.after_ticks }),
        now_ticks: world.tiers().clock().now().get(),
    };
    out.print(&report)?;
    Ok(Outcome::Good)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.chunk;
        let ago = |tick: u64| ticks_text(self.now_ticks.saturating_sub(tick));
        writeln!(
            f,
            "chunk {x}, {y}, {z} of {} lies in {}, version {}",
            self.dimension, self.tier, self.version
        )?;
        match self.moved_ticks {
            Some(tick) => writeln!(f, "its cube last changed tier {} ago", ago(tick))?,
            None => writeln!(f, "when its cube last changed tier is not remembered")?,
        }
        match self.last_access_ticks {
            Some(tick) => writeln!(f, "last accessed {} ago", ago(tick))?,
            None => writeln!(f, "when it was last accessed is not remembered")?,
        }
        writeln!(f, "belongs in {}: {}", self.belongs_in, self.reason)?;
        match &self.next {
            Some(Next { tier, after_ticks: 0 }) => {
                writeln!(f, "moves to {tier} at the next tick that has time")
            }
            Some(Next { tier, after_ticks }) => {
                writeln!(f, "moves to {tier} in {} if nobody comes", ticks_text(*after_ticks))
            }
            None => writeln!(f, "stays where it is"),
        }
    }
}
