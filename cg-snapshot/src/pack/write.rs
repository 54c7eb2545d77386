//! Writes a pack from front to back, without seeking.

use std::io::Write;

use cg_format::codec::Codec;
use cg_format::wire::Writer;
use cg_format::{DecodeError, Problem, Section};

use super::object::{self, PackedObject};
use super::{Kind, PackInfo, SIGNATURE, check_whole};
use crate::error::SnapshotError;
use crate::file::FileOptions;
use crate::file::part;
use crate::snapshot::Snapshot;

/// A part of objects ends with the object that makes it this long.
const PAGE_BYTES: usize = 1 << 18;

/// Writes a pack: at most one box first, then objects ascending by key, then [`finish`](Self::finish).
///
/// If the writer is dropped before, the file lacks its end part and every reader refuses it.
pub struct PackWriter<W> {
    out: W,
    codec: Codec,
    /// The objects of the part that is not written yet.
    page: Vec<u8>,
    last_key: Option<Vec<u8>>,
    info: PackInfo,
}

impl<W: Write> PackWriter<W> {
    /// Begins a pack.
    ///
    /// # Errors
    /// [`SnapshotError::Io`].
    pub fn new(mut out: W, codec: Codec) -> Result<Self, SnapshotError> {
        out.write_all(SIGNATURE)?;
        let info = PackInfo { len_bytes: SIGNATURE.len() as u64, ..PackInfo::default() };
        Ok(Self { out, codec, page: Vec::new(), last_key: None, info })
    }

    /// Adds the box. Its encoded file is in memory until it is written.
    ///
    /// # Errors
    /// [`SnapshotError::NotWhole`], [`SnapshotError::PackOrder`] if something was added before, and as
    /// [`Snapshot::write`]; also if its file takes 4 GiB or more.
    pub fn region(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        if self.info.part_count > 0 || self.last_key.is_some() {
            return Err(SnapshotError::PackOrder);
        }
        check_whole(snapshot)?;
        let file = snapshot.to_bytes(&FileOptions { codec: self.codec })?;
        // Its own parts are compressed already.
        self.part(Kind::Region, Codec::None, &file)?;
        self.info.region = Some(snapshot.info().clone());
        Ok(())
    }

    /// Adds an object. Objects stay in memory until the part has about 256 KiB, or one longer object.
    ///
    /// # Errors
    /// [`SnapshotError::PackOrder`] unless its key is above the previous one; [`SnapshotError::Decode`] if no reader
    /// would accept the object; [`SnapshotError::Io`].
    pub fn object(&mut self, object: PackedObject<'_>) -> Result<(), SnapshotError> {
        if self.last_key.as_deref().is_some_and(|last| last >= object.key) {
            return Err(SnapshotError::PackOrder);
        }
        object::write(&object, &mut self.page)?;
        let last_key = self.last_key.get_or_insert_default();
        last_key.clear();
        last_key.extend_from_slice(object.key);
        self.info.count_object(&object);
        if self.page.len() >= PAGE_BYTES { self.write_page() } else { Ok(()) }
    }

    /// Ends the pack and flushes it. Returns the writer and the numbers of the pack.
    ///
    /// # Errors
    /// [`SnapshotError::Io`].
    pub fn finish(mut self) -> Result<(W, PackInfo), SnapshotError> {
        self.write_page()?;
        let mut end = Vec::new();
        let mut writer = Writer::new(&mut end);
        writer.u32(self.info.part_count);
        writer.u64(self.info.object_count);
        writer.u32(self.info.checksum);
        self.put(Kind::End, Codec::None, &end)?;
        self.out.flush()?;
        Ok((self.out, self.info))
    }

    fn write_page(&mut self) -> Result<(), SnapshotError> {
        if self.page.is_empty() {
            return Ok(());
        }
        let page = std::mem::take(&mut self.page);
        self.part(Kind::Objects, self.codec, &page)
    }

    fn part(&mut self, kind: Kind, codec: Codec, raw: &[u8]) -> Result<(), SnapshotError> {
        let checksum = self.put(kind, codec, raw)?;
        self.info.count_part(checksum);
        Ok(())
    }

    /// Writes a part and returns its checksum.
    fn put(&mut self, kind: Kind, codec: Codec, raw: &[u8]) -> Result<u32, SnapshotError> {
        let (checksum, bytes) = part::encode(kind as u8, codec, raw).ok_or_else(|| {
            let (field, found) = ("raw len", raw.len() as u64);
            let problem = Problem::OutOfRange { field, found, allowed: "below 4 GiB" };
            DecodeError::new(Section::PackPart, self.info.len_bytes, problem)
        })?;
        self.out.write_all(&bytes)?;
        self.info.len_bytes += bytes.len() as u64;
        Ok(checksum)
    }
}

impl<W> std::fmt::Debug for PackWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PackWriter").field("info", &self.info).finish_non_exhaustive()
    }
}
