#![doc = include_str!("../README.md")]
//!
//! # Rooms
//! A room uses the rooms below it, never above; `cargo xtask layers` checks that.
//!
//! ```text
//! queue      answers that a game fetches when it wants
//! reads      entities, properties, objects, records, and cursors over them
//! tx         lists of writes that are committed at once
//! chunk      chunks by themselves, in numbers of the world
//! column     columns in the numbers of a binding
//! settings   settings of a world
//! binding    the host's numbers
//! names      names of a world, and their numbers
//! metrics    how a world is doing
//! world      opening, closing, and what worlds are
//! library    version, results, the end of handles
//! place      positions, boxes, orders, flags
//! log        the ring of lines
//! text       texts, bytes and names, in and out
//! call       the frame of every function
//! handle     numbers that stand for things of the library
//! memory     memory of the caller
//! error      why a call failed
//! types      the structs of the header
//! ```
#![allow(non_camel_case_types, reason = "types have the names of the header, and a test compares both")]
#![allow(clippy::missing_safety_doc, reason = "the header's rules of memory are those of every function")]

mod binding;
mod call;
mod chunk;
mod column;
mod error;
mod handle;
mod library;
mod log;
mod memory;
mod metrics;
mod names;
mod place;
mod queue;
mod reads;
mod settings;
mod text;
mod tx;
#[allow(missing_docs, reason = "the header documents the fields")]
mod types;
mod world;

pub use binding::{cg_binding_ids, cg_binding_new, cg_binding_unknown};
pub use chunk::{
    cg_chunk_block, cg_chunk_cells, cg_chunk_component, cg_chunk_components, cg_chunk_load, cg_chunk_new,
    cg_chunk_set_block, cg_chunk_set_cells, cg_chunk_set_component, cg_chunk_set_side, cg_chunk_side,
};
pub use column::{
    cg_column_load, cg_column_peek, cg_column_save, cg_column_submit, cg_columns_next, cg_columns_walk,
};
pub use error::{CG_ABSENT, CG_INTERNAL, CG_OK, CG_PENDING, CG_UNCHANGED};
pub use library::{cg_abi_check, cg_abi_version, cg_build_info, cg_kind_code, cg_release};
pub use log::cg_log_next;
pub use metrics::{cg_metric_count, cg_metric_name, cg_metrics};
pub use names::{cg_name_of, cg_names_count, cg_names_find, cg_names_register};
pub use queue::{cg_queue_cancel, cg_queue_commit, cg_queue_load, cg_queue_new, cg_queue_wait};
pub use reads::{
    cg_cursor_next, cg_entities_detached, cg_entity_component, cg_entity_get, cg_object_get, cg_object_list,
    cg_property_get, cg_property_list, cg_record_get, cg_records_in,
};
pub use settings::cg_settings_load;
pub use text::cg_bytes_of;
pub use tx::{
    cg_tx_chunk, cg_tx_column, cg_tx_commit, cg_tx_delete_chunk, cg_tx_entity_component, cg_tx_entity_delete,
    cg_tx_entity_put, cg_tx_expect_chunk, cg_tx_expect_entity, cg_tx_new, cg_tx_object_delete,
    cg_tx_object_put, cg_tx_property, cg_tx_record_delete, cg_tx_record_put, cg_tx_set_block,
    cg_tx_set_component, cg_tx_set_side, cg_tx_settings, cg_tx_submit,
};
pub use types::{
    CG_ABI_VERSION, CG_NO_ID, cg_binding_desc, cg_biome, cg_block, cg_block_entity, cg_box, cg_bytes,
    cg_cell, cg_cells, cg_column, cg_column_at, cg_column_place, cg_component, cg_done, cg_entity, cg_error,
    cg_handle, cg_name, cg_options, cg_player_at, cg_pos, cg_record, cg_row, cg_scheduled, cg_section,
    cg_settings, cg_str, cg_tick_report, cg_usage, cg_world_info,
};
pub use world::{
    cg_keep_loaded, cg_tick, cg_world_checkpoint, cg_world_close, cg_world_flush, cg_world_info_of,
    cg_world_open, cg_world_plan, cg_world_resume, cg_world_usage, cg_world_verify,
};
