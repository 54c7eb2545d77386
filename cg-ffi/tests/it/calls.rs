//! Each function that takes a handle, called so that all but the handle is sound.
#![allow(clippy::undocumented_unsafe_blocks, reason = "the memory of each call is its own")]

use std::ffi::c_int;
use std::ptr::{null, null_mut};

use cherrygrove::*;

use crate::support::*;

/// What calls need beside the handle in question.
pub(crate) struct Rest {
    pub(crate) binding: cg_handle,
    pub(crate) tx: cg_handle,
    pub(crate) chunk: cg_handle,
}

/// A function, the kind of a handle that it takes, and a call of it that is sound but for that handle.
pub(crate) type Call = (&'static str, &'static str, unsafe fn(&Rest, cg_handle, *mut cg_error) -> c_int);

pub(crate) const POS: cg_pos = cg_pos { x: 0, y: 0, z: 0 };
const CELL: cg_cell = cg_cell { x: 0, y: 0, z: 0, layer: 0 };
pub(crate) const ID: [u8; 16] = [7; 16];
pub(crate) const AT: cg_column_at =
    cg_column_at { struct_size: 32, dimension: 0, x: 0, z: 0, min_y: 0, max_y: 0 };
pub(crate) const BOX: cg_box = cg_box { min: POS, max: POS };

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

pub(crate) fn entity() -> cg_entity {
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
pub(crate) const CALLS: &[Call] = &[
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
