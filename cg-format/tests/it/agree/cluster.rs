//! Clusters against the naive ones: the plain form, the stored form, and lies in both with right checksums.

mod claims;
mod cold;
mod lies;
mod pieces;
mod warm;

use std::collections::BTreeMap;

use cg_format::cluster::{ClusterBuilder, ClusterView, GroupBytes, LastGroup, Slot, SlotInfo, StoredCluster};
use cg_format::frame::Codec;
use cg_format::{ClusterTier, Limits, Space};
use proptest::prelude::*;

use crate::naive::cluster::{self, Plain, Stored, Writing, group, written_version};
use crate::naive::{Dice, crc32c, frame, hex, put};

const KEY: &[u8] = b"a key of a cluster";

fn tier(scale_level: u8) -> ClusterTier {
    ClusterTier::from_scale_level(scale_level).expect("1 or 2")
}

fn slot(scale_level: u8, index: u16) -> Slot {
    Slot::new(tier(scale_level), index).expect("a slot of the tier")
}

/// A cluster whose values are no chunks: a cluster does not look into them.
fn random(dice: &mut Dice, scale_level: u8, count: u64) -> Stored {
    let mut chunks = BTreeMap::new();
    for _ in 0..count {
        let len = 1 + dice.below(90) as usize;
        let value = if dice.below(2) == 0 { dice.bytes(len) } else { vec![7; len] };
        let slot = cluster::Slot { version: dice.next(), schema_generation: dice.next() as u32, value };
        chunks.insert(dice.below([64, 4096][usize::from(scale_level) - 1]) as u16, slot);
    }
    Stored { scale_level, chunks }
}

/// Our reading of a plain cluster.
fn viewed(bytes: &[u8]) -> Option<(u8, Plain)> {
    let view = ClusterView::new(bytes).ok()?;
    let chunks: Plain = view.chunks().map(|(slot, value)| (slot.index(), value.to_vec())).collect();
    for slot in Slot::all(view.tier()) {
        assert_eq!(view.chunk(slot), chunks.get(&slot.index()).map(Vec::as_slice), "{slot:?}");
    }
    Some((view.tier().scale_level(), chunks))
}

/// Our reading of a whole row, every group of it, alone and after the groups before.
fn opened(scale_level: u8, row: &[u8]) -> Option<Stored> {
    let stored = StoredCluster::open(tier(scale_level), KEY, row).ok()?;
    let mut limits = Limits::default();
    let mut last = LastGroup::default();
    let mut chunks = BTreeMap::new();
    let version = row[24];
    for index in 0..group::count(scale_level, version).expect("a version of the level") as u8 {
        let group = stored.group(index, &mut limits).ok()?;
        let after =
            stored.group_after(index, &mut Limits::default(), &mut last).expect("as it was read alone");
        let chunks_of = |group: &GroupBytes<'_>| -> Vec<_> {
            group.chunks().map(|(slot, value)| (slot, value.into_owned())).collect()
        };
        assert_eq!(after.as_ref().map(chunks_of), group.as_ref().map(chunks_of));
        let Some(group) = group else { continue };
        for (slot, value) in group.chunks() {
            assert_eq!(stored.group_of(slot), index);
            assert_eq!(group::of_slot(scale_level, version, slot.index()).0, index.into());
            assert_eq!(group.chunk(slot), Some(value.clone()));
            let info = stored.chunk_info(slot).expect("a present chunk has its version");
            let SlotInfo { version, schema_generation } = info;
            chunks.insert(slot.index(), cluster::Slot { version, schema_generation, value: value.to_vec() });
        }
    }
    assert_eq!(stored.present_count(), chunks.len());
    let naive = Stored { scale_level, chunks };
    let seed = cluster::encode(scale_level, &naive.plain()).expect("a level");
    assert!(stored.to_seed_bytes(&mut limits).as_ref() == Ok(&seed), "reassembled differently");
    Some(naive)
}

fn row(naive: &Stored, codec: u8) -> Vec<u8> {
    row_in(written_version(naive.scale_level), naive, codec)
}

fn row_in(directory_version: u8, naive: &Stored, codec: u8) -> Vec<u8> {
    let space = Space::of_cluster(tier(naive.scale_level)).byte();
    let writing = Writing { directory_version, codec, version: 12 };
    cluster::encode_stored(naive, writing, space, KEY).expect("encodable")
}

