//! Records and properties in packs: `cg pack`, `cg unpack`, and from an archive.

use std::path::Path;

use cg_format::codec::Codec;
use cg_snapshot::pack::PackWriter;
use cg_store::prelude::*;
use serde_json::json;

use super::pack::{BOX, other_order, sample};
use super::{Sample, run, text};

const IDS: [&str; 2] = ["00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"];

/// The sample with two records in the box, one beside it, and properties of a mod, of the settings and of the engine.
fn marked() -> Sample {
    let sample = sample();
    for (id, x, z) in [(IDS[0], "3.5", "-1.5"), (IDS[1], "31", "-16"), (SHEEPS, "32", "-1")] {
        let at = ["--at", x, "70.25", z, "--kind", "sign", "--text", "hi", "--timestamp", "7", "--id", id];
        sample.cg("records add", &at).good();
    }
    let world = sample.open();
    put(&world, &[("mod:a/1", b"one"), ("mod:a/2", b""), ("mod:b", b"x"), ("cg:any", b"s"), (":own", b"e")]);
    world.close().expect("the disk takes it");
    drop(world);
    sample
}

/// The UUID of the record beside the box.
const SHEEPS: &str = "00000000-0000-0000-0000-000000000003";

fn property(name: &str) -> Property {
    Property::Named(Name::new(name).expect("a name"))
}

fn put(world: &World, properties: &[(&str, &[u8])]) {
    let put = world.transaction(|tx| {
        for (name, bytes) in properties {
            tx.set_property(property(name), Some(bytes.to_vec()));
        }
        Ok::<_, Error>(())
    });
    put.expect("the disk takes it");
}

