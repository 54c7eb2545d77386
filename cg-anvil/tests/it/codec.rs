//! Single columns in and out of worlds, as imports and exports take them.

use std::collections::BTreeMap;
use std::path::Path;

use cg_anvil::export::{ExportOptions, export};
use cg_anvil::mapping::kept::{Folder, slot_key};
use cg_anvil::region::ReadLimits;
use cg_anvil::{
    Column, ColumnCodec, ColumnEntities, ColumnError, ColumnParts, ColumnPos, ColumnReport, EncodedColumn,
    Region, SlotContent, nbt, write,
};
use cg_format::frame::{Codec, Draft};
use cg_format::{Dimension, Space, key};
use cg_minecraft::content::GAME;
use cg_store::ErrorKind;
use cg_store::engine::{Batch, Level, Stamp};
use cg_store::prelude::*;
use cg_store::view::Area;
use tempfile::TempDir;

use crate::import::imported;
use crate::{held, maker, saves};

const OVERWORLD: &str = "minecraft:overworld";

fn hash(world: &World) -> String {
    world.content_hash(Area::World).expect("no damage").to_string()
}

/// A world in memory, and a codec of it.
fn empty() -> (World, ColumnCodec, Dimension) {
    let world = World::builder().in_memory().expect("memory");
    let overworld = world.registry().register_dimension(OVERWORLD).expect("new");
    let codec = ColumnCodec::new(&world).expect("a new world");
    (world, codec, overworld)
}

/// Saves a column in a transaction of its own.
fn save(
    world: &World,
    codec: &ColumnCodec,
    dimension: Dimension,
    at: ColumnPos,
    parts: &ColumnParts,
) -> ColumnReport {
    let mut entities = ColumnEntities::read(world).expect("no damage");
    let decoded = codec.decode(at, parts).expect("slots of the column");
    let saved = world.transaction(|tx| codec.save(tx, &mut entities, dimension, decoded));
    saved.expect("the world takes it").value
}

fn encoded(world: &World, codec: &ColumnCodec, dimension: Dimension, at: ColumnPos) -> Option<EncodedColumn> {
    let entities = ColumnEntities::read(world).expect("no damage");
    codec.encode(&entities, dimension, at).expect("no damage")
}

fn parts_of(column: &Column) -> ColumnParts {
    let slot = SlotContent::Nbt(write::column(column).expect("a column"), 7);
    ColumnParts { column: Some(slot), ..ColumnParts::default() }
}

/// Puts the columns of a world into another one, in this order, with what belongs to no column.
fn copied(world: &World, columns: impl Iterator<Item = (String, ColumnPos)>) -> World {
    let codec = ColumnCodec::new(world).expect("names that are there");
    let entities = ColumnEntities::read(world).expect("no damage");
    let (copy, to, _) = empty();
    let mut lists = ColumnEntities::read(&copy).expect("no damage");
    // Its block of another namespace has a block entity: what owns one is registered with the first column that has it.
    let first = (OVERWORLD.to_owned(), ColumnPos::new(2, 0));
    for (name, at) in std::iter::once(first).chain(columns) {
        let from = world.catalog().dimension(&name).expect("it was imported");
        let into = copy.registry().register_dimension(&name).expect("a name");
        let encoded = codec.encode(&entities, from, at).expect("no damage").expect("a column");
        assert_eq!(encoded.missed, BTreeMap::new(), "{name} {at}");
        let decoded = to.decode(at, &encoded.parts).expect("slots of the column");
        copy.transaction(|tx| to.save(tx, &mut lists, into, decoded)).expect("the world takes it");
    }
    for prefix in ["minecraft/layout/", "minecraft/file/"] {
        world
            .objects()
            .for_each(prefix, |object| {
                let (key, _, bytes) = object.expect("no damage");
                copy.objects().put(key, bytes.to_vec()).expect("the world takes it");
                std::ops::ControlFlow::<()>::Continue(())
            })
            .expect("no damage");
    }
    let game = Property::Named(Name::new(GAME).expect("a literal name"));
    let bytes = world.property(&game).expect("no damage");
    let named = copy.transaction(|tx| {
        tx.set_property(game, bytes);
        Ok::<_, cg_store::Error>(())
    });
    named.expect("the world takes it");
    copy
}

/// The columns of the save with every awkward shape.
fn awkward_columns() -> Vec<(String, ColumnPos)> {
    let overworld = (0..7).map(|x| (OVERWORLD.to_owned(), ColumnPos::new(x, 0)));
    let others = [("minecraft:the_nether", -32), ("twilight:forest/deep", 0)];
    let others = others.map(|(name, x)| (name.to_owned(), ColumnPos::new(x, 0)));
    overworld.chain(others).collect()
}

