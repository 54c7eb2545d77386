//! Handles: released twice, invented, of another kind, of another world.

use std::ffi::c_int;
use std::ptr::{null, null_mut};

use cherrygrove::*;

use crate::header::functions;
use crate::support::*;

/// What calls need beside the handle in question.
struct Rest {
    binding: cg_handle,
    tx: cg_handle,
    chunk: cg_handle,
}

/// A function, the kind of a handle that it takes, and a call of it that is sound but for that handle.
type Call = (&'static str, &'static str, unsafe fn(&Rest, cg_handle, *mut cg_error) -> c_int);

const POS: cg_pos = cg_pos { x: 0, y: 0, z: 0 };
const CELL: cg_cell = cg_cell { x: 0, y: 0, z: 0, layer: 0 };
const ID: [u8; 16] = [7; 16];
const AT: cg_column_at = cg_column_at { struct_size: 32, dimension: 0, x: 0, z: 0, min_y: 0, max_y: 0 };
const BOX: cg_box = cg_box { min: POS, max: POS };

fn column() -> cg_column {
    cg_column {
        struct_size: size_of::<cg_column>() as u32,
        dimension: 0,
        x: 0,
        z: 0,
        min_y: 0,
        max_y: 0,
        tick: 0,
        sections: null(),
        block_entities: null(),
        entities: null(),
        scheduled: null(),
        section_count: 0,
        block_entity_count: 0,
        entity_count: 0,
        scheduled_count: 0,
        kept: 0,
        damaged_sections: 0,
    }
}

fn entity() -> cg_entity {
    cg_entity {
        id: ID,
        kind: 0,
        dimension: 0,
        block: POS,
        fraction: [0.5; 3],
        reserved: 0,
        nbt: cg_bytes::NONE,
    }
}

fn nothing() -> cg_bytes {
    cg_bytes::NONE
}

