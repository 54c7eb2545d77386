//! `cg pack` and `cg unpack`

use std::path::{Path, PathBuf};

use cg_format::codec::Codec;
use cg_snapshot::pack::{PackWriter, PackedObject};
use cg_store::objects::ObjectKey;
use cg_store::prelude::*;
use expect_test::{Expect, expect};
use serde_json::json;

use super::{GROUND, SHEEP, Said, Sample, run, text};

/// The sample's full chunk, the one above it, and two places beside them where none is.
pub(super) const BOX: [&str; 7] = ["--box", "0", "64", "-16", "31", "95", "-1"];

pub(super) fn sample() -> Sample {
    let sample = Sample::new();
    for (key, content) in
        [("avatar/7/bag", ""), ("avatar/7/hat", "red"), ("avatar/8/hat", "blue"), ("b", "x")]
    {
        sample.cg("object put", &[key, "--text", content]).good();
    }
    sample
}

fn packed(sample: &Sample, more: &[&str]) -> PathBuf {
    let file = sample.beside("it.cgpack");
    sample.cg("pack", &[&[text(&file), "--without-records"], more].concat()).good();
    file
}

fn unpack(file: &Path, world: &Path, more: &[&str]) -> Said {
    run(&[&["unpack", text(file), text(world)], more].concat())
}

/// A world that registered the sample's names, and others, in another order.
pub(super) fn other_order(path: &Path) {
    let world = World::builder().create(path).expect("the directory is empty");
    world.registry().register_dimension("mod:void").expect("new");
    world.registry().register_entity("mod:drone").expect("new");
    world.registry().register_side("mod:fog").expect("new");
    world
        .registry()
        .register_component(ComponentOffer::fixed(Name::new("mod:charge").expect("a name"), 4))
        .expect("new");
    let blocks = ["mod:wire", "game:water", "game:grass_block", "game:oak_slab[type=bottom]", "game:stone"];
    world.registry().register_blocks(blocks).expect("new");
    world.close().expect("the disk takes it");
}

/// Checks the contents of the sample's full chunk, by names.
#[track_caller]
fn check_ground(world: &World, at: ChunkPos) {
    let catalog = world.catalog();
    let at = ChunkAt::new(catalog.dimension("game:overworld").expect("it came along"), at);
    let chunk = world.load(at).expect("sound").expect("it was put");
    let name = |cell, layer| {
        let id = chunk.layer(cell, layer).expect("there");
        catalog.block_name(id).expect("registered").to_string()
    };
    for cell in LocalPos::all() {
        let expected = match (cell.x(), cell.y(), cell.z()) {
            (3, 7, 5) => "game:chest",
            (9, 7, 9) => "game:oak_slab[type=bottom]",
            (_, 0..=5, _) => "game:stone",
            (_, 6, _) => "game:grass_block",
            _ => ":air",
        };
        assert_eq!(name(cell, 0), expected, "{cell:?}");
    }
    assert_eq!(name(LocalPos::new(9, 7, 9), 1), "game:water");
    let items = catalog.component_id("game:items").expect("it came along");
    assert_eq!(chunk.component(CellLayer::base(LocalPos::new(3, 7, 5)), items), Some(&b"3 apples"[..]));
    let light = catalog.side_kind("game:light").expect("it came along");
    assert_eq!(chunk.side(light), Some(&[15; 40][..]));
    let [sheep] = chunk.entities() else { panic!("{:?}", chunk.entities()) };
    let entity = world.entity(*sheep).expect("sound").expect("it came along");
    assert_eq!(entity.kind, catalog.entity_type("game:sheep").expect("it came along"));
    assert_eq!(entity.owner, Owner::Chunk(at));
    assert_eq!(entity.position.block(), at.pos.block(LocalPos::new(4, 7, 7)));
    assert_eq!(*sheep == SHEEP, at.pos == GROUND, "elsewhere it is another one");
}

/// A world that has registered names of blocks in this order.
fn with_blocks<'n>(path: &Path, names: impl Iterator<Item = &'n String>) -> World {
    let world = World::builder().create(path).expect("the directory is empty");
    world.registry().register_dimension("game:overworld").expect("new");
    let blocks = names.map(|name| BlockOffer::new(Name::new(name).expect("a name"))).collect();
    world.registry().register(&Registration { blocks, ..Registration::default() }).expect("new");
    world
}

