//! Reading a region file one slot at a time.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::header::{self, Entry};
use super::{Compression, RegionPos, Slot, SlotError, decompress, region_pos};

/// Limits of the memory that one column may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimits {
    /// Bytes of a column as it is stored. Default 64 MiB.
    pub stored_bytes: usize,
    /// Bytes of a column after decompression. Default 256 MiB.
    pub raw_bytes: usize,
}

/// An open region file: its header in memory, its columns read when asked for.
///
/// A slot that overlaps another is read like any other: whose bytes they are is known by the position
/// that the column itself holds. One that overlaps more than three is not read past them, so all slots together take
/// no more than four times the file to read.
#[derive(Debug)]
pub struct Region<R = File> {
    pub(super) source: R,
    pub(super) file_bytes: u64,
    pub(super) pos: Option<RegionPos>,
    pub(super) directory: PathBuf,
    entries: Vec<Entry>,
    /// The first sectors of all slots that hold something, ascending.
    first_sectors: Vec<u32>,
    stored: Vec<u8>,
}

/// The other slots that begin inside of what a slot says that it takes, and that it is read past. Damaged files have a few.
const OVERLAPPED: usize = 3;

impl Default for ReadLimits {
    fn default() -> Self {
        Self { stored_bytes: 64 << 20, raw_bytes: 256 << 20 }
    }
}

impl Region<File> {
    /// Opens a file for reading; its place is taken from its name, where that ends in `r.X.Z.mca`.
    ///
    /// An empty file is a region without columns, as the game leaves them; of a cut header the part that is there
    /// is read.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub fn open(path: &Path) -> io::Result<Self> {
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        Self::new(File::open(path)?, region_pos(path), directory)
    }
}

impl<R: Read + Seek> Region<R> {
    /// Reads the header of a region; `directory` is where its `.mcc` files lie.
    ///
    /// # Errors
    /// The source cannot be read.
    pub fn new(mut source: R, pos: Option<RegionPos>, directory: PathBuf) -> io::Result<Self> {
        let file_bytes = source.seek(SeekFrom::End(0))?;
        source.rewind()?;
        let mut bytes = Vec::with_capacity(header::HEADER_BYTES);
        source.by_ref().take(header::HEADER_BYTES as u64).read_to_end(&mut bytes)?;
        let entries = header::read(&bytes);
        let held = entries.iter().filter(|entry| !entry.is_absent());
        let mut first_sectors: Vec<_> = held.map(|entry| entry.first_sector).collect();
        first_sectors.sort_unstable();
        Ok(Self { source, file_bytes, pos, directory, entries, first_sectors, stored: Vec::new() })
    }

    /// The region's place, when the file's name told it.
    pub const fn pos(&self) -> Option<RegionPos> {
        self.pos
    }

