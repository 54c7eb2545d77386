//! `cg snapshot restore`

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use cg_format::BlockId;
use cg_minecraft::name;
use cg_registry::Catalog;
use cg_snapshot::{DryRun, RestoreJob, RestoreOptions, RestoreReport, Snapshot, Unverifiable};
use cg_store::World;
use indicatif::ProgressBar;
use serde::Serialize;

use super::kinds::{self, ByKind, Kinds};
use super::read_kept;
use super::steps::{self, StepsArg};
use crate::args::{BoxArg, WrittenWorldArg};
use crate::cmd::names::NamesArg;
use crate::output::{Failure, Outcome, Output, bytes_text, counted};
use crate::shown::shown;

/// Put a snapshot back where it was taken. Writes, unless it is a dry run.
///
/// With --box only the chunks that the box meets are restored, each as far as the snapshot has it: `cg verify` prints the
/// box of damaged ones.
///
/// All of it is one transaction, whatever its size: a restore that is killed has put back all or nothing. Until it is
/// written, memory holds what changes: for each such section the chunk that is there, the one that comes, its row, and some
/// 0.8 KiB. What takes more than --max-memory is refused, and none of it is put back; a dry run says how much it is. With
/// --in-steps it takes little memory, in transactions of 64 sections, and one that is killed is run again.
/// JSON: `{"dry_run":bool,"transactions":N,"new_names":N,"held_bytes":N,"sections","changed","blocks","components","entities_put",
/// "entities_deleted","left_alone","unverifiable":[…],"components_left":{NAME:N},
/// "by_kind":{NAME:{"gained":N,"lost":N}}}`. Exit code 1 if sections could not be verified, if parts of chunks were left
/// alone that `--create-missing` would restore, or if data of components have no place, or not for all their parts,
/// because the world's registry gives a component another layout or a block no such component: they are kept beside their
/// block, in `:lost_components` or `:stale`. Other data of components are converted by field names.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    #[command(flatten)]
    world: WrittenWorldArg,
    /// The snapshot's name.
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    area: BoxArg,
    /// Only say how many blocks would change, by kind.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    steps: StepsArg,
    /// Leave entities as they are.
    #[arg(long)]
    keep_entities: bool,
    /// Leave sections as they are that cannot be verified, and restore the rest.
    #[arg(long)]
    skip_damaged: bool,
    /// Where only a part of a chunk is in the box and the chunk is not stored, create it, filled with BLOCK outside of the box
    /// [default block: air]; where it was not stored when the snapshot was taken, fill the part with BLOCK.
    #[arg(long, value_name = "BLOCK", num_args = 0..=1, require_equals = true, default_missing_value = name::AIR)]
    create_missing: Option<String>,
    /// Register the names that the world does not know: for a snapshot that was imported.
    #[arg(long)]
    register: bool,
    #[command(flatten)]
    names: NamesArg,
}

#[derive(Debug, Serialize)]
struct Report {
    dry_run: bool,
    transactions: u64,
    /// Names that the world did not know.
    new_names: u64,
    /// About the memory that one transaction of it takes.
    held_bytes: u64,
    sections: u64,
    changed: u64,
    blocks: u64,
    components: u64,
    entities_put: u64,
    entities_deleted: u64,
    left_alone: u64,
    unverifiable: Vec<String>,
    components_left: BTreeMap<String, u64>,
    by_kind: ByKind,
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let world = if args.dry_run { args.world.open(out)? } else { args.world.open_for_writing(out)? };
    let unverifiable = if args.skip_damaged { Unverifiable::Skip } else { Unverifiable::Fail };
    let mut snapshot = read_kept(&world, &args.name, unverifiable)?.0;
    if let Some(area) = args.area.get("run `cg snapshot restore` once for each box")? {
        snapshot = snapshot.within(area.chunks()).ok_or_else(|| {
            Failure::absent(format!("the snapshot `{}` has no block of the box", shown(&args.name)))
        })?;
    }
    let mut options = RestoreOptions {
        entities: !args.keep_entities,
        unverifiable,
        max_held_bytes: if args.dry_run { u64::MAX } else { args.steps.max_held_bytes() },
        ..RestoreOptions::default()
    };
    let (mut catalog, mut new_names) = (world.catalog(), 0);
    if args.register {
        snapshot.forget_unused_names();
        let registration = snapshot.registration(&catalog);
        new_names = args.names.check(&registration)?;
        if args.dry_run {
            let mut as_registered = Catalog::clone(&catalog);
            as_registered.register(&registration).map_err(Failure::failed)?;
            catalog = Arc::new(as_registered);
        } else {
            world.registry().register(&registration)?;
            catalog = world.catalog();
        }
    }
    options.absent = args.create_missing.as_deref().map(|wanted| block(&catalog, wanted)).transpose()?;
    let snapshot = Arc::new(snapshot);
    let progress = out.progress_of("sections restored", snapshot.info().section_count);
    let done = if args.dry_run {
        dry_run(&world, snapshot, &catalog, options, &progress)
    } else {
        restore(&world, snapshot, options, &progress, args.steps.in_steps)
    };
    progress.finish_and_clear();
    let Done { report: done, held_bytes, kinds, transactions } = done?;
    if !args.dry_run {
        world.flush()?;
    }
    let by_kind = kinds.by_name(&catalog);
    world.close()?;
    let report = Report {
        dry_run: args.dry_run,
        transactions,
        new_names,
        held_bytes,
        sections: done.sections,
        changed: done.changed + done.deleted,
        blocks: done.blocks,
        components: done.components,
        entities_put: done.entities_put,
        entities_deleted: done.entities_deleted,
        left_alone: done.left_alone,
        unverifiable: done.unverifiable.iter().map(ToString::to_string).collect(),
        components_left: done.remap.components_left,
        by_kind,
    };
    out.print(&report)?;
    let is_whole =
        report.unverifiable.is_empty() && report.components_left.is_empty() && report.left_alone == 0;
    Ok(Outcome::good_if(is_whole))
}

