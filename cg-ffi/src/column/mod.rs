//! Columns in the numbers of a binding.

mod given;
mod view;
mod walk;

use std::ffi::c_int;
use std::sync::Arc;

use cg_host::{Column, Host, Peeked, Saved};

use crate::binding::Binding;
use crate::call::call;
use crate::error::{CG_ABSENT, CG_OK, CG_PENDING, CG_UNCHANGED, Fault};
use crate::handle::{self, OutLent};
use crate::memory::{self, Out};
use crate::place;
use crate::types::{cg_column, cg_column_at, cg_error, cg_handle};
use crate::world::World;

pub(crate) use given::{at as at_given, read as read_given};
pub(crate) use view::ColumnView;
pub use walk::{cg_columns_next, cg_columns_walk};

/// Sections that are not listed stay.
const PART: u32 = 1;

/// Reads the flags of a save: whether the column is a part.
pub(crate) fn is_part(flags: u32) -> Result<bool, Fault> {
    place::flags(flags, PART, "the column")?;
    Ok(flags & PART != 0)
}

/// The result of a commit.
pub(crate) const fn result_of(saved: Saved) -> c_int {
    match saved {
        Saved::Unchanged => CG_UNCHANGED,
        Saved::Changed(_) | Saved::Accepted => CG_OK,
    }
}

/// The result of a commit, and its number for the caller: the newest one if nothing was written.
pub(crate) fn committed(saved: Saved, host: &Host, commit: Option<Out<u64>>) -> c_int {
    if let Some(commit) = commit {
        let seq = match saved {
            Saved::Changed(seq) => seq,
            Saved::Unchanged | Saved::Accepted => host.world().last_commit(),
        };
        commit.put(seq.get());
    }
    result_of(saved)
}

/// A world and a binding of it.
fn bound(world: cg_handle, binding: cg_handle) -> Result<(Arc<Host>, Arc<cg_host::Binding>), Fault> {
    let world = handle::find::<World>(world)?;
    let host = world.host()?;
    let binding = handle::find::<Binding>(binding)?;
    Ok((host, Arc::clone(binding.of(&world)?)))
}

/// Gives a column to the caller.
fn show(out: OutLent<cg_column>, column: Column) -> Result<c_int, Fault> {
    out.put(ColumnView::new(column))?;
    Ok(CG_OK)
}

/// Loads a column. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_column_load(
    world: cg_handle,
    binding: cg_handle,
    at: *const cg_column_at,
    out: *mut cg_handle,
    view: *mut *const cg_column,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_column_load", error, || {
            let out = OutLent::new(out, view)?;
            let (host, binding) = bound(world, binding)?;
            let at = at_given(&memory::sized(at, "at")?)?;
            host.load(&binding, at)?.map_or(Ok(CG_ABSENT), |column| show(out, column))
        })
    }
}

/// Loads a column from memory. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_column_peek(
    world: cg_handle,
    binding: cg_handle,
    at: *const cg_column_at,
    out: *mut cg_handle,
    view: *mut *const cg_column,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_column_peek", error, || {
            let out = OutLent::new(out, view)?;
            let (host, binding) = bound(world, binding)?;
            let at = at_given(&memory::sized(at, "at")?)?;
            match host.peek(&binding, at)? {
                Peeked::Absent => Ok(CG_ABSENT),
                Peeked::NotLoaded => Ok(CG_PENDING),
                Peeked::Here(column) => show(out, *column),
            }
        })
    }
}

/// Saves a column. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_column_save(
    world: cg_handle,
    binding: cg_handle,
    column: *const cg_column,
    flags: u32,
    commit: *mut u64,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_column_save", error, || {
            let commit = Out::optional(commit);
            let is_part = is_part(flags)?;
            let (host, binding) = bound(world, binding)?;
            let saved = host.save(&binding, read_given(column, &binding)?, is_part)?;
            Ok(committed(saved, &host, commit))
        })
    }
}

/// Accepts a column. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_column_submit(
    world: cg_handle,
    binding: cg_handle,
    column: *const cg_column,
    flags: u32,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_column_submit", error, || {
            let is_part = is_part(flags)?;
            let (host, binding) = bound(world, binding)?;
            let column = read_given(column, &binding)?;
            Ok(result_of(host.submit(&binding, column, is_part)?))
        })
    }
}
