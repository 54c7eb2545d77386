//! `cg registry replace`: other packs in place of the ones that the world knows, other blocks in place of stored ones.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;

use cg_format::chunk::{CellLayer, Chunk};
use cg_format::{BlockId, ChunkAt, LocalPos, SchemaView};
use cg_registry::{Catalog, ListKind};
use cg_store::{Area, World};
use clap::ValueHint;
use serde::Serialize;

use super::plan::{self, PolicyArgs, read_packs};
use crate::args::{DiskWorld, WorldArg, YesArg};
use crate::output::{Failure, Outcome, Output, counted};
use crate::shown::shown;

/// Bring the registry to what some packs offer, and put other blocks in place of stored ones. Writes, with --yes.
///
/// First the packs are applied, exactly as `cg registry plan` says; a refused plan changes nothing. Then every stored
/// block named OLD becomes NEW: for the blocks of a pack that is gone for good. Components that both kinds have keep
/// their bytes, others of OLD are lost. Ids are never given up, so OLD stays in the list. Names may carry a state; OLD
/// without one stands for all its states. Interrupted, it is simply run again. Without --yes it counts what would be
/// replaced, and exits with code 2. JSON: `{"written":BOOL,"plan":{…}|null,"chunks":N,"blocks":N,"unreadable":[…]}`.
#[derive(Debug, clap::Args)]
#[group(id = "what", required = true, multiple = true, args = ["packs", "blocks"])]
pub(crate) struct Args {
    #[command(flatten)]
    world: WorldArg,
    /// A pack's manifest; once for each pack, all of them together.
    #[arg(long = "pack", value_name = "FILE", value_hint = ValueHint::FilePath)]
    packs: Vec<PathBuf>,
    /// Put NEW in place of every stored OLD; may be given more than once.
    #[arg(long = "block", num_args = 2, value_names = ["OLD", "NEW"], action = clap::ArgAction::Append)]
    blocks: Vec<String>,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    yes: YesArg,
}

#[derive(Debug, Serialize)]
struct Report {
    written: bool,
    plan: Option<plan::Report>,
    chunks: usize,
    blocks: u64,
    unreadable: Vec<String>,
}

/// Which kind takes the place of which.
type Replacements = BTreeMap<BlockId, BlockId>;

/// Chunks changed in one transaction.
const CHUNKS_PER_TRANSACTION: usize = 64;

pub(super) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let (packs, options) = (read_packs(&args.packs)?, args.policy.options(&args.world));
    let plan = match &packs[..] {
        [] => None,
        packs => Some(DiskWorld::plan(args.world.path(), packs, &options)?),
    };
    let plan_report = plan.as_ref().map(plan::Report::from);
    if plan_report.as_ref().is_some_and(|plan| !plan.accepted) {
        out.print(&Report {
            written: false,
            plan: plan_report,
            chunks: 0,
            blocks: 0,
            unreadable: Vec::new(),
        })?;
        return Ok(Outcome::Findings);
    }
    let mut world = args.world.open()?;
    // Names are checked before anything is written. What the registry would be counts: a pack may bring the new block.
    let mut catalog = Catalog::clone(&world.catalog());
    if let Some(plan) = &plan {
        plan.apply(&mut catalog).map_err(Failure::failed)?;
    }
    let replacements = replacements(&catalog, &args.blocks)?;
    if args.yes.given() {
        drop(world);
        world = World::open(args.world.path(), &packs, &options)?;
    }
    let found = count(&world, &replacements)?;
    if args.yes.given() {
        write(&world, &found.places, &replacements)?;
        world.close()?;
    }
    let outcome = Outcome::good_if(found.unreadable.is_empty());
    out.print(&Report {
        written: args.yes.given(),
        plan: plan_report,
        chunks: found.places.len(),
        blocks: found.blocks,
        unreadable: found.unreadable,
    })?;
    args.yes.confirm("this is what would change")?;
    Ok(outcome)
}

fn replacements(catalog: &Catalog, pairs: &[String]) -> Result<Replacements, Failure> {
    let mut all = Replacements::new();
    for pair in pairs.chunks_exact(2) {
        let [old, new] = pair else { continue };
        let new_id = catalog.block_id(new).ok_or_else(|| {
            Failure::usage(format!("the world has no block `{new}`; `cg registry list` shows what it has"))
        })?;
        let is_old = |name: &str| name == old || name.split_once('[').is_some_and(|(base, _)| base == old);
        let listed = (0..).zip(catalog.list(ListKind::Blocks).names());
        let mut old_ids: Vec<_> =
            listed.filter(|(_, name)| is_old(name.as_str())).map(|(id, _)| BlockId::new(id)).collect();
        old_ids.extend(catalog.block_id(old));
        if old_ids.is_empty() {
            return Err(Failure::usage(format!(
                "the world has no block `{old}`; `cg registry list` shows what it has"
            )));
        }
        all.extend(old_ids.into_iter().filter(|old| *old != new_id).map(|old| (old, new_id)));
    }
    Ok(all)
}

/// What would be replaced.
#[derive(Debug, Default)]
struct Found {
    places: Vec<ChunkAt>,
    blocks: u64,
    unreadable: Vec<String>,
}

fn count(world: &DiskWorld, replacements: &Replacements) -> Result<Found, Failure> {
    let mut found = Found::default();
    if replacements.is_empty() {
        return Ok(found);
    }
    world.for_each_chunk(Area::World, |stored| {
        match stored.and_then(|stored| Ok((stored.at, world.decode(stored)?))) {
            Ok((at, chunk)) => {
                let palette = chunk.palette().into_iter();
                let blocks: u64 = palette
                    .filter(|entry| replacements.contains_key(&entry.block))
                    .map(|entry| u64::from(entry.count))
                    .sum();
                if blocks > 0 {
                    found.places.push(at);
                    found.blocks += blocks;
                }
            }
            Err(error) => found.unreadable.push(error.to_string()),
        }
        ControlFlow::<()>::Continue(())
    })?;
    Ok(found)
}

fn write(world: &DiskWorld, places: &[ChunkAt], replacements: &Replacements) -> Result<(), Failure> {
    for places in places.chunks(CHUNKS_PER_TRANSACTION) {
        world.transaction(|tx| {
            let schema = tx.catalog().current_schema();
            for at in places {
                tx.edit(*at, |chunk| replace(chunk, replacements, &schema))??;
            }
            Ok::<_, cg_store::Error>(())
        })?;
    }
    Ok(())
}

fn replace(
    chunk: &mut Chunk,
    replacements: &Replacements,
    schema: &impl SchemaView,
) -> Result<(), cg_store::Error> {
    for cell in LocalPos::all() {
        for layer in 0..chunk.layer_count(cell) as u8 {
            let new = chunk.layer(cell, layer).and_then(|old| replacements.get(&old));
            if let Some(new) = new {
                chunk.change_kind(CellLayer::new(cell, layer), *new, schema)?;
            }
        }
    }
    Ok(())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(plan) = &self.plan {
            plan.fmt(f)?;
        }
        for problem in &self.unreadable {
            writeln!(f, "left as it is: {}", shown(problem))?;
        }
        let (blocks, chunks) = (counted(self.blocks, "block"), counted(self.chunks as u64, "chunk"));
        let verb = if self.written { "replaced" } else { "to be replaced:" };
        writeln!(f, "{verb} {blocks} in {chunks}")
    }
}
