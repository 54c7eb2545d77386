//! Imports that are stopped, and content that is too large, damaged or strange: what each costs.

use super::*;

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
    let parts = World::builder().in_memory().expect("a world in memory");
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
    // At least after the columns, after their points, and after each of the large files.
    assert!(stops >= 5, "only {stops} stops");
    assert_eq!(parts.content_hash(cg_store::view::Area::World).expect("no damage").to_string(), hash(&world));
}

#[test]
fn what_is_over_the_limits_is_named_with_its_size() {
    let save = tempfile::tempdir().expect("a folder");
    make(save.path());
    fs::write(save.path().join("data/huge.dat"), vec![7; 300_000]).expect("written");
    fs::write(save.path().join("data/n".to_owned() + &"o".repeat(200)), "short").expect("written");
    let mut heavy = column(162);
    heavy.left = Some(nbt::payload(|out| out.byte_array("mod:heavy", &vec![1; 300_000])));
    let slots = [maker::zlib((162, 0), &write::column(&heavy).expect("a column"))];
    maker::region(&save.path().join("region/r.5.0.mca"), &slots);
    let limits = StoreLimits { object_bytes: 200_000, ..StoreLimits::default() };
    let options = WorldOptions { limits, ..WorldOptions::default() };
    let world: World = World::builder().options(&options).in_memory().expect("a world in memory");
    let report = import(save.path(), &world, &ImportOptions::default(), |_| {}).expect("an import");
    assert_eq!((report.imported_columns, report.imported_files), (3, 6));
    assert!(!report.is_whole());
    let lost = report.too_large.iter().map(|lost| format!("{}: {} bytes", lost.file, lost.bytes));
    let unread = report.unreadable.iter().map(|lost| format!("{}: {}", lost.file, lost.reason));
    let named: Vec<_> = lost.chain(unread).collect();
    expect![[r#"
        data/huge.dat: 300000 bytes
        region/r.5.0.mca: what is left of columns: minecraft/column/minecraft:overworld/r.5.0/162/0 takes 300173 bytes, more than 195904"#]].assert_eq(&named.join("\n"));
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
    // One beside the folders of dimensions is no region.
    assert_eq!(report.other_files, 6);
    expect![[r#"
        {
            "files that no save can hold at the path that they have": 8,
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

/// Writes a row that says nothing over an object.
fn damage(world: &World, key: &str) {
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
    let slot = write::column(&column(9)).expect("a column");
    let hidden = cg_anvil::mapping::Points { timestamp: 1, slot, is_alone: false };
    world.objects().put(key("poi", 0), hidden.encode()).expect("stored");
    world.objects().put(key("poi", 1), b"nonsense".to_vec()).expect("stored");
    world.objects().put(key("column", 1), b"nonsense".to_vec()).expect("stored");
    world.objects().put(key("entities", 1), b"nonsense".to_vec()).expect("stored");
    let out = dir.path().join("strange");
    let report = exported(&world, &out);
    expect![[r#"
        {
            "objects of columns that are none": 1,
            "objects of points of interest that are none": 2,
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
fn a_world_inside_of_the_save_is_no_part_of_it() {
    let save = tempfile::tempdir().expect("a folder");
    make(save.path());
    let (world, report) = imported(save.path(), &save.path().join("worlds/mine"));
    assert_eq!((report.imported_files, report.is_whole()), (5, true));
    assert!(report.not_carried.iter().eq(["folder worlds/mine: it is this world"]), "{report:?}");
    let inside = world.objects().list("minecraft/file/worlds", None, 1).expect("no damage").entries;
    assert_eq!(inside, []);
    // Another world that is there is left out.
    let (_, report) = imported(save.path(), &save.path().join("worlds/other"));
    assert_eq!((report.imported_files, report.is_whole()), (5, false));
    let lost: Vec<_> =
        report.unreadable.iter().map(|lost| (lost.file.as_str(), lost.reason.as_str())).collect();
    assert_eq!(lost, [("worlds/mine", "left out: it is a world of CherryGrove")]);
}