#[test]
fn columns_that_go_to_another_world_one_by_one_are_what_an_import_brings() {
    let dir = TempDir::new().expect("a directory");
    saves::make(&dir.path().join("save"));
    let (world, _) = imported(&dir.path().join("save"), &dir.path().join("world"));
    let columns = awkward_columns();
    assert_eq!(hash(&copied(&world, columns.iter().cloned())), hash(&world));
    let backwards = copied(&world, columns.iter().rev().cloned());
    assert_eq!(hash(&backwards), hash(&world), "entities find chunks that come after them");
    // What is there already is replaced by the same.
    let (codec, mut entities) =
        (ColumnCodec::new(&backwards).expect("names"), ColumnEntities::read(&backwards).expect("no damage"));
    for (name, at) in columns {
        let dimension = backwards.catalog().dimension(&name).expect("it is there");
        let encoded = codec.encode(&entities, dimension, at).expect("no damage").expect("a column");
        let decoded = codec.decode(at, &encoded.parts).expect("its slots");
        let saved = backwards.transaction(|tx| codec.save(tx, &mut entities, dimension, decoded));
        let ColumnReport { removed_chunks, removed_entities, .. } = saved.expect("the world takes it").value;
        assert_eq!((removed_chunks, removed_entities), (0, 0), "{name} {at}");
    }
    assert_eq!(hash(&backwards), hash(&world));
}

/// A slot of an exported file.
fn slot(file: &Path, at: ColumnPos) -> Option<(Vec<u8>, u32)> {
    let mut region = Region::open(file).ok()?;
    let mut bytes = Vec::new();
    region.read(at.slot(), &ReadLimits::default(), &mut bytes).expect("readable")?;
    Some((bytes, region.timestamp(at.slot())))
}

#[test]
fn a_column_is_encoded_as_an_export_writes_it() {
    let dir = TempDir::new().expect("a directory");
    saves::make(&dir.path().join("save"));
    let (world, _) = imported(&dir.path().join("save"), &dir.path().join("world"));
    let out = dir.path().join("out");
    export(&world, &out, &ExportOptions::default(), |_| {}).expect("an empty folder");
    let (codec, overworld) = (ColumnCodec::new(&world).expect("names"), Dimension::new(0));
    for x in -1..9 {
        let at = ColumnPos::new(x, 0);
        let parts = encoded(&world, &codec, overworld, at).unwrap_or_else(|| EncodedColumn {
            pos: at,
            parts: ColumnParts::default(),
            missed: BTreeMap::new(),
        });
        for (folder, content) in [("region", parts.parts.column), ("entities", parts.parts.entities)] {
            let content = content.map(|content| match content {
                SlotContent::Nbt(nbt, timestamp) => (nbt, timestamp),
                SlotContent::Raw(raw) => panic!("{folder} {at} was read: {raw:?}"),
            });
            assert_eq!(content, slot(&out.join(folder).join("r.0.0.mca"), at), "{folder} {at}");
        }
    }
}

#[test]
fn a_damaged_chunk_is_an_error_and_no_absence() {
    let dir = TempDir::new().expect("a directory");
    saves::make(&dir.path().join("save"));
    let (world, _) = imported(&dir.path().join("save"), &dir.path().join("world"));
    let (overworld, at) = (Dimension::new(0), ColumnPos::new(1, 0));
    world.close().expect("closed");
    drop(world);
    let world = held::open(&dir.path().join("world"));
    let mut batch = Batch::new();
    let nonsense = Draft::plain(Codec::None, 0, |out| out.push(0xee));
    batch.put(Space::ChunkL0, key::chunk(at.chunk_at(overworld, 127)), nonsense, Stamp::Commit);
    world.engine().commit(batch, &[], Level::Process).expect("the disk takes it");
    world.close().expect("closed");
    drop(world);
    let world = held::open(&dir.path().join("world"));
    let codec = ColumnCodec::new(&world).expect("names");
    let mut entities = ColumnEntities::read(&world).expect("its entities are sound");
    let error = codec.encode(&entities, overworld, at).expect_err("damage");
    assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
    let decoded = codec.decode(at, &ColumnParts::default()).expect("nothing");
    let error =
        world.transaction(|tx| codec.save(tx, &mut entities, overworld, decoded)).expect_err("damage");
    assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
    // The other columns are as they were.
    let other =
        codec.encode(&entities, overworld, ColumnPos::new(0, 0)).expect("no damage").expect("a column");
    assert!(other.parts.column.is_some() && other.parts.entities.is_some());
}

