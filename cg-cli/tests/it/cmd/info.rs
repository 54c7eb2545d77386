//! `cg info`

use std::fs;

use cg_anvil::ColumnPos;
use cg_anvil::{nbt, write};
use cg_store::objects::ObjectKey;
use cg_store::prelude::*;
use expect_test::expect;
use serde_json::json;

use super::{Sample, run, text};
use crate::maker;

#[test]
fn a_script_reads_every_count() {
    let sample = Sample::new();
    let said = sample.cg("info", &["--json"]);
    let mut found = said.json();
    assert_eq!(said.code, 0, "{said:?}");
    let disk_bytes = found["disk_bytes"].take().as_u64().expect("a number");
    let on_disk: u64 = sample.files().iter().map(|(_, bytes)| bytes.len() as u64).sum();
    assert!(disk_bytes > 0 && disk_bytes <= on_disk, "{disk_bytes} of {on_disk}");
    let l0_bytes = found["tiers"]["l0"]["bytes"].take().as_u64().expect("a number");
    assert!(l0_bytes > 3 * (32 + 24), "{l0_bytes} cannot hold three rows");
    for id in ["uuid", "incarnation"] {
        assert_eq!(found[id].take().as_str().map(str::len), Some(36));
    }
    let none = json!({ "objects": 0, "bytes": 0 });
    let cold = json!({ "keys": 0, "chunks": 0, "bytes": 0 });
    let expected = json!({
        "name": null,
        "uuid": null,
        "incarnation": null,
        "chunks": 3,
        "dimensions": { "game:overworld": { "chunks": 2, "layout": "dimensions" }, "game:moon": { "chunks": 1, "layout": "dimensions" } },
        "registry": {
            "blocks": 6, "components": 1, "entities": 1, "structures": 0, "dimensions": 2, "sides": 3
        },
        "entities": 2,
        "detached": 1,
        "objects": 0,
        "records": 0,
        "imported": {
            "columns": none, "points_of_interest": none, "entity_slots": none, "kept_slots": none, "files": none
        },
        "data_versions": [],
        "snapshots": { "count": 0, "bytes": 0, "unreadable": 0 },
        "quarantined": { "count": 0, "bytes": 0 },
        "tiers": { "l0": { "keys": 3, "chunks": 3, "bytes": null }, "l1": cold, "l2": cold },
        "disk_bytes": null,
        "damaged": 0,
    });
    assert_eq!(found, expected);
}

