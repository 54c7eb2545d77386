//! Columns with lost chunks: what a game would make of them if they were written as they are.
//!
//! A column that says that it is generated to the end is never generated again. Where chunks of it cannot be read there
//! would be nothing for ever, so such a column is left out, or says that it was only begun.

use super::options::Damaged;
use super::region::Region;
use super::report::{DamagedColumn, ExportReport};
use crate::codec::Built;
use crate::column::Column;
use crate::nbt::{self, Compound};

impl Region<'_> {
    /// Whether a column that was built may be written. One with lost chunks is noted in the report.
    pub(super) fn may_write(&self, built: &mut Built, report: &mut ExportReport) -> bool {
        if !built.lacks_chunks() {
            return true;
        }
        let Built { column, lost, .. } = built;
        let has_blocks = column.sections.iter().any(|section| section.blocks.is_some());
        let is_written = has_blocks && self.damaged == Damaged::Regenerate;
        if is_written {
            begin_again(column);
        }
        report.damaged_columns.push(DamagedColumn {
            dimension: self.dimension_name.clone(),
            x: column.pos.x,
            z: column.pos.z,
            sections: lost.drain(..).map(|(y, _)| y).collect(),
            is_written,
        });
        is_written
    }
}

/// Makes a column say that it was only begun.
fn begin_again(column: &mut Column) {
    let carried = Compound::parse(&column.carried, &nbt::Limits::default()).ok();
    let status = column.status().unwrap_or_default();
    // Until 1.20 the names had no namespace.
    let status = if status.contains(':') { "minecraft:empty" } else { "empty" };
    let carried = nbt::payload(|out| {
        for field in carried.into_iter().flat_map(Compound::fields) {
            if field.name.0 != b"Status" {
                out.raw_fields(field.raw);
            }
        }
        out.string("Status", status).expect("a short text");
    });
    column.carried = carried;
}