/// Calls that take a handle, each with every handle that it takes.
const CALLS: &[Call] = &[
    ("cg_bytes_of", "text", |_, h, e| unsafe { cg_bytes_of(h, &mut nothing(), e) }),
    ("cg_world_close", "world", |_, h, e| unsafe { cg_world_close(h, e) }),
    ("cg_world_flush", "world", |_, h, e| unsafe { cg_world_flush(h, e) }),
    ("cg_world_resume", "world", |_, h, e| unsafe { cg_world_resume(h, e) }),
    ("cg_world_info_of", "world", |_, h, e| unsafe {
        let mut out = std::mem::zeroed::<cg_world_info>();
        out.struct_size = size_of_val(&out) as u32;
        cg_world_info_of(h, &raw mut out, e)
    }),
    ("cg_world_checkpoint", "world", |_, h, e| unsafe {
        cg_world_checkpoint(h, text("/nowhere/at/all"), 0, e)
    }),
    ("cg_world_verify", "world", |_, h, e| unsafe { cg_world_verify(h, 0, &mut 0, e) }),
    ("cg_world_usage", "world", |_, h, e| unsafe {
        let mut out = std::mem::zeroed::<cg_usage>();
        out.struct_size = size_of_val(&out) as u32;
        cg_world_usage(h, &raw mut out, e)
    }),
    ("cg_tick", "world", |_, h, e| unsafe { cg_tick(h, 1, null(), 0, 1, null_mut(), e) }),
    ("cg_keep_loaded", "world", |_, h, e| unsafe { cg_keep_loaded(h, 0, &BOX, &mut 0, e) }),
    ("cg_metrics", "world", |_, h, e| unsafe { cg_metrics(h, null_mut(), 0, e) }),
    ("cg_names_register", "world", |_, h, e| unsafe { cg_names_register(h, 0, null(), 0, null_mut(), e) }),
    ("cg_names_find", "world", |_, h, e| unsafe { cg_names_find(h, 0, null(), 0, null_mut(), e) }),
    ("cg_name_of", "world", |_, h, e| unsafe { cg_name_of(h, 0, 0, &mut 0, e) }),
    ("cg_names_count", "world", |_, h, e| unsafe { cg_names_count(h, 0, &mut 0, e) }),
    ("cg_binding_new", "world", |_, h, e| unsafe {
        let block = cg_block { name: text("game:air"), flags: 0, reserved: 0 };
        let desc = desc(std::slice::from_ref(&block), &[], &[]);
        cg_binding_new(h, &cg_binding_desc { placeholder: 0, ..desc }, &mut 0, e)
    }),
    ("cg_binding_ids", "binding", |_, h, e| unsafe { cg_binding_ids(h, [0; 4].as_mut_ptr(), 4, e) }),
    ("cg_binding_unknown", "binding", |_, h, e| unsafe { cg_binding_unknown(h, &mut 0, e) }),
    ("cg_column_load", "world", |rest, h, e| unsafe {
        cg_column_load(h, rest.binding, &AT, &mut 0, &mut null(), e)
    }),
    ("cg_column_peek", "world", |rest, h, e| unsafe {
        cg_column_peek(h, rest.binding, &AT, &mut 0, &mut null(), e)
    }),
    ("cg_column_save", "world", |rest, h, e| unsafe {
        cg_column_save(h, rest.binding, &column(), 0, null_mut(), e)
    }),
    ("cg_column_submit", "world", |rest, h, e| unsafe { cg_column_submit(h, rest.binding, &column(), 0, e) }),
    ("cg_columns_walk", "world", |_, h, e| unsafe { cg_columns_walk(h, 0, &mut 0, e) }),
    ("cg_columns_next", "walk over columns", |_, h, e| unsafe {
        cg_columns_next(h, null_mut(), 0, &mut 0, e)
    }),
    ("cg_settings_load", "world", |_, h, e| unsafe { cg_settings_load(h, &mut 0, &mut null(), e) }),
    ("cg_tx_new", "world", |_, h, e| unsafe { cg_tx_new(h, &mut 0, e) }),
    ("cg_tx_commit", "transaction", |_, h, e| unsafe { cg_tx_commit(h, 0, null_mut(), e) }),
    ("cg_tx_submit", "transaction", |_, h, e| unsafe { cg_tx_submit(h, e) }),
    ("cg_tx_expect_chunk", "transaction", |_, h, e| unsafe { cg_tx_expect_chunk(h, 0, POS, 0, e) }),
    ("cg_tx_expect_entity", "transaction", |_, h, e| unsafe { cg_tx_expect_entity(h, ID.as_ptr(), 0, e) }),
    ("cg_tx_column", "transaction", |rest, h, e| unsafe { cg_tx_column(h, rest.binding, &column(), 0, e) }),
    ("cg_tx_chunk", "transaction", |rest, h, e| unsafe { cg_tx_chunk(h, 0, POS, rest.chunk, e) }),
    ("cg_tx_delete_chunk", "transaction", |_, h, e| unsafe { cg_tx_delete_chunk(h, 0, POS, e) }),
    ("cg_tx_set_block", "transaction", |_, h, e| unsafe { cg_tx_set_block(h, 0, POS, 0, e) }),
    ("cg_tx_set_component", "transaction", |_, h, e| unsafe {
        cg_tx_set_component(h, 0, POS, 0, 0, cg_bytes::NONE, e)
    }),
    ("cg_tx_set_side", "transaction", |_, h, e| unsafe { cg_tx_set_side(h, 0, POS, 0, cg_bytes::NONE, e) }),
    ("cg_tx_entity_put", "transaction", |rest, h, e| unsafe {
        cg_tx_entity_put(h, rest.binding, &entity(), 1, e)
    }),
    ("cg_tx_entity_delete", "transaction", |_, h, e| unsafe { cg_tx_entity_delete(h, ID.as_ptr(), e) }),
    ("cg_tx_entity_component", "transaction", |_, h, e| unsafe {
        cg_tx_entity_component(h, ID.as_ptr(), 0, cg_bytes::NONE, e)
    }),
    ("cg_tx_property", "transaction", |_, h, e| unsafe { cg_tx_property(h, text("a:b"), cg_bytes::NONE, e) }),
    ("cg_tx_settings", "transaction", |_, h, e| unsafe {
        let mut settings = std::mem::zeroed::<cg_settings>();
        settings.struct_size = size_of_val(&settings) as u32;
        cg_tx_settings(h, &raw const settings, e)
    }),
    ("cg_tx_object_put", "transaction", |_, h, e| unsafe {
        cg_tx_object_put(h, bytes(b"key"), cg_bytes::NONE, e)
    }),
    ("cg_tx_object_delete", "transaction", |_, h, e| unsafe { cg_tx_object_delete(h, bytes(b"key"), e) }),
    ("cg_tx_record_put", "transaction", |_, h, e| unsafe {
        let record = cg_record {
            id: ID,
            dimension: 0,
            fraction: [0.0; 3],
            block: POS,
            timestamp: 0,
            kind: text("kind"),
            bytes: cg_bytes::NONE,
        };
        cg_tx_record_put(h, &raw const record, e)
    }),
    ("cg_tx_record_delete", "transaction", |_, h, e| unsafe { cg_tx_record_delete(h, ID.as_ptr(), e) }),
    ("cg_entity_get", "world", |rest, h, e| unsafe {
        cg_entity_get(h, rest.binding, ID.as_ptr(), &mut 0, &mut null(), null_mut(), e)
    }),
    ("cg_entity_component", "entity", |_, h, e| unsafe { cg_entity_component(h, 0, &mut nothing(), e) }),
    ("cg_property_get", "world", |_, h, e| unsafe { cg_property_get(h, text("a:b"), &mut 0, e) }),
    ("cg_object_get", "world", |_, h, e| unsafe { cg_object_get(h, bytes(b"key"), &mut 0, null_mut(), e) }),
    ("cg_object_list", "world", |_, h, e| unsafe { cg_object_list(h, cg_bytes::NONE, &mut 0, e) }),
    ("cg_records_in", "world", |_, h, e| unsafe { cg_records_in(h, 0, &BOX, &mut 0, e) }),
    ("cg_record_get", "world", |_, h, e| unsafe { cg_record_get(h, ID.as_ptr(), &mut 0, &mut null(), e) }),
    ("cg_property_list", "world", |_, h, e| unsafe { cg_property_list(h, cg_str::NONE, &mut 0, e) }),
    ("cg_entities_detached", "world", |rest, h, e| unsafe {
        cg_entities_detached(h, rest.binding, &mut 0, e)
    }),
    ("cg_cursor_next", "cursor", |_, h, e| unsafe { cg_cursor_next(h, null_mut(), 0, &mut 0, e) }),
    ("cg_chunk_load", "world", |_, h, e| unsafe { cg_chunk_load(h, 0, POS, &mut 0, null_mut(), e) }),
    ("cg_chunk_new", "world", |_, h, e| unsafe { cg_chunk_new(h, 0, &mut 0, e) }),
    ("cg_chunk_cells", "chunk", |_, h, e| unsafe {
        cg_chunk_cells(h, 0, vec![0; 4096].as_mut_ptr(), 4096, e)
    }),
    ("cg_chunk_set_cells", "chunk", |_, h, e| unsafe {
        cg_chunk_set_cells(h, 0, vec![0; 4096].as_ptr(), 4096, e)
    }),
    ("cg_chunk_block", "chunk", |_, h, e| unsafe { cg_chunk_block(h, CELL, &mut 0, e) }),
    ("cg_chunk_set_block", "chunk", |_, h, e| unsafe { cg_chunk_set_block(h, CELL, 0, e) }),
    ("cg_chunk_component", "chunk", |_, h, e| unsafe { cg_chunk_component(h, CELL, 0, &mut nothing(), e) }),
    ("cg_chunk_set_component", "chunk", |_, h, e| unsafe {
        cg_chunk_set_component(h, CELL, 0, cg_bytes::NONE, e)
    }),
    ("cg_chunk_components", "chunk", |_, h, e| unsafe { cg_chunk_components(h, &mut null(), &mut 0, e) }),
    ("cg_chunk_side", "chunk", |_, h, e| unsafe { cg_chunk_side(h, 0, &mut nothing(), e) }),
    ("cg_chunk_set_side", "chunk", |_, h, e| unsafe { cg_chunk_set_side(h, 0, cg_bytes::NONE, e) }),
    ("cg_queue_new", "world", |_, h, e| unsafe { cg_queue_new(h, 1, &mut 0, e) }),
    ("cg_queue_load", "queue", |rest, h, e| unsafe { cg_queue_load(h, rest.binding, &AT, 0, e) }),
    ("cg_queue_commit", "queue", |rest, h, e| unsafe { cg_queue_commit(h, rest.tx, 0, 0, e) }),
    ("cg_queue_wait", "queue", |_, h, e| unsafe { cg_queue_wait(h, null_mut(), 0, &mut 0, 0, e) }),
];

