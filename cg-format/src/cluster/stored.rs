//! Reads a stored cluster group by group.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::cell::RefCell;

use super::directory::{Directory, GroupEntry};
use super::fields::{self, Fields};
use super::group::{Content, GroupBytes, LastGroup};
use super::header::{self, header_len_bytes};
use super::{Slot, SlotInfo};
use crate::codec::decompress;
use crate::frame::{self, Codec, FrameKind, FrameView};
use crate::wire::{Reader, Span, Trace};
use crate::{ClusterTier, DecodeError, Limits, Problem, Section, Space};

/// A stored cluster whose frame and directory were checked. Groups are checked when they are read.
///
/// ```
/// use cg_format::cluster::{ClusterBuilder, Slot, SlotInfo, StoredCluster};
/// use cg_format::{ClusterTier, Limits, Space};
/// let tier = ClusterTier::L1;
/// let slot = Slot::new(tier, 7).unwrap();
/// let mut builder = ClusterBuilder::new(tier);
/// builder.put(slot, SlotInfo { version: 40, schema_generation: 1 }, &b"a chunk"[..]);
/// let draft = builder.finish(&mut Limits::default())?.unwrap();
/// let row = draft.seal(Space::ClusterL1, b"key", 41);
///
/// let cluster = StoredCluster::open(tier, b"key", &row)?;
/// assert_eq!(cluster.chunk_info(slot).unwrap().version, 40);
/// let group = cluster.group(cluster.group_of(slot), &mut Limits::default())?.unwrap();
/// assert_eq!(group.chunk(slot).unwrap(), &b"a chunk"[..]);
/// # Ok::<(), cg_format::cluster::AssembleError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCluster<'a> {
    version: u64,
    codec: Codec,
    directory: Directory<'a>,
    /// The groups as stored. Shorter than in the directory if the row was truncated.
    body: &'a [u8],
    body_offset_bytes: u64,
}

impl<'a> StoredCluster<'a> {
    /// Checks a row's frame and directory. Computes the directory's checksum once; decompresses nothing.
    ///
    /// A truncated row can be opened, so that the groups before its end can be read.
    ///
    /// # Errors
    /// As [`FrameView::open`]; also for a frame that contains no cluster or one of another tier, and for a directory
    /// whose fields disagree.
    pub fn open(tier: ClusterTier, key: &[u8], row: &'a [u8]) -> Result<Self, DecodeError> {
        Self::new(tier, &FrameView::open(Space::of_cluster(tier), key, row)?)
    }

    /// Checks the directory in a frame that was checked before.
    ///
    /// # Errors
    /// As [`open`](Self::open), without those of the frame.
    pub fn new(tier: ClusterTier, frame: &FrameView<'a>) -> Result<Self, DecodeError> {
        let offset_bytes = frame::LEN_BYTES as u64;
        let reader = Reader::at_offset(frame.payload(), offset_bytes, Section::ClusterDirectory);
        Self::parse(tier, frame, reader)
    }

    /// The tier.
    pub const fn tier(&self) -> ClusterTier {
        self.directory.tier
    }

    /// The version of the row: the commit that wrote it. Its chunks have their own versions.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// The compression of groups. A group that would not become shorter is stored uncompressed.
    pub const fn codec(&self) -> Codec {
        self.codec
    }

    /// The number of chunks, 1 to 64 or 1 to 4,096.
    pub fn present_count(&self) -> usize {
        self.directory.present_count()
    }

    /// Version and schema generation of a chunk; `None` if it is absent. Decompresses nothing.
    pub fn chunk_info(&self, slot: Slot) -> Option<SlotInfo> {
        self.directory.slot(slot)
    }

    /// Every present chunk, group by group.
    pub fn slots(&self) -> impl Iterator<Item = (Slot, SlotInfo)> + use<'_, 'a> {
        self.directory.slots()
    }

    /// The groups that have chunks, ascending.
    pub fn groups(&self) -> impl Iterator<Item = u8> + use<'_, 'a> {
        self.directory.groups().filter(|(_, entry)| entry.presence != 0).map(|(group, _)| group)
    }

    /// The group of a slot of this tier, whether it has a chunk or not. The chunks of a group are compressed together.
    pub const fn group_of(&self, slot: Slot) -> u8 {
        self.directory.group_of(slot)
    }

