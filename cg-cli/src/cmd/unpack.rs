//! `cg unpack`: a pack into a world.

mod archived;
mod put;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use cg_format::{BlockPos, Limits};
use cg_registry::{Catalog, Registration};
use cg_snapshot::pack::PackInfo;
use cg_snapshot::{Merge, RestoreOptions, RestoreReport, Snapshot};
use cg_store::{Error, World};
use clap::{ValueEnum, ValueHint};
use serde::Serialize;

use super::names::NamesArg;
use super::pack::ChoiceArg;
use super::snapshot::kinds::{self, ByKind, Kinds};
use super::snapshot::limits;
use super::snapshot::steps::StepsArg;
use crate::args::WrittenWorldArg;
use crate::output::{Failure, Outcome, Output, counted};
use crate::shown::shown;

/// Put a pack into a world. Writes, unless it is a dry run: WORLD is made if it is not there.
///
/// Of a file that `cg archive` wrote, `--box`, `--objects` and `--properties` choose what is put: that is packed first, as `cg pack` packs it,
/// in the folder for temporary files (`TMPDIR`), which holds the columns of the box and all values beside chunks meanwhile.
/// The whole file is checked before anything is written, and again what is written. What its box uses and the world does
/// not know is registered first, in a commit of its own, if that is no more than --max-names allows. The rest is one
/// transaction, whatever its size: killed, all of it is there or nothing. Until it is written, memory holds what it puts;
/// what takes more than --max-memory is refused, and --in-steps takes little, in many transactions: one that was stopped is
/// run again. Objects count by the versions of the world that they come into. An entity or a record keeps
/// its UUID at its own place, and gets another one elsewhere; records of the world that the pack does not have stay. JSON:
/// `{"dry_run":bool,"merge","transactions":N,"new_names":N,"objects_put","objects_unchanged","objects_kept","records_put",
/// "records_unchanged","records_kept","properties_put","properties_unchanged","properties_kept","sections","changed","kept","blocks","components","entities_put","entities_deleted","entities_kept","components_left":{NAME:N},
/// "by_kind":{NAME:{"gained":N,"lost":N}}}`. Data of components are converted by field names. Exit code 1 also if
/// some have no place, or not for all their parts, because the world's registry gives a component another layout or a
/// block no such component: they are kept beside their block, in `:lost_components` or `:stale`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file that `cg pack` wrote, or `cg archive`.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    world: WrittenWorldArg,
    /// The block where the box's lowest corner goes, a multiple of 16 on each axis [default: where it was].
    #[arg(long, num_args = 3, action = clap::ArgAction::Set, value_names = ["X", "Y", "Z"], allow_negative_numbers = true)]
    at: Option<Vec<i64>>,
    /// What happens to objects, properties, chunks, entities and records that are there already.
    #[arg(long, value_enum, default_value_t = MergeArg::Replace)]
    merge: MergeArg,
    /// Only say what would change.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    steps: StepsArg,
    #[command(flatten)]
    names: NamesArg,
    /// Of an archive alone.
    #[command(flatten)]
    choice: ChoiceArg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum MergeArg {
    /// They become as in the pack; where the pack's box has no chunk, the chunk is deleted.
    Replace,
    /// They stay as they are.
    Keep,
}

impl From<MergeArg> for Merge {
    fn from(merge: MergeArg) -> Self {
        match merge {
            MergeArg::Replace => Self::Replace,
            MergeArg::Keep => Self::Keep,
        }
    }
}

/// A pack that was checked from its first byte to its last.
struct Checked {
    file: File,
    /// Limits of the memory that reading it may take.
    limits: Limits,
    info: PackInfo,
    region: Option<Arc<Snapshot>>,
    /// Digest of each part after the box, by which the part is known when it is read again.
    pages: Vec<[u8; 16]>,
}

/// Values of one kind by their outcome.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    put: u64,
    unchanged: u64,
    kept: u64,
}

/// Values of a pack beside its box, by their outcome.
#[derive(Debug, Clone, Copy, Default)]
struct Tallies {
    objects: Tally,
    records: Tally,
    properties: Tally,
}

