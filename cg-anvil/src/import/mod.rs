//! A Java save into a world.
//!
//! The files of a save are read in the order of [`save::find`], sixteen slots at a time. Worker threads decode them
//! and build chunks; one thread registers names and commits, in order, so the same save gives the same ids whatever
//! the number of threads. At most a few jobs are in memory at once, however large the save is.
//!
//! Last come the files that are no regions of a dimension, `level.dat` before all.
//!
//! Every transaction also stores how far it came. An import that was killed continues after its last transaction when
//! it is run again, and reports as if it had never stopped. If the save changed meanwhile, the rest is imported as it is
//! now, and the report names the files that were read in part before. The save is only read.
//!
//! ```
//! use cg_anvil::column::{Blocks, Column, Section};
//! use cg_anvil::region::{RegionPos, RegionWriter, Slot};
//! use cg_anvil::write;
//! use cg_anvil::import::{ImportOptions, import};
//! use cg_store::prelude::*;
//!
//! let save = tempfile::tempdir()?;
//! let mut column = Column::new(0, 0, 3955);
//! column.sections.push(Section { blocks: Some(Blocks::uniform("minecraft:stone")), ..Section::new(-4) });
//! let mut region = RegionWriter::create(&save.path().join("region"), RegionPos::of_column(0, 0))?;
//! region.put(Slot::of_column(0, 0), &write::column(&column)?, 0)?;
//! region.finish()?;
//!
//! let world = World::builder().in_memory()?;
//! let report = import(save.path(), &world, &ImportOptions::default(), |_| {})?;
//! assert_eq!((report.imported_columns, report.imported_chunks), (1, 1));
//! let overworld = world.catalog().dimension("minecraft:overworld").expect("the save has it");
//! let chunk = world.load(ChunkAt::new(overworld, ChunkPos::new(0, -4, 0)?))?.expect("a stored chunk");
//! let stone = chunk.block(LocalPos::new(0, 0, 0));
//! assert_eq!(world.catalog().block_name(stone).unwrap().as_str(), "minecraft:stone");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod apply;
mod begin;
mod builder;
mod columns;
mod entities;
mod files;
mod kept;
mod layouts;
mod limits;
mod prepare;
mod progress;
mod report;
mod source;
mod stored;
mod target;
mod unfinished;

use std::collections::VecDeque;
use std::fmt;
use std::num::NonZero;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::available_parallelism;

use cg_store::World;
use rayon::ThreadPoolBuilder;
use serde::{Deserialize, Serialize};

pub(crate) use apply::listed_block_entities;
pub(crate) use builder::list_block_entities;
pub(crate) use entities::derived;
pub(crate) use progress::PROGRESS_PREFIX;
pub use report::{
    ImportReport, Part, Reason, Rekeyed, ReplacedLevel, Stray, TooLarge, Unlisted, Unreadable, Untested,
};
pub use target::{clear_unfinished, makes_world, of_new_world, open_or_create};
pub use unfinished::{Unfinished, abandon, unfinished};

use self::apply::Importer;
use self::prepare::{Job, Prepared, SLOTS_PER_JOB, prepare};
use self::source::Source;
use crate::mapping::Ids;
use crate::region::Slot;
use crate::save::{RegionFile, Save, SaveError};
use crate::{Decoder, save};

/// Choices of an import.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Treatment of places where the world has something already. Default: only an empty world is imported into.
    pub merge: Option<Merge>,
    /// Treatment of files of the save that the world was, and that this save does not have. Default: they stay.
    pub merge_files: MergeFiles,
    /// Imports what a save holds of a dimension where the game does not look for it, as a dimension of its own. Default:
    /// that is refused.
    pub take_strays: bool,
    /// Imports the overworld as this dimension and nothing else. Default: all dimensions by their names.
    pub as_dimension: Option<String>,
    /// Threads that decode, besides the one that commits. Default: one for each of the machine's. At most 64 are started, as
    /// a region file is decoded in 64 parts.
    pub threads: Option<NonZero<usize>>,
    /// Stops with [`ImportError::Stopped`] after this many transactions; run again, the import continues. Default: never.
    pub stop_after_transactions: Option<u64>,
}

/// What happens where the world has something already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Merge {
    /// The save's columns and entities replace the world's; all of a replaced column goes, its entities too.
    Replace,
    /// The world's columns and entities are kept; a column that the world has any part of stays as it is.
    Keep,
}