    /// The slots that hold something, in header order.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + use<'_, R> {
        Slot::all().zip(&self.entries).filter(|(_, entry)| !entry.is_absent()).map(|(slot, _)| slot)
    }

    /// Whether no slot holds anything, and other bytes than zeros are where slots or their places would be: what is left of a
    /// file whose header was lost, or of columns that were deleted. Reads the file up to the first such byte.
    ///
    /// # Errors
    /// The source cannot be read.
    pub fn is_remains(&mut self) -> io::Result<bool> {
        if self.slots().next().is_some() {
            return Ok(false);
        }
        self.source.rewind()?;
        let (mut bytes, mut at) = (vec![0; 64 << 10], 0);
        loop {
            let count = self.source.read(&mut bytes)?;
            if count == 0 {
                return Ok(false);
            }
            // The times of slots that are empty are no loss.
            let is_time = |at: usize| (header::HEADER_BYTES / 2..header::HEADER_BYTES).contains(&at);
            if bytes.iter().take(count).zip(at..).any(|(byte, at)| *byte != 0 && !is_time(at)) {
                return Ok(true);
            }
            at += count;
        }
    }

    /// The slots whose columns are in files of their own. Reads the head of each slot.
    pub fn external_slots(&mut self) -> BTreeSet<Slot> {
        let slots: Vec<_> = self.slots().collect();
        let is_external = |slot: &Slot| {
            let head = self.read_head(self.entry(*slot));
            head.is_ok_and(|(_, compression)| compression & header::EXTERNAL_BIT != 0)
        };
        slots.into_iter().filter(is_external).collect()
    }

    /// When the slot was written last, in seconds since 1970, as the game noted it.
    pub fn timestamp(&self, slot: Slot) -> u32 {
        self.entry(slot).timestamp
    }

    /// Replaces `out` by the column's NBT and tells how it was compressed; `None` when the slot is empty.
    ///
    /// One read of the slot's bytes, at most the limits' memory.
    ///
    /// # Errors
    /// Why this slot cannot be read; the other slots still can.
    pub fn read(
        &mut self,
        slot: Slot,
        limits: &ReadLimits,
        out: &mut Vec<u8>,
    ) -> Result<Option<Compression>, SlotError> {
        out.clear();
        let entry = self.entry(slot);
        if entry.is_absent() {
            return Ok(None);
        }
        let room_bytes = self.room_bytes(entry)?;
        let (payload_bytes, compression) = self.read_head(entry)?;
        let external = compression & header::EXTERNAL_BIT != 0;
        let compression = Compression::from_byte(compression & !header::EXTERNAL_BIT)?;
        self.stored.clear();
        if external {
            let file = self.open_external(slot)?;
            read_limited(file, limits.stored_bytes, &mut self.stored)?;
        } else {
            let read_bytes = payload_bytes.min(room_bytes);
            read_limited(self.source.by_ref().take(read_bytes), limits.stored_bytes, &mut self.stored)?;
        }
        let decompressed = decompress(compression, &self.stored, limits.raw_bytes, out);
        // A compressed stream says itself where it ends.
        let is_short = match &decompressed {
            Ok(()) => compression == Compression::None,
            Err(error) => matches!(error, SlotError::Truncated(_)),
        };
        if is_short && !external && payload_bytes > room_bytes {
            return Err(SlotError::Overlaps { len_bytes: payload_bytes, room_bytes });
        }
        decompressed.map(|()| Some(compression))
    }

    /// How a slot says that it is compressed, and whether it is in a `.mcc` file; `None` where it says neither.
    pub fn storage(&mut self, slot: Slot) -> Option<(Compression, bool)> {
        let entry = self.entry(slot);
        let (_, compression) = if entry.is_absent() { return None } else { self.read_head(entry).ok()? };
        let is_external = compression & header::EXTERNAL_BIT != 0;
        Some((Compression::from_byte(compression & !header::EXTERNAL_BIT).ok()?, is_external))
    }

    /// How many bytes of payload a slot may take before it overlaps too many others.
    pub(super) fn room_bytes(&self, entry: Entry) -> Result<u64, SlotError> {
        let from = self.first_sectors.partition_point(|sector| *sector < entry.first_sector);
        match self.first_sectors.get(from + 1 + OVERLAPPED) {
            None => Ok(u64::MAX),
            Some(sector) if *sector == entry.first_sector => {
                let end = self.first_sectors.partition_point(|sector| *sector <= entry.first_sector);
                Err(SlotError::Shared { sector: entry.first_sector, slots: end - from })
            }
            Some(sector) => {
                let sectors = u64::from(sector - entry.first_sector);
                Ok(sectors * header::SECTOR_BYTES - header::SLOT_HEAD_BYTES)
            }
        }
    }

    pub(super) fn entry(&self, slot: Slot) -> Entry {
        self.entries.get(usize::from(slot.index())).copied().unwrap_or_default()
    }

    /// Leaves the source at the payload; gives its length and the compression byte.
    ///
    /// The entry's sector count is not asked: some writers let it overflow at 255, and the stored length is what counts.
    fn read_head(&mut self, entry: Entry) -> Result<(u64, u8), SlotError> {
        if entry.first_sector < header::HEADER_SECTORS {
            return Err(SlotError::InHeader { sector: entry.first_sector });
        }
        let offset_bytes = u64::from(entry.first_sector) * header::SECTOR_BYTES;
        let left_bytes = self.file_bytes.saturating_sub(offset_bytes);
        if left_bytes < header::SLOT_HEAD_BYTES {
            return Err(SlotError::PastEnd { offset_bytes, file_bytes: self.file_bytes });
        }
        self.source.seek(SeekFrom::Start(offset_bytes))?;
        let mut head = [0; header::SLOT_HEAD_BYTES as usize];
        self.source.read_exact(&mut head)?;
        let (len_bytes, compression) = header::slot_head(head);
        let left_bytes = left_bytes - u64::from(u32::BITS / 8);
        let Some(payload_bytes) = len_bytes.checked_sub(1) else { return Err(SlotError::NoPayload) };
        if u64::from(len_bytes) > left_bytes {
            return Err(SlotError::LengthPastEnd { len_bytes, left_bytes });
        }
        Ok((u64::from(payload_bytes), compression))
    }

    fn open_external(&self, slot: Slot) -> Result<File, SlotError> {
        let pos = self.pos.ok_or(SlotError::ExternalUnknown)?;
        let name = pos.external_name(slot);
        match File::open(self.directory.join(&name)) {
            Ok(file) => Ok(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(SlotError::ExternalMissing { name }),
            Err(error) => Err(error.into()),
        }
    }
}

pub(super) fn read_limited(
    source: impl Read,
    limit_bytes: usize,
    out: &mut Vec<u8>,
) -> Result<(), SlotError> {
    source.take(limit_bytes as u64 + 1).read_to_end(out)?;
    if out.len() > limit_bytes { Err(SlotError::TooLarge { limit_bytes }) } else { Ok(()) }
}
