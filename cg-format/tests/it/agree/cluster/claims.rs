//! Which tier, directory version and codec go with which form of a group.

use super::check_row;
use super::pieces::{Pieces, entry_of, packed};
use crate::naive::chunk::{self, Chunk};
use crate::naive::cluster;
use crate::naive::cluster::directory::{Directory, Entry};
use crate::naive::{Schema, put};

/// What a row with one group says of itself.
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
        for bits in 0..48_u8 {
            let [entries_packed, group_packed] = [bits & 1 == 1, bits & 2 == 2];
            let [scale_level, version] = [1 + (bits >> 2 & 1), 1 + (bits >> 3 & 1)];
            let codec = bits >> 4;
            if entries_packed && version == 1 || codec == 0 && (entries_packed || group_packed) {
                continue;
            }
            all.push(Self { scale_level, version, codec, entries_packed, group_packed });
        }
        all
    }

    fn row(self, presence: u64, raw: &[u8]) -> Vec<u8> {
        let Self { scale_level, version, codec, .. } = self;
        let groups = if self.group_packed { packed(codec, raw) } else { raw.to_vec() };
        assert!(!self.group_packed || groups.len() < raw.len(), "{self:?}");
        let mut entries = vec![Entry::default(); [1, 64][usize::from(scale_level) - 1]];
        entries[0] = entry_of(presence, &groups, raw);
        let chunks = vec![(9, 1); presence.count_ones() as usize];
        let row = Pieces { codec, directory: Directory { version, scale_level, entries, chunks }, groups };
        row.sealed(&row.head(self.entries_packed))
    }
}

/// A group by field of chunks of blocks 7.
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

/// Version 2 may be of either tier and any codec. Only a compressed group of L2 with Zstandard may be by field.
#[test]
fn a_form_is_taken_only_where_it_may_be() {
    let presence = 0x8000_0000_0000_ffff;
    let schema = Schema { blocks: [(7, vec![])].into(), ..Schema::default() };
    let value = chunk::encode(&Chunk::filled(7), &schema).expect("encodable");
    let places = (0..64).filter(|place| presence >> place & 1 == 1);
    let seed_form =
        cluster::encode(1, &places.map(|place| (place, value.clone())).collect()).expect("a level");
    let by_field = by_field(presence);
    for claim in Claim::all() {
        let row = claim.row(presence, &seed_form);
        assert!(check_row(claim.scale_level, &row), "{claim:?}, seed form");
        let row = claim.row(presence, &by_field);
        let may_be = (claim.scale_level, claim.codec, claim.group_packed) == (2, 2, true);
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
