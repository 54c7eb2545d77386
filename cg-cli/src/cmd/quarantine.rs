//! `cg quarantine`: damaged rows that were quarantined, so that one of them never blocks a world.

use std::fmt;

use cg_format::{ChunkAt, ChunkBox, ChunkPos, EntityId, RecordId, Space};
use cg_registry::ListKind;
use cg_store::World;
use cg_store::engine::CommitSeq;
use cg_store::objects::ObjectKey;
use cg_store::quarantine::SalvagedCommit;
use serde::Serialize;
use uuid::Uuid;

use super::name_of;
use super::object::key as object_key;
use crate::args::{BoxArg, DimensionArg, WorldArg, WrittenWorldArg, YesArg, chunk_pos};
use crate::output::{Failure, Outcome, Output, bytes_text, counted, grouped, hex, unhex};

/// List, quarantine and forget damaged rows.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    List(List),
    #[command(alias = "set-aside")]
    Add(Add),
    #[command(alias = "forget")]
    Delete(Delete),
}

/// List what was quarantined: one line per copy, those of one row from the oldest.
///
/// A line begins with SPACE, KEY and COMMIT: `cg dump --quarantined SPACE KEY COMMIT` shows the copy, `forget` deletes
/// it. JSON: `{"quarantined":[{"space","key","commit","bytes"}]}`.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    world: WorldArg,
}

/// Set damaged chunks, an entity, an object, a record or a commit aside: the row is kept in quarantine, and what it held is
/// absent from then on. Writes.
///
/// A chunk may then be generated again or restored from a backup; its entities stay, detached. Of a box all damaged chunks are
/// quarantined, and sound ones are left alone; what can be read around them is written anew, so that nothing there is in the way of any
/// command. `cg verify` prints the box. Of an entity, the chunk
/// that refers to it is searched for in the whole world, and lets go of it. An object counts from 0 when it is written
/// anew. A record that is sound is found again if its place is damaged or lost. Of a large commit that keeps the world
/// closed, as it is to be rolled forward and a part of it is damaged, what the other parts write is there afterwards; restore
/// a checkpoint if there is one. A segment and the root of a segmented world are worlds too: `WORLD/root`. What is not
/// damaged is left alone (exit code 1); exit code 4 if it is not there.
#[derive(Debug, clap::Args)]
#[group(id = "damaged", required = true, multiple = false, args = ["corners", "chunk", "entity", "object", "record", "commit"])]
pub(crate) struct Add {
    #[command(flatten)]
    world: WrittenWorldArg,
    #[command(flatten)]
    dimension: DimensionArg,
    #[command(flatten)]
    area: BoxArg,
    /// The position of the chunk, in chunks.
    #[arg(long, num_args = 3, action = clap::ArgAction::Set, value_names = ["X", "Y", "Z"], allow_negative_numbers = true)]
    chunk: Option<Vec<i64>>,
    /// The UUID of the entity.
    #[arg(long, value_name = "UUID")]
    entity: Option<Uuid>,
    /// The key of the object, as `cg object list` shows it.
    #[arg(long, value_name = "KEY")]
    object: Option<String>,
    /// The UUID of the record.
    #[arg(long, value_name = "UUID")]
    record: Option<Uuid>,
    /// The commit with which the world does not open.
    #[arg(long)]
    commit: bool,
    #[command(flatten)]
    yes: YesArg,
}

/// Delete one copy from quarantine for good. Writes. Exit code 4 if it is not there.
#[derive(Debug, clap::Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    world: WrittenWorldArg,
    /// What the row was, as `list` names it.
    #[arg(value_name = "SPACE")]
    space: String,
    /// The row's key in hexadecimal, as `list` shows it.
    #[arg(value_name = "KEY")]
    key: String,
    /// The commit that set it aside, as `list` shows it.
    #[arg(value_name = "COMMIT")]
    commit: String,
    #[command(flatten)]
    yes: YesArg,
}

#[derive(Debug, Serialize)]
struct Listed {
    quarantined: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    space: String,
    key: String,
    commit: u64,
    bytes: usize,
}

/// Refuses a box of more chunks than are looked at in about a minute.
pub(crate) fn refuse_large(bounds: &ChunkBox) -> Result<(), Failure> {
    const MAX_CHUNKS: u128 = 1 << 24;
    if bounds.count() <= MAX_CHUNKS {
        return Ok(());
    }
    let (count, max) = (bounds.count(), grouped(MAX_CHUNKS as u64));
    Err(Failure::usage(format!(
        "the box has room for {count} chunks, and each would be looked at; name one of {max} at most"
    )))
}

