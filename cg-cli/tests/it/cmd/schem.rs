//! `cg schem`: what it prints and what it exits with.

use std::path::{Path, PathBuf};

use cg_snapshot::schem::{SchemHead, SchemWriter};
use expect_test::expect;
use serde_json::json;

use super::{Sample, run, text};
use crate::worlds;

/// Three blocks in a row: stone, a chest that says its properties in another order, and stone.
fn made(folder: &Path) -> PathBuf {
    let mut writer = SchemWriter::new(Vec::new(), &SchemHead::sized([3, 1, 1])).expect("a head");
    writer
        .blocks(&["minecraft:stone", "minecraft:oak_stairs[half=top,facing=east]"], &[2, 1])
        .expect("a palette");
    writer.cells(&[0, 1, 0]).expect("memory takes it");
    writer.block_entities(&[]).expect("none");
    let path = folder.join("three.schem");
    std::fs::write(&path, writer.finish(&[]).expect("none")).expect("the disk takes it");
    path
}

#[test]
fn info_counts_what_the_file_says() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = made(folder.path());
    let said = run(&["--json", "schem", "info", text(&file)]);
    assert_eq!(said.code, 0);
    let expected = json!({
        "version": 3, "data_version": 3955, "width": 3, "height": 1, "length": 1, "offset": [0, 0, 0],
        "states": {"minecraft:stone": 2, "minecraft:oak_stairs[half=top,facing=east]": 1},
        "block_entities": {}, "entities": {}, "biomes": {}, "palette": 2, "unknown_fields": [],
    });
    assert_eq!(said.json(), expected);
    expect![[r#"
        Sponge schematic of version 3, data version 3955
        3 × 1 × 1 (x, y, z): 3 blocks
        offset: 0 0 0
        states:
                       2  minecraft:stone
                       1  minecraft:oak_stairs[half=top,facing=east]
    "#]]
    .assert_eq(&run(&["schem", "info", text(&file)]).good());
}

#[test]
fn a_schematic_goes_into_a_new_world_and_comes_out_of_it() {
    let folder = tempfile::tempdir().expect("a directory");
    let (file, world) = (made(folder.path()), folder.path().join("world"));
    let (file, world) = (text(&file), text(&world));
    // Where JSON is asked for, and where coordinates end, does not matter.
    let said =
        run(&["schem", "import", file, world, "--at", "-2", "-64", "15", "--dim", "the_end", "--json"]);
    let expected = json!({
        "blocks": 3, "chunks": 2, "new_states": 3, "block_entities": 0, "beside_their_block": 0, "entities": 0,
        "rekeyed": 0, "biomes": 0, "transactions": 1, "not_carried": {},
    });
    assert_eq!((said.code, said.json()), (0, expected));
    let out = folder.path().join("out.schem");
    let out = text(&out);
    let corners = ["--box", "0", "-64", "15", "-2", "-64", "15"];
    let said = run(&[&["schem", "export", world, out, "--json", "--dim", "the_end"], &corners[..]].concat());
    let expected = json!({
        "width": 3, "height": 1, "length": 1, "data_version": 3955, "blocks": 3, "states": 2, "block_entities": 0,
        "entities": 0, "biomes": 0, "absent_chunks": 0, "not_exported": {},
    });
    assert_eq!((said.code, said.json()), (0, expected));
    let states = run(&["--json", "schem", "info", out]).json()["states"].clone();
    let stairs = "minecraft:oak_stairs[facing=east,half=top,shape=straight,waterlogged=false]";
    assert_eq!(states, json!({"minecraft:stone": 2, (stairs): 1}));
    expect![[r#"
        imported: blocks 3, chunks 1, block entities 0, entities 0, biomes 0
        in one transaction
    "#]]
    .assert_eq(&run(&["schem", "import", file, world, "--at", "0", "0", "0"]).good());
    expect![[r#"
        chunks that are not stored, written as air: 1
        exported: 1 × 1 × 17 blocks, states 2, block entities 0, entities 0, biomes 0, data version 1
    "#]]
    .assert_eq(
        &run(&[
            &["schem", "export", world, text(&folder.path().join("more.schem")), "--data-version", "1"],
            &["--box", "0", "0", "0", "0", "0", "16"][..],
        ]
        .concat())
        .good(),
    );
    // What is there is not overwritten.
    let said = run(&[&["schem", "export", world, out], &corners[..]].concat());
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert_eq!(said.err, format!("cg: {out} is there already; delete it or choose another name\n"));
    let names: Vec<_> =
        std::fs::read_dir(folder.path()).expect("a folder").map(|it| it.unwrap().path()).collect();
    assert!(names.iter().all(|path| path.extension().is_none_or(|it| it == "schem")), "{names:?}");
}

#[test]
fn what_is_asked_for_wrongly_makes_nothing() {
    let folder = tempfile::tempdir().expect("a directory");
    let (file, world) = (made(folder.path()), folder.path().join("world"));
    let (file, world) = (text(&file), text(&world));
    let missing = folder.path().join("missing.schem");
    let said = run(&["schem", "info", text(&missing)]);
    let message = format!("cg: {}: No such file or directory (os error 2)\n", missing.display());
    assert_eq!((said.code, said.err), (4, message));
    assert_eq!(run(&["schem", "import", file, world]).code, 2);
    assert_eq!(run(&["schem", "import", file, world, "--at", "1", "2"]).code, 2);
    assert_eq!(run(&["schem", "import", text(&missing), world, "--at", "1", "2", "3"]).code, 4);
    let said = run(&["schem", "import", file, world, "--at", "1", "2", "3", "--dim", "end@2"]);
    let message = "cg: `end@2` cannot be the name of a dimension: '@' at byte 13 is not allowed there\n";
    assert_eq!((said.code, said.err.as_str()), (2, message));
    assert!(!Path::new(world).exists());
    let sample = Sample::new();
    let out = sample.beside("out.schem");
    let said = sample.cg("schem export", &[text(&out)]);
    assert_eq!(said.err, "cg: say which box: --box X0 Y0 Z0 X1 Y1 Z1, both corners included\n");
    let said = sample.cg("schem export", &[text(&out), "--box", "0", "0", "0", "65535", "0", "0"]);
    let message = "cg: the box is 65536 × 1 × 1 blocks, and a schematic has at most 65535 along each side\n";
    assert_eq!((said.code, said.err.as_str()), (2, message));
    let edge = i64::MAX.to_string();
    let said = run(&["schem", "import", file, world, "--at", &edge, "0", "0"]);
    let message = format!("cg: at ({edge}, 0, 0) the schematic would reach beyond the world\n");
    assert_eq!((said.code, said.err), (2, message));
    assert!(!Path::new(world).exists());
}

#[test]
fn a_name_that_stands_twice_in_a_palette_is_counted_whole() {
    let folder = tempfile::tempdir().expect("a directory");
    let mut writer = SchemWriter::new(Vec::new(), &SchemHead::sized([3, 1, 1])).expect("a head");
    writer.blocks(&["minecraft:stone", "minecraft:stone"], &[2, 1]).expect("a palette");
    writer.cells(&[0, 1, 0]).expect("memory takes it");
    writer.block_entities(&[]).expect("none");
    let path = folder.path().join("twice.schem");
    std::fs::write(&path, writer.finish(&[]).expect("none")).expect("the disk takes it");
    let said = run(&["--json", "schem", "info", text(&path)]);
    assert_eq!((said.code, said.json()["states"].clone()), (0, json!({"minecraft:stone": 3})));
}

#[test]
fn what_is_no_schematic_is_a_finding_with_the_files_name() {
    let Some(worlds) = worlds::folder() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let world = folder.path().join("world");
    for file in [
        "corrupt/made_depot_index_past_palette.schem",
        "corrupt/made_depot_width_plus_1.schem",
        "corrupt/made_truncated_depot.schem",
        "corrupt/not_nbt_base64_iridium_island.schem",
        "schem/v1_fawe_sponge1.schem",
        "schem/other_mcedit_prismarine_viking.schematic",
    ] {
        let path = worlds.join(file);
        let info = run(&["schem", "info", text(&path)]);
        assert_eq!((info.code, info.out.as_str()), (1, ""), "{file}");
        assert!(info.err.starts_with(&format!("cg: {}: ", path.display())), "{}", info.err);
        let import = run(&["schem", "import", text(&path), text(&world), "--at", "0", "0", "0"]);
        assert_eq!((import.code, import.err), (1, info.err), "{file}");
    }
    assert!(!world.exists());
}
