//! `cg info` and `cg registry check` of whole segmented worlds.

use cg_layers::{SegmentOptions, SegmentedWorld};
use cg_store::prelude::*;
use expect_test::expect;
use serde_json::json;
use tempfile::TempDir;

use super::segments::sample;
use super::{run, text};

/// What is the same in every run.
fn steady(out: &str) -> String {
    let lines = out.lines().filter(|line| !line.starts_with("world ") && !line.starts_with("on disk "));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Puts an object, a record and an entity into the middle one of three segments, and an object into the root.
fn furnish(path: &std::path::Path) {
    let world = SegmentedWorld::open(path, &[], &SegmentOptions::default()).expect("opens");
    let names =
        Registration { entities: vec![Name::new("game:cow").expect("a name")], ..Registration::default() };
    world.register(&names).expect("registers");
    let at = ChunkAt::new(Dimension::new(0), ChunkPos::constant(0, 0, 0));
    let position = EntityPos::new(at.dimension, at.pos.min_block(), [0.5; 3]).expect("a place");
    let put = world.transaction(at, |tx| {
        tx.put_entity(
            EntityId::from_bytes([7; 16]),
            Entity::new(EntityTypeId::new(0), Owner::Chunk(at), position),
        );
        tx.put_object("plots/0", [1, 2, 3])
    });
    put.expect("puts");
    world.root().objects().put("prices", [1]).expect("puts");
    world.close().expect("closes");
}

#[test]
fn the_overview_sums_up_the_root_and_all_segments() {
    let dir = sample();
    let path = dir.path().join("world");
    furnish(&path);
    let before = run(&["hash", text(&path)]).good();
    expect![[r#"
        segments  3
        chunks    3
        entities  1 (0 detached)
        objects   2
        records   0

        dimension             chunks      segments        layout
        game:overworld             3             3    dimensions

        tier                  chunks          keys         bytes
        l0                         3             3         352 B
        l1                         0             0           0 B
        l2                         0             0           0 B

        registry               names
        blocks                     1
        components                 0
        entities                   1
        structures                 0
        dimensions                 1
        sides                      2
    "#]]
    .assert_eq(&steady(&run(&["info", text(&path)]).good()));

    // Each number is the sum of those of the worlds.
    let whole = run(&["info", text(&path), "--json"]).json();
    let mut parts = vec![path.join("root")];
    for name in ["0.-1.0.0", "0.0.0.0", "0.3.0.0"] {
        parts.push(path.join("segments").join(name));
    }
    let parts: Vec<_> = parts.iter().map(|part| run(&["info", text(part), "--json"]).json()).collect();
    for pointer in [
        "/chunks",
        "/entities",
        "/objects",
        "/tiers/l0/keys",
        "/tiers/l0/bytes",
        "/disk_bytes",
        "/dimensions/game:overworld/chunks",
    ] {
        let of = |report: &serde_json::Value| report.pointer(pointer).and_then(serde_json::Value::as_u64);
        let sum: u64 = parts.iter().map(|part| of(part).expect("a number")).sum();
        assert_eq!(of(&whole), Some(sum), "{pointer}");
    }
    assert_eq!((&whole["segments"], &whole["left_out"]), (&json!(3), &json!(null)));
    assert_eq!(whole["dimensions"]["game:overworld"]["segments"], 3);
    assert_eq!((&whole["uuid"], &whole["registry"]), (&parts[0]["uuid"], &parts[0]["registry"]));
    assert_eq!(
        (&parts[0]["segments"], &parts[0]["dimensions"]["game:overworld"]["segments"]),
        (&json!(null), &json!(null))
    );
    assert_eq!(run(&["hash", text(&path)]).good(), before);

    // One that cannot be read is named, and the others are counted.
    std::fs::remove_dir_all(path.join("segments/0.3.0.0")).expect("removes");
    let said = run(&["info", text(&path)]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    let lost = path.join("segments/0.3.0.0");
    let why = format!(
        "segment 3 0 0 of dimension 0 is gone: the root knows it and {} is missing; restore it, or delete the segment",
        text(&lost)
    );
    assert!(said.out.contains(&format!("LEFT OUT  segments/0.3.0.0: {why}\n")), "{}", said.out);
    let left = run(&["info", text(&path), "--json"]).json();
    assert_eq!(left["left_out"], json!([{ "world": "segments/0.3.0.0", "why": why }]));
    assert_eq!((&left["segments"], &left["chunks"]), (&json!(3), &json!(2)));
}

#[test]
fn a_segmented_world_in_use_is_not_read() {
    let dir = sample();
    let path = dir.path().join("world");
    let world = SegmentedWorld::open(&path, &[], &SegmentOptions::default()).expect("opens");
    for command in [&["info", text(&path)][..], &["registry", "check", text(&path)]] {
        let said = run(command);
        assert_eq!((said.code, said.out.as_str()), (3, ""), "{said:?}");
    }
    world.close().expect("closes");
}

/// A pack whose machines have a level of at most this.
fn mill(max: u8) -> PackManifest {
    let json = format!(
        r#"{{ "pack": "mill", "version": "{max}", "namespaces": ["", "mill"],
              "components": [{{ "name": "mill:level", "size": 1, "fields": [
                  {{ "name": "level", "width_bytes": 1, "type": {{ "unsigned": {{ "max": {max} }} }} }}] }}],
              "blocks": [{{ "name": ":air" }}, {{ "name": "mill:machine", "components": ["mill:level"] }}],
              "dimensions": ["mill:home"] }}"#
    );
    PackManifest::from_json(&json).expect("a manifest")
}

/// The chunk of the segment at this place.
const fn at(x: i64) -> ChunkAt {
    ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0))
}

