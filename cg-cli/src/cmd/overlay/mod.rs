//! `cg overlay`: arenas over a world: what they changed, merging one into the world, and giving up what is damaged.

mod reset_damaged;

use std::fmt;
use std::path::PathBuf;

use cg_layers::{Arenas, Difference, Overlay};

use cg_registry::{Catalog, ListKind};
use cg_store::World;
use clap::ValueHint;
use serde::Serialize;

use super::name_of;
use super::quarantine::{LOST, show_commit};
use crate::args::{WaitArg, WorldArg, WrittenWorldArg, YesArg, options};
use crate::output::{Failure, Outcome, Output, counted};
use crate::place::DirectoryParser;

/// Compare an arena with the world it lies over, or merge it into that.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Diff(Diff),
    #[command(alias = "promote")]
    Merge(Merge),
    ResetDamaged(reset_damaged::Args),
    #[command(alias = "set-aside")]
    Salvage(Salvage),
}

/// List what an arena shows otherwise than the world that it lies over.
///
/// One line per chunk, entity, property, object and record: `added`, `changed` or `deleted`. JSON:
/// `{"arena":N,"chunks":[{"what","dimension","x","y","z"}],"entities":[{"what","uuid"}],"properties":[{"what","name"}],
/// "objects":[{"what","key"}],"records":[{"what","uuid"}]}`.
#[derive(Debug, clap::Args)]
pub(crate) struct Diff {
    #[command(flatten)]
    layers: LayersArg<WorldArg>,
}

/// Merge what an arena shows otherwise into the world that it lies over, whole or not at all. Writes both.
///
/// Refused if the world has changed what the arena wrote over. The arena is empty afterwards. JSON: `{"arena":N,"changes":N}`.
#[derive(Debug, clap::Args)]
pub(crate) struct Merge {
    #[command(flatten)]
    layers: LayersArg<WrittenWorldArg>,
    #[command(flatten)]
    yes: YesArg,
}

/// Set the damaged parts of a large commit aside with which the arenas do not open. Writes.
///
/// What the other parts write is there afterwards. Works on the arenas alone, and needs them closed. What is not damaged is
/// left alone (exit code 1).
#[derive(Debug, clap::Args)]
pub(crate) struct Salvage {
    /// The directory of the arenas, which holds `overlay`.
    #[arg(value_name = "ARENAS", value_hint = ValueHint::DirPath, value_parser = DirectoryParser)]
    arenas: PathBuf,
    #[command(flatten)]
    wait: WaitArg,
    #[command(flatten)]
    yes: YesArg,
}

#[derive(Debug, clap::Args)]
struct LayersArg<W: clap::Args> {
    #[command(flatten)]
    world: W,
    /// The directory of the arenas, which holds `overlay`.
    #[arg(value_name = "ARENAS", value_hint = ValueHint::DirPath, value_parser = DirectoryParser)]
    arenas: PathBuf,
    /// The arena's number.
    #[arg(long, value_name = "N", default_value_t = 0)]
    arena: u32,
}

#[derive(Debug, Serialize)]
struct DiffReport {
    arena: u32,
    chunks: Vec<ChunkLine>,
    entities: Vec<EntityLine>,
    properties: Vec<PropertyLine>,
    objects: Vec<ObjectLine>,
    records: Vec<EntityLine>,
}

#[derive(Debug, Serialize)]
struct PropertyLine {
    what: &'static str,
    name: String,
}

#[derive(Debug, Serialize)]
struct ObjectLine {
    what: &'static str,
    key: String,
}

#[derive(Debug, Serialize)]
struct ChunkLine {
    what: &'static str,
    dimension: String,
    x: i64,
    y: i64,
    z: i64,
}

#[derive(Debug, Serialize)]
struct EntityLine {
    what: &'static str,
    uuid: String,
}

#[derive(Debug, Serialize)]
struct MergeReport {
    arena: u32,
    changes: u64,
}

/// The way to do the same over a database.
const INSTEAD: &str = "arenas lie over a world in a directory, `cg copy` makes one";

pub(crate) fn run(command: &Command, out: &Output) -> Result<Outcome, Failure> {
    match command {
        Command::Diff(args) => diff(args, out),
        Command::Merge(args) => merge(args, out),
        Command::ResetDamaged(args) => reset_damaged::run(args, out),
        Command::Salvage(args) => {
            args.yes.confirm(LOST)?;
            let found =
                args.wait.when_free(out, || Arenas::<World>::salvage_commit(&args.arenas, &options()))?;
            show_commit(found, "run `cg overlay diff` now", out)
        }
    }
}