#[track_caller]
fn check_row(scale_level: u8, row: &[u8]) -> bool {
    let space = Space::of_cluster(tier(scale_level)).byte();
    let naive = cluster::decode_stored(row, space, KEY).map(|(_, stored)| stored);
    let ours = opened(scale_level, row);
    assert!(
        ours.as_ref() == naive.as_ref().ok(),
        "ours {:?}\nnaive {:?}\n{}",
        StoredCluster::open(tier(scale_level), KEY, row).err(),
        naive.as_ref().err(),
        hex(row)
    );
    naive.is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_same_cluster_gives_the_same_bytes(seed: u64, scale_level in 1_u8..=2, count in 1_u64..70, codec in 0_u8..2) {
        let naive = random(&mut Dice(seed), scale_level, count);
        let plain = cluster::encode(scale_level, &naive.plain()).expect("a level");
        let values = naive.chunks.iter().map(|(index, chunk)| (slot(scale_level, *index), &chunk.value[..]));
        let ours = ClusterView::encode(tier(scale_level), values).expect("slots of one tier");
        prop_assert!(ours == plain, "plain, ours first\n{}\n{}", hex(&ours), hex(&plain));
        prop_assert_eq!(viewed(&plain), Some((scale_level, naive.plain())));

        let mut builder = ClusterBuilder::new(tier(scale_level));
        builder.set_codec(Codec::from_byte(codec).expect("a codec"));
        for (index, chunk) in &naive.chunks {
            let info = SlotInfo { version: chunk.version, schema_generation: chunk.schema_generation };
            builder.put(slot(scale_level, *index), info, &chunk.value[..]);
        }
        let draft = builder.finish(&mut Limits::default()).expect("a small cluster").expect("chunks");
        let ours = draft.seal(Space::of_cluster(tier(scale_level)), KEY, 12);
        // Each slot has its own generation; the frame of a cluster says 0.
        let theirs = row(&naive, codec);
        prop_assert!(ours == theirs, "stored, ours first\n{}\n{}", hex(&ours), hex(&theirs));
        prop_assert!(check_row(scale_level, &theirs));
    }
}

#[test]
fn mutated_plain_clusters_are_judged_alike() {
    let mut dice = Dice(30);
    let mut taken = 0;
    for _ in 0..2_000 {
        let count = dice.below(6);
        let naive = random(&mut dice, 1, count);
        let mut bytes = cluster::encode(1, &naive.plain()).expect("a level");
        let chunks: Vec<u16> = naive.chunks.keys().copied().collect();
        match dice.below(6) {
            0 => bytes[dice.below(9) as usize] ^= 1 << dice.below(3),
            1 if !chunks.is_empty() => {
                let at = 9 + 8 * usize::from(chunks[dice.below(chunks.len() as u64) as usize]);
                bytes[at] = bytes[at].wrapping_add([1, 255, 8][dice.below(3) as usize]);
            }
            2 => {
                let at = 9 + 8 * dice.below(64) as usize;
                bytes[at..at + 2].copy_from_slice(&[9 + dice.below(4) as u8, 2]);
            }
            3 => bytes.truncate(bytes.len() - dice.below(30).min(bytes.len() as u64) as usize),
            4 => bytes.push(0),
            _ => {
                let at = dice.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << dice.below(8);
            }
        }
        let [ours, theirs] = [viewed(&bytes), cluster::decode(&bytes).ok()];
        assert!(ours == theirs, "ours {ours:?}\nnaive {:?}\n{}", cluster::decode(&bytes), hex(&bytes));
        taken += u32::from(theirs.is_some());
    }
    assert!((200..1_800).contains(&taken), "{taken} of 2000 were taken");
}

/// Directories that lie, sealed again so that only the lie is wrong.
#[test]
fn mutated_stored_clusters_are_judged_alike() {
    let mut dice = Dice(31);
    let mut taken = 0;
    for _ in 0..2_000 {
        let scale_level = if dice.below(4) == 0 { 2 } else { 1 };
        let count = 1 + dice.below(8);
        let naive = random(&mut dice, scale_level, count);
        let version = if scale_level == 1 && dice.below(2) == 0 { 3 } else { 1 };
        let mut bytes = row_in(version, &naive, dice.below(2) as u8);
        let groups = group::count(scale_level, version).expect("a version of the level");
        let directory_len = 8 + 24 * usize::from(groups) + 12 * naive.chunks.len();
        let entry = 24 + 8 + 24 * dice.below(groups.into()) as usize;
        match dice.below(7) {
            0 => bytes[24 + dice.below(8) as usize] ^= 1 << dice.below(3),
            1 => bytes[entry + dice.below(24) as usize] ^= 1 << dice.below(8),
            2 => bytes[entry + 8 + 4 * dice.below(3) as usize] ^= 1 << dice.below(3),
            3 => {
                // A group of other bytes with its own right checksum.
                let entry = 24 + 8;
                let at = 24 + directory_len;
                let stored_len =
                    u32::from_le_bytes([12, 13, 14, 15].map(|byte| bytes[entry + byte])) as usize;
                if stored_len > 0 {
                    bytes[at + dice.below(stored_len as u64) as usize] ^= 1 << dice.below(8);
                    let mut crc = Vec::new();
                    put(&mut crc, u64::from(crc32c(&bytes[at..at + stored_len])), 4);
                    bytes[entry + 20..entry + 24].copy_from_slice(&crc);
                }
            }
            4 => bytes.push(0),
            5 => bytes.truncate(bytes.len() - 1 - dice.below(3) as usize),
            _ => bytes[2] = dice.below(3) as u8,
        }
        if bytes.len() >= 24 + directory_len {
            frame::reseal(&mut bytes, directory_len, Space::of_cluster(tier(scale_level)).byte(), KEY);
        }
        taken += u32::from(check_row(scale_level, &bytes));
    }
    assert!((100..1_800).contains(&taken), "{taken} of 2000 were taken");
}
