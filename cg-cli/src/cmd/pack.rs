//! `cg pack`: a box of chunks with its records, properties and objects into one file.

mod left;
mod values;

use std::fmt;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use cg_anvil::new_file::NewFile;
use cg_format::codec::Codec;
use cg_format::{BlockBox, LocalPos};
use cg_snapshot::pack::{PackInfo, PackWriter};
use cg_snapshot::{CaptureOptions, Contents, Region, Snapshot, SnapshotError, capture};
use cg_store::World;
use clap::ValueHint;
use serde::Serialize;

pub(super) use self::left::Left;
use self::left::left_in;
pub(super) use self::values::is_worlds_own;
use self::values::{add_objects, add_properties, add_records};
use super::object::key_bytes;
use super::snapshot::watched::Watched;
use crate::args::{BoxArg, DimensionArg, WorldArg};
use crate::output::{Failure, Outcome, Output, bytes_text, counted, grouped};

/// Write a box of chunks, properties and objects into one file, which `cg unpack` puts into another world.
///
/// The box is of whole chunks; with them go components, side data, the entities that belong to them, the spatial records in the
/// box, and the names of all that they use. A pack holds no detached entities, which belong to no chunk
/// (nor those above and below the box in a column all of whose chunks it has), nor entities of its chunks
/// that stand outside of the box, nor the kept slots of its columns, which are objects: `--objects minecraft/slot` packs all of
/// them. Where the box has some, nothing is written and the exit code is 1, unless `--without-detached` is given; to count them,
/// every entity of the world is read once. Properties and objects belong to no box and are packed by their names; settings and
/// what the engine keeps for itself are left out. FILE must not exist. JSON:
/// `{"objects":N,"object_bytes":N,"sections":N,"present":N,"entities":N,"records":N,"properties":N,"left_records":N,
/// "left_detached":N,"left_outside":N,"left_kept_slots":N,"parts":N,"bytes":N}`.
/// Exit code 4 if no object or property begins with one of the prefixes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    world: WorldArg,
    /// The file to write.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    choice: ChoiceArg,
}

/// What is packed of a world.
#[derive(Debug, clap::Args)]
pub(super) struct ChoiceArg {
    /// The objects whose keys begin so; may be given several times.
    #[arg(long = "objects", value_name = "PREFIX")]
    prefixes: Vec<String>,
    /// The properties whose names begin so; may be given several times.
    #[arg(long = "properties", value_name = "PREFIX")]
    properties: Vec<String>,
    #[command(flatten)]
    area: BoxArg,
    #[command(flatten)]
    dimension: DimensionArg,
    /// Pack the box without its detached entities, entities outside and kept slots; they are counted.
    #[arg(long)]
    without_detached: bool,
    /// The same, and without its spatial records.
    #[arg(long)]
    without_records: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    objects: u64,
    object_bytes: u64,
    sections: u64,
    present: u64,
    entities: u64,
    records: u64,
    properties: u64,
    left_records: u64,
    left_detached: u64,
    left_outside: u64,
    left_kept_slots: u64,
    parts: u32,
    bytes: u64,
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let chosen = args.choice.get()?;
    let world = args.world.open(out)?;
    let left = args.choice.left(&world, &chosen)?;
    let failed = |error| Failure::io("write", &args.file, &error);
    // Before the work, not after it.
    let file = NewFile::create(&args.file).map_err(failed)?;
    let (file, info) = args.choice.pack(&world, &chosen, BufWriter::new(file), &args.file, out)?;
    let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
    file.finish().map_err(failed)?;
    let region = info.region.as_ref();
    let of_region = |count: fn(&cg_snapshot::SnapshotInfo) -> u64| region.map_or(0, count);
    out.print(&Report {
        objects: info.object_count,
        object_bytes: info.object_bytes,
        sections: of_region(|region| region.section_count),
        present: of_region(|region| region.present_count),
        entities: of_region(|region| region.entity_count),
        records: info.records.count,
        properties: info.properties.count,
        left_records: left.records,
        left_detached: left.detached,
        left_outside: left.outside,
        left_kept_slots: left.kept_slots,
        parts: info.part_count,
        bytes: info.len_bytes,
    })?;
    Ok(Outcome::Good)
}

/// Checked values of [`ChoiceArg`].
pub(super) struct Chosen {
    pub(super) area: Option<BlockBox>,
    prefixes: Vec<Vec<u8>>,
    /// Prefixes of properties, as those of objects.
    pub(super) properties: Vec<String>,
}

impl ChoiceArg {
    /// Whether anything was chosen.
    pub(super) fn is_given(&self) -> bool {
        let has_names = !self.prefixes.is_empty() || !self.properties.is_empty();
        let is_without = self.without_detached || self.without_records;
        self.area.is_given() || has_names || self.dimension.is_given() || is_without
    }