/// A handle of each kind, of one world.
fn one_of_each(game: &Game) -> Vec<(&'static str, cg_handle)> {
    let of = |call: &dyn Fn(*mut cg_handle, *mut cg_error) -> c_int| {
        let mut handle = 0;
        ok(|error| call(&raw mut handle, error));
        assert_ne!(handle, 0);
        handle
    };
    let (world, binding) = (game.world, game.binding);
    // SAFETY: all memory is of this function.
    unsafe {
        assert_eq!(game.save(0, 0, 1), CG_OK);
        let tx = of(&|out, error| cg_tx_new(world, out, error));
        ok(|error| cg_tx_entity_put(tx, binding, &entity(), 1, error));
        let record = cg_record {
            id: ID,
            dimension: game.dimension,
            fraction: [0.0; 3],
            block: POS,
            timestamp: 0,
            kind: text("kind"),
            bytes: cg_bytes::NONE,
        };
        ok(|error| cg_tx_record_put(tx, &raw const record, error));
        ok(|error| cg_tx_commit(tx, 0, null_mut(), error));
        vec![
            ("world", world),
            ("binding", binding),
            (
                "column",
                of(&|out, error| {
                    cg_column_load(world, binding, &game.column_at(0, 0), out, &mut null(), error)
                }),
            ),
            ("chunk", of(&|out, error| cg_chunk_new(world, 0, out, error))),
            ("transaction", tx),
            ("cursor", of(&|out, error| cg_object_list(world, cg_bytes::NONE, out, error))),
            ("queue", of(&|out, error| cg_queue_new(world, 4, out, error))),
            ("pin", of(&|out, error| cg_keep_loaded(world, 0, &BOX, out, error))),
            ("text", of(&|out, error| cg_world_verify(world, 0, out, error))),
            ("settings", of(&|out, error| cg_settings_load(world, out, &mut null(), error))),
            (
                "entity",
                of(&|out, error| {
                    cg_entity_get(world, binding, ID.as_ptr(), out, &mut null(), null_mut(), error)
                }),
            ),
            ("record", of(&|out, error| cg_record_get(world, ID.as_ptr(), out, &mut null(), error))),
            ("walk over columns", of(&|out, error| cg_columns_walk(world, 0, out, error))),
        ]
    }
}

