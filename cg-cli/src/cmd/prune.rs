//! `cg prune`: deletes chunks that are not needed.

mod choice;
mod columns;
mod detached;

use std::fmt;
use std::ops::ControlFlow;

use cg_format::{ChunkAt, ChunkBox, RecordId};
use cg_registry::ListKind;
use cg_store::records::RecordQuery;
use cg_store::{Durability, Error, World};
use serde::Serialize;

use choice::Choice;
use columns::Columns;

use super::name_of;
use super::tiers::span::ticks;
use crate::args::{AreaArg, DimensionArg, WrittenWorldArg, YesArg};
use crate::output::{Failure, Outcome, Output, bytes_text, counted, grouped};
use crate::shown::shown;

/// At most this many chunks are deleted at once.
const CHUNKS_AT_ONCE: usize = 256;
/// At most this many entities are deleted at once that go with no chunk.
const ENTITIES_AT_ONCE: usize = 4096;

/// Delete the chunks of a dimension that lie in boxes, outside a radius, or where no player was for long. Writes, with --yes.
///
/// Without --yes it says what would go, and exits with code 2.
///
/// Of several conditions all must hold. A chunk goes only as a whole, with its entities: of boxes, the chunks that lie
/// in their union with every block; of a radius, those no block of which is within it. With the last chunk of a column goes what an
/// import kept of the column beside its chunks: height maps, structures, points of interest, slots that could not be read; of a
/// column without chunks such slots go if all of it lies there, from block -2048 to 2047. Detached entities, which belong to
/// no chunk, go if there is none where they stand, and that place lies where chunks go, or the column's last chunk goes; those
/// that a host detached for another reason stay and are counted. Every entity of the world is read once. Spatial records stay
/// unless `--with-records` is given, other objects always. Stopped in the middle, it may be run again.
/// The disk gets the room back as the engine compacts, or at once with `cg tiers demote`. JSON:
/// `{"dimension":NAME,"chunks":N,"entities":N,"detached":N,"left_detached":N,"bytes":N,"records":N,"leftovers":N,"unknown":N,
/// "deleted":bool}`, where `entities` includes `detached`, and bytes are those of the chunks before the engine compresses them.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true).args(["corners", "outside_radius", "not_visited_for"]))]
pub(crate) struct Args {
    #[command(flatten)]
    world: WrittenWorldArg,
    #[command(flatten)]
    dimension: DimensionArg,
    #[command(flatten)]
    area: AreaArg,
    /// Farther than this many blocks from the centre, in x and z; the height does not count.
    #[arg(long, value_name = "BLOCKS")]
    outside_radius: Option<u64>,
    /// The centre of the radius.
    #[arg(long, num_args = 2, action = clap::ArgAction::Set, value_names = ["X", "Z"], default_values_t = [0, 0], allow_negative_numbers = true)]
    around: Vec<i64>,
    /// Not accessed for this much game time, as in 30d, 12h, 90m, 45s or 600t (ticks). Cold chunks were accessed when any of
    /// their cold cluster was. Where no player was since an import, the save's `LastUpdate` and `InhabitedTime` tell. What is
    /// not known is counted and stays.
    #[arg(long, value_name = "SPAN", value_parser = ticks)]
    not_visited_for: Option<u64>,
    /// Delete the spatial records that lie in those chunks too.
    #[arg(long)]
    with_records: bool,
    /// Only say what would go, and exit with code 0.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    #[command(flatten)]
    yes: YesArg,
}

