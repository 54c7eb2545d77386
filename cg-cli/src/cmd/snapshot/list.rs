//! `cg snapshot list`

use std::fmt;

use cg_snapshot::file::read_info;
use cg_store::snapshots::DamagedSnapshot;
use serde::Serialize;

use super::About;
use crate::args::WorldArg;
use crate::output::{Failure, Outcome, Output};
use crate::shown::shown;

/// Show the snapshots that the world keeps. Reads their heads only.
///
/// JSON: `{"snapshots":[…],"unreadable":[{"name","why"}]}`, each as `cg snapshot create` shows it, and `name` null where
/// that cannot be read either. Exit code 1 if one cannot be read.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    world: WorldArg,
}

#[derive(Debug, Serialize)]
struct Report {
    snapshots: Vec<About>,
    unreadable: Vec<Unreadable>,
}

#[derive(Debug, Serialize)]
struct Unreadable {
    /// `None` if that cannot be read either.
    name: Option<String>,
    why: String,
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let world = args.world.open(out)?;
    let mut report = Report { snapshots: Vec::new(), unreadable: Vec::new() };
    for kept in world.snapshots().list()? {
        let kept = match kept {
            Ok(kept) => kept,
            Err(DamagedSnapshot { name, error }) => {
                report.unreadable.push(Unreadable { name, why: error.to_string() });
                continue;
            }
        };
        let Some(reader) = world.snapshots().open(&kept.name)? else { continue };
        match read_info(reader) {
            Ok(info) => report.snapshots.push(About::new(&info, &kept.name, kept.len_bytes)),
            Err(error) => {
                report.unreadable.push(Unreadable { name: Some(kept.name), why: error.to_string() });
            }
        }
    }
    out.print(&report)?;
    Ok(Outcome::good_if(report.unreadable.is_empty()))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.snapshots.is_empty() && self.unreadable.is_empty() {
            writeln!(f, "the world keeps no snapshot")?;
        }
        self.snapshots.iter().try_for_each(|about| about.fmt(f))?;
        self.unreadable.iter().try_for_each(|it| match &it.name {
            Some(name) => writeln!(f, "{}: {}", shown(name), shown(&it.why)),
            None => writeln!(f, "unreadable: {}", shown(&it.why)),
        })
    }
}
