//! `cg registry replace`: other packs in place of the ones that the world knows, other blocks in place of stored ones.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;

use cg_format::chunk::{CellLayer, Chunk};
use cg_format::{BlockId, ChunkAt, LocalPos, SchemaView};
use cg_minecraft::content::BLOCK_ENTITY;
use cg_minecraft::game::{NEWEST_TESTED, complete};
use cg_minecraft::kind;
use cg_registry::{Catalog, ComponentOffer, ListKind, Name, Registration};
use cg_store::World;
use cg_store::view::Area;
use clap::ValueHint;
use indicatif::ProgressBar;
use serde::Serialize;

use super::plan::{self, PolicyArgs, read_packs};
use crate::args::{WrittenWorldArg, YesArg};
use crate::output::{Failure, Outcome, Output, counted};
use crate::shown::shown;

/// Bring the registry to what some packs offer, and put other blocks in place of stored ones. Writes, with --yes.
///
/// First the packs are applied, exactly as `cg registry plan` says; a refused plan changes nothing. Then every stored
/// block named OLD becomes NEW: for the blocks of a pack that is gone for good. Components that both kinds have keep
/// their bytes, others of OLD are lost. Ids are never given up, so OLD stays in the list. Names may carry a state; OLD
/// without one stands for all its states, NEW without one for its default state, and a property of a block of Minecraft that
/// a state leaves out has the default's value. Interrupted, it is simply run again. Without --yes it counts what would be
/// replaced, and exits with code 2. JSON: `{"written":BOOL,"plan":{…}|null,"registered":[NAME],"chunks":N,"blocks":N,
/// "unreadable":[…]}`.
#[derive(Debug, clap::Args)]
#[group(id = "what", required = true, multiple = true, args = ["packs", "blocks"])]
pub(crate) struct Args {
    #[command(flatten)]
    world: WrittenWorldArg,
    /// A pack's manifest; may be given several times, once for each pack, all of them together.
    #[arg(long = "pack", value_name = "FILE", value_hint = ValueHint::FilePath)]
    packs: Vec<PathBuf>,
    /// Put NEW in place of every stored OLD; may be given several times, each time for other blocks.
    #[arg(long = "block", num_args = 2, value_names = ["OLD", "NEW"], action = clap::ArgAction::Append)]
    blocks: Vec<String>,
    /// Register each NEW that the world does not have, as an import of it would: a block of Minecraft as the tool's tables
    /// describe it, any other without components.
    #[arg(long, requires = "blocks")]
    register: bool,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    yes: YesArg,
}

#[derive(Debug, Serialize)]
struct Report {
    written: bool,
    plan: Option<plan::Report>,
    registered: Vec<String>,
    chunks: usize,
    blocks: u64,
    unreadable: Vec<String>,
}

/// Which kind takes the place of which.
type Replacements = BTreeMap<BlockId, BlockId>;

/// Chunks changed in one transaction.
const CHUNKS_PER_TRANSACTION: usize = 64;

pub(super) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let (packs, options) = (read_packs(&args.packs)?, args.policy.options(args.world.options()));
    let plan =
        match &packs[..] {
            [] => None,
            packs => Some(args.world.when_free(out, || {
                args.world.place().plan(World::builder().packs(packs).options(&options))
            })?),
        };
    let plan_report = plan.as_ref().map(plan::Report::from);
    if plan_report.as_ref().is_some_and(|plan| !plan.accepted) {
        out.print(&Report {
            written: false,
            plan: plan_report,
            registered: Vec::new(),
            chunks: 0,
            blocks: 0,
            unreadable: Vec::new(),
        })?;
        return Ok(Outcome::Findings);
    }
    let mut world = args.world.open(out)?;
    // Names are checked before anything is written. What the registry would be counts: a pack may bring the new block.
    let mut catalog = Catalog::clone(&world.catalog());
    if let Some(plan) = &plan {
        plan.apply(&mut catalog).map_err(Failure::failed)?;
    }
    let new = if args.register { new_blocks(&catalog, &args.blocks)? } else { Registration::default() };
    catalog.register(&new).map_err(Failure::failed)?;
    let mut replacements = replacements(&catalog, &args.blocks)?;
    if args.yes.given() {
        drop(world);
        world = args.world.open_by(out, World::builder().packs(&packs).options(&options))?;
        replacements = self::replacements(&*world.registry().register(&new)?, &args.blocks)?;
    }
    let found = out.watch_chunks("chunks searched", &world, || count(&world, &replacements))??;
    if args.yes.given() {
        let progress = out.progress_of("chunks changed", found.places.len() as u64);
        write(&world, &found.places, &replacements, &progress)?;
        progress.finish_and_clear();
        world.close()?;
    }
    let outcome = Outcome::good_if(found.unreadable.is_empty());
    out.print(&Report {
        written: args.yes.given(),
        plan: plan_report,
        registered: new.blocks.iter().map(|block| block.name.to_string()).collect(),
        chunks: found.places.len(),
        blocks: found.blocks,
        unreadable: found.unreadable,
    })?;
    args.yes.confirm("this is what would change")?;
    Ok(outcome)
}

