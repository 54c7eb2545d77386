//! Damage, repairs, and what is not written over.

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
fn verdict_outlives_a_repair_through_the_host() {
    let made = made();
    let place = damage(&made);
    made.host.load(&made.binding, made.at).expect_err("damaged");
    repair(&made, place);
    made.host.forget();
    assert!(made.host.world().load(place).is_ok(), "repaired");
    made.host.load(&made.binding, made.at).expect("it is sound by now");
}

#[test]
fn placeholder_over_a_repaired_section() {
    let options = HostOptions { on_damage: OnDamage::Partial, ..HostOptions::default() };
    let made = over(World::builder().in_memory().expect("sound"), options, known(0));
    let place = damage(&made);
    let mut column = made.load().expect("sound");
    assert_eq!(column.damaged, [-3]);
    repair(&made, place);
    made.load(); // another thread of the host
    column.sections[0] = section(-4, vec![Cells::uniform(AIR, FORM, 4)]);
    made.save(&column);
    let after = made.load().expect("sound");
    assert_eq!(number(&after.sections[1].layers[0], [0, 0, 0]), WATER, "a damaged section is never written");
}

#[test]
fn partial_and_damaged_side_data() {
    let options = HostOptions { on_damage: OnDamage::Partial, ..HostOptions::default() };
    let made = over(World::builder().in_memory().expect("sound"), options, known(0));
    made.save(&uniform(made.at, &[STONE, STONE]));
    let kind = made.host.world().catalog().side_kind("host:block_entities").expect("sound");
    let mut writes = Writes::new();
    writes.set_side(ChunkAt::new(made.at.dimension, made.block(0, 0, 0).chunk()), kind, Some(vec![200, 1]));
    made.host.commit(&mut writes, None).expect("sound");
    let loaded = made.host.load(&made.binding, made.at);
    loaded.expect("the other section is loaded");
}

#[test]
fn side_data_that_is_damaged_is_not_overwritten() {
    let made = made();
    made.save(&uniform(made.at, &[STONE, STONE]));
    let kind = made.host.world().catalog().side_kind("host:block_entities").expect("sound");
    let place = ChunkAt::new(made.at.dimension, made.block(0, 0, 0).chunk());
    let mut writes = Writes::new();
    writes.set_side(place, kind, Some(vec![200, 1]));
    made.host.commit(&mut writes, None).expect("sound");
    let saved = made.host.save(&made.binding, uniform(made.at, &[AIR, STONE]), false);
    let side = made.host.world().load(place).expect("sound").expect("sound").side(kind).map(<[u8]>::to_vec);
    assert_eq!(side, Some(vec![200, 1]), "{saved:?}: Error::Side says that the chunk is not written");
}

#[test]
fn damaged_biomes_are_not_overwritten_by_a_save_without() {
    let made = made();
    made.save(&uniform(made.at, &[STONE, STONE]));
    let kind = made.host.world().catalog().side_kind("bedrock:biomes").expect("sound");
    let place = ChunkAt::new(made.at.dimension, made.block(0, 0, 0).chunk());
    let mut writes = Writes::new();
    writes.set_side(place, kind, Some(vec![200]));
    made.host.commit(&mut writes, None).expect("sound");
    let mut column = uniform(made.at, &[AIR, STONE]);
    column.sections[0].biomes = Some(Cells::uniform(7, FORM, 4));
    assert!(made.host.save(&made.binding, column, false).is_err());
}