#[test]
fn five_hundred_states_keep_their_names_whatever_their_order() {
    let dir = tempfile::tempdir().expect("a directory");
    let [here, there, file] = ["here", "there", "it.cgpack"].map(|name| dir.path().join(name));
    let names: Vec<_> = (0..500).map(|n| format!("state:s{n}")).collect();
    let world = with_blocks(&here, names.iter());
    let catalog = world.catalog();
    let schema = catalog.current_schema();
    let id = |name: &String| catalog.block_id(name).expect("registered");
    let at =
        ChunkAt::new(catalog.dimension("game:overworld").expect("registered"), ChunkPos::constant(0, 0, 0));
    let mut chunk = Chunk::filled(id(&names[0]), &schema).expect("registered");
    for (cell, name) in LocalPos::all().zip(&names) {
        chunk.set_block(cell, id(name), &schema).expect("registered");
    }
    let saved = world.transaction(|tx| {
        tx.save(at, chunk);
        Ok::<_, cg_store::Error>(())
    });
    saved.expect("saves");
    world.close().expect("the disk takes it");
    drop(world);
    with_blocks(&there, names.iter().rev().step_by(2)).close().expect("the disk takes it");

    run(&["pack", text(&here), text(&file), "--box", "0", "0", "0", "15", "15", "15"]).good();
    unpack(&file, &there, &[]).good();
    let world = World::builder().open(&there).expect("sound");
    let catalog = world.catalog();
    let chunk = world.load(at).expect("sound").expect("it came");
    for (cell, name) in LocalPos::all().zip(&names) {
        assert_eq!(catalog.block_name(chunk.block(cell)).map(Name::as_str), Some(name.as_str()));
    }
    assert_ne!(catalog.block_id(&names[0]), Some(BlockId::new(1)), "it has other ids here");
}

