//! Laws for any bytes that are taken for a schematic's NBT: it is refused, or everything that it says can be read, adds
//! up, and is the same when it is written and read again.

use std::io::Write as _;

use cg_snapshot::schem::{Grid, GridShape, SchemHead, SchemLimits, SchemWriter, Schematic};
use flate2::Compression;
use flate2::write::GzEncoder;

/// Enough for any small input, too little for what a small input can promise.
const CELLS: u64 = 1 << 20;

/// Reads bytes, compressed as a file has them, and says whether they are a schematic.
///
/// # Panics
/// If a law is broken.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let file = gzip(bytes);
    let limits =
        SchemLimits { held_bytes: 4 << 20, skipped_bytes: 4 << 20, cells: CELLS, ..SchemLimits::default() };
    let Ok(schematic) = Schematic::read(&file[..], &limits) else { return false };
    let [width, height, length] = schematic.size().map(u64::from);
    let blocks = schematic.blocks().map(|grid| indices(grid, &file, width * height * length));
    let columns = schematic.biomes().is_some_and(|grid| grid.shape() == GridShape::Columns);
    let layers = if columns { 1 } else { height };
    let biomes = schematic.biomes().map(|grid| indices(grid, &file, width * layers * length));
    assert_eq!(schematic.block_entities().count(), schematic.block_entity_count());
    assert_eq!(schematic.entities().count(), schematic.entity_count());
    if let (Some(blocks), false) = (&blocks, columns) {
        same_when_written(&schematic, blocks, biomes.as_ref(), &limits);
    }
    true
}

/// The names that a grid shows, and its cells as numbers of these.
type Indices = (Vec<String>, Vec<u64>, Vec<u16>);

fn indices(grid: &Grid, file: &[u8], expected: u64) -> Indices {
    assert_eq!(grid.cells(), expected);
    let (mut names, mut counts, mut numbers) = (Vec::new(), Vec::new(), vec![None; 1 << 16]);
    for (index, name, count) in grid.states() {
        numbers[usize::from(index)] = Some(names.len() as u16);
        names.push(name.to_owned());
        counts.push(count);
    }
    assert_eq!(counts.iter().sum::<u64>(), expected);
    let mut cells = vec![0; expected as usize];
    let mut reader = grid.open(file).expect("it was read before");
    for part in cells.chunks_mut(1000) {
        assert_eq!(reader.read(part).expect("it was read before"), part.len());
    }
    assert_eq!(reader.left(), 0);
    let mut found = vec![0; names.len()];
    for cell in &mut cells {
        *cell = numbers[usize::from(*cell)].expect("it was counted");
        found[usize::from(*cell)] += 1;
    }
    assert_eq!(found, counts);
    (names, counts, cells)
}

fn same_when_written(
    schematic: &Schematic,
    blocks: &Indices,
    biomes: Option<&Indices>,
    limits: &SchemLimits,
) {
    let head = SchemHead {
        data_version: schematic.data_version(),
        size: schematic.size(),
        offset: schematic.offset(),
        metadata: schematic.metadata().to_vec(),
    };
    let block_entities: Vec<_> = schematic.block_entities().collect();
    let entities: Vec<_> = schematic.entities().collect();
    let mut writer = SchemWriter::new(Vec::new(), &head).expect("it was read");
    writer.blocks(&blocks.0, &blocks.1).expect("it was read");
    writer.cells(&blocks.2).expect("memory takes it");
    writer.block_entities(&block_entities).expect("they were read");
    if let Some(biomes) = biomes {
        writer.biomes(&biomes.0, &biomes.1).expect("they were read");
        writer.cells(&biomes.2).expect("memory takes it");
    }
    let file = writer.finish(&entities).expect("they were read");
    // What was just enough for the file may be a little too little for its other form.
    let limits = SchemLimits { held_bytes: 2 * limits.held_bytes, ..*limits };
    let again = Schematic::read(&file[..], &limits).expect("it was just written");
    assert_eq!(
        (again.data_version(), again.size(), again.offset()),
        (head.data_version, head.size, head.offset)
    );
    assert_eq!(again.metadata(), head.metadata);
    assert_eq!(again.block_entities().collect::<Vec<_>>(), block_entities);
    let bits = |pos: [f64; 3]| pos.map(f64::to_bits);
    for (again, before) in again.entities().zip(&entities) {
        assert_eq!(
            (bits(again.pos), again.id, again.data),
            (bits(before.pos), before.id.clone(), before.data.clone())
        );
    }
    let cells = blocks.2.len() as u64;
    assert_eq!(indices(again.blocks().expect("written"), &file, cells), *blocks);
    assert_eq!(again.biomes().map(|grid| indices(grid, &file, cells)).as_ref(), biomes);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(bytes).expect("memory takes it");
    out.finish().expect("memory takes it")
}
