//! `cg pack`: objects and a box of chunks into one file.

use std::collections::HashSet;
use std::fmt;
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use cg_anvil::mapping::kept;
use cg_anvil::new_file::NewFile;
use cg_format::codec::Codec;
use cg_format::entity::{Entity, Owner};
use cg_format::{BlockBox, ChunkAt, ChunkBox, ChunkPos, Dimension, LocalPos};
use cg_minecraft::name;
use cg_registry::ListKind;
use cg_snapshot::pack::{PackInfo, PackWriter, PackedObject};
use cg_snapshot::{CaptureOptions, Contents, Region, Snapshot, SnapshotError, capture};
use cg_store::World;
use cg_store::objects::ObjectKey;
use cg_store::records::RecordQuery;
use cg_store::view::Area;
use clap::ValueHint;
use serde::Serialize;

use super::name_of;
use super::object::key_bytes;
use super::snapshot::watched::Watched;
use crate::args::{BoxArg, DimensionArg, WorldArg};
use crate::output::{Failure, Outcome, Output, bytes_text, counted, grouped};

/// Write objects and a box of chunks into one file, which `cg unpack` puts into another world.
///
/// The box is of whole chunks; with them go components, side data, the entities that belong to them, and the names of all
/// that they use. A pack holds no spatial records and no detached entities, which belong to no chunk
/// (nor those above and below the box in a column all of whose chunks it has), nor entities of its chunks
/// that stand outside of the box, nor the kept slots of its columns, which are objects: `--objects minecraft/slot` packs all of
/// them. Where the box has some, nothing is written and the exit code is 1, unless `--without-records` is given; to count them,
/// every entity of the world is read once. Properties, and objects under other prefixes, belong to no box and are not in the
/// pack: so is what an import kept of columns beside their chunks. FILE must not exist. JSON:
/// `{"objects":N,"object_bytes":N,"sections":N,"present":N,"entities":N,"left_records":N,"left_detached":N,"left_outside":N,"left_kept_slots":N,"parts":N,"bytes":N}`.
/// Exit code 4 if no object begins with one of the prefixes.
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
    #[command(flatten)]
    area: BoxArg,
    #[command(flatten)]
    dimension: DimensionArg,
    /// Pack the box without its spatial records, detached entities and kept slots; they are counted.
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
    left_records: u64,
    left_detached: u64,
    left_outside: u64,
    left_kept_slots: u64,
    parts: u32,
    bytes: u64,
}

/// Contents of a box that no pack holds.
#[derive(Debug, Default)]
pub(super) struct Left {
    records: u64,
    detached: u64,
    /// Entities that belong to chunks of the box and stand elsewhere.
    outside: u64,
    /// Slots of its columns that are kept as bytes.
    kept_slots: u64,
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
}

impl ChoiceArg {
    /// Whether anything was chosen.
    pub(super) fn is_given(&self) -> bool {
        self.area.is_given() || !self.prefixes.is_empty() || self.dimension.is_given() || self.without_records
    }

    pub(super) fn get(&self) -> Result<Chosen, Failure> {
        let area = self.area.get("run `cg pack` once for each box, with a file of its own")?;
        if self.prefixes.is_empty() && area.is_none() {
            return Err(Failure::usage(
                "say what to pack: --objects PREFIX, --box X0 Y0 Z0 X1 Y1 Z1, or both",
            ));
        }
        if area.is_none() && self.dimension.is_given() {
            return Err(Failure::usage("--dim says where the box lies; give --box too"));
        }
        area.map_or(Ok(()), check_aligned)?;
        Ok(Chosen { area, prefixes: prefixes(&self.prefixes)? })
    }

