//! Transactions, and what is beside columns: entities, properties, objects, records, chunks.

use std::ptr::{null, null_mut};

use cherrygrove::*;

use crate::support::*;

const ORIGIN: cg_pos = cg_pos { x: 0, y: 0, z: 0 };

/// The bytes of a text, which is released.
fn taken(handle: cg_handle) -> Vec<u8> {
    let mut lent = cg_bytes { ptr: null(), len: 0 };
    // SAFETY: all memory is of this function.
    ok(|e| unsafe { cg_bytes_of(handle, &raw mut lent, e) });
    let bytes = copied(lent);
    // SAFETY: it takes no memory.
    assert_eq!(unsafe { cg_release(handle) }, CG_OK);
    bytes
}

/// All rows of a cursor, as what is read from them.
fn rows<T>(cursor: cg_handle, cap: usize, read: impl Fn(&cg_row) -> T) -> Vec<T> {
    let mut all = Vec::new();
    loop {
        // SAFETY: zeros are a row.
        let (mut rows, mut n) = (vec![unsafe { std::mem::zeroed::<cg_row>() }; cap], 0);
        // SAFETY: all memory is of this function.
        ok(|e| unsafe { cg_cursor_next(cursor, rows.as_mut_ptr(), cap, &raw mut n, e) });
        if n == 0 {
            // SAFETY: it takes no memory.
            assert_eq!(unsafe { cg_release(cursor) }, CG_OK);
            return all;
        }
        all.extend(rows[..n].iter().map(&read));
    }
}

#[test]
fn properties_and_objects_are_written_listed_and_removed() {
    let game = Game::in_memory();
    let (w, tx, mut handle) = (game.world, new_tx(game.world), 0);
    // SAFETY: all memory is of this function.
    unsafe {
        ok(|e| cg_tx_property(tx, text("game:b"), bytes(b"two"), e));
        ok(|e| cg_tx_property(tx, text("game:a"), bytes(b""), e));
        for key in 0..10_u8 {
            ok(|e| cg_tx_object_put(tx, bytes(&[7, key]), bytes(&vec![key; usize::from(key)]), e));
        }
        commit(tx);
        ok(|e| cg_property_get(w, text("game:a"), &raw mut handle, e));
        assert_eq!(taken(handle), b"");
        gives(CG_ABSENT, |e| cg_property_get(w, text("game:c"), &raw mut handle, e));
        assert_eq!(handle, 0);
        ok(|e| cg_property_list(w, text("game:"), &raw mut handle, e));
        let found = rows(handle, 1, |row| (copied(row.key), copied(row.bytes)));
        assert_eq!(found, [(b"game:a".to_vec(), b"".to_vec()), (b"game:b".to_vec(), b"two".to_vec())]);
        let mut version = 0;
        ok(|e| cg_object_get(w, bytes(&[7, 3]), &raw mut handle, &raw mut version, e));
        let first = version;
        assert_eq!(taken(handle), [3; 3]);
        ok(|e| cg_tx_object_put(tx, bytes(&[7, 3]), bytes(b"new"), e));
        ok(|e| cg_tx_object_delete(tx, bytes(&[7, 5]), e));
        ok(|e| cg_tx_property(tx, text("game:b"), cg_bytes::NONE, e));
        commit(tx);
        ok(|e| cg_object_get(w, bytes(&[7, 3]), &raw mut handle, &raw mut version, e));
        assert_eq!((taken(handle), version), (b"new".to_vec(), first + 1));
        gives(CG_ABSENT, |e| cg_property_get(w, text("game:b"), &raw mut handle, e));
        ok(|e| cg_object_list(w, bytes(&[7]), &raw mut handle, e));
        let found = rows(handle, 4, |row| (copied(row.key), row.version >= first));
        let keys: Vec<u8> = found.iter().map(|(key, _)| key[1]).collect();
        assert_eq!(keys, [0, 1, 2, 3, 4, 6, 7, 8, 9]);
        ok(|e| cg_object_list(w, bytes(&[8]), &raw mut handle, e));
        assert!(rows(handle, 4, |_| ()).is_empty());
    }
    game.close();
}