/// What happens to files, no region files, of the save that a world was, and that the imported save does not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MergeFiles {
    /// They stay.
    #[default]
    Keep,
    /// They are deleted, if the imported save has a `level.dat` of its own.
    Replace,
}

/// Choices in which an import that continues must agree with its beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choices {
    merge: Option<Merge>,
    #[serde(default)]
    merge_files: MergeFiles,
    #[serde(default)]
    take_strays: bool,
    #[serde(default)]
    as_dimension: Option<String>,
}

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

/// Why an import ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// Path that is no save.
    #[error(transparent)]
    Save(#[from] SaveError),
    /// The world refused something.
    #[error(transparent)]
    Store(cg_store::Error),
    /// The world has chunks, entities or objects of a save that this import did not bring.
    #[error("the world is not empty; say `--merge replace` or `--merge keep`, or import into a new world")]
    NotEmpty,
    /// The world holds half of an import of a save elsewhere. One that was moved is known if nothing else of it changed.
    #[error(
        "the world holds an unfinished import of another save, which `cg info` names; import that again, or give it up with `cg import --abandon`"
    )]
    OtherImport,
    /// An import is continued in another way than it was begun.
    #[error(
        "the unfinished import was begun {begun}; continue it so, or give it up with `cg import --abandon`"
    )]
    OtherChoices {
        /// How it was begun.
        begun: Box<Choices>,
    },
    /// Strays are to be dimensions of their own, and all but the overworld is to be left out.
    #[error(
        "`--take-strays` and `--as-dimension` exclude each other: the second leaves out all but the overworld, and with it the strays; leave out one of them"
    )]
    StraysAsDimension,
    /// An import that another release began.
    #[error(
        "the unfinished import was begun by another release of cg, which imports saves in another way; finish it with that release, or give it up with `cg import --abandon`"
    )]
    OtherRules,
    /// There is no import to abandon.
    #[error("no import into the world is unfinished")]
    Finished,
    /// Files are to be deleted, and nothing else replaced.
    #[error("`--merge-files replace` deletes files of the world's save and goes only with `--merge replace`")]
    DeletesOnly,
    /// The stored progress is damaged or of a newer release.
    #[error(
        "the progress of the unfinished import, property `{property}`, cannot be read: {why}; give the import up with `cg import --abandon`"
    )]
    Progress {
        /// The property.
        property: String,
        /// Fault of the progress, in words.
        why: String,
    },
    /// The system gave no threads.
    #[error("cannot start threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// As asked for.
    #[error("stopped after {0} transactions; run it again to continue")]
    Stopped(u64),
}

impl From<cg_store::Error> for ImportError {
    fn from(error: cg_store::Error) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for Choices {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { merge, merge_files, take_strays, as_dimension } = self;
        match merge {
            None => out.write_str("without `--merge`")?,
            Some(Merge::Replace) => out.write_str("with `--merge replace`")?,
            Some(Merge::Keep) => out.write_str("with `--merge keep`")?,
        }
        if *merge_files == MergeFiles::Replace {
            out.write_str(", with `--merge-files replace`")?;
        }
        if *take_strays {
            out.write_str(", with `--take-strays`")?;
        }
        match as_dimension {
            None => Ok(()),
            Some(dimension) => write!(out, ", with `--as-dimension {dimension}`"),
        }
    }
}

impl ImportOptions {
    /// Choices that are stored.
    fn choices(&self) -> Choices {
        let Self { merge, merge_files, take_strays, as_dimension, .. } = self.clone();
        Choices { merge, merge_files, take_strays, as_dimension }
    }

    /// Checks that no choice excludes another.
    ///
    /// # Errors
    /// [`ImportError::DeletesOnly`] and [`ImportError::StraysAsDimension`].
    pub fn check(&self) -> Result<(), ImportError> {
        if self.merge_files == MergeFiles::Replace && self.merge != Some(Merge::Replace) {
            return Err(ImportError::DeletesOnly);
        }
        if self.take_strays && self.as_dimension.is_some() {
            return Err(ImportError::StraysAsDimension);
        }
        Ok(())
    }

    /// Finds a save, and takes of it what is asked for.
    ///
    /// # Errors
    /// [`SaveError`].
    pub fn find(&self, path: &Path) -> Result<Save, SaveError> {
        let mut save = save::find(path)?;
        if self.take_strays {
            save.take_strays()?;
        }
        if let Some(dimension) = &self.as_dimension {
            save.as_dimension(dimension)?;
        }
        Ok(save)
    }
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
