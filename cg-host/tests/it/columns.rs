//! Columns come back as they were saved, in any form.

use cg_format::CellOrder;
use cg_host::{BlockEntity, Cells, Form, HostOptions, Saved, Scheduled};
use cg_store::prelude::World;

use crate::maker::{AIR, CHEST, FORM, STONE, WATER, cells, known, made, number, over, section, uniform};

#[test]
fn an_absent_column_is_absent_and_a_column_of_air_is_not() {
    let made = made();
    assert_eq!(made.load(), None);
    made.save(&uniform(made.at, &[AIR]));
    let loaded = made.load().expect("stored");
    assert_eq!((loaded.sections.len(), loaded.sections[0].y), (1, -4));
    assert_eq!(number(&loaded.sections[0].layers[0], [1, 2, 3]), AIR);
}

#[test]
fn a_section_without_layers_is_air() {
    let made = made();
    let mut column = uniform(made.at, &[STONE]);
    column.sections.push(section(-3, Vec::new()));
    made.save(&column);
    let loaded = made.load().expect("stored");
    assert_eq!(number(&loaded.sections[1].layers[0], [0, 0, 0]), AIR);
    made.submit(&uniform(made.at, &[STONE, AIR, STONE]));
    assert_eq!(made.load().expect("pending").sections.len(), 3);
}

#[test]
fn cells_of_any_form_and_number_of_kinds_come_back_in_the_form_of_the_binding() {
    let forms = [
        (CellOrder::Xzy, 32, [1, 2, 5, 8, 16, 16]),
        (CellOrder::Yzx, 64, [4, 4, 5, 9, 12, 15]),
        (CellOrder::Xyz, 16, [1, 2, 5, 8, 16, 13]),
    ];
    for (order, word_bits, widths) in forms {
        for (kinds, width) in [2, 3, 17, 256, 4096, 4000].into_iter().zip(widths) {
            let world = World::builder().in_memory().expect("memory");
            let mut known = known(4096);
            let given = Form { order, word_bits, widths: 0 };
            known.form = Form { order: CellOrder::Yzx, word_bits: 64, widths: 0b1_1111_1111_1111_0001 };
            let made = over(world, HostOptions::default(), known);
            let kind = |cell: usize| 5 + (cell * 7 % kinds) as u32;
            let mut column = uniform(made.at, &[]);
            column.sections.push(section(0, vec![cells(given, width, kind)]));
            assert!(matches!(made.save(&column), Saved::Changed(_)));
            let loaded = made.load().expect("stored");
            let [before, after] = [&column, &loaded].map(|column| &column.sections[0].layers[0]);
            assert_eq!((after.order, after.word_bits), (CellOrder::Yzx, 64));
            for cell in 0..4096 {
                let place = [cell / 256, cell / 16 % 16, cell % 16];
                assert_eq!(number(after, place), number(before, place), "{order:?} {kinds} {place:?}");
            }
        }
    }
}

#[test]
fn direct_numbers_are_saved_as_a_palette_is() {
    let made = made();
    let mut column = uniform(made.at, &[]);
    let direct = Cells { palette: None, ..cells(FORM, 2, |cell| (cell % 4) as u32) };
    column.sections.push(section(0, vec![direct]));
    made.save(&column);
    let loaded = made.load().expect("stored");
    assert_eq!(number(&loaded.sections[0].layers[0], [0, 3, 0]), 3);
}

#[test]
fn two_layers_biomes_light_block_entities_and_ticks_come_back() {
    let made = made();
    let mut column = uniform(made.at, &[STONE, AIR]);
    let wet = cells(FORM, 1, |cell| if cell % 5 == 0 { WATER } else { AIR });
    column.sections[0].layers.push(wet);
    column.sections[0].layers[0] = cells(FORM, 1, |cell| if cell == 0 { CHEST } else { STONE });
    column.sections[0].biomes = Some(cells(FORM, 1, |cell| if cell < 100 { 7 } else { 9 }));
    column.sections[1].biomes = Some(Cells::uniform(9, FORM, 4));
    column.sections[0].block_light = Some(vec![3; 2048].into());
    column.sections[1].sky_light = Some(vec![15; 2048].into());
    column.block_entities.push(BlockEntity { at: made.block(0, 0, 0), nbt: vec![1, 2, 3] });
    column.tick = 100;
    let at = made.block(5, 17, 5);
    column.scheduled.push(Scheduled { at, due: 103, block: STONE, priority: -1 });
    made.save(&column);
    let loaded = made.load().expect("stored");
    for cell in 0..4096 {
        let place = [cell / 256, cell / 16 % 16, cell % 16];
        for layer in 0..2 {
            let [before, after] =
                [&column, &loaded].map(|column| number(&column.sections[0].layers[layer], place));
            assert_eq!(before, after, "{layer} {place:?}");
        }
        let biome = |column: &cg_host::Column, section: usize| {
            number(column.sections[section].biomes.as_ref().expect("biomes"), place)
        };
        assert_eq!(biome(&column, 0), biome(&loaded, 0), "{place:?}");
        assert_eq!(biome(&loaded, 1), 9);
    }
    assert_eq!(loaded.sections[0].block_light, column.sections[0].block_light);
    assert_eq!(loaded.sections[1].sky_light, column.sections[1].sky_light);
    assert_eq!(loaded.block_entities, column.block_entities);
    assert_eq!((loaded.tick, &loaded.scheduled), (100, &column.scheduled));
    assert_eq!(loaded.kept, 0);
}

