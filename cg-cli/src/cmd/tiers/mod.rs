//! `cg tiers`: how many chunks each tier holds, why a chunk is in its tier, and what another policy would do.

mod demote;
mod explain;
mod purge;
mod simulate;
pub(super) mod span;

use std::collections::BTreeMap;
use std::fmt;

use cg_format::Tier;
use clap::Subcommand;
use serde::Serialize;

use super::info::tier_name;
use crate::args::{DimensionArg, WorldArg};
use crate::output::{Failure, Outcome, Output, bytes_text, grouped};

/// Show how many chunks are hot (l0), warm (l1) and cold (l2), or why one of them is in its tier.
///
/// A shadowed copy is one that a hotter tier hides; it is dropped when a quarter of its cluster is. JSON:
/// `{"tiers":{"l0":{"keys","chunks","shadowed","bytes"},…},"heat_rows":N,"clock_ticks":N,"damaged":N}`, with `--explain`
/// `{"dimension","chunk":[X,Y,Z],"tier","version","last_access_ticks","moved_ticks","belongs_in","reason","next":{"tier","after_ticks"}}`.
/// Exit code 1 if damaged rows were met, 4 if the chunk is not stored.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    world: Option<WorldArg>,
    #[command(flatten)]
    dimension: DimensionArg,
    /// Explain one chunk, by its position in chunks.
    #[arg(long, num_args = 3, action = clap::ArgAction::Set, value_names = ["X", "Y", "Z"], allow_negative_numbers = true)]
    explain: Option<Vec<i64>>,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(alias = "settle")]
    Demote(demote::Args),
    #[command(alias = "forget")]
    Purge(purge::Args),
    Simulate(simulate::Args),
}

#[derive(Debug, Serialize)]
struct Report {
    tiers: BTreeMap<&'static str, TierReport>,
    heat_rows: u64,
    clock_ticks: u64,
    damaged: u64,
}

#[derive(Debug, Serialize)]
struct TierReport {
    keys: u64,
    chunks: u64,
    shadowed: u64,
    bytes: u64,
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    match &args.command {
        Some(Command::Demote(args)) => return demote::run(args, out),
        Some(Command::Purge(args)) => return purge::run(args, out),
        Some(Command::Simulate(args)) => return simulate::run(args, out),
        None => {}
    }
    let Some(world) = &args.world else {
        return Err(Failure::usage("which world? `cg tiers WORLD`"));
    };
    let world = world.open(out)?;
    if let Some(place) = &args.explain {
        return explain::run(&world, &args.dimension, place, out);
    }
    let census = world.tiers().census()?;
    let tiers = Tier::ALL.map(|tier| {
        let found = census.tier(tier);
        let shadowed = found.copies - found.chunks;
        (tier_name(tier), TierReport { keys: found.keys, chunks: found.chunks, shadowed, bytes: found.bytes })
    });
    let clock_ticks = world.tiers().clock().now().get();
    let report =
        Report { tiers: tiers.into(), heat_rows: census.heat_rows, clock_ticks, damaged: census.damaged };
    out.print(&report)?;
    Ok(Outcome::good_if(report.damaged == 0))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "tier          keys        chunks      shadowed         bytes")?;
        for (tier, TierReport { keys, chunks, shadowed, bytes }) in &self.tiers {
            let [keys, chunks, shadowed] = [keys, chunks, shadowed].map(|count| grouped(*count));
            writeln!(f, "{tier}   {keys:>13} {chunks:>13} {shadowed:>13} {:>13}", bytes_text(*bytes))?;
        }
        writeln!(
            f,
            "heat is kept of {} cubes; the clock stands at tick {}",
            grouped(self.heat_rows),
            self.clock_ticks
        )?;
        if self.damaged > 0 {
            writeln!(f, "{} damaged rows are not counted; `cg verify` names them", grouped(self.damaged))?;
        }
        Ok(())
    }
}