#[derive(Debug, Serialize)]
struct Report {
    dimension: String,
    chunks: u64,
    entities: u64,
    detached: u64,
    left_detached: u64,
    bytes: u64,
    records: u64,
    leftovers: u64,
    unknown: u64,
    deleted: bool,
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let world = if args.yes.given() { args.world.open_for_writing(out)? } else { args.world.open(out)? };
    let catalog = world.catalog();
    let dimension = args.dimension.find(&catalog)?;
    let mut choice = Choice::new(args, &world, dimension)?;
    let chosen = choice.chosen()?;
    let mut columns = Columns::of(&world, dimension, &chosen, |pos| choice.goes_empty(pos))?;
    let kept = columns.kept_without_chunks(&world, |column| choice.takes_column(column))?;
    let mut entities = columns.detached;
    let (mut bytes, mut record_count, mut leftover_count) = (0, 0, 0);
    let progress = out.progress_of("chunks deleted", chosen.len() as u64);
    for chunks in chosen.chunks(CHUNKS_AT_ONCE) {
        let records = if args.with_records { records_in(&world, chunks)? } else { Vec::new() };
        record_count += records.len() as u64;
        let emptied = columns.emptied_by(chunks, &world)?;
        leftover_count += emptied.objects.len() as u64;
        for at in chunks {
            let held = world.tiers().with_stored_bytes(*at, |stored| Ok(stored.value.len() as u64))?;
            bytes += held.unwrap_or_default();
            entities += world.load(*at)?.map_or(0, |chunk| chunk.entities().len() as u64);
        }
        if args.yes.given() {
            world.transaction_at(Durability::Process, |tx| {
                for at in chunks {
                    tx.delete(*at);
                }
                for key in emptied.objects {
                    tx.delete_object(key)?;
                }
                for id in emptied.entities {
                    tx.delete_entity(id);
                }
                for id in records {
                    tx.delete_record(id);
                }
                Ok::<_, Error>(())
            })?;
            progress.inc(chunks.len() as u64);
        }
    }
    progress.finish_and_clear();
    leftover_count += kept.len() as u64;
    if args.yes.given() {
        for ids in columns.alone.chunks(ENTITIES_AT_ONCE) {
            world.transaction_at(Durability::Process, |tx| {
                for id in ids {
                    tx.delete_entity(*id);
                }
                Ok::<_, Error>(())
            })?;
        }
        for keys in kept.chunks(CHUNKS_AT_ONCE) {
            world.transaction_at(Durability::Process, |tx| {
                for key in keys {
                    tx.delete_object(key.clone())?;
                }
                Ok::<_, Error>(())
            })?;
        }
        world.flush()?;
    }
    let unknown = choice.unknown;
    world.close()?;
    out.print(&Report {
        dimension: name_of(&catalog, ListKind::Dimensions, dimension.get()),
        chunks: chosen.len() as u64,
        entities,
        detached: columns.detached,
        left_detached: columns.left,
        bytes,
        records: record_count,
        leftovers: leftover_count,
        unknown,
        deleted: args.yes.given(),
    })?;
    if !args.dry_run {
        args.yes.confirm("this is what would be deleted")?;
    }
    Ok(Outcome::Good)
}

/// The records that lie in some chunks. A damaged one ends it: its kind is unknown.
fn records_in(world: &World, chunks: &[ChunkAt]) -> Result<Vec<RecordId>, Failure> {
    let mut found = Vec::new();
    for at in chunks {
        let query = RecordQuery::new(at.dimension, ChunkBox::new(at.pos, at.pos).blocks());
        let failed = world.records().for_each_in(&query, |record| match record {
            Ok((id, record)) => {
                found.extend((record.position.block().chunk() == at.pos).then_some(id));
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        })?;
        failed.map_or(Ok(()), Err)?;
    }
    Ok(found)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chunks = format!("{} of {}", counted(self.chunks, "chunk"), shown(&self.dimension));
        let records = (self.records > 0).then(|| counted(self.records, "record"));
        let entities = match self.entities {
            1 => "1 entity".to_owned(),
            count => format!("{} entities", grouped(count)),
        };
        let all = [Some(chunks), Some(entities), records];
        let what = if self.deleted { "deleted" } else { "would be deleted" };
        let all: Vec<_> = all.into_iter().flatten().collect();
        writeln!(f, "{} ({}) {what}", all.join(", "), bytes_text(self.bytes))?;
        if self.leftovers > 0 {
            writeln!(f, "{} of columns that are gone {what}", counted(self.leftovers, "object"))?;
        }
        if self.left_detached > 0 {
            let stay = if self.left_detached == 1 { "entity stays" } else { "entities stay" };
            writeln!(
                f,
                "{} detached {stay} that a host took out of the chunks",
                grouped(self.left_detached)
            )?;
        }
        if self.unknown > 0 {
            let stay = if self.unknown == 1 { "stays" } else { "stay" };
            writeln!(
                f,
                "{} of which nobody knows when it was visited {stay}",
                counted(self.unknown, "chunk")
            )?;
        }
        Ok(())
    }
}