#[test]
fn entities_have_versions_components_and_a_binding() {
    let game = Game::in_memory();
    let (w, b, tx) = (game.world, game.binding, new_tx(game.world));
    let id = [9; 16];
    let player = cg_entity {
        kind: 1,
        block: cg_pos { x: -1, y: 70, z: 1 << 40 },
        fraction: [0.5, 0.0, 0.25],
        nbt: bytes(b"player"),
        ..game.pig(id)
    };
    let (mut handle, mut view, mut version) = (0, null::<cg_entity>(), 7);
    // SAFETY: all memory is of this function, and a view is lent until its handle is released.
    unsafe {
        gives(CG_ABSENT, |e| {
            cg_entity_get(w, b, id.as_ptr(), &raw mut handle, &raw mut view, &raw mut version, e)
        });
        assert_eq!((handle, view, version), (0, null(), 0));
        ok(|e| cg_tx_expect_entity(tx, id.as_ptr(), 0, e));
        ok(|e| cg_tx_entity_put(tx, b, &raw const player, 1, e));
        commit(tx);
        ok(|e| cg_entity_get(w, b, id.as_ptr(), &raw mut handle, &raw mut view, &raw mut version, e));
        assert_eq!(
            ((*view).kind, (*view).block, (*view).fraction, version > 0),
            (1, player.block, player.fraction, true)
        );
        assert_eq!(copied((*view).nbt), b"player");
        assert_eq!(cg_release(handle), CG_OK);
        // A component of the game's own, and a version that is old by then.
        let name =
            cg_name { name: text("game:health"), flags: 0, width: 4, components: null(), component_count: 0 };
        let mut health = 0;
        ok(|e| cg_names_register(w, 1, &raw const name, 1, &raw mut health, e));
        ok(|e| cg_tx_expect_entity(tx, id.as_ptr(), version, e));
        ok(|e| cg_tx_entity_component(tx, id.as_ptr(), health, bytes(&[1, 2, 3, 4]), e));
        commit(tx);
        ok(|e| cg_tx_expect_entity(tx, id.as_ptr(), version, e));
        ok(|e| cg_tx_entity_delete(tx, id.as_ptr(), e));
        for _ in 0..2 {
            fails(result::CONFLICT, "expected was", |e| cg_tx_commit(tx, 0, null_mut(), e));
        }
        // An NBT that is put again leaves the component.
        let again = new_tx(w);
        ok(|e| cg_tx_entity_put(again, b, &raw const player, 1, e));
        commit(again);
        ok(|e| cg_entity_get(w, 0, id.as_ptr(), &raw mut handle, &raw mut view, null_mut(), e));
        let mut found = cg_bytes::NONE;
        ok(|e| cg_entity_component(handle, health, &raw mut found, e));
        assert_eq!(copied(found), [1, 2, 3, 4]);
        gives(CG_ABSENT, |e| cg_entity_component(handle, health + 2, &raw mut found, e));
        assert_eq!(cg_release(handle), CG_OK);
        ok(|e| cg_tx_entity_component(again, [8; 16].as_ptr(), health, bytes(&[0; 4]), e));
        fails(result::NOT_FOUND, "", |e| cg_tx_commit(again, 0, null_mut(), e));
        // A binding without the kind shows no such entity.
        let block = cg_block { name: text("game:air"), flags: 0, reserved: 0 };
        let less = cg_binding_desc { placeholder: 0, ..desc(std::slice::from_ref(&block), &[], &[]) };
        let mut other = 0;
        ok(|e| cg_binding_new(w, &raw const less, &raw mut other, e));
        fails(result::UNSUPPORTED, "`game:player`", |e| {
            cg_entity_get(w, other, id.as_ptr(), &raw mut handle, &raw mut view, null_mut(), e)
        });
        // One that belongs to a chunk is none of these.
        game.save(0, 0, 1);
        let pig = cg_entity { id: [5; 16], kind: 0, block: ORIGIN, ..player };
        let third = new_tx(w);
        ok(|e| cg_tx_entity_put(third, b, &raw const pig, 0, e));
        commit(third);
        for (binding, count) in [(b, 1), (0, 1), (other, 0)] {
            ok(|e| cg_entities_detached(w, binding, &raw mut handle, e));
            let found = rows(handle, 3, |row| (row.entity.id, copied(row.entity.nbt)));
            assert_eq!(found, vec![(id, b"player".to_vec()); count]);
        }
    }
    game.close();
}