/// A column with a section that cannot be read, and one without.
fn torn(at: ColumnPos) -> Vec<u8> {
    nbt::document(|root| {
        root.int("DataVersion", maker::DATA_VERSION);
        root.int("xPos", at.x);
        root.int("zPos", at.z);
        root.string("Status", "minecraft:full").expect("short");
        let sections = root.compounds("sections", [0, 1].into_iter(), |out, y| {
            out.byte("Y", y);
            out.compound("block_states", |out| {
                let name = if y == 0 { "minecraft:stone" } else { "[" };
                out.compounds("palette", 0..1, |entry, _| entry.string("Name", name)).expect("short");
            });
            Ok::<_, nbt::TooLong>(())
        });
        sections.expect("short names");
    })
}

#[test]
fn a_column_with_an_unreadable_part_keeps_its_slot() {
    let (world, codec, overworld) = empty();
    let at = ColumnPos::new(-1, 40);
    let parts = ColumnParts { column: Some(SlotContent::Nbt(torn(at), 9)), ..ColumnParts::default() };
    let report = save(&world, &codec, overworld, at, &parts);
    assert_eq!((report.chunks, report.kept_slots, report.problems.len()), (1, 1, 2), "{:?}", report.problems);
    assert!(world.load(at.chunk_at(overworld, 0)).expect("no damage").is_some());
    let kept = slot_key(Folder::Region, OVERWORLD, at).expect("short");
    assert!(world.objects().get(&kept).expect("no damage").is_some());
    // It goes back as it was, and to another world so.
    let back = encoded(&world, &codec, overworld, at).expect("a column");
    let Some(SlotContent::Raw(raw)) = &back.parts.column else { panic!("{back:?}") };
    let mut bytes = Vec::new();
    raw.read(&ReadLimits::default(), &mut bytes).expect("it was compressed");
    assert_eq!((bytes, raw.timestamp), (torn(at), 9));
    let (other, to, _) = empty();
    save(&other, &to, overworld, at, &back.parts);
    assert_eq!(hash(&other), hash(&world));
    // The world has other blocks than those that were read of the slot.
    world
        .transaction(|tx| {
            tx.delete(at.chunk_at(overworld, 0));
            Ok::<_, cg_store::Error>(())
        })
        .expect("the world takes it");
    let changed = encoded(&world, &codec, overworld, at).expect("what is kept of it");
    assert_eq!(changed.parts, ColumnParts::default());
    assert_eq!(changed.missed.into_values().collect::<Vec<_>>(), [1]);
    // Half of a column takes the place of none.
    let whole = maker::column(at.x, at.z, [maker::patterned(2, 3)]);
    save(&world, &codec, overworld, at, &parts_of(&whole));
    let before = hash(&world);
    assert!(world.objects().get(&kept).expect("no damage").is_none(), "its blocks are there");
    assert!(save(&world, &codec, overworld, at, &parts).is_refused);
    assert_eq!(hash(&world), before);
}

#[test]
fn unknown_fields_and_points_of_interest_go_with_their_column() {
    let (world, codec, overworld) = empty();
    let at = ColumnPos::new(3, -2);
    let mut column = maker::column(at.x, at.z, [maker::patterned(0, 1)]);
    column.left = Some(nbt::payload(|out| out.int("mod:mark", 5)));
    let points = nbt::document(|root| {
        root.compound("Sections", |_| ());
        root.int("DataVersion", maker::DATA_VERSION);
    });
    let parts = ColumnParts { points: Some(SlotContent::Nbt(points, 8)), ..parts_of(&column) };
    save(&world, &codec, overworld, at, &parts);
    assert_eq!(encoded(&world, &codec, overworld, at).expect("a column").parts, parts);
    // A column without a slot is removed with all that is kept of it.
    let removed = save(&world, &codec, overworld, at, &ColumnParts::default());
    assert_eq!(removed.removed_chunks, 1);
    assert_eq!(encoded(&world, &codec, overworld, at), None);
    let (new, _, _) = empty();
    assert_eq!(hash(&world), hash(&new));
}

#[test]
fn a_slot_of_another_column_and_what_is_no_slot_are_errors() {
    let (_, codec, _) = empty();
    let (at, other) = (ColumnPos::new(0, 0), maker::column(1, 0, []));
    let error = codec.decode(at, &parts_of(&other)).expect_err("another column");
    assert_eq!(error, ColumnError::WrongPlace { column: other.pos, slot: at });
    let spoilt = ColumnParts { points: Some(SlotContent::Nbt(vec![7], 0)), ..ColumnParts::default() };
    assert!(codec.decode(at, &spoilt).is_err());
}
