//! Records that the library lends.

use std::ffi::c_int;

use cg_format::RecordId;
use cg_format::record::Record;

use crate::call::call;
use crate::error::{CG_ABSENT, CG_OK};
use crate::handle::{self, Held, Kind, Object};
use crate::memory::Out;
use crate::place;
use crate::text::{lend, lend_text};
use crate::tx;
use crate::types::{cg_error, cg_handle, cg_record};
use crate::world::World;

/// A record, and a struct of the header that points into it.
#[derive(Debug)]
pub(super) struct RecordView {
    /// The pointers of the view point into it. It is never changed.
    _record: Box<Record>,
    view: Box<cg_record>,
}

// SAFETY: the pointers point into what the view owns and never changes.
unsafe impl Send for RecordView {}
// SAFETY: as above.
unsafe impl Sync for RecordView {}

impl Object for RecordView {}

impl Held for RecordView {
    const KIND: Kind = Kind::Record;
}

impl RecordView {
    pub(super) fn new(id: RecordId, record: Record) -> Self {
        let record = Box::new(record);
        let view = Box::new(cg_record {
            id: id.to_bytes(),
            dimension: place::of_dimension(record.position.dimension()),
            fraction: record.position.fraction(),
            block: place::of_block(record.position.block()),
            timestamp: record.timestamp,
            kind: lend_text(record.kind()),
            bytes: lend(&record.payload),
        });
        Self { _record: record, view }
    }

    /// The struct, valid as long as this is.
    pub(super) fn view(&self) -> cg_record {
        *self.view
    }
}

/// A record. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_record_get(
    world: cg_handle,
    id: *const u8,
    out: *mut cg_handle,
    view: *mut *const cg_record,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_record_get", error, || {
            let (out, lent) = (Out::new(out, "out")?, Out::new(view, "view")?);
            out.put(0);
            lent.put(std::ptr::null());
            let world = handle::find::<World>(world)?;
            let id = RecordId::from_bytes(tx::id(id)?);
            let Some(record) = world.committed()?.world().records().get(id)? else { return Ok(CG_ABSENT) };
            let shown = RecordView::new(id, record);
            let pointer = &raw const *shown.view;
            out.put(handle::give(shown)?);
            lent.put(pointer);
            Ok(CG_OK)
        })
    }
}
