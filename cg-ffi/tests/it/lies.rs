//! Null pointers, lengths that no memory has, sizes of other structs.

use std::ptr::{null, null_mut};

use cherrygrove::*;

use crate::support::*;

const HUGE: usize = usize::MAX;

type Call = dyn FnMut(*mut cg_error) -> std::ffi::c_int;

#[test]
#[expect(clippy::too_many_lines, reason = "a list of all pointers")]
fn null_pointers_are_invalid_where_nothing_else_is_said() {
    let game = Game::in_memory();
    let (w, b) = (game.world, game.binding);
    let tx = new_tx(w);
    let at = game.column_at(0, 0);
    let id = [1; 16];
    let (mut handle, mut number, mut count) = (0, 0, 0);
    // SAFETY: all memory is of this function.
    unsafe {
        let mut chunk = 0;
        ok(|e| cg_chunk_new(w, 0, &raw mut chunk, e));
        let mut queue = 0;
        ok(|e| cg_queue_new(w, 4, &raw mut queue, e));
        let name = [text("game:a")];
        let mut calls: Vec<(&str, Box<Call>)> = Vec::new();
        macro_rules! null_in {
            ($($function:ident($($argument:expr),*)),+ $(,)?) => {
                $(calls.push((stringify!($function), Box::new(move |e| $function($($argument,)* e))));)+
            };
        }
        let null_text = cg_str { ptr: null(), len: 1 };
        let null_bytes = cg_bytes { ptr: null(), len: 1 };
        let (one, num, cnt) = (&raw mut handle, &raw mut number, &raw mut count);
        let (name, id, at) = (name.as_ptr(), id.as_ptr(), &raw const at);
        null_in! {
            cg_bytes_of(1 << 56, null_mut()),
            cg_world_open(text(":memory:"), &options(), null_mut()),
            cg_world_open(null_text, &options(), one),
            cg_world_plan(text(":memory:"), &options(), null_mut()),
            cg_world_plan(null_text, &options(), one),
            cg_world_info_of(w, null_mut()),
            cg_world_checkpoint(w, null_text, 0),
            cg_world_verify(w, 0, null_mut()),
            cg_world_usage(w, null_mut()),
            cg_tick(w, 0, null(), 1, 0, null_mut()),
            cg_keep_loaded(w, 0, null(), one),
            cg_keep_loaded(w, 0, &cg_box::default(), null_mut()),
            cg_metrics(w, null_mut(), 1),
            cg_names_register(w, 0, null(), 1, num),
            cg_names_find(w, 0, null(), 1, num),
            cg_names_find(w, 0, name, 1, null_mut()),
            cg_name_of(w, 0, 0, null_mut()),
            cg_names_count(w, 0, null_mut()),
            cg_binding_new(w, null(), one),
            cg_binding_ids(b, null_mut(), 4),
            cg_binding_unknown(b, null_mut()),
            cg_column_load(w, b, null(), one, &mut null()),
            cg_column_load(w, b, at, null_mut(), &mut null()),
            cg_column_load(w, b, at, one, null_mut()),
            cg_column_peek(w, b, null(), one, &mut null()),
            cg_column_peek(w, b, at, null_mut(), &mut null()),
            cg_column_peek(w, b, at, one, null_mut()),
            cg_column_save(w, b, null(), 0, num),
            cg_column_submit(w, b, null(), 0),
            cg_columns_walk(w, 0, null_mut()),
            cg_settings_load(w, null_mut(), &mut null()),
            cg_settings_load(w, one, null_mut()),
            cg_tx_new(w, null_mut()),
            cg_tx_expect_entity(tx, null(), 0),
            cg_tx_column(tx, b, null(), 0),
            cg_tx_set_component(tx, 0, cg_pos::default(), 0, 0, null_bytes),
            cg_tx_set_side(tx, 0, cg_pos::default(), 0, null_bytes),
            cg_tx_entity_put(tx, 0, null(), 0),
            cg_tx_entity_delete(tx, null()),
            cg_tx_entity_component(tx, null(), 0, cg_bytes::NONE),
            cg_tx_entity_component(tx, id, 0, null_bytes),
            cg_tx_property(tx, null_text, cg_bytes::NONE),
            cg_tx_property(tx, text("a:b"), null_bytes),
            cg_tx_settings(tx, null()),
            cg_tx_object_put(tx, null_bytes, cg_bytes::NONE),
            cg_tx_object_put(tx, bytes(b"key"), null_bytes),
            cg_tx_object_delete(tx, null_bytes),
            cg_tx_record_put(tx, null()),
            cg_tx_record_delete(tx, null()),
            cg_entity_get(w, 0, null(), one, &mut null(), num),
            cg_entity_get(w, 0, id, null_mut(), &mut null(), num),
            cg_entity_get(w, 0, id, one, null_mut(), num),
            cg_property_get(w, null_text, one),
            cg_property_get(w, text("a:b"), null_mut()),
            cg_object_get(w, null_bytes, one, null_mut()),
            cg_object_get(w, bytes(b"key"), null_mut(), null_mut()),
            cg_object_list(w, null_bytes, one),
            cg_object_list(w, bytes(b"key"), null_mut()),
            cg_records_in(w, 0, null(), one),
            cg_records_in(w, 0, &cg_box::default(), null_mut()),
            cg_record_get(w, null(), one, &mut null()),
            cg_record_get(w, id, null_mut(), &mut null()),
            cg_record_get(w, id, one, null_mut()),
            cg_property_list(w, null_text, one),
            cg_property_list(w, text("a"), null_mut()),
            cg_entities_detached(w, 0, null_mut()),
            cg_chunk_load(w, 0, cg_pos::default(), null_mut(), null_mut()),
            cg_chunk_new(w, 0, null_mut()),
            cg_chunk_cells(chunk, 0, null_mut(), 4096),
            cg_chunk_set_cells(chunk, 0, null(), 4096),
            cg_chunk_block(chunk, cg_cell { x: 0, y: 0, z: 0, layer: 0 }, null_mut()),
            cg_chunk_component(chunk, cg_cell { x: 0, y: 0, z: 0, layer: 0 }, 0, null_mut()),
            cg_chunk_set_component(chunk, cg_cell { x: 0, y: 0, z: 0, layer: 0 }, 0, null_bytes),
            cg_chunk_components(chunk, null_mut(), cnt),
            cg_chunk_components(chunk, &mut null(), null_mut()),
            cg_chunk_side(chunk, 0, null_mut()),
            cg_chunk_set_side(chunk, 0, null_bytes),
            cg_queue_new(w, 1, null_mut()),
            cg_queue_load(queue, b, null(), 0),
            cg_queue_wait(queue, null_mut(), 1, cnt, 0),
            cg_queue_wait(queue, null_mut(), 0, null_mut(), 0),
        }
        for (name, call) in &mut calls {
            let (result, message) = failed(call);
            assert_eq!(result, result::INVALID, "{name}: {message}");
            assert!(message.contains("is a null pointer"), "{name}: {message}");
        }
        assert!(calls.len() > 75);
        // A place that is there is emptied, also if the other one is null.
        let (mut out, mut view) = (9, std::ptr::dangling());
        fails(result::INVALID, "view is a null pointer", |e| {
            cg_column_load(w, b, at, &raw mut out, null_mut(), e)
        });
        fails(result::INVALID, "out is a null pointer", |e| {
            cg_column_load(w, b, at, null_mut(), &raw mut view, e)
        });
        assert_eq!((out, view), (0, null()));
        assert_eq!(cg_log_next(null_mut(), 1, &raw mut count, &mut 0), result::INVALID);
        assert_eq!(cg_log_next(null_mut(), 0, null_mut(), &mut 0), result::INVALID);
        assert_eq!(cg_log_next(null_mut(), 0, &raw mut count, null_mut()), result::INVALID);
        // No `cg_error` is no error.
        assert_eq!(cg_world_flush(w, null_mut()), CG_OK);
        assert_eq!(cg_world_flush(0, null_mut()), result::INVALID);
        // Nothing of all that is in the transaction.
        gives(CG_UNCHANGED, |e| cg_tx_commit(tx, 0, null_mut(), e));
    }
    game.close();
}