/// The blocks that are to be put in place of others and that the world does not have.
fn new_blocks(catalog: &Catalog, pairs: &[String]) -> Result<Registration, Failure> {
    let mut new = Registration::default();
    for state in pairs.chunks_exact(2).filter_map(|pair| pair.last()) {
        let full = complete(state, NEWEST_TESTED);
        let is_new = stored(catalog, state).is_none();
        if is_new && !new.blocks.iter().any(|block| block.name.as_str() == full) {
            let name = Name::new(&*full)
                .map_err(|error| Failure::usage(format!("`{state}` cannot be registered: {error}")))?;
            let owns = kind::owns_block_entity(&full);
            new.blocks.push(kind::offer(name, owns, kind::is_opaque(&full)));
            if owns && new.components.is_empty() {
                let component = Name::new(BLOCK_ENTITY).expect("a literal name");
                new.components.push(ComponentOffer::variable(component));
            }
        }
    }
    Ok(new)
}

fn replacements(catalog: &Catalog, pairs: &[String]) -> Result<Replacements, Failure> {
    let mut all = Replacements::new();
    for pair in pairs.chunks_exact(2) {
        let [old, new] = pair else { continue };
        let new_id = stored(catalog, new).ok_or_else(|| {
            let full = complete(new, NEWEST_TESTED);
            Failure::usage(format!(
                "the world has no block `{full}`; `cg registry list` shows what it has, and --register adds it"
            ))
        })?;
        let full = complete(old, NEWEST_TESTED);
        let is_same_state = |name: &str| old.contains('[') && complete(name, NEWEST_TESTED) == full;
        let is_old = |name: &str| name == old || kind::base(name) == old || is_same_state(name);
        let listed = (0..).zip(catalog.list(ListKind::Blocks).names());
        let mut old_ids: Vec<_> =
            listed.filter(|(_, name)| is_old(name.as_str())).map(|(id, _)| BlockId::new(id)).collect();
        old_ids.extend(catalog.block_id(old));
        if old_ids.is_empty() {
            return Err(Failure::usage(format!(
                "the world has no block `{old}`; `cg registry list` shows what it has"
            )));
        }
        for old_id in old_ids.into_iter().filter(|old| *old != new_id) {
            if all.insert(old_id, new_id).is_some_and(|before| before != new_id) {
                let name =
                    catalog.list(ListKind::Blocks).name(old_id.get()).map_or(&**old, |name| name.as_str());
                return Err(Failure::usage(format!(
                    "two --block name `{name}`, and put different blocks in its place; name each block once"
                )));
            }
        }
    }
    Ok(all)
}

/// The block of a state as it would be imported, or else, in a world that an earlier release made, as it is spelled here.
fn stored(catalog: &Catalog, state: &str) -> Option<BlockId> {
    catalog.block_id(&complete(state, NEWEST_TESTED)).or_else(|| catalog.block_id(state))
}

/// Places and blocks that would be replaced.
#[derive(Debug, Default)]
struct Found {
    places: Vec<ChunkAt>,
    blocks: u64,
    unreadable: Vec<String>,
}

fn count(world: &World, replacements: &Replacements) -> Result<Found, Failure> {
    let mut found = Found::default();
    if replacements.is_empty() {
        return Ok(found);
    }
    world.read_view(|view| {
        view.for_each_chunk(Area::World, |stored| {
            match stored.and_then(|stored| Ok((stored.at, view.decode(stored)?))) {
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
        })
    })?;
    Ok(found)
}

fn write(
    world: &World,
    places: &[ChunkAt],
    replacements: &Replacements,
    progress: &ProgressBar,
) -> Result<(), Failure> {
    for places in places.chunks(CHUNKS_PER_TRANSACTION) {
        world.transaction(|tx| {
            let schema = tx.catalog().current_schema();
            for at in places {
                tx.edit(*at, |chunk| replace(chunk, replacements, &schema))??;
            }
            Ok::<_, cg_store::Error>(())
        })?;
        progress.inc(places.len() as u64);
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
        let verb = if self.written { "registered" } else { "to be registered:" };
        for name in &self.registered {
            writeln!(f, "{verb} `{}`", shown(name))?;
        }
        for problem in &self.unreadable {
            writeln!(f, "left as it is: {}", shown(problem))?;
        }
        let (blocks, chunks) = (counted(self.blocks, "block"), counted(self.chunks as u64, "chunk"));
        let verb = if self.written { "replaced" } else { "to be replaced:" };
        writeln!(f, "{verb} {blocks} in {chunks}")
    }
}