fn diff(args: &Diff, out: &Output) -> Result<Outcome, Failure> {
    let LayersArg { world, arenas, arena } = &args.layers;
    world.place().directory(INSTEAD)?;
    let base = world.open(out)?;
    let opened = world.when_free(out, || Arenas::open_read_only(arenas, base.clone(), &options()));
    let overlay: Overlay<World> = opened?.resume(*arena)?;
    let catalog = overlay.catalog()?;
    let diff = overlay.diff()?;
    let chunk = |(at, difference): (cg_format::ChunkAt, Difference)| ChunkLine {
        what: word(difference),
        dimension: dimension(&catalog, at),
        x: at.pos.x(),
        y: at.pos.y(),
        z: at.pos.z(),
    };
    let chunks = diff.chunks.into_iter().map(chunk).collect();
    let entities = diff
        .entities
        .into_iter()
        .map(|(id, difference)| EntityLine { what: word(difference), uuid: id.to_string() })
        .collect();
    let properties = diff.properties.into_iter();
    let properties = properties
        .map(|(property, difference)| PropertyLine { what: word(difference), name: property.to_string() })
        .collect();
    let object = |(key, difference): (cg_store::objects::ObjectKey, Difference)| ObjectLine {
        what: word(difference),
        key: key.to_string(),
    };
    let objects = diff.objects.into_iter().map(object).collect();
    let records = diff
        .records
        .into_iter()
        .map(|(id, difference)| EntityLine { what: word(difference), uuid: id.to_string() })
        .collect();
    out.print(&DiffReport { arena: *arena, chunks, entities, properties, objects, records })?;
    Ok(Outcome::Good)
}

fn merge(args: &Merge, out: &Output) -> Result<Outcome, Failure> {
    let LayersArg { world, arenas, arena } = &args.layers;
    let path = world.place().directory(INSTEAD)?;
    args.yes
        .confirm(&format!("arena {arena} would be merged into {} and be empty afterwards", path.display()))?;
    let base = world.open_for_writing(out)?;
    let opened = world.when_free(out, || Arenas::open(arenas, base.clone(), &world.options()));
    let overlay = opened?.resume(*arena)?;
    let merged = overlay.merge_into(&base)?;
    drop(overlay);
    base.close()?;
    out.print(&MergeReport { arena: *arena, changes: merged.changes })?;
    Ok(Outcome::Good)
}

fn dimension(catalog: &Catalog, at: cg_format::ChunkAt) -> String {
    name_of(catalog, ListKind::Dimensions, at.dimension.get())
}

const fn word(difference: Difference) -> &'static str {
    match difference {
        Difference::Added => "added",
        Difference::Changed => "changed",
        Difference::Deleted => "deleted",
    }
}

impl fmt::Display for DiffReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ChunkLine { what, dimension, x, y, z } in &self.chunks {
            writeln!(f, "{what:<8} chunk {x}, {y}, {z} of {dimension}")?;
        }
        for EntityLine { what, uuid } in &self.entities {
            writeln!(f, "{what:<8} entity {uuid}")?;
        }
        for PropertyLine { what, name } in &self.properties {
            writeln!(f, "{what:<8} property {name}")?;
        }
        for ObjectLine { what, key } in &self.objects {
            writeln!(f, "{what:<8} object {key}")?;
        }
        for EntityLine { what, uuid } in &self.records {
            writeln!(f, "{what:<8} record {uuid}")?;
        }
        let (chunks, entities) = (self.chunks.len() as u64, self.entities.len() as u64);
        let entities = if entities == 1 { "1 entity".into() } else { format!("{entities} entities") };
        let properties = match self.properties.len() {
            0 => String::new(),
            1 => ", 1 property".into(),
            count => format!(", {count} properties"),
        };
        let kept = [(self.objects.len(), "object"), (self.records.len(), "record")];
        let kept = kept.into_iter().filter(|(count, _)| *count > 0);
        let kept: String = kept.map(|(count, what)| format!(", {}", counted(count as u64, what))).collect();
        let kept = properties + &kept;
        writeln!(f, "{} and {entities}{kept} differ", counted(chunks, "chunk"))
    }
}

impl fmt::Display for MergeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} merged from arena {}", counted(self.changes, "change"), self.arena)
    }
}
