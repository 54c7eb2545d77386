//! `cg settings`: what a launcher shows of a world, and what a server needs before the first player joins.

mod change;
mod found;
mod values;

use std::fmt;
use std::path::PathBuf;

use cg_store::Error;
use clap::ValueHint;
use serde::Serialize;

use self::change::Change;
pub(super) use self::found::{Damaged, Found};
pub(super) use self::values::Values;
use crate::args::WrittenWorldArg;
use crate::output::{Failure, Outcome, Output};
use crate::shown::shown;

/// Show the settings of a world, set them and remove them. Writes, if there is something to set or to remove.
///
/// `name`, `engine`, `game_mode` and `difficulty` are texts of at most 256 bytes. `created_ms` and `changed_ms` (milliseconds
/// since 1970), `seed`, `time`, `game_time`, `rain_time`, `thunder_time`, `required_sleep_ticks` and `tick_range` are whole
/// numbers. `time_cycle`, `raining`, `thundering` and `weather_cycle` are `true` or `false`. `spawn` is a dimension and a
/// block: 'spawn=minecraft:overworld 8 64 -8'. `thumbnail` is a PNG file: --thumbnail sets it, `cg info --thumbnail` writes
/// it to a file. All are set and removed in one commit, or none is. While a server has the world open, the file
/// `settings.txt` beside `world.cg` has a copy.
///
/// A text is shown with its backslashes doubled and without control characters; JSON has it as it is. JSON:
/// `{"settings":{NAME:VALUE},"damaged":[{"setting","problem"}]}`, where a value is a text, a number, a bool, `spawn` is
/// `{"dimension","x","y","z"}` and `thumbnail` is `{"bytes"}`; of a change `{"set":{NAME:VALUE},"removed":[NAME]}`. Exit
/// code 1 if a setting is damaged; the others are shown. Exit code 4 if one is to be removed that is not there.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    world: WrittenWorldArg,
    /// Settings with the values to set; without any, and without --unset and --thumbnail, all are shown.
    #[arg(value_name = "NAME=VALUE")]
    assignments: Vec<String>,
    /// Remove this setting; may be given several times, and then removes all of them.
    #[arg(long, value_name = "NAME")]
    unset: Vec<String>,
    /// Set the thumbnail: a PNG file of at most 256 KiB.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    thumbnail: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Report {
    settings: Values,
    damaged: Vec<Damaged>,
}

#[derive(Debug, Serialize)]
struct Changed {
    set: Values,
    removed: Vec<&'static str>,
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    match Change::read(&args.assignments, &args.unset, args.thumbnail.as_deref())? {
        Some(change) => set(args, &change, out),
        None => show(args, out),
    }
}

fn show(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let world = args.world.open(out)?;
    let found = Found::read(&world)?;
    let report = Report { settings: Values::of(&found.settings), damaged: found.damaged };
    out.print(&report)?;
    Ok(Outcome::good_if(report.damaged.is_empty()))
}

fn set(args: &Args, change: &Change<'_>, out: &Output) -> Result<Outcome, Failure> {
    let world = args.world.open_for_writing(out)?;
    let catalog = world.catalog();
    let settings = change.settings(&catalog)?;
    for (name, property) in change.removed() {
        if !found::is_there(&world, &property)? {
            return Err(change::absent(name));
        }
    }
    let written = world.transaction(|tx| {
        tx.set_settings(&settings)?;
        for (_, property) in change.removed() {
            tx.set_property(property, None);
        }
        Ok::<_, Error>(())
    });
    written.map_err(|error| change.refused(error))?;
    world.close()?;
    let removed = change.removed().map(|(name, _)| name).collect();
    out.print(&Changed { set: Values::of(&settings), removed })?;
    Ok(Outcome::Good)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.settings.is_empty() && self.damaged.is_empty() {
            return writeln!(f, "the world has no settings");
        }
        write!(f, "{}", self.settings)?;
        for damaged in &self.damaged {
            writeln!(f, "DAMAGED {}", shown(&damaged.to_string()))?;
        }
        Ok(())
    }
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.set)?;
        for name in &self.removed {
            writeln!(f, "{name} was removed")?;
        }
        Ok(())
    }
}
