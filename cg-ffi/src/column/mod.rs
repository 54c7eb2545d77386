//! Columns in the numbers of a binding.

mod given;
mod view;
mod walk;

use std::ffi::c_int;
use std::sync::Arc;

use cg_host::{ColumnAt, Host, Peeked, Saved};

use crate::binding::Binding;
use crate::call::call;
use crate::error::{CG_ABSENT, CG_OK, CG_PENDING, CG_UNCHANGED, Fault};
use crate::handle;
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

/// The number of a commit; the newest one if nothing was written.
pub(crate) fn commit_of(saved: Saved, host: &Host) -> u64 {
    match saved {
        Saved::Changed(seq) => seq.get(),
        Saved::Unchanged | Saved::Accepted => host.world().last_commit().get(),
    }
}

/// The places of the caller for a column.
struct Outs {
    handle: Out<cg_handle>,
    view: Out<*const cg_column>,
}

impl Outs {
    /// Empties both.
    ///
    /// # Safety
    /// The caller keeps the header's rules of memory.
    unsafe fn new(handle: *mut cg_handle, view: *mut *const cg_column) -> Result<Self, Fault> {
        // SAFETY: as the caller says.
        let outs = unsafe { Self { handle: Out::new(handle, "out")?, view: Out::new(view, "view")? } };
        outs.handle.put(0);
        outs.view.put(std::ptr::null());
        Ok(outs)
    }

    fn put(&self, column: cg_host::Column) -> Result<c_int, Fault> {
        let (handle, view) = give(column)?;
        self.handle.put(handle);
        self.view.put(view);
        Ok(CG_OK)
    }
}

/// Gives a column a handle, and lends a view of it.
pub(crate) fn give(column: cg_host::Column) -> Result<(cg_handle, *const cg_column), Fault> {
    let view = ColumnView::new(column);
    let lent = view.lent();
    Ok((handle::give(view)?, lent))
}

/// What a load needs.
///
/// # Safety
/// The caller keeps the header's rules of memory.
unsafe fn asked(
    world: cg_handle,
    binding: cg_handle,
    at: *const cg_column_at,
) -> Result<(Arc<World>, Arc<Binding>, ColumnAt), Fault> {
    let world = handle::find::<World>(world)?;
    world.host()?;
    let binding = handle::find::<Binding>(binding)?;
    // SAFETY: as the caller says.
    let at = unsafe { memory::sized(at, "at") }?;
    Ok((world, binding, at_given(&at)?))
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
            let outs = Outs::new(out, view)?;
            let (world, binding, at) = asked(world, binding, at)?;
            match world.host()?.load(binding.of(&world)?, at)? {
                None => Ok(CG_ABSENT),
                Some(column) => outs.put(column),
            }
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
            let outs = Outs::new(out, view)?;
            let (world, binding, at) = asked(world, binding, at)?;
            match world.host()?.peek(binding.of(&world)?, at)? {
                Peeked::Absent => Ok(CG_ABSENT),
                Peeked::NotLoaded => Ok(CG_PENDING),
                Peeked::Here(column) => outs.put(*column),
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
            let world = handle::find::<World>(world)?;
            let host = world.host()?;
            let binding = handle::find::<Binding>(binding)?;
            let bound = binding.of(&world)?;
            let column = read_given(column, bound)?;
            let saved = host.save(bound, column, is_part)?;
            if let Some(commit) = commit {
                commit.put(commit_of(saved, &host));
            }
            Ok(result_of(saved))
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
            let world = handle::find::<World>(world)?;
            let host = world.host()?;
            let binding = handle::find::<Binding>(binding)?;
            let bound = binding.of(&world)?;
            let column = read_given(column, bound)?;
            Ok(result_of(host.submit(bound, column, is_part)?))
        })
    }
}
