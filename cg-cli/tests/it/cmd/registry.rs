//! `cg registry`

use std::path::PathBuf;

use cg_store::prelude::*;
use expect_test::expect;
use serde_json::json;

use super::{Sample, run, text};

const POWER: &str = r#"{
    "pack": "power", "version": "1.0", "namespaces": ["power"],
    "components": [{ "name": "power:energy", "size": 4 }],
    "blocks": [{ "name": "power:battery", "components": ["power:energy"] }]
}"#;

const GRABBY: &str = r#"{
    "pack": "grabby", "version": "1", "namespaces": ["grabby"],
    "blocks": [{ "name": "grabby:thing", "components": ["grabby:missing"] }]
}"#;

fn pack(sample: &Sample, json: &str) -> PathBuf {
    let file = sample.beside("pack.json");
    std::fs::write(&file, json).expect("the directory is ours");
    file
}

#[test]
fn every_list_is_shown_with_what_its_entries_are() {
    expect![[r#"
        schema generation 0
        blocks: 6
              0  :air  (not opaque)
              1  game:stone
              2  game:grass_block
              3  game:water
              4  game:chest  with game:items
              5  game:oak_slab[type=bottom]  (not opaque)
        components: 1
              0  game:items  variable size
        entities: 1
              0  game:sheep
        structures: 0
        dimensions: 2
              0  game:overworld
              1  game:moon
        sides: 3
              0  :lost_components
              1  :stale
              2  game:light
    "#]]
    .assert_eq(&Sample::new().cg("registry list", &[]).good());
}

#[test]
fn a_script_reads_one_list() {
    let found = Sample::new().cg("registry list", &["--list", "components", "--json"]).json();
    let items = json!({
        "id": 0, "name": "game:items", "width_bytes": null, "default_hex": "", "replaced_by": null,
    });
    assert_eq!(found["lists"], json!({ "components": [items] }));
}

#[test]
fn a_plan_is_read_before_anything_happens() {
    let sample = Sample::new();
    let (file, before) = (pack(&sample, POWER), sample.files());
    expect![[r#"
        accepted: no stored chunk is touched
          free     pack `power` 1.0 is new
          free     pack `power` registers 1 component: `power:energy`; id 1
          free     pack `power` registers 1 block: `power:battery`; id 6
    "#]]
    .assert_eq(&sample.cg("registry plan", &["--pack", text(&file)]).good());
    let found = sample.cg("registry plan", &["--pack", text(&file), "--json"]).json();
    assert_eq!((&found["accepted"], &found["unchanged"]), (&json!(true), &json!(false)));
    assert!(sample.files() == before, "planning changed the world");
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

#[test]
fn ten_thousand_illegal_values_end_in_a_bounded_report() {
    let dir = tempfile::tempdir().expect("a directory for the test");
    let path = dir.path().join("world");
    let world = World::builder().packs(&[mill(9)]).create(&path).expect("is created");
    let catalog = world.catalog();
    let id = |name| catalog.block_id(name).expect("offered");
    let (machine, level) = (id("mill:machine"), catalog.component_id("mill:level").expect("offered"));
    let mut chunk = Chunk::filled(machine, &catalog.current_schema()).expect("known");
    for cell in LocalPos::all() {
        chunk.set_component(CellLayer::base(cell), level, &[9]).expect("has it");
    }
    let saved = world.transaction(|tx| {
        for x in 0..3 {
            let at = ChunkAt::new(cg_format::Dimension::new(0), ChunkPos::constant(x, 0, 0));
            tx.save(at, chunk.clone());
        }
        Ok::<_, Error>(())
    });
    saved.expect("the disk takes it");
    drop(world);
    let check = |args: &[&str]| run(&[&["registry", "check", text(&path)], args].concat());
    expect![[r#"
        checked 3 chunks
        no illegal value found
    "#]]
    .assert_eq(&check(&[]).good());
    drop(World::builder().packs(&[mill(5)]).open(&path).expect("narrower types are no refusal"));
    let said = check(&[]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    let lines: Vec<_> = said.out.lines().collect();
    assert_eq!(lines.len(), 103);
    expect!["cell 0, 0, 0 (layer 0) of chunk 0, 0, 0 of dimension 0: component `mill:level` of pack `mill`: `level` is 9, allowed: 0 to 5"].assert_eq(lines[0]);
    assert_eq!(lines[100..], ["and 12,188 more", "checked 3 chunks", "12,288 illegal values found"]);
    let found = check(&["--json"]).json();
    assert_eq!(
        (&found["ok"], &found["illegal"], &found["damaged"]),
        (&json!(false), &json!(12_288), &json!(0))
    );
    assert_eq!(found["values"].as_array().map(Vec::len), Some(100));
}

#[test]
fn a_refused_plan_and_a_broken_manifest_exit_with_one() {
    let sample = Sample::new();
    let file = pack(&sample, GRABBY);
    let said = sample.cg("registry plan", &["--pack", text(&file)]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    expect![[r#"
        refused for 1 reason, the world is unchanged
          REFUSED  block `grabby:thing` of pack `grabby`: block `grabby:thing` names component `grabby:missing`, which is not registered
          free     pack `grabby` 1 is new
    "#]].assert_eq(&said.out);
    let said = sample.cg("registry replace", &["--pack", text(&file), "--yes", "--json"]);
    assert_eq!((said.code, &said.json()["written"]), (1, &json!(false)));

    let file = pack(&sample, "{}");
    let said = sample.cg("registry plan", &["--pack", text(&file)]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.starts_with(&format!("cg: {} is no pack manifest: ", text(&file))), "{}", said.err);
}

#[test]
fn blocks_are_replaced_by_what_a_new_pack_brings() {
    let sample = Sample::new();
    let (file, before) = (pack(&sample, POWER), sample.cg("hash", &[]).good());
    let args = [
        "--pack",
        text(&file),
        "--block",
        "game:chest",
        "power:battery",
        "--block",
        "game:oak_slab",
        "game:stone",
    ];

    let said = sample.cg("registry replace", &args);
    assert_eq!(said.code, 2);
    assert_eq!(said.err, "cg: this is what would change; nothing was changed, run it again with --yes\n");
    assert!(said.out.ends_with("to be replaced: 2 blocks in 1 chunk\n"), "{}", said.out);
    assert_eq!(sample.cg("hash", &[]).good(), before);

    let said = sample.cg("registry replace", &[&args[..], &["--yes", "--json"]].concat());
    assert_eq!(said.code, 0, "{said:?}");
    let found = said.json();
    assert_eq!((&found["written"], &found["blocks"], &found["chunks"]), (&json!(true), &json!(2), &json!(1)));
    let chest = sample.cg("get", &["--json", "--block", "3", "71", "-11"]).json();
    assert_eq!(chest["layers"][0]["block"], "power:battery");
    assert_eq!(chest["layers"][0]["components"][0]["hex"], "00000000");
    let slab = sample.cg("get", &["--json", "--block", "9", "71", "-7"]).json();
    assert_eq!(
        (&slab["layers"][0]["block"], &slab["layers"][1]["block"]),
        (&json!("game:stone"), &json!("game:water"))
    );
    assert_eq!(sample.cg("verify", &[]).code, 0);
}

#[test]
fn a_block_that_is_not_there_is_wrong_usage() {
    let sample = Sample::new();
    let said = sample.cg("registry replace", &["--block", "game:stone", "game:gold", "--yes"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert_eq!(
        said.err,
        "cg: the world has no block `game:gold`; `cg registry list` shows what it has, and --register adds it\n"
    );

    let (file, before) = (pack(&sample, POWER), sample.files());
    let said = sample
        .cg("registry replace", &["--pack", text(&file), "--block", "game:gold", "power:battery", "--yes"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(sample.files() == before, "the pack was applied although the names do not fit");
}

#[test]
fn a_block_that_the_world_lacks_is_registered_if_asked() {
    let sample = Sample::new();
    let (args, before) = (
        [
            "--block",
            "game:stone",
            "minecraft:oak_leaves[distance=1]",
            "--block",
            "game:chest",
            "minecraft:barrel",
            "--register",
        ],
        sample.files(),
    );
    let leaves = "minecraft:oak_leaves[distance=1,persistent=false,waterlogged=false]";
    let barrel = "minecraft:barrel[facing=north,open=false]";
    let said = sample.cg("registry replace", &args);
    assert_eq!(said.code, 2);
    assert!(
        said.out.starts_with(&format!("to be registered: `{leaves}`\nto be registered: `{barrel}`\n")),
        "{}",
        said.out
    );
    assert!(sample.files() == before, "it was registered without --yes");

    let found = sample.cg("registry replace", &[&args[..], &["--yes", "--json"]].concat()).json();
    assert_eq!(found["registered"], json!([leaves, barrel]));
    let listed = sample.cg("registry list", &["--list", "blocks"]).good();
    assert!(listed.contains(&format!("  6  {leaves}  (not opaque)\n")), "{listed}");
    assert!(listed.contains(&format!("  7  {barrel}  with minecraft:block_entity\n")), "{listed}");
    let chest = sample.cg("get", &["--json", "--block", "3", "71", "-11"]).json();
    assert_eq!(chest["layers"][0]["block"], barrel);
    assert_eq!(sample.cg("verify", &[]).code, 0);

    let said = sample.cg("registry replace", &["--block", "game:water", "no name", "--register", "--yes"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert_eq!(
        said.err,
        "cg: `no name` cannot be registered: it has no namespace; write `namespace:identifier`\n"
    );
}

#[test]
fn a_block_that_two_pairs_name_is_refused() {
    let sample = Sample::new();
    let replace = |pairs: [&str; 6]| sample.cg("registry replace", &[&pairs[..], &["--yes"]].concat());
    let said = replace(["--block", "game:stone", "game:water", "--block", "game:stone", "game:chest"]);
    let refused =
        "cg: two --block name `game:stone`, and put different blocks in its place; name each block once\n";
    assert_eq!((said.code, said.err.as_str()), (2, refused));
    let said = replace([
        "--block",
        "game:oak_slab",
        "game:water",
        "--block",
        "game:oak_slab[type=bottom]",
        "game:chest",
    ]);
    assert_eq!((said.code, said.err), (2, refused.replace("game:stone", "game:oak_slab[type=bottom]")));
    replace(["--block", "game:stone", "game:water", "--block", "game:stone", "game:water"]).good();
}