#[test]
fn lengths_that_no_memory_has_are_refused() {
    let game = Game::in_memory();
    let (w, b) = (game.world, game.binding);
    let mut handle = 0;
    let byte = 0_u8;
    let lies = cg_bytes { ptr: &raw const byte, len: HUGE };
    let name = text("game:a");
    let numbers = [1_u32];
    let layer = uniform(&numbers);
    let section = section(&layer);
    let sound = cg_column { sections: &raw const section, section_count: 1, ..game.column(0, 0) };
    // SAFETY: what is read is of this function: no length is believed.
    unsafe {
        for len in [HUGE, isize::MAX as usize + 1] {
            let part = "no memory has";
            fails(result::INVALID, part, |e| {
                cg_world_open(cg_str { len, ..name }, null(), &raw mut handle, e)
            });
            fails(result::INVALID, part, |e| {
                cg_object_get(w, cg_bytes { len, ..lies }, &raw mut handle, null_mut(), e)
            });
            fails(result::INVALID, part, |e| cg_names_find(w, 0, &raw const name, len, &mut 0, e));
            fails(result::INVALID, part, |e| cg_tick(w, 0, &std::mem::zeroed(), len / 8, 0, null_mut(), e));
            fails(result::INVALID, part, |e| cg_metrics(w, &mut 0, len, e));
        }
        let cases = [
            (cg_column { section_count: HUGE, ..sound }, "no memory has"),
            (cg_column { section_count: 25, ..sound }, "25 sections, and 24 heights"),
            (
                cg_column {
                    block_entity_count: HUGE,
                    block_entities: [std::mem::zeroed()].as_ptr(),
                    ..sound
                },
                "no memory",
            ),
            (cg_column { entity_count: 1, ..sound }, "entities is a null pointer"),
            (cg_column { scheduled_count: 1, ..sound }, "scheduled is a null pointer"),
            (cg_column { min_y: 20, ..sound }, "it has 0 heights"),
            (cg_column { min_y: i32::MIN, max_y: i32::MAX, ..sound }, "it has 4294967296 heights"),
            (cg_column { min_y: 1, ..sound }, "section 0 is not within its heights 1 to 19"),
        ];
        for (column, part) in &cases {
            fails(result::INVALID, part, |e| cg_column_save(w, b, column, 0, null_mut(), e));
            fails(result::INVALID, part, |e| cg_column_submit(w, b, column, 0, e));
        }
        let words = [0_u8; 2048];
        let packed = cg_cells {
            words: words.as_ptr(),
            words_len: 512,
            palette: [1, 2].as_ptr(),
            palette_len: 2,
            bits: 1,
            word_bits: 64,
            order: 2,
            side_log2: 4,
        };
        let cells = [
            (cg_cells { words_len: 511, ..packed }, "511 bytes instead of 512"),
            (cg_cells { words_len: 1 << 40, ..packed }, "its words have 1099511627776 bytes instead of 512"),
            (cg_cells { words_len: HUGE, ..packed }, "no memory has"),
            (cg_cells { words: null(), ..packed }, "words of blocks of section 0 is a null pointer"),
            (cg_cells { palette: null(), ..packed }, "palette of blocks of section 0 is a null pointer"),
            (cg_cells { palette_len: 0, ..packed }, "its palette has 0 entries"),
            (cg_cells { palette_len: 1 << 20, ..packed }, "its palette has 1048576 entries"),
            (cg_cells { bits: 33, ..packed }, "its values have 33 bits"),
            (cg_cells { bits: 255, words_len: 1 << 20, ..packed }, "its words have 1048576 bytes"),
            (cg_cells { word_bits: 8, ..packed }, "its words have 8 bits"),
            (cg_cells { order: 3, ..packed }, "order 3 of cells is none"),
            (cg_cells { side_log2: 2, ..packed }, "its side is 2^2"),
            (cg_cells { side_log2: 9, ..packed }, "its side is 2^9"),
            (cg_cells { bits: 0, ..packed }, "512 bytes instead of 0"),
            (
                cg_cells { bits: 0, words_len: 0, palette: null(), palette_len: 0, ..packed },
                "0 bits need a palette",
            ),
            (cg_cells { palette: [1, 9].as_ptr(), ..packed }, "block 9 is not in the binding, which has 4"),
        ];
        for (layer, part) in &cells {
            let section = crate::support::section(layer);
            let column = cg_column { sections: &raw const section, ..sound };
            let mut error = error();
            let found = cg_column_save(w, b, &raw const column, 0, null_mut(), &raw mut error);
            let message = message(&error);
            assert_eq!(found, result::INVALID, "{part}: {message}");
            assert!(message.contains(part), "{part}: {message}");
            assert_eq!(
                (error.has_place, error.dimension, error.chunk.x, error.chunk.z),
                (1, game.dimension, 0, 0)
            );
        }
        let many = cg_section { layer_count: 3, ..section };
        let column = cg_column { sections: &raw const many, ..sound };
        fails(result::INVALID, "section 0 has 3 layers, the binding has 2", |e| {
            cg_column_save(w, b, &raw const column, 0, null_mut(), e)
        });
    }
    assert_eq!(game.load(0, 0), None);
    game.close();
}

