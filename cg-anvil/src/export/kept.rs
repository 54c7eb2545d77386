//! Kept slots: back as they were while the world has what was read of them, and named where it has something else.

use std::collections::BTreeMap;

use super::error::ExportError;
use super::region::Region;
use super::report::{DroppedSlot, ExportReport, LISTED};
use super::slots::{Part, Slots};
use crate::codec::ColumnBuilder;
use crate::mapping::kept::{Bytes, Folder, KeptSlot};
use crate::region::{ColumnPos, Slot};

/// The kept slots of a region's folder, in slot order, with the bytes of their objects.
pub(super) type KeptSlots = BTreeMap<Slot, (ColumnPos, KeptSlot, u64)>;

/// The slots of a folder that are kept as they were.
pub(super) fn kept_slots(
    builder: &ColumnBuilder<'_>,
    folder: Folder,
    columns: Vec<ColumnPos>,
    report: &mut ExportReport,
) -> Result<KeptSlots, ExportError> {
    let mut all = KeptSlots::new();
    for at in columns {
        if let Some((kept, len_bytes)) = builder.kept_slot(folder, at, &mut report.misses())? {
            all.insert(at.slot(), (at, kept, len_bytes));
        }
    }
    Ok(all)
}

/// Writes a slot as it was.
pub(super) fn put_kept(
    slots: &mut dyn Slots,
    folder: Folder,
    slot: Slot,
    (kept, len_bytes): (&KeptSlot, u64),
    report: &mut ExportReport,
) -> Result<(), ExportError> {
    let part = Part::of(folder);
    match &kept.bytes {
        Bytes::Old(timestamp, nbt) => {
            report.old_slots += 1;
            slots.put(part, slot, nbt, *timestamp)
        }
        Bytes::Raw(raw) => {
            report.kept_slots += 1;
            report.kept_slot_bytes += len_bytes;
            slots.put_raw(part, slot, raw)
        }
    }
}

impl Region<'_> {
    /// Notes a slot that does not go back because the world has something else there.
    pub(super) fn drop_kept(
        &self,
        folder: Folder,
        column: ColumnPos,
        kept: &KeptSlot,
        report: &mut ExportReport,
    ) {
        if kept.is_old() {
            report.left_old_slots += 1;
        } else {
            self.note_dropped(folder, column, &kept.reason, report);
        }
    }

    /// Notes a place with an unreadable part that is not written.
    pub(super) fn note_dropped(
        &self,
        folder: Folder,
        column: ColumnPos,
        reason: &str,
        report: &mut ExportReport,
    ) {
        report.dropped_slot_count += 1;
        if report.dropped_slots.len() < LISTED {
            report.dropped_slots.push(DroppedSlot {
                dimension: self.dimension_name.clone(),
                folder: folder.name().to_owned(),
                x: column.x,
                z: column.z,
                reason: reason.to_owned(),
            });
        }
    }
}
