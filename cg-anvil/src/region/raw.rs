//! A slot as it stands in its file, for what cannot be read of it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::header::{self, EXTERNAL_BIT, SECTOR_BYTES, SLOT_HEAD_BYTES};
use super::reader::{self, Region};
use super::{Compression, ReadLimits, Slot, SlotError, compress, decompress};

/// Bytes of the length before a slot's compression byte.
const LENGTH_BYTES: u64 = 4;

/// A slot as it stands in its file: what its sectors hold, and the `.mcc` file beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawSlot {
    /// When it was written, in seconds since 1970.
    pub timestamp: u32,
    /// From the slot's first sector on: length, compression, payload. Empty where the file has no byte of it.
    pub stored: Vec<u8>,
    /// Where the header says that it is, if the stored length does not: the count of sectors that the file has of it, or of
    /// a slot without a byte the first sector and in the low byte the count. `None` also for a slot whose bytes are those
    /// of too many others, or cannot be kept.
    pub place: Option<u32>,
    /// The bytes of its `.mcc` file, if there is one.
    pub external: Option<Vec<u8>>,
}

/// How much of a slot is read as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// As much as its length says: its content was decompressed.
    Length,
    /// Contents of its sectors, 1 MiB at most: nothing else tells where it ends.
    Sectors,
}

impl RawSlot {
    /// A slot whose bytes are too many to be kept, or cannot be read.
    pub const fn without_bytes(timestamp: u32) -> Self {
        Self { timestamp, stored: Vec::new(), place: None, external: None }
    }

    /// Whether the column is in an `.mcc` file.
    pub(super) fn is_external(&self) -> bool {
        self.stored.get(LENGTH_BYTES as usize).is_some_and(|compression| compression & EXTERNAL_BIT != 0)
    }

    /// A slot that is compressed as the game does.
    pub fn compressed(nbt: &[u8], timestamp: u32) -> Self {
        let payload = compress(nbt);
        let mut stored = header::write_slot_head(payload.len() as u32 + 1, Compression::Zlib as u8).to_vec();
        stored.extend(payload);
        Self { timestamp, stored, place: None, external: None }
    }

    /// Replaces `out` by the slot's NBT.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn read(&self, limits: &ReadLimits, out: &mut Vec<u8>) -> Result<(), SlotError> {
        out.clear();
        let Some((head, payload)) = self.stored.split_first_chunk() else {
            return Err(SlotError::NoPayload);
        };
        let (_, compression) = header::slot_head(*head);
        let compression = Compression::from_byte(compression & !EXTERNAL_BIT)?;
        let payload = if self.is_external() { self.external.as_deref().unwrap_or_default() } else { payload };
        decompress(compression, payload, limits.raw_bytes, out)
    }

    /// How many bytes are kept.
    pub fn len_bytes(&self) -> usize {
        self.stored.len() + self.external.as_ref().map_or(0, Vec::len)
    }
}

impl<R: Read + Seek> Region<R> {
    /// The slot as it stands; `None` when the header has nothing there.
    ///
    /// Of a slot whose bytes more than three others begin in, only what is before the fourth is read, so that all slots
    /// together take no more than four times the file. Zeros after the last byte of one whose length is no length are
    /// padding, and zeros stand for what the end of the file cut off.
    ///
    /// # Errors
    /// The file, or an `.mcc` file that is there, cannot be read, or takes more than the limits.
    pub fn raw(&mut self, slot: Slot, extent: Extent, limits: &ReadLimits) -> io::Result<Option<RawSlot>> {
        let entry = self.entry(slot);
        if entry.is_absent() {
            return Ok(None);
        }
        let mut raw = RawSlot {
            timestamp: entry.timestamp,
            stored: Vec::new(),
            place: Some(entry.first_sector << 8 | entry.sectors),
            external: None,
        };
        let offset_bytes = u64::from(entry.first_sector) * SECTOR_BYTES;
        let left_bytes = self.file_bytes.saturating_sub(offset_bytes);
        let room_bytes = match self.room_bytes(entry) {
            // Its bytes are those of others too.
            Err(_) => return Ok(Some(RawSlot { place: None, ..raw })),
            Ok(room_bytes) => room_bytes.saturating_add(SLOT_HEAD_BYTES),
        };
        if entry.first_sector < header::HEADER_SECTORS || left_bytes < SLOT_HEAD_BYTES {
            return Ok(Some(raw));
        }
        self.source.seek(SeekFrom::Start(offset_bytes))?;
        let mut head = [0; SLOT_HEAD_BYTES as usize];
        self.source.read_exact(&mut head)?;
        let (len_bytes, _) = header::slot_head(head);
        let stated_bytes = u64::from(len_bytes) + LENGTH_BYTES;
        let sectors_bytes = u64::from(entry.sectors.max(1)) * SECTOR_BYTES;
        let is_length = len_bytes > 0 && stated_bytes <= left_bytes;
        let wanted_bytes = match extent {
            Extent::Length if is_length => stated_bytes,
            Extent::Sectors if is_length => stated_bytes.min(sectors_bytes),
            _ => sectors_bytes,
        };
        let wanted_bytes = wanted_bytes.min(left_bytes).min(room_bytes);
        self.source.seek(SeekFrom::Start(offset_bytes))?;
        let stored = self.source.by_ref().take(wanted_bytes);
        reader::read_limited(stored, limits.stored_bytes, &mut raw.stored).map_err(io::Error::other)?;
        // The file was cut: where an export puts other slots after it, its length is one again.
        let is_cut = len_bytes > 0
            && (left_bytes..=sectors_bytes).contains(&stated_bytes)
            && stated_bytes <= room_bytes;
        if is_cut {
            raw.stored.resize(stated_bytes as usize, 0);
        }
        if (is_length || is_cut) && raw.stored.len() as u64 == stated_bytes {
            raw.place = None;
        } else {
            // What is past the end of the file, or another slot's, is no sector of this one.
            let sectors = raw.stored.len().div_ceil(SECTOR_BYTES as usize) as u32;
            raw.place = Some(entry.sectors.min(sectors));
            let end = raw.stored.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            raw.stored.truncate(end.max(SLOT_HEAD_BYTES as usize));
        }
        if raw.is_external()
            && let Some(pos) = self.pos
        {
            raw.external = match File::open(self.directory.join(pos.external_name(slot))) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                file => {
                    let mut bytes = Vec::new();
                    reader::read_limited(file?, limits.stored_bytes, &mut bytes).map_err(io::Error::other)?;
                    Some(bytes)
                }
            };
        }
        Ok(Some(raw))
    }
}
