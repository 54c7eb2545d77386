//! `cg get`: what one chunk or one block holds.

use std::collections::BTreeMap;
use std::fmt;

use cg_anvil::mapping::kept::{self, Folder};
use cg_anvil::mapping::{KeptSlot, place};
use cg_format::chunk::{CellLayer, Chunk};
use cg_format::{BlockPos, ChunkAt, ChunkPos, EntityId, SchemaView};
use cg_minecraft::name;
use cg_registry::{Catalog, ListKind};
use cg_store::World;
use serde::Serialize;

use super::info::tier_name;
use super::name_of;
use crate::args::{DimensionArg, WorldArg, chunk_pos};
use crate::output::{Failure, Outcome, Output, bytes_text, counted, grouped, hex};
use crate::shown::shown;
use crate::snbt::snbt;

/// Show what a chunk or a block holds, as the current registry names it.
///
/// Data of a block that is NBT is shown whole, as SNBT; JSON has it in `"snbt"`, and all bytes in `"hex"`. Exit code 4 if the
/// chunk is not stored; 1 if it is damaged, or if an import could not read the column's slot, as the message says then.
#[derive(Debug, clap::Args)]
#[group(id = "place", required = true, multiple = false, args = ["chunk", "block"])]
pub(crate) struct Args {
    #[command(flatten)]
    world: WorldArg,
    #[command(flatten)]
    dimension: DimensionArg,
    /// The position of a chunk, in chunks.
    #[arg(long, num_args = 3, action = clap::ArgAction::Set, value_names = ["X", "Y", "Z"], allow_negative_numbers = true)]
    chunk: Option<Vec<i64>>,
    /// The position of a block.
    #[arg(long, num_args = 3, action = clap::ArgAction::Set, value_names = ["X", "Y", "Z"], allow_negative_numbers = true)]
    block: Option<Vec<i64>>,
}

/// Bytes of a component that is no NBT that are shown as text.
const PREVIEW_BYTES: usize = 64;

/// How a chunk is stored.
#[derive(Debug, Clone, Serialize)]
struct Stored {
    version: u64,
    tier: &'static str,
    schema_generation: u32,
    value_bytes: usize,
}

#[derive(Debug, Serialize)]
struct ChunkReport {
    dimension: String,
    chunk: [i64; 3],
    #[serde(flatten)]
    stored: Stored,
    palette: Vec<PaletteReport>,
    upper_layer_blocks: usize,
    components: Vec<ComponentReport>,
    unread_component_bytes: usize,
    entities: Vec<EntityReport>,
    sides: Vec<SideReport>,
}

#[derive(Debug, Serialize)]
struct PaletteReport {
    block: String,
    id: u64,
    count: u32,
}

