//! Saves that are made for tests: every awkward shape, and one of which next to nothing can be read.

use std::fs;
use std::path::Path;

use cg_anvil::column::{Blocks, CELLS, Column, EntityColumn, Section, cell};
use cg_anvil::region::{ColumnPos, RegionWriter};
use cg_anvil::{nbt, write};

use crate::maker::{self, Stored, block_entity, patterned};

/// Cells of a section with these states, stone elsewhere.
pub(crate) fn section(y: i32, cells: &[([i32; 3], &str)]) -> Section {
    let mut palette = vec!["minecraft:stone".into()];
    let mut indices = Box::new([0; CELLS]);
    for ([x, y, z], state) in cells {
        indices[usize::from(cell(*x, *y, *z))] = palette.len() as u16;
        palette.push((*state).into());
    }
    Section { blocks: Some(Blocks { palette, indices: Some(indices) }), ..Section::new(y) }
}

pub(crate) const CHEST: &str = "minecraft:chest[facing=north,type=single,waterlogged=false]";
const WET_CHEST: &str = "minecraft:chest[facing=north,type=single,waterlogged=true]";

/// Block entities that own their place, and those that cannot.
fn awkward_column() -> Column {
    let mut column = maker::column(
        0,
        0,
        [section(
            0,
            &[
                ([1, 2, 3], CHEST),
                ([2, 2, 3], CHEST),
                ([3, 2, 3], WET_CHEST),
                ([4, 2, 3], "create:belt[part=end]"),
                ([5, 2, 3], "stone"),
                ([6, 2, 3], "minecraft:oak_slab[type=top,waterlogged=true]"),
            ],
        )],
    );
    let light = Section { sky_light: Some(vec![0xff; 2048]), ..Section::new(1) };
    column.sections.push(light);
    column.block_entities = vec![
        block_entity("minecraft:chest", [1, 2, 3]),
        // Two at one position.
        block_entity("minecraft:sign", [1, 2, 3]),
        block_entity("minecraft:chest", [3, 2, 3]),
        block_entity("create:belt", [4, 2, 3]),
        // Over stone, above the blocks, in another column.
        block_entity("minecraft:furnace", [9, 9, 9]),
        block_entity("minecraft:bell", [9, 100, 9]),
        block_entity("minecraft:jukebox", [99, 0, 9]),
    ];
    column.carried = nbt::payload(|out| {
        out.string("Status", "minecraft:full").expect("short");
        out.long("InhabitedTime", 12345);
    });
    column
}

fn overflowing_column() -> Column {
    let mut column = maker::column(2, 0, [patterned(3, 300)]);
    let mut noise = 1u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (noise >> 56) as u8
    })
    .take(1_100_000)
    .collect();
    let mut book = block_entity("minecraft:lectern", [32, 48, 0]);
    book.nbt = nbt::payload(|out| {
        out.raw_fields(&book.nbt[..book.nbt.len() - 1]);
        out.byte_array("noise", &noise);
    });
    column.block_entities.push(book);
    column
}