/// Chunks or row to be quarantined.
enum Damaged {
    Box(ChunkBox),
    Chunk(ChunkPos),
    Entity(Uuid),
    Object(ObjectKey),
    Record(Uuid),
}

impl Damaged {
    const fn noun(&self) -> &'static str {
        match self {
            Self::Box(_) => "damaged chunks",
            Self::Chunk(_) => "chunk",
            Self::Entity(_) => "entity",
            Self::Object(_) => "object",
            Self::Record(_) => "record",
        }
    }
}

impl Add {
    fn damaged(&self) -> Result<Damaged, Failure> {
        let Self { area, chunk, entity, object, record, .. } = self;
        if let Some(blocks) = area.get("run `cg quarantine add` once for each box")? {
            return Ok(Damaged::Box(blocks.chunks()));
        }
        match (chunk, entity, object, record) {
            (Some(pos), ..) => Ok(Damaged::Chunk(chunk_pos(pos)?)),
            (_, Some(uuid), ..) => Ok(Damaged::Entity(*uuid)),
            (_, _, Some(text), _) => Ok(Damaged::Object(object_key(text)?)),
            (.., Some(uuid)) => Ok(Damaged::Record(*uuid)),
            _ => Err(Failure::usage(
                "say what is damaged: --box, --chunk, --entity, --object, --record or --commit",
            )),
        }
    }
}

/// Result for one chunk or row.
#[derive(Debug, Serialize)]
struct Done {
    done: bool,
    what: String,
}

pub(crate) fn run(command: &Command, out: &Output) -> Result<Outcome, Failure> {
    match command {
        Command::List(args) => list(args, out),
        Command::Add(args) if args.commit => salvage_commit(args, out),
        Command::Add(args) => quarantine_chunk(args, out),
        Command::Delete(args) => delete(args, out),
    }
}

fn list(args: &List, out: &Output) -> Result<Outcome, Failure> {
    let rows = args.world.open(out)?.quarantine().list()?;
    let rows = rows.into_iter().map(|row| Row {
        space: space_name(row.space),
        key: hex(&row.key),
        commit: row.commit.get(),
        bytes: row.bytes.len(),
    });
    out.print(&Listed { quarantined: rows.collect() })?;
    Ok(Outcome::Good)
}

fn quarantine_chunk(args: &Add, out: &Output) -> Result<Outcome, Failure> {
    let damaged = args.damaged()?;
    let what = damaged.noun();
    let but = match &damaged {
        Damaged::Box(_) | Damaged::Chunk(_) => ", or without a change where that alone is damaged",
        _ => "",
    };
    args.yes.confirm(&format!("the {what} would be absent from the world from then on{but}"))?;
    let world = args.world.open_for_writing(out)?;
    let (done, is_there, which) = match damaged {
        Damaged::Box(bounds) => {
            refuse_large(&bounds)?;
            let dimension = args.dimension.find(&world.catalog())?;
            let done = world.quarantine().chunks_in(dimension, bounds)?;
            world.close()?;
            let mut chunks = counted(done.chunks, "chunk");
            if done.without_deltas > 0 {
                let changed = counted(done.without_deltas, "chunk");
                chunks = format!("changes of {changed}, without which those stay, and {chunks}");
            }
            let what = if done.is_clear {
                format!("{chunks} quarantined; nothing in the box is damaged any more")
            } else {
                format!(
                    "{chunks} quarantined; damage there costs chunks outside of the box too: run `cg verify`"
                )
            };
            out.print(&Done { done: done.is_clear, what })?;
            return Ok(Outcome::good_if(done.is_clear));
        }
        Damaged::Chunk(pos) => {
            let catalog = world.catalog();
            let dimension = args.dimension.find(&catalog)?;
            let name = name_of(&catalog, ListKind::Dimensions, dimension.get());
            let (x, y, z) = (pos.x(), pos.y(), pos.z());
            let at = ChunkAt::new(dimension, pos);
            let done = world.quarantine().chunk(at)?;
            let (is_there, chunk) = (world.load(at)?.is_some(), format!("chunk {x} {y} {z} of {name}"));
            let which = if done && is_there {
                format!("a change of {chunk}, which stays without it,")
            } else {
                chunk
            };
            (done, done || is_there, which)
        }
        Damaged::Entity(uuid) => {
            let id = EntityId::new(uuid);
            let done = world.quarantine().entity(id)?;
            (done, done || world.entity(id)?.is_some(), format!("entity {uuid}"))
        }
        Damaged::Object(key) => {
            let done = world.quarantine().object(&key)?;
            (done, done || world.objects().version(&key)?.is_some(), format!("object `{key}`"))
        }
        Damaged::Record(uuid) => {
            let id = RecordId::new(uuid);
            let done = world.quarantine().record(id)?;
            (done, done || world.records().get(id)?.is_some(), format!("record {uuid}"))
        }
    };
    world.close()?;
    let what = match (done, is_there) {
        (true, _) => "was quarantined",
        (false, true) => "is not damaged and was left alone",
        (false, false) => "is not there",
    };
    out.print(&Done { done, what: format!("{which} {what}") })?;
    Ok(if is_there { Outcome::good_if(done) } else { Outcome::Absent })
}