#[test]
fn coarse_biomes_are_those_of_java_edition() {
    let mut known = known(0);
    known.biome_side_log2 = 2;
    let made = over(World::builder().in_memory().expect("memory"), HostOptions::default(), known);
    let mut column = uniform(made.at, &[STONE]);
    // The biome of the corner (3, 0, 0) of 4×4×4 blocks, in the order y·16 + z·4 + x.
    let words = (1_u64 << 3).to_le_bytes().to_vec();
    column.sections[0].biomes = Some(Cells {
        words,
        palette: Some(vec![7, 9]),
        bits: 1,
        word_bits: 64,
        order: CellOrder::Yzx,
        side_log2: 2,
    });
    made.save(&column);
    let catalog = made.host.world().catalog();
    let kind = catalog.side_kind("minecraft:biomes").expect("registered");
    let place = cg_format::ChunkAt::new(made.at.dimension, made.block(0, 0, 0).chunk());
    let chunk = made.host.world().load(place).expect("sound").expect("stored");
    let biomes = cg_minecraft::biomes::Biomes::decode(chunk.side(kind).expect("biomes")).expect("a compound");
    assert_eq!(biomes.palette, ["game:plains", "game:sea"]);
    assert_eq!(biomes.indices[..5], [0, 0, 0, 1, 0]);
    let loaded = made.load().expect("stored").sections.remove(0).biomes.expect("biomes");
    // In the order x, z, y of the binding's form.
    assert_eq!((loaded.bits, loaded.words.len(), loaded.words[6]), (1, 8, 1));
}

#[test]
fn sections_that_are_not_listed_go_unless_the_column_is_a_part() {
    let made = made();
    made.save(&uniform(made.at, &[STONE, STONE, STONE]));
    let mut part = uniform(made.at, &[]);
    part.sections.push(section(-3, vec![Cells::uniform(WATER, FORM, 4)]));
    made.host.save(&made.binding, part.clone(), true).expect("it fits");
    let heights =
        |column: &cg_host::Column| column.sections.iter().map(|section| section.y).collect::<Vec<_>>();
    assert_eq!(heights(&made.load().expect("stored")), [-4, -3, -2]);
    made.save(&part);
    assert_eq!(heights(&made.load().expect("stored")), [-3]);
    // Outside of its heights nothing is touched.
    let lower = cg_host::ColumnAt { min_y: -8, max_y: -5, ..made.at };
    made.host.save(&made.binding, uniform(lower, &[STONE]), false).expect("it fits");
    made.save(&part);
    assert!(made.host.load(&made.binding, lower).expect("sound").is_some());
}

#[test]
fn what_is_stored_is_not_written_again() {
    let made = made();
    let column = uniform(made.at, &[STONE, AIR]);
    assert!(matches!(made.save(&column), Saved::Changed(_)));
    let commit = made.host.world().last_commit();
    assert_eq!(made.save(&column), Saved::Unchanged);
    assert_eq!(made.submit(&column), Saved::Unchanged);
    // After a load, and where nothing was seen before.
    let loaded = made.load().expect("stored");
    assert_eq!(made.submit(&loaded), Saved::Unchanged);
    made.host.forget();
    assert_eq!(made.save(&loaded), Saved::Unchanged);
    assert_eq!(made.host.world().last_commit(), commit);
    assert!(matches!(made.save(&uniform(made.at, &[AIR, AIR])), Saved::Changed(_)));
    // The column as it was is another one by now.
    assert!(matches!(made.save(&column), Saved::Changed(_)));
}

#[test]
fn columns_of_a_world_on_disk_are_there_after_a_restart() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("world");
    let column = {
        let world = World::builder().create(&path).expect("created");
        let made = over(world, HostOptions::default(), known(0));
        let mut column = uniform(made.at, &[STONE, WATER]);
        column.entities.push(made.cow(3));
        made.submit(&column);
        made.host.close().expect("written");
        column
    };
    let made = over(World::builder().open(&path).expect("opened"), HostOptions::default(), known(0));
    assert_eq!(made.load(), Some(column));
}

#[test]
fn a_column_that_was_loaded_is_saved_without_a_comparison() {
    let made = made();
    let mut column = uniform(made.at, &[CHEST, CHEST]);
    for (x, y, z) in [(3, 1, 2), (1, 20, 2), (1, 2, 9), (3, 17, 0)] {
        column.block_entities.push(BlockEntity { at: made.block(x, y, z), nbt: vec![x as u8] });
    }
    column.entities = [3, 1, 2].map(|id| made.cow(id)).into();
    made.save(&column);
    made.host.forget();
    let loaded = made.load().expect("stored");
    let before = made.host.metrics().unchanged;
    // Whatever the order in which a host keeps them.
    let mut turned = loaded;
    turned.block_entities.reverse();
    turned.entities.reverse();
    assert_eq!(made.submit(&turned), Saved::Unchanged);
    assert_eq!(made.host.metrics().unchanged, before + 1);
}
