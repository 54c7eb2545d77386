//! Arguments that commands share.

use std::error::Error;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use cg_format::{BlockArea, BlockBox, BlockPos, ChunkPos, Dimension};
use cg_registry::{Catalog, ListKind};
use cg_store::{World, WorldBuilder, WorldOptions};
use clap::{ArgAction, ValueHint};
use indicatif::ProgressBar;

use crate::failure::is_held;
use crate::output::{Failure, Output, grouped};
use crate::place::{Place, PlaceParser};

/// The world that a command reads.
#[derive(Debug, clap::Args)]
pub(crate) struct WorldArg {
    /// The world's directory, which holds `world.cg`, or its address: `postgres://USER@HOST/DATABASE?world=NAME`.
    #[arg(id = "path", value_name = "WORLD", value_hint = ValueHint::DirPath, value_parser = PlaceParser)]
    place: Place,
    // No `WaitArg`: clap takes an argument with a part of its own for one that is never given where it may be left out.
    /// Seconds to wait while another process has the world open; then the exit code is 3 [default: 0].
    #[arg(long, value_name = "SECONDS")]
    wait: Option<u64>,
}

impl WorldArg {
    /// Opens the world for reading: no byte of it is changed. Of a world in a database, notes the commit that is shown.
    pub(crate) fn open(&self, out: &Output) -> Result<World, Failure> {
        self.place.refuse_segmented()?;
        let options = options();
        let world = self.when_free(out, || self.place.open_read_only(World::builder().options(&options)))?;
        if matches!(self.place, Place::Address(_)) {
            out.note(&format!("{} as of commit {}", self.place, grouped(world.last_commit().get())));
        }
        Ok(world)
    }

    /// Opens the root of a segmented world for reading. While it is open, no process opens the world for writing.
    pub(crate) fn open_root(&self, dir: &Path, out: &Output) -> Result<World, Failure> {
        let options = options();
        Ok(self.when_free(out, || World::builder().options(&options).open_read_only(dir.join("root")))?)
    }

    /// See [`WaitArg::when_free`].
    pub(crate) fn when_free<T, E: Error + 'static>(
        &self,
        out: &Output,
        open: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        WaitArg { wait: self.wait }.when_free(out, open)
    }

    pub(crate) const fn place(&self) -> &Place {
        &self.place
    }
}

/// The world that a command writes.
#[derive(Debug, clap::Args)]
pub(crate) struct WrittenWorldArg {
    #[command(flatten)]
    world: WorldArg,
    /// MiB that stay free on the disk, where the command writes: with less it is refused. 0 demands nothing [default: a
    /// twentieth of the disk, 1024 at most].
    #[arg(long, value_name = "MIB")]
    min_free: Option<u64>,
}

impl WrittenWorldArg {
    /// Opens the world for reading: no byte of it is changed.
    pub(crate) fn open(&self, out: &Output) -> Result<World, Failure> {
        self.world.open(out)
    }

    /// Opens the world for writing.
    pub(crate) fn open_for_writing(&self, out: &Output) -> Result<World, Failure> {
        let options = self.options();
        self.open_by(out, World::builder().options(&options))
    }

    /// See [`WaitArg::when_free`].
    pub(crate) fn when_free<T, E: Error + 'static>(
        &self,
        out: &Output,
        open: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        self.world.when_free(out, open)
    }

    /// Opens the world for writing, with what a builder has.
    pub(crate) fn open_by(&self, out: &Output, builder: WorldBuilder<'_>) -> Result<World, Failure> {
        self.place().refuse_segmented()?;
        Ok(self.when_free(out, || self.place().open(builder))?)
    }

    /// Opens the world for writing, or makes one where there is none.
    pub(crate) fn open_or_create(&self, out: &Output) -> Result<World, Failure> {
        let options = self.options();
        Ok(self.when_free(out, || self.place().open_or_create(&options))?)
    }

    pub(crate) const fn place(&self) -> &Place {
        self.world.place()
    }

    /// The tool's options with what was asked for.
    pub(crate) fn options(&self) -> WorldOptions {
        let min_free_bytes = self.min_free.map(|mib| mib.saturating_mul(1 << 20));
        WorldOptions { min_free_bytes, ..options() }
    }
}

/// How long a command waits for a world that another process has open.
#[derive(Debug, clap::Args)]
pub(crate) struct WaitArg {
    /// Seconds to wait while another process has the world open; then the exit code is 3 [default: 0].
    #[arg(long, value_name = "SECONDS")]
    wait: Option<u64>,
}

/// How often a world is tried while another process has it open.
const TRY_EVERY: Duration = Duration::from_millis(100);