#[test]
fn each_function_with_a_handle_is_called() {
    for (name, types) in functions() {
        let takes = types.iter().skip(1).any(|of| of == "cg_handle");
        let is_called = CALLS.iter().any(|call| call.0 == name);
        let is_elsewhere = ["cg_release", "cg_queue_cancel"].contains(&name.as_str());
        assert_eq!(takes, is_called || is_elsewhere, "{name}");
    }
}

#[test]
fn a_handle_of_another_kind_or_an_invented_one_is_invalid() {
    let game = Game::in_memory();
    let handles = one_of_each(&game);
    let find = |kind| handles.iter().find(|(of, _)| *of == kind).expect("one of each").1;
    let rest = Rest { binding: game.binding, tx: find("transaction"), chunk: find("chunk") };
    for (name, kind, call) in CALLS {
        for (other, handle) in &handles {
            if other == kind {
                continue;
            }
            let part = format!("is of a {other}, expected was a {kind}");
            // SAFETY: all memory is of the calls.
            let (result, message) = failed(|error| unsafe { call(&rest, *handle, error) });
            assert_eq!(result, result::INVALID, "{name} with a {other}: {message}");
            assert!(message.contains(&part), "{name}: {message}");
        }
        let live = find(kind);
        // Generations and indices that no test reaches, no generation, no kind.
        let invented =
            [0, 1, u64::MAX, live + (1 << 30), live | 1 << 55, live & !0xffff_ffff, 0x7f << 56 | 1];
        for invented in invented {
            // SAFETY: all memory is of the calls.
            let (result, message) = failed(|error| unsafe { call(&rest, invented, error) });
            assert_eq!(result, result::INVALID, "{name} with {invented:#x}: {message}");
        }
    }
    // The world is as it was.
    assert_eq!(game.load(0, 0), Some(vec![1]));
    for (_, handle) in handles.into_iter().rev() {
        // SAFETY: it takes no memory.
        assert_eq!(unsafe { cg_release(handle) }, CG_OK);
    }
}