#[test]
fn records_are_found_in_boxes() {
    let game = Game::in_memory();
    let (w, tx) = (game.world, new_tx(game.world));
    let record = |at: u8| cg_record {
        id: [at; 16],
        dimension: game.dimension,
        fraction: [0.5; 3],
        block: cg_pos { x: i64::from(at) * 100, y: 0, z: 0 },
        timestamp: -7,
        kind: text("game:grave"),
        bytes: bytes(b"here lies"),
    };
    let (mut handle, mut view) = (0, null::<cg_record>());
    // SAFETY: all memory is of this function, and a view is lent until its handle is released.
    unsafe {
        for at in 0..5 {
            ok(|e| cg_tx_record_put(tx, &record(at), e));
        }
        ok(|e| cg_tx_record_delete(tx, [4; 16].as_ptr(), e));
        commit(tx);
        ok(|e| cg_record_get(w, [2; 16].as_ptr(), &raw mut handle, &raw mut view, e));
        assert_eq!(
            ((*view).timestamp, (*view).block.x, copied_text((*view).kind)),
            (-7, 200, "game:grave".into())
        );
        assert_eq!(copied((*view).bytes), b"here lies");
        assert_eq!(cg_release(handle), CG_OK);
        gives(CG_ABSENT, |e| cg_record_get(w, [4; 16].as_ptr(), &raw mut handle, &raw mut view, e));
        let area = cg_box { min: cg_pos { x: 100, y: 0, z: 0 }, max: cg_pos { x: 999, y: 0, z: 0 } };
        ok(|e| cg_records_in(w, game.dimension, &raw const area, &raw mut handle, e));
        let mut found = rows(handle, 2, |row| (row.record.id[0], copied_text(row.record.kind)));
        found.sort();
        assert_eq!(
            found,
            [(1, "game:grave".into()), (2, "game:grave".into()), (3, "game:grave".to_string())]
        );
    }
    game.close();
}

