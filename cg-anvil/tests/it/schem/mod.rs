//! Schematics through a world: what goes in comes out, and what was there stays where it should.

mod export;
mod import;
mod round;

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use cg_anvil::mapping::Ids;
use cg_anvil::nbt;
use cg_anvil::schem::{ExportOptions, ExportReport, ImportReport, SchemFile, export, import};
use cg_format::LocalPos;
use cg_snapshot::schem::{BlockEntity, Grid, GridShape, SchemEntity, SchemHead, SchemWriter};
use cg_store::prelude::*;

use crate::worlds;

type Mem = World;

/// Everything that a schematic says, in a form that does not depend on how it says it.
#[derive(Debug, PartialEq)]
struct Content {
    size: [u16; 3],
    data_version: i32,
    states: Vec<String>,
    biomes: Option<Vec<String>>,
    block_entities: Vec<BlockEntity>,
    entities: Vec<SchemEntity>,
}

/// The same state however its properties are ordered.
fn sorted(state: &str) -> String {
    let Some((block, properties)) = state.strip_suffix(']').and_then(|state| state.split_once('[')) else {
        return state.to_owned();
    };
    let mut properties: Vec<_> = properties.split(',').collect();
    properties.sort_unstable();
    format!("{block}[{}]", properties.join(","))
}

fn names(path: &Path, grid: &Grid) -> Vec<String> {
    let palette: BTreeMap<_, _> = grid.states().map(|(index, name, _)| (index, sorted(name))).collect();
    let mut cells = vec![0; grid.cells() as usize];
    grid.open(File::open(path).expect("it opens"))
        .expect("read before")
        .read(&mut cells)
        .expect("read before");
    cells.iter().map(|cell| palette[cell].clone()).collect()
}

fn content(path: &Path) -> Content {
    let schematic = SchemFile::read(path).expect("a schematic").schematic;
    let [_, height, _] = schematic.size();
    let mut block_entities: Vec<_> = schematic.block_entities().collect();
    block_entities.sort_by(|a, b| (a.pos, &a.data).cmp(&(b.pos, &b.data)));
    let biomes = schematic.biomes().map(|grid| {
        let names = names(path, grid);
        if grid.shape() == GridShape::Columns { vec![names; height.into()].concat() } else { names }
    });
    Content {
        size: schematic.size(),
        data_version: schematic.data_version(),
        states: names(path, schematic.blocks().expect("blocks")),
        biomes,
        block_entities,
        entities: schematic.entities().collect(),
    }
}

fn world() -> (Mem, Dimension) {
    let world = World::builder().in_memory().expect("memory takes it");
    let overworld = world.registry().register_dimension("minecraft:overworld").expect("a name");
    (world, overworld)
}

fn put(world: &Mem, dimension: Dimension, path: &Path, corner: BlockPos) -> ImportReport {
    let file = SchemFile::read(path).expect("a schematic");
    import(&file, world, dimension, corner, |_| {}).expect("it fits")
}

fn take(world: &Mem, dimension: Dimension, corner: BlockPos, size: [u16; 3], out: &Path) -> ExportReport {
    let [x, y, z] = size.map(|side| i64::from(side) - 1);
    let area = BlockBox::new(corner, BlockPos::new(corner.x + x, corner.y + y, corner.z + z));
    export(world, dimension, area, out, &ExportOptions::default(), |_| {}).expect("it fits")
}

/// A schematic of one state, with what stands in it.
fn made(
    folder: &Path,
    size: [u16; 3],
    state: &str,
    block_entities: &[BlockEntity],
    entities: &[SchemEntity],
) -> PathBuf {
    let count = size.map(u64::from).iter().product();
    let mut writer = SchemWriter::new(Vec::new(), &SchemHead::sized(size)).expect("a head");
    writer.blocks(&[state], &[count]).expect("a palette");
    writer.cells(&vec![0; count as usize]).expect("memory takes it");
    writer.block_entities(block_entities).expect("compounds");
    let bytes = writer.finish(entities).expect("compounds");
    let name: String = state.chars().filter(char::is_ascii_alphanumeric).collect();
    let path = folder.join(format!("{name}.schem"));
    std::fs::write(&path, bytes).expect("the disk takes it");
    path
}

fn chest(pos: [i32; 3], lock: i32) -> BlockEntity {
    let data = nbt::payload(|out| out.int("Lock", lock));
    BlockEntity { id: "minecraft:chest".to_owned(), pos, data }
}

const CHEST: &str = "minecraft:chest[facing=north,waterlogged=true]";

fn cow(pos: [f64; 3], words: &[i32]) -> SchemEntity {
    let data = nbt::payload(|out| out.int_array("UUID", words));
    SchemEntity { id: "minecraft:cow".to_owned(), pos, data }
}
