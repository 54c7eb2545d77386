//! Writes a pack from front to back, without seeking.

use std::io::Write;

use cg_format::codec::Codec;
use cg_format::record::Record;
use cg_format::wire::Writer;
use cg_format::{DecodeError, Problem, RecordId, Section};
use cg_registry::Name;

use super::object::{self, PackedObject};
use super::{Kind, PackInfo, SIGNATURE, WITH_VALUES, check_whole, property, record};
use crate::error::SnapshotError;
use crate::file::FileOptions;
use crate::file::part;
use crate::snapshot::Snapshot;

/// A part of objects, records or properties ends with the one that makes it this long.
const PAGE_BYTES: usize = 1 << 18;
/// The bytes of the signature that all versions have.
const COMMON_BYTES: usize = SIGNATURE.len() - 2;

/// Writes a pack: at most one box first, then its records ascending by UUID, then properties ascending by name, then
/// objects ascending by key, then [`finish`](Self::finish).
///
/// If the writer is dropped before, the file lacks its end part and every reader refuses it.
pub struct PackWriter<W> {
    out: W,
    codec: Codec,
    /// The box, until the part after it says which version of the layout this is.
    region: Vec<u8>,
    is_begun: bool,
    /// The part that is not written yet.
    page: Vec<u8>,
    /// The kind of the last part, with the last key in it.
    last: Option<(Kind, Vec<u8>)>,
    info: PackInfo,
}

impl<W: Write> PackWriter<W> {
    /// Begins a pack.
    ///
    /// # Errors
    /// [`SnapshotError::Io`].
    pub fn new(mut out: W, codec: Codec) -> Result<Self, SnapshotError> {
        out.write_all(&SIGNATURE[..COMMON_BYTES])?;
        let info = PackInfo { len_bytes: SIGNATURE.len() as u64, ..PackInfo::default() };
        let (region, page) = (Vec::new(), Vec::new());
        Ok(Self { out, codec, region, is_begun: false, page, last: None, info })
    }

    /// Adds the box. Its encoded file is in memory until the next part is written.
    ///
    /// # Errors
    /// [`SnapshotError::NotWhole`], [`SnapshotError::PackOrder`] if something was added before, and as
    /// [`Snapshot::write`]; also if its file takes 4 GiB or more.
    pub fn region(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        if self.last.is_some() {
            return Err(SnapshotError::PackOrder);
        }
        check_whole(snapshot)?;
        let file = snapshot.to_bytes(&FileOptions { codec: self.codec })?;
        // Its own parts are compressed already.
        self.part(Kind::Region, Codec::None, &file)?;
        self.info.region = Some(snapshot.info().clone());
        self.last = Some((Kind::Region, Vec::new()));
        Ok(())
    }

    /// Adds a record of the box. Records stay in memory as objects do.
    ///
    /// # Errors
    /// [`SnapshotError::PackOrder`] without a box, after something else, or unless its UUID is above the previous one;
    /// [`SnapshotError::Decode`] if it is not in the box, or has 4 GiB or more; [`SnapshotError::Io`].
    pub fn record(&mut self, id: RecordId, record: &Record) -> Result<(), SnapshotError> {
        let region = self.info.region.as_ref().map(|info| info.region).ok_or(SnapshotError::PackOrder)?;
        let key = id.to_bytes();
        self.turn_to(Kind::Records, &key)?;
        record::write(id, record, region, &mut self.page)?;
        self.info.records.add(record.len_bytes());
        self.added(Kind::Records, &key)
    }

    /// Adds a property. Properties stay in memory as objects do.
    ///
    /// # Errors
    /// [`SnapshotError::PackOrder`] after an object, or unless its name is above the previous one;
    /// [`SnapshotError::Decode`] if it has 4 GiB or more; [`SnapshotError::Io`].
    pub fn property(&mut self, name: &Name, bytes: &[u8]) -> Result<(), SnapshotError> {
        let key = name.as_str().as_bytes();
        self.turn_to(Kind::Properties, key)?;
        property::write(name, bytes, &mut self.page)?;
        self.info.properties.add(bytes.len());
        self.added(Kind::Properties, key)
    }

    /// Adds an object. Objects stay in memory until the part has about 256 KiB, or one longer object.
    ///
    /// # Errors
    /// [`SnapshotError::PackOrder`] unless its key is above the previous one; [`SnapshotError::Decode`] if no reader
    /// would accept the object; [`SnapshotError::Io`].
    pub fn object(&mut self, object: PackedObject<'_>) -> Result<(), SnapshotError> {
        self.turn_to(Kind::Objects, object.key)?;
        object::write(&object, &mut self.page)?;
        self.info.count_object(&object);
        self.added(Kind::Objects, object.key)
    }

    /// Ends the part before, if it is of another kind. What is added must follow what was added before.
    fn turn_to(&mut self, kind: Kind, key: &[u8]) -> Result<(), SnapshotError> {
        let Some((last, before)) = &self.last else { return Ok(()) };
        if *last == kind {
            return if before.as_slice() < key { Ok(()) } else { Err(SnapshotError::PackOrder) };
        }
        if last.place() > kind.place() {
            return Err(SnapshotError::PackOrder);
        }
        self.write_page()
    }

    fn added(&mut self, kind: Kind, key: &[u8]) -> Result<(), SnapshotError> {
        let (last, before) = self.last.get_or_insert((kind, Vec::new()));
        *last = kind;
        before.clear();
        before.extend_from_slice(key);
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
        let Some((kind, _)) = self.last.as_ref().filter(|_| !self.page.is_empty()) else { return Ok(()) };
        let (kind, page) = (*kind, std::mem::take(&mut self.page));
        self.part(kind, self.codec, &page)
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
        self.info.len_bytes += bytes.len() as u64;
        if kind == Kind::Region {
            self.region = bytes;
            return Ok(checksum);
        }
        self.begin(kind)?;
        self.out.write_all(&bytes)?;
        Ok(checksum)
    }

    /// Writes the version that the first part after the box asks for, and the box.
    fn begin(&mut self, first: Kind) -> Result<(), SnapshotError> {
        if std::mem::replace(&mut self.is_begun, true) {
            return Ok(());
        }
        let has_values = matches!(first, Kind::Records | Kind::Properties);
        let signature = if has_values { WITH_VALUES } else { SIGNATURE };
        self.out.write_all(&signature[COMMON_BYTES..])?;
        self.out.write_all(&std::mem::take(&mut self.region))?;
        Ok(())
    }
}

impl<W> std::fmt::Debug for PackWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PackWriter").field("info", &self.info).finish_non_exhaustive()
    }
}
