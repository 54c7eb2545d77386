//! The place of a copy: what is there, and how the rows get there.

use std::fs;
use std::io;

use cg_anvil::import::{clear_unfinished, makes_world};
use cg_store::engine::{CommitSeq, Engine as _};
use cg_store::error::Location;
use cg_store::view::Copied;
use cg_store::{Error, OpenError, World};

use super::Args;
use crate::args::options;
use crate::output::{Failure, Output};
use crate::place::{Address, Place};

/// The content of a place before a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cmd) enum There {
    /// It does not exist, or is empty.
    Nothing,
    /// A part of a copy, or a world whose making was cut short.
    Half,
    /// A world, with its newest commit.
    World(CommitSeq),
    /// Files that are no world.
    Other,
}

impl There {
    pub(in crate::cmd) fn find(place: &Place) -> Result<Self, Error> {
        let is_empty = match place {
            Place::Directory(path) => match fs::read_dir(path) {
                Ok(mut entries) => entries.next().is_none(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => true,
                Err(source) => {
                    return Err(OpenError::Io { action: "list", path: path.clone(), source }.into());
                }
            },
            Place::Address(address) => match address.reader() {
                Err(error) if Address::is_absence(&error) => true,
                engine => {
                    engine?;
                    false
                }
            },
        };
        if is_empty {
            return Ok(Self::Nothing);
        }
        match place.open_read_only(World::builder().options(&options())) {
            Ok(world) => Ok(Self::World(world.last_commit())),
            Err(Error::Open(OpenError::HalfCreated { .. })) => Ok(Self::Half),
            // The schema of a world of which no row is stored yet.
            Err(error) if Address::is_absence(&error) => Ok(Self::Half),
            Err(Error::Open(OpenError::NotAWorld { .. })) => Ok(Self::Other),
            Err(error) => Err(error),
        }
    }

    /// Whether the world there is a copy of this state of a world that was not written since.
    pub(super) fn is_copy_of(
        self,
        world: &World,
        to: &Place,
        args: &Args,
        out: &Output,
    ) -> Result<bool, Failure> {
        let options = options();
        let copy = args.wait.when_free(out, || to.open_read_only(World::builder().options(&options)))?;
        Ok(self == Self::World(world.last_commit()) && copy.identity() == world.identity())
    }

    pub(in crate::cmd) fn refusal(place: &Place) -> Error {
        let at = match place {
            Place::Directory(path) => path.as_path().into(),
            Place::Address(address) => Location::Address(address.to_string()),
        };
        OpenError::NotEmpty { at }.into()
    }
}

/// Copies the rows of a world into a place that holds nothing, or a part of a copy.
pub(super) fn copy(world: &World, to: &Place, mut progress: impl FnMut(&Copied)) -> Result<Copied, Error> {
    match to {
        Place::Directory(path) => match World::builder().copy_to(world, path, &mut progress) {
            Err(Error::Open(OpenError::HalfCreated { .. } | OpenError::NotEmpty { .. }))
                if makes_world(path)? =>
            {
                clear_unfinished(path)?;
                World::builder().copy_to(world, path, progress)
            }
            copied => copied,
        },
        Place::Address(address) => {
            let engine = match address.writer() {
                Err(error) if Address::is_absence(&error) => address.created()?,
                engine => engine?,
            };
            let copied = World::builder().copy_over(world, &engine, progress)?;
            // Its statistics, by which `cg info` tells the size.
            engine.flush()?;
            engine.close()?;
            Ok(copied)
        }
    }
}
