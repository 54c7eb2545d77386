//! Numbers and names that mean nothing.

use std::ptr::{null, null_mut};

use cherrygrove::*;

use crate::support::*;

#[test]
fn numbers_that_mean_nothing_are_invalid() {
    let game = Game::in_memory();
    let (w, b) = (game.world, game.binding);
    let mut handle = 0;
    let tx = new_tx(w);
    let column = game.column(0, 0);
    let entity = game.pig([1; 16]);
    let far = cg_pos { x: i64::MAX, y: 0, z: 0 };
    let backwards = cg_box { min: cg_pos { x: 1, y: 0, z: 0 }, max: cg_pos::default() };
    // SAFETY: all memory is of this function.
    unsafe {
        let open = |options: cg_options, e| cg_world_open(text(":memory:"), &raw const options, &mut 0, e);
        fails(result::INVALID, "mode 4", |e| open(cg_options { mode: 4, ..options() }, e));
        fails(result::INVALID, "durability 6", |e| open(cg_options { durability: 6, ..options() }, e));
        fails(result::INVALID, "on_damage 2", |e| open(cg_options { on_damage: 2, ..options() }, e));
        fails(result::INVALID, "reserved", |e| open(cg_options { reserved: 1, ..options() }, e));
        let json = text("{");
        let manifests = cg_options { manifests: &raw const json, manifest_count: 1, ..options() };
        fails(result::INVALID, "manifest 0 is not a pack manifest", |e| open(manifests, e));
        fails(result::INVALID, "path is empty", |e| cg_world_open(text(""), null(), &raw mut handle, e));
        let not_text = cg_str { ptr: b"a\xff".as_ptr().cast(), len: 2 };
        fails(result::INVALID, "no UTF-8 at byte 1", |e| cg_world_open(not_text, null(), &raw mut handle, e));
        fails(result::INVALID, "list 5", |e| cg_names_count(w, 5, &mut 0, e));
        fails(result::INVALID, "flags", |e| cg_column_save(w, b, &raw const column, 2, null_mut(), e));
        fails(result::INVALID, "flags", |e| cg_tx_entity_put(tx, b, &raw const entity, 2, e));
        let put = |entity: cg_entity, e| cg_tx_entity_put(tx, b, &raw const entity, 1, e);
        fails(result::INVALID, "kind 2", |e| put(cg_entity { kind: 2, ..entity }, e));
        fails(result::INVALID, "reserved", |e| put(cg_entity { reserved: 1, ..entity }, e));
        for fraction in [1.0, -0.1, f32::NAN, f32::INFINITY] {
            let (result, message) =
                failed(|e| put(cg_entity { fraction: [0.0, fraction, 0.0], ..entity }, e));
            assert_eq!(result, result::INVALID, "{message}");
        }
        fails(result::INVALID, "durability 9", |e| cg_tx_commit(tx, 9, null_mut(), e));
        fails(result::INVALID, "", |e| cg_tx_delete_chunk(tx, 0, far, e));
        fails(result::INVALID, "side 65536", |e| {
            cg_tx_set_side(tx, 0, cg_pos::default(), 65_536, cg_bytes::NONE, e)
        });
        fails(result::INVALID, "no name", |e| cg_tx_property(tx, text("no name"), cg_bytes::NONE, e));
        fails(result::INVALID, "1 to 512", |e| cg_tx_object_put(tx, cg_bytes::NONE, cg_bytes::NONE, e));
        fails(result::INVALID, "min above", |e| {
            cg_records_in(w, 0, &raw const backwards, &raw mut handle, e)
        });
        fails(result::INVALID, "min above", |e| {
            cg_keep_loaded(w, 0, &raw const backwards, &raw mut handle, e)
        });
        let all = cg_box { min: cg_pos { x: -1 << 40, y: 0, z: 0 }, max: cg_pos { x: 1 << 40, y: 0, z: 0 } };
        fails(result::TOO_LARGE, "", |e| cg_keep_loaded(w, 0, &raw const all, &raw mut handle, e));
        fails(result::INVALID, "now is negative", |e| cg_tick(w, -1, null(), 0, 0, null_mut(), e));
        fails(result::INVALID, "capacity", |e| cg_queue_new(w, 0, &raw mut handle, e));
        let mut chunk = 0;
        ok(|e| cg_chunk_new(w, 0, &raw mut chunk, e));
        let cell = |x, layer| cg_cell { x, y: 0, z: 0, layer };
        fails(result::INVALID, "is in no chunk", |e| cg_chunk_block(chunk, cell(16, 0), &mut 0, e));
        fails(result::INVALID, "layer 2 is not the next", |e| cg_chunk_set_block(chunk, cell(0, 2), 0, e));
        fails(result::INVALID, "", |e| cg_chunk_set_block(chunk, cell(0, 0), 999_999, e));
        fails(result::INVALID, "", |e| cg_chunk_set_component(chunk, cell(0, 0), 999_999, cg_bytes::NONE, e));
        fails(result::INVALID, "order 3", |e| cg_chunk_cells(chunk, 3, vec![0; 4096].as_mut_ptr(), 4096, e));
        fails(result::INVALID, "count is 4095", |e| {
            cg_chunk_cells(chunk, 0, vec![0; 4096].as_mut_ptr(), 4095, e)
        });
        fails(result::INVALID, "", |e| cg_chunk_new(w, u64::MAX, &raw mut handle, e));
        let mut settings = std::mem::zeroed::<cg_settings>();
        settings.struct_size = size_of_val(&settings) as u32;
        settings.present = 1 << 19;
        fails(result::INVALID, "present", |e| cg_tx_settings(tx, &raw const settings, e));
        (settings.present, settings.raining) = (1 << 10, 2);
        fails(result::INVALID, "raining is 2", |e| cg_tx_settings(tx, &raw const settings, e));
        (settings.present, settings.thumbnail) = (1 << 4, bytes(b"no picture"));
        fails(result::INVALID, "thumbnail", |e| cg_tx_settings(tx, &raw const settings, e));
        gives(CG_UNCHANGED, |e| cg_tx_commit(tx, 0, null_mut(), e));
        for built_for in [0, 2, 1 << 16, u32::MAX] {
            fails(result::UNSUPPORTED, "has version 0.1", |e| cg_abi_check(built_for, e));
        }
        ok(|e| cg_abi_check(CG_ABI_VERSION, e));
        assert_eq!((cg_abi_version(), copied_text(cg_kind_code(-11))), (CG_ABI_VERSION, "invalid".into()));
        assert_eq!(
            (copied_text(cg_kind_code(-99)), copied_text(cg_metric_name(usize::MAX))),
            (String::new(), String::new())
        );
        assert!(copied_text(cg_build_info()).starts_with("cherrygrove 0.1.0"));
    }
    game.close();
}

