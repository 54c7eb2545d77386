//! `cg quarantine`

use cg_format::{Space, key};
use cg_store::prelude::*;
use expect_test::expect;
use serde_json::json;

use super::{SHEEP, Sample};

#[test]
fn a_damaged_chunk_is_set_aside_listed_shown_and_forgotten() {
    let sample = Sample::new();
    let key = sample.spoil_ground();
    let place = ["--chunk", "0", "4", "-1"];

    let said = sample.cg("quarantine set-aside", &place);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    expect![[r#"
        cg: the chunk would be absent from the world from then on, or without a change where that alone is damaged; nothing was changed, run it again with --yes
    "#]].assert_eq(&said.err);
    assert_eq!(sample.cg("get", &place).code, 1);
    assert_eq!(sample.cg("quarantine list", &[]).good(), "nothing is in quarantine\n");

    let out = sample.cg("quarantine set-aside", &[&place[..], &["--yes"]].concat()).good();
    assert_eq!(out, "chunk 0 4 -1 of game:overworld was quarantined\n");
    assert_eq!(sample.cg("verify", &[]).code, 0);
    assert_eq!(sample.cg("info", &["--json"]).json()["detached"], 2, "the sheep {SHEEP} stays");

    let listed = sample.cg("quarantine list", &["--json"]).json();
    let mut row = listed["quarantined"][0].clone();
    let commit = row["commit"].take().as_u64().expect("a number").to_string();
    assert!(listed["quarantined"][1].is_null());
    assert_eq!(row, json!({ "space": "ChunkL0", "key": key, "commit": null, "bytes": 43 }));
    let line = format!("ChunkL0 {key} {commit}  quarantined by commit {commit}, 43 B\n");
    assert_eq!(sample.cg("quarantine list", &[]).good(), line);
    let said = sample.cg("dump", &["--quarantined", "ChunkL0", &key, &commit]);
    assert_eq!(said.code, 1, "what was quarantined is damaged still");
    let place = format!("quarantined by commit {commit}: chunk 0 4 -1 of game:overworld");
    assert!(said.out.contains(&place) && said.out.contains("quarantined: row, 43 bytes"), "{}", said.out);

    assert_eq!(sample.cg("quarantine forget", &["ChunkL0", &key, &commit]).code, 2);
    assert_eq!(sample.cg("quarantine forget", &["ChunkL0", &key, "x", "--yes"]).code, 2);
    let said = sample.cg("quarantine forget", &["ChunkL0", &key, "1", "--yes"]);
    assert_eq!((said.code, said.out), (4, format!("ChunkL0 {key} 1 is not in quarantine\n")));
    assert_eq!(sample.cg("quarantine forget", &["chunkl0", &key, &commit, "--yes"]).code, 0);
    let said = sample.cg("quarantine forget", &["chunkl0", &key, &commit, "--yes"]);
    assert_eq!((said.code, said.out), (4, format!("chunkl0 {key} {commit} is not in quarantine\n")));
}

#[test]
fn a_damaged_entity_is_set_aside_and_its_chunk_lets_go_of_it() {
    let sample = Sample::new();
    let uuid = SHEEP.to_string();
    sample.spoil(Space::Entity, &key::entity(SHEEP), b"not an entity");
    assert_eq!(sample.cg("verify", &[]).code, 1);
    let said = sample.cg("quarantine set-aside", &["--entity", &uuid]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    let out = sample.cg("quarantine set-aside", &["--entity", &uuid, "--yes"]).good();
    assert_eq!(out, format!("entity {uuid} was quarantined\n"));
    assert_eq!(sample.cg("verify", &[]).code, 0);
    assert_eq!(sample.cg("info", &["--json"]).json()["entities"], 1, "the one that belongs to no chunk");
    let row = sample.cg("quarantine list", &["--json"]).json()["quarantined"][0].clone();
    assert_eq!((&row["space"], &row["key"]), (&json!("Entity"), &json!(uuid.replace('-', ""))));
    // It is gone, so there is nothing left to quarantine; and one thing at a time.
    assert_eq!(sample.cg("quarantine set-aside", &["--entity", &uuid, "--yes"]).code, 4);
    let both = ["--entity", &uuid, "--chunk", "0", "4", "-1", "--yes"];
    assert_eq!(sample.cg("quarantine set-aside", &both).code, 2);
    assert_eq!(sample.cg("quarantine set-aside", &["--yes"]).code, 2);
}

#[test]
fn a_sound_chunk_is_left_alone() {
    let sample = Sample::new();
    let before = sample.cg("hash", &[]).good();
    let said = sample.cg("quarantine set-aside", &["--chunk", "0", "4", "-1", "--yes"]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    assert_eq!(said.out, "chunk 0 4 -1 of game:overworld is not damaged and was left alone\n");
    let around = ["--box", "0", "64", "-16", "15", "79", "-1", "--yes"];
    let said = sample.cg("quarantine set-aside", &around).good();
    assert_eq!(said, "0 chunks quarantined; nothing in the box is damaged any more\n");
    let everything = ["--box", "-99999", "-99999", "-99999", "99999", "99999", "99999", "--yes"];
    let said = sample.cg("quarantine set-aside", &everything);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(said.err.contains("name one of 16,777,216 at most"), "{}", said.err);
    assert_eq!(sample.cg("hash", &[]).good(), before);
}

#[test]
fn a_damaged_object_and_a_damaged_record_are_set_aside() {
    let sample = Sample::new();
    let record = cg_format::RecordId::from_bytes([7; 16]);
    sample.spoil(Space::Object, b"block/1", b"not an object");
    sample.spoil(Space::RecordPlace, &key::record_place(record), b"not a place");
    assert_eq!(sample.cg("verify", &[]).code, 1);
    let uuid = record.to_string();
    for (flag, name, said) in [
        ("--object", "block/1", "object `block/1`".to_owned()),
        ("--record", &uuid, format!("record {uuid}")),
    ] {
        assert_eq!(sample.cg("quarantine set-aside", &[flag, name]).code, 2);
        let out = sample.cg("quarantine set-aside", &[flag, name, "--yes"]).good();
        assert_eq!(out, format!("{said} was quarantined\n"));
        let again = sample.cg("quarantine set-aside", &[flag, name, "--yes"]);
        assert_eq!((again.code, again.out), (4, format!("{said} is not there\n")));
    }
    assert_eq!(sample.cg("verify", &[]).code, 0);
    let both = ["--object", "block/1", "--record", &uuid, "--yes"];
    assert_eq!(sample.cg("quarantine set-aside", &both).code, 2);
}

#[test]
fn a_damaged_commit_that_keeps_a_world_closed_is_set_aside() {
    let sample = Sample::new();
    let before = sample.cg("hash", &[]).good();
    let world = World::builder().open_read_only(sample.path()).expect("opens");
    let next = world.last_commit().next();
    drop(world);
    let again = sample.cg("quarantine set-aside", &["--commit", "--yes"]);
    assert_eq!((again.code, again.out.as_str()), (1, "no commit is damaged, and nothing was done\n"));
    // The row is written by one more commit.
    let intent = key::intent(next.get());
    sample.spoil(Space::Intent, &intent, b"\x01no intent");
    let said = sample.cg("hash", &[]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("set the damaged part of the commit aside"), "{}", said.err);
    assert_eq!(sample.cg("quarantine set-aside", &["--commit"]).code, 2);
    let out = sample.cg("quarantine set-aside", &["--commit", "--yes"]).good();
    let row: String = intent.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(
        out.starts_with(&format!("0 parts of the commit were rolled forward; quarantined:\n  {row}: ")),
        "{out}"
    );
    assert_eq!(sample.cg("hash", &[]).good(), before);
    assert_eq!(sample.cg("quarantine list", &["--json"]).json()["quarantined"][0]["space"], "Intent");
}

/// A delta is a change of a chunk: the chunk stays without it.
#[test]
fn a_damaged_change_is_set_aside_and_its_chunk_stays() {
    let place = ["--chunk", "0", "4", "-1"];
    let area = ["--box", "0", "64", "-16", "15", "79", "-1"];
    let one = "a change of chunk 0 4 -1 of game:overworld, which stays without it, was quarantined\n";
    let of_box = "changes of 1 chunk, without which those stay, and 0 chunks quarantined; nothing in the box is damaged any more\n";
    for (which, expected) in [(&place[..], one), (&area, of_box)] {
        let sample = Sample::new();
        let options = WorldOptions { deltas: true, ..WorldOptions::default() };
        let world = World::builder().options(&options).open(sample.path()).expect("the world is sound");
        let (overworld, ground) = (Dimension::new(0), super::GROUND);
        let [gap] = world.registry().register_blocks(["game:gap"]).expect("new");
        let set = |tx: &mut Transaction<'_>| tx.set_block(overworld, ground.min_block(), gap);
        let commit = world.transaction_at(Durability::Safe, set).expect("the chunk is there").seq.get();
        world.close().expect("the disk takes it");
        drop(world);
        let row = key::delta(ChunkAt::new(overworld, ground), commit);
        sample.spoil(Space::ChunkDelta, &row, b"no delta");
        let said = sample.cg("verify", &[]);
        assert_eq!(said.code, 1);
        assert!(said.out.contains("; its chunk is there without this change: set the change"), "{said:?}");
        let out = sample.cg("quarantine set-aside", &[which, &["--yes"]].concat()).good();
        assert_eq!(out, expected);
        assert_eq!(sample.cg("verify", &[]).code, 0);
        assert_eq!(sample.cg("get", &place).code, 0);
    }
}
