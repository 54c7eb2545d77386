//! `cg registry plan`: what opening a world with some packs would change.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use cg_registry::{Action, MissingPacks, Name, PackManifest, Plan, Policy};
use cg_store::{World, WorldOptions};
use clap::ValueHint;
use serde::Serialize;

use crate::args::{WorldArg, options};
use crate::output::{Failure, Outcome, Output};

/// Say what opening the world with some packs would change, and change nothing.
///
/// JSON: `{"accepted":BOOL,"unchanged":BOOL,"schema_generation":[BEFORE,AFTER],"actions":[{"what","cost",
/// "reversible"}]}`. Exit code 1 if the packs are refused.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    world: WorldArg,
    /// A pack's manifest; may be given several times, once for each pack, all of them together.
    #[arg(long = "pack", value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    packs: Vec<PathBuf>,
    #[command(flatten)]
    policy: PolicyArgs,
}

/// What to do where there is more than one answer.
#[derive(Debug, clap::Args)]
pub(super) struct PolicyArgs {
    /// What becomes of the blocks of a pack that is gone: keep, refuse, or the name of a block to show for them.
    #[arg(long, value_name = "keep|refuse|BLOCK", default_value = "keep", value_parser = missing)]
    missing: MissingPacks,
    /// Let components get shorter although stored bytes are cut off.
    #[arg(long)]
    allow_shrink: bool,
    /// Let a pack take over the namespace of one that is gone.
    #[arg(long)]
    allow_takeover: bool,
}

impl PolicyArgs {
    /// Options with these choices.
    pub(super) fn options(&self, world: WorldOptions) -> WorldOptions {
        let packs = Policy {
            missing: self.missing.clone(),
            allow_shrink: self.allow_shrink,
            allow_takeover: self.allow_takeover,
            ..Policy::default()
        };
        WorldOptions { packs, ..world }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) accepted: bool,
    unchanged: bool,
    schema_generation: (u32, u32),
    actions: Vec<ActionReport>,
    #[serde(skip)]
    text: String,
}

#[derive(Debug, Serialize)]
struct ActionReport {
    what: String,
    cost: String,
    reversible: bool,
}

pub(super) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let packs = read_packs(&args.packs)?;
    let options = args.policy.options(options());
    let plan = args
        .world
        .when_free(out, || args.world.place().plan(World::builder().packs(&packs).options(&options)))?;
    let report = Report::from(&plan);
    out.print(&report)?;
    Ok(Outcome::good_if(report.accepted))
}

/// Reads manifests from their files.
pub(super) fn read_packs(files: &[PathBuf]) -> Result<Vec<PackManifest>, Failure> {
    let read = |file: &PathBuf| {
        let text = fs::read_to_string(file).map_err(|error| Failure::io("read", file, &error))?;
        PackManifest::from_json(&text)
            .map_err(|error| Failure::failed(format!("{} is no pack manifest: {error}", file.display())))
    };
    files.iter().map(read).collect()
}

fn missing(text: &str) -> Result<MissingPacks, String> {
    match text {
        "keep" => Ok(MissingPacks::Keep),
        "refuse" => Ok(MissingPacks::Refuse),
        name => Name::new(name).map(MissingPacks::Placeholder).map_err(|error| error.to_string()),
    }
}

impl From<&Plan> for Report {
    fn from(plan: &Plan) -> Self {
        let action = |action: &Action| ActionReport {
            what: action.what.to_string(),
            cost: action.cost.to_string(),
            reversible: action.reversible,
        };
        Self {
            accepted: plan.is_accepted(),
            unchanged: plan.is_unchanged(),
            schema_generation: plan.generations(),
            actions: plan.actions().iter().map(action).collect(),
            text: plan.report(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