#[test]
fn entities_of_a_column_that_are_nowhere_are_invalid() {
    let game = Game::in_memory();
    let stone = [1_u32];
    let layer = uniform(&stone);
    let section = section(&layer);
    let sound = game.pig([1; 16]);
    let cases = [
        ([sound, sound], "is in it twice"),
        (
            [sound, cg_entity { id: [2; 16], dimension: game.dimension + 1, ..sound }],
            "an entity is in dimension 1",
        ),
        ([sound, cg_entity { id: [2; 16], fraction: [0.0, 1.0, 0.0], ..sound }], ""),
        ([sound, cg_entity { id: [2; 16], fraction: [f32::NAN, 0.0, 0.0], ..sound }], ""),
        ([sound, cg_entity { id: [2; 16], kind: 2, ..sound }], "kind of entity 2 is not in the binding"),
        ([sound, cg_entity { id: [2; 16], reserved: 1, ..sound }], "reserved"),
        ([sound, cg_entity { id: [2; 16], nbt: cg_bytes { ptr: null(), len: 1 }, ..sound }], "null pointer"),
    ];
    for (entities, part) in &cases {
        let column = cg_column {
            sections: &raw const section,
            section_count: 1,
            entities: entities.as_ptr(),
            entity_count: 2,
            ..game.column(0, 0)
        };
        let mut error = error();
        // SAFETY: all memory is of this function.
        let found = unsafe {
            cg_column_save(game.world, game.binding, &raw const column, 0, null_mut(), &raw mut error)
        };
        let message = message(&error);
        assert!(found == result::INVALID && message.contains(part), "{part}: {found} {message}");
        assert_eq!((error.has_place, error.dimension), (1, game.dimension), "{message}");
    }
    assert_eq!(game.load(0, 0), None);
    game.close();
}

