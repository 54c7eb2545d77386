//! `cg copy`: a world in another place, between directories and databases.

mod check;
pub(super) mod target;

use std::fmt;

use cg_store::view::Copied;
use cg_store::{Error, World};
use clap::ValueHint;
use indicatif::ProgressBar;
use serde::Serialize;

use self::check::Check;
use self::target::There;
use crate::args::{WaitArg, options};
use crate::output::{Failure, Outcome, Output, bytes_text, counted};
use crate::place::{Place, PlaceParser};

/// Copy a world into another place: each may be a directory or an address. Writes only what is new.
///
/// All rows of one state are copied as they are. A database goes on meanwhile; of a directory, no other process may have the
/// world open for writing. The copy is no world until its last row is there. If the command was killed, `--resume` goes on
/// behind the last row, if the world is still as it was, and otherwise begins again. At the end the content hashes of both
/// are compared: a difference is an error. Rows are not decoded, so damage is copied with the rest; a damaged row has no hash,
/// and `--no-check` leaves the comparison out. Opened for writing, the copy becomes a world of a new incarnation.
/// JSON: `{"from","to","commit":N,"rows":N,"bytes":N,"continued":BOOL,"hash":HEX}`: rows and bytes that this call
/// copied, and no hash where none was compared.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The world: its directory, or its address `postgres://USER@HOST/DATABASE?world=NAME`.
    #[arg(value_name = "FROM", value_hint = ValueHint::DirPath, value_parser = PlaceParser)]
    from: Place,
    /// The copy: a directory that does not exist or is empty, or the address of a world that does not exist.
    #[arg(value_name = "TO", value_hint = ValueHint::DirPath, value_parser = PlaceParser)]
    to: Place,
    /// Continue a copy that was cut short, or begin it again.
    #[arg(long)]
    resume: bool,
    /// Do not compare the content of both at the end.
    #[arg(long)]
    no_check: bool,
    #[command(flatten)]
    wait: WaitArg,
}

#[derive(Debug, Serialize)]
struct Report {
    from: String,
    to: String,
    commit: u64,
    rows: u64,
    bytes: u64,
    continued: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let Args { from, to, .. } = args;
    if from.is_same(to) {
        return Err(Failure::usage(format!("{from} and {to} are one place; a copy needs another")));
    }
    let options = options();
    let world = args.wait.when_free(out, || from.open_read_only(World::builder().options(&options)))?;
    let there = args.wait.when_free(out, || There::find(to))?;
    let copied = match there {
        There::World(commit) if args.resume && there.is_copy_of(&world, to, args, out)? => {
            let mut copied = Copied::default();
            (copied.commit, copied.is_continued) = (commit, true);
            copied
        }
        There::Nothing => copy(args, &world, out)?,
        There::Half if args.resume => copy(args, &world, out)?,
        There::Half => {
            return Err(Failure::refused(format!(
                "{to} holds a part of a copy, or a world whose making was cut short; --resume continues a copy"
            )));
        }
        There::World(_) | There::Other => return Err(There::refusal(to).into()),
    };
    let hash = if args.no_check { None } else { Check::of(args, &world, copied.commit, out)?.hash(out) };
    out.print(&Report {
        from: from.to_string(),
        to: to.to_string(),
        commit: copied.commit.get(),
        rows: copied.row_count,
        bytes: copied.len_bytes,
        continued: copied.is_continued,
        hash,
    })?;
    Ok(Outcome::Good)
}

/// Copies the rows, or those that an earlier call left out.
fn copy(args: &Args, world: &World, out: &Output) -> Result<Copied, Failure> {
    let rows = world.usage()?.families.iter().map(|family| family.row_count).sum();
    let progress = out.progress_of("rows copied", rows);
    let copied = args.wait.when_free(out, || target::copy(world, &args.to, |now| show(&progress, now)));
    progress.finish_and_clear();
    copied.map_err(|error| match (&args.to, &error) {
        (Place::Address(address), Error::Open(cg_store::OpenError::HalfCreated { .. })) => {
            Failure::refused(format!(
                "{address} holds a part of a copy of another state; remove it as its owner with `{};`, and run the command again",
                address.removal()
            ))
        }
        _ => error.into(),
    })
}

fn show(progress: &ProgressBar, now: &Copied) {
    progress.set_position(now.row_count);
    progress.set_message(format!("{}, rows copied", bytes_text(now.len_bytes)));
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { to, commit, rows, bytes, continued, hash, .. } = self;
        writeln!(f, "{to} holds the world as of commit {commit}")?;
        let again = if *continued { ", behind those of an earlier call" } else { "" };
        writeln!(f, "copied {} ({}){again}", counted(*rows, "row"), bytes_text(*bytes))?;
        match hash {
            Some(hash) => writeln!(f, "content hash of both {hash}"),
            None => writeln!(f, "the content of both was not compared"),
        }
    }
}