/// A block of the world, by its name.
fn block(catalog: &Catalog, wanted: &str) -> Result<BlockId, Failure> {
    let mut found = name::of(wanted).ok().and_then(|name| catalog.block_id(name.as_str()));
    // A world that was not imported has the store's own air.
    if wanted == name::AIR {
        found = found.or_else(|| catalog.block_id(":air"));
    }
    found.ok_or_else(|| {
        Failure::usage(format!("the world has no block `{wanted}`; name another with --create-missing=BLOCK"))
    })
}

/// Result of a restore, or of a dry run.
struct Done {
    report: RestoreReport,
    held_bytes: u64,
    kinds: Kinds,
    transactions: u64,
}

/// Counts what a restore would do in a world with the names of a catalog.
fn dry_run(
    world: &World,
    snapshot: Arc<Snapshot>,
    catalog: &Catalog,
    options: RestoreOptions,
    progress: &ProgressBar,
) -> Result<Done, Failure> {
    let mut kinds = Kinds::default();
    let (report, held_bytes) = world.read_view(|view| {
        let mut job = RestoreJob::new(snapshot, catalog, options).map_err(Failure::failed)?;
        let mut as_registered = DryRun::with_schema(view, catalog.current_schema());
        steps::run(&mut job, &mut as_registered, &mut |change| kinds.count(&change), progress)?;
        Ok::<_, Failure>((job.report().clone(), job.held_bytes()))
    })?;
    Ok(Done { report, held_bytes, kinds, transactions: 0 })
}

fn restore(
    world: &World,
    snapshot: Arc<Snapshot>,
    options: RestoreOptions,
    progress: &ProgressBar,
    in_steps: bool,
) -> Result<Done, Failure> {
    let mut kinds = Kinds::default();
    let mut job = RestoreJob::new(snapshot, &world.catalog(), options).map_err(Failure::failed)?;
    let observe = &mut |change| kinds.count(&change);
    let transactions = if in_steps {
        steps::in_steps(world, &mut job, observe, progress)?
    } else {
        steps::all_at_once(world, &mut job, observe, progress)?;
        1
    };
    Ok(Done { report: job.report().clone(), held_bytes: job.held_bytes(), kinds, transactions })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let would = if self.dry_run { "would change" } else { "changed" };
        let (blocks, sections) = (counted(self.blocks, "block"), counted(self.changed, "section"));
        writeln!(f, "{blocks} in {sections} {would}")?;
        kinds::print(&self.by_kind, f)?;
        if self.components > 0 {
            writeln!(f, "the data of {} {would}", counted(self.components, "block"))?;
        }
        if self.entities_put + self.entities_deleted > 0 {
            let would = if self.dry_run { "would be" } else { "were" };
            let (put, deleted) = (self.entities_put, self.entities_deleted);
            writeln!(f, "entities: {put} {would} put back, {deleted} deleted")?;
        }
        if self.new_names > 0 {
            let would = if self.dry_run { "would be" } else { "were" };
            writeln!(f, "{} {would} registered", counted(self.new_names, "name"))?;
        }
        if self.left_alone > 0 {
            let sections = counted(self.left_alone, "section");
            writeln!(
                f,
                "{sections} left alone: of each a part is in the box, and its chunk is not stored, or was not when the snapshot was taken; --create-missing restores them"
            )?;
        }
        if self.dry_run && self.held_bytes > 1 << 20 {
            writeln!(f, "in one transaction that takes {} of memory", bytes_text(self.held_bytes))?;
        }
        for (component, count) in &self.components_left {
            writeln!(f, "kept beside, without a place: data of {} ({count})", shown(component))?;
        }
        if self.transactions > 1 {
            writeln!(f, "done in {}", counted(self.transactions, "transaction"))?;
        }
        self.unverifiable
            .iter()
            .try_for_each(|at| writeln!(f, "{} cannot be verified and stayed as it is", shown(at)))
    }
}
