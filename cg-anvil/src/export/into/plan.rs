//! Contents of the world in the boxes: asked before anything is written.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use uuid::Uuid;

use super::lists;
use super::report::{IntoReport, NewerColumn};
use super::target::Target;
use crate::export::slots::{Part, Slots};
use crate::export::{DamagedColumn, ExportError};
use crate::nbt::{self, Document};
use crate::region::{ColumnPos, RawSlot, RegionPos, Slot};

/// The columns that are put.
#[derive(Debug, Default)]
pub(super) struct Plan {
    columns: BTreeMap<ColumnPos, Planned>,
    /// Columns of the world that are left out.
    left_out: BTreeSet<ColumnPos>,
    /// Of these, columns with a slot that an import kept as bytes: what they hold cannot be told from the save's.
    unread: BTreeSet<ColumnPos>,
}

/// Contents of a column in the world.
#[derive(Debug, Default)]
struct Planned {
    parts: BTreeSet<Part>,
    data_version: i32,
    entities: Vec<Uuid>,
}

/// Notes the slots of a region.
pub(super) struct Planner<'a> {
    pub(super) plan: &'a mut Plan,
    pub(super) pos: RegionPos,
}

impl Plan {
    /// Leaves out columns with lost chunks, and those of newer games unless they are allowed.
    pub(super) fn leave_out(
        &mut self,
        damaged: &[DamagedColumn],
        target: &Target,
        allow_newer: bool,
        report: &mut IntoReport,
    ) {
        let damaged = damaged
            .iter()
            .filter(|column| !column.is_written)
            .map(|column| ColumnPos::new(column.x, column.z));
        self.left_out.extend(damaged);
        for (&column, Planned { data_version, .. }) in &self.columns {
            let data_version = *data_version;
            if !allow_newer && !self.left_out.contains(&column) && target.is_older_than(data_version) {
                report.newer_columns.add(NewerColumn { x: column.x, z: column.z, data_version });
                self.left_out.insert(column);
            }
        }
        self.columns.retain(|column, _| !self.left_out.contains(column));
    }

    /// How many columns are left out because an import kept a slot of them as bytes.
    pub(super) fn unread_count(&self) -> u64 {
        self.unread.len() as u64
    }

    /// Whether the world has something of a column, whatever becomes of it.
    pub(super) fn knows(&self, column: ColumnPos) -> bool {
        self.left_out.contains(&column) || self.has(column, Part::Region)
    }

    /// Whether a slot is put.
    pub(super) fn has(&self, column: ColumnPos, part: Part) -> bool {
        self.columns.get(&column).is_some_and(|planned| planned.parts.contains(&part))
    }

    /// Whether a slot is put, or emptied beside its column.
    pub(super) fn changes(&self, column: ColumnPos, part: Part) -> bool {
        self.has(column, part) || self.has(column, Part::Region)
    }

    /// The columns of a region that are put.
    pub(super) fn columns_of(&self, pos: RegionPos) -> impl Iterator<Item = (Slot, ColumnPos)> + use<'_> {
        let slots = Slot::all().map(move |slot| (slot, pos.column(slot)));
        slots.filter(|(_, column)| self.columns.contains_key(column))
    }

    /// All entities that are put.
    pub(super) fn entities(&self) -> HashSet<Uuid> {
        self.columns.values().flat_map(|planned| planned.entities.iter().copied()).collect()
    }
}

impl Slots for Planner<'_> {
    fn put(&mut self, part: Part, slot: Slot, nbt: &[u8], _: u32) -> Result<(), ExportError> {
        let planned = self.plan.columns.entry(self.pos.column(slot)).or_default();
        planned.parts.insert(part);
        // What is no NBT has no version and no entities.
        if let Ok(Document { root, .. }) = Document::parse(nbt, &nbt::Limits::default()) {
            planned.data_version = planned.data_version.max(root.int("DataVersion").unwrap_or(0));
            if part != Part::Points {
                planned.entities.extend(lists::uuids(root).into_iter().flatten());
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, column: Slot) {
        self.plan.left_out.insert(self.pos.column(column));
    }

    fn put_raw(&mut self, _: Part, slot: Slot, _: &RawSlot) -> Result<(), ExportError> {
        let column = self.pos.column(slot);
        self.plan.left_out.insert(column);
        self.plan.unread.insert(column);
        Ok(())
    }
}