#[test]
fn another_world_gets_it_by_names() {
    let sample = sample();
    let file = sample.beside("it.cgpack");
    let args = [
        &[text(&file), "--objects", "avatar/7/", "--objects", "avatar/7/hat", "--json", "--without-records"],
        &BOX[..],
    ]
    .concat();
    let mut said = sample.cg("pack", &args).json();
    let bytes = said["bytes"].take();
    assert_eq!(bytes, std::fs::metadata(&file).expect("written").len());
    let expected = json!({
        "objects": 2, "object_bytes": 3, "sections": 4, "present": 2, "entities": 1, "records": 0,
        "properties": 0, "left_records": 0, "left_detached": 1, "left_outside": 0, "left_kept_slots": 0, "parts": 2, "bytes": null,
    });
    assert_eq!(said, expected);

    let there = sample.beside("there");
    other_order(&there);
    let expected = json!({
        "dry_run": true, "merge": "replace", "transactions": 0, "new_names": 6, "objects_put": 2,
        "objects_unchanged": 0, "objects_kept": 0, "records_put": 0, "records_unchanged": 0, "records_kept": 0,
        "properties_put": 0, "properties_unchanged": 0, "properties_kept": 0, "sections": 4, "changed": 2, "kept": 0, "blocks": 8193,
        "components": 0, "entities_put": 1, "entities_deleted": 0, "entities_kept": 0, "components_left": {},
        "by_kind": {
            ":air": { "gained": 6398, "lost": 0 },
            "game:chest": { "gained": 1, "lost": 0 },
            "game:grass_block": { "gained": 256, "lost": 0 },
            "game:oak_slab[type=bottom]": { "gained": 1, "lost": 0 },
            "game:stone": { "gained": 1536, "lost": 0 },
            "game:water": { "gained": 1, "lost": 0 },
        },
    });
    // The same as into a world that is to be made, but that each name is new to it.
    let nowhere = sample.beside("nowhere");
    let mut foreseen = unpack(&file, &nowhere, &["--dry-run", "--json"]).json();
    assert_eq!(foreseen["new_names"].take(), 10);
    foreseen["new_names"] = expected["new_names"].clone();
    assert_eq!(foreseen, expected);
    assert!(!nowhere.exists(), "a dry run makes no world");
    let hash = run(&["hash", text(&there)]).good();
    assert_eq!(unpack(&file, &there, &["--dry-run", "--json"]).json(), expected);
    assert_eq!(run(&["hash", text(&there)]).good(), hash, "a dry run changes nothing");
    let mut said = unpack(&file, &there, &["--json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let mut done = said.json();
    assert_eq!((done["dry_run"].take(), done["transactions"].take()), (json!(false), json!(1)));
    for (key, value) in expected.as_object().expect("an object") {
        assert!(done[key] == *value || done[key].is_null(), "{key}: {}", done[key]);
    }
    {
        let world = World::builder().open(&there).expect("sound");
        check_ground(&world, GROUND);
        let hat = world.objects().get("avatar/7/hat").expect("sound").expect("it was put");
        assert_eq!((hat.version, &*hat.bytes), (0, &b"red"[..]));
        assert_eq!(world.objects().get("avatar/8/hat").expect("sound"), None);
        world.close().expect("the disk takes it");
    }
    assert_eq!(run(&["verify", text(&there)]).code, 0);
    // The same again changes nothing, and a new world gets the same.
    said = unpack(&file, &there, &[]);
    let nothing =
        "objects: 0 were put, 2 unchanged, 0 kept\nchunks: 0 of 4 were changed, 0 kept\nin one transaction\n";
    assert_eq!(said.good(), nothing);
    let new = sample.beside("new");
    unpack(&file, &new, &[]).good();
    assert_eq!(run(&["hash", text(&new)]).good(), run(&["hash", text(&there)]).good());
}

#[test]
fn a_box_with_what_no_pack_holds_is_refused_unless_that_is_meant() {
    let sample = sample();
    for (x, z) in [("3", "-1.5"), ("31", "-16"), ("32", "-1")] {
        sample.cg("records add", &["--at", x, "70", z, "--kind", "sign", "--text", "hi"]).good();
    }
    let world = sample.open();
    let moved = world.transaction(|tx| {
        let mut sheep = tx.entity(SHEEP)?.expect("there");
        sheep.position =
            EntityPos::new(Dimension::new(0), BlockPos::new(99, 70, -3), [0.0; 3]).expect("inside");
        tx.put_entity(SHEEP, sheep);
        Ok::<_, Error>(())
    });
    moved.expect("the disk takes it");
    world.close().expect("the disk takes it");
    drop(world);
    let file = sample.beside("it.cgpack");
    let said = sample.cg("pack", &[&[text(&file)], &BOX[..]].concat());
    let refused = "cg: the box has 1 detached entity, 1 entity of its chunks outside of it, which a pack does not \
                   hold; nothing was written, and with --without-detached it is packed without them\n";
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (1, "", refused));
    assert!(!file.exists());
    let said = sample.cg("pack", &[&[text(&file), "--without-records"], &BOX[..]].concat()).good();
    let without = "  without 2 records, 1 detached entity, 1 entity of its chunks outside of it\n";
    assert!(said.contains(without), "{said}");
    assert!(file.exists());
    let empty = ["--box", "320", "64", "-16", "335", "79", "-1"];
    sample.cg("pack", &[&[text(&sample.beside("empty"))], &empty[..]].concat()).good();
}

#[test]
fn it_moves_by_whole_chunks() {
    let sample = sample();
    let file = packed(&sample, &BOX);
    let there = sample.beside("there");
    other_order(&there);
    for _ in 0..2 {
        // The second time finds the same sheep again.
        unpack(&file, &there, &["--at", "-160", "0", "32"]).good();
        let world = World::builder().open(&there).expect("sound");
        check_ground(&world, ChunkPos::constant(-10, 0, 2));
        assert_eq!(world.entity(SHEEP).expect("sound"), None);
        world.close().expect("the disk takes it");
    }
    let check = |at: [&str; 3], expected: Expect| {
        let said = unpack(&file, &there, &["--at", at[0], at[1], at[2]]);
        assert_eq!((said.code, said.out.as_str()), (2, ""));
        expected.assert_eq(&said.err);
    };
    check(
        ["-160", "8", "32"],
        expect![[r#"
        cg: chunks move by whole chunks: --at -160 8 32 is not a multiple of 16 on each axis
    "#]],
    );
    check(
        ["9223372036854775792", "0", "0"],
        expect![[r#"
        cg: the box does not lie in the world there
    "#]],
    );
}

#[test]
fn what_is_there_is_kept_or_replaced() {
    let sample = sample();
    let file = packed(&sample, &[&["--objects", "avatar/"], &BOX[..]].concat());
    let world = sample.open();
    let overworld = Dimension::new(0);
    let [air] = world.registry().register_blocks([":air"]).expect("known");
    // One chunk was changed, one is gone, one is new; the sheep is away.
    let changed = world.transaction(|tx| {
        tx.set_block(overworld, BlockPos::new(0, 70, -9), air)?;
        tx.delete(ChunkAt::new(overworld, ChunkPos::constant(0, 5, -1)));
        let new = Chunk::filled(air, &tx.catalog().current_schema())?;
        tx.save(ChunkAt::new(overworld, ChunkPos::constant(1, 4, -1)), new);
        tx.delete_entity(SHEEP);
        tx.put_object("avatar/7/hat", *b"green")?;
        tx.delete_object("avatar/8/hat").map_err(Box::<dyn std::error::Error>::from)
    });
    changed.expect("the disk takes it");
    world.close().expect("the disk takes it");
    drop(world);

    let keep = unpack(&file, &sample.path(), &["--merge", "keep"]).good();
    expect![[r#"
        objects: 1 were put, 0 unchanged, 2 kept
        chunks: 1 of 4 were changed, 2 kept
          :air: 4,096 blocks more, 0 blocks fewer
        in one transaction
    "#]]
    .assert_eq(&keep);
    let hats = || {
        let world = sample.open();
        let hats = ["avatar/7/hat", "avatar/8/hat"]
            .map(|key| world.objects().get(key).expect("sound").expect("there"));
        world.close().expect("the disk takes it");
        hats.map(|hat| (hat.version, String::from_utf8_lossy(&hat.bytes).into_owned()))
    };
    assert_eq!(hats(), [(1, "green".into()), (1, "blue".into())]);
    let world = sample.open();
    let ground = world.load(ChunkAt::new(overworld, GROUND)).expect("sound").expect("there");
    assert_eq!(ground.block(LocalPos::new(0, 6, 7)), air);
    assert!(world.load(ChunkAt::new(overworld, ChunkPos::constant(0, 5, -1))).expect("sound").is_some());
    world.close().expect("the disk takes it");
    drop(world);

    let replace = unpack(&file, &sample.path(), &["--merge", "replace"]).good();
    expect![[r#"
        objects: 1 were put, 2 unchanged, 0 kept
        chunks: 2 of 4 were changed, 0 kept
          :air: 0 blocks more, 4,097 blocks fewer
          game:grass_block: 1 block more, 0 blocks fewer
        entities: 1 were put, 0 deleted, 0 kept
        in one transaction
    "#]]
    .assert_eq(&replace);
    // The version counts on where it comes to, whatever it was in the pack.
    assert_eq!(hats(), [(2, "red".into()), (1, "blue".into())]);
    let world = sample.open();
    check_ground(&world, GROUND);
    assert_eq!(world.load(ChunkAt::new(overworld, ChunkPos::constant(1, 4, -1))).expect("sound"), None);
    world.close().expect("the disk takes it");
    drop(world);
    assert_eq!(sample.cg("verify", &[]).code, 0);
}

#[test]
fn a_damaged_file_changes_nothing() {
    let sample = sample();
    let file = packed(&sample, &[&["--objects", "avatar/"], &BOX[..]].concat());
    let there = sample.beside("there");
    other_order(&there);
    let (good, hash) = (std::fs::read(&file).expect("written"), run(&["hash", text(&there)]).good());
    let bad = sample.beside("bad.cgpack");
    let check = |bytes: &[u8]| {
        std::fs::write(&bad, bytes).expect("writable");
        let said = unpack(&bad, &there, &[]);
        assert_eq!((said.code, said.out.as_str()), (1, ""));
        assert!(said.err.contains("(at byte "), "{}", said.err);
        let nowhere = sample.beside("nowhere");
        assert_eq!(unpack(&bad, &nowhere, &[]).code, 1);
        assert!(!nowhere.exists(), "no world is made for it");
        said.err.replace(text(&bad), "BAD")
    };
    for step in 0..12 {
        let at = good.len() * step / 12;
        check(&good[..at]);
        let mut changed = good.clone();
        changed[at] ^= 4;
        check(&changed);
    }
    let mut newer = good.clone();
    newer[17] = b'3';
    expect![[r#"
        cg: BAD: pack head: signature is 3, and this release reads up to 2; use a newer release (at byte 17)
    "#]]
    .assert_eq(&check(&newer));
    expect![[r#"
        cg: BAD: pack head: signature needs 19 bytes and 0 are left (at byte 0)
    "#]]
    .assert_eq(&check(b""));
    assert_eq!(run(&["hash", text(&there)]).good(), hash);
    let world = World::builder().open_read_only(&there).expect("sound");
    assert_eq!(world.catalog().block_id("game:chest"), None, "not even names");
}

#[test]
fn wrong_usage_and_refusals() {
    let sample = sample();
    let file = sample.beside("it.cgpack");
    let check = |args: &[&str], code: i32, expected: Expect| {
        let said = sample.cg("pack", &[&[text(&file)], args].concat());
        assert_eq!((said.code, said.out.as_str()), (code, ""));
        expected.assert_eq(&said.err);
        assert!(!file.exists());
    };
    check(
        &[],
        2,
        expect![[r#"
        cg: say what to pack: --objects PREFIX, --properties PREFIX, --box X0 Y0 Z0 X1 Y1 Z1, or several of them
    "#]],
    );
    check(
        &["--objects", "b", "--dim", "moon"],
        2,
        expect![[r#"
        cg: --dim says where the box lies; give --box too
    "#]],
    );
    check(
        &["--box", "-3", "60", "-16", "14", "90", "-1"],
        2,
        expect![[r#"
        cg: a pack holds whole chunks; those that the box meets are --box -16 48 -16 15 95 -1
    "#]],
    );
    check(
        &["--objects", "nobody/"],
        4,
        expect![[r#"
        cg: no object begins with `nobody/`; nothing was written
    "#]],
    );
    let file = packed(&sample, &["--objects", "b"]);
    let there = sample.cg("pack", &[text(&file), "--objects", "b"]);
    assert_eq!(there.code, 1, "it is there already");
    assert!(there.err.starts_with("cg: cannot write "), "{}", there.err);
    let said = unpack(&file, &sample.path(), &["--at", "0", "0", "0"]);
    assert_eq!((said.code, said.err.as_str()), (2, "cg: the pack holds no box, so --at moves nothing\n"));
    let said = unpack(&sample.beside("nothing"), &sample.path(), &[]);
    assert_eq!(said.code, 4);
    assert!(said.err.starts_with("cg: cannot read "), "{}", said.err);
}

#[test]
fn what_is_too_large_for_one_batch_is_one_transaction_unless_steps_are_asked_for() {
    let sample = sample();
    let world = sample.open();
    for number in 0..40 {
        let content: Vec<u8> = (0..100_000_u32).map(|at| (at.wrapping_mul(number + 7) >> 3) as u8).collect();
        world.objects().put(format!("map/{number:02}"), content).expect("the disk takes it");
    }
    world.close().expect("the disk takes it");
    drop(world);
    // More sections than a u16 counts, nearly all of them without a chunk.
    let area = ["--box", "0", "64", "-16", "32767", "607", "-1"];
    let file = packed(&sample, &[&["--objects", "map/"], &area[..]].concat());
    let limits = cg_store::StoreLimits {
        batch_bytes: 1 << 20,
        object_bytes: 1 << 20,
        ..cg_store::StoreLimits::default()
    };
    let make = |name: &str| {
        let there = sample.beside(name);
        let world = World::builder()
            .options(&WorldOptions { limits, ..WorldOptions::default() })
            .create(&there)
            .expect("is new");
        world.close().expect("the disk takes it");
        there
    };
    let check = |name: &str, more: &[&str], transactions: u64| {
        let there = make(name);
        let done = unpack(&file, &there, &[&["--json"], more].concat()).json();
        assert_eq!((&done["objects_put"], &done["changed"]), (&json!(40), &json!(2)));
        assert_eq!((&done["sections"], &done["transactions"]), (&json!(69_632), &json!(transactions)));
        let world = World::builder().open(&there).expect("sound");
        check_ground(&world, GROUND);
        world.close().expect("the disk takes it");
        there
    };
    let once = check("once", &[], 1);
    let steps = check("steps", &["--in-steps", "--max-memory", "1"], 14 + 69_632 / 64);
    assert_eq!(run(&["hash", text(&once)]).good(), run(&["hash", text(&steps)]).good());

    // What the objects take is known before a world is made, what the box takes as it is put.
    let refused = |there: &Path, mebibytes: &str, why: &str| {
        let said = unpack(&file, there, &["--max-memory", mebibytes]);
        assert_eq!((said.code, said.out.as_str()), (1, ""));
        let expected = format!(
            "cg: in one transaction it takes more than {why}; nothing of it was put there: --max-memory allows more, \
             --in-steps takes little\n"
        );
        assert_eq!(said.err, expected);
    };
    let nowhere = sample.beside("nowhere");
    refused(&nowhere, "7", "7.0 MiB of memory, for its objects, records and properties alone take 7.7 MiB");
    assert!(!nowhere.exists());
    let there = make("there");
    let said = unpack(&file, &there, &["--max-memory", "8"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.contains(" of 69,632 sections show; nothing of it was put there: "), "{}", said.err);
    assert_eq!(run(&["object", "list", text(&there)]).good(), "", "objects neither");

    let small = sample.beside("small");
    let limits = cg_store::StoreLimits { object_bytes: 1000, ..cg_store::StoreLimits::default() };
    let world = World::builder()
        .options(&WorldOptions { limits, ..WorldOptions::default() })
        .create(&small)
        .expect("is new");
    world.close().expect("the disk takes it");
    drop(world);
    let said = unpack(&file, &small, &[]);
    assert_eq!(said.code, 1);
    expect![[r#"
        cg: the longest object of the pack takes 100000 bytes, the world's limit is 1000; raise the limit or split it
    "#]].assert_eq(&said.err);
    assert_eq!(run(&["object", "list", text(&small)]).good(), "");
}

#[test]
fn data_that_the_world_has_no_place_for_are_named() {
    let sample = sample();
    let file = packed(&sample, &BOX);
    let there = sample.beside("there");
    let world = World::builder().create(&there).expect("the directory is empty");
    let items = ComponentOffer::fixed(Name::new("game:items").expect("a name"), 4);
    world.registry().register_component(items).expect("new");
    world.close().expect("the disk takes it");
    drop(world);
    let said = unpack(&file, &there, &["--json"]);
    assert_eq!(said.code, 1);
    assert_eq!(said.json()["components_left"], json!({ "game:items": 1 }));
    let said = unpack(&file, &sample.beside("new"), &["--json"]);
    assert_eq!((said.code, &said.json()["components_left"]), (0, &json!({})));
}

#[test]
fn what_a_store_keeps_for_itself_stays_where_it_is() {
    let sample = sample();
    let own = ObjectKey::new(b"\0sync/head").unwrap();
    let world = sample.open();
    world
        .transaction(|tx| {
            tx.put_object(&own, b"of this world".as_slice())?;
            Ok::<_, cg_store::Error>(())
        })
        .unwrap();
    drop(world);
    let file = packed(&sample, &["--objects", ""]);
    let there = sample.beside("there");
    let said = unpack(&file, &there, &["--json"]).good();
    assert!(said.contains("\"objects_put\":4"), "{said}");

    // A pack of another program.
    let mut pack = PackWriter::new(Vec::new(), Codec::Lz4).unwrap();
    pack.object(PackedObject { key: own.as_bytes(), version: 0, bytes: b"of none" }).unwrap();
    let (bytes, _) = pack.finish().unwrap();
    std::fs::write(&file, bytes).unwrap();
    let nowhere = sample.beside("nowhere");
    let said = unpack(&file, &nowhere, &[]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    expect![[r#"
        cg: FILE: object `\x00sync/head` of the pack is a store's own and holds of no other world; nothing was written
    "#]]
    .assert_eq(&said.err.replace(text(&file), "FILE"));
    assert!(!nowhere.exists());
}

#[test]
fn no_more_names_are_registered_than_allowed() {
    let sample = sample();
    let file = packed(&sample, &BOX);
    let (there, new) = (sample.beside("there"), sample.beside("new"));
    other_order(&there);
    let registry = || run(&["registry", "list", text(&there), "--json"]).good();
    let before = registry();
    for more in [&["--max-names", "5"][..], &["--max-names", "5", "--dry-run"]] {
        let said = unpack(&file, &there, more);
        assert_eq!(said.code, 1, "{}", said.out);
        assert_eq!(
            said.err,
            "cg: 6 names are new to the world and 5 are allowed, for they stay for ever; nothing was written, \
             --max-names allows more\n"
        );
    }
    assert_eq!(registry(), before);
    assert_eq!(unpack(&file, &new, &["--max-names", "5"]).code, 1);
    assert!(!new.exists(), "no world is made for it");
    unpack(&file, &there, &["--max-names", "6"]).good();
}
