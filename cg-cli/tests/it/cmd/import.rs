//! `cg import` and `cg export`: what they print and exit with, and an import that is killed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cg_anvil::export::{ExportOptions, export};
use cg_format::record::Record;
use cg_store::objects::ObjectKey;
use cg_store::prelude::*;
use expect_test::expect;
use serde_json::json;

use super::run;
use crate::{held, saves, worlds};

fn args<'a>(first: &'a str, paths: &[&'a Path], rest: &[&'a str]) -> Vec<&'a str> {
    let paths = paths.iter().map(|path| path.to_str().expect("a path of letters"));
    [first].into_iter().chain(paths).chain(rest.iter().copied()).collect()
}

#[test]
fn a_save_goes_in_and_comes_out() {
    let dir = tempfile::tempdir().expect("a directory");
    let [save, world, out] = ["save", "world", "out"].map(|name| dir.path().join(name));
    saves::make(&save);
    let said = run(&args("import", &[&save, &world], &[]));
    expect![[r#"
        entities/r.0.0.mca slot 0: entity 00000000-0000-0000-0000-000000000004 was met before, now b39ac9f0-6cec-83fb-be67-525673ebde77
        entities/r.0.0.mca slot 0: entity 00000000-0000-0000-0000-000000000004 was met before, now 6118dab7-adac-81ba-90a6-f692f74f7496
        entities/r.0.0.mca slot 0: an entity without UUID, now b658c8cd-38f1-80d2-a4aa-f23df3ee8610
        imported: columns 9, chunks 9, entities 11 (detached: 1)
        layout: minecraft:overworld old, minecraft:the_nether old, twilight:forest/deep dimensions
        everything could be read
    "#]].assert_eq(&said.good());
    let said = run(&args("import", &[&save, &world], &[]));
    assert_eq!(said.code, 2);
    expect![[r#"
        cg: the world is not empty; choose the merge mode `replace` or `keep`, or import into a new world (`--merge replace` or `--merge keep`)
    "#]]
    .assert_eq(&said.err);
    let report = run(&args("import", &[&save, &world], &["--merge", "keep", "--json"])).json();
    assert_eq!(report["imported_chunks"], 0);
    assert_eq!(report["kept_chunks"], 9);
    assert_eq!(report["unreadable"], json!([]));

    let said =
        run(&args("export", &[&world], &["--json", "--mca", out.to_str().expect("a path of letters")]));
    assert_eq!(said.code, 0, "{}", said.err);
    expect![[r#"
        {"files":4,"columns":9,"chunks":9,"entities":11,"other_files":0,"players":0,"changed_players":0,"deleted_players":0,"changed_columns":0,"old_slots":0,"left_old_slots":0,"kept_slots":0,"kept_slot_bytes":0,"layout":{"minecraft:overworld":"old","minecraft:the_nether":"old","twilight:forest/deep":"dimensions"},"warnings":[],"not_exported":{}}
    "#]]
    .assert_eq(&said.out);
    assert!(out.join("region/r.0.0.mca").is_file() && out.join("DIM-1/region/r.-1.0.mca").is_file());
    let said = run(&args("export", &[&world], &["--mca", out.to_str().expect("a path of letters")]));
    assert_eq!(said.code, 2, "{}", said.err);
    let only = dir.path().join("only");
    let only = only.to_str().expect("a path of letters");
    let said = run(&args("export", &[&world], &["--mca", only, "--dimension", "minecraft:the_nether"]));
    expect![[r#"
        exported: files 1, columns 1, chunks 1, entities 0
        layout: minecraft:the_nether old
    "#]]
    .assert_eq(&said.good());
    let said = run(&args("export", &[&world], &["--mca", only, "--dimension", "minecraft:moon"]));
    assert_eq!(said.code, 2, "{}", said.err);
}

#[test]
fn what_a_report_has_no_room_for_is_counted() {
    let dir = tempfile::tempdir().expect("a directory");
    let [save, world] = ["save", "world"].map(|name| dir.path().join(name));
    saves::hopeless(&save);
    let said = run(&args("import", &[&save, &world], &["--json"]));
    assert_eq!(said.code, 1, "{}", said.err);
    let report: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(
        report["unlisted"],
        json!({"unreadable": 5251, "rekeyed": 475, "not_carried": 0, "regions_as_files": 0, "players_as_files": 0, "too_large": 0})
    );
    let said = run(&args("import", &[&save, &world], &["--merge", "replace"]));
    assert_eq!(said.code, 1, "{}", said.err);
    let counts: Vec<_> =
        said.out.lines().filter(|line| line.starts_with("… ") || line.starts_with("could not")).collect();
    expect![[r#"
        … and 475 more entities with another UUID, which are not listed
        could not be read: 7,301"#]]
    .assert_eq(&counts.join("\n"));
}

#[test]
fn what_no_save_holds_is_counted_by_kind() {
    let dir = tempfile::tempdir().expect("a directory");
    let [save, world, out, only] = ["save", "world", "out", "only"].map(|name| dir.path().join(name));
    saves::make(&save);
    run(&args("import", &[&save, &world], &[])).good();
    let store = held::open(&world);
    let nether = store.catalog().dimension("minecraft:the_nether").expect("imported");
    store
        .transaction(|tx| {
            for (id, dimension) in [(1, Dimension::new(0)), (2, Dimension::new(0)), (3, nether)] {
                let position = EntityPos::new(dimension, BlockPos::new(0, 0, 0), [0.0; 3])?;
                let record = Record::new(position, "sign", 0, b"here".to_vec())?;
                tx.put_record(RecordId::new(uuid::Uuid::from_u128(id)), record);
            }
            for key in ["bank/anna", "bank/bert", "zone"] {
                tx.put_object(ObjectKey::new(key)?, key.as_bytes().to_vec())?;
            }
            tx.set_property(Property::Named(Name::new("economy:rate")?), Some(b"3".to_vec()));
            Ok::<_, Box<dyn std::error::Error>>(())
        })
        .expect("the disk takes it");
    store.close().expect("the disk takes it");
    drop(store);
    let arena = ["arena", "--box", "0", "0", "0", "15", "15", "15"];
    let create = ["snapshot", "create", world.to_str().expect("letters")];
    run(&[&create[..], &arena[..]].concat()).good();

    let said = run(&args("export", &[&world], &["--json", "--mca", out.to_str().expect("letters")]));
    let lost = json!({ "objects of the host": 3, "properties": 1, "records": 3, "snapshots": 1 });
    assert_eq!((said.code, &said.json()["not_exported"]), (1, &lost));
    // Of one dimension, what belongs to no dimension is not asked for.
    let options = ["--mca", only.to_str().expect("letters"), "-d", "minecraft:the_nether"];
    let said = run(&args("export", &[&world], &options));
    expect![[r#"
        not exported: records (1)
        exported: files 1, columns 1, chunks 1, entities 0
        layout: minecraft:the_nether old
    "#]]
    .assert_eq(&said.out);
    assert_eq!(said.code, 1);
}

#[cfg(unix)]
#[test]
fn files_that_are_left_out_are_named_and_counted() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let dir = tempfile::tempdir().expect("a directory");
    let [save, world] = ["save", "world"].map(|name| dir.path().join(name));
    saves::make(&save);
    std::fs::write(save.join("level.dat"), "level").expect("written");
    std::fs::File::create(save.join("huge.bin")).and_then(|file| file.set_len(64 << 20)).expect("written");
    std::fs::write(save.join(OsStr::from_bytes(b"caf\xe9.txt")), "x").expect("written");
    std::os::unix::fs::symlink("/etc/hostname", save.join("link.txt")).expect("a link");
    let said = run(&args("import", &[&save, &world], &[]));
    assert_eq!(said.code, 1, "{}", said.out);
    let lines: Vec<_> = said.out.lines().filter(|line| !line.starts_with("entities/")).collect();
    expect![[r#"
        caf�.txt: left out: its name is not UTF-8
        link.txt: left out: it is a link, and links are not followed
        imported: columns 9, chunks 9, entities 11 (detached: 1)
        imported: files that are no regions 1
        layout: minecraft:overworld old, minecraft:the_nether old, twilight:forest/deep dimensions
        left out, because it is too large: huge.bin, 67,108,864 bytes
        could not be read: 2"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn what_is_no_save_makes_no_world() {
    let dir = tempfile::tempdir().expect("a directory");
    let (save, world) = (dir.path().join("save"), dir.path().join("world"));
    std::fs::create_dir(&save).expect("a directory");
    let said = run(&args("import", &[&save, &world], &[]));
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(!world.exists());
    // A directory with something else in it is left alone.
    std::fs::create_dir(&world).expect("a directory");
    std::fs::write(world.join("precious.txt"), "mine").expect("written");
    saves::make(&save);
    let said = run(&args("import", &[&save, &world], &[]));
    assert_eq!(said.code, 4, "{}", said.err);
    assert_eq!(std::fs::read_dir(&world).expect("readable").count(), 1);
}

#[test]
fn a_schematic_is_sent_to_its_own_command() {
    let dir = tempfile::tempdir().expect("a directory");
    let (file, world) = (dir.path().join("house.schem"), dir.path().join("world"));
    std::fs::write(&file, "not read").expect("written");
    let said = run(&args("import", &[&file, &world], &[]));
    let wanted = format!(
        "cg: {} is a schematic and no save; it is imported as a schematic: `cg schem import FILE WORLD --at X Y Z`\n",
        file.display()
    );
    assert_eq!((said.code, said.err), (2, wanted));
    assert!(!world.exists());
}

#[test]
fn losses_are_listed_and_end_with_1() {
    let Some(folder) = worlds::folder() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let damaged = folder.join("corrupt/natural_twoolie_regiontest.mca");
    let said = run(&args("import", &[&damaged, &dir.path().join("damaged")], &["--json"]));
    assert_eq!(said.code, 1);
    let report = said.json();
    assert_eq!(report["unreadable"].as_array().map(Vec::len), Some(12));
    expect![[
        r#"{"file":"natural_twoolie_regiontest.mca","reason":"compression 0 does not exist","slot":2}"#
    ]]
    .assert_eq(&report["unreadable"][0].to_string());
    assert_eq!((&report["imported_columns"], &report["old_slots"]), (&json!(0), &json!(9)));
}

#[test]
fn columns_that_are_too_old_are_kept_and_no_loss() {
    let Some(folder) = worlds::folder() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let old = folder.join("mca_old/1.12.2_prismarine_r.0.-1.mca");
    let said = run(&args("import", &[&old, &dir.path().join("old")], &[]));
    expect![[r#"
        imported: columns 0, chunks 0, entities 0 (detached: 0)
        kept as bytes: columns of before 1.13 105; a game or server that upgrades them (--forceUpgrade) gives them blocks
        everything could be read
    "#]].assert_eq(&said.good());
}

#[test]
fn an_import_that_is_killed_continues() {
    let Some(folder) = worlds::folder() else { return };
    let save = folder.join("mca/1.20.6_prismarine_r.0.0.mca");
    let dir = tempfile::tempdir().expect("a directory");
    let whole = dir.path().join("whole");
    assert_eq!(run(&args("import", &[&save, &whole], &[])).code, 0);
    let hash = |world: &Path| run(&args("hash", &[world], &[])).good();
    let world = dir.path().join("killed");
    let mut kills = 0;
    // Each run is given a little longer than the one before, so that one of them ends.
    for tries in 0.. {
        let mut child = Command::new(env!("CARGO_BIN_EXE_cg"))
            .args(args("import", &[&save, &world], &[]))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("cg starts");
        let end = Instant::now() + Duration::from_millis(40 + 110 * tries);
        let ended = loop {
            match child.try_wait().expect("a child") {
                Some(status) => break Some(status),
                None if Instant::now() > end => break None,
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        if let Some(status) = ended {
            // One that was killed between its last transaction and its end has left a world that is not empty; that
            // nothing is missing in it is seen below.
            let was_done = kills > 0 && status.code() == Some(2);
            assert!(was_done || status.code() == Some(0), "{status}");
            break;
        }
        child.kill().expect("killed");
        child.wait().expect("reaped");
        kills += 1;
    }
    assert!(kills > 0, "the import was faster than 40 ms");
    assert_eq!(hash(&world), hash(&whole));
    assert_eq!(held::count(&held::open(&world)).columns.len(), 225);
}

#[test]
fn a_path_of_a_save_commands_no_terminal() {
    let dir = tempfile::tempdir().expect("a directory");
    let [save, world] = ["save", "world"].map(|name| dir.path().join(name));
    let region = save.join("mods/\x1b[2J\ncg: all is well/region");
    std::fs::create_dir_all(save.join("region")).expect("a directory");
    std::fs::create_dir_all(&region).expect("a directory");
    std::fs::write(region.join("r.0.0.mca"), "").expect("written");
    let said = run(&args("import", &[&save, &world], &[]));
    let named = "\n  mods/\\u{1b}[2J\\ncg: all is well/region/r.0.0.mca\n";
    assert!(said.out.contains(named), "{:?}", said.out);
}

#[test]
fn an_unfinished_export_is_not_imported() {
    let dir = tempfile::tempdir().expect("a directory");
    let [out, path] = ["out", "world"].map(|name| dir.path().join(name));
    let world = World::builder().in_memory().expect("memory");
    let overworld = world.registry().register_dimension("minecraft:overworld").expect("new");
    let [stone] = world.registry().register_blocks(["minecraft:stone"]).expect("new");
    let saved = world.transaction(|tx| {
        let chunk = Chunk::filled(stone, &tx.catalog().current_schema())?;
        for x in [-1, 0] {
            tx.save(ChunkAt::new(overworld, ChunkPos::new(x, 4, 0)?), chunk.clone());
        }
        Ok::<_, Box<dyn std::error::Error>>(())
    });
    saved.expect("it is sound");
    let stopped = catch_unwind(AssertUnwindSafe(|| {
        export(&world, &out, &ExportOptions::default(), |now| assert!(now.regions_done < 1, "stopped"))
    }));
    stopped.expect_err("it was stopped");
    let said = run(&args("import", &[&out, &path], &[]));
    let refused = format!(
        "cg: {} holds an unfinished export: run that again to its end, or delete cg-export.unfinished to import what is there\n",
        out.display()
    );
    assert_eq!((said.code, said.err), (1, refused));
    assert!(!path.exists());
}
