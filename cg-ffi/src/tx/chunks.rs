//! Writes of chunks, in numbers of the world.

use std::ffi::c_int;
use std::sync::Arc;

use cg_format::chunk::CellLayer;
use cg_format::{BlockId, ChunkAt, ComponentId, Dimension};

use super::add;
use crate::call::call;
use crate::chunk::{self, Chunk};
use crate::error::Fault;
use crate::handle;
use crate::place;
use crate::text;
use crate::types::{cg_bytes, cg_error, cg_handle, cg_pos};

/// Saves a chunk. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_tx_chunk(
    tx: cg_handle,
    dimension: u32,
    chunk_at: cg_pos,
    chunk: cg_handle,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_tx_chunk", error, || {
            add(tx, |tx, writes| {
                let chunk = handle::find::<Chunk>(chunk)?;
                if !Arc::ptr_eq(&chunk.world, &tx.world) {
                    return Err(Fault::invalid("the chunk is of another world, whose numbers are others"));
                }
                writes.chunk(place::chunk(dimension, chunk_at)?, chunk.copy()?);
                Ok(())
            })
        })
    }
}

/// Deletes a chunk. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_tx_delete_chunk(
    tx: cg_handle,
    dimension: u32,
    chunk_at: cg_pos,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_tx_delete_chunk", error, || {
            add(tx, |_, writes| {
                writes.delete_chunk(place::chunk(dimension, chunk_at)?);
                Ok(())
            })
        })
    }
}

/// Replaces a block. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_tx_set_block(
    tx: cg_handle,
    dimension: u32,
    block_at: cg_pos,
    block: u64,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_tx_set_block", error, || {
            add(tx, |_, writes| {
                let dimension = Dimension::new(dimension.into());
                writes.set_block(dimension, place::block(block_at), BlockId::new(block));
                Ok(())
            })
        })
    }
}

/// Replaces a component of a block. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_tx_set_component(
    tx: cg_handle,
    dimension: u32,
    block_at: cg_pos,
    layer: u8,
    component: u64,
    bytes: cg_bytes,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_tx_set_component", error, || {
            add(tx, |_, writes| {
                let bytes = text::bytes(bytes, "bytes")?.to_vec();
                let block = place::block(block_at);
                let at = ChunkAt::new(Dimension::new(dimension.into()), block.chunk());
                let cell = CellLayer::new(block.local(), layer);
                writes.set_component(at, cell, ComponentId::new(component), bytes);
                Ok(())
            })
        })
    }
}

/// Replaces side data. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_tx_set_side(
    tx: cg_handle,
    dimension: u32,
    chunk_at: cg_pos,
    side: u64,
    bytes: cg_bytes,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_tx_set_side", error, || {
            add(tx, |_, writes| {
                let bytes = text::optional(bytes, "bytes")?.map(<[u8]>::to_vec);
                writes.set_side(place::chunk(dimension, chunk_at)?, chunk::side(side)?, bytes);
                Ok(())
            })
        })
    }
}
