//! `cg overlay reset-damaged`: the damaged chunks of an arena are given up.

use std::fmt;

use cg_format::ChunkBox;
use cg_layers::{Arenas, Base, ResetChunks, SegmentOptions, SegmentedWorld};
use cg_store::World;
use serde::Serialize;

use super::{INSTEAD, LayersArg};
use crate::args::{BoxArg, DimensionArg, WrittenWorldArg, YesArg, chunk_pos};
use crate::cmd::quarantine::refuse_large;
use crate::output::{Failure, Outcome, Output, counted};

/// Give up the damaged chunks of an arena in a box: each is as in the world below again. Writes the arenas.
///
/// `cg verify --arenas` prints the box. Sound chunks are left alone. A chunk has the entities that the arena shows there; where
/// the world has no chunk there is none, and the arena's entities of it are detached. No copy of the damaged rows is kept. Exit code
/// 1 if a chunk stays damaged, as the world's chunk cannot be read either. The world may be segmented; it is opened for writing
/// then. JSON: `{"arena":N,"chunks":N,"detached_entities":N,"ancestors":N,"left":N}`.
#[derive(Debug, clap::Args)]
#[group(id = "damaged", required = true, multiple = false, args = ["corners", "chunk"])]
pub(crate) struct Args {
    #[command(flatten)]
    layers: LayersArg<WrittenWorldArg>,
    #[command(flatten)]
    dimension: DimensionArg,
    #[command(flatten)]
    area: BoxArg,
    /// The position of the chunk, in chunks.
    #[arg(long, num_args = 3, action = clap::ArgAction::Set, value_names = ["X", "Y", "Z"], allow_negative_numbers = true)]
    chunk: Option<Vec<i64>>,
    #[command(flatten)]
    yes: YesArg,
}

#[derive(Debug, Serialize)]
struct ResetReport {
    arena: u32,
    chunks: u64,
    detached_entities: u64,
    ancestors: u64,
    left: u64,
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let LayersArg { world, arenas, arena } = &args.layers;
    world.place().directory(INSTEAD)?;
    let area = match (args.area.get("run `cg overlay reset-damaged` once for each box")?, &args.chunk) {
        (Some(blocks), _) => blocks.chunks(),
        (None, Some(pos)) => chunk_pos(pos).map(|pos| ChunkBox::new(pos, pos))?,
        (None, None) => return Err(Failure::usage("say which chunks are damaged: --box or --chunk")),
    };
    refuse_large(&area)?;
    args.yes.confirm(&format!("what arena {arena} changed in the damaged chunks would be lost"))?;
    let options = world.options();
    let Some(dir) = world.place().segmented() else {
        let open = || world.place().open_read_only(World::builder().options(&options));
        let base = world.when_free(out, open)?;
        let opened = world.when_free(out, || Arenas::open(arenas, base.clone(), &options))?;
        return reset_in(args, &opened, area, out);
    };
    let options = SegmentOptions { world: options, ..SegmentOptions::default() };
    let base = world.when_free(out, || SegmentedWorld::open(dir, &[], &options))?;
    let opened = world.when_free(out, || Arenas::open(arenas, base.clone(), &options.world))?;
    let outcome = reset_in(args, &opened, area, out)?;
    drop(opened);
    base.close()?;
    Ok(outcome)
}

fn reset_in<S: Base>(
    args: &Args,
    arenas: &Arenas<S>,
    area: ChunkBox,
    out: &Output,
) -> Result<Outcome, Failure> {
    let overlay = arenas.resume(args.layers.arena)?;
    let dimension = args.dimension.find(&*overlay.catalog()?)?;
    let ResetChunks { chunks, detached_entities, ancestors, left, .. } =
        overlay.reset_damaged(dimension, area)?;
    arenas.flush()?;
    out.print(&ResetReport { arena: args.layers.arena, chunks, detached_entities, ancestors, left })?;
    Ok(Outcome::good_if(left == 0))
}

impl fmt::Display for ResetReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { arena, chunks, detached_entities, ancestors, left } = *self;
        writeln!(f, "{} of arena {arena} reset to the world's", counted(chunks, "damaged chunk"))?;
        if detached_entities > 0 {
            let entities = if detached_entities == 1 {
                "1 entity".into()
            } else {
                format!("{detached_entities} entities")
            };
            writeln!(f, "{entities} detached, as the world has no chunk there")?;
        }
        if ancestors > 0 {
            let stay = counted(ancestors, "sound chunk");
            writeln!(
                f,
                "{stay} left without a damaged copy of the world's chunk, which merges compare with"
            )?;
        }
        if left > 0 {
            let chunks = counted(left, "chunk");
            writeln!(
                f,
                "{chunks} left damaged: the world's cannot be read either; run `cg verify` on the world"
            )?;
        }
        Ok(())
    }
}
