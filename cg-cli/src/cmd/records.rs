//! `cg records`: what hosts remember at points of the world.

use std::fmt;
use std::ops::ControlFlow;

use cg_format::entity::EntityPos;
use cg_format::record::{Record, RecordView};
use cg_format::{BlockArea, BlockPos, RecordId, key};
use cg_registry::{Catalog, ListKind};
use cg_store::Error;
use cg_store::records::{RecordQuery, RecordSettings};
use serde::Serialize;
use uuid::Uuid;

use super::content::{Content, ContentArg};
use super::name_of;
use crate::args::{AreaArg, DimensionArg, WorldArg, WrittenWorldArg, YesArg};
use crate::decimal::point;
use crate::output::{Failure, Outcome, Output};
use crate::shown::shown;

/// List, add and delete spatial records, and show the shape of their tree.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    List(List),
    Add(Add),
    Delete(Delete),
    Shape(Shape),
}

/// List the records of a dimension or, with `--box`, all of the leaves that the boxes touch.
///
/// A line is UUID, position, timestamp, kind and payload. A damaged record is counted, and makes the exit code 1. JSON:
/// `{"records":[{"id","dimension","block":[X,Y,Z],"fraction":[X,Y,Z],"timestamp","kind","text":TEXT,"hex":HEX}],
/// "damaged":N,"more":bool}`, one of the payload's two null.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    world: WorldArg,
    #[command(flatten)]
    dimension: DimensionArg,
    #[command(flatten)]
    area: AreaArg,
    /// Only those with a later timestamp.
    #[arg(long, value_name = "TIMESTAMP", allow_negative_numbers = true)]
    after: Option<i64>,
    /// Only those of a kind.
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// The greatest number to list.
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

/// Add a record, or replace the one with its UUID. Writes.
///
/// JSON: `{"id"}`.
#[derive(Debug, clap::Args)]
pub(crate) struct Add {
    #[command(flatten)]
    world: WrittenWorldArg,
    #[command(flatten)]
    dimension: DimensionArg,
    /// Where it is, in blocks: decimal numbers, of which every digit before the point counts.
    #[arg(long, num_args = 3, action = clap::ArgAction::Set, value_names = ["X", "Y", "Z"], allow_negative_numbers = true, required = true)]
    at: Vec<String>,
    /// What it is: any text of at most 255 bytes.
    #[arg(long, value_name = "KIND")]
    kind: String,
    /// When it was made, in whatever the host counts.
    #[arg(long, value_name = "TIMESTAMP", default_value_t = 0, allow_negative_numbers = true)]
    timestamp: i64,
    /// Its UUID [default: a random one].
    #[arg(long, value_name = "UUID")]
    id: Option<Uuid>,
    #[command(flatten)]
    content: ContentArg,
}

/// Delete a record. Writes. Exit code 4 if there is none.
///
/// JSON: `{"id","deleted":bool}`.
#[derive(Debug, clap::Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    world: WrittenWorldArg,
    #[arg(value_name = "UUID")]
    id: Uuid,
    #[command(flatten)]
    yes: YesArg,
}

/// Show the shape of the tree that the records lie in and, with `--at`, the way to the leaf around a block.
///
/// JSON: `{"leaf_square_size","tree_degree","num_levels","roots_per_table","leaf_blocks","root_blocks","table_blocks",
/// "leaf":{"table":NAME,"path":[N,…]}}`, where `leaf` is null without `--at`.
#[derive(Debug, clap::Args)]
pub(crate) struct Shape {
    #[command(flatten)]
    world: WorldArg,
    #[command(flatten)]
    dimension: DimensionArg,
    /// A block.
    #[arg(long, num_args = 3, action = clap::ArgAction::Set, value_names = ["X", "Y", "Z"], allow_negative_numbers = true)]
    at: Option<Vec<i64>>,
}

#[derive(Debug, Serialize)]
struct Listed {
    records: Vec<Entry>,
    damaged: u64,
    more: bool,
}

#[derive(Debug, Serialize)]
struct Entry {
    id: Uuid,
    dimension: String,
    block: [i64; 3],
    fraction: [f32; 3],
    timestamp: i64,
    kind: String,
    #[serde(flatten)]
    payload: Content,
}

#[derive(Debug, Serialize)]
struct Added {
    id: Uuid,
}

#[derive(Debug, Serialize)]
struct Deleted {
    id: Uuid,
    deleted: bool,
}

#[derive(Debug, Serialize)]
struct ShapeReport {
    leaf_square_size: u32,
    tree_degree: u32,
    num_levels: u32,
    roots_per_table: u32,
    leaf_blocks: i64,
    root_blocks: i64,
    table_blocks: i64,
    leaf: Option<LeafReport>,
}

#[derive(Debug, Serialize)]
struct LeafReport {
    table: String,
    path: Vec<u32>,
}

pub(crate) fn run(command: &Command, out: &Output) -> Result<Outcome, Failure> {
    match command {
        Command::List(args) => list(args, out),
        Command::Add(args) => add(args, out),
        Command::Delete(args) => delete(args, out),
        Command::Shape(args) => shape(args, out),
    }
}

