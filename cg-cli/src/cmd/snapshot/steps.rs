//! A restore as one transaction within a bound of memory, and as many.

use cg_snapshot::{BlockChange, RestoreError, RestoreJob};
use cg_store::{Durability, World};
use indicatif::ProgressBar;

use crate::output::{Failure, bytes_text, counted, grouped};

/// Sections that are read at once, and those of one transaction where they are many.
const SECTIONS_AT_ONCE: usize = 64;

/// In one transaction or in many.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(in crate::cmd) struct StepsArg {
    /// Do it in many small transactions, not in one: it takes little memory, and one that is killed is run again.
    #[arg(long, conflicts_with = "dry_run")]
    pub(in crate::cmd) in_steps: bool,
    /// The greatest memory, in MiB, for the changes of one transaction; it is given up if it takes more.
    #[arg(long, value_name = "MIB", default_value_t = 2048)]
    max_memory: u64,
}

impl StepsArg {
    /// The bytes that one transaction may hold.
    pub(in crate::cmd) const fn max_held_bytes(self) -> u64 {
        if self.in_steps { u64::MAX } else { self.max_memory.saturating_mul(1 << 20) }
    }
}

/// Why a transaction was not begun, or was given up: what it would hold.
pub(in crate::cmd) fn too_much(max_held_bytes: u64, known: &str) -> Failure {
    let max = bytes_text(max_held_bytes);
    Failure::refused(format!(
        "in one transaction it takes more than {max} of memory{known}; nothing of it was put there: --max-memory allows \
         more, --in-steps takes little"
    ))
}

/// All of a job in one transaction, of whatever size. What changes is in memory until it is written.
pub(in crate::cmd) fn all_at_once(
    world: &World,
    job: &mut RestoreJob,
    observe: &mut impl FnMut(BlockChange),
    progress: &ProgressBar,
) -> Result<(), Failure> {
    world.transaction(|tx| run(job, tx, observe, progress))?;
    Ok(())
}

/// All of a job within something that takes it.
pub(in crate::cmd) fn run<E>(
    job: &mut RestoreJob,
    editor: &mut E,
    observe: &mut impl FnMut(BlockChange),
    progress: &ProgressBar,
) -> Result<(), Failure>
where
    E: cg_format::Editor<Error: std::error::Error + Send + Sync + 'static>,
{
    while job.run_some(editor, observe, SECTIONS_AT_ONCE).map_err(failed)? {
        progress.set_position(job.report().sections);
    }
    Ok(())
}

/// A job in transactions of 64 sections; how many they were. One that is killed is begun anew and finds what was done.
pub(in crate::cmd) fn in_steps(
    world: &World,
    job: &mut RestoreJob,
    observe: &mut impl FnMut(BlockChange),
    progress: &ProgressBar,
) -> Result<u64, Failure> {
    let mut transactions = 0;
    loop {
        let more = world.transaction_at(Durability::Process, |tx| {
            job.run_some(tx, observe, SECTIONS_AT_ONCE).map_err(failed)
        })?;
        if !more.value {
            return Ok(transactions);
        }
        transactions += 1;
        progress.set_position(job.report().sections);
    }
}

fn failed<X: std::error::Error + Send + Sync + 'static>(error: RestoreError<X>) -> Failure {
    match error {
        RestoreError::TooMuch { done, sections, max_held_bytes } => {
            let known = format!(", as {} of {} show", grouped(done), counted(sections, "section"));
            too_much(max_held_bytes, &known)
        }
        error => Failure::failed(error),
    }
}
