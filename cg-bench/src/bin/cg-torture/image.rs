//! A world as a killed process left it, with every kind of file in it, and what it must hold.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::failure::Failure;
use crate::kill::Worker;
use crate::kind::kind_of;
use crate::model::{Model, Picture};
use crate::step::{Step, TURN_STEPS};
use crate::subject;
use crate::worker::Message;

/// Steps that are closed into tables and blobs, and steps that only the log holds.
const CLOSED_STEPS: u64 = 6 * TURN_STEPS;
const STEPS: u64 = 8 * TURN_STEPS;

/// A world to make damaged copies of.
#[derive(Debug)]
pub(crate) struct Image {
    dir: TempDir,
    pub(crate) seed: u64,
}

/// The state of the floor after the last synced step of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Floor {
    /// The floor was raised to it.
    Settled,
    /// The floor was last raised when the world was opened.
    Lagging,
}

impl Image {
    /// Makes a world, lets one worker close it and another be killed.
    pub(crate) fn make(seed: u64, floor: Floor) -> Result<Self, Failure> {
        let image = Self { dir: scratch()?, seed };
        subject::create(&image.world(), seed)?;
        let until = CLOSED_STEPS.to_string();
        let mut closing = Worker::start(&image.world(), seed, &["--until", &until, "--close"])?;
        closing.wait_for(Message::End)?;
        let status = closing.wait()?;
        if !status.success() {
            return Err(format!("the worker failed: {status}").into());
        }
        let until = STEPS.to_string();
        let mut orders = vec!["--until", &until];
        orders.extend((floor == Floor::Settled).then_some("--settle"));
        let mut worker = Worker::start(&image.world(), seed, &orders)?;
        worker.wait_for(Message::End)?;
        worker.kill()?;
        Ok(image)
    }

    /// The world's directory.
    pub(crate) fn world(&self) -> PathBuf {
        self.dir.path().join("world")
    }

    /// How many steps it has taken.
    pub(crate) const fn steps() -> u64 {
        STEPS
    }

    /// How many of its steps were reported as synced, with all before them.
    pub(crate) fn synced_steps(&self) -> u64 {
        let synced = |index: &u64| Step::new(self.seed, *index).durability == cg_store::Durability::Safe;
        (0..STEPS).rev().find(synced).map_or(CLOSED_STEPS, |index| CLOSED_STEPS.max(index + 1))
    }

    /// The files by their paths in the world's directory, with their lengths.
    pub(crate) fn files(&self) -> Result<Vec<(String, u64)>, Failure> {
        let mut files = Vec::new();
        let world = self.world();
        for (dir, prefix) in [(world.clone(), ""), (world.join("db"), "db/")] {
            for entry in fs::read_dir(dir)? {
                let entry = entry?;
                if entry.file_type()?.is_file() {
                    let name = entry.file_name().into_string().map_err(|_| "a file's name is not text")?;
                    files.push((format!("{prefix}{name}"), entry.metadata()?.len()));
                }
            }
        }
        files.sort();
        Ok(files)
    }

    /// The newest write-ahead log.
    pub(crate) fn log(&self) -> Result<String, Failure> {
        let is_log = |name: &str| kind_of(name) == Some("WAL");
        let logs = self.files()?.into_iter().filter(|(name, len_bytes)| is_log(name) && *len_bytes > 0);
        Ok(logs.map(|(name, _)| name).next_back().ok_or("the image has no log")?)
    }
}

/// The content that a world must have after each of its steps, from none on.
pub(crate) fn history(seed: u64, steps: u64) -> Vec<Picture> {
    let mut model = Model::new(seed);
    let mut history = vec![model.picture()];
    for index in 0..steps {
        model.take(&Step::new(seed, index));
        history.push(model.picture());
    }
    history
}

/// Makes a fresh copy of a world.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    for (from, to) in [(from.to_path_buf(), to.to_path_buf()), (from.join("db"), to.join("db"))] {
        fs::create_dir_all(&to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                let to = to.join(entry.file_name());
                // Tables and blobs are never written to again, so copies may share them.
                if is_written_once(&to) {
                    fs::hard_link(entry.path(), to)?;
                } else {
                    fs::copy(entry.path(), to)?;
                }
            }
        }
    }
    Ok(())
}

fn is_written_once(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "sst" || extension == "blob")
}

/// A directory in memory where the system has one.
pub(crate) fn scratch() -> Result<TempDir, Failure> {
    let memory = Path::new("/dev/shm");
    Ok(if memory.is_dir() { tempfile::tempdir_in(memory)? } else { tempfile::tempdir()? })
}