fn list(args: &List, out: &Output) -> Result<Outcome, Failure> {
    let world = args.world.open(out)?;
    let catalog = world.catalog();
    let dimension = args.dimension.find(&catalog)?;
    let mut query = RecordQuery::in_area(dimension, args.area.get()?.unwrap_or_else(BlockArea::everywhere));
    if let Some(after) = args.after {
        query = query.after(after);
    }
    if let Some(kind) = &args.kind {
        query = query.of_kind(kind);
    }
    let mut listed = Listed { records: Vec::new(), damaged: 0, more: false };
    world.records().for_each_in(&query, |record| {
        match record {
            Ok(_) if listed.records.len() == args.limit as usize => {
                listed.more = true;
                return ControlFlow::Break(());
            }
            Ok((id, record)) => listed.records.push(Entry::of(&catalog, id, &record)),
            Err(_) => listed.damaged += 1,
        }
        ControlFlow::Continue(())
    })?;
    out.print(&listed)?;
    Ok(Outcome::good_if(listed.damaged == 0))
}

fn add(args: &Add, out: &Output) -> Result<Outcome, Failure> {
    let payload = args.content.read()?;
    let (block, fraction) = point(&args.at)?;
    let world = args.world.open_for_writing(out)?;
    let dimension = args.dimension.find(&world.catalog())?;
    let usage = |error: String| Failure::usage(error);
    let position = EntityPos::new(dimension, block, fraction).map_err(|error| usage(error.to_string()))?;
    let record = Record::new(position, &*args.kind, args.timestamp, payload);
    let record = record.map_err(|error| usage(error.to_string()))?;
    let id = args.id.unwrap_or_else(Uuid::new_v4);
    world.transaction(|tx| {
        tx.put_record(RecordId::new(id), record);
        Ok::<_, Error>(())
    })?;
    world.close()?;
    out.print(&Added { id })?;
    Ok(Outcome::Good)
}

fn delete(args: &Delete, out: &Output) -> Result<Outcome, Failure> {
    let id = RecordId::new(args.id);
    args.yes.confirm(&format!("record {id} would be deleted"))?;
    let world = args.world.open_for_writing(out)?;
    let deleted = world.transaction(|tx| {
        let is_there = tx.record(id)?.is_some();
        tx.delete_record(id);
        Ok::<_, Error>(is_there)
    })?;
    let deleted = deleted.value;
    world.close()?;
    out.print(&Deleted { id: args.id, deleted })?;
    Ok(Outcome::good_if_there(deleted))
}

fn shape(args: &Shape, out: &Output) -> Result<Outcome, Failure> {
    let world = args.world.open(out)?;
    let shape = world.records().shape();
    let leaf = match args.at.as_deref() {
        Some(&[x, y, z]) => {
            let leaf = shape.leaf(args.dimension.find(&world.catalog())?, BlockPos::new(x, y, z));
            let table = key::record_table_name(leaf.dimension, leaf.table);
            Some(LeafReport { table, path: leaf.path.numbers().to_vec() })
        }
        Some(_) => return Err(Failure::usage("--at takes three coordinates")),
        None => None,
    };
    let RecordSettings { leaf_square_size, tree_degree, num_levels, roots_per_table } = shape.settings();
    out.print(&ShapeReport {
        leaf_square_size,
        tree_degree,
        num_levels,
        roots_per_table,
        leaf_blocks: shape.leaf_side_blocks(),
        root_blocks: shape.root_side_blocks(),
        table_blocks: shape.table_side_blocks(),
        leaf,
    })?;
    Ok(Outcome::Good)
}

impl Entry {
    fn of(catalog: &Catalog, id: RecordId, record: &RecordView<'_>) -> Self {
        let block = record.position.block();
        Self {
            id: id.get(),
            dimension: name_of(catalog, ListKind::Dimensions, record.position.dimension().get()),
            block: [block.x, block.y, block.z],
            fraction: record.position.fraction(),
            timestamp: record.timestamp,
            kind: record.kind.to_owned(),
            payload: Content::of(record.payload),
        }
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Entry { id, block, fraction, timestamp, kind, payload, .. } in &self.records {
            let ([x, y, z], kind) = (block, shown(kind));
            let rest: String = fraction.iter().map(|part| format!("+{part}")).collect::<Vec<_>>().join(" ");
            writeln!(f, "{id}  {x} {y} {z} ({rest})  {timestamp}  {kind}  {}", payload.line())?;
        }
        if self.more {
            writeln!(f, "and more: --limit says how many are listed")?;
        }
        if self.damaged > 0 {
            writeln!(f, "DAMAGED   {}; `cg verify` says which", self.damaged)?;
        }
        Ok(())
    }
}

impl fmt::Display for Added {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.id)
    }
}

impl fmt::Display for Deleted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = if self.deleted { "was deleted" } else { "is not there" };
        writeln!(f, "record {} {done}", self.id)
    }
}

impl fmt::Display for ShapeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "leaf_square_size  {:>6}   leaf of {} blocks", self.leaf_square_size, self.leaf_blocks)?;
        writeln!(f, "tree_degree       {:>6}", self.tree_degree)?;
        writeln!(f, "num_levels        {:>6}   root of {} blocks", self.num_levels, self.root_blocks)?;
        writeln!(f, "roots_per_table   {:>6}   table of {} blocks", self.roots_per_table, self.table_blocks)?;
        match &self.leaf {
            Some(LeafReport { table, path }) => {
                let path: Vec<_> = path.iter().map(u32::to_string).collect();
                writeln!(f, "leaf              {table} / {}", path.join(" / "))
            }
            None => Ok(()),
        }
    }
}
