//! A chunk that cannot be read is an error, and is never written over.

use cg_format::codec::Codec;
use cg_format::frame::Draft;
use cg_format::{ChunkAt, Space};
use cg_host::{HostOptions, OnDamage};
use cg_store::engine::{Batch, Level, Stamp};
use cg_store::{ErrorKind, World};

use crate::maker::{AIR, Made, STONE, UNKNOWN, known, number, over, uniform};

/// A host of a column of three sections, the middle one damaged; and the bytes of its row.
fn damaged(on_damage: OnDamage) -> (Made, ChunkAt, Vec<u8>) {
    let options = HostOptions { on_damage, ..HostOptions::default() };
    let made = over(World::builder().in_memory().expect("memory"), options, known(0));
    made.save(&uniform(made.at, &[STONE, STONE, STONE]));
    made.host.flush().expect("written");
    let place = ChunkAt::new(made.at.dimension, made.block(0, 16, 0).chunk());
    let mut batch = Batch::new();
    let draft = Draft::plain(Codec::None, 0, |out| out.extend(b"these bytes are no chunk"));
    batch.put(Space::ChunkL0, cg_format::key::chunk(place), draft, Stamp::Commit);
    made.host.world().engine().commit(batch, &[], Level::Process).expect("memory");
    made.host.world().cache().clear();
    made.host.forget();
    let row = row(&made, place);
    (made, place, row)
}

fn row(made: &Made, place: ChunkAt) -> Vec<u8> {
    let engine = made.host.world().engine();
    let row = engine.get(Space::ChunkL0, &cg_format::key::chunk(place)).expect("memory").expect("stored");
    row.to_vec()
}

#[test]
fn a_damaged_section_is_an_error_and_keeps_its_bytes() {
    let (made, place, before) = damaged(OnDamage::Refuse);
    // A group goes on without a column that is found to be damaged, and a flush reports it.
    let other = crate::maker::at(made.at.dimension, 8, 8);
    made.submit(&uniform(made.at, &[AIR, AIR]));
    made.host.submit(&made.binding, uniform(other, &[STONE]), false).expect("it fits");
    let error = made.host.flush().expect_err("one is damaged");
    assert_eq!((error.kind(), error.place()), (ErrorKind::Damaged, Some(place)));
    assert_eq!(made.host.metrics().refused, 1);
    assert!(made.host.load(&made.binding, other).expect("sound").is_some());
    // The verdict is remembered before anything of it is read again.
    let error = made.host.submit(&made.binding, uniform(made.at, &[AIR]), false).expect_err("damaged");
    assert_eq!((error.kind(), error.place()), (ErrorKind::Damaged, Some(place)));
    let error = made.host.load(&made.binding, made.at).expect_err("damaged");
    assert_eq!((error.kind(), error.place()), (ErrorKind::Damaged, Some(place)));
    // The verdict is remembered.
    let again = made.host.load(&made.binding, made.at).expect_err("damaged");
    assert_eq!(again.to_string(), error.to_string());
    let error = made.host.save(&made.binding, uniform(made.at, &[AIR, AIR]), false).expect_err("damaged");
    assert_eq!((error.kind(), error.place()), (ErrorKind::Damaged, Some(place)));
    // By now it is known, and refused at once.
    let error = made.host.submit(&made.binding, uniform(made.at, &[AIR]), false).expect_err("damaged");
    assert_eq!((error.kind(), error.place()), (ErrorKind::Damaged, Some(place)));
    assert_eq!(row(&made, place), before);
    // Replaced past the columns, it is damaged no more.
    let mut writes = cg_host::Writes::new();
    assert!(made.host.world().quarantine().chunk(place).expect("memory"));
    writes.property(cg_store::prelude::Property::Seed, Some(vec![1]));
    made.host.commit(&mut writes, None).expect("written");
    made.host.forget();
    assert_eq!(made.load().expect("stored").sections.len(), 2);
}

#[test]
fn with_partial_damage_the_other_sections_are_loaded_and_saved() {
    let (made, place, before) = damaged(OnDamage::Partial);
    let mut column = made.load().expect("stored");
    assert_eq!(column.damaged, [-3]);
    let shown: Vec<u32> = column.sections.iter().map(|one| number(&one.layers[0], [0, 0, 0])).collect();
    assert_eq!(shown, [STONE, UNKNOWN, STONE]);
    column.sections[0] = crate::maker::section(-4, vec![cg_host::Cells::uniform(AIR, crate::maker::FORM, 4)]);
    column.entities.push(made.cow(1));
    made.save(&column);
    let again = made.load().expect("stored");
    assert_eq!(number(&again.sections[0].layers[0], [0, 0, 0]), AIR);
    assert_eq!((again.damaged.as_slice(), again.entities.len()), (&[-3][..], 1));
    assert_eq!(row(&made, place), before);
}
