//! Handles: released twice, invented, of another kind, of another world.

use std::ffi::c_int;
use std::ptr::{null, null_mut};

use cherrygrove::*;

use crate::calls::{AT, BOX, CALLS, ID, POS, Rest, entity};
use crate::header::functions;
use crate::support::*;

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