#[test]
fn chunks_are_copied_changed_and_put_back_at_a_version() {
    let game = Game::in_memory();
    let (w, tx) = (game.world, new_tx(game.world));
    let mut ids = [0; 4];
    let cell = cg_cell { x: 1, y: 2, z: 3, layer: 0 };
    // SAFETY: all memory is of this function, and what is lent is used before the chunk is changed.
    unsafe {
        let names = BLOCKS.map(text);
        ok(|e| cg_names_find(w, 0, names.as_ptr(), 4, ids.as_mut_ptr(), e));
        let [air, stone, chest, _] = ids;
        let (mut chunk, mut version, mut side, mut nbt) = (0, 7, 0, 0);
        gives(CG_ABSENT, |e| cg_chunk_load(w, game.dimension, ORIGIN, &raw mut chunk, &raw mut version, e));
        assert_eq!((chunk, version), (0, 0));
        ok(|e| cg_names_find(w, 1, &text("minecraft:block_entity"), 1, &raw mut nbt, e));
        ok(|e| cg_chunk_new(w, stone, &raw mut chunk, e));
        let name =
            cg_name { name: text("game:side"), flags: 0, width: 0, components: null(), component_count: 0 };
        ok(|e| cg_names_register(w, 4, &raw const name, 1, &raw mut side, e));
        ok(|e| cg_chunk_set_block(chunk, cell, chest, e));
        ok(|e| cg_chunk_set_block(chunk, cg_cell { layer: 1, ..cell }, air, e));
        ok(|e| cg_chunk_set_component(chunk, cell, nbt, bytes(b"full"), e));
        ok(|e| cg_chunk_set_side(chunk, side, bytes(b""), e));
        ok(|e| cg_tx_expect_chunk(tx, game.dimension, ORIGIN, 0, e));
        ok(|e| cg_tx_chunk(tx, game.dimension, ORIGIN, chunk, e));
        // A copy: what comes later is not in it.
        ok(|e| cg_chunk_set_block(chunk, cell, air, e));
        commit(tx);
        assert_eq!(cg_release(chunk), CG_OK);
        ok(|e| cg_chunk_load(w, game.dimension, ORIGIN, &raw mut chunk, &raw mut version, e));
        let (mut block, mut lent_bytes, mut all, mut count) = (0, cg_bytes::NONE, null::<cg_component>(), 0);
        ok(|e| cg_chunk_block(chunk, cell, &raw mut block, e));
        assert_eq!((block, version > 0), (chest, true));
        ok(|e| cg_chunk_block(chunk, cg_cell { layer: 1, ..cell }, &raw mut block, e));
        gives(CG_ABSENT, |e| cg_chunk_block(chunk, cg_cell { layer: 2, ..cell }, &raw mut block, e));
        ok(|e| cg_chunk_component(chunk, cell, nbt, &raw mut lent_bytes, e));
        assert_eq!(copied(lent_bytes), b"full");
        gives(CG_ABSENT, |e| {
            cg_chunk_component(chunk, cg_cell { x: 0, ..cell }, nbt, &raw mut lent_bytes, e)
        });
        ok(|e| cg_chunk_components(chunk, &raw mut all, &raw mut count, e));
        let all = lent(all, count);
        assert_eq!(
            (count, all[0].component, all[0].at.z, copied(all[0].bytes)),
            (1, nbt, 3, b"full".to_vec())
        );
        ok(|e| cg_chunk_side(chunk, side, &raw mut lent_bytes, e));
        assert_eq!(copied(lent_bytes), b"");
        // All cells: the chest stays with what is in it, its upper layer goes.
        let mut cells = vec![0; 4096];
        ok(|e| cg_chunk_cells(chunk, 2, cells.as_mut_ptr(), 4096, e));
        assert_eq!((cells[2 * 256 + 3 * 16 + 1], cells[0]), (chest, stone));
        cells[0] = air;
        ok(|e| cg_chunk_set_cells(chunk, 2, cells.as_ptr(), 4096, e));
        ok(|e| cg_chunk_component(chunk, cell, nbt, &raw mut lent_bytes, e));
        assert_eq!(copied(lent_bytes), b"full");
        gives(CG_ABSENT, |e| cg_chunk_block(chunk, cg_cell { layer: 1, ..cell }, &raw mut block, e));
        ok(|e| cg_chunk_side(chunk, side, &raw mut lent_bytes, e));
        ok(|e| cg_chunk_set_side(chunk, side, cg_bytes::NONE, e));
        gives(CG_ABSENT, |e| cg_chunk_side(chunk, side, &raw mut lent_bytes, e));
        // Another commit changes the chunk.
        ok(|e| cg_tx_set_block(tx, game.dimension, ORIGIN, chest, e));
        ok(|e| cg_tx_set_component(tx, game.dimension, ORIGIN, 0, nbt, bytes(b"new"), e));
        ok(|e| cg_tx_set_side(tx, game.dimension, ORIGIN, side, bytes(b"x"), e));
        commit(tx);
        let mut error = error();
        ok(|e| cg_tx_expect_chunk(tx, game.dimension, ORIGIN, version, e));
        ok(|e| cg_tx_chunk(tx, game.dimension, ORIGIN, chunk, e));
        assert_eq!(cg_tx_commit(tx, 0, null_mut(), &raw mut error), result::CONFLICT);
        assert_eq!((error.has_place, error.dimension, error.chunk), (1, game.dimension, ORIGIN));
        assert_eq!(cg_release(tx), CG_OK);
        let tx = new_tx(w);
        ok(|e| cg_tx_chunk(tx, game.dimension, ORIGIN, chunk, e));
        fails(result::INVALID, "cannot be submitted", |e| cg_tx_submit(tx, e));
        ok(|e| cg_tx_delete_chunk(tx, game.dimension, ORIGIN, e));
        commit(tx);
        gives(CG_ABSENT, |e| cg_chunk_load(w, game.dimension, ORIGIN, &raw mut chunk, &raw mut version, e));
        ok(|e| cg_tx_set_block(tx, game.dimension, ORIGIN, chest, e));
        fails(result::NOT_FOUND, "", |e| cg_tx_commit(tx, 0, null_mut(), e));
    }
    game.close();
}

