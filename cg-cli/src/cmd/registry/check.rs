//! `cg registry check`: stored values that the types of their components do not allow.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use cg_format::ComponentId;
use cg_layers::OnDisk;
use cg_registry::{Catalog, ListKind};
use cg_store::World;
use cg_store::verify::ValueReport;
use serde::Serialize;

use crate::args::{WorldArg, options};
use crate::cmd::directory_of;
use crate::output::{Failure, Outcome, Output, counted, grouped};
use crate::shown::shown;

/// Look for stored values that the types of their components do not allow. Changes nothing.
///
/// Reads every chunk, whatever its tier, and every entity, and checks them by the types that the world has now. Side data,
/// objects, properties and records have no types. The first hundred values are shown, and all are counted. Damaged rows
/// are named and counted; their values are not checked, and `cg verify` says more about them.
///
/// Of a segmented world, which holds `root` and `segments`, the root and all segments are checked, each by the types that it has itself: a
/// segment gets those of the root when the segmented world opens it. Segments that have older ones are named.
///
/// JSON: `{"ok":BOOL,"checked":{NAME:N},"illegal":N,"values":["…"],"damaged":N,"damage":["…"]}`. Of a segmented world each of
/// `values` and `damage` begins with its world, such as `segments/0.3.0.0`, and there are `"segments":N` and, where
/// there are any, `"faults":[{"world","illegal","damaged"}]`, `"unread":[{"world","why"}]` for segments that cannot be read, and `"older":[WORLD]` for
/// those with older types. Exit code 1 if `ok` is false.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    world: WorldArg,
}

#[derive(Debug, Default, Serialize)]
struct Report {
    ok: bool,
    checked: BTreeMap<&'static str, u64>,
    illegal: u64,
    values: Vec<String>,
    damaged: u64,
    damage: Vec<String>,
    /// `None` of a world that is not segmented, as the lists after it are empty then.
    #[serde(skip_serializing_if = "Option::is_none")]
    segments: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<Faults>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unread: Vec<Unread>,
    /// Segments whose names and types are older than the root's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    older: Vec<String>,
}

/// How many illegal values and damaged rows one world of a segmented world has.
#[derive(Debug, Serialize)]
struct Faults {
    world: String,
    illegal: u64,
    damaged: u64,
}

/// A segment that cannot be read.
#[derive(Debug, Serialize)]
struct Unread {
    world: String,
    why: String,
}

pub(super) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let report = match args.world.place().segmented() {
        Some(dir) => of_segmented(args, dir, out)?,
        None => Report::new(check(&args.world.open(out)?, out)?),
    };
    out.print(&report)?;
    Ok(Outcome::good_if(report.ok))
}

fn check(world: &World, out: &Output) -> Result<ValueReport, Failure> {
    let census = world.tiers().census()?;
    let progress = out.progress_of("chunks and entities checked", census.chunks() + census.entities);
    let found = world.registry().check(|checked| progress.set_position(checked));
    progress.finish_and_clear();
    Ok(found?)
}

/// Checks the root and all segments.
fn of_segmented(args: &Args, dir: &Path, out: &Output) -> Result<Report, Failure> {
    // It stays open, so no process opens the world for writing meanwhile.
    let root = args.world.open_root(dir, out)?;
    let mut report = Report { ok: true, segments: Some(0), ..Report::default() };
    OnDisk::for_each_world(dir, &options(), |segment, world| {
        let name = directory_of(segment);
        if let (Some(_), Some(count)) = (segment, &mut report.segments) {
            *count += 1;
        }
        let checked = world.map_err(Failure::from).and_then(|world| {
            let found = check(world, out)?;
            if is_older(&world.catalog(), &root.catalog()) {
                report.older.push(name.clone());
            }
            Ok(found)
        });
        match checked {
            Err(failure) if segment.is_some() => {
                report.ok = false;
                report.unread.push(Unread { world: name, why: failure.to_string() });
            }
            checked => report.add(name, checked?),
        }
        Ok::<_, Failure>(())
    })?;
    Ok(report)
}

/// Whether the types of components by which a segment's values are checked are not all those of its root.
fn is_older(segment: &Catalog, root: &Catalog) -> bool {
    let count = |catalog: &Catalog| catalog.list(ListKind::Components).names().len() as u64;
    let mut ids = (0..count(root)).flat_map(|id| [ComponentId::fixed(id), ComponentId::variable(id)]);
    count(segment) != count(root)
        || segment.current_generation() != root.current_generation()
        || ids.any(|id| segment.types(id) != root.types(id))
}

impl Report {
    fn new(found: ValueReport) -> Self {
        Self {
            ok: found.is_ok(),
            illegal: found.illegal,
            values: found.first.iter().map(ToString::to_string).collect(),
            damaged: found.damaged,
            damage: found.first_damaged,
            checked: found.checked,
            ..Self::default()
        }
    }

    /// Adds what was found in one world of a segmented world. All worlds together list as much as one.
    fn add(&mut self, world: String, found: ValueReport) {
        self.ok &= found.is_ok();
        for (what, count) in &found.checked {
            *self.checked.entry(what).or_default() += count;
        }
        let values = found.first.iter().map(|value| format!("{world}: {value}"));
        self.values.extend(values.take(ValueReport::MAX_SHOWN - self.values.len()));
        let damage = found.first_damaged.iter().map(|row| format!("{world}: {row}"));
        self.damage.extend(damage.take(ValueReport::MAX_SHOWN - self.damage.len()));
        let (illegal, damaged) = (found.illegal, found.damaged);
        self.illegal += illegal;
        self.damaged += damaged;
        if !found.is_ok() {
            self.faults.push(Faults { world, illegal, damaged });
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (lines, count) in [(&self.damage, self.damaged), (&self.values, self.illegal)] {
            for line in lines {
                writeln!(f, "{}", shown(line))?;
            }
            let more = count.saturating_sub(lines.len() as u64);
            if more > 0 {
                writeln!(f, "and {} more", grouped(more))?;
            }
        }
        for Faults { world, illegal, damaged } in &self.faults {
            let (illegal, damaged) = (counted(*illegal, "illegal value"), counted(*damaged, "damaged row"));
            writeln!(f, "{world} has {illegal} and {damaged}")?;
        }
        for Unread { world, why } in &self.unread {
            writeln!(f, "{world} is not checked: {}", shown(why))?;
        }
        for world in &self.older {
            writeln!(
                f,
                "{world} has older types than the root and is checked by those; it gets the root's when the segmented world opens it"
            )?;
        }
        if let Some(segments) = self.segments {
            let read = segments - self.unread.len();
            writeln!(f, "read the root and {}", counted(read as u64, "segment"))?;
        }
        let checked: Vec<_> =
            self.checked.iter().map(|(what, count)| format!("{} {what}", grouped(*count))).collect();
        writeln!(f, "checked {}", if checked.is_empty() { "nothing".into() } else { checked.join(", ") })?;
        if self.damaged > 0 {
            writeln!(f, "{} could not be read; `cg verify` says more", counted(self.damaged, "row"))?;
        }
        match self.illegal {
            0 => writeln!(f, "no illegal value found"),
            count => writeln!(f, "{} found", counted(count, "illegal value")),
        }
    }
}
