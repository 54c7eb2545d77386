//! Laws of schematics: what is written is read back; what is cut or changed is refused, or read as something that can
//! be written.

use cg_snapshot::nbt;
use cg_snapshot::schem::{
    BlockEntity, GridShape, SchemEntity, SchemHead, SchemLimits, SchemWriter, Schematic,
};
use proptest::prelude::*;

use crate::made::read;

/// A schematic as a test makes it.
#[derive(Debug, Clone)]
struct Made {
    head: SchemHead,
    states: Vec<String>,
    cells: Vec<u16>,
    biomes: Option<(Vec<String>, Vec<u16>)>,
    block_entities: Vec<BlockEntity>,
    entities: Vec<SchemEntity>,
}

fn counts(states: &[String], cells: &[u16]) -> Vec<u64> {
    let mut counts = vec![0; states.len()];
    for cell in cells {
        counts[usize::from(*cell)] += 1;
    }
    counts
}

impl Made {
    fn write(&self) -> Vec<u8> {
        let mut writer = SchemWriter::new(Vec::new(), &self.head).expect("a head");
        writer.blocks(&self.states, &counts(&self.states, &self.cells)).expect("a palette");
        for part in self.cells.chunks(7) {
            writer.cells(part).expect("memory takes it");
        }
        writer.block_entities(&self.block_entities).expect("compounds");
        if let Some((biomes, cells)) = &self.biomes {
            writer.biomes(biomes, &counts(biomes, cells)).expect("a palette");
            writer.cells(cells).expect("memory takes it");
        }
        writer.finish(&self.entities).expect("compounds")
    }
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    ("[a-z]{0,4}", any::<i32>()).prop_map(|(text, number)| {
        nbt::payload(|out| {
            out.int("number", number);
            out.string("text", &text).expect("short");
        })
    })
}

fn made() -> impl Strategy<Value = Made> {
    let size = (1_u16..5, 1_u16..5, 1_u16..5).prop_map(|(x, y, z)| [x, y, z]);
    (size, 1_u16..300).prop_flat_map(|(size, states)| {
        let cells = size.map(usize::from).iter().product::<usize>();
        let grid = move |states: u16| prop::collection::vec(0..states, cells);
        let block_entity = ("[a-z:]{1,8}", any::<[i32; 3]>(), data())
            .prop_map(|(id, pos, data)| BlockEntity { id, pos, data });
        let entity = ("[a-z:]{1,8}", any::<[f32; 3]>(), data()).prop_map(|(id, pos, data)| SchemEntity {
            id,
            pos: pos.map(f64::from),
            data,
        });
        (
            (any::<i32>(), any::<[i32; 3]>(), data()),
            grid(states),
            prop::option::of(grid(3)),
            prop::collection::vec(block_entity, 0..3),
            prop::collection::vec(entity, 0..3),
        )
            .prop_map(
                move |((data_version, offset, metadata), cells, biomes, block_entities, entities)| Made {
                    head: SchemHead { data_version, size, offset, metadata },
                    states: (0..states).map(|index| format!("a:b[k={index}]")).collect(),
                    cells,
                    biomes: biomes.map(|cells| (["a:x", "a:y", "a:z"].map(str::to_owned).into(), cells)),
                    block_entities,
                    entities,
                },
            )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read_back(made in made()) {
        let file = made.write();
        prop_assert_eq!(&file, &made.write());
        let found = read(&file).expect("it was just written");
        prop_assert_eq!((found.version(), found.data_version()), (3, made.head.data_version));
        prop_assert_eq!((found.size(), found.offset()), (made.head.size, made.head.offset));
        prop_assert_eq!(found.metadata(), &made.head.metadata[..]);
        prop_assert_eq!(found.block_entities().collect::<Vec<_>>(), made.block_entities);
        prop_assert_eq!(found.entities().collect::<Vec<_>>(), made.entities);
        let grids = [(found.blocks(), Some((&made.states, &made.cells))), (found.biomes(), made.biomes.as_ref().map(|(a, b)| (a, b)))];
        for (found, made) in grids {
            prop_assert_eq!(found.is_some(), made.is_some());
            let (Some(found), Some((states, made))) = (found, made) else { continue };
            prop_assert_eq!((found.shape(), found.palette_len()), (GridShape::Cells, states.len()));
            for (index, state, count) in found.states() {
                prop_assert_eq!(state, &states[usize::from(index)]);
                prop_assert_eq!(count, made.iter().filter(|cell| **cell == index).count() as u64);
            }
            let mut cells = vec![0; made.len()];
            prop_assert_eq!(found.open(&file[..]).expect("read before").read(&mut cells).expect("read before"), made.len());
            prop_assert_eq!(&cells, made);
        }
    }

    #[test]
    fn what_is_cut_is_refused(made in made(), cut in any::<prop::sample::Index>()) {
        let file = made.write();
        let cut = cut.index(file.len());
        prop_assert!(read(&file[..cut]).is_err());
    }

    #[test]
    fn any_bytes_give_a_value_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Schematic::read(&crate::made::gzip(&[&[10, 0, 0][..], &bytes].concat())[..], &SchemLimits::default());
    }
}

#[test]
fn another_file_is_noticed_when_blocks_are_read() {
    let file = crate::made::version_2([2, 1, 1], &["a:a", "a:b", "a:c"], &[0, 1], |_| ());
    let other = crate::made::version_2([2, 1, 1], &["a:a", "a:b", "a:c"], &[0, 2], |_| ());
    let schematic = read(&file).expect("sound");
    let mut cells = schematic.blocks().expect("blocks").open(&other[..]).expect("as long");
    let error = cells.read(&mut [0; 2]).expect_err("an index that was not there");
    assert_eq!(error.to_string(), "BlockData: the file changed while it was read; read it again");
}

#[test]
fn positions_of_version_2_count_from_the_corner_or_from_a_world() {
    let entity = |x: f64| {
        nbt::payload(|out| {
            out.string("Id", "a:cow").expect("short");
            out.doubles("Pos", &[x, 0.5, 0.5]);
        })
    };
    // In the world of the tool, from the corner, and nowhere near.
    let list = [entity(101.5), entity(1.5), entity(900.0)];
    let file = crate::made::version_2([2, 1, 1], &["a:a"], &[0, 0], |root| {
        root.int_array("Offset", &[100, 0, 0]);
        root.raw_compounds("Entities", list.iter().map(Vec::as_slice));
    });
    let x: Vec<f64> = read(&file).expect("sound").entities().map(|entity| entity.pos[0]).collect();
    assert_eq!(x, [1.5, 1.5, 800.0]);
}

#[test]
fn data_is_a_field_as_any_other_in_version_2() {
    let chest = nbt::payload(|out| {
        out.string("Id", "a:chest").expect("short");
        out.int_array("Pos", &[0; 3]);
        out.compound("Data", |out| out.int("Inner", 5));
        out.int("Lock", 7);
    });
    let file = crate::made::version_2([1, 1, 1], &["a:a"], &[0], |root| {
        root.raw_compounds("BlockEntities", [&chest[..]].into_iter());
    });
    let found = read(&file).expect("sound").block_entities().next().expect("one");
    let expected = nbt::payload(|out| {
        out.compound("Data", |out| out.int("Inner", 5));
        out.int("Lock", 7);
    });
    assert_eq!((found.id.as_str(), found.data), ("a:chest", expected));
}
