//! A restore as one transaction, and as many.

use cg_snapshot::{BlockChange, RestoreJob};
use cg_store::{Durability, Error};
use indicatif::ProgressBar;

use crate::args::DiskWorld;
use crate::output::Failure;

/// Sections that are read at once, and those of one transaction where they are many.
const SECTIONS_AT_ONCE: usize = 64;

/// All of a job in one transaction, of whatever size. What changes is in memory until it is written.
pub(in crate::cmd) fn all_at_once(
    world: &DiskWorld,
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
    while job.run_some(editor, observe, SECTIONS_AT_ONCE).map_err(Failure::failed)? {
        progress.set_position(job.report().sections);
    }
    Ok(())
}

/// A job in transactions of 64 sections; how many they were. One that is killed is begun anew and finds what was done.
pub(in crate::cmd) fn in_steps(
    world: &DiskWorld,
    job: &mut RestoreJob,
    observe: &mut impl FnMut(BlockChange),
    progress: &ProgressBar,
) -> Result<u64, Failure> {
    let mut transactions = 0;
    loop {
        let more = world.transaction_at(Durability::Process, |tx| {
            job.run_some(tx, observe, SECTIONS_AT_ONCE).map_err(Failure::failed)
        })?;
        if !more.value {
            return Ok(transactions);
        }
        transactions += 1;
        progress.set_position(job.report().sections);
    }
}

pub(in crate::cmd) fn is_too_large(failure: &Failure) -> bool {
    match failure {
        Failure::Failed(error) => matches!(error.downcast_ref(), Some(Error::TooLarge { .. })),
        Failure::Usage(_) => false,
    }
}
