//! Tortures worlds: kills their process, flips bits in their files, cuts their log, and sees what a reader notices.
//!
//! Every torture has controls that must fail: a broken worker, a row in the wrong place, a log that is gone together
//! with the file that would have told. A torture whose control passes has proved nothing and fails itself.

mod child;
mod cut;
mod damage;
mod failure;
mod filling;
mod flip;
mod image;
mod kill;
mod kind;
mod merger;
mod model;
mod mover;
mod probe;
mod promote;
mod promoter;
mod reading;
mod report;
mod rng;
mod segments;
mod size;
mod step;
mod subject;
mod telling;
mod verdict;
mod worker;

use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clap::{Parser, Subcommand, ValueEnum};

use crate::failure::Failure;
use crate::subject::Break;

/// Kill, flip and cut worlds, and see that nothing is lost in silence.
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    role: Option<Role>,
    #[command(flatten)]
    torture: Torture,
}

#[derive(Debug, clap::Args)]
struct Torture {
    /// Only this kind; all five when left out.
    #[arg(long)]
    only: Option<Torment>,
    /// How many rounds of each kind: kills, flipped bits, random cuts.
    #[arg(long)]
    rounds: Option<u64>,
    /// Where the random numbers start; a run prints its own, so that it can be repeated.
    #[arg(long)]
    seed: Option<u64>,
    /// The small size: a minute in all.
    #[arg(long)]
    ci: bool,
    /// Torture a broken worker, to see that it is caught. For `--only kill`.
    #[arg(long = "break", value_name = "HOW")]
    broken: Option<Break>,
}

/// What is done to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Torment {
    /// Kill -9 at random moments, with the expected state in the parent.
    Kill,
    /// Flip bits in every file of a world.
    Flip,
    /// Cut the log at every byte of its last records.
    Cut,
    /// Kill -9 while an overlay of 100,000 chunks is merged into its base.
    Promote,
    /// The same where the base is a segmented world, and the overlay changes all its segments.
    Segments,
}

/// What this process is, if not the one that was called.
#[derive(Debug, Subcommand)]
enum Role {
    /// Takes steps until it is killed.
    #[command(hide = true)]
    Worker(worker::Orders),
    /// Damages copies of a world and reads them.
    #[command(hide = true)]
    Probe(probe::Orders),
    /// Merges an overlay into its base until it is killed.
    #[command(hide = true)]
    Promoter(promoter::Orders),
    /// Merges an overlay into a segmented world until it is killed.
    #[command(hide = true)]
    Merger(merger::Orders),
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match &args.role {
        Some(Role::Worker(orders)) => worker::run(orders),
        Some(Role::Probe(orders)) => probe::run(orders),
        Some(Role::Promoter(orders)) => promoter::run(orders),
        Some(Role::Merger(orders)) => merger::run(orders),
        None => torture(&args.torture),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn torture(args: &Torture) -> Result<(), Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    let seed = args.seed.unwrap_or(now);
    let mut failures = Vec::new();
    for torment in Torment::value_variants() {
        if args.only.is_some_and(|only| only != *torment) {
            continue;
        }
        let begun = Instant::now();
        let done = match torment {
            Torment::Kill => {
                kill::run(seed, args.rounds.unwrap_or(if args.ci { 15 } else { 200 }), args.broken)
            }
            Torment::Flip => {
                flip::run(seed, args.rounds.unwrap_or(if args.ci { 150 } else { 2000 }), args.ci)
            }
            Torment::Cut => cut::run(seed, args.rounds.unwrap_or(if args.ci { 30 } else { 200 }), args.ci),
            Torment::Promote => {
                let size = if args.ci { promote::Size::CI } else { promote::Size::WHOLE };
                promote::run(seed, args.rounds.unwrap_or(if args.ci { 8 } else { 32 }), &size)
            }
            Torment::Segments => {
                let size = if args.ci { merger::Size::CI } else { merger::Size::WHOLE };
                segments::run(seed, args.rounds.unwrap_or(if args.ci { 10 } else { 35 }), &size)
            }
        };
        let name = torment.to_possible_value().map_or_else(String::new, |value| value.get_name().into());
        println!("{name}: {:.1} s", begun.elapsed().as_secs_f64());
        if let Err(failure) = done {
            println!("{name} FAILED: {failure}\nrepeat: {}", repeat(args, &name, seed));
            failures.push(name);
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(format!("failed: {}", failures.join(", ")).into()) }
}

/// The command that does the same again.
fn repeat(args: &Torture, only: &str, seed: u64) -> String {
    let mut command = vec![format!("cargo xtask torture --only {only} --seed {seed}")];
    command.extend(args.rounds.map(|rounds| format!("--rounds {rounds}")));
    command.extend(args.ci.then(|| "--ci".to_owned()));
    let broken = args.broken.and_then(|how| how.to_possible_value());
    command.extend(broken.map(|how| format!("--break {}", how.get_name())));
    command.join(" ")
}
