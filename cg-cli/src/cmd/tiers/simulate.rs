//! `cg tiers simulate`: what a policy would have done with a recorded trace.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use cg_tiering::TierPolicy;
use cg_tiering::simulate::{Comparison, StoreModel, simulate};
use cg_tiering::trace::{Event, TraceReader};
use clap::ValueHint;
use serde::Serialize;

use super::span::ticks;
use crate::output::{Failure, Outcome, Output};

/// Replay a trace against the default policy and another one, and print what each would have read and written.
///
/// JSON: `{"settings":[{"name","one_read_share","keys_per_load","loaded_bytes","moves_read_bytes","moves_written_bytes",
/// "write_amplification","chunks":[L0,L1,L2]}]}`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A trace, as a world with a recorder writes it.
    #[arg(value_name = "TRACE", value_hint = ValueHint::FilePath)]
    trace: PathBuf,
    /// Game time without access from which a chunk is warm, as in 5m.
    #[arg(long, value_name = "SPAN", value_parser = ticks)]
    x: Option<u64>,
    /// Game time without access from which a chunk is cold, as in 30m.
    #[arg(long, value_name = "SPAN", value_parser = ticks)]
    y: Option<u64>,
    /// Blocks to the nearest player from which a chunk is cold.
    #[arg(long, value_name = "BLOCKS")]
    z: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Report {
    settings: Vec<Setting>,
    #[serde(skip)]
    table: Comparison,
}

#[derive(Debug, Serialize)]
struct Setting {
    name: String,
    one_read_share: f64,
    keys_per_load: f64,
    loaded_bytes: u64,
    moves_read_bytes: u64,
    moves_written_bytes: u64,
    write_amplification: Option<f64>,
    chunks: [u64; 3],
}

pub(super) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let bytes = fs::read(&args.trace).map_err(|error| Failure::io("read", &args.trace, &error))?;
    let events =
        TraceReader::new(&bytes).and_then(Iterator::collect::<Result<Vec<Event>, _>>).map_err(|problem| {
            Failure::damaged(format!("{} is no sound trace: {problem}", args.trace.display()))
        })?;
    let default = TierPolicy::default();
    let mut settings = vec![("default".to_owned(), default)];
    let asked = TierPolicy {
        warm_after_ticks: args.x.unwrap_or(default.warm_after_ticks),
        cold_after_ticks: args.y.unwrap_or(default.cold_after_ticks),
        cold_distance_blocks: args.z.unwrap_or(default.cold_distance_blocks),
        ..default
    };
    if asked != default {
        settings.push(("asked for".to_owned(), asked));
    }
    let mut table = Comparison::default();
    for (name, policy) in settings {
        let report = simulate(events.iter().copied(), policy, StoreModel::default())
            .map_err(|error| Failure::usage(error.to_string()))?;
        table.0.push((name, report));
    }
    let settings = table.0.iter().map(|(name, report)| Setting {
        name: name.clone(),
        one_read_share: report.hot_share(),
        keys_per_load: report.keys_per_load(),
        loaded_bytes: report.load_bytes,
        moves_read_bytes: report.move_read_bytes,
        moves_written_bytes: report.move_write_bytes,
        write_amplification: report.write_amplification(),
        chunks: report.chunks,
    });
    out.print(&Report { settings: settings.collect(), table: table.clone() })?;
    Ok(Outcome::Good)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.fmt(f)
    }
}