/// The records of the overworld: UUID, block and fraction of x.
fn records(world: &Path) -> Vec<(String, [i64; 3], f64)> {
    let said = run(&["records", "list", text(world), "-d", "game:overworld", "--json"]).json();
    let mut all: Vec<_> = said["records"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|record| {
            assert_eq!(
                (&record["timestamp"], &record["kind"], &record["text"]),
                (&json!(7), &json!("sign"), &json!("hi"))
            );
            let block = [0, 1, 2].map(|axis| record["block"][axis].as_i64().expect("a number"));
            let fraction = record["fraction"][0].as_f64().expect("a number");
            (record["id"].as_str().expect("text").to_owned(), block, fraction)
        })
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

fn values(world: &Path) -> Vec<Option<Vec<u8>>> {
    let world = World::builder().open_read_only(world).expect("sound");
    ["mod:a/1", "mod:a/2", "mod:b", "cg:any", ":own"]
        .map(|name| world.property(&property(name)).expect("sound"))
        .into()
}

const CHOICE: [&str; 5] = ["--properties", "mod:a/", "--properties", "mod:a/1", "--without-detached"];

fn counts(said: &serde_json::Value, what: &str) -> [u64; 3] {
    ["put", "unchanged", "kept"].map(|how| said[format!("{what}_{how}")].as_u64().expect("a number"))
}

#[test]
fn records_and_properties_come_by_names_in_one_transaction() {
    let sample = marked();
    let (file, archive) = (sample.beside("it.cgpack"), sample.beside("w.cgw"));
    let packed = sample.cg("pack", &[&[text(&file), "--json"], &CHOICE[..], &BOX].concat()).json();
    let found =
        (&packed["records"], &packed["properties"], &packed["left_records"], &packed["left_detached"]);
    assert_eq!(found, (&json!(2), &json!(2), &json!(0), &json!(1)));
    sample.cg("archive", &[text(&archive)]).good();
    let there = sample.beside("there");
    other_order(&there);
    let hash = run(&["hash", text(&there)]).good();
    let foreseen = run(&["unpack", text(&file), text(&there), "--dry-run", "--json"]).json();
    assert_eq!((counts(&foreseen, "records"), counts(&foreseen, "properties")), ([2, 0, 0], [2, 0, 0]));
    assert_eq!(run(&["hash", text(&there)]).good(), hash, "a dry run changes nothing");
    let done = run(&["unpack", text(&file), text(&there), "--json"]).json();
    assert_eq!((counts(&done, "records"), counts(&done, "properties")), ([2, 0, 0], [2, 0, 0]));
    assert_eq!(done["transactions"], json!(1));
    let expected = [(IDS[0].to_owned(), [3, 70, -2], 0.5), (IDS[1].to_owned(), [31, 70, -16], 0.0)];
    assert_eq!(records(&there), expected);
    assert_eq!(values(&there), [Some(b"one".to_vec()), Some(vec![]), None, None, None]);
    let again = run(&["unpack", text(&file), text(&there)]).good();
    assert!(
        again.contains("records: 0 were put, 2 unchanged, 0 kept\nproperties: 0 were put, 2 unchanged"),
        "{again}"
    );
    assert_eq!(run(&["verify", text(&there)]).code, 0);

    // From an archive, and in steps, it is the same.
    let [of_archive, steps] = ["of_archive", "steps"].map(|name| sample.beside(name));
    other_order(&of_archive);
    other_order(&steps);
    let args = [&["unpack", text(&archive), text(&of_archive), "--json"], &CHOICE[..], &BOX].concat();
    assert_eq!(run(&args).json(), done);
    run(&["unpack", text(&file), text(&steps), "--in-steps"]).good();
    for world in [&of_archive, &steps] {
        assert_eq!(run(&["hash", text(world)]).good(), run(&["hash", text(&there)]).good());
    }
}

#[test]
fn they_move_and_are_kept_or_replaced() {
    let sample = marked();
    let file = sample.beside("it.cgpack");
    sample.cg("pack", &[&[text(&file)], &CHOICE[..], &BOX].concat()).good();
    let there = sample.beside("there");
    other_order(&there);
    let at = ["unpack", text(&file), text(&there), "--at", "-160", "0", "32"];
    for expected in [[2, 0, 0], [0, 2, 0]] {
        let done = run(&[&at[..], &["--json"]].concat()).json();
        assert_eq!(counts(&done, "records"), expected);
    }
    let mut moved = records(&there);
    assert!(moved.iter().all(|(id, ..)| !IDS.contains(&id.as_str())), "they are others there: {moved:?}");
    moved.sort_by_key(|(_, block, _)| *block);
    let places: Vec<_> = moved.iter().map(|(_, block, fraction)| (*block, *fraction)).collect();
    assert_eq!(places, [([-157, 6, 46], 0.5), ([-129, 6, 32], 0.0)]);

    // A record of another place with the same UUID, and another value of a property.
    let world = World::builder().open(&there).expect("sound");
    put(&world, &[("mod:a/1", b"theirs")]);
    world.close().expect("the disk takes it");
    drop(world);
    let add = [
        "-d",
        "game:overworld",
        "--at",
        "500",
        "5",
        "5",
        "--kind",
        "sign",
        "--text",
        "hi",
        "--timestamp",
        "7",
    ];
    run(&[&["records", "add", text(&there), "--id", IDS[0]], &add[..]].concat()).good();
    let keep = run(&["unpack", text(&file), text(&there), "--merge", "keep", "--json"]).json();
    assert_eq!((counts(&keep, "records"), counts(&keep, "properties")), ([1, 0, 1], [0, 0, 2]));
    assert!(records(&there).contains(&(IDS[0].into(), [500, 5, 5], 0.0)));
    assert_eq!(values(&there)[0], Some(b"theirs".to_vec()));
    let replace = run(&["unpack", text(&file), text(&there), "--json"]).json();
    assert_eq!((counts(&replace, "records"), counts(&replace, "properties")), ([1, 1, 0], [1, 1, 0]));
    assert!(records(&there).contains(&(IDS[0].into(), [3, 70, -2], 0.5)));
    assert_eq!(values(&there)[0], Some(b"one".to_vec()));
    assert_eq!(run(&["verify", text(&there)]).code, 0);
}

#[test]
fn what_is_left_out_and_what_is_refused() {
    let sample = marked();
    let file = sample.beside("it.cgpack");
    let args = [&[text(&file), "--without-records", "--properties", "", "--json"], &BOX[..]].concat();
    let packed = sample.cg("pack", &args).json();
    let found = (&packed["records"], &packed["properties"], &packed["left_records"]);
    assert_eq!(found, (&json!(0), &json!(3), &json!(2)), "settings and the engine's own stay");
    let none = sample.cg("pack", &[text(&sample.beside("none")), "--properties", "cg:"]);
    let expected = "cg: no property begins with `cg:`; nothing was written\n";
    assert_eq!((none.code, none.err.as_str()), (4, expected));

    // Packs of another program.
    for name in ["cg:any", ":own"] {
        let mut pack = PackWriter::new(Vec::new(), Codec::Lz4).expect("memory takes it");
        pack.property(&Name::new(name).expect("a name"), b"x").expect("in order");
        std::fs::write(&file, pack.finish().expect("memory takes it").0).expect("the disk takes it");
        let nowhere = sample.beside("nowhere");
        let said = run(&["unpack", text(&file), text(&nowhere)]);
        let expected = format!(
            "cg: FILE: property `{name}` of the pack is a store's own and holds of no other world; nothing was written\n"
        );
        assert_eq!((said.code, said.err.replace(text(&file), "FILE")), (1, expected));
        assert!(!nowhere.exists());
    }
}

/// An entity of its own world is what they are about.
#[test]
fn what_is_said_of_players_stays_in_its_world() {
    let sample = sample();
    let player = format!("minecraft/player/{}", IDS[0]);
    let keys = ["minecraft/file/level.dat", &player];
    let world = sample.open();
    let put = world.transaction(|tx| keys.iter().try_for_each(|key| tx.put_object(key, *b"bytes")));
    put.expect("the disk takes it");
    world.close().expect("the disk takes it");
    drop(world);
    let (file, archive) = (sample.beside("it.cgpack"), sample.beside("w.cgw"));
    sample.cg("pack", &[text(&file), "--objects", "minecraft/"]).good();
    sample.cg("archive", &[text(&archive)]).good();
    let has = |world: &Path| {
        let world = World::builder().open_read_only(world).expect("sound");
        keys.map(|key| world.objects().get(key).expect("sound").is_some())
    };
    for (name, args) in
        [("by_pack", &[text(&file)][..]), ("by_archive", &[text(&archive), "--objects", "minecraft/"])]
    {
        let there = sample.beside(name);
        other_order(&there);
        run(&[&["unpack", args[0], text(&there)], &args[1..]].concat()).good();
        assert_eq!(has(&there), [true, false], "{name}");
    }
    // A whole world has it.
    let there = sample.beside("whole");
    run(&["restore", text(&archive), text(&there)]).good();
    assert_eq!(has(&there), [true, true]);
}
