//! `cg registry check`: stored values that the types of their components do not allow.

use std::collections::BTreeMap;
use std::fmt;

use cg_store::verify::ValueReport;
use serde::Serialize;

use crate::args::WorldArg;
use crate::output::{Failure, Outcome, Output, counted, grouped};
use crate::shown::shown;

/// Look for stored values that the types of their components do not allow. Changes nothing.
///
/// Reads every chunk, whatever its tier, and every entity, and checks them by the types that the world has now. Side data,
/// objects, properties and records have no types. The first hundred values are shown, and all are counted. Damaged rows
/// are named and counted; their values are not checked, and `cg verify` says more about them.
///
/// JSON: `{"ok":BOOL,"checked":{NAME:N},"illegal":N,"values":["…"],"damaged":N,"damage":["…"]}`. Exit code 1 if `ok` is false.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    world: WorldArg,
}

#[derive(Debug, Serialize)]
struct Report {
    ok: bool,
    checked: BTreeMap<&'static str, u64>,
    illegal: u64,
    values: Vec<String>,
    damaged: u64,
    damage: Vec<String>,
}

pub(super) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let world = args.world.open(out)?;
    let census = world.tiers().census()?;
    let progress = out.progress_of("chunks and entities checked", census.chunks() + census.entities);
    let found = world.registry().check(|checked| progress.set_position(checked));
    progress.finish_and_clear();
    let report = Report::new(found?);
    out.print(&report)?;
    Ok(Outcome::good_if(report.ok))
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