#[test]
fn a_released_handle_is_closed() {
    let game = Game::in_memory();
    let handles = one_of_each(&game);
    let find = |kind| handles.iter().find(|(of, _)| *of == kind).expect("one of each").1;
    let rest = Rest { binding: game.binding, tx: find("transaction"), chunk: find("chunk") };
    for (kind, handle) in &handles {
        if *kind != "world" {
            // SAFETY: it takes no memory.
            assert_eq!(unsafe { cg_release(*handle) }, CG_OK);
        }
        if *kind == "queue" {
            // SAFETY: it takes no memory.
            assert_eq!(unsafe { cg_queue_cancel(*handle, 0) }, result::CLOSED);
        }
        if *kind != "world" {
            // SAFETY: it takes no memory.
            assert_eq!(unsafe { cg_release(*handle) }, result::CLOSED, "{kind} twice");
        }
    }
    // SAFETY: it takes no memory.
    ok(|error| unsafe { cg_world_close(game.world, error) });
    for (name, kind, call) in CALLS {
        // SAFETY: all memory is of the calls.
        let (result, message) = failed(|error| unsafe { call(&rest, find(kind), error) });
        assert_eq!(result, result::CLOSED, "{name}: {message}");
        assert!(message.contains("was closed or released"), "{name}: {message}");
    }
    // SAFETY: it takes no memory.
    unsafe {
        for invented in [0, 1, u64::MAX, 0x0e << 56 | 1] {
            assert_eq!(cg_release(invented), result::INVALID, "{invented:#x}");
            assert_eq!(cg_queue_cancel(invented, 0), result::INVALID);
        }
    }
}

#[test]
fn handles_outlive_their_world_and_say_that_it_is_closed() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("world").to_string_lossy().into_owned();
    let game = Game::at(&path);
    let handles = one_of_each(&game);
    let find = |kind| handles.iter().find(|(of, _)| *of == kind).expect("one of each").1;
    let rest = Rest { binding: game.binding, tx: find("transaction"), chunk: find("chunk") };
    // SAFETY: it takes no memory.
    ok(|error| unsafe { cg_world_close(game.world, error) });
    for (name, kind, call) in CALLS.iter().filter(|(_, kind, _)| *kind != "world") {
        // SAFETY: all memory is of the calls.
        let (result, message) = failed(|error| unsafe { call(&rest, find(kind), error) });
        let stays = ["chunk", "text", "entity"].contains(kind);
        assert_eq!(result == result::CLOSED, !stays, "{name}: {result} {message}");
    }
    // Nothing of them keeps the directory.
    let again = Game::at(&path);
    assert_eq!(again.load(0, 0), Some(vec![1]));
    // SAFETY: all memory is of this function.
    unsafe {
        let (mut handle, mut view) = (0, null());
        fails(result::INVALID, "of another world", |error| {
            // The binding is of the world that is closed, so that comes first.
            let result =
                cg_column_load(again.world, game.binding, &AT, &raw mut handle, &raw mut view, error);
            assert_eq!(result, result::CLOSED);
            let other = bind_elsewhere();
            cg_column_load(again.world, other, &AT, &raw mut handle, &raw mut view, error)
        });
        for (kind, handle) in &handles {
            assert_eq!(cg_release(*handle), if *kind == "world" { result::CLOSED } else { CG_OK }, "{kind}");
        }
    }
    again.close();
}

/// A binding of a world that stays open.
fn bind_elsewhere() -> cg_handle {
    Game::in_memory().binding
}