    /// Decompresses and checks one group; `None` if it has no chunks. Does not read other groups.
    ///
    /// A group that is stored uncompressed is borrowed, and nothing is charged for it.
    ///
    /// # Errors
    /// [`Problem::Checksum`] or [`Problem::Truncated`] if the stored bytes were damaged, [`Problem::LimitExceeded`]
    /// before anything is allocated. Errors in [`Section::ClusterHeader`] and [`Section::ClusterFields`] count their
    /// offset in the decompressed group, all others from the start of the row.
    pub fn group(&self, group: u8, limits: &mut Limits) -> Result<Option<GroupBytes<'a>>, DecodeError> {
        let Some(Checked { entry, at, stored }) = self.checked(group)? else {
            return Ok(None);
        };
        let mut raw = Vec::new();
        let bytes = if self.decompress(&entry, at, stored, limits, &mut raw)? {
            Cow::Owned(raw)
        } else {
            Cow::Borrowed(stored)
        };
        let decompressed_bytes = if entry.is_compressed() { bytes.len() } else { 0 };
        let fields = self.fields(&entry, &bytes)?.map(Cow::Owned);
        self.group_bytes(group, (&entry, at), Content { bytes, fields }, decompressed_bytes).map(Some)
    }

    /// As [`group`](Self::group), for a caller that reads several groups in order. Reuses the buffer. A group with the
    /// same stored bytes as the one before is not decompressed again, which is frequent in empty space.
    ///
    /// # Errors
    /// As [`group`](Self::group).
    pub fn group_after<'g>(
        &self,
        group: u8,
        limits: &mut Limits,
        last: &'g mut LastGroup,
    ) -> Result<Option<GroupBytes<'g>>, DecodeError>
    where
        'a: 'g,
    {
        let Some(Checked { entry, at, stored }) = self.checked(group)? else {
            return Ok(None);
        };
        let form = (self.tier(), self.codec);
        let is_same = entry.is_compressed() && last.is(form, &entry, stored);
        let mut decompressed_bytes = 0;
        if !is_same {
            last.stored.clear();
            last.raw.clear();
            if !self.decompress(&entry, at, stored, limits, &mut last.raw)? {
                let content = Content { bytes: Cow::Borrowed(stored), fields: None };
                return self.group_bytes(group, (&entry, at), content, 0).map(Some);
            }
            last.fields = self.fields(&entry, &last.raw)?;
            decompressed_bytes = last.raw.len();
            last.form = Some(form);
            if stored.len() <= LastGroup::MAX_BYTES {
                last.stored.extend_from_slice(stored);
            }
        }
        let content = Content {
            bytes: Cow::Borrowed(last.raw.as_slice()),
            fields: last.fields.as_ref().map(Cow::Borrowed),
        };
        self.group_bytes(group, (&entry, at), content, decompressed_bytes).map(Some)
    }

    fn group_bytes<'g>(
        &self,
        group: u8,
        place: (&GroupEntry, u64),
        content: Content<'g>,
        decompressed_bytes: usize,
    ) -> Result<GroupBytes<'g>, DecodeError> {
        GroupBytes::new(self.tier(), (group, self.group_slot_count()), place, content, decompressed_bytes)
    }

    /// A group with chunks, its place, and its stored bytes after a check of their checksum.
    fn checked(&self, group: u8) -> Result<Option<Checked<'a>>, DecodeError> {
        let Some(entry) = self.entry(group) else {
            return Ok(None);
        };
        let at = self.body_offset_bytes + u64::from(entry.offset_bytes);
        let stored = self.stored(&entry)?;
        let sum = crc32c::crc32c(stored);
        if sum != entry.checksum {
            let problem = Problem::Checksum { found: entry.checksum, expected: sum };
            return Err(DecodeError::new(Section::ClusterGroup, at, problem));
        }
        Ok(Some(Checked { entry, at, stored }))
    }

    /// Checks a group by field; `None` if it is in the seed form. Only compressed groups of cold clusters may be by field.
    fn fields(&self, entry: &GroupEntry, bytes: &[u8]) -> Result<Option<Fields>, DecodeError> {
        let may_be = fields::is_allowed(self.tier(), self.codec) && entry.is_compressed();
        if !may_be || !fields::claims_to_be_by_field(bytes) {
            return Ok(None);
        }
        Fields::parse(&mut Reader::new(bytes, Section::ClusterFields)).map(Some)
    }

    /// Decompresses a group's bytes into an empty buffer. Returns `false` if they are not compressed.
    fn decompress(
        &self,
        entry: &GroupEntry,
        at: u64,
        stored: &[u8],
        limits: &mut Limits,
        raw: &mut Vec<u8>,
    ) -> Result<bool, DecodeError> {
        if entry.is_compressed() {
            limits.spend(Section::ClusterGroup, at, "group", entry.raw_len_bytes.into())?;
            decompress(self.codec, stored, entry.raw_len_bytes as usize, raw)
                .map_err(|problem| DecodeError::new(Section::ClusterGroup, at, problem))?;
        }
        Ok(entry.is_compressed())
    }

    /// The cluster in the seed form, without versions and generations.
    ///
    /// Decompresses every group and then copies every chunk, so about twice the seed form's length is charged.
    ///
    /// # Errors
    /// The first error of [`group`](Self::group), and [`Problem::LimitExceeded`] for the result itself.
    pub fn to_seed_bytes(&self, limits: &mut Limits) -> Result<Vec<u8>, DecodeError> {
        let mut groups = Vec::new();
        for group in self.groups() {
            groups.extend(self.group(group, limits)?);
        }
        let chunks_of =
            |group| GroupBytes::lengths(group).map(move |(slot, len_bytes)| (slot, len_bytes, group));
        let mut chunks: Vec<_> = groups.iter().flat_map(chunks_of).collect();
        chunks.sort_unstable_by_key(|(slot, ..)| *slot);
        // Equal groups are stored once, so that the sum may be above what an address has bits for.
        let values_len_bytes: u64 = chunks.iter().map(|(_, len_bytes, _)| *len_bytes as u64).sum();
        let needed = header_len_bytes(self.tier()) as u64 + values_len_bytes;
        limits.spend(Section::ClusterGroup, self.body_offset_bytes, "seed form", needed)?;
        let mut out = Vec::new();
        header::encode_offsets(
            self.tier(),
            chunks.iter().map(|(slot, len_bytes, _)| (*slot, *len_bytes)),
            &mut out,
        );
        for (slot, _, group) in chunks {
            out.extend_from_slice(&group.chunk(slot).unwrap_or_default());
        }
        Ok(out)
    }

    /// The slots of each group: 16 in L1 and 32 in L2, or 64 in rows of earlier drafts.
    pub(super) const fn group_slot_count(&self) -> u16 {
        self.directory.group_slot_count()
    }

    /// The directory's entry of a group with chunks.
    pub(super) fn entry(&self, group: u8) -> Option<GroupEntry> {
        self.directory.group(group).filter(|entry| entry.presence != 0)
    }

    /// A group's bytes as stored, not checked.
    pub(super) fn stored(&self, entry: &GroupEntry) -> Result<&'a [u8], DecodeError> {
        let mut reader = Reader::at_offset(self.body, self.body_offset_bytes, Section::ClusterGroup);
        reader.take("groups before", entry.offset_bytes as usize)?;
        reader.take("group", entry.stored_len_bytes as usize)
    }

    fn parse(tier: ClusterTier, frame: &FrameView<'a>, mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        let header = frame.header();
        if header.kind != FrameKind::Cluster {
            let (found, allowed) = (header.kind.byte().into(), "2, a cluster");
            let problem = Problem::OutOfRange { field: "kind", found, allowed };
            return Err(DecodeError::new(Section::Frame, 1, problem));
        }
        let start_bytes = reader.offset_bytes();
        let directory = Directory::parse(&mut reader, header.codec)?;
        if directory.tier != tier {
            let (found, expected) = (directory.tier.scale_level().into(), tier.scale_level().into());
            let problem = Problem::Disagrees { field: "scale level", found, expected };
            return Err(DecodeError::new(Section::ClusterDirectory, start_bytes + 1, problem));
        }
        let body_offset_bytes = reader.offset_bytes();
        reader.enter(Section::ClusterGroup);
        let body = reader.clone().rest();
        if reader.trace().is_some() {
            for entry in directory.stored_groups() {
                reader.take("group", entry.stored_len_bytes as usize)?;
            }
        } else {
            let groups_len_bytes = directory.body_len_bytes().min(body.len());
            reader.take("group", groups_len_bytes)?;
        }
        reader.end("bytes after the groups")?;
        Ok(Self { version: header.version, codec: header.codec, directory, body, body_offset_bytes })
    }
}

/// A group as stored, with the checksum from its directory.
struct Checked<'a> {
    entry: GroupEntry,
    /// Its place in the row.
    at: u64,
    stored: &'a [u8],
}

/// Checks a row and lists the fields of frame and directory, and each group as one field, up to the first error.
///
/// A truncated row is an error here. [`trace_group`](super::trace_group) lists the content of a group from its
/// decompressed bytes.
pub fn trace(tier: ClusterTier, key: &[u8], row: &[u8]) -> (Vec<Span>, Result<(), DecodeError>) {
    let (mut spans, answer) = frame::trace(Space::of_cluster(tier), key, row);
    if let Err(error) = answer {
        return (spans, Err(error));
    }
    let trace: Trace = RefCell::default();
    let answer = FrameView::open(Space::of_cluster(tier), key, row).and_then(|frame| {
        let reader = Reader::at_offset(frame.payload(), frame::LEN_BYTES as u64, Section::ClusterDirectory);
        StoredCluster::parse(tier, &frame, reader.traced(Some(&trace))).map(|_| ())
    });
    spans.extend(trace.into_inner());
    (spans, answer)
}
