//! What no chunk of a world holds goes into a world and comes out again: fields of columns, points of interest, files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use cg_cli::anvil::column::{Column, EntityColumn};
use cg_cli::anvil::nbt::{self, Compound, Document};
use cg_cli::anvil::region::{ReadLimits, Region};
use cg_cli::anvil::write;
use cg_cli::export::{ExportOptions, ExportReport, export};
use cg_cli::import::{ImportError, ImportOptions, ImportReport, Merge, import};
use cg_format::Space;
use cg_format::frame::{Codec, Draft};
use cg_store::StoreLimits;
use cg_store::engine::{Batch, Engine, Level, MemEngine, RocksEngine, Stamp};
use cg_store::prelude::*;
use expect_test::expect;

use crate::import::imported;
use crate::maker::{self, patterned};
use crate::round;

/// A slot's fields by name, those of a section behind its y.
type Fields = BTreeMap<String, Vec<u8>>;

/// Fields that are read and written anew: that they say the same is compared elsewhere.
const REWRITTEN: [&str; 9] = [
    "sections",
    "Sections",
    "block_entities",
    "TileEntities",
    "entities",
    "Entities",
    "block_states",
    "Palette",
    "BlockStates",
];

fn add(fields: &mut Fields, place: &str, compound: Compound<'_>) {
    for field in compound.fields() {
        let name = format!("{place}{}", field.name.lossy());
        match field.value {
            nbt::Value::Compound(level) if name == "Level" => add(fields, "Level.", level),
            nbt::Value::List(list) if field.name.0.eq_ignore_ascii_case(b"sections") => {
                for section in list.compounds() {
                    let y = section.long("Y").expect("a section has a height");
                    add(fields, &format!("section {y}: "), section);
                }
            }
            _ if REWRITTEN.iter().any(|rewritten| rewritten.as_bytes() == field.name.0) => {}
            _ => assert_eq!(fields.insert(name, field.raw.to_vec()), None),
        }
    }
}

fn slots(path: &Path) -> BTreeMap<u16, Fields> {
    let mut region = Region::open(path).expect("the file opens");
    let found: Vec<_> = region.slots().collect();
    let mut bytes = Vec::new();
    let mut read = |slot: cg_cli::anvil::Slot| {
        region.read(slot, &ReadLimits::default(), &mut bytes).expect("readable");
        let root = Document::parse(&bytes, &nbt::Limits::default()).expect("NBT").root;
        let mut fields = Fields::new();
        if root.get("Position").is_none() {
            add(&mut fields, "", root);
        }
        (slot.index(), fields)
    };
    found.into_iter().map(&mut read).collect()
}

/// Every field of every column is what it was, byte for byte, but for those that are read and written anew.
#[track_caller]
pub(crate) fn check_fields(file: &str, before: &Path, after: &Path) {
    let (before, mut after) = (slots(before), slots(after));
    for (slot, before) in before {
        let mut after = after.remove(&slot).unwrap_or_default();
        for (name, bytes) in before {
            // Light of no byte says nothing, and is not written.
            let is_empty_light = name.ends_with("Light") && bytes.ends_with(&[0; 4]) && bytes.len() < 20;
            if !is_empty_light {
                assert!(after.remove(&name).as_ref() == Some(&bytes), "{file} slot {slot}: {name}");
            }
        }
        assert_eq!(after.keys().collect::<Vec<_>>(), [""; 0], "{file} slot {slot}: fields from nowhere");
    }
    assert_eq!(after.len(), 0, "{file}");
}

/// A column of stone and dirt with everything that the game keeps beside blocks.
fn column(x: i32) -> Column {
    let mut section = patterned(4, 3);
    section.left = Some(nbt::payload(|out| out.int("mod:depth", x)));
    let mut column = maker::column(x, 0, [section, patterned(5, 1)]);
    column.carried = nbt::payload(|out| {
        out.string("Status", "minecraft:full").expect("short");
        out.long("LastUpdate", 77);
        out.long("InhabitedTime", 12345);
    });
    column.left = Some(nbt::payload(|out| {
        out.compound("Heightmaps", |out| out.long_array("WORLD_SURFACE", &[i64::from(x); 37]));
        out.byte("isLightOn", 1);
        out.compound("structures", |out| out.compound("References", |_| ()));
        out.raw_compounds("block_ticks", [&nbt::payload(|out| out.int("p", -1))[..]].into_iter());
        out.raw_compounds("fluid_ticks", [].into_iter());
        out.compound("mod:notes", |out| out.byte("seen", 1));
    }));
    column
}

