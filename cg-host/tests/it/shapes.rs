//! Columns of odd shapes: what a load gives can be saved.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cg_format::chunk::{CellLayer, Chunk};
use cg_format::entity::{Entity, EntityPos, Owner, Reason};
use cg_format::{CellOrder, ChunkAt, Dimension, EntityId, LocalPos};
use cg_host::{
    Answer, BlockEntity, Cells, Column, ColumnAt, ColumnEntity, Error, Form, Host, HostOptions, Known, KnownBiome,
    KnownBlock, OnDamage, Peeked, Queue, Saved, Scheduled, Section, Writes,
};
use cg_registry::{BlockOffer, ComponentOffer, Registration};
use cg_store::engine::MemEngine;
use cg_store::prelude::Property;
use cg_store::settings::WorldSettings;
use cg_store::{Durability, ErrorKind, StoreLimits, World, WorldOptions};

use crate::maker::{
    AIR, CHEST, FORM, Made, STONE, UNKNOWN, WATER, at, cells, known, made, name, number, over, section, uniform,
};
use crate::scene::{
    LONG, cow_id, cows, damage, disk, fill_disk, first, grouped, mood, repair, row, stored, with,
};

#[test]
fn uniform_second_layer() {
    let made = made();
    let mut column = uniform(made.at, &[STONE]);
    column.sections[0].layers.push(Cells::uniform(WATER, FORM, 4));
    made.save(&column);
    let mut loaded = made.load().expect("sound");
    loaded.sections[0].layers[0] = Cells::uniform(AIR, FORM, 4);
    made.host.save(&made.binding, loaded, false).expect("what a load gave can be saved");
}

#[test]
fn uniform_coarse_biome() {
    let mut known = known(0);
    known.biome_side_log2 = 2;
    let made = over(World::builder().in_memory().expect("sound"), HostOptions::default(), known);
    let mut column = uniform(made.at, &[STONE]);
    column.sections[0].biomes = Some(Cells::uniform(7, FORM, 2));
    made.save(&column);
    let loaded = made.load().expect("sound");
    made.host.save(&made.binding, loaded, false).expect("what a load gave can be saved");
}

#[test]
fn binding_without_biomes() {
    let made = made();
    let mut column = uniform(made.at, &[STONE]);
    column.sections[0].biomes = Some(Cells::uniform(7, FORM, 4));
    made.save(&column);
    let mut none = known(0);
    none.biomes.clear();
    let other = made.host.bind(none).expect("sound");
    let loaded = made.host.load(&other, made.at).expect("sound").expect("sound");
    made.host.save(&other, loaded, false).expect("what a load gave can be saved");
}

#[test]
fn ticks_outside_of_the_heights() {
    let made = made();
    let mut column = uniform(made.at, &[STONE, STONE]);
    column.scheduled.push(Scheduled { at: made.block(0, 20, 0), due: 1, block: STONE, priority: 0 });
    made.save(&column);
    let lower = ColumnAt { max_y: -4, ..made.at };
    let loaded = made.host.load(&made.binding, lower).expect("sound").expect("sound");
    made.host.save(&made.binding, loaded, false).expect("what a load gave can be saved");
}

#[test]
fn two_block_entities_of_one_cell() {
    let made = made();
    let mut column = uniform(made.at, &[STONE]);
    column.block_entities.push(BlockEntity { at: made.block(0, 0, 0), nbt: vec![1] });
    made.save(&column);
    let component = made.host.world().catalog().component_id("minecraft:block_entity").expect("sound");
    let place = ChunkAt::new(made.at.dimension, made.block(0, 0, 0).chunk());
    let mut writes = Writes::new();
    writes.set_block(made.at.dimension, made.block(0, 0, 0), made.binding.block(CHEST).expect("sound"));
    writes.set_component(place, CellLayer::base(LocalPos::new(0, 0, 0)), component, vec![9]);
    made.host.commit(&mut writes, None).expect("sound");
    let loaded = made.load().expect("sound");
    made.host.save(&made.binding, loaded, false).expect("what a load gave can be saved");
}

#[test]
fn part_and_ticks() {
    let made = made();
    let mut column = uniform(made.at, &[STONE, STONE]);
    column.scheduled.push(Scheduled { at: made.block(0, 0, 0), due: 1, block: STONE, priority: 0 });
    made.save(&column);
    let mut part = Column::new(made.at);
    part.sections.push(section(-3, vec![Cells::uniform(AIR, FORM, 4)]));
    part.scheduled.push(Scheduled { at: made.block(0, 20, 0), due: 9, block: STONE, priority: 0 });
    made.host.save(&made.binding, part, true).expect("sound");
    let mut due: Vec<i64> = made.load().expect("sound").scheduled.iter().map(|one| one.due).collect();
    due.sort_unstable();
    assert!(due == [1, 9] || due == [9], "the new one is lost: {due:?}");
}

#[test]
fn ticks_of_other_heights() {
    let made = made();
    let mut column = uniform(made.at, &[STONE, STONE]);
    column.scheduled.push(Scheduled { at: made.block(0, 20, 0), due: 1, block: STONE, priority: 0 });
    made.save(&column);
    let lower = ColumnAt { max_y: -4, ..made.at };
    made.host.save(&made.binding, uniform(lower, &[AIR]), false).expect("sound");
    assert_eq!(made.load().expect("sound").scheduled.len(), 1, "outside of the heights nothing is touched");
}

