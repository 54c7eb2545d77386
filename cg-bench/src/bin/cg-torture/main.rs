//! Tortures worlds: kills their process, flips bits in their files, cuts their log, and sees what a reader notices.
//!
//! Every torture has controls that must fail: a broken worker, a row in the wrong place, a log that is gone together
//! with the file that would have told. A torture whose control passes has proved nothing and fails itself.

mod calls;
mod child;
mod cut;
mod damage;
mod disk;
mod failure;
mod filling;
mod flip;
mod image;
mod keeper;
mod kill;
mod kind;
mod merger;
mod model;
mod mover;
mod power;
mod probe;
mod promote;
mod promoter;
mod reading;
mod report;
mod rng;
mod segments;
mod server;
mod size;
mod step;
mod subject;
mod telling;
mod transactions;
mod transactor;
mod upkeep;
mod values;
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
    /// Only this kind; all when left out.
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
    /// The number of the first image, to have one image of a run again. For `--only power`.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Only this deed. For `--only calls`.
    #[arg(long)]
    deed: Option<calls::Deed>,
    /// Only calls of this kind. For `--only calls`.
    #[arg(long)]
    call: Option<disk::Call>,
    /// Only this call, written as it is printed: `safe sync 3 EIO`. For `--only calls`.
    #[arg(long)]
    again: Option<calls::Case>,
    /// Keep the worlds that fail in this directory. For `--only power` and `--only calls`.
    #[arg(long, value_name = "DIR")]
    keep: Option<std::path::PathBuf>,
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
    /// Kill -9 at each step of transactions in segments with an object, a record, a property and a chunk.
    Transactions,
    /// Kill -9 a server of many players on a segmented world, beside one on a plain world.
    Server,
    /// Kill -9 at each step of compactions, archives and restores.
    Upkeep,
    /// Cut the power: open what may be left of what was recorded on a file system.
    Power,
    /// Cut the power of real file systems on a loop device.
    Disks,
    /// Let calls of the file system fail, each once.
    Calls,
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
    /// Takes steps in a segmented world until it is killed.
    #[command(hide = true)]
    Transactor(transactor::Orders),
    /// Plays until it is killed.
    #[command(hide = true)]
    Server(server::host::Orders),
    /// Compacts, archives or restores until it is killed.
    #[command(hide = true)]
    Keeper(keeper::Orders),
    /// Opens a world and says what is wrong with it.
    #[command(hide = true)]
    Judge(power::judge::Orders),
    /// Imports a save into a new world.
    #[command(hide = true)]
    Importer(calls::importer::Orders),
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match &args.role {
        Some(Role::Worker(orders)) => worker::run(orders),
        Some(Role::Probe(orders)) => probe::run(orders),
        Some(Role::Promoter(orders)) => promoter::run(orders),
        Some(Role::Merger(orders)) => merger::run(orders),
        Some(Role::Transactor(orders)) => transactor::run(orders),
        Some(Role::Server(orders)) => server::host::run(orders),
        Some(Role::Keeper(orders)) => keeper::run(orders),
        Some(Role::Judge(orders)) => power::judge::run(orders),
        Some(Role::Importer(orders)) => calls::importer::run(orders),
        None => torture(&args.torture),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<disk::Skipped>() => {
            println!("SKIPPED: {error}");
            ExitCode::from(disk::Skipped::EXIT_CODE)
        }
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
            Torment::Transactions => {
                let steps = if args.ci { 40 } else { 200 };
                transactions::run(seed, args.rounds.unwrap_or(if args.ci { 12 } else { 400 }), steps)
            }
            Torment::Server => {
                let size = if args.ci { server::Size::CI } else { server::Size::WHOLE };
                server::run(seed, args.rounds.unwrap_or(if args.ci { 3 } else { 60 }), size)
            }
            Torment::Upkeep => upkeep::run(seed, args.rounds.unwrap_or(if args.ci { 5 } else { 60 })),
            Torment::Power => {
                let size = power::Size {
                    images: args.rounds.or((!args.ci).then_some(1000)),
                    from: args.from,
                    keep: args.keep.clone(),
                };
                power::run(seed, &size)
            }
            Torment::Disks => {
                let systems = power::disks::System::value_variants();
                // The first is in every kernel of a server.
                let systems = if args.ci { &systems[..1] } else { systems };
                power::disks::run(seed, args.rounds.unwrap_or(if args.ci { 10 } else { 30 }), systems)
            }
            Torment::Calls => {
                let size = calls::Size {
                    cases: args.rounds.or(args.ci.then_some(75)),
                    deed: args.deed,
                    call: args.call,
                    again: args.again,
                    keep: args.keep.clone(),
                };
                calls::run(seed, &size)
            }
        };
        let name = torment.to_possible_value().map_or_else(String::new, |value| value.get_name().into());
        println!("{name}: {:.1} s", begun.elapsed().as_secs_f64());
        let done = match done {
            Err(none) if none.is::<disk::Skipped>() && args.only.is_some() => return Err(none),
            Err(none) if none.is::<disk::Skipped>() => {
                println!("{name}: SKIPPED: {none}");
                Ok(())
            }
            done => done,
        };
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
    let word = |value: Option<clap::builder::PossibleValue>| Some(value?.get_name().to_owned());
    let deed = args.deed.and_then(|deed| word(deed.to_possible_value()));
    let call = args.call.and_then(|call| word(call.to_possible_value()));
    command.extend(deed.map(|deed| format!("--deed {deed}")));
    command.extend(call.map(|call| format!("--call {call}")));
    command.extend(args.again.map(|case| format!("--again \"{case}\"")));
    command.extend((args.from > 0).then(|| format!("--from {}", args.from)));
    let broken = args.broken.and_then(|how| how.to_possible_value());
    command.extend(broken.map(|how| format!("--break {}", how.get_name())));
    command.join(" ")
}