#[derive(Debug, Serialize)]
struct ComponentReport {
    component: String,
    instances: u64,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct EntityReport {
    uuid: String,
    kind: Option<String>,
    position: Option<[f64; 3]>,
    /// Why kind and position are not known.
    problem: Option<String>,
}

#[derive(Debug, Serialize)]
struct SideReport {
    side: String,
    bytes: usize,
}

#[derive(Debug, Serialize)]
struct BlockReport {
    dimension: String,
    block: [i64; 3],
    chunk: [i64; 3],
    #[serde(flatten)]
    stored: Stored,
    layers: Vec<LayerReport>,
}

#[derive(Debug, Serialize)]
struct LayerReport {
    layer: u8,
    block: String,
    id: u64,
    opaque: bool,
    components: Vec<Preview>,
}

/// A component's bytes.
#[derive(Debug, Serialize)]
struct Preview {
    component: String,
    bytes: usize,
    hex: String,
    text: Option<String>,
    /// As text, if they are NBT.
    #[serde(skip_serializing_if = "Option::is_none")]
    snbt: Option<String>,
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let world = args.world.open(out)?;
    let catalog = world.catalog();
    let dimension = args.dimension.find(&catalog)?;
    let block = match args.block.as_deref() {
        Some(&[x, y, z]) => Some(BlockPos::new(x, y, z)),
        _ => None,
    };
    let pos = match block {
        Some(block) => block.chunk(),
        None => chunk_pos(args.chunk.as_deref().unwrap_or_default())?,
    };
    let at = ChunkAt::new(dimension, pos);
    let found = world.tiers().with_stored_bytes(at, |stored| {
        Ok(Stored {
            version: stored.version.get(),
            tier: tier_name(stored.tier),
            schema_generation: stored.schema_generation,
            value_bytes: stored.value.len(),
        })
    })?;
    let (Some(stored), Some(chunk)) = (found, world.load(at)?) else {
        let [x, y, z] = xyz(pos);
        let name = name_of(&catalog, ListKind::Dimensions, dimension.get());
        let place = format!("chunk {x} {y} {z} of {name} is not stored");
        return Err(match unread(&world, &name, pos)? {
            None => Failure::absent(format!("{place}: it was never generated, or was deleted")),
            // It was there, and is in the bytes that are kept.
            Some(why) => Failure::damaged(format!("{place}: {why}")),
        });
    };
    let name = name_of(&catalog, ListKind::Dimensions, dimension.get());
    // What of its column is missing does not keep the chunk from being shown.
    match unread(&world, &name, pos) {
        Ok(None) => {}
        Ok(Some(why)) => out.warn(&why),
        Err(failure) => out.warn(&failure.to_string()),
    }
    match block {
        Some(block) => out.print(&block_report(&catalog, name, block, stored, &chunk))?,
        None => out.print(&chunk_report(&world, &catalog, name, pos, stored, &chunk))?,
    }
    Ok(Outcome::Good)
}

/// Why an import could not read the slot of a chunk, if it kept that as bytes.
fn unread(world: &World, dimension: &str, pos: ChunkPos) -> Result<Option<String>, Failure> {
    let Some(column) = place::column_of(pos) else { return Ok(None) };
    let Ok(key) = kept::slot_key(Folder::Region, &name::text(dimension), column) else {
        return Ok(None);
    };
    let Some(object) = world.objects().get(&key)? else { return Ok(None) };
    let kept = KeptSlot::decode(&object.bytes, Folder::Region, column);
    Ok(Some(match kept {
        Some(kept) if kept.is_old() => {
            format!("column {column} is of before 1.13, and is kept as bytes that an export writes again")
        }
        kept => {
            let has_bytes = kept.as_ref().is_none_or(|kept| kept.bytes.are_there());
            let reason = kept.map_or_else(String::new, |kept| format!(" ({})", kept.reason));
            let becomes = if has_bytes {
                "its bytes are kept, and an export writes them again until the column is changed"
            } else {
                "its bytes are not kept, and an export counts it as left out"
            };
            format!(
                "not all of the slot of column {column} could be read when it was imported{reason}; {becomes}"
            )
        }
    }))
}

fn chunk_report(
    world: &World,
    catalog: &Catalog,
    dimension: String,
    pos: ChunkPos,
    stored: Stored,
    chunk: &Chunk,
) -> ChunkReport {
    let mut palette: Vec<_> = chunk
        .palette()
        .into_iter()
        .map(|entry| PaletteReport {
            block: name_of(catalog, ListKind::Blocks, entry.block.get()),
            id: entry.block.get(),
            count: entry.count,
        })
        .collect();
    palette.sort_by(|a, b| b.count.cmp(&a.count).then(a.id.cmp(&b.id)));
    let mut components: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for (component, _, bytes) in chunk.components() {
        let (instances, len_bytes) = components.entry(component.index()).or_default();
        *instances += 1;
        *len_bytes += bytes.len() as u64;
    }
    ChunkReport {
        dimension,
        chunk: xyz(pos),
        stored,
        palette,
        upper_layer_blocks: chunk.upper_layers().count(),
        components: components
            .into_iter()
            .map(|(index, (instances, bytes))| ComponentReport {
                component: name_of(catalog, ListKind::Components, index),
                instances,
                bytes,
            })
            .collect(),
        unread_component_bytes: chunk.unread_components().len(),
        entities: chunk.entities().iter().map(|id| entity_report(world, catalog, *id)).collect(),
        sides: chunk
            .sides()
            .map(|(kind, bytes)| SideReport {
                side: name_of(catalog, ListKind::Sides, kind.get().into()),
                bytes: bytes.len(),
            })
            .collect(),
    }
}

fn entity_report(world: &World, catalog: &Catalog, id: EntityId) -> EntityReport {
    let uuid = id.to_string();
    match world.entity(id) {
        Ok(Some(entity)) => EntityReport {
            uuid,
            kind: Some(name_of(catalog, ListKind::Entities, entity.kind.get())),
            position: Some(entity.position.to_f64()),
            problem: None,
        },
        Ok(None) => {
            EntityReport { uuid, kind: None, position: None, problem: Some("it is not stored".into()) }
        }
        Err(error) => EntityReport { uuid, kind: None, position: None, problem: Some(error.to_string()) },
    }
}

fn block_report(
    catalog: &Catalog,
    dimension: String,
    pos: BlockPos,
    stored: Stored,
    chunk: &Chunk,
) -> BlockReport {
    let (cell, schema) = (pos.local(), catalog.current_schema());
    let layers = (0..chunk.layer_count(cell) as u8).filter_map(|layer| {
        let block = chunk.layer(cell, layer)?;
        let at = CellLayer::new(cell, layer);
        let components = schema.components_of(block).unwrap_or(&[]);
        let components = components.iter().filter_map(|component| {
            let bytes = chunk.component(at, *component)?;
            Some(Preview::new(name_of(catalog, ListKind::Components, component.index()), bytes))
        });
        Some(LayerReport {
            layer,
            block: name_of(catalog, ListKind::Blocks, block.get()),
            id: block.get(),
            opaque: schema.is_opaque(block),
            components: components.collect(),
        })
    });
    BlockReport {
        dimension,
        block: [pos.x, pos.y, pos.z],
        chunk: xyz(pos.chunk()),
        stored,
        layers: layers.collect(),
    }
}

impl Preview {
    fn new(component: String, bytes: &[u8]) -> Self {
        let text =
            str::from_utf8(bytes).ok().filter(|text| !text.is_empty() && !text.contains(char::is_control));
        let (text, snbt) = (text.map(str::to_owned), snbt(bytes));
        Self { component, bytes: bytes.len(), hex: hex(bytes), text, snbt }
    }

