//! Arguments that commands share.

use std::path::{Path, PathBuf};

use cg_format::{BlockArea, BlockBox, BlockPos, ChunkPos, Dimension};
use cg_registry::{Catalog, ListKind};
use cg_store::{World, WorldOptions};
use clap::{ArgAction, ValueHint};

use crate::output::Failure;

/// The world that a command works on.
#[derive(Debug, clap::Args)]
pub(crate) struct WorldArg {
    /// The world's directory, which holds `world.cg`.
    #[arg(value_name = "WORLD", value_hint = ValueHint::DirPath)]
    pub(crate) path: PathBuf,
    /// MiB that stay free on the disk, where the command writes: with less it is refused. 0 demands nothing [default: a
    /// twentieth of the disk, 1024 at most].
    #[arg(long, value_name = "MIB")]
    min_free: Option<u64>,
}

impl WorldArg {
    /// Opens the world for reading: no byte of it is changed.
    pub(crate) fn open(&self) -> Result<World, Failure> {
        Ok(World::builder().options(&self.options()).open_read_only(&self.path)?)
    }

    /// Opens the world for writing.
    pub(crate) fn open_for_writing(&self) -> Result<World, Failure> {
        Ok(World::builder().options(&self.options()).open(&self.path)?)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The tool's options with what was asked for.
    pub(crate) fn options(&self) -> WorldOptions {
        let min_free_bytes = self.min_free.map(|mib| mib.saturating_mul(1 << 20));
        WorldOptions { min_free_bytes, ..options() }
    }
}

/// The options with which the tool opens worlds: a tool looks at most chunks once, so it keeps few.
pub(crate) fn options() -> WorldOptions {
    WorldOptions { cache_bytes: 32 << 20, ..WorldOptions::default() }
}

/// A dimension of the world.
#[derive(Debug, clap::Args)]
pub(crate) struct DimensionArg {
    /// A dimension's name; the part after the colon is enough where it is not ambiguous [default: the world's first].
    #[arg(id = "dimension", long, visible_alias = "dim", short = 'd', value_name = "NAME")]
    name: Option<String>,
}

impl DimensionArg {
    pub(crate) const fn is_given(&self) -> bool {
        self.name.is_some()
    }

    /// Finds the dimension by name.
    pub(crate) fn find(&self, catalog: &Catalog) -> Result<Dimension, Failure> {
        let names = catalog.list(ListKind::Dimensions).names();
        let Some(wanted) = &self.name else {
            return match names {
                [] => Err(Failure::usage("the world has no dimension yet; nothing was ever stored in it")),
                _ => Ok(Dimension::new(0)),
            };
        };
        find_dimension(catalog, wanted)
    }
}

/// Finds a dimension by its name, or by the part of it after the colon.
pub(crate) fn find_dimension(catalog: &Catalog, wanted: &str) -> Result<Dimension, Failure> {
    let names = catalog.list(ListKind::Dimensions).names();
    if let Some(found) = catalog.dimension(wanted) {
        return Ok(found);
    }
    let mut short = (0..).zip(names).filter(|(_, name)| name.identifier() == wanted);
    if let (Some((id, _)), None) = (short.next(), short.next()) {
        return Ok(Dimension::new(id));
    }
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    let known = if names.is_empty() { "none".into() } else { names.join(", ") };
    Err(Failure::UnknownDimension(format!("the world has no dimension `{wanted}`; it has {known}")))
}

/// One box of blocks, for commands that take no union.
#[derive(Debug, clap::Args)]
pub(crate) struct BoxArg {
    /// Two opposite corners of a box of blocks, both included; only one box.
    #[arg(
        long = "box",
        num_args = 6,
        action = ArgAction::Append,
        value_names = ["X0", "Y0", "Z0", "X1", "Y1", "Z1"],
        allow_negative_numbers = true
    )]
    corners: Vec<i64>,
}

impl BoxArg {
    /// The box, if one was given. A second one is refused: `instead` says how to do without.
    pub(crate) fn get(&self, instead: &str) -> Result<Option<BlockBox>, Failure> {
        match boxes(&self.corners)?[..] {
            [] => Ok(None),
            [area] => Ok(Some(area)),
            [_, _, ..] => {
                let count = self.corners.len() / 6;
                Err(Failure::usage(format!(
                    "--box is given {count} times, and this command takes one; {instead}"
                )))
            }
        }
    }
}

/// An area of blocks: the union of several boxes.
#[derive(Debug, clap::Args)]
pub(crate) struct AreaArg {
    /// Two opposite corners of a box of blocks, both included; may be given several times, and then means the union of the
    /// boxes: what is in any of them, once.
    #[arg(
        long = "box",
        num_args = 6,
        action = ArgAction::Append,
        value_names = ["X0", "Y0", "Z0", "X1", "Y1", "Z1"],
        allow_negative_numbers = true
    )]
    corners: Vec<i64>,
}

impl AreaArg {
    /// The union of the boxes; `None` if there is no `--box`, which each command gives a meaning of its own.
    pub(crate) fn get(&self) -> Result<Option<BlockArea>, Failure> {
        let boxes = boxes(&self.corners)?;
        Ok(if boxes.is_empty() { None } else { Some(BlockArea::union(boxes)) })
    }
}

/// The boxes of six numbers each.
fn boxes(corners: &[i64]) -> Result<Vec<BlockBox>, Failure> {
    let boxes = corners.chunks(6).map(|corners| match corners {
        &[x0, y0, z0, x1, y1, z1] => Ok(BlockBox::new(BlockPos::new(x0, y0, z0), BlockPos::new(x1, y1, z1))),
        _ => Err(Failure::usage("--box takes six numbers: X0 Y0 Z0 X1 Y1 Z1")),
    });
    boxes.collect()
}

/// Says yes to a command that cannot be undone.
#[derive(Debug, clap::Args)]
pub(crate) struct YesArg {
    /// Do it: without this nothing is changed.
    #[arg(long)]
    yes: bool,
}

impl YesArg {
    /// Refuses unless `--yes` was given.
    pub(crate) fn confirm(&self, what: &str) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        Err(Failure::usage(format!("{what}; nothing was changed, run it again with --yes")))
    }

    pub(crate) const fn given(&self) -> bool {
        self.yes
    }
}

/// A chunk position from three arguments.
pub(crate) fn chunk_pos(coordinates: &[i64]) -> Result<ChunkPos, Failure> {
    let &[x, y, z] = coordinates else {
        return Err(Failure::usage("a position has three coordinates"));
    };
    ChunkPos::new(x, y, z).map_err(|error| Failure::usage(error.to_string()))
}
