//! A made save with every awkward shape, through a world and back.

use std::fs;
use std::path::Path;

use cg_anvil::ColumnPos;
use cg_anvil::column::{Column, EntityColumn};
use cg_anvil::import::{ImportError, ImportOptions, ImportReport, Merge, import};
use cg_anvil::{nbt, save, write};
use cg_store::World;
use cg_store::prelude::*;
use expect_test::expect;

use crate::import::imported;
use crate::maker::{self, block_entity, patterned};
use crate::saves::{CHEST, make, section};
use crate::{held, round, worlds};

fn hash(world: &World) -> String {
    world.content_hash(cg_store::view::Area::World).expect("no damage").to_string()
}

/// The region files of a save, from its folder on.
fn region_names(save: &Path) -> Vec<String> {
    let files = save::find(save).expect("a save").regions;
    let name = |path: &Path| path.strip_prefix(save).expect("inside").display().to_string();
    files.iter().map(|file| name(&file.path)).collect()
}

#[test]
fn every_awkward_shape_arrives_and_comes_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let [save, out] = ["save", "out"].map(|name| dir.path().join(name));
    let columns = make(&save);
    let (world, report) = imported(&save, &dir.path().join("world"));
    expect![[r#"
        {
          "imported_columns": 9,
          "imported_chunks": 9,
          "new_chunks": 9,
          "replaced_chunks": 0,
          "unchanged_chunks": 0,
          "removed_chunks": 0,
          "kept_chunks": 0,
          "entities": 11,
          "detached": 1,
          "players": 0,
          "kept_entities": 0,
          "imported_files": 0,
          "kept_files": 0,
          "old_slots": 0,
          "kept_slots": 0,
          "kept_slot_bytes": 0,
          "layout": {
            "minecraft:overworld": "old",
            "minecraft:the_nether": "old",
            "twilight:forest/deep": "dimensions"
          },
          "strays": [],
          "replaced_level": null,
          "remaining_files": 0,
          "deleted_files": {},
          "left_files": 0,
          "in_use": false,
          "unreadable": [],
          "reasons": [],
          "rekeyed": [
            {
              "file": "entities/r.0.0.mca",
              "slot": 0,
              "was": "00000000-0000-0000-0000-000000000004",
              "is": "b39ac9f0-6cec-83fb-be67-525673ebde77"
            },
            {
              "file": "entities/r.0.0.mca",
              "slot": 0,
              "was": "00000000-0000-0000-0000-000000000004",
              "is": "6118dab7-adac-81ba-90a6-f692f74f7496"
            },
            {
              "file": "entities/r.0.0.mca",
              "slot": 0,
              "was": null,
              "is": "b658c8cd-38f1-80d2-a4aa-f23df3ee8610"
            }
          ],
          "not_carried": [],
          "regions_as_files": [],
          "players_as_files": {},
          "too_large": [],
          "has_no_column": false,
          "unlisted": {
            "unreadable": 0,
            "rekeyed": 0,
            "not_carried": 0,
            "regions_as_files": 0,
            "players_as_files": 0,
            "too_large": 0
          }
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&report).expect("JSON"));
    let held = held::count(&world);
    expect![[r#"
        9 columns, 9 chunks, 1 detached, 3 riders
        {"minecraft:bat": 3, "minecraft:chest_minecart": 1, "minecraft:cow": 2, "minecraft:minecart": 1, "minecraft:pig": 1}
        4 of {"create:belt": 1, "minecraft:bell": 1, "minecraft:chest": 2, "minecraft:furnace": 1, "minecraft:jukebox": 1, "minecraft:lectern": 1, "minecraft:sign": 1}"#]].assert_eq(&format!(
        "{} columns, {} chunks, {} detached, {} riders\n{:?}\n{} of {:?}",
        held.columns.len(),
        held.chunks,
        held.detached,
        held.riders,
        held.entities,
        held.owned_block_entities,
        held.block_entities,
    ));

    round::exported(&world, &out);
    expect![[r#"
        [
            "region/r.0.0.mca",
            "entities/r.0.0.mca",
            "DIM-1/region/r.-1.0.mca",
            "dimensions/twilight/forest/deep/region/r.0.0.mca",
        ]"#]]
    .assert_eq(&format!("{:#?}", region_names(&out)));
    let overworld = worlds::read(&out.join("region/r.0.0.mca"));
    let found = overworld.columns.iter().map(|(_, column)| column).collect::<Vec<_>>();
    round::check_columns("made", &columns.iter().collect::<Vec<_>>(), &found);
    let entities = |save: &Path| worlds::read(&save.join("entities/r.0.0.mca")).entities;
    assert_eq!(format!("{:?}", entities(&out)), format!("{:?}", entities(&save)));

    let (again, second) = imported(&out, &dir.path().join("again"));
    assert_eq!((second.imported_chunks, hash(&again)), (report.imported_chunks, hash(&world)));
}

fn run(save: &Path, dir: &Path, options: ImportOptions) -> Result<(World, ImportReport), ImportError> {
    let world = held::open(dir);
    let report = import(save, &world, &options, |_| {})?;
    Ok((world, report))
}

/// Stops an import after every possible number of transactions, and continues it.
#[track_caller]
fn check_stops(dir: &Path, save: &Path, least_stops: u64) {
    let (world, whole) = imported(save, &dir.join("whole"));
    let expected = hash(&world);
    let mut stops = 0;
    for after in 1.. {
        let at = dir.join(format!("stopped {after}"));
        drop(World::builder().options(&WorldOptions::process()).create(&at).expect("a new world"));
        let stop = ImportOptions { stop_after_transactions: Some(after), ..ImportOptions::default() };
        match run(save, &at, stop) {
            Ok(_) => break,
            Err(ImportError::Stopped(count)) => assert_eq!(count, after),
            Err(error) => panic!("{error}"),
        }
        stops += 1;
        // Not in another way than it was begun, and not from another save.
        let merge = ImportOptions { merge: Some(Merge::Keep), ..ImportOptions::default() };
        let error = run(save, &at, merge).expect_err("begun without --merge");
        expect!["the unfinished import was begun without a merge mode; continue it so, or abandon it"]
            .assert_eq(&error.to_string());
        let other = dir.join("other");
        fs::create_dir_all(other.join("region")).expect("a directory");
        let error = run(&other, &at, ImportOptions::default()).expect_err("another save");
        assert!(matches!(error, ImportError::OtherImport), "{error}");
        let (world, report) = run(save, &at, ImportOptions::default()).expect("it continues");
        assert_eq!(report, whole, "stopped after {after}");
        assert_eq!(hash(&world), expected, "stopped after {after}");
    }
    assert!(stops >= least_stops, "only {stops} stops");
}

#[test]
fn an_import_that_is_stopped_anywhere_continues() {
    let dir = tempfile::tempdir().expect("a directory");
    let save = dir.path().join("save");
    make(&save);
    check_stops(dir.path(), &save, 4);
}

#[test]
fn an_import_that_is_stopped_between_large_columns_continues() {
    let dir = tempfile::tempdir().expect("a directory");
    let save = dir.path().join("save");
    fs::create_dir(&save).expect("a directory");
    // Neighbours that are read together and are too much for one transaction.
    let columns = (0..3).map(|x| {
        let mut column = maker::column(x, 0, [section(0, &[([1, 2, 3], CHEST)])]);
        let mut chest = block_entity("minecraft:chest", [x * 16 + 1, 2, 3]);
        chest.nbt = swollen(&chest.nbt, 13 << 20);
        column.block_entities = vec![chest];
        maker::zlib((x, 0), &write::column(&column).expect("a column"))
    });
    maker::region(&save.join("r.0.0.mca"), &columns.collect::<Vec<_>>());
    check_stops(dir.path(), &save, 3);
}

/// A compound with so many bytes more.
fn swollen(nbt: &[u8], len_bytes: usize) -> Vec<u8> {
    nbt::payload(|out| {
        out.raw_fields(&nbt[..nbt.len() - 1]);
        out.byte_array("books", &vec![7; len_bytes]);
    })
}

#[test]
fn a_world_that_is_not_empty_needs_a_word() {
    let dir = tempfile::tempdir().expect("a directory");
    let save = dir.path().join("save");
    make(&save);
    let at = dir.path().join("world");
    let (world, report) = imported(&save, &at);
    let (before, held_before) = (hash(&world), held::count(&world));
    drop(world);
    let error = run(&save, &at, ImportOptions::default()).expect_err("not empty");
    assert!(matches!(error, ImportError::NotEmpty), "{error}");
    assert_eq!(hash(&held::open(&at)), before, "a refused import changes nothing");

    let merge = |merge| ImportOptions { merge: Some(merge), ..ImportOptions::default() };
    let (world, kept) = run(&save, &at, merge(Merge::Keep)).expect("merged");
    assert_eq!((kept.imported_chunks, kept.kept_chunks), (0, report.imported_chunks));
    assert_eq!((kept.entities, hash(&world)), (0, before.clone()));

    // A host digs into one chunk, deletes another and moves a bat.
    let overworld = world.catalog().dimension("minecraft:overworld").expect("registered");
    let dug = BlockPos::new(1, 2, 3);
    let gone = ChunkAt::new(overworld, ChunkPos::new(1, -128, 0).expect("inside"));
    let edit = world.transaction(|tx| {
        let stone = tx.catalog().block_id("minecraft:stone").expect("registered");
        tx.set_block(overworld, dug, stone)?;
        tx.delete(gone);
        Ok::<_, cg_store::Error>(())
    });
    edit.expect("committed");
    let edited = hash(&world);
    drop(world);
    let (world, kept) = run(&save, &at, merge(Merge::Keep)).expect("merged");
    assert_eq!((kept.imported_chunks, kept.kept_chunks), (1, report.imported_chunks - 1));
    assert_ne!(hash(&world), edited, "the deleted chunk is back");
    assert_eq!(held::state(&world, overworld, [1, 2, 3]).as_deref(), Some("minecraft:stone"));
    drop(world);

    let (world, replaced) = run(&save, &at, merge(Merge::Replace)).expect("merged");
    assert_eq!((replaced.imported_chunks, replaced.kept_chunks), (report.imported_chunks, 0));
    let held = held::count(&world);
    assert_eq!(held.figures(), held_before.figures());
    assert_eq!(hash(&world), before);
}

#[test]
fn entities_that_come_before_their_chunk_are_given_to_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let save = dir.path().join("save");
    fs::create_dir(&save).expect("a directory");
    // A bare folder: that the first file holds entities is only seen inside.
    let cow = maker::entity("minecraft:cow", [0, 0, 0, 1], [5.0, 70.0, 5.0], &[]);
    let bat = maker::entity("minecraft:bat", [0, 0, 0, 2], [5.0, 900.0, 5.0], &[]);
    let entities = EntityColumn {
        pos: ColumnPos::new(0, 0),
        data_version: maker::DATA_VERSION,
        stated: None,
        entities: vec![cow, bat],
        list: Some(nbt::Tag::End),
        left: None,
    };
    let slots = [maker::zlib((0, 0), &write::entities(&entities).expect("entities"))];
    maker::region(&save.join("entities.mca"), &slots);
    // One in a column, standing in the next, which comes later.
    let mut first = maker::column(0, 0, [patterned(4, 2)]);
    first.entities = vec![maker::entity("minecraft:pig", [0, 0, 0, 3], [16.5, 70.0, 5.0], &[])];
    let columns = [first, maker::column(1, 0, [patterned(4, 2)])];
    let slots =
        columns.map(|column| maker::zlib((column.pos.x, 0), &write::column(&column).expect("a column")));
    maker::region(&save.join("r.0.0.mca"), &slots);

    let (world, report) = imported(&save, &dir.path().join("world"));
    assert_eq!((report.entities, report.detached), (3, 1));
    let overworld = world.catalog().dimension("minecraft:overworld").expect("registered");
    let owner = |id: u128| {
        world.entity(EntityId::new(uuid::Uuid::from_u128(id))).expect("no damage").expect("stored").owner
    };
    let chunk = |x| Owner::Chunk(ChunkAt::new(overworld, ChunkPos::new(x, 4, 0).expect("inside")));
    assert_eq!((owner(1), owner(3)), (chunk(0), chunk(1)));
    assert!(matches!(owner(2), Owner::Detached(reason) if reason.as_str() == "no chunk here"));
}

#[test]
fn a_column_in_two_files_is_taken_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let save = dir.path().join("save");
    fs::create_dir_all(save.join("region")).expect("a directory");
    let slots =
        [maker::zlib((3, 0), &write::column(&maker::column(3, 0, [patterned(4, 2)])).expect("a column"))];
    maker::region(&save.join("region/r.0.0.mca"), &slots);
    let other =
        [maker::zlib((3, 0), &write::column(&maker::column(3, 0, [patterned(4, 9)])).expect("a column"))];
    maker::region(&save.join("region/r.5.5.mca"), &other);
    let (world, report) = imported(&save, &dir.path().join("world"));
    assert_eq!((report.imported_columns, report.imported_chunks), (1, 1));
    expect![[r#"[Unreadable { file: "region/r.5.5.mca", slot: Some(3), reason: "column (3, 0) lies in a file that is named r.5.5.mca: it was renamed" }]"#]].assert_eq(&format!("{:?}", report.unreadable));
    assert_eq!(held::count(&world).states.len(), 2);
}

/// A save in which two files hold the same columns: of column 3 other blocks, of column 4 other heights, and of column 5
/// nothing but what stands beside the blocks.
fn doubled(save: &Path) {
    fs::create_dir_all(save.join("region")).expect("a directory");
    let write = |name: &str, columns: [Column; 3]| {
        let slots =
            columns.map(|column| maker::zlib((column.pos.x, 0), &write::column(&column).expect("a column")));
        maker::region(&save.join("region").join(name), &slots);
    };
    let bare = |status: &str| {
        let carried = nbt::payload(|out| out.string("Status", status).expect("short"));
        Column { carried, ..maker::column(5, 0, []) }
    };
    let first = [
        maker::column(3, 0, [patterned(4, 2)]),
        maker::column(4, 0, [patterned(4, 2)]),
        bare("minecraft:full"),
    ];
    let second = [
        maker::column(3, 0, [patterned(4, 9)]),
        maker::column(4, 0, [patterned(9, 3)]),
        bare("minecraft:empty"),
    ];
    write("r.0.0.mca", first);
    write("r.5.5.mca", second);
}

#[test]
fn the_first_of_two_files_with_one_column_wins_however_it_is_merged() {
    let dir = tempfile::tempdir().expect("a directory");
    let save = dir.path().join("save");
    doubled(&save);
    let at = dir.path().join("world");
    let (world, report) = imported(&save, &at);
    let expected = hash(&world);
    drop(world);
    assert_eq!((report.imported_columns, report.imported_chunks), (3, 2));
    let lost = |report: &ImportReport| -> Vec<_> {
        report
            .unreadable
            .iter()
            .map(|lost| format!("{} {:?}: {}", lost.file, lost.slot, lost.reason))
            .collect()
    };
    expect![[r#"
        region/r.5.5.mca Some(3): column (3, 0) lies in a file that is named r.5.5.mca: it was renamed
        region/r.5.5.mca Some(4): column (4, 0) lies in a file that is named r.5.5.mca: it was renamed
        region/r.5.5.mca Some(5): column (5, 0) lies in a file that is named r.5.5.mca: it was renamed"#]]
    .assert_eq(&lost(&report).join("\n"));
    // What the world has is what the first file brings, so that file changes nothing in it; the second loses all the same.
    for merge in [Merge::Replace, Merge::Keep, Merge::Replace] {
        let options = ImportOptions { merge: Some(merge), ..ImportOptions::default() };
        let (world, merged) = run(&save, &at, options).expect("merged");
        assert_eq!(lost(&merged), lost(&report), "{merge:?}");
        assert_eq!(hash(&world), expected, "{merge:?}");
    }
    // Stopped after each transaction, it still knows what it met.
    for stop_after_transactions in 1..4 {
        let options = |stop| ImportOptions {
            merge: Some(Merge::Replace),
            stop_after_transactions: stop,
            ..ImportOptions::default()
        };
        let stopped = run(&save, &at, options(Some(stop_after_transactions)));
        assert!(matches!(stopped, Err(ImportError::Stopped(_))), "{stop_after_transactions}");
        let (world, merged) = run(&save, &at, options(None)).expect("merged");
        assert_eq!(lost(&merged), lost(&report), "stopped after {stop_after_transactions}");
        assert_eq!(hash(&world), expected);
    }
}

#[test]
fn an_entity_that_the_host_moved_stands_there_in_the_save() {
    let dir = tempfile::tempdir().expect("a directory");
    let save = dir.path().join("save");
    fs::create_dir_all(save.join("region")).expect("a directory");
    let rider = maker::entity("minecraft:zombie", [0, 0, 0, 2], [5.0, 71.0, 5.0], &[]);
    let mut column = maker::column(0, 0, [patterned(4, 2)]);
    column.entities = vec![
        maker::entity("minecraft:pig", [0, 0, 0, 1], [5.0, 70.0, 5.0], std::slice::from_ref(&rider)),
        maker::entity("minecraft:cow", [0, 0, 0, 3], [6.125, 70.0, 5.0], &[]),
    ];
    let slots = [column, maker::column(1, 0, [patterned(4, 2)])];
    let slots =
        slots.map(|column| maker::zlib((column.pos.x, 0), &write::column(&column).expect("a column")));
    maker::region(&save.join("region/r.0.0.mca"), &slots);
    let (world, _) = imported(&save, &dir.path().join("world"));
    let overworld = world.catalog().dimension("minecraft:overworld").expect("registered");
    let moved = [20.25, 66.5, 5.75];
    let pig = EntityId::new(uuid::Uuid::from_u128(1));
    let put = world.transaction(|tx| {
        let mut entity = tx.entity(pig)?.expect("was imported");
        entity.position = EntityPos::from_f64(overworld, moved).expect("a position");
        let home = ChunkAt::new(overworld, entity.position.block().chunk());
        tx.put_entity(pig, entity.owned_by(Owner::Chunk(home)));
        Ok::<_, cg_store::Error>(())
    });
    put.expect("committed");

    let out = dir.path().join("out");
    round::exported(&world, &out);
    let found = worlds::read(&out.join("region/r.0.0.mca")).columns;
    let entities: Vec<_> = found.iter().map(|(_, column)| (column.pos.x, column.entities.clone())).collect();
    let cow = maker::entity("minecraft:cow", [0, 0, 0, 3], [6.125, 70.0, 5.0], &[]);
    // Its rider goes with it, as it was; the game seats it.
    let pig_there = maker::entity("minecraft:pig", [0, 0, 0, 1], moved, &[rider]);
    assert_eq!(entities, [(0, vec![cow]), (1, vec![pig_there])]);

    let (again, _) = imported(&out, &dir.path().join("again"));
    assert_eq!(again.catalog().dimension("minecraft:overworld"), Some(overworld));
    let there = again.entity(pig).expect("no damage").expect("came back");
    assert_eq!(there.position, EntityPos::from_f64(overworld, moved).expect("a position"));
}

#[test]
fn what_is_over_the_worlds_limits_is_reported_and_costs_nothing_else() {
    let dir = tempfile::tempdir().expect("a directory");
    let save = dir.path().join("save");
    fs::create_dir(&save).expect("a directory");
    let mut column = maker::column(0, 0, [section(0, &[([1, 2, 3], CHEST)]), patterned(1, 3)]);
    let mut chest = block_entity("minecraft:chest", [1, 2, 3]);
    chest.nbt = swollen(&chest.nbt, 17 << 20);
    column.block_entities = vec![chest];
    let cart = maker::entity("minecraft:chest_minecart", [0, 0, 0, 1], [1.0, 20.0, 1.0], &[]);
    let pig = maker::entity("minecraft:pig", [0, 0, 0, 2], [1.0, 20.0, 1.0], &[]);
    column.entities = vec![swollen(&cart, 2 << 20), pig];
    let slots = [maker::zlib((0, 0), &write::column(&column).expect("a column"))];
    maker::region(&save.join("r.0.0.mca"), &slots);
    let (world, report) = imported(&save, &dir.path().join("world"));
    assert_eq!((report.imported_columns, report.imported_chunks, report.entities), (1, 1, 1));
    let reasons: Vec<_> = report.unreadable.iter().map(|lost| lost.reason.as_str()).collect();
    expect![[r#"
        section 0: it takes 17826700 bytes, more than the world's 16777216
        entity 00000000-0000-0000-0000-000000000001 (minecraft:chest_minecart) takes 2097789 bytes, more than the world's 1048576"#]].assert_eq(&reasons.join("\n"));
    assert_eq!(held::count(&world).entities.len(), 1);
}

#[test]
fn a_world_whose_making_was_cut_short_is_made_anew() {
    use cg_anvil::import::open_or_create;
    use cg_store::directory::{State, WorldFile};
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("world");
    fs::create_dir_all(at.join("db")).expect("a directory");
    WorldFile { state: State::Creating, ..WorldFile::new_world() }.write(&at).expect("written");
    let options = WorldOptions::process();
    assert!(World::builder().options(&options).open(&at).is_err(), "it was never finished");
    let uuid = open_or_create(&at, &options).expect("made anew").identity().uuid;
    assert_eq!(open_or_create(&at, &options).expect("opened").identity().uuid, uuid);
    fs::write(at.join("notes.txt"), "mine").expect("written");
    WorldFile { state: State::Creating, ..WorldFile::new_world() }.write(&at).expect("written");
    assert!(open_or_create(&at, &options).is_err());
    assert!(at.join("notes.txt").is_file());
}
