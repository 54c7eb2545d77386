//! Which tier, directory version and codec go with which form of a group.

use super::check_row;
use super::pieces::{Pieces, entry_of, packed};
use crate::naive::chunk::{self, Chunk};
use crate::naive::cluster::directory::{Directory, Entry};
use crate::naive::cluster::{self, fields};
use crate::naive::{Schema, put};

/// The form that a row with one group states for itself.
#[derive(Debug, Clone, Copy)]
struct Claim {
    scale_level: u8,
    version: u8,
    codec: u8,
    entries_packed: bool,
    group_packed: bool,
}

impl Claim {
    /// Every claim whose parts can be compressed as it says.
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for bits in 0..8_u8 {
            let [entries_packed, group_packed] = [bits & 1 == 1, bits & 2 == 2];
            let scale_level = 1 + (bits >> 2);
            for (version, codec) in (1..=3).flat_map(|version| (0..3).map(move |codec| (version, codec))) {
                if entries_packed && version % 2 == 1 || codec == 0 && (entries_packed || group_packed) {
                    continue;
                }
                all.push(Self { scale_level, version, codec, entries_packed, group_packed });
            }
        }
        all
    }

    fn row(self, presence: u64, raw: &[u8]) -> Vec<u8> {
        let Self { scale_level, version, codec, .. } = self;
        let groups = if self.group_packed { packed(codec, raw) } else { raw.to_vec() };
        assert!(!self.group_packed || groups.len() < raw.len(), "{self:?}");
        let count = match (scale_level, version) {
            (1, 3) => 4,
            (1, _) => 1,
            (_, 4) => 128,
            _ => 64,
        };
        let mut entries = vec![Entry::default(); count];
        entries[0] = entry_of(presence, &groups, raw);
        let chunks = vec![(9, 1); presence.count_ones() as usize];
        let row = Pieces { codec, directory: Directory { version, scale_level, entries, chunks }, groups };
        row.sealed(&row.head(self.entries_packed))
    }
}

/// A group by field of chunks of blocks 7, and nothing more.
fn by_field(presence: u64) -> Vec<u8> {
    let count = presence.count_ones() as usize;
    let mut out = Vec::new();
    put(&mut out, 2, 8);
    put(&mut out, presence, 8);
    // Of each chunk one kind, nothing layered, no components, and an entity count as its rest.
    for field in [1, 0, 0, 8] {
        (0..count).for_each(|_| put(&mut out, field, 4));
    }
    for byte in [7, 0, 0, 0, 0, 0, 0, 0] {
        out.extend(vec![byte; count]);
    }
    out.extend(vec![0; 8 * count]);
    out
}

/// Chunks in the seed form and by field, with bytes enough for both.
fn both_forms(presence: u64) -> [Vec<u8>; 2] {
    let schema = Schema { blocks: [(7, vec![])].into(), ..Schema::default() };
    let mut value = chunk::encode(&Chunk::filled(7), &schema).expect("encodable");
    value.extend([0; 40]);
    let places = (0..64).filter(|place| presence >> place & 1 == 1);
    let chunks = places.map(|place| (place, value.clone())).collect();
    [cluster::encode(1, &chunks).expect("a level"), fields::encode(&chunks).expect("all chunks have headers")]
}

/// Versions 1 and 2 may be of either tier, version 3 of L1 and versions 4 and 5 of L2 alone, each with any codec.
/// Only a compressed group of L2 with Zstandard may be by field.
#[test]
fn a_form_is_taken_only_where_it_may_be() {
    for claim in Claim::all() {
        let presence = [0x8000_0000_0000_ffff, 0x8000_0000_0000_ffff, 0xffff, 0x8000_ffff];
        let presence = presence[usize::from(claim.version) - 1];
        let [seed_form, by_field] = both_forms(presence);
        let row = claim.row(presence, &seed_form);
        let may_be = ![(2, 3), (1, 4)].contains(&(claim.scale_level, claim.version));
        assert_eq!(check_row(claim.scale_level, &row), may_be, "{claim:?}, seed form");
        let row = claim.row(presence, &by_field);
        let may_be = may_be && (claim.scale_level, claim.codec, claim.group_packed) == (2, 2, true);
        assert_eq!(check_row(claim.scale_level, &row), may_be, "{claim:?}, by field");
    }
}

/// No group has less than 521 bytes and one for each chunk, though this form would allow it.
#[test]
fn a_group_by_field_that_is_short_is_refused() {
    let claim = Claim { scale_level: 2, version: 2, codec: 2, entries_packed: true, group_packed: true };
    for (count, taken) in [(8, false), (16, false), (17, true), (63, true)] {
        let presence = (1 << count) - 1;
        let raw = by_field(presence);
        assert_eq!(taken, raw.len() >= 521 + count);
        assert_eq!(check_row(2, &claim.row(presence, &raw)), taken, "{count} chunks");
    }
}