impl WaitArg {
    /// Calls `open` until the world is not held by another process, or the time is over; its last result.
    pub(crate) fn when_free<T, E: Error + 'static>(
        &self,
        out: &Output,
        mut open: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let (began, limit) = (Instant::now(), Duration::from_secs(self.wait.unwrap_or(0)));
        let mut progress: Option<ProgressBar> = None;
        let opened = loop {
            let opened = open();
            let left = limit.saturating_sub(began.elapsed());
            match &opened {
                Err(error) if is_held(error) && !left.is_zero() => {
                    let bar = progress.get_or_insert_with(|| {
                        out.warn(&format!("{error}; waiting for {} s at most", limit.as_secs()));
                        out.progress_of("seconds waited", limit.as_secs())
                    });
                    bar.set_position(began.elapsed().as_secs());
                    thread::sleep(TRY_EVERY.min(left));
                }
                _ => break opened,
            }
        };
        if let Some(bar) = progress {
            bar.finish_and_clear();
        }
        opened
    }
}

/// The options with which the tool opens worlds: a tool looks at most chunks once, so it keeps few.
pub(crate) fn options() -> WorldOptions {
    WorldOptions { cache_bytes: 32 << 20, ..WorldOptions::default() }
}

/// A dimension of the world.
#[derive(Debug, clap::Args)]
pub(crate) struct DimensionArg {
    /// A dimension's name; the part after the colon is enough where it is not ambiguous [default: minecraft:overworld, or the
    /// world's first].
    #[arg(id = "dimension", long, visible_alias = "dim", short = 'd', value_name = "NAME")]
    name: Option<String>,
}

impl DimensionArg {
    pub(crate) const fn is_given(&self) -> bool {
        self.name.is_some()
    }

    /// Finds the dimension by name.
    pub(crate) fn find(&self, catalog: &Catalog) -> Result<Dimension, Failure> {
        dimension_or_default(catalog, self.name.as_deref())
    }
}

/// Finds a dimension by name; without one, the overworld of a save, or else the world's first.
pub(crate) fn dimension_or_default(catalog: &Catalog, wanted: Option<&str>) -> Result<Dimension, Failure> {
    match wanted {
        Some(wanted) => find_dimension(catalog, wanted),
        None if catalog.list(ListKind::Dimensions).names().is_empty() => {
            Err(Failure::usage("the world has no dimension yet; nothing was ever stored in it"))
        }
        None => Ok(catalog.dimension("minecraft:overworld").unwrap_or(Dimension::new(0))),
    }
}

/// Finds a dimension by its name, by the part of it after the colon, or by `#` and its number, as lists show one that has no
/// name there.
pub(crate) fn find_dimension(catalog: &Catalog, wanted: &str) -> Result<Dimension, Failure> {
    let names = catalog.list(ListKind::Dimensions).names();
    if let Some(found) = catalog.dimension(wanted) {
        return Ok(found);
    }
    let number = wanted.strip_prefix('#').and_then(|number| number.parse().ok());
    if let Some(number) = number {
        return Ok(Dimension::new(number));
    }
    let mut short = (0..).zip(names).filter(|(_, name)| name.identifier() == wanted);
    if let (Some((id, _)), None) = (short.next(), short.next()) {
        return Ok(Dimension::new(id));
    }
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    let known = if names.is_empty() { "none".into() } else { names.join(", ") };
    Err(Failure::unknown_dimension(format!("the world has no dimension `{wanted}`; it has {known}")))
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
    pub(crate) const fn is_given(&self) -> bool {
        !self.corners.is_empty()
    }

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
pub(crate) fn boxes(corners: &[i64]) -> Result<Vec<BlockBox>, Failure> {
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

#[cfg(test)]
mod tests {
    use cg_registry::Registration;

    use super::*;

    #[test]
    fn dimensions_have_names_short_names_or_numbers() {
        let mut catalog = Catalog::new();
        let dimensions = ["game:overworld", "game:moon"].map(|name| name.parse().unwrap()).into();
        catalog.register(&Registration { dimensions, ..Registration::default() }).unwrap();
        let find = |wanted| find_dimension(&catalog, wanted).map_err(|refused| refused.to_string());
        assert_eq!(find("game:moon"), Ok(Dimension::new(1)));
        assert_eq!(find("moon"), Ok(Dimension::new(1)));
        assert_eq!(find("#77"), Ok(Dimension::new(77)), "no name has this number");
        assert_eq!(find("#1"), Ok(Dimension::new(1)), "whatever it is called here");
        for wanted in ["#", "#x", "sun"] {
            let expected =
                format!("the world has no dimension `{wanted}`; it has `game:overworld`, `game:moon`");
            assert_eq!(find(wanted), Err(expected));
        }
    }
}