#[test]
fn a_person_reads_a_table() {
    let out = Sample::new().cg("info", &[]).good();
    let steady: String = out
        .lines()
        .filter(|line| !line.starts_with("world ") && !line.starts_with("on disk "))
        .map(|line| format!("{line}\n"))
        .collect();
    expect![[r#"
        chunks    3
        entities  2 (1 detached)
        objects   0
        records   0

        dimension             chunks        layout
        game:moon                  1    dimensions
        game:overworld             2    dimensions

        tier                  chunks          keys         bytes
        l0                         3             3         443 B
        l1                         0             0           0 B
        l2                         0             0           0 B

        registry               names
        blocks                     6
        components                 1
        entities                   1
        structures                 0
        dimensions                 2
        sides                      3
    "#]]
    .assert_eq(&steady);
}

#[test]
fn a_deleted_chunk_is_a_key_and_no_chunk() {
    let sample = Sample::new();
    let world = sample.open();
    world
        .transaction(|tx| {
            tx.delete(cg_format::ChunkAt::new(
                cg_format::Dimension::new(1),
                cg_format::ChunkPos::constant(-7, 0, 2),
            ));
            Ok::<_, cg_store::Error>(())
        })
        .expect("the chunk is there");
    // The lock is held as long as the handle is.
    world.close().expect("the disk takes it");
    drop(world);
    let found = sample.cg("info", &["--json"]).json();
    assert_eq!((&found["tiers"]["l0"]["keys"], &found["tiers"]["l0"]["chunks"]), (&json!(3), &json!(2)));
    assert_eq!(found["dimensions"]["game:moon"]["chunks"], 0);
}

#[test]
fn an_imported_world_says_its_name_and_versions_and_what_is_kept() {
    let dir = tempfile::tempdir().expect("a directory");
    let [save, world] = ["save", "world"].map(|name| dir.path().join(name));
    fs::create_dir_all(save.join("region")).expect("creates");
    let level = nbt::document(|root| {
        root.compound("Data", |data| {
            data.int("DataVersion", 3955);
            data.string("LevelName", "My \u{1b}[31mworld").expect("short");
        });
    });
    let level = maker::gzip(&level);
    fs::write(save.join("level.dat"), &level).expect("writes");
    let column = |x, data_version| {
        let mut column = maker::column(x, 0, [maker::patterned(0, 3)]);
        column.data_version = data_version;
        maker::zlib((x, 0), &write::column(&column).expect("a column of the game's form"))
    };
    let old = nbt::document(|root| {
        root.int("DataVersion", 1343);
        root.compound("Level", |level| {
            level.int("xPos", 5);
            level.int("zPos", 0);
        });
    });
    let slots = [column(0, 3955), column(1, 2586), column(2, 3955), maker::zlib((5, 0), &old)];
    maker::region(&save.join("region/r.0.0.mca"), &slots);
    run(&["import", text(&save), text(&world)]);
    let area = ["--box", "0", "0", "0", "15", "15", "15"];
    run(&[&["snapshot", "create", text(&world), "a"], &area[..]].concat()).good();

    let said = run(&["info", text(&world), "--json"]).json();
    assert_eq!(said["name"], "My \u{1b}[31mworld");
    let expected = json!([
        { "data_version": 3955, "columns": 2 },
        { "data_version": 2586, "columns": 1 },
        { "data_version": 1343, "columns": 1 },
    ]);
    assert_eq!(said["data_versions"], expected);
    let imported = &said["imported"];
    assert_eq!((&imported["columns"]["objects"], &imported["kept_slots"]["objects"]), (&json!(3), &json!(1)));
    assert_eq!(imported["files"], json!({ "objects": 1, "bytes": level.len() }));
    assert_eq!(said["snapshots"]["count"], 1);
    let text = run(&["info", text(&world)]).good();
    let lines: Vec<_> =
        text.lines().filter(|line| line.starts_with("name ") || line.starts_with("versions ")).collect();
    let expected = [
        "name      My \\u{1b}[31mworld",
        "versions  3955 (2 columns), 2586 (1 column), 1343 (1 column)",
        "name = My \\u{1b}[31mworld",
    ];
    assert_eq!(lines, expected);
    for begin in ["imported  columns 3 (", "snapshots 1 ("] {
        assert!(text.lines().any(|line| line.starts_with(begin)), "{text}");
    }
}

#[test]
fn of_many_versions_the_most_frequent_are_listed() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("world");
    let world = World::builder().create(&path).expect("the directory is empty");
    for version in 0..100 {
        let object = cg_anvil::mapping::Leftovers::take(
            &mut cg_anvil::column::Column::new(ColumnPos::new(0, 0), version),
            0,
        );
        let key = format!("minecraft/column/minecraft:overworld/r.0.0/{}/{}", version % 32, version / 32);
        world.objects().put(ObjectKey::new(key).expect("short"), object.encode()).expect("the disk takes it");
    }
    world.close().expect("the disk takes it");
    drop(world);
    let said = run(&["info", text(&path), "--json"]).json();
    assert_eq!(said["data_versions"].as_array().map(Vec::len), Some(32));
    assert_eq!(said["more_data_versions"], json!({ "count": 68, "columns": 68 }));
    assert!(run(&["info", text(&path)]).good().contains("68 others (68 columns)\n"));
}