#[test]
fn names_are_registered_all_or_none() {
    let game = Game::in_memory();
    let w = game.world;
    let name = |name, flags, width| cg_name {
        name: text(name),
        flags,
        width,
        components: null(),
        component_count: 0,
    };
    let mut ids = [0; 3];
    let (mut before, mut after, mut handle) = (0, 0, 0);
    // SAFETY: all memory is of this function.
    unsafe {
        ok(|e| cg_names_count(w, 0, &raw mut before, e));
        let missing = text("game:none");
        let blocks = [
            name("game:one", 1, 0),
            cg_name { components: &raw const missing, component_count: 1, ..name("game:two", 0, 0) },
        ];
        fails(result::NOT_FOUND, "`game:none`", |e| {
            cg_names_register(w, 0, blocks.as_ptr(), 2, ids.as_mut_ptr(), e)
        });
        let wide = name("game:wide", 0, u32::MAX);
        fails(result::INVALID, "width", |e| cg_names_register(w, 1, &raw const wide, 1, ids.as_mut_ptr(), e));
        let flagged = name("game:sheep", 1, 0);
        fails(result::INVALID, "flags", |e| {
            cg_names_register(w, 2, &raw const flagged, 1, ids.as_mut_ptr(), e)
        });
        let of_width = name("game:sheep", 0, 4);
        fails(result::INVALID, "only a component", |e| {
            cg_names_register(w, 2, &raw const of_width, 1, ids.as_mut_ptr(), e)
        });
        ok(|e| cg_names_count(w, 0, &raw mut after, e));
        assert_eq!(after, before);
        let own = text("game:power");
        ok(|e| cg_names_register(w, 1, &name("game:power", 0, 2), 1, ids.as_mut_ptr(), e));
        let blocks = [
            cg_name { components: &raw const own, component_count: 1, ..name("game:lamp[b=2,a=1]", 3, 0) },
            name("game:stone", 0, 0),
            name("game:lamp[a=1,b=2]", 0, 0),
        ];
        ok(|e| cg_names_register(w, 0, blocks.as_ptr(), 3, ids.as_mut_ptr(), e));
        assert_eq!((ids[0], ids[0]), (before, ids[2]));
        ok(|e| cg_name_of(w, 0, ids[0], &raw mut handle, e));
        assert_eq!(taken(handle), b"game:lamp[a=1,b=2]");
        gives(CG_ABSENT, |e| cg_name_of(w, 0, before + 1, &raw mut handle, e));
        gives(CG_ABSENT, |e| cg_name_of(w, 1, u64::MAX, &raw mut handle, e));
        let wanted = ["game:stone", "game:nothing", "no name"].map(text);
        ok(|e| cg_names_find(w, 0, wanted.as_ptr(), 3, ids.as_mut_ptr(), e));
        assert!(ids[0] < before && ids[1..] == [CG_NO_ID, CG_NO_ID]);
        // The lamp has the component and a block entity.
        let (mut chunk, mut power, mut found) = (0, 0, cg_bytes::NONE);
        ok(|e| cg_names_find(w, 1, &raw const own, 1, &raw mut power, e));
        ok(|e| cg_chunk_new(w, before, &raw mut chunk, e));
        let cell = cg_cell { x: 0, y: 0, z: 0, layer: 0 };
        ok(|e| cg_chunk_component(chunk, cell, power, &raw mut found, e));
        assert_eq!(copied(found), [0, 0]);
        fails(result::INVALID, "", |e| cg_chunk_set_component(chunk, cell, power, bytes(&[1]), e));
    }
    game.close();
}
