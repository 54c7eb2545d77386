//! Leftovers of a save that meet the content of a world.

use super::*;

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
fn what_is_kept_of_the_world_gets_nothing_of_the_saves() {
    let dir = tempfile::tempdir().expect("a folder");
    let [save, out] = ["save", "out"].map(|name| dir.path().join(name));
    make_with_times(&save);
    // A host's own chunk in column 0, and of column 1 a record that says that it was only begun.
    let world = in_memory();
    let overworld = world.registry().register_dimension("minecraft:overworld").expect("registered");
    let [stone] = world.registry().register_blocks(["minecraft:stone"]).expect("registered");
    let property =
        || Property::Named(cg_minecraft::name::column_property("minecraft:overworld", 1, 0).expect("short"));
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
    assert_eq!((report.imported_chunks, report.kept_chunks), (0, 4));
    assert_eq!(world.property(&property()).expect("no damage"), Some(begun));
    let mut keys = Vec::new();
    for entry in world.objects().list("minecraft/", None, 100).expect("no damage").entries {
        keys.extend(Some(entry.key.to_string()).filter(|key| !key.starts_with("minecraft/file/")));
    }
    expect![[r#"
        minecraft/entities/minecraft:overworld/r.0.0/2/0
        minecraft/layout/minecraft:overworld"#]]
    .assert_eq(&keys.join("\n"));
    exported(&world, &out);
    let left = names_left(&out, 0);
    assert!(!left.iter().any(|name| name == "structures" || name == "Heightmaps"), "{left:?}");
}

#[test]
fn a_bare_column_takes_the_place_of_all_of_a_column() {
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
    let report = taken(&second, &world, Some(Merge::Replace));
    assert_eq!((report.imported_columns, report.removed_chunks), (1, 2));
    assert_eq!(exported(&world, &out).changed_columns, 0);
    let region = |save: &Path| crate::leftovers::slots(&save.join("region/r.0.0.mca"));
    let [first, second, out_slots] = [&first, &second, &out].map(|save| region(save));
    assert_eq!((&out_slots[&0], &out_slots[&1]), (&second[&0], &first[&1]));
    let points = crate::leftovers::slots(&out.join("poi/r.0.0.mca"));
    assert_eq!(points.into_keys().collect::<Vec<_>>(), [1], "those of the column that went belong to it");
}

#[test]
fn of_points_of_interest_met_twice_the_first_are_taken_and_the_others_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let [save, out, bare] = ["save", "out", "bare"].map(|name| dir.path().join(name));
    make_with_times(&save);
    // In a folder of region files, neither has the name of the other.
    let other = nbt::document(|root| root.compound("Sections", |out| out.int("other", 1)));
    fs::create_dir(&bare).expect("a folder");
    fs::copy(save.join("poi/r.0.0.mca"), bare.join("-r.0.0.mca")).expect("copied");
    maker::region(&bare.join("_r.0.0.mca"), &[maker::zlib((1, 0), &other)]);
    let report = taken(&bare, &in_memory(), None);
    let lost: Vec<_> =
        report.unreadable.iter().map(|lost| format!("{}: {}", lost.file, lost.reason)).collect();
    expect!["_r.0.0.mca: points of interest of column (1, 0) were met before in this save"]
        .assert_eq(&lost.join("\n"));
    // Two slots of one column's entities, in such a folder too.
    let listed = dir.path().join("listed");
    fs::create_dir(&listed).expect("a folder");
    fs::copy(save.join("entities/r.0.0.mca"), listed.join("-r.0.0.mca")).expect("copied");
    maker::region(&listed.join("_r.0.0.mca"), &[maker::zlib((1, 0), &entity_slot(1, vec![]))]);
    let report = taken(&listed, &in_memory(), None);
    let lost: Vec<_> =
        report.unreadable.iter().map(|lost| (lost.file.as_str(), lost.reason.as_str())).collect();
    assert_eq!(lost, [("_r.0.0.mca", "fields of a second slot of entities/ for column (1, 0)")]);
    // In a save, a slot that says another place than its file is kept where it was met.
    let renamed = "entities/r.1.0.mca";
    maker::region(&save.join(renamed), &[maker::zlib((1, 0), &entity_slot(1, vec![]))]);
    let world = in_memory();
    let report = taken(&save, &world, None);
    assert_eq!((report.kept_slots, report.not_carried.len()), (1, 0));
    exported(&world, &out);
    check_fields("points", &save.join("poi/r.0.0.mca"), &out.join("poi/r.0.0.mca"));
    assert_eq!(fs::read(out.join(renamed)).ok(), fs::read(save.join(renamed)).ok());
    assert_eq!(times(&out.join("entities/r.0.0.mca"))[1], (1, 1_700_000_001));
}
