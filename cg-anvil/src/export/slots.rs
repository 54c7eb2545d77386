//! Slots of a region on their way into a file.

use std::path::Path;

use super::error::ExportError;
use crate::mapping::kept::Folder;
use crate::region::{RawSlot, RegionPos, RegionWriter, Slot};

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

    /// Says that a column of the world is none to be put into a save.
    fn leave_out(&mut self, _column: Slot) {}

    /// Takes a slot as it stood in the file that it came from.
    fn put_raw(&mut self, part: Part, slot: Slot, raw: &RawSlot) -> Result<(), ExportError>;
}

/// Writes slots as the new files of a region, one file at a time.
pub(super) struct RegionFiles<'a> {
    /// The dimension's folder.
    folder: &'a Path,
    pos: RegionPos,
    open: Option<(Part, RegionWriter)>,
    finished: u64,
    /// Slots without a byte of their own, whose places would be those of others.
    left_out: u64,
}

/// Counts of what was written of a region.
pub(super) struct Finished {
    /// Files.
    pub(super) files: u64,
    /// Slots that are not written, because the save had no byte of their own.
    pub(super) left_out: u64,
}

impl Part {
    /// The file of a slot of a folder.
    pub(super) const fn of(folder: Folder) -> Self {
        match folder {
            Folder::Region => Self::Region,
            Folder::Entities => Self::Entities,
            Folder::Poi => Self::Points,
        }
    }

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
        Self { folder, pos, open: None, finished: 0, left_out: 0 }
    }

    /// Finishes the last file.
    pub(super) fn finish(mut self) -> Result<Finished, ExportError> {
        self.close()?;
        Ok(Finished { files: self.finished, left_out: self.left_out })
    }

    /// The file of a part, which is begun with its first slot.
    fn writer(&mut self, part: Part) -> Result<&mut RegionWriter, ExportError> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != part) {
            self.close()?;
            let created = RegionWriter::create(&self.folder.join(part.folder()), self.pos);
            self.open = Some((part, created.map_err(|source| self.failed(part, source))?));
        }
        let (_, writer) = self.open.as_mut().expect("it was opened above");
        Ok(writer)
    }

    fn close(&mut self) -> Result<(), ExportError> {
        let Some((part, mut writer)) = self.open.take() else { return Ok(()) };
        self.left_out += writer.point_at_nothing();
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
        let written = self.writer(part)?.put(slot, nbt, timestamp);
        written.map_err(|source| self.failed(part, source))
    }

    fn put_raw(&mut self, part: Part, slot: Slot, raw: &RawSlot) -> Result<(), ExportError> {
        let written = self.writer(part)?.put_raw(slot, raw);
        written.map_err(|source| self.failed(part, source))
    }
}
