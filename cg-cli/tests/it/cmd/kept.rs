//! A kept snapshot with a lost part: it is found, and the rest can be put back.

use cg_format::frame::{Codec, Draft, Stamp};
use cg_format::{CellOrder, Space, key};
use cg_store::engine::{Batch, Level};
use cg_store::prelude::*;
use expect_test::expect;
use serde_json::json;

use super::{Sample, run, text};

/// Chunks that are there, of sixteen kinds in no order: two kibibytes each, which nothing makes smaller.
const CHUNKS: i64 = 1200;

#[test]
fn what_is_lost_of_a_kept_snapshot_is_found_and_the_rest_is_put_back() {
    let dir = tempfile::TempDir::new().expect("a temporary directory");
    let path = dir.path().join("world");
    let world = World::builder().options(&WorldOptions::process()).create(&path).expect("an empty directory");
    let place = world.registry().register_dimension("game:arena").expect("new");
    let names: [String; 16] = std::array::from_fn(|kind| format!("game:kind_{kind}"));
    let kinds = world.registry().register_blocks(names.each_ref().map(String::as_str)).expect("new");
    let at = |x| ChunkAt::new(place, ChunkPos::constant(x, 0, 0));
    let mut dice = 7_u64;
    let filled = world.transaction(|tx| {
        let schema = tx.catalog().current_schema();
        for x in 0..CHUNKS {
            let cells = std::array::from_fn(|_| {
                dice = dice.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                kinds[(dice >> 60) as usize]
            });
            tx.save(at(x), Chunk::from_blocks(&cells, CellOrder::Xyz, &schema)?);
        }
        Ok::<_, Box<dyn std::error::Error>>(())
    });
    filled.expect("the disk takes it");
    world.close().expect("the disk takes it");
    drop(world);
    let far = (16 * CHUNKS - 1).to_string();
    let cg = |verb: &[&str], more: &[&str]| run(&[verb, &[text(&path)], more].concat());
    let area = ["it", "--box", "0", "0", "0", &far, "15", "15"];
    cg(&["snapshot", "create"], &area).good();

    let world = World::builder().options(&WorldOptions::process()).open(&path).expect("sound");
    let kept = world.snapshots().list().expect("readable").remove(0).expect("sound");
    assert!(kept.len_bytes > 2 << 20, "{kept:?}");
    let mut batch = Batch::new();
    batch.delete(Space::Snapshot, key::snapshot("it", 2).expect("a name"));
    world.engine().commit(batch, &[], Level::Process).expect("the disk takes it");
    world.close().expect("the disk takes it");
    drop(world);

    let said = cg(&["verify"], &[]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    let found: Vec<_> = said.out.lines().filter(|line| line.contains("snapshot")).collect();
    expect![[r#"
        snapshot 69740000000002: part 2 is missing of snapshot `it`; restore it from a checkpoint, or put back what is left of it with `cg snapshot restore --skip-damaged`
        checked 1,200 chunkl0, 1,200 chunks, 675 index, 3 snapshot, 16 worldMeta"#]].assert_eq(&found.join("\n"));
    let refused = cg(&["snapshot", "restore"], &["it"]);
    assert_eq!((refused.code, refused.out.as_str()), (1, ""));
    expect![[r#"
        cg: part 2 of snapshot `it` is damaged (Snapshot row 69740000000002): frame: a part needs 1048576 bytes and 0 are left (at byte 0); restore it from a checkpoint
    "#]].assert_eq(&refused.err);

    let world = World::builder().options(&WorldOptions::process()).open(&path).expect("sound");
    let before = world.load(at(0)).expect("sound").expect("there");
    let emptied = world.transaction(|tx| {
        let nothing = Chunk::filled(kinds[0], &tx.catalog().current_schema())?;
        (0..CHUNKS).for_each(|x| tx.save(at(x), nothing.clone()));
        Ok::<_, Box<dyn std::error::Error>>(())
    });
    emptied.expect("the disk takes it");
    world.close().expect("the disk takes it");
    drop(world);
    let restored = cg(&["snapshot", "restore"], &["it", "--skip-damaged", "--json"]);
    assert_eq!(restored.code, 1, "{}", restored.err);
    let restored = restored.json();
    let lost = restored["unverifiable"].as_array().expect("a list").len() as u64;
    // A mebibyte of them, and what of groups lies before it and after it.
    assert!((450..700).contains(&lost), "{lost} of {CHUNKS}");
    assert_eq!(restored["changed"], json!(CHUNKS as u64 - lost));
    let world = World::builder().options(&WorldOptions::process()).open(&path).expect("sound");
    assert_eq!(world.load(at(0)).expect("sound"), Some(before));
}

#[test]
fn a_snapshot_whose_head_is_damaged_hides_no_other() {
    let sample = Sample::new();
    for name in ["first", "second", "third"] {
        sample.cg("snapshot create", &[name, "--box", "-16", "48", "-16", "31", "95", "-1"]).good();
    }
    let world = sample.open();
    let mut batch = Batch::new();
    let row = Draft::plain(Codec::None, 0, |out| out.extend_from_slice(b"no head"));
    batch.put(Space::Snapshot, key::snapshot("second", 0).expect("a name"), row, Stamp::Commit);
    world.engine().commit(batch, &[], Level::Process).expect("the disk takes it");
    world.close().expect("the disk takes it");
    drop(world);
    let said = sample.cg("snapshot list", &["--json"]);
    let listed = said.json();
    let names: Vec<_> =
        listed["snapshots"].as_array().expect("a list").iter().map(|it| &it["name"]).collect();
    assert_eq!((said.code, names), (1, vec![&json!("first"), &json!("third")]));
    let [lost] = &listed["unreadable"].as_array().expect("a list")[..] else { panic!("{listed}") };
    let why = "part 0 of snapshot `second` is damaged (Snapshot row 7365636f6e640000000000): frame: snapshot length needs 8 \
               bytes and 7 are left (at byte 24); restore it from a checkpoint";
    assert_eq!(*lost, json!({ "name": "second", "why": why }));
    let said = sample.cg("snapshot list", &[]);
    assert!(said.out.ends_with(&format!("second: {why}\n")), "{}", said.out);
}
