//! Export of leftovers: what comes back from a world, and what the blocks decide.

use super::*;
use cg_anvil::ColumnPos;

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
        minecraft/file/playerdata/Steve.dat
        minecraft/file/stats/00000000-0000-0000-0000-000000000001.json
        minecraft/layout/minecraft:overworld
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
    let overworld = world.catalog().dimension("minecraft:overworld").expect("registered");
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
    let overworld = world.catalog().dimension("minecraft:overworld").expect("registered");
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
        region.read(ColumnPos::new(x, 0).slot(), &ReadLimits::default(), &mut bytes).expect("readable");
        bytes
    };
    for x in 0..3 {
        assert!(slot(&out, x) == slot(&save, x), "slot {x}");
    }

    // The light of a column, a block of the other, and a pig: what a slot holds now was not written then.
    let overworld = world.catalog().dimension("minecraft:overworld").expect("registered");
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
    assert_eq!((report.imported_chunks, report.unreadable.len(), report.kept_slots), (1, 1, 1));
    // Until the column is changed its slot goes back as it was.
    let whole = dir.path().join("whole");
    assert_eq!(exported(&world, &whole).kept_slots, 1);
    let region = |save: &Path| crate::leftovers::slots(&save.join("region/r.0.0.mca"));
    assert_eq!(region(&whole), region(&save));
    let overworld = world.catalog().dimension("minecraft:overworld").expect("registered");
    let at = BlockPos::new(0, 16 * i64::from(torn.sections[0].y), 0);
    let committed = world.transaction(|tx| {
        let other = tx.catalog().block_id("test:block[n=2]").expect("registered");
        tx.set_block(overworld, at, other)
    });
    committed.expect("committed");
    let report = exported(&world, &out);
    assert_eq!((report.changed_columns, report.kept_slots, report.dropped_slot_count), (1, 0, 1));
    let left = names_left(&out, 0);
    assert!(left.iter().any(|name| name == "structures"), "{left:?}");
    assert!(!left.iter().any(|name| name == "Heightmaps"), "{left:?}");
    // The points of interest of the other column came without blocks.
    let points = cg_anvil::Region::open(&out.join("poi/r.0.0.mca")).expect("a region");
    assert_eq!(points.slots().map(cg_anvil::Slot::index).collect::<Vec<_>>(), [1]);
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