#[test]
fn palette_of_65536_and_a_kept_block() {
    let made = made();
    let mut more = known(0);
    more.blocks.push(KnownBlock { name: name("mod:pump"), is_opaque: true, owns_block_entity: false });
    let knows = made.host.bind(more).expect("sound");
    let mut column = uniform(made.at, &[STONE]);
    column.sections[0].layers[0] = Cells::uniform(5, FORM, 4);
    made.host.save(&knows, column, false).expect("sound");
    let words = vec![0; 8192];
    let order = CellOrder::Xzy;
    let mut column = uniform(made.at, &[]);
    let palette = Some(vec![UNKNOWN; 1 << 16]);
    column
        .sections
        .push(section(-4, vec![Cells { words, palette, bits: 16, word_bits: 32, order, side_log2: 4 }]));
    made.save(&column);
    let after = made.host.load(&knows, made.at).expect("sound").expect("sound");
    assert_eq!(first(&after), 5, "the pump stays");
}

#[test]
fn stray_of_a_kept_block() {
    let made = made();
    let mut more = known(0);
    more.blocks.push(KnownBlock { name: name("mod:pump"), is_opaque: true, owns_block_entity: false });
    let knows = made.host.bind(more).expect("sound");
    let mut column = uniform(made.at, &[STONE]);
    column.sections[0].layers[0] = Cells::uniform(5, FORM, 4);
    column.block_entities.push(BlockEntity { at: made.block(0, 0, 0), nbt: vec![6] });
    made.host.save(&knows, column, false).expect("sound");
    let mut shown = made.load().expect("sound");
    // The placeholder has no block entity in this host's world, so it drops it.
    shown.block_entities.clear();
    made.save(&shown);
    let after = made.host.load(&knows, made.at).expect("sound").expect("sound");
    assert_eq!(after.block_entities.len(), 1, "the block stays with everything in it");
}

#[test]
fn pending_column_without_biomes() {
    let made = grouped(LONG);
    let mut column = uniform(made.at, &[STONE]);
    column.sections[0].biomes = Some(Cells::uniform(7, FORM, 4));
    column.sections[0].sky_light = Some(vec![15; 2048].into());
    made.save(&column);
    made.submit(&uniform(made.at, &[AIR]));
    let pending = made.load().expect("sound");
    let after = stored(&made, made.at).expect("sound");
    assert_eq!(pending, after);
}

#[test]
fn pending_biomes_in_the_form_of_the_binding() {
    let mut known = known(0);
    known.biome_side_log2 = 2;
    let made =
        over(World::builder().in_memory().expect("sound"), HostOptions { group: LONG, ..Default::default() }, known);
    let mut column = uniform(made.at, &[STONE]);
    let words = (1_u64 << 3).to_le_bytes().to_vec();
    let palette = Some(vec![7, 9]);
    column.sections[0].biomes =
        Some(Cells { words, palette, bits: 1, word_bits: 64, order: CellOrder::Yzx, side_log2: 2 });
    made.submit(&column);
    assert_eq!(made.load().expect("sound").sections[0].biomes.as_ref().expect("sound").word_bits, 32);
}

#[test]
fn two_biomes_of_one_number() {
    let made = made();
    let mut column = uniform(made.at, &[STONE]);
    column.sections[0].biomes = Some(Cells::uniform(7, FORM, 4));
    made.save(&column);
    let mut twice = known(0);
    twice.biomes.push(KnownBiome { name: name("game:meadow"), number: 7 });
    let Ok(other) = made.host.bind(twice) else { return };
    let mut loaded = made.host.load(&other, made.at).expect("sound").expect("sound");
    loaded.sections[0].layers[0] = Cells::uniform(AIR, FORM, 4);
    made.host.save(&other, loaded, false).expect("sound");
    let after = made.load().expect("sound").sections[0].biomes.clone().expect("sound");
    assert_eq!(number(&after, [0, 0, 0]), 7, "plains became meadow");
}

#[test]
fn unregistered_dimension() {
    let made = made();
    let at = ColumnAt { dimension: Dimension::new(77), ..made.at };
    let saved = made.host.save(&made.binding, uniform(at, &[STONE]), false);
    assert!(saved.is_err());
}

#[test]
fn ends_of_coordinates() {
    let made = made();
    for (x, z) in [(i64::MAX, 0), (i64::MIN, 0), (0, i64::MAX >> 4), (0, i64::MIN >> 4), (i64::MAX >> 4, 5)] {
        for (min_y, max_y) in [(i32::MAX - 1, i32::MAX), (i32::MIN, i32::MIN + 1)] {
            let at = ColumnAt { x, z, min_y, max_y, ..made.at };
            let mut column = Column::new(at);
            column.sections.push(section(min_y, vec![Cells::uniform(CHEST, FORM, 4)]));
            column.sections.push(section(max_y, vec![Cells::uniform(STONE, FORM, 4)]));
            let corner = [x, min_y.into(), z].map(|axis: i64| axis.saturating_mul(16));
            let corner = cg_format::BlockPos::new(corner[0], corner[1], corner[2]);
            column.block_entities.push(BlockEntity { at: corner, nbt: vec![1] });
            column.scheduled.push(Scheduled { at: corner, due: i64::MAX, block: STONE, priority: i32::MIN });
            column.tick = i64::MIN;
            let saved = made.host.save(&made.binding, column.clone(), false);
            let loaded = made.host.load(&made.binding, at);
            if saved.is_ok() {
                let loaded = loaded.expect("sound").expect("sound");
                assert_eq!(loaded.block_entities, column.block_entities);
                assert_eq!(loaded.scheduled, column.scheduled);
            }
        }
    }
}