/// Result of an unpack, or of a dry run.
#[derive(Default)]
struct Done {
    values: Tallies,
    region: RestoreReport,
    kinds: Kinds,
    transactions: u64,
}

#[derive(Debug, Serialize)]
struct Report {
    dry_run: bool,
    merge: MergeArg,
    transactions: u64,
    new_names: u64,
    objects_put: u64,
    objects_unchanged: u64,
    objects_kept: u64,
    records_put: u64,
    records_unchanged: u64,
    records_kept: u64,
    properties_put: u64,
    properties_unchanged: u64,
    properties_kept: u64,
    sections: u64,
    changed: u64,
    kept: u64,
    blocks: u64,
    components: u64,
    entities_put: u64,
    entities_deleted: u64,
    entities_kept: u64,
    components_left: BTreeMap<String, u64>,
    by_kind: ByKind,
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    // Before a world is made for it.
    let failed = |error| Failure::io("read", &args.file, &error);
    let mut file = File::open(&args.file).map_err(failed)?;
    if archived::is_archive(&file).map_err(failed)? {
        let (pack, left) = archived::packed(file, &args.file, &args.choice, out)?;
        file = pack;
        if !left.is_nothing() {
            out.warn(&format!("of the archive's box, {left} stay out"));
        }
    } else if args.choice.is_given() {
        return Err(Failure::usage(
            "a pack is unpacked whole; --box, --dim, --objects, --properties, --without-detached and --without-records choose \
             from an archive",
        ));
    }
    let len_bytes = file.metadata().map_err(failed)?.len();
    let limits = limits(len_bytes);
    let named =
        |failure: Failure| Failure::Known(failure.code(), format!("{}: {failure}", args.file.display()));
    let pack = put::check(file, limits).map_err(named)?;
    let by_chunks = by_chunks(args.at.as_deref(), pack.region.as_deref())?;
    let mut options = RestoreOptions { by_chunks, merge: args.merge.into(), ..RestoreOptions::default() };
    if !args.dry_run {
        // Of what the other values leave.
        options.max_held_bytes = put::left_by_values(&pack, args.steps)?;
    }
    if !args.dry_run && args.world.place().makes_world()? {
        // Before a world is made for it, which has none of the names.
        args.names.check(&registration(&pack, &Catalog::new()))?;
    }
    let (done, catalog, new_names) = if !args.dry_run {
        let world = args.world.open_or_create(out)?;
        check_lengths(&pack.info, &world)?;
        let registration = registration(&pack, &world.catalog());
        let new_names = args.names.check(&registration)?;
        if new_names > 0 {
            world.registry().register(&registration)?;
        }
        let put = if args.steps.in_steps { put::in_steps } else { put::at_once };
        let done = put(&pack, &world, options)?;
        world.flush()?;
        let catalog = world.catalog();
        world.close()?;
        (done, catalog, new_names)
    } else if args.world.place().makes_world()? {
        // As the world that would be made: an empty one.
        would_do(args, &pack, &World::builder().options(&args.world.options()).in_memory()?, options)?
    } else {
        would_do(args, &pack, &args.world.open(out)?, options)?
    };
    let by_kind = done.kinds.by_name(&catalog);
    let Done { values: Tallies { objects, records, properties }, region, transactions, .. } = done;
    let report = Report {
        dry_run: args.dry_run,
        merge: args.merge,
        transactions,
        new_names,
        objects_put: objects.put,
        objects_unchanged: objects.unchanged,
        objects_kept: objects.kept,
        records_put: records.put,
        records_unchanged: records.unchanged,
        records_kept: records.kept,
        properties_put: properties.put,
        properties_unchanged: properties.unchanged,
        properties_kept: properties.kept,
        sections: region.sections,
        changed: region.changed + region.deleted,
        kept: region.kept,
        blocks: region.blocks,
        components: region.components,
        entities_put: region.entities_put,
        entities_deleted: region.entities_deleted,
        entities_kept: region.entities_kept,
        components_left: region.remap.components_left,
        by_kind,
    };
    out.print(&report)?;
    Ok(Outcome::good_if(report.components_left.is_empty()))
}