/// Loss to confirm before a commit is quarantined.
pub(crate) const LOST: &str = "what the damaged parts of the commit would have written would be lost";

fn salvage_commit(args: &Add, out: &Output) -> Result<Outcome, Failure> {
    args.yes.confirm(LOST)?;
    let found = args.world.when_free(out, || {
        args.world.place().salvage_commit(World::builder().options(&args.world.options()))
    })?;
    show_commit(found, "run `cg verify` now", out)
}

/// Says what became of a damaged commit, and what is to be done next.
pub(crate) fn show_commit(
    found: Option<SalvagedCommit>,
    next: &str,
    out: &Output,
) -> Result<Outcome, Failure> {
    let done = found.is_some();
    let what = match found {
        None => "no commit is damaged, and nothing was done".to_owned(),
        Some(SalvagedCommit { rolled_forward_parts, lost }) => {
            let rows = lost.iter().map(|(row, what)| format!("\n  {}: {what}", hex(row)));
            let rows: String = rows.collect();
            format!(
                "{rolled_forward_parts} parts of the commit were rolled forward; quarantined:{rows}\n{next}"
            )
        }
    };
    out.print(&Done { done, what })?;
    Ok(Outcome::good_if(done))
}

fn delete(args: &Delete, out: &Output) -> Result<Outcome, Failure> {
    let Delete { space, key, commit, .. } = args;
    let (of, row, by) = copy_named(space, key, commit)?;
    args.yes.confirm("the quarantined row would be deleted for good")?;
    let world = args.world.open_for_writing(out)?;
    let done = world.quarantine().delete(of, &row, CommitSeq::new(by))?;
    world.close()?;
    let what = if done { "was deleted" } else { "is not in quarantine" };
    out.print(&Done { done, what: format!("{space} {key} {commit} {what}") })?;
    Ok(Outcome::good_if_there(done))
}

/// A copy in quarantine by its kind of row, its key in hexadecimal and its commit, as `list` shows them.
pub(crate) fn copy_named(space: &str, key: &str, commit: &str) -> Result<(Space, Vec<u8>, u64), Failure> {
    let row = unhex(key).ok_or_else(|| {
        Failure::usage(format!("`{key}` is no key in hexadecimal; `cg quarantine list` shows the keys"))
    })?;
    let by = commit.parse().map_err(|_| {
        Failure::usage(format!("`{commit}` is no number of a commit; `cg quarantine list` shows the commits"))
    })?;
    Ok((space_named(space)?, row, by))
}

/// A space as commands name it.
fn space_name(space: Space) -> String {
    format!("{space:?}")
}

/// The space of a name, in upper or lower case.
fn space_named(name: &str) -> Result<Space, Failure> {
    let found = Space::ALL.into_iter().find(|space| space_name(*space).eq_ignore_ascii_case(name));
    found.ok_or_else(|| {
        let all = Space::ALL.map(space_name).join(", ");
        Failure::usage(format!("`{name}` is no kind of row; there are {all}"))
    })
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.quarantined.is_empty() {
            return writeln!(f, "nothing is in quarantine");
        }
        for Row { space, key, commit, bytes } in &self.quarantined {
            let bytes = bytes_text(*bytes as u64);
            writeln!(f, "{space} {key} {commit}  quarantined by commit {commit}, {bytes}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.what)
    }
}