    pub(super) fn get(&self) -> Result<Chosen, Failure> {
        let area = self.area.get("run `cg pack` once for each box, with a file of its own")?;
        if self.prefixes.is_empty() && self.properties.is_empty() && area.is_none() {
            return Err(Failure::usage(
                "say what to pack: --objects PREFIX, --properties PREFIX, --box X0 Y0 Z0 X1 Y1 Z1, or several of them",
            ));
        }
        if area.is_none() && self.dimension.is_given() {
            return Err(Failure::usage("--dim says where the box lies; give --box too"));
        }
        area.map_or(Ok(()), check_aligned)?;
        let objects = self.prefixes.iter().map(|text| key_bytes(text)).collect::<Result<_, _>>()?;
        let properties = alone(self.properties.clone(), |later, earlier| later.starts_with(earlier));
        let prefixes = alone(objects, |later: &Vec<u8>, earlier| later.starts_with(earlier));
        Ok(Chosen { area, prefixes, properties })
    }

    /// Counts the contents of the box that a pack does not hold, and refuses them unless they may be left.
    pub(super) fn left(&self, world: &World, chosen: &Chosen) -> Result<Left, Failure> {
        let Chosen { area, prefixes, .. } = chosen;
        let left = area.map_or(Ok(Left::default()), |area| left_in(world, area, self, prefixes))?;
        if !self.without_records && !self.without_detached && !left.is_nothing() {
            return Err(Failure::refused(format!(
                "the box has {left}, which a pack does not hold; nothing was written, and with --without-detached it is packed \
                 without them"
            )));
        }
        Ok(left)
    }

    /// Writes the pack.
    pub(super) fn pack<W: Write>(
        &self,
        world: &World,
        chosen: &Chosen,
        to: W,
        path: &Path,
        out: &Output,
    ) -> Result<(W, PackInfo), Failure> {
        let region = chosen.area.map(|area| captured(world, area, self, out)).transpose()?;
        let failed = |error| match error {
            SnapshotError::Io(error) => Failure::io("write", path, &error),
            error => Failure::failed(error),
        };
        let mut pack = PackWriter::new(to, Codec::Lz4).map_err(failed)?;
        if let Some(region) = &region {
            pack.region(region).map_err(failed)?;
            if !self.without_records {
                add_records(world, region.region(), &mut pack, failed)?;
            }
        }
        add_properties(world, &chosen.properties, &mut pack, failed)?;
        add_objects(world, &chosen.prefixes, &mut pack, failed)?;
        pack.finish().map_err(failed)
    }
}

/// Refuses a box that cuts chunks, and says which one would do.
fn check_aligned(area: BlockBox) -> Result<(), Failure> {
    let chunks = area.chunks();
    let (min, max) = (chunks.min().min_block(), chunks.max().block(LocalPos::new(15, 15, 15)));
    if (min, max) == (area.min(), area.max()) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "a pack holds whole chunks; those that the box meets are --box {} {} {} {} {} {}",
        min.x, min.y, min.z, max.x, max.y, max.z
    )))
}

/// Prefixes, ascending, without those that begin with another: what they choose ascends too, each once.
fn alone<T: Ord>(mut prefixes: Vec<T>, begins: impl Fn(&T, &T) -> bool) -> Vec<T> {
    prefixes.sort();
    prefixes.dedup_by(|later, earlier| begins(later, earlier));
    prefixes
}

fn captured(world: &World, area: BlockBox, args: &ChoiceArg, out: &Output) -> Result<Snapshot, Failure> {
    let region = Region::new(args.dimension.find(&world.catalog())?, area);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let options =
        CaptureOptions { name: "pack".into(), created_ms: now.as_millis() as u64, contents: Contents::ALL };
    let progress = out.progress_of("sections captured", area.chunks().count() as u64);
    let captured = world.read_view(|view| {
        let source = Watched { source: view, progress: &progress };
        capture(&source, view.catalog(), region, &options).map_err(Failure::failed)
    });
    progress.finish_and_clear();
    captured
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { objects, object_bytes, sections, present, entities, bytes, .. } = self;
        writeln!(f, "packed: {} with {}", counted(*objects, "object"), bytes_text(*object_bytes))?;
        if *sections > 0 {
            let entities = if *entities == 1 { "1 entity".into() } else { format!("{entities} entities") };
            writeln!(f, "  {} of {}, {entities}", counted(*present, "chunk"), counted(*sections, "place"))?;
        }
        if self.records > 0 {
            writeln!(f, "  {}", counted(self.records, "record"))?;
        }
        match self.properties {
            0 => {}
            1 => writeln!(f, "  1 property")?,
            count => writeln!(f, "  {} properties", grouped(count))?,
        }
        let left = Left {
            records: self.left_records,
            detached: self.left_detached,
            outside: self.left_outside,
            kept_slots: self.left_kept_slots,
        };
        if !left.is_nothing() {
            writeln!(f, "  without {left}")?;
        }
        writeln!(f, "  {} in the file", bytes_text(*bytes))
    }
}