    /// The first bytes of what is no NBT.
    fn write_start(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = self.hex.get(..2 * PREVIEW_BYTES).unwrap_or(&self.hex);
        let rest = match self.bytes - hex.len() / 2 {
            0 => String::new(),
            left => format!("… ({} more; --json shows all)", counted(left as u64, "byte")),
        };
        writeln!(f, "    {hex}{rest}")?;
        match &self.text {
            Some(text) => writeln!(f, "    {text:?}"),
            None => Ok(()),
        }
    }
}

const fn xyz(pos: ChunkPos) -> [i64; 3] {
    [pos.x(), pos.y(), pos.z()]
}

fn write_head(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    [x, y, z]: [i64; 3],
    dimension: &str,
    stored: &Stored,
) -> fmt::Result {
    writeln!(f, "{what} {x} {y} {z} of {dimension}")?;
    let Stored { version, tier, schema_generation, value_bytes } = stored;
    let (tier, size) = (tier.to_uppercase(), bytes_text(*value_bytes as u64));
    writeln!(f, "  version {version}, tier {tier}, schema generation {schema_generation}, {size}")
}

impl fmt::Display for ChunkReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_head(f, "chunk", self.chunk, &self.dimension, &self.stored)?;
        writeln!(f, "blocks: {}", counted(self.palette.len() as u64, "kind"))?;
        for entry in &self.palette {
            writeln!(f, "  {:>5}  {}", grouped(entry.count.into()), entry.block)?;
        }
        if self.upper_layer_blocks > 0 {
            writeln!(f, "upper layers: {}", counted(self.upper_layer_blocks as u64, "block"))?;
        }
        if !self.components.is_empty() {
            writeln!(f, "components")?;
        }
        for entry in &self.components {
            let (instances, size) = (grouped(entry.instances), bytes_text(entry.bytes));
            writeln!(f, "  {instances:>5}  {}  ({size})", entry.component)?;
        }
        if self.unread_component_bytes > 0 {
            let size = bytes_text(self.unread_component_bytes as u64);
            writeln!(f, "  {size} of components that no schema explains, kept as they are")?;
        }
        if !self.entities.is_empty() {
            writeln!(f, "entities: {}", self.entities.len())?;
        }
        for entity in &self.entities {
            if let (Some(kind), Some([x, y, z])) = (&entity.kind, entity.position) {
                writeln!(f, "  {}  {kind} at {x:.2} {y:.2} {z:.2}", entity.uuid)?;
            } else {
                let problem = shown(entity.problem.as_deref().unwrap_or(""));
                writeln!(f, "  {}  {problem}", entity.uuid)?;
            }
        }
        if !self.sides.is_empty() {
            writeln!(f, "side data")?;
        }
        for side in &self.sides {
            writeln!(f, "  {:>9}  {}", bytes_text(side.bytes as u64), side.side)?;
        }
        Ok(())
    }
}

impl fmt::Display for BlockReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_head(f, "block", self.block, &self.dimension, &self.stored)?;
        for layer in &self.layers {
            let opaque = if layer.opaque { "opaque" } else { "not opaque" };
            writeln!(f, "layer {}: {} (id {}, {opaque})", layer.layer, layer.block, layer.id)?;
            for component in &layer.components {
                writeln!(f, "  {}: {}", component.component, counted(component.bytes as u64, "byte"))?;
                match &component.snbt {
                    Some(snbt) => writeln!(f, "    {snbt}")?,
                    None => component.write_start(f)?,
                }
            }
        }
        Ok(())
    }
}
