//! What must be there after a keeper's work, however it ended.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use cg_anvil::new_file::NewFile;
use cg_store::OpenError;
use cg_store::error::ArchiveError;
use cg_store::prelude::*;
use cg_store::view::{Area, DamagedRows};

use super::content::{Content, OfWorld, hashes_of};
use super::place::{SOURCE, archive_in, open, open_segmented, restored_in, world_in};
use super::work::Work;
use crate::failure::Failure;
use crate::subject;

/// What a process left that was killed, or ended by an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Left {
    /// Nothing of its work.
    Nothing,
    /// A part of it, which is no archive and no world.
    Part,
    /// All of it.
    Whole,
}

/// Says what is left of some work after these steps, or what is wrong; then goes on with it, and checks that all is there.
pub(crate) fn judge(
    dir: &Path,
    work: Work,
    content: &Content,
    steps: usize,
    is_ended: bool,
) -> Result<Left, Failure> {
    let left = match work {
        Work::Compact | Work::CompactSegments if is_ended => Left::Whole,
        Work::Compact | Work::CompactSegments => Left::Part,
        Work::Archive if archive_in(dir).exists() => Left::Whole,
        // Until then it has no name, or one that a crash may leave.
        Work::Archive if !is_ended && steps > 0 => Left::Part,
        Work::Restore if restored_in(dir).exists() => match open(&restored_in(dir)) {
            Ok(world) => world.close().map(|()| Left::Whole)?,
            Err(Error::Open(OpenError::HalfCreated { .. } | OpenError::NotAWorld { .. })) => Left::Part,
            Err(error) => return Err(format!("the restored world does not open: {error}").into()),
        },
        Work::Archive | Work::Restore => Left::Nothing,
    };
    if is_ended && left != Left::Whole {
        return Err("it was done to the end, and is not there".into());
    }
    if work == Work::Archive {
        check(dir, Work::Compact, content)?;
    }
    if left == Left::Whole || matches!(work, Work::Compact | Work::CompactSegments) {
        check(dir, work, content)?;
    }
    match work {
        Work::Compact => {
            let world = open(&world_in(dir))?;
            while world.tiers().compaction(Area::World)?.run(Duration::MAX)? {}
            world.close()?;
        }
        Work::CompactSegments => {
            let world = open_segmented(dir)?;
            while world.segments().compaction(world.segments().list()).run(Duration::MAX)? {}
            world.close()?;
        }
        Work::Archive | Work::Restore if left == Left::Whole => return Ok(left),
        Work::Archive => {
            let world = open(&world_in(dir))?;
            let mut file = NewFile::create(&archive_in(dir))?;
            World::builder().archive(&world, &mut file, DamagedRows::Refuse, |_| {})?;
            file.finish()?;
            world.close()?;
        }
        Work::Restore => restore_again(dir)?,
    }
    check(dir, work, content)?;
    Ok(left)
}

/// As `cg restore --resume`.
fn restore_again(dir: &Path) -> Result<(), Failure> {
    let again = || {
        let source = File::open(dir.join(SOURCE))?;
        World::builder().options(&subject::options()).restore(source, restored_in(dir), |_| {})
    };
    match again() {
        Err(ArchiveError::Store(Error::Open(OpenError::HalfCreated { .. } | OpenError::NotEmpty { .. }))) => {
            fs::remove_dir_all(restored_in(dir))?;
            again()?;
        }
        restored => drop(restored?),
    }
    Ok(())
}

/// Compares everything that is there with what must be.
fn check(dir: &Path, work: Work, content: &Content) -> Result<(), Failure> {
    let is_same = match work {
        Work::Compact => OfWorld::read(&world_in(dir))? == content.plain,
        Work::CompactSegments => hashes_of(dir)? == content.segmented,
        Work::Restore => OfWorld::read(&restored_in(dir))? == content.plain,
        Work::Archive => {
            let made = dir.join("made");
            let archive = File::open(archive_in(dir))?;
            World::builder().options(&subject::options()).restore(archive, &made, |_| {})?;
            let held = OfWorld::read(&made)?;
            fs::remove_dir_all(made)?;
            held == content.plain
        }
    };
    if is_same { Ok(()) } else { Err("another content".into()) }
}