#[test]
fn structs_of_other_sizes_are_refused_or_filled() {
    let game = Game::in_memory();
    let (w, b) = (game.world, game.binding);
    let mut handle = 0;
    // SAFETY: all structs have the sizes that they say, or more.
    unsafe {
        let mut column = [0_u64; 1024];
        let sizes = |of: usize| [0, 3, 4, 8, of as u64 - 1, 4097, u64::from(u32::MAX)];
        for size in sizes(size_of::<cg_column>()) {
            column[0] = size;
            let part = format!("struct_size of column is {size};");
            fails(result::INVALID, &part, |e| cg_column_save(w, b, column.as_ptr().cast(), 0, null_mut(), e));
        }
        for size in sizes(size_of::<cg_column_at>()) {
            column[0] = size;
            let load = |e| cg_column_load(w, b, column.as_ptr().cast(), &raw mut handle, &mut null(), e);
            fails(result::INVALID, &format!("struct_size of at is {size};"), load);
        }
        for size in sizes(size_of::<cg_settings>()) {
            column[0] = size;
            let set = |e| cg_tx_settings(new_tx(w), column.as_ptr().cast(), e);
            fails(result::INVALID, &format!("struct_size of settings is {size};"), set);
        }
        for size in sizes(size_of::<cg_binding_desc>()) {
            column[0] = size;
            let bind = |e| cg_binding_new(w, column.as_ptr().cast(), &raw mut handle, e);
            fails(result::INVALID, &format!("struct_size of desc is {size};"), bind);
        }
        for size in sizes(size_of::<cg_options>()) {
            column[0] = size;
            let open = |e| cg_world_open(text(":memory:"), column.as_ptr().cast(), &raw mut handle, e);
            fails(result::INVALID, &format!("struct_size of options is {size};"), open);
        }
        // A newer program whose new fields are zero.
        column[0] = 4096;
        assert_eq!(cg_column_save(w, b, column.as_ptr().cast(), 0, null_mut(), null_mut()), CG_UNCHANGED);
        column[511] = 1;
        fails(result::INVALID, "the rest is not zero", |e| {
            cg_column_save(w, b, column.as_ptr().cast(), 0, null_mut(), e)
        });
        // A program that was compiled with a larger struct is not written beyond what the library knows.
        let mut info = [u8::MAX; 128];
        info[..4].copy_from_slice(&128_u32.to_le_bytes());
        ok(|e| cg_world_info_of(w, info.as_mut_ptr().cast(), e));
        let known = size_of::<cg_world_info>();
        assert_eq!(info[..4], 128_u32.to_le_bytes());
        assert!(info[known..].iter().all(|byte| *byte == u8::MAX) && info[4..8] == [0; 4]);
        info[..4].copy_from_slice(&8_u32.to_le_bytes());
        fails(result::INVALID, "struct_size of out is 8", |e| {
            cg_world_info_of(w, info.as_mut_ptr().cast(), e)
        });
    }
    game.close();
}