/// Two columns with points of interest, and files.
fn make(save: &Path) {
    let columns = [column(0), column(1)];
    let slots = columns.map(|column| maker::zlib((column.x, 0), &write::column(&column).expect("a column")));
    fs::create_dir_all(save.join("region")).expect("a folder");
    maker::region(&save.join("region/r.0.0.mca"), &slots);
    let points = |x| nbt::document(|root| root.compound("Sections", |out| out.int("x", x)));
    fs::create_dir_all(save.join("poi")).expect("a folder");
    maker::region(&save.join("poi/r.0.0.mca"), &[0, 1].map(|x| maker::zlib((x, 0), &points(x))));
    for (name, bytes) in files() {
        let path = save.join(name);
        fs::create_dir_all(path.parent().expect("below the save")).expect("a folder");
        fs::write(path, bytes).expect("written");
    }
    fs::write(save.join("session.lock"), "☃").expect("written");
}

fn files() -> [(&'static str, &'static [u8]); 5] {
    [
        ("level.dat", b"\x1f\x8bnot really"),
        ("data/raids.dat", b"\0\xff\x80"),
        ("datapacks/empty.zip", b""),
        ("playerdata/00000000-0000-0000-0000-000000000001.dat", b"Steve"),
        ("stats/00000000-0000-0000-0000-000000000001.json", b"{}"),
    ]
}

fn exported<E: Engine>(world: &World<E>, dir: &Path) -> ExportReport {
    export(world, dir, &ExportOptions::default(), |_| {}).expect("an export")
}

fn hash(world: &World<RocksEngine>) -> String {
    world.content_hash().expect("no damage").to_string()
}

fn names_left(save: &Path, x: i32) -> Vec<String> {
    let fields = slots(&save.join("region/r.0.0.mca")).remove(&(x as u16)).expect("a column");
    fields.into_keys().collect()
}