    /// Counts the contents of the box that a pack does not hold, and refuses them unless they may be left.
    pub(super) fn left(&self, world: &World, chosen: &Chosen) -> Result<Left, Failure> {
        let Chosen { area, prefixes } = chosen;
        let left = area.map_or(Ok(Left::default()), |area| left_in(world, area, self, prefixes))?;
        if !self.without_records && !left.is_nothing() {
            return Err(Failure::refused(format!(
                "the box has {left}, which a pack does not hold; nothing was written, and with --without-records it is packed \
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
        write(world, region.as_ref(), &chosen.prefixes, to, path)
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

/// Counts the contents of a box that the pack does not hold. A damaged record or entity ends it: it may be of the box.
fn left_in(world: &World, area: BlockBox, args: &ChoiceArg, prefixes: &[Vec<u8>]) -> Result<Left, Failure> {
    let catalog = world.catalog();
    let dimension = args.dimension.find(&catalog)?;
    let mut records = 0;
    let failed = world.records().for_each_in(&RecordQuery::new(dimension, area), |record| match record {
        Ok((_, record)) => {
            records += u64::from(area.contains(record.position.block()));
            ControlFlow::Continue(())
        }
        Err(error) => ControlFlow::Break(error),
    })?;
    failed.map_or(Ok(()), Err)?;
    let chunks = area.chunks();
    let (mut detached, mut outside) = (0, 0);
    let packed = packed_columns(world, dimension, chunks)?;
    let failed = world.read_view(|view| {
        view.for_each_entity(|entity| match entity {
            Ok((_, Entity { owner, position, .. })) => {
                let is_here = position.dimension() == dimension;
                let stands_in = is_here && area.contains(position.block());
                let is_owned = |at: ChunkAt| at.dimension == dimension && chunks.contains(at.pos);
                let chunk = position.block().chunk();
                match owner {
                    // Above and below, `cg prune` takes them with the column's last chunk.
                    Owner::Detached(_) => {
                        let is_of_column = || is_here && packed.contains(&(chunk.x(), chunk.z()));
                        detached += u64::from(stands_in || is_of_column());
                    }
                    Owner::Chunk(at) => outside += u64::from(is_owned(at) && !stands_in),
                }
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        })
    })?;
    failed.map_or(Ok(()), Err)?;
    let dimension_name = name::text(&name_of(&catalog, ListKind::Dimensions, dimension.get()));
    let kept = kept::keys_of_dimension(world, &dimension_name)?.into_iter();
    let kept_slots = kept.filter(|(key, column)| {
        let (x, z) = (i64::from(column.x), i64::from(column.z));
        let is_inside = (chunks.min().x()..=chunks.max().x()).contains(&x)
            && (chunks.min().z()..=chunks.max().z()).contains(&z);
        is_inside && !prefixes.iter().any(|prefix| key.as_bytes().starts_with(prefix))
    });
    Ok(Left { records, detached, outside, kept_slots: kept_slots.count() as u64 })
}

/// The columns of which all chunks are in a box.
fn packed_columns(
    world: &World,
    dimension: Dimension,
    chunks: ChunkBox,
) -> Result<HashSet<(i64, i64)>, Failure> {
    let at = |corner: ChunkPos, y: i64| ChunkPos::new(corner.x(), y, corner.z());
    let [bottom, top] = [at(chunks.min(), i64::from(i8::MIN)), at(chunks.max(), i64::from(i8::MAX))];
    let (Ok(bottom), Ok(top)) = (bottom, top) else { return Ok(HashSet::new()) };
    let (mut inside, mut beyond) = (HashSet::new(), HashSet::new());
    let failed = world.read_view(|view| {
        view.for_each_place(Area::Box(dimension, ChunkBox::new(bottom, top)), |stored| match stored {
            Ok(stored) => {
                let pos = stored.at.pos;
                let columns = if chunks.contains(pos) { &mut inside } else { &mut beyond };
                columns.insert((pos.x(), pos.z()));
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        })
    })?;
    failed.map_or(Ok(()), Err)?;
    Ok(inside.difference(&beyond).copied().collect())
}

impl Left {
    pub(super) const fn is_nothing(&self) -> bool {
        self.records + self.detached + self.outside + self.kept_slots == 0
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entities = |count, of: &str| match count {
            0 => None,
            1 => Some(format!("1 {of}entity")),
            count => Some(format!("{} {of}entities", grouped(count))),
        };
        let records = (self.records > 0).then(|| counted(self.records, "record"));
        let outside = entities(self.outside, "").map(|it| format!("{it} of its chunks outside of it"));
        let kept_slots = (self.kept_slots > 0).then(|| counted(self.kept_slots, "kept slot"));
        let all = [records, entities(self.detached, "detached "), outside, kept_slots];
        let all: Vec<_> = all.into_iter().flatten().collect();
        f.write_str(&all.join(", "))
    }
}

/// The prefixes, ascending, without those that begin with another: their objects follow each other by key, each once.
fn prefixes(given: &[String]) -> Result<Vec<Vec<u8>>, Failure> {
    let mut all = given.iter().map(|text| key_bytes(text)).collect::<Result<Vec<_>, _>>()?;
    all.sort();
    all.dedup_by(|later, earlier| later.starts_with(earlier));
    Ok(all)
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

fn write<W: Write>(
    world: &World,
    region: Option<&Snapshot>,
    prefixes: &[Vec<u8>],
    out: W,
    path: &Path,
) -> Result<(W, PackInfo), Failure> {
    let failed = |error| match error {
        SnapshotError::Io(error) => Failure::io("write", path, &error),
        error => Failure::failed(error),
    };
    let mut pack = PackWriter::new(out, Codec::Lz4).map_err(failed)?;
    if let Some(region) = region {
        pack.region(region).map_err(failed)?;
    }
    for prefix in prefixes {
        let mut is_met = false;
        let refused = world.objects().for_each(prefix, |object| {
            // What the store keeps for itself holds of this world only.
            if object.as_ref().is_ok_and(|(key, ..)| key.starts_with(ObjectKey::STORES_OWN)) {
                return ControlFlow::Continue(());
            }
            is_met = true;
            let added = object.map_err(Failure::from).and_then(|(key, version, bytes)| {
                pack.object(PackedObject { key, version, bytes }).map_err(failed)
            });
            added.map_or_else(ControlFlow::Break, ControlFlow::Continue)
        })?;
        if let Some(failure) = refused {
            return Err(failure);
        }
        if !is_met {
            let prefix = prefix.escape_ascii();
            return Err(Failure::absent(format!("no object begins with `{prefix}`; nothing was written")));
        }
    }
    pack.finish().map_err(failed)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { objects, object_bytes, sections, present, entities, bytes, .. } = self;
        writeln!(f, "packed: {} with {}", counted(*objects, "object"), bytes_text(*object_bytes))?;
        if *sections > 0 {
            let entities = if *entities == 1 { "1 entity".into() } else { format!("{entities} entities") };
            writeln!(f, "  {} of {}, {entities}", counted(*present, "chunk"), counted(*sections, "place"))?;
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