#[test]
fn a_binding_that_contradicts_itself_is_refused() {
    let game = Game::in_memory();
    let blocks = ["game:air", "game:b[y=1,x=2]", "game:b[x=2,y=1]"].map(|name| cg_block {
        name: text(name),
        flags: 0,
        reserved: 0,
    });
    let biomes = [cg_biome { name: text("game:plains"), number: 5, reserved: 0 }];
    let sound = cg_binding_desc { placeholder: 1, block_count: 2, ..desc(&blocks, &biomes, &[]) };
    let bad = [cg_block { flags: 4, ..blocks[0] }];
    let unnamed = [cg_block { name: text("air"), ..blocks[0] }];
    let cases = [
        (cg_binding_desc { block_count: 3, ..sound }, "block 1 and 2 are both named `game:b[x=2,y=1]`"),
        (cg_binding_desc { block_count: 0, ..sound }, "the placeholder is 1, and there are 0"),
        (cg_binding_desc { placeholder: 2, ..sound }, "the placeholder is 2"),
        (cg_binding_desc { air: 2, ..sound }, "air is 2"),
        (cg_binding_desc { biome_placeholder: 4, ..sound }, "the placeholder of biomes is 4"),
        (cg_binding_desc { layer_count: 0, ..sound }, "layer_count is 0"),
        (cg_binding_desc { layer_count: 3, ..sound }, "layer_count is 3"),
        (cg_binding_desc { order: 3, ..sound }, "order 3"),
        (cg_binding_desc { word_bits: 8, ..sound }, "word_bits is 8"),
        (cg_binding_desc { biome_side_log2: 3, ..sound }, "biome_side_log2 is 3"),
        (cg_binding_desc { widths: 0b1111_1111, ..sound }, "widths is 255"),
        (cg_binding_desc { widths: 1 << 17, ..sound }, "widths is 131072"),
        (cg_binding_desc { reserved: 1, ..sound }, "reserved"),
        (cg_binding_desc { blocks: bad.as_ptr(), ..sound }, "flags of block 0 are 0x4"),
        (cg_binding_desc { blocks: unnamed.as_ptr(), ..sound }, "block 0: `air` is no name"),
        (cg_binding_desc { blocks: null(), ..sound }, "blocks is a null pointer"),
        (cg_binding_desc { entity_count: 1, entities: null(), ..sound }, "entities is a null pointer"),
    ];
    // SAFETY: all memory is of this function.
    unsafe {
        for (desc, part) in &cases {
            let mut binding = 9;
            fails(result::INVALID, part, |e| cg_binding_new(game.world, desc, &raw mut binding, e));
            assert_eq!(binding, 0);
        }
        let mut binding = 0;
        ok(|e| cg_binding_new(game.world, &raw const sound, &raw mut binding, e));
        let (mut ids, mut text_handle, mut found) = ([0; 2], 0, [0; 2]);
        ok(|e| cg_binding_ids(binding, ids.as_mut_ptr(), 2, e));
        fails(result::INVALID, "has 2 blocks", |e| cg_binding_ids(binding, ids.as_mut_ptr(), 1, e));
        let names = [text("game:air"), text("game:b[y=1,x=2]")];
        ok(|e| cg_names_find(game.world, 0, names.as_ptr(), 2, found.as_mut_ptr(), e));
        assert_eq!(found, ids);
        ok(|e| cg_binding_unknown(binding, &raw mut text_handle, e));
        let mut json = cg_bytes::NONE;
        ok(|e| cg_bytes_of(text_handle, &raw mut json, e));
        let json = String::from_utf8(copied(json)).expect("UTF-8");
        assert_eq!(
            json,
            r#"{"blocks":["game:stone","game:chest[side=north,wet=true]","game:unknown"],"entities":["game:pig","game:player"]}"#
        );
    }
    game.close();
}