#[test]
fn everything_of_a_save_comes_back() {
    let dir = tempfile::tempdir().expect("a folder");
    let [save, out] = ["save", "out"].map(|name| dir.path().join(name));
    make(&save);
    let (world, report) = imported(&save, &dir.path().join("world"));
    assert_eq!((report.imported_files, report.not_carried.len(), report.is_whole()), (5, 0, true));
    let mut keys = Vec::new();
    for entry in world.objects().list("minecraft/", None, 100).expect("no damage").entries {
        keys.push(entry.key.to_string());
    }
    expect![[r#"
        minecraft/column/minecraft:overworld/r.0.0/0/0
        minecraft/column/minecraft:overworld/r.0.0/1/0
        minecraft/file/data/raids.dat
        minecraft/file/datapacks/empty.zip
        minecraft/file/level.dat
        minecraft/file/playerdata/00000000-0000-0000-0000-000000000001.dat
        minecraft/file/stats/00000000-0000-0000-0000-000000000001.json
        minecraft/poi/minecraft:overworld/r.0.0/0/0
        minecraft/poi/minecraft:overworld/r.0.0/1/0"#]]
    .assert_eq(&keys.join("\n"));

    let report = exported(&world, &out);
    assert_eq!((report.files, report.other_files, report.changed_columns), (2, 5, 0));
    assert_eq!(report.not_exported, BTreeMap::new());
    check_fields("made", &save.join("region/r.0.0.mca"), &out.join("region/r.0.0.mca"));
    check_fields("made points", &save.join("poi/r.0.0.mca"), &out.join("poi/r.0.0.mca"));
    for (name, bytes) in files() {
        assert_eq!(fs::read(out.join(name)).expect("is there"), bytes, "{name}");
    }
    assert!(!out.join("session.lock").exists());
    let (again, _) = imported(&out, &dir.path().join("again"));
    assert_eq!(hash(&again), hash(&world));
}

#[test]
fn what_the_blocks_decide_is_left_out_where_a_block_was_changed() {
    let dir = tempfile::tempdir().expect("a folder");
    let [save, out] = ["save", "out"].map(|name| dir.path().join(name));
    make(&save);
    let (world, _) = imported(&save, &dir.path().join("world"));
    let overworld = world.dimension("minecraft:overworld").expect("registered");
    // Of the second column only the light: that is no block.
    let committed = world.transaction(|tx| {
        let other = tx.catalog().block_id("test:block[n=2]").expect("registered");
        tx.set_block(overworld, BlockPos::new(0, 64, 0), other)?;
        let lit = ChunkAt::new(overworld, ChunkPos::new(1, 4, 0).expect("inside"));
        let light = tx.catalog().side_kind("minecraft:sky_light").expect("registered");
        let mut chunk = Chunk::clone(&*tx.load(lit)?.expect("stored"));
        chunk.set_side(light, vec![1; 2048]);
        tx.save(lit, chunk);
        Ok::<_, Error>(())
    });
    committed.expect("committed");
    let report = exported(&world, &out);
    assert_eq!((report.changed_columns, report.other_files), (1, 5));
    assert_eq!(report.not_exported, BTreeMap::new());
    expect![[r#"
        DataVersion
        InhabitedTime
        LastUpdate
        Status
        mod:notes
        section 4: Y
        section 4: mod:depth
        section 5: Y
        structures
        xPos
        zPos"#]]
    .assert_eq(&names_left(&out, 0).join("\n"));
    let untouched = names_left(&out, 1);
    for name in ["Heightmaps", "isLightOn", "block_ticks", "fluid_ticks", "structures", "mod:notes"] {
        assert!(untouched.iter().any(|found| found == name), "{name}: {untouched:?}");
    }
    assert_eq!(slots(&out.join("poi/r.0.0.mca")).into_keys().collect::<Vec<_>>(), [1]);

    // Put back as it was, everything is true again.
    let committed = world.transaction(|tx| {
        let first = tx.catalog().block_id("test:block[n=0]").expect("registered");
        tx.set_block(overworld, BlockPos::new(0, 64, 0), first)
    });
    committed.expect("committed");
    let report = exported(&world, &dir.path().join("undone"));
    assert_eq!(report.changed_columns, 0);
    assert!(names_left(&dir.path().join("undone"), 0).iter().any(|name| name == "Heightmaps"));
}

#[test]
fn a_chunk_that_is_gone_or_new_changes_its_column() {
    let dir = tempfile::tempdir().expect("a folder");
    let save = dir.path().join("save");
    make(&save);
    let (world, _) = imported(&save, &dir.path().join("world"));
    let overworld = world.dimension("minecraft:overworld").expect("registered");
    let at = |x, y| ChunkAt::new(overworld, ChunkPos::new(x, y, 0).expect("inside"));
    let committed = world.transaction(|tx| {
        tx.delete(at(0, 5));
        let chunk = Chunk::clone(&*tx.load(at(1, 5))?.expect("stored"));
        tx.save(at(1, 6), chunk);
        Ok::<_, Error>(())
    });
    committed.expect("committed");
    assert_eq!(exported(&world, &dir.path().join("out")).changed_columns, 2);
}

#[test]
fn a_merge_replaces_or_keeps_what_is_left_over() {
    let dir = tempfile::tempdir().expect("a folder");
    let [first, second] = ["first", "second"].map(|name| dir.path().join(name));
    make(&first);
    make(&second);
    // Another save of the same place: other blocks in column 0, no points of interest, another level.
    let mut other = column(0);
    other.sections[0] = patterned(4, 5);
    other.left = Some(nbt::payload(|out| out.int("mod:other", 1)));
    let slots = [maker::zlib((0, 0), &write::column(&other).expect("a column"))];
    maker::region(&second.join("region/r.0.0.mca"), &slots);
    fs::remove_file(second.join("poi/r.0.0.mca")).expect("removed");
    fs::write(second.join("level.dat"), "other").expect("written");
    let at = dir.path().join("world");
    let (world, _) = imported(&first, &at);
    let before = hash(&world);
    let merged = |merge| {
        let options = ImportOptions { merge: Some(merge), ..ImportOptions::default() };
        import(&second, &world, &options, |_| {}).expect("merged")
    };
    let refused = import(&second, &world, &ImportOptions::default(), |_| {}).expect_err("not empty");
    assert!(matches!(refused, ImportError::NotEmpty), "{refused}");

    let report = merged(Merge::Keep);
    assert_eq!((report.imported_files, report.kept_files), (4, 1));
    assert_eq!(hash(&world), before);

    let report = merged(Merge::Replace);
    assert_eq!((report.imported_files, report.kept_files), (5, 0));
    let out = dir.path().join("out");
    assert_eq!(exported(&world, &out).changed_columns, 0);
    assert!(names_left(&out, 0).iter().any(|name| name == "mod:other"));
    assert_eq!(fs::read(out.join("level.dat")).expect("is there"), b"other");
    let points =
        |out: &Path| crate::leftovers::slots(&out.join("poi/r.0.0.mca")).into_keys().collect::<Vec<_>>();
    assert_eq!(points(&out), [1], "the points of the blocks that were replaced are gone");
    // Kept blocks do not get the points of others.
    let options = ImportOptions { merge: Some(Merge::Keep), ..ImportOptions::default() };
    import(&first, &world, &options, |_| {}).expect("merged");
    let kept = dir.path().join("kept");
    exported(&world, &kept);
    assert_eq!(points(&kept), [1]);
    let objects = world.objects();
    assert_eq!(objects.get("minecraft/poi/minecraft:overworld/r.0.0/0/0").expect("no damage"), None);
}

#[test]
fn an_import_that_is_stopped_among_files_continues() {
    let dir = tempfile::tempdir().expect("a folder");
    let save = dir.path().join("save");
    make(&save);
    for name in ["data/a.dat", "data/b.dat", "data/c.dat"] {
        fs::write(save.join(name), vec![name.len() as u8; 7 << 20]).expect("written");
    }
    let (world, whole) = imported(&save, &dir.path().join("whole"));
    assert_eq!(whole.imported_files, 8);
    let parts = World::temporary(&[], &WorldOptions::default()).expect("a world in memory");
    let options = ImportOptions { stop_after_transactions: Some(1), ..ImportOptions::default() };
    let mut stops = 0;
    let report: ImportReport = loop {
        match import(&save, &parts, &options, |_| {}) {
            Err(ImportError::Stopped(1)) => stops += 1,
            ended => break ended.expect("it ends"),
        }
        assert!(stops < 50, "each run goes on where the last one stopped");
    };
    assert_eq!(report, whole);
    // At least behind the columns, behind their points, and behind each of the large files.
    assert!(stops >= 5, "only {stops} stops");
    assert_eq!(parts.content_hash().expect("no damage").to_string(), hash(&world));
}

#[test]
fn what_is_over_the_limits_is_named_with_its_size() {
    let save = tempfile::tempdir().expect("a folder");
    make(save.path());
    fs::write(save.path().join("data/huge.dat"), vec![7; 300_000]).expect("written");
    fs::write(save.path().join("data/n".to_owned() + &"o".repeat(200)), "short").expect("written");
    let mut heavy = column(2);
    heavy.left = Some(nbt::payload(|out| out.byte_array("mod:heavy", &vec![1; 300_000])));
    let slots = [maker::zlib((2, 0), &write::column(&heavy).expect("a column"))];
    maker::region(&save.path().join("region/r.5.5.mca"), &slots);
    let limits = StoreLimits { object_bytes: 200_000, ..StoreLimits::default() };
    let options = WorldOptions { limits, ..WorldOptions::default() };
    let world: World<MemEngine> = World::temporary(&[], &options).expect("a world in memory");
    let report = import(save.path(), &world, &ImportOptions::default(), |_| {}).expect("an import");
    assert_eq!((report.imported_columns, report.imported_files), (3, 6));
    assert!(report.is_whole());
    let named: Vec<_> = report.not_carried.into_iter().collect();
    expect![[r#"
        file data/huge.dat: it takes 300000 bytes, more than the 195904 of an object
        what is left of columns: minecraft/column/minecraft:overworld/r.0.0/2/0 takes 300158 bytes, more than 195904"#]].assert_eq(&named.join("\n"));
}

#[test]
fn no_object_writes_outside_of_the_export_or_over_a_region() {
    let dir = tempfile::tempdir().expect("a folder");
    let save = dir.path().join("save");
    make(&save);
    let (world, _) = imported(&save, &dir.path().join("world"));
    let region = fs::read(save.join("region/r.0.0.mca")).expect("readable");
    for name in [
        "../outside",
        "/outside",
        "a/../../outside",
        "region/r.0.0.mca",
        "region/r.7.7.mca",
        "r.7.7.mca",
        "level.dat/inside",
        "nul\0",
        "",
    ] {
        world.objects().put(format!("minecraft/file/{name}"), region.clone()).expect("stored");
    }
    world.objects().put(b"minecraft/file/\xff", region).expect("stored");
    let out = dir.path().join("deeper/out");
    let report = exported(&world, &out);
    assert_eq!(report.other_files, 5);
    expect![[r#"
        {
            "files that no save can hold at the path that they have": 9,
            "files where another file or folder is": 1,
        }"#]]
    .assert_eq(&format!("{:#?}", report.not_exported));
    assert!(!dir.path().join("outside").exists() && !dir.path().join("deeper/outside").exists());
    assert_eq!(fs::read_dir(out.join("region")).expect("a folder").count(), 1);
    round::check_columns(
        "hostile",
        &crate::worlds::read(&save.join("region/r.0.0.mca"))
            .columns
            .iter()
            .map(|(_, column)| column)
            .collect::<Vec<_>>(),
        &crate::worlds::read(&out.join("region/r.0.0.mca"))
            .columns
            .iter()
            .map(|(_, column)| column)
            .collect::<Vec<_>>(),
    );
}

fn in_memory() -> World<MemEngine> {
    World::temporary(&[], &WorldOptions::default()).expect("a world in memory")
}

fn taken<E: Engine>(save: &Path, world: &World<E>, merge: Option<Merge>) -> ImportReport {
    import(save, world, &ImportOptions { merge, ..ImportOptions::default() }, |_| {}).expect("an import")
}

/// The times of a region file's slots.
fn times(path: &Path) -> Vec<(u16, u32)> {
    let region = Region::open(path).expect("the file opens");
    region.slots().map(|slot| (slot.index(), region.timestamp(slot))).collect()
}

fn entity_slot(x: i32, entities: Vec<Vec<u8>>) -> Vec<u8> {
    let left = Some(nbt::payload(|out| {
        out.int("mod:flag", x);
        out.compound("mod:empty", |_| ());
    }));
    let column = EntityColumn { x, z: 0, data_version: maker::DATA_VERSION, entities, left };
    write::entities(&column).expect("entities")
}

/// As [`make`], with slots of entities, of which the last holds none, and with times.
fn make_with_times(save: &Path) {
    make(save);
    let pig =
        |x: i32| maker::entity("minecraft:pig", [0, 0, 0, x + 1], [f64::from(x * 16) + 5.0, 70.0, 5.0], &[]);
    let slots = [
        maker::zlib((0, 0), &entity_slot(0, vec![pig(0)])),
        maker::zlib((1, 0), &entity_slot(1, vec![pig(1)])),
        maker::zlib((2, 0), &entity_slot(2, vec![])),
    ];
    fs::create_dir_all(save.join("entities")).expect("a folder");
    maker::region(&save.join("entities/r.0.0.mca"), &slots);
    for (folder, columns) in [("region", 2), ("poi", 2), ("entities", 3)] {
        for x in 0..columns {
            maker::stamp(&save.join(folder).join("r.0.0.mca"), (x, 0), 1_700_000_000 + x as u32);
        }
    }
}

#[test]
fn times_and_what_stands_beside_entities_come_back() {
    let dir = tempfile::tempdir().expect("a folder");
    let [save, out, changed] = ["save", "out", "changed"].map(|name| dir.path().join(name));
    make_with_times(&save);
    let world = in_memory();
    let report = taken(&save, &world, None);
    assert_eq!((report.entities, report.not_carried.len()), (2, 0));
    assert_eq!(exported(&world, &out).not_exported, BTreeMap::new());
    let all = [(0, 1_700_000_000), (1, 1_700_000_001), (2, 1_700_000_002)];
    for (folder, columns) in [("region", 2), ("poi", 2), ("entities", 3)] {
        assert_eq!(times(&out.join(folder).join("r.0.0.mca")), all[..columns], "{folder}");
    }
    let slot = |save: &Path, x: i32| {
        let mut region = Region::open(&save.join("entities/r.0.0.mca")).expect("the file opens");
        let mut bytes = Vec::new();
        region
            .read(cg_cli::anvil::Slot::of_column(x, 0), &ReadLimits::default(), &mut bytes)
            .expect("readable");
        bytes
    };
    for x in 0..3 {
        assert!(slot(&out, x) == slot(&save, x), "slot {x}");
    }

    // The light of a column, a block of the other, and a pig: what a slot holds now was not written then.
    let overworld = world.dimension("minecraft:overworld").expect("registered");
    let committed = world.transaction(|tx| {
        let lit = ChunkAt::new(overworld, ChunkPos::new(1, 4, 0).expect("inside"));
        let light = tx.catalog().side_kind("minecraft:sky_light").expect("registered");
        let mut chunk = Chunk::clone(&*tx.load(lit)?.expect("stored"));
        chunk.set_side(light, vec![1; 2048]);
        tx.save(lit, chunk);
        let other = tx.catalog().block_id("test:block[n=2]").expect("registered");
        tx.set_block(overworld, BlockPos::new(0, 64, 0), other)?;
        tx.delete_entity(EntityId::new(uuid::Uuid::from_u128(2)));
        Ok::<_, Error>(())
    });
    committed.expect("committed");
    exported(&world, &changed);
    let found = ["region", "poi", "entities"].map(|folder| times(&changed.join(folder).join("r.0.0.mca")));
    assert_eq!(found[0], [(0, 0), (1, 0)]);
    assert_eq!(found[1], [(1, 1_700_000_001)], "points of interest come back as they were, or not at all");
    assert_eq!(found[2], [(0, 1_700_000_000), (1, 0), (2, 1_700_000_002)]);
    assert!(slot(&changed, 1) == entity_slot(1, vec![]), "its pig is gone, its field is not");
}

/// Writes a row that says nothing over an object.
fn damage(world: &World<MemEngine>, key: &str) {
    let mut batch = Batch::new();
    let nonsense = Draft::plain(Codec::None, 0, |out| out.push(0xee));
    batch.put(Space::Object, key.as_bytes(), nonsense, Stamp::Commit);
    Engine::commit(&*world.engine(), batch, &[], Level::Process).expect("memory is left");
}

#[test]
fn what_is_damaged_or_strange_costs_nothing_else() {
    let dir = tempfile::tempdir().expect("a folder");
    let [save, out] = ["save", "out"].map(|name| dir.path().join(name));
    make_with_times(&save);
    let world = in_memory();
    taken(&save, &world, None);
    let key = |kind: &str, x: i32| format!("minecraft/{kind}/minecraft:overworld/r.0.0/{x}/0");
    damage(&world, &key("column", 0));
    damage(&world, &key("poi", 1));
    damage(&world, &key("entities", 0));
    damage(&world, &key("entities", 2));
    damage(&world, "minecraft/file/level.dat");
    let report = exported(&world, &out);
    assert_eq!((report.columns, report.entities, report.other_files), (2, 2, 4));
    expect![[r#"
        {
            "damaged objects of columns": 1,
            "damaged objects of files": 1,
            "damaged objects of points of interest": 1,
            "damaged objects of slots of entities/": 2,
        }"#]]
    .assert_eq(&format!("{:#?}", report.not_exported));
    assert!(!out.join("poi").exists());
    assert_eq!(times(&out.join("entities/r.0.0.mca")), [(0, 0), (1, 1_700_000_001)]);

    // Whatever lies where points of interest should: a column among them would be taken for one.
    let world = in_memory();
    taken(&save, &world, None);
    let hidden = cg_cli::mapping::Points { timestamp: 1, slot: write::column(&column(9)).expect("a column") };
    world.objects().put(key("poi", 0), hidden.encode()).expect("stored");
    world.objects().put(key("poi", 1), b"nonsense".to_vec()).expect("stored");
    world.objects().put(key("column", 1), b"nonsense".to_vec()).expect("stored");
    world.objects().put(key("entities", 1), b"nonsense".to_vec()).expect("stored");
    let out = dir.path().join("strange");
    let report = exported(&world, &out);
    expect![[r#"
        {
            "objects of columns that are none": 1,
            "objects of points of interest that are none": 1,
            "objects of slots of entities/ that are none": 1,
        }"#]]
    .assert_eq(&format!("{:#?}", report.not_exported));
    assert!(!out.join("poi").exists());
}

#[test]
fn a_path_that_is_too_long_for_the_system_costs_nothing_else() {
    let dir = tempfile::tempdir().expect("a folder");
    let world = in_memory();
    world.objects().put("minecraft/file/a.dat", b"a".to_vec()).expect("stored");
    // Longer than any system's path, and no longer than a key may be.
    let long = format!("minecraft/file/{}", "b/".repeat(240));
    world.objects().put(format!("{long}c"), b"c".to_vec()).expect("stored");
    let deep = (0..15).fold(dir.path().to_owned(), |path, _| path.join("d".repeat(250)));
    let report = exported(&world, &deep);
    assert_eq!(report.other_files, 1);
    expect![[r#"
        {
            "files that no save can hold at the path that they have": 1,
        }"#]]
    .assert_eq(&format!("{:#?}", report.not_exported));
}

#[test]
fn what_is_kept_of_the_world_gets_nothing_of_the_saves() {
    let dir = tempfile::tempdir().expect("a folder");
    let [save, out] = ["save", "out"].map(|name| dir.path().join(name));
    make_with_times(&save);
    // A host's own chunk in column 0, and of column 1 a record that says that it was only begun.
    let world = in_memory();
    let overworld = world.register_dimension("minecraft:overworld").expect("registered");
    let [stone] = world.register_blocks(["minecraft:stone"]).expect("registered");
    let property = || {
        Property::Named(cg_cli::mapping::name::column_property("minecraft:overworld", 1, 0).expect("short"))
    };
    let begun = {
        let mut begun = maker::column(1, 0, []);
        begun.carried = nbt::payload(|out| out.string("Status", "minecraft:empty").expect("short"));
        write::column(&begun).expect("a column")
    };
    let committed = world.transaction(|tx| {
        let at = ChunkAt::new(overworld, ChunkPos::new(0, 4, 0).expect("inside"));
        tx.save(at, Chunk::filled(stone, &tx.catalog().current_schema()).expect("registered"));
        tx.set_property(property(), Some(begun.clone()));
        Ok::<_, Error>(())
    });
    committed.expect("committed");
    let report = taken(&save, &world, Some(Merge::Keep));
    assert_eq!((report.imported_chunks, report.kept_chunks), (3, 1));
    assert_eq!(world.property(&property()).expect("no damage"), Some(begun));
    let mut keys = Vec::new();
    for entry in world.objects().list("minecraft/", None, 100).expect("no damage").entries {
        keys.extend(Some(entry.key.to_string()).filter(|key| !key.starts_with("minecraft/file/")));
    }
    expect![[r#"
        minecraft/entities/minecraft:overworld/r.0.0/2/0"#]]
    .assert_eq(&keys.join("\n"));
    exported(&world, &out);
    let left = names_left(&out, 0);
    assert!(!left.iter().any(|name| name == "structures" || name == "Heightmaps"), "{left:?}");
}

#[test]
fn a_bare_column_replaces_no_record_of_what_stays() {
    let dir = tempfile::tempdir().expect("a folder");
    let [first, second, out] = ["first", "second", "out"].map(|name| dir.path().join(name));
    make_with_times(&first);
    make(&second);
    // The other save has the place of column 0, and nothing in it.
    let slots = [maker::zlib((0, 0), &write::column(&maker::column(0, 0, [])).expect("a column"))];
    maker::region(&second.join("region/r.0.0.mca"), &slots);
    fs::remove_file(second.join("poi/r.0.0.mca")).expect("removed");
    let world = in_memory();
    taken(&first, &world, None);
    let before = world.content_hash().expect("no damage");
    taken(&second, &world, Some(Merge::Replace));
    assert_eq!(world.content_hash().expect("no damage"), before);
    assert_eq!(exported(&world, &out).changed_columns, 0);
    check_fields("kept", &first.join("region/r.0.0.mca"), &out.join("region/r.0.0.mca"));
    check_fields("kept points", &first.join("poi/r.0.0.mca"), &out.join("poi/r.0.0.mca"));
}

#[test]
fn of_points_of_interest_met_twice_the_first_are_taken_and_the_others_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let [save, out] = ["save", "out"].map(|name| dir.path().join(name));
    make_with_times(&save);
    let other = nbt::document(|root| root.compound("Sections", |out| out.int("other", 1)));
    maker::region(&save.join("poi/z_r.0.0.mca"), &[maker::zlib((1, 0), &other)]);
    maker::region(&save.join("entities/z_r.0.0.mca"), &[maker::zlib((1, 0), &entity_slot(1, vec![]))]);
    let world = in_memory();
    let report = taken(&save, &world, None);
    let lost: Vec<_> =
        report.unreadable.iter().map(|lost| format!("{}: {}", lost.file, lost.reason)).collect();
    expect!["poi/z_r.0.0.mca: points of interest of column (1, 0) were met before in this save"]
        .assert_eq(&lost.join("\n"));
    let named: Vec<_> = report.not_carried.iter().map(String::as_str).collect();
    assert_eq!(named, ["fields of a second slot of entities/ for one column"]);
    exported(&world, &out);
    check_fields("points", &save.join("poi/r.0.0.mca"), &out.join("poi/r.0.0.mca"));
    assert_eq!(times(&out.join("entities/r.0.0.mca"))[1], (1, 1_700_000_001));
}

#[test]
fn a_section_that_is_lost_keeps_what_follows_from_blocks_from_coming_back() {
    let dir = tempfile::tempdir().expect("a folder");
    let [save, out] = ["save", "out"].map(|name| dir.path().join(name));
    make(&save);
    // Of its two sections one has a palette that no cell can use.
    let mut torn = column(0);
    torn.sections[1].blocks = None;
    torn.sections[1].left = Some(nbt::payload(|out| out.compound("block_states", |_| ())));
    let slots = [maker::zlib((0, 0), &write::column(&torn).expect("a column"))];
    maker::region(&save.join("region/r.0.0.mca"), &slots);
    let world = in_memory();
    let report = taken(&save, &world, None);
    assert_eq!((report.imported_chunks, report.unreadable.len()), (1, 1));
    assert_eq!(exported(&world, &out).changed_columns, 1);
    let left = names_left(&out, 0);
    assert!(left.iter().any(|name| name == "structures"), "{left:?}");
    assert!(!left.iter().any(|name| name == "Heightmaps"), "{left:?}");
    assert!(!out.join("poi").exists());
}

#[test]
fn a_world_inside_of_the_save_is_no_part_of_it() {
    let save = tempfile::tempdir().expect("a folder");
    make(save.path());
    let (world, report) = imported(save.path(), &save.path().join("worlds/mine"));
    assert_eq!(report.imported_files, 5);
    let named: Vec<_> = report.not_carried.iter().map(String::as_str).collect();
    assert_eq!(named, ["folder worlds/mine: it is a world of CherryGrove"]);
    let inside = world.objects().list("minecraft/file/worlds", None, 1).expect("no damage").entries;
    assert_eq!(inside, []);
}

#[test]
fn numbered_dimensions_go_back_into_their_folders() {
    let dir = tempfile::tempdir().expect("a folder");
    let [save, out] = ["save", "out"].map(|name| dir.path().join(name));
    make(&save);
    fs::create_dir_all(save.join("DIM7/data")).expect("a folder");
    fs::write(save.join("DIM7/data/a.dat"), "seven").expect("written");
    fs::create_dir_all(save.join("DIM7/region")).expect("a folder");
    fs::copy(save.join("region/r.0.0.mca"), save.join("DIM7/region/r.0.0.mca")).expect("copied");
    let world = in_memory();
    taken(&save, &world, None);
    exported(&world, &out);
    for name in ["region/r.0.0.mca", "DIM7/region/r.0.0.mca"] {
        check_fields(name, &save.join(name), &out.join(name));
    }
    assert_eq!(fs::read(out.join("DIM7/data/a.dat")).expect("is there"), b"seven");
    assert!(!out.join("dimensions").exists());
}
