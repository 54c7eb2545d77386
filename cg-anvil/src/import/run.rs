//! An import from its first file to its last.

use std::collections::VecDeque;
use std::num::NonZero;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::available_parallelism;

use cg_store::World;
use rayon::ThreadPoolBuilder;

use super::apply::Importer;
use super::begin;
use super::error::ImportError;
use super::options::ImportOptions;
use super::prepare::{Job, Prepared, SLOTS_PER_JOB, prepare};
use super::report::ImportReport;
use super::source::Source;
use crate::Decoder;
use crate::mapping::Ids;
use crate::region::Slot;
use crate::save::RegionFile;

/// How far an import is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportProgress {
    /// Files that are done.
    pub files_done: usize,
    /// Files of the save.
    pub files: usize,
    /// Columns imported so far in this run.
    pub columns: u64,
}

/// Imports a save, a folder of region files, or one region file; `watch` is told how far it is.
///
/// What cannot be read is in the report and costs nothing else. Each transaction survives a kill, and everything is on
/// the disk when this returns, whatever the world's own durability.
///
/// # Errors
/// [`ImportError`]. What was committed before stays, and the next run continues there.
pub fn import(
    path: &Path,
    world: &World,
    options: &ImportOptions,
    mut watch: impl FnMut(ImportProgress),
) -> Result<ImportReport, ImportError> {
    let mut source = Source::new(options.find(path)?)?;
    let head = begin::begin(world, &mut source, options)?;
    let ids = Ids::register(world)?;
    let mut importer = Importer::new(world, &source, ids, head, options.stop_after_transactions)?;
    let threads = decoding_threads(options.threads);
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("cg-import-{index}"))
        .build()?;
    let decoders = Mutex::new(Vec::new());
    for file in 0..source.files().len() {
        importer.open(file)?;
        let RegionFile { path, kind, .. } = &source.files()[file];
        pool.in_place_scope_fifo(|scope| {
            let mut waiting: VecDeque<(Job, Receiver<Prepared>)> = VecDeque::new();
            let mut jobs = jobs(file, importer.next_slot());
            loop {
                // Each thread has one job at work and one after it; the results of the rest would only wait.
                while waiting.len() < threads * 2 {
                    let Some(job) = jobs.next() else { break };
                    let (sender, receiver) = sync_channel(1);
                    waiting.push_back((job, receiver));
                    let decoders = &decoders;
                    scope.spawn_fifo(move |_| {
                        let decoder = decoders.lock().ok().and_then(|mut free| free.pop());
                        let mut decoder: Decoder = decoder.unwrap_or_default();
                        // The importer may have stopped; then no thread takes this.
                        let _ = sender.send(prepare(path, *kind, job, &ids, &mut decoder));
                        if let Ok(mut free) = decoders.lock() {
                            free.push(decoder);
                        }
                    });
                }
                let Some((job, receiver)) = waiting.pop_front() else { return Ok::<(), ImportError>(()) };
                let prepared = receiver.recv().expect("a job that panics ends the scope");
                importer.apply(job, prepared)?;
                watch(ImportProgress {
                    files_done: file,
                    files: source.files().len(),
                    columns: importer.columns(),
                });
            }
        })?;
        importer.close()?;
    }
    importer.finish()
}

/// How many threads decode: no more than there are jobs in a file, since a file is done before the next begins.
fn decoding_threads(asked: Option<NonZero<usize>>) -> usize {
    const JOBS_PER_FILE: usize = (Slot::COUNT / SLOTS_PER_JOB) as usize;
    asked.or_else(|| available_parallelism().ok()).map_or(2, NonZero::get).min(JOBS_PER_FILE)
}

/// The ranges of slots from one on, always cut at the same places.
fn jobs(file: usize, next_slot: u16) -> impl Iterator<Item = Job> {
    (next_slot / SLOTS_PER_JOB..Slot::COUNT / SLOTS_PER_JOB).map(move |index| Job {
        file,
        from_slot: next_slot.max(index * SLOTS_PER_JOB),
        end_slot: (index + 1) * SLOTS_PER_JOB,
    })
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use super::decoding_threads;

    #[test]
    fn no_more_threads_are_started_than_a_file_has_parts() {
        let asked = |threads| decoding_threads(NonZero::new(threads));
        assert_eq!([asked(1), asked(64), asked(65), asked(100_000)], [1, 64, 64, 64]);
    }
}
