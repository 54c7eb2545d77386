//! Components and side data of chunks.

use std::ffi::c_int;

use cg_format::ComponentId;

use super::{Chunk, cell, side};
use crate::call::call;
use crate::error::{CG_ABSENT, CG_OK};
use crate::handle;
use crate::memory::Out;
use crate::text::{self, lend};
use crate::types::{cg_bytes, cg_cell, cg_component, cg_error, cg_handle};

/// A component of a cell. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_chunk_component(
    chunk: cg_handle,
    at: cg_cell,
    component: u64,
    out: *mut cg_bytes,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_chunk_component", error, || {
            let out = Out::new(out, "out")?;
            out.put(cg_bytes::NONE);
            let at = cell(at)?;
            let chunk = handle::find::<Chunk>(chunk)?;
            let state = chunk.state()?;
            let found = state.blocks.component(at, ComponentId::new(component));
            Ok(lend_found(out, found))
        })
    }
}

fn lend_found(out: Out<cg_bytes>, found: Option<&[u8]>) -> c_int {
    found.map_or(CG_ABSENT, |bytes| {
        out.put(lend(bytes));
        CG_OK
    })
}

/// Replaces a component of a cell. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_chunk_set_component(
    chunk: cg_handle,
    at: cg_cell,
    component: u64,
    bytes: cg_bytes,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_chunk_set_component", error, || {
            let (at, bytes) = (cell(at)?, text::bytes(bytes, "bytes")?);
            let chunk = handle::find::<Chunk>(chunk)?;
            let mut state = chunk.state()?;
            state.lent.clear();
            state.blocks.set_component(at, ComponentId::new(component), bytes)?;
            Ok(CG_OK)
        })
    }
}

/// All components. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_chunk_components(
    chunk: cg_handle,
    all: *mut *const cg_component,
    count: *mut usize,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_chunk_components", error, || {
            let (all, count) = (Out::new(all, "all")?, Out::new(count, "count")?);
            all.put(std::ptr::null());
            count.put(0);
            let chunk = handle::find::<Chunk>(chunk)?;
            let state = &mut *chunk.state()?;
            // What was lent before stays valid: nothing was changed since.
            if state.lent.is_empty() {
                let lent = state.blocks.components().map(|(component, at, bytes)| cg_component {
                    component: component.get(),
                    at: cg_cell { x: at.cell.x(), y: at.cell.y(), z: at.cell.z(), layer: at.layer },
                    reserved: 0,
                    bytes: lend(bytes),
                });
                state.lent = lent.collect();
            }
            if !state.lent.is_empty() {
                all.put(state.lent.as_ptr());
                count.put(state.lent.len());
            }
            Ok(CG_OK)
        })
    }
}

/// Side data. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_chunk_side(
    chunk: cg_handle,
    side: u64,
    out: *mut cg_bytes,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_chunk_side", error, || {
            let out = Out::new(out, "out")?;
            out.put(cg_bytes::NONE);
            let side = self::side(side)?;
            let chunk = handle::find::<Chunk>(chunk)?;
            let state = chunk.state()?;
            Ok(lend_found(out, state.blocks.side(side)))
        })
    }
}

/// Replaces side data. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_chunk_set_side(
    chunk: cg_handle,
    side: u64,
    bytes: cg_bytes,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_chunk_set_side", error, || {
            let side = self::side(side)?;
            let bytes = text::optional(bytes, "bytes")?.map(<[u8]>::to_vec);
            let chunk = handle::find::<Chunk>(chunk)?;
            let mut state = chunk.state()?;
            state.lent.clear();
            match bytes {
                Some(bytes) => drop(state.blocks.set_side(side, bytes)),
                None => drop(state.blocks.remove_side(side)),
            }
            Ok(CG_OK)
        })
    }
}
