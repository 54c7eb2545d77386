//! Records that the library lends.

use std::ffi::c_int;

use cg_format::RecordId;
use cg_format::record::Record;

use crate::call::call;
use crate::error::{CG_ABSENT, CG_OK};
use crate::handle::{self, Held, Kind, Lent, Object, OutLent};
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
    view: cg_record,
}

// SAFETY: the pointers point into what the view owns and never changes.
unsafe impl Send for RecordView {}
// SAFETY: as above.
unsafe impl Sync for RecordView {}

impl Object for RecordView {}

impl Held for RecordView {
    const KIND: Kind = Kind::Record;
}

impl Lent for RecordView {
    type View = cg_record;

    fn view(&self) -> &cg_record {
        &self.view
    }
}

impl RecordView {
    pub(super) fn new(id: RecordId, record: Record) -> Self {
        let record = Box::new(record);
        let view = cg_record {
            id: id.to_bytes(),
            dimension: place::of_dimension(record.position.dimension()),
            fraction: record.position.fraction(),
            block: place::of_block(record.position.block()),
            timestamp: record.timestamp,
            kind: lend_text(record.kind()),
            bytes: lend(&record.payload),
        };
        Self { _record: record, view }
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
            let out = OutLent::new(out, view)?;
            let world = handle::find::<World>(world)?;
            let id = RecordId::from_bytes(tx::id(id)?);
            let Some(record) = world.committed()?.world().records().get(id)? else { return Ok(CG_ABSENT) };
            out.put(RecordView::new(id, record))?;
            Ok(CG_OK)
        })
    }
}
