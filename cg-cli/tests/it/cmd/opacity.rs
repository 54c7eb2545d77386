//! `cg opacity`

use cg_format::{ChunkAt, Dimension, Space, key};
use cg_registry::{BlockOffer, Registration};
use cg_store::prelude::*;
use expect_test::expect;
use serde_json::json;

use super::{GROUND, Sample, text};

#[test]
fn a_map_that_is_wrong_is_found_and_drawn_again() {
    let sample = Sample::new();
    let at = ChunkAt::new(Dimension::new(0), GROUND);
    let before = sample.cg("hash", &[]).good();
    assert_eq!(sample.cg("opacity rebuild", &[]).good(), "2 tiles replaced\n", "there was none");
    assert_eq!(sample.cg("verify", &[]).code, 0);
    // A sound patch that says: nothing here hides anything.
    sample.spoil(Space::OpacityPatch, &key::opacity_patch(at), b"\0");
    let said = sample.cg("verify", &[]);
    assert_eq!(said.code, 1);
    expect![[r#"
        opacityMap 000000000000000095555555555555555555555555555555: the opacity map is wrong in 256 columns of the tile, first at x 0, z -16 of dimension 0: it says opaque nowhere, and by the chunks it is at y 64 to 70; it is a cache and no chunk is at fault: run `cg opacity rebuild`
        checked 3 chunkl0, 3 chunks, 2 entity, 6 index, 2 opacity tiles, 3 opacityMap, 1 references, 18 worldMeta
        1 problem found
    "#]].assert_eq(&said.out);
    assert_eq!(sample.cg("verify", &["--quick"]).code, 0, "the rows are sound");

    assert_eq!(sample.cg("opacity rebuild", &[]).good(), "1 tile replaced\n");
    assert_eq!(sample.cg("verify", &[]).code, 0);
    assert_eq!(sample.cg("opacity rebuild", &["--json"]).good(), "{\"replaced_tiles\":0}\n");
    assert_eq!(sample.cg("hash", &[]).good(), before);

    for _ in 0..2 {
        assert_eq!(sample.cg("opacity delete", &[]).good(), "the world keeps no opacity map\n");
    }
    assert_eq!(sample.cg("opacity delete", &["--json"]).good(), "{\"kept\":false}\n");
    let world = sample.open();
    assert!(!world.opacity().is_kept());
    world.close().expect("the disk takes it");
    drop(world);
    assert_eq!(sample.cg("hash", &[]).good(), before);
}

/// Blocks of the game with the opacity that an older `cg` gave them, one above the other in a chunk of the sample.
const OLD_RULES: [(&str, bool); 4] = [
    ("minecraft:oak_slab[type=double,waterlogged=false]", false),
    ("minecraft:white_shulker_box[facing=up]", true),
    ("minecraft:stone", true),
    ("mod:white_shulker_box[facing=up]", true),
];

fn with_old_rules() -> Sample {
    let sample = Sample::new();
    let world = sample.open();
    let offer =
        |(text, opaque): (&str, bool)| BlockOffer { opaque, ..BlockOffer::new(Name::new(text).unwrap()) };
    let blocks = OLD_RULES.map(offer).into();
    let catalog =
        world.registry().register(&Registration { blocks, ..Registration::default() }).expect("they are new");
    world
        .transaction(|tx| {
            let (schema, air) = (tx.catalog().current_schema(), tx.catalog().block_id(":air"));
            let mut chunk = Chunk::filled(air.expect("the sample has it"), &schema)?;
            for (y, (text, _)) in (0..).zip(OLD_RULES) {
                let block = catalog.block_id(text).expect("just registered");
                chunk.set_block(LocalPos::new(3, y * 2, 5), block, &schema)?;
            }
            tx.save(ChunkAt::new(Dimension::new(0), ChunkPos::constant(9, 0, 9)), chunk);
            Ok::<_, Box<dyn std::error::Error>>(())
        })
        .expect("the chunk is sound");
    world.close().expect("the disk takes it");
    sample
}

#[test]
fn the_table_of_the_game_comes_into_worlds_that_have_older_rules() {
    let sample = with_old_rules();
    let runs = |sample: &Sample| {
        let world = sample.open();
        let column =
            world.opacity().column(Dimension::new(0), 9 * 16 + 3, 9 * 16 + 5).expect("the map is sound");
        world.close().expect("the disk takes it");
        column.runs().to_vec()
    };
    let hash = sample.cg("hash", &[]).good();
    assert_eq!(sample.cg("opacity rebuild", &[]).good(), "3 tiles replaced\n");
    assert_eq!(runs(&sample), [2..=2, 4..=4, 6..=6]);

    assert_eq!(sample.cg("opacity rebuild", &["--game-table"]).good(), "2 blocks changed\n1 tile replaced\n");
    assert_eq!(runs(&sample), [0..=0, 4..=4, 6..=6]);
    assert_eq!(sample.cg("verify", &[]).code, 0);
    assert_eq!(sample.cg("hash", &[]).good(), hash, "no chunk was changed");
    let list = sample.cg("registry list", &["--list", "blocks"]).good();
    assert!(list.starts_with("schema generation 1\n"), "{list}");

    let again = sample.cg("opacity rebuild", &["--game-table", "--json"]).json();
    assert_eq!(again, json!({ "changed_blocks": 0, "replaced_tiles": 0 }));
    assert!(sample.cg("registry list", &[]).good().starts_with("schema generation 1\n"));
}

#[test]
fn a_pack_that_has_the_namespace_says_itself_what_its_blocks_hide() {
    let sample = with_old_rules();
    let pack = sample.beside("pack.json");
    let manifest = r#"{ "pack": "vanilla", "version": "1", "namespaces": ["minecraft"] }"#;
    std::fs::write(&pack, manifest).expect("the directory is ours");
    sample.cg("registry replace", &["--pack", text(&pack), "--yes"]).good();
    let said = sample.cg("opacity rebuild", &["--game-table"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    expect![[r#"
        cg: the manifest of pack `vanilla` says which blocks of `minecraft` hide what is behind them; nothing was changed
    "#]]
    .assert_eq(&said.err);
}
