//! `cg get`

use cg_snapshot::nbt;
use cg_store::prelude::*;
use expect_test::{Expect, expect};
use serde_json::json;

use super::{GROUND, SHEEP, Sample};

#[track_caller]
fn check(args: &[&str], expected: Expect) {
    expected.assert_eq(&Sample::new().cg("get", args).good());
}

#[test]
fn a_chunk_is_summed_up() {
    check(
        &["--chunk", "0", "4", "-1"],
        expect![[r#"
            chunk 0 4 -1 of game:overworld
              version 10, tier L0, schema generation 0, 1.7 KiB
            blocks: 6 kinds
              2,302  :air
              1,536  game:stone
                256  game:grass_block
                  1  game:water
                  1  game:chest
                  1  game:oak_slab[type=bottom]
            upper layers: 1 block
            components
                  1  game:items  (8 B)
            entities: 1
              00000000-0000-0000-0000-000000005ee9  game:sheep at 4.50 71.00 -8.75
            side data
                   40 B  game:light
        "#]],
    );
}

#[test]
fn a_block_shows_its_layers_and_components() {
    check(
        &["--block", "3", "71", "-11"],
        expect![[r#"
        block 3 71 -11 of game:overworld
          version 10, tier L0, schema generation 0, 1.7 KiB
        layer 0: game:chest (id 4, opaque)
          game:items: 8 bytes
            33206170706c6573
            "3 apples"
    "#]],
    );
    check(
        &["-d", "overworld", "--block", "9", "71", "-7"],
        expect![[r#"
        block 9 71 -7 of game:overworld
          version 10, tier L0, schema generation 0, 1.7 KiB
        layer 0: game:oak_slab[type=bottom] (id 5, not opaque)
        layer 1: game:water (id 3, opaque)
    "#]],
    );
}

#[test]
fn nbt_of_a_block_is_shown_whole_as_snbt() {
    let sample = Sample::new();
    let nbt = nbt::payload(|chest| {
        chest.string("id", "minecraft:chest").expect("short");
        chest.string("custom name", "a \"b\" \\ c").expect("short");
        chest.byte("keep", 1);
        chest.short("s", -2);
        chest.long("when", 1 << 40);
        chest.doubles("at", &[0.5, -1.0]);
        chest.int_array("ints", &[1, -1]);
        chest.byte_array("bytes", &[1, 255]);
        chest.compound("tag", |tag| tag.int("Count", 64));
    });
    assert!(nbt.len() > 64);
    let world = sample.open();
    let items = world.catalog().component_id("game:items").expect("registered");
    let chest = CellLayer::base(BlockPos::new(3, 71, -11).local());
    world
        .transaction(|tx| tx.set_component(ChunkAt::new(Dimension::new(0), GROUND), chest, items, &nbt))
        .expect("the disk takes it");
    world.close().expect("the disk takes it");
    drop(world);
    let expected = concat!(
        r#"{id:"minecraft:chest","custom name":"a \"b\" \\ c",keep:1b,s:-2s,when:1099511627776L,"#,
        r#"at:[0.5d,-1.0d],ints:[I;1,-1],bytes:[B;1b,-1b],tag:{Count:64}}"#
    );
    let said = sample.cg("get", &["--block", "3", "71", "-11"]).good();
    assert!(said.ends_with(&format!("  game:items: {} bytes\n    {expected}\n", nbt.len())), "{said}");
    let found = sample.cg("get", &["--block", "3", "71", "-11", "--json"]).json();
    let found = &found["layers"][0]["components"][0];
    let hex: String = nbt.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!((&found["snbt"], &found["hex"]), (&json!(expected), &json!(hex)));
}

#[test]
fn another_dimension_is_found_by_the_end_of_its_name() {
    check(
        &["--dimension", "moon", "--block", "-112", "0", "32"],
        expect![[r#"
        block -112 0 32 of game:moon
          version 10, tier L0, schema generation 0, 56 B
        layer 0: game:stone (id 1, opaque)
    "#]],
    );
}

#[test]
fn a_script_reads_components_and_entities() {
    let found = Sample::new().cg("get", &["--json", "--chunk", "0", "4", "-1"]).json();
    assert_eq!(found["components"], json!([{ "component": "game:items", "instances": 1, "bytes": 8 }]));
    assert_eq!(found["entities"][0]["uuid"], SHEEP.to_string());
    assert_eq!(found["entities"][0]["position"], json!([4.5, 71.0, -8.75]));
    assert_eq!(found["tier"], "l0");
    let found = Sample::new().cg("get", &["--json", "--block", "3", "71", "-11"]).json();
    let items =
        json!([{ "component": "game:items", "bytes": 8, "hex": "33206170706c6573", "text": "3 apples" }]);
    assert_eq!(found["layers"][0]["components"], items);
}

#[test]
fn an_absent_chunk_and_a_damaged_one_are_told_apart() {
    let sample = Sample::new();
    let said = sample.cg("get", &["--chunk", "9", "9", "9"]);
    assert_eq!((said.code, said.out.as_str()), (4, ""));
    expect![[r#"
        cg: chunk 9 9 9 of game:overworld is not stored: it was never generated, or was deleted
    "#]]
    .assert_eq(&said.err);
    sample.spoil_ground();
    let said = sample.cg("get", &["--chunk", "0", "4", "-1"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    expect![[r#"
        cg: chunk 0, 4, -1 of dimension 0 is damaged (ChunkL0 row 0000000000000000c492492492492492492492492492492492492492492492c9): chunk header: entity offset needs 8 bytes and 3 are left (at byte 16); run `cg verify`, then restore it from a checkpoint or set it aside with `cg quarantine`
    "#]].assert_eq(&said.err);
}
