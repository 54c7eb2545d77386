//! Slots of a region on their way into a file.

use std::path::Path;

use super::ExportError;
use crate::anvil::region::{RegionPos, RegionWriter, Slot};

/// A file of a region, by what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// Columns.
    Region,
    /// Points of interest.
    Points,
    /// Entities.
    Entities,
}

/// Takes slots: where each belongs, its NBT, and when it was written. Those of one part come together.
pub(super) trait Slots {
    fn put(&mut self, part: Part, slot: Slot, nbt: &[u8], timestamp: u32) -> Result<(), ExportError>;
}

/// Writes slots as the new files of a region, one file at a time.
pub(super) struct RegionFiles<'a> {
    /// The dimension's folder.
    folder: &'a Path,
    pos: RegionPos,
    open: Option<(Part, RegionWriter)>,
    finished: u64,
}

impl Part {
    /// The folder in that of a dimension.
    pub(super) const fn folder(self) -> &'static str {
        match self {
            Self::Region => "region",
            Self::Points => "poi",
            Self::Entities => "entities",
        }
    }
}

impl<'a> RegionFiles<'a> {
    pub(super) const fn new(folder: &'a Path, pos: RegionPos) -> Self {
        Self { folder, pos, open: None, finished: 0 }
    }

    /// Finishes the last file; gives how many there are.
    pub(super) fn finish(mut self) -> Result<u64, ExportError> {
        self.close()?;
        Ok(self.finished)
    }

    fn close(&mut self) -> Result<(), ExportError> {
        let Some((part, writer)) = self.open.take() else { return Ok(()) };
        writer.finish().map_err(|source| self.failed(part, source))?;
        self.finished += 1;
        Ok(())
    }

    fn failed(&self, part: Part, source: std::io::Error) -> ExportError {
        ExportError::Io { path: self.folder.join(part.folder()).join(self.pos.file_name()), source }
    }
}

impl Slots for RegionFiles<'_> {
    fn put(&mut self, part: Part, slot: Slot, nbt: &[u8], timestamp: u32) -> Result<(), ExportError> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != part) {
            self.close()?;
            let created = RegionWriter::create(&self.folder.join(part.folder()), self.pos);
            self.open = Some((part, created.map_err(|source| self.failed(part, source))?));
        }
        let (_, writer) = self.open.as_mut().expect("it was opened above");
        writer.put(slot, nbt, timestamp).map_err(|source| self.failed(part, source))
    }
}
