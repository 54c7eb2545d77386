//! Lists of writes that are committed at once.

mod chunks;
mod rest;

use std::ffi::c_int;
use std::sync::Arc;

use cg_format::EntityId;
use cg_host::Writes;
use parking_lot::MutexGuard;

use crate::binding::Binding;
use crate::call::call;
use crate::column;
use crate::error::{CG_OK, Fault};
use crate::handle::{self, Exclusive, Held, Kind, Object};
use crate::memory::{self, Out};
use crate::place;
use crate::types::{cg_column, cg_error, cg_handle, cg_pos};
use crate::world::{self, World};

pub use chunks::{cg_tx_chunk, cg_tx_delete_chunk, cg_tx_set_block, cg_tx_set_component, cg_tx_set_side};
pub use rest::{
    cg_tx_entity_component, cg_tx_entity_delete, cg_tx_entity_put, cg_tx_object_delete, cg_tx_object_put,
    cg_tx_property, cg_tx_record_delete, cg_tx_record_put, cg_tx_settings,
};

/// A list of writes to a world.
#[derive(Debug)]
pub(crate) struct Tx {
    pub(crate) world: Arc<World>,
    writes: Exclusive<Writes>,
}

impl Object for Tx {}

impl Held for Tx {
    const KIND: Kind = Kind::Transaction;
}

impl Tx {
    /// The writes, for this call.
    pub(crate) fn writes(&self) -> Result<MutexGuard<'_, Writes>, Fault> {
        self.writes.enter("transaction")
    }
}

/// Adds to the writes of a transaction.
fn add(tx: cg_handle, add: impl FnOnce(&Tx, &mut Writes) -> Result<(), Fault>) -> Result<c_int, Fault> {
    let tx = handle::find::<Tx>(tx)?;
    tx.world.host()?;
    let mut writes = tx.writes()?;
    add(&tx, &mut writes)?;
    Ok(CG_OK)
}

/// An id of 16 bytes that the caller gave.
///
/// # Safety
/// The caller keeps the header's rules of memory.
pub(crate) unsafe fn id(given: *const u8) -> Result<[u8; 16], Fault> {
    // SAFETY: as the caller says.
    unsafe { memory::value(given.cast::<[u8; 16]>(), "id") }
}

/// Makes a transaction. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_tx_new(world: cg_handle, tx: *mut cg_handle, error: *mut cg_error) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_tx_new", error, || {
            let out = Out::new(tx, "tx")?;
            out.put(0);
            let world = handle::find::<World>(world)?;
            world.host()?;
            out.put(handle::give(Tx { world, writes: Exclusive::new(Writes::new()) })?);
            Ok(CG_OK)
        })
    }
}

/// Commits a transaction. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_tx_commit(
    tx: cg_handle,
    durability: u32,
    commit: *mut u64,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_tx_commit", error, || {
            let commit = Out::optional(commit);
            let durability = world::durability(durability)?;
            let tx = handle::find::<Tx>(tx)?;
            let host = tx.world.host()?;
            let saved = host.commit(&mut *tx.writes()?, durability)?;
            Ok(column::committed(saved, &host, commit))
        })
    }
}

/// Accepts the writes of a transaction. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_tx_submit(tx: cg_handle, error: *mut cg_error) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_tx_submit", error, || {
            let tx = handle::find::<Tx>(tx)?;
            let host = tx.world.host()?;
            let mut writes = tx.writes()?;
            Ok(column::result_of(host.submit_writes(&mut writes)?))
        })
    }
}

/// Expects a version of a chunk. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_tx_expect_chunk(
    tx: cg_handle,
    dimension: u32,
    chunk: cg_pos,
    version: u64,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_tx_expect_chunk", error, || {
            add(tx, |_, writes| {
                writes.expect_chunk(place::chunk(dimension, chunk)?, version);
                Ok(())
            })
        })
    }
}

/// Expects a version of an entity. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_tx_expect_entity(
    tx: cg_handle,
    id: *const u8,
    version: u64,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_tx_expect_entity", error, || {
            add(tx, |_, writes| {
                writes.expect_entity(EntityId::from_bytes(self::id(id)?), version);
                Ok(())
            })
        })
    }
}

/// Saves a column. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_tx_column(
    tx: cg_handle,
    binding: cg_handle,
    column: *const cg_column,
    flags: u32,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_tx_column", error, || {
            add(tx, |tx, writes| {
                let is_part = column::is_part(flags)?;
                let binding = handle::find::<Binding>(binding)?;
                let bound = binding.of(&tx.world)?;
                let column = column::read_given(column, bound)?;
                Ok(writes.column(bound, column, is_part)?)
            })
        })
    }
}