/// Makes the save; gives the columns of the overworld.
pub(crate) fn make(dir: &Path) -> Vec<Column> {
    let region = dir.join("region");
    fs::create_dir_all(&region).expect("a directory");
    let mut bare = maker::column(3, 0, []);
    bare.carried = nbt::payload(|out| out.string("Status", "minecraft:structure_starts").expect("short"));
    let mut passing = maker::column(6, 0, [patterned(4, 3)]);
    passing.entities = vec![maker::entity("minecraft:chest_minecart", [0, 0, 0, 99], [97.5, 64.0, 8.0], &[])];
    let columns = vec![
        awkward_column(),
        maker::column(1, 0, [patterned(-128, 2), patterned(127, 40)]),
        overflowing_column(),
        bare,
        maker::column(4, 0, [patterned(0, 1)]),
        maker::column(5, 0, [patterned(0, 17)]),
        passing,
    ];
    let written: Vec<_> =
        columns.iter().map(|column| write::column(column).expect("a column of the game's form")).collect();
    let mut slots: Vec<_> = columns
        .iter()
        .zip(&written)
        .map(|(column, nbt)| maker::zlib((column.pos.x, column.pos.z), nbt))
        .collect();
    let slot = |x| ColumnPos::new(x, 0).slot();
    slots[4] = Stored { slot: slot(4), compression: 3, payload: written[4].clone() };
    slots[5] = Stored { slot: slot(5), compression: 4, payload: maker::lz4_blocks(&written[5], 700) };
    // The column that is too large lies beside the region, as the game's own writer puts it.
    let mut beside = RegionWriter::create(&region, ColumnPos::new(0, 0).region()).expect("a file");
    beside.put(slot(2), &written[2], 0).expect("written");
    fs::remove_file(beside.finish().expect("finished")).expect("removed");
    slots[2] = Stored { slot: slot(2), compression: 0x82, payload: Vec::new() };
    maker::region(&region.join("r.0.0.mca"), &slots);

    let rider = maker::entity("minecraft:zombie", [0, 0, 0, 4], [1.0, 6.0, 1.0], &[]);
    let chicken = maker::entity("minecraft:chicken", [0, 0, 0, 3], [1.0, 5.0, 1.0], &[rider]);
    let boat = maker::entity("minecraft:boat", [0, 0, 0, 2], [1.0, 4.5, 1.0], &[chicken]);
    let entities = EntityColumn {
        pos: ColumnPos::new(0, 0),
        data_version: maker::DATA_VERSION,
        stated: None,
        entities: vec![
            maker::entity("minecraft:minecart", [-1, 0, 0, 1], [1.5, 4.25, 1.5], &[boat]),
            // Above the stored sections.
            maker::entity("minecraft:bat", [0, 0, 0, 5], [1.0, 3000.0, 1.0], &[]),
            // A UUID met before, twice the same bytes.
            maker::entity("minecraft:bat", [0, 0, 0, 4], [2.0, 7.0, 1.0], &[]),
            maker::entity("minecraft:bat", [0, 0, 0, 4], [2.0, 7.0, 1.0], &[]),
            // Neither UUID nor position; a position that is no number.
            nbt::payload(|out| out.string("id", "minecraft:cow").expect("short")),
            maker::entity("minecraft:pig", [0, 0, 0, 6], [f64::NAN, 7.0, 1.0], &[]),
            // In the next column, listed in this one.
            maker::entity("minecraft:cow", [0, 0, 0, 7], [20.0, -2040.0, 1.0], &[]),
        ],
        list: Some(nbt::Tag::End),
        left: None,
    };
    let slots = [maker::zlib((0, 0), &write::entities(&entities).expect("entities"))];
    fs::create_dir_all(dir.join("entities")).expect("a directory");
    maker::region(&dir.join("entities/r.0.0.mca"), &slots);

    for (folder, x) in [("DIM-1/region", -1), ("dimensions/twilight/forest/deep/region", 0)] {
        let column = maker::column(x * 32, 0, [patterned(1, 5)]);
        let slots = [maker::zlib((x * 32, 0), &write::column(&column).expect("a column"))];
        fs::create_dir_all(dir.join(folder)).expect("a directory");
        maker::region(&dir.join(folder).join(format!("r.{x}.0.mca")), &slots);
    }
    columns
}

/// A column in which something is lost so many times.
fn broken(x: i32, section_count: usize, section: impl Fn(&mut nbt::CompoundWriter<'_>, usize)) -> Vec<u8> {
    nbt::document(|root| {
        root.int("DataVersion", maker::DATA_VERSION);
        root.int("xPos", x);
        root.int("zPos", 0);
        let sections = root.compounds("sections", 0..section_count, |out, index| {
            section(out, index);
            Ok::<_, nbt::TooLong>(())
        });
        sections.expect("short names");
    })
}

/// A save whose report is beyond every property: in slot 0 are 5,000 losses, in slot 1 one, in slot 2 are 300 with
/// long names, and two thousand files are left out.
pub(crate) fn hopeless(save: &Path) {
    let long = "[".repeat(60_000);
    let nameless = broken(0, 5000, |_, _| ());
    let long_names = broken(2, 300, |out, index| {
        out.byte("Y", (index as i32 - 150).clamp(-128, 127) as i8);
        out.compound("block_states", |out| {
            out.compounds("palette", 0..1, |entry, _| entry.string("Name", &long)).expect("short enough");
        });
    });
    // Paths that no object's key can hold.
    for index in 0..2000 {
        let folder = save.join(format!("{index}{}", "x".repeat(245))).join("y".repeat(250));
        std::fs::create_dir_all(&folder).expect("a directory");
        std::fs::write(folder.join("z"), []).expect("written");
    }
    let unknown = Stored { slot: ColumnPos::new(1, 0).slot(), compression: 9, payload: vec![] };
    let slots = [maker::zlib((0, 0), &nameless), unknown, maker::zlib((2, 0), &long_names)];
    std::fs::create_dir_all(save.join("region")).expect("a directory");
    std::fs::create_dir_all(save.join("entities")).expect("a directory");
    maker::region(&save.join("region/r.0.0.mca"), &slots);
    let pig = maker::entity("minecraft:pig", [0, 0, 0, 1], [1.0, 2.0, 3.0], &[]);
    let pigs = EntityColumn {
        pos: ColumnPos::new(0, 0),
        data_version: maker::DATA_VERSION,
        stated: None,
        entities: vec![pig; 1500],
        list: Some(nbt::Tag::End),
        left: None,
    };
    let pigs = write::entities(&pigs).expect("entities");
    let slots = [maker::zlib((0, 0), &pigs)];
    maker::region(&save.join("entities/r.0.0.mca"), &slots);
}