#[test]
fn an_error_is_written_no_further_than_the_struct_goes() {
    for size in [0_usize, 1, 4, 8, 20, 63, 64, 65, 70, 1064, 2000] {
        let mut error = [0xee_u8; 2100];
        error[..4].copy_from_slice(&(size as u32).to_le_bytes());
        // SAFETY: it has more bytes than it says.
        let result = unsafe { cg_world_flush(0, error.as_mut_ptr().cast()) };
        assert_eq!(result, result::INVALID);
        let known = size_of::<cg_error>();
        assert!(error[size.max(4).min(known)..].iter().all(|byte| *byte == 0xee), "{size}");
        let number = |at: usize| u32::from_le_bytes(error[at..at + 4].try_into().expect("four"));
        if size >= 64 {
            let offset = std::mem::offset_of!(cg_error, message);
            let len = number(std::mem::offset_of!(cg_error, message_len)) as usize;
            let full = number(std::mem::offset_of!(cg_error, message_full_len)) as usize;
            assert_eq!(len, full.min(size.min(known) - offset), "{size}");
            let shown = std::str::from_utf8(&error[offset..offset + len]).expect("UTF-8");
            assert!("0x0 is no handle, expected was that of a world".starts_with(shown), "{shown}");
        }
    }
}

#[test]
fn a_long_message_is_cut_at_a_character_and_its_whole_is_in_the_log() {
    let game = Game::in_memory();
    let mut handle = 0;
    let path = format!("/nowhere/{}", "ä".repeat(900));
    let mut error = error();
    let options = cg_options { mode: 0, ..options() };
    // SAFETY: all memory is of this function.
    let result = unsafe { cg_world_open(text(&path), &raw const options, &raw mut handle, &raw mut error) };
    assert!(result < 0);
    let shown = message(&error);
    assert!(shown.len() >= 999 && error.message_full_len as usize > 1800, "{}", error.message_full_len);
    let mut found = false;
    loop {
        let (mut buffer, mut len, mut level) = (vec![0_u8; 4096], 0, 0);
        // SAFETY: all memory is of this function.
        let result = unsafe { cg_log_next(buffer.as_mut_ptr().cast(), 4096, &raw mut len, &raw mut level) };
        if result == CG_ABSENT {
            break;
        }
        let line = String::from_utf8_lossy(&buffer[..len.min(4096)]).into_owned();
        found |= level == 2 && line.starts_with("cg_world_open: ") && line.contains(&path);
    }
    assert!(found);
    game.close();
}
