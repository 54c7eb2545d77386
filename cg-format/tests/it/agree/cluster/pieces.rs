//! The parts of a row, from which a test makes a row with one wrong field.

use cg_format::Space;
use cg_format::codec::{self, Codec, Effort};

use super::{KEY, row_in, tier};
use crate::naive::cluster::Stored;
use crate::naive::cluster::directory::{self, Directory, Entry};
use crate::naive::frame::{self, Frame};
use crate::naive::{Dice, crc32c, put};

/// The parts from which a row is assembled.
pub(super) struct Pieces {
    pub(super) codec: u8,
    pub(super) directory: Directory,
    /// All stored groups, one after another.
    pub(super) groups: Vec<u8>,
}

impl Pieces {
    pub(super) fn of(row: &[u8]) -> Self {
        let (codec, payload) = (row[2], &row[24..]);
        let directory = directory::decode(payload, codec).expect("a right directory");
        let groups = payload[directory::len(payload).expect("a right directory")..].to_vec();
        Self { codec, directory, groups }
    }

    pub(super) fn any_entry(&mut self, dice: &mut Dice) -> &mut Entry {
        let present: Vec<&mut Entry> =
            self.directory.entries.iter_mut().filter(|entry| entry.presence != 0).collect();
        let any = dice.below(present.len() as u64) as usize;
        present.into_iter().nth(any).expect("below the count")
    }

    /// Other bytes for the last group, which from then on shares them with no other.
    pub(super) fn rewrite_last(&mut self, change: impl FnOnce(&mut Vec<u8>)) {
        let mut entries = self.directory.entries.iter_mut().rev().filter(|entry| entry.presence != 0);
        let entry = entries.next().expect("a cluster has chunks");
        let shared = entries.any(|other| other.offset == entry.offset);
        let [at, len, raw_len] = [entry.offset, entry.stored_len, entry.raw_len].map(|field| field as usize);
        let stored = &self.groups[at..at + len];
        let mut raw = Vec::new();
        if len < raw_len {
            codec::decompress(codec_of(self.codec), stored, raw_len, &mut raw).expect("a right group");
        } else {
            raw.extend(stored);
        }
        change(&mut raw);
        let packed = packed(self.codec, &raw);
        let stored = if packed.len() < raw.len() { &packed } else { &raw };
        if !shared && at + len == self.groups.len() {
            self.groups.truncate(at);
        }
        *entry = Entry { offset: self.groups.len() as u32, ..entry_of(entry.presence, stored, &raw) };
        self.groups.extend(stored);
    }

    /// Whether the entries may be compressed.
    pub(super) const fn may_be_packed(&self) -> bool {
        matches!(self.directory.version, 2 | 4 | 5)
    }

    /// The directory, with entries that are compressed or not.
    pub(super) fn head(&self, entries_packed: bool) -> Vec<u8> {
        let Directory { version, scale_level, entries, chunks } = &self.directory;
        let (mut of_groups, mut of_chunks) = (Vec::new(), Vec::new());
        for Entry { presence, offset, stored_len, raw_len, checksum } in entries {
            put(&mut of_groups, *presence, 8);
            for field in [offset, stored_len, raw_len, checksum] {
                put(&mut of_groups, u64::from(*field), 4);
            }
        }
        for (version, schema_generation) in chunks {
            put(&mut of_chunks, *version, 8);
            put(&mut of_chunks, u64::from(*schema_generation), 4);
        }
        let (raw, equal_planes) = directory::laid_out(*version, &of_groups, &of_chunks);
        let stored = if entries_packed { packed(self.codec, &raw) } else { raw };
        let mut out = vec![*version, *scale_level, 0, 0];
        put(&mut out, chunks.len() as u64, 4);
        if self.may_be_packed() {
            put(&mut out, stored.len() as u64, 4);
        }
        if *version == 5 {
            put(&mut out, equal_planes, 8);
        }
        out.extend(stored);
        out
    }

    /// The whole row after such a directory. All of it is checked if no reader can say how long the directory is.
    pub(super) fn sealed(&self, head: &[u8]) -> Vec<u8> {
        let payload = [head, &self.groups].concat();
        let checked_len = directory::len(&payload).unwrap_or(head.len()).min(payload.len());
        let frame =
            Frame { kind: 2, codec: self.codec, version: 12, schema_generation: 0, lineage: 0, payload };
        let space = Space::of_cluster(tier(self.directory.scale_level)).byte();
        frame::encode(&frame, checked_len, space, KEY)
    }
}

/// The row of directory version 1 or 2. With Zstandard its groups are not compressed.
pub(super) fn older(naive: &Stored, version: u8, codec: u8, entries_packed: bool) -> Vec<u8> {
    let mut row = Pieces::of(&row_in(1, naive, codec % 2));
    row.codec = codec;
    row.directory.version = version;
    let [plain, packed] = [false, entries_packed && row.may_be_packed()].map(|is_packed| row.head(is_packed));
    row.sealed(if packed.len() < plain.len() { &packed } else { &plain })
}

/// The entry of a group at the front.
pub(super) fn entry_of(presence: u64, stored: &[u8], raw: &[u8]) -> Entry {
    let [stored_len, raw_len] = [stored, raw].map(|bytes| bytes.len() as u32);
    Entry { presence, offset: 0, stored_len, raw_len, checksum: crc32c(stored) }
}

/// Bytes compressed as a writer does, longer or shorter than they were.
pub(super) fn packed(codec: u8, raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    codec::compress(codec_of(codec), Effort::Small, raw, &mut out);
    out
}

fn codec_of(byte: u8) -> Codec {
    Codec::from_byte(byte).expect("a codec")
}