/// Result that an unpack would have, the world's names after that, and how many of them are new.
fn would_do(
    args: &Args,
    pack: &Checked,
    world: &World,
    options: RestoreOptions,
) -> Result<(Done, Arc<Catalog>, u64), Failure> {
    check_lengths(&pack.info, world)?;
    let mut catalog = Catalog::clone(&world.catalog());
    let registration = registration(pack, &catalog);
    let new_names = args.names.check(&registration)?;
    catalog.register(&registration).map_err(Failure::failed)?;
    Ok((put::dry_run(pack, world, &catalog, options)?, Arc::new(catalog), new_names))
}

/// Names that a pack uses and a catalog does not have.
fn registration(pack: &Checked, catalog: &Catalog) -> Registration {
    pack.region.as_deref().map(|region| region.registration(catalog)).unwrap_or_default()
}

/// How far the box moves.
fn by_chunks(at: Option<&[i64]>, region: Option<&Snapshot>) -> Result<[i64; 3], Failure> {
    let Some(at) = at else { return Ok([0; 3]) };
    let Some(region) = region else {
        return Err(Failure::usage("the pack holds no box, so --at moves nothing"));
    };
    let &[x, y, z] = at else { return Err(Failure::usage("--at takes three coordinates")) };
    let to = BlockPos::new(x, y, z);
    if to.local() != cg_format::LocalPos::new(0, 0, 0) {
        return Err(Failure::usage(format!(
            "chunks move by whole chunks: --at {x} {y} {z} is not a multiple of 16 on each axis"
        )));
    }
    let from = region.region().area().min();
    let by = [(x, from.x), (y, from.y), (z, from.z)].map(|(to, from)| to.checked_sub(from).map(|by| by / 16));
    let [Some(x), Some(y), Some(z)] = by else {
        return Err(Failure::usage("--at is too far from where the box was"));
    };
    let dimension = region.region().dimension();
    match region.region().moved(dimension, [x, y, z]) {
        Some(_) => Ok([x, y, z]),
        None => Err(Failure::usage("the box does not lie in the world there")),
    }
}

/// Refuses a value that no transaction of the world could take.
fn check_lengths(info: &PackInfo, world: &World) -> Result<(), Failure> {
    let limits = world.limits();
    for (what, len_bytes, limit_bytes) in [
        ("object", info.longest_object_bytes, limits.object_bytes),
        ("record", info.records.longest_bytes, limits.record_bytes),
        ("property", info.properties.longest_bytes, limits.property_bytes),
    ] {
        if len_bytes > limit_bytes {
            let what = format!("the longest {what} of the pack");
            return Err(Error::TooLarge { what, len_bytes, limit_bytes }.into());
        }
    }
    Ok(())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let would = if self.dry_run { "would be" } else { "were" };
        if self.new_names > 0 {
            writeln!(f, "names that {would} registered: {}", self.new_names)?;
        }
        for (what, put, unchanged, kept) in [
            ("objects", self.objects_put, self.objects_unchanged, self.objects_kept),
            ("records", self.records_put, self.records_unchanged, self.records_kept),
            ("properties", self.properties_put, self.properties_unchanged, self.properties_kept),
        ] {
            if put + unchanged + kept > 0 {
                writeln!(f, "{what}: {put} {would} put, {unchanged} unchanged, {kept} kept")?;
            }
        }
        if self.sections > 0 {
            let (changed, kept) = (self.changed, self.kept);
            writeln!(f, "chunks: {changed} of {} {would} changed, {kept} kept", self.sections)?;
            kinds::print(&self.by_kind, f)?;
        }
        if self.components > 0 {
            writeln!(f, "the data of {} {would} changed", counted(self.components, "block"))?;
        }
        let (put, deleted, kept) = (self.entities_put, self.entities_deleted, self.entities_kept);
        if put + deleted + kept > 0 {
            writeln!(f, "entities: {put} {would} put, {deleted} deleted, {kept} kept")?;
        }
        for (component, count) in &self.components_left {
            writeln!(f, "kept beside, without a place: data of {} ({count})", shown(component))?;
        }
        match self.transactions {
            0 => Ok(()),
            1 => writeln!(f, "in one transaction"),
            count => writeln!(f, "done in {}", counted(count, "transaction")),
        }
    }
}
