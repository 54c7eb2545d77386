//! Writes a file from front to back, without seeking.

use std::io::Write;

use cg_format::codec::Codec;
use cg_format::entity::Entity;
use cg_format::wire::Writer;
use cg_format::{DecodeError, EntityId, Problem, Section};
use rayon::prelude::*;

use super::FileOptions;
use super::head;
use super::index::{Group, Index, Kept};
use super::names;
use super::part::{self, Kind, packed};
use crate::error::SnapshotError;
use crate::kept::KeptSection;
use crate::places::LOST;
use crate::snapshot::Snapshot;

/// A group ends with the section that makes it this long.
const GROUP_BYTES: usize = 1 << 16;
/// A group also ends at this many sections.
const GROUP_SECTIONS: usize = 64;

impl Snapshot {
    /// Writes the snapshot as a file and returns its length in bytes. Sections are compressed in the caller's rayon
    /// pool. Their compressed bytes are in memory until they are written.
    ///
    /// # Errors
    /// [`SnapshotError::Io`]; [`SnapshotError::Lost`] if a section was unreadable in the snapshot's own file;
    /// [`SnapshotError::Decode`] if names, places or entities take more than 4 GiB.
    pub fn write(&self, mut out: impl Write, options: &FileOptions) -> Result<u64, SnapshotError> {
        let mut sections = self.region().sections().zip(self.places.iter());
        if let Some((section, _)) = sections.find(|(_, place)| *place == LOST) {
            return Err(SnapshotError::Lost { at: section.at });
        }
        let kept: Vec<KeptSection<'_>> = self.kept.iter().collect();
        let groups = groups(&kept);
        let stored: Vec<(Codec, Vec<u8>)> =
            groups.par_iter().map(|group| pack(group, options.codec)).collect();
        let index = Index {
            kept: kept
                .iter()
                .map(|kept| Kept { len_bytes: kept.bytes().len() as u32, checksum: kept.checksum() })
                .collect(),
            groups: groups
                .iter()
                .zip(&stored)
                .map(|(group, (codec, stored))| Group {
                    section_count: group.len() as u32,
                    codec: *codec,
                    stored_len_bytes: stored.len() as u32,
                    checksum: crc32c::crc32c(stored),
                })
                .collect(),
            places: self.places.iter().collect(),
        };
        let mut len_bytes = 0;
        let mut put = |bytes: &[u8]| {
            len_bytes += bytes.len() as u64;
            out.write_all(bytes)
        };
        put(&head::encode(&self.info, !self.names.aliases.is_empty()))?;
        let parts = [
            (Kind::Names, names::encode(&self.names)),
            (Kind::Index, index.encode()),
            (Kind::Entities, encode_entities(&self.entities)),
        ];
        for (kind, raw) in parts {
            let (_, part) = part::encode(kind as u8, options.codec, &raw).ok_or_else(|| {
                let (field, found) = ("raw len", raw.len() as u64);
                let problem = Problem::OutOfRange { field, found, allowed: "below 4 GiB" };
                DecodeError::new(Section::SnapshotPart, 0, problem)
            })?;
            put(&part)?;
        }
        for (_, stored) in &stored {
            put(stored)?;
        }
        out.flush()?;
        Ok(len_bytes)
    }

    /// The bytes of the file.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn to_bytes(&self, options: &FileOptions) -> Result<Vec<u8>, SnapshotError> {
        let mut bytes = Vec::new();
        self.write(&mut bytes, options)?;
        Ok(bytes)
    }
}

/// Divides sections into groups. The result depends only on the sections, so equal snapshots have equal bytes.
fn groups<'k, 's>(kept: &'k [KeptSection<'s>]) -> Vec<&'k [KeptSection<'s>]> {
    let mut groups = Vec::new();
    let mut rest = kept;
    while !rest.is_empty() {
        let mut len_bytes = 0;
        let full = rest.iter().take(GROUP_SECTIONS).position(|kept| {
            len_bytes += kept.bytes().len();
            len_bytes >= GROUP_BYTES
        });
        let count = full.map_or(GROUP_SECTIONS, |last| last + 1).min(rest.len());
        let (group, behind) = rest.split_at(count);
        groups.push(group);
        rest = behind;
    }
    groups
}

fn pack(group: &[KeptSection<'_>], codec: Codec) -> (Codec, Vec<u8>) {
    let raw = group.iter().map(KeptSection::bytes).collect::<Vec<_>>().concat();
    packed(codec, &raw)
}

fn encode_entities(entities: &[(EntityId, Entity)]) -> Vec<u8> {
    let (mut out, mut bytes) = (Vec::new(), Vec::new());
    for (id, entity) in entities {
        bytes.clear();
        entity.encode(&mut bytes);
        let mut writer = Writer::new(&mut out);
        writer.bytes(&id.to_bytes());
        writer.u32(bytes.len() as u32);
        writer.bytes(&bytes);
    }
    out
}