#[test]
fn the_values_of_all_segments_are_checked() {
    let dir = TempDir::new().expect("a temporary directory");
    let path = dir.path().join("world");
    let options = SegmentOptions::default();
    let world = SegmentedWorld::create(&path, &[mill(9)], &options).expect("an empty directory");
    let catalog = world.catalog();
    let (machine, level) = (catalog.block_id("mill:machine"), catalog.component_id("mill:level"));
    let machine = machine.expect("offered");
    for (x, value) in [(-1, 1), (0, 9), (100, 2)] {
        let saved = world.transaction(at(x), |tx| {
            let mut chunk = Chunk::filled(machine, &catalog.current_schema()).expect("known");
            for cell in LocalPos::all() {
                let cell = CellLayer::base(cell);
                chunk.set_component(cell, level.expect("offered"), &[value]).expect("has it");
            }
            tx.save(at(x), chunk);
            Ok::<_, Error>(())
        });
        saved.expect("saves");
    }
    world.close().expect("closes");
    drop(world);
    let check = |args: &[&str]| run(&[&["registry", "check", text(&path)], args].concat());
    expect![[r#"
        read the root and 3 segments
        checked 3 chunks
        no illegal value found
    "#]]
    .assert_eq(&check(&[]).good());

    // The root has other types; of the segments only one is opened with them.
    let world = SegmentedWorld::open(&path, &[mill(5)], &options).expect("opens");
    assert!(world.load(at(0)).expect("reads").is_some());
    world.close().expect("closes");
    drop(world);
    let said = check(&[]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    let lines: Vec<_> = said.out.lines().collect();
    expect!["segments/0.0.0.0: cell 0, 0, 0 (layer 0) of chunk 0, 0, 0 of dimension 0: component `mill:level` of pack `mill`: `level` is 9, allowed: 0 to 5"].assert_eq(lines[0]);
    expect![[r#"
        and 3,996 more
        segments/0.0.0.0 has 4,096 illegal values and 0 damaged rows
        segments/0.-1.0.0 has older types than the root and is checked by those; it gets the root's when the segmented world opens it
        segments/0.3.0.0 has older types than the root and is checked by those; it gets the root's when the segmented world opens it
        read the root and 3 segments
        checked 3 chunks
        4,096 illegal values found"#]]
    .assert_eq(&lines[100..].join("\n"));
    let found = check(&["--json"]).json();
    let faults = json!([{ "world": "segments/0.0.0.0", "illegal": 4096, "damaged": 0 }]);
    assert_eq!((&found["ok"], &found["illegal"], &found["faults"]), (&json!(false), &json!(4096), &faults));
    assert_eq!(found["older"], json!(["segments/0.-1.0.0", "segments/0.3.0.0"]));
    assert_eq!((&found["segments"], &found["unread"]), (&json!(3), &json!(null)));

    // One that cannot be read.
    std::fs::remove_dir_all(path.join("segments/0.0.0.0")).expect("removes");
    let said = check(&[]);
    assert_eq!(said.code, 1, "{said:?}");
    let lost = path.join("segments/0.0.0.0");
    let unread = format!(
        "segments/0.0.0.0 is not checked: segment 0 0 0 of dimension 0 is gone: the root knows it and {} is missing; restore it, or delete the segment\n",
        text(&lost)
    );
    assert!(said.out.contains(&unread), "{}", said.out);
    assert!(
        said.out.ends_with("read the root and 2 segments\nchecked 2 chunks\nno illegal value found\n"),
        "{}",
        said.out
    );
}
