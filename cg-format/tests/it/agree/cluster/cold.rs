//! Rows as the writer now forms them: L1 with a directory of version 3, L2 with one of version 5 and groups by field.

use std::collections::BTreeMap;

use cg_format::cluster::{ClusterBuilder, SlotInfo, StoredCluster, join_groups};
use cg_format::codec::{self, Codec, Effort};
use cg_format::frame::Draft;
use cg_format::{Limits, Space};
use proptest::prelude::*;

use super::pieces::older;
use super::{KEY, check_row, row, row_in, slot, tier};
use crate::naive::chunk::{CELLS, Parts};
use crate::naive::cluster::{self, Plain, Slot, Stored, directory, group, written_version};
use crate::naive::{self, Dice, hex};

/// The row of a cluster as the present writer forms it, with the codec of its tier.
pub(super) fn written(naive: &Stored) -> Vec<u8> {
    seal(naive.scale_level, builder(naive).finish(&mut Limits::default()).expect("a small cluster"))
}

pub(super) fn builder(naive: &Stored) -> ClusterBuilder<'_> {
    let mut builder = ClusterBuilder::new(tier(naive.scale_level));
    for (index, chunk) in &naive.chunks {
        builder.put(slot(naive.scale_level, *index), info(chunk), &chunk.value[..]);
    }
    builder
}

pub(super) fn info(chunk: &Slot) -> SlotInfo {
    SlotInfo { version: chunk.version, schema_generation: chunk.schema_generation }
}

pub(super) fn seal(scale_level: u8, draft: Option<Draft>) -> Vec<u8> {
    draft.expect("chunks").seal(Space::of_cluster(tier(scale_level)), KEY, 12)
}

/// Both readers find exactly this cluster in a row.
#[track_caller]
pub(super) fn check_holds(row: &[u8], expected: &Stored) {
    let space = Space::of_cluster(tier(expected.scale_level)).byte();
    let (frame, found) = cluster::decode_stored(row, space, KEY).expect("the naive reader takes it");
    assert_eq!((frame.kind, frame.version, frame.schema_generation), (2, 12, 0));
    assert!(&found == expected, "the naive reader finds other chunks");
    assert!(check_row(expected.scale_level, row));
}

/// A chunk of few or many kinds, or something near a chunk.
fn value(dice: &mut Dice) -> Vec<u8> {
    loop {
        let kinds = [1, 1, 2, 2, 3, 5, 9, 17, 40, 257][dice.below(10) as usize];
        let (chunk, schema) = naive::chunk::random(dice, kinds);
        let mut value = naive::chunk::encode(&chunk, &schema).expect("encodable");
        if value.len() > 20_000 {
            continue;
        }
        let at = dice.below(40) as usize;
        match dice.below(24) {
            0 => value[at] ^= 1 << dice.below(8),
            1 => value.truncate(1 + dice.below(value.len() as u64) as usize),
            2 => value = dice.bytes(1 + at),
            // Bytes between the header and the end mean nothing to a cluster.
            3 => {
                let at = 48 + dice.below(value.len() as u64 - 48) as usize;
                value[at] ^= 1 << dice.below(8);
            }
            _ => {}
        }
        return value;
    }
}

/// A chunk of one kind, which is below 20.
fn filled(kind: u64) -> Vec<u8> {
    let blocks = (0..20).map(|kind| (kind, vec![])).collect();
    let schema = naive::Schema { blocks, ..Default::default() };
    naive::chunk::encode(&naive::chunk::Chunk::filled(kind), &schema).expect("encodable")
}

/// A cluster of a few groups, some of them equal but for what the directory knows of their chunks.
pub(super) fn random(dice: &mut Dice, scale_level: u8) -> Stored {
    let pool: Vec<Vec<u8>> = (0..=dice.below(5)).map(|_| value(dice)).collect();
    let mut shapes: Vec<BTreeMap<u16, usize>> = Vec::new();
    let mut chunks = BTreeMap::new();
    let [most, groups, places] = if scale_level == 1 { [4, 4, 16] } else { [6, 128, 32] };
    for _ in 0..=dice.below(most) {
        let group = dice.below(groups) as u16;
        let shape = if !shapes.is_empty() && dice.below(2) == 0 {
            shapes[dice.below(shapes.len() as u64) as usize].clone()
        } else {
            let pick = |_| (dice.below(places) as u16, dice.below(pool.len() as u64) as usize);
            (0..[1, 3, 12][pool.len() % 3]).map(pick).collect()
        };
        for (place, value) in &shape {
            let value = pool[*value].clone();
            let chunk = Slot { version: dice.next(), schema_generation: dice.next() as u32, value };
            let version = written_version(scale_level);
            chunks.insert(group::slot_at(scale_level, version, group, *place), chunk);
        }
        shapes.push(shape);
    }
    Stored { scale_level, chunks }
}

/// Which form each group of a row has, and how many of them have the bytes of an earlier one.
fn forms(scale_level: u8, row: &[u8]) -> ([u32; 2], usize) {
    let stored = StoredCluster::open(tier(scale_level), KEY, row).expect("a right row");
    let mut forms = [0, 0];
    for group in stored.groups() {
        let group = stored.group(group, &mut Limits::default()).expect("a right group").expect("chunks");
        forms[usize::from(group.bytes()[0]) - 1] += 1;
    }
    let directory = directory::decode(&row[24..], row[2]).expect("a right directory");
    let mut offsets: Vec<u32> =
        directory.entries.iter().filter(|entry| entry.presence != 0).map(|entry| entry.offset).collect();
    let groups = offsets.len();
    offsets.sort_unstable();
    offsets.dedup();
    (forms, groups - offsets.len())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn what_is_written_now_is_read(seed: u64, scale_level in 1_u8..=2) {
        let naive = random(&mut Dice(seed), scale_level);
        let row = written(&naive);
        let expected = [(1, 3), (2, 5)][usize::from(scale_level) - 1];
        prop_assert_eq!((row[2], row[24]), expected, "codec, directory version");
        check_holds(&row, &naive);
        // Group by group, as a demotion forms it.
        let mut limits = Limits::default();
        let builder = builder(&naive);
        let groups: Vec<_> = (0..tier(scale_level).group_count() as u8)
            .map(|group| builder.encode_group(group, &mut limits).expect("a small group"))
            .collect();
        let codec = Codec::from_byte(scale_level).expect("1 or 2");
        let joined = join_groups(tier(scale_level), codec, &groups).expect("a small cluster");
        check_holds(&seal(scale_level, joined), &naive);
    }

    /// Over a row of any age: chunks are put and removed, and the other groups are copied.
    #[test]
    fn a_row_over_an_older_one_is_read(seed: u64, scale_level in 1_u8..=2, codec in 0_u8..=2) {
        let mut dice = Dice(seed);
        let mut naive = random(&mut dice, scale_level);
        let older = match dice.below(4) {
            3 if scale_level == 2 && codec < 2 => row_in(4, &naive, codec),
            0 if codec == 2 => written(&naive),
            0 => row(&naive, codec),
            1 => older(&naive, 1, codec, false),
            _ => older(&naive, 2, codec, codec > 0),
        };
        check_holds(&older, &naive);
        let newer = random(&mut dice, scale_level);
        let stored = StoredCluster::open(tier(scale_level), KEY, &older).expect("a right row");
        let mut builder = ClusterBuilder::over(&stored);
        for index in naive.chunks.keys().copied().collect::<Vec<_>>() {
            if dice.below(4) == 0 {
                builder.remove(slot(scale_level, index));
                naive.chunks.remove(&index);
            }
        }
        for (index, chunk) in newer.chunks {
            builder.put(slot(scale_level, index), info(&chunk), chunk.value.clone());
            naive.chunks.insert(index, chunk);
        }
        let draft = builder.finish(&mut Limits::default()).expect("a small cluster");
        let row = seal(scale_level, draft);
        prop_assert_eq!((row[2], row[24]), (older[2], written_version(scale_level)), "codec, directory version");
        check_holds(&row, &naive);
    }
}

#[test]
fn random_clusters_have_both_forms_and_equal_groups() {
    let mut dice = Dice(40);
    for scale_level in 1..=2 {
        let mut seen = ([0, 0], 0);
        for _ in 0..20 {
            let (forms, shared) = forms(scale_level, &written(&random(&mut dice, scale_level)));
            seen = ([seen.0[0] + forms[0], seen.0[1] + forms[1]], seen.1 + shared);
        }
        assert!(
            seen.0[0] > 5 && (seen.0[1] > 20) == (scale_level == 2) && seen.1 > 5,
            "{scale_level}: {seen:?}"
        );
    }
}

/// One chunk for each width of local ids, up to more kinds than 16 bits number.
#[test]
fn every_width_of_ids_is_read() {
    let mut dice = Dice(41);
    let mut chunks = BTreeMap::new();
    let counts = [1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 128, 129, 256, 257, 4096, 4097, 65_536, 65_537];
    for (index, kinds) in counts.into_iter().enumerate() {
        let id = |dice: &mut Dice| dice.below(kinds);
        let parts = Parts {
            palette: (0..kinds).map(|kind| kind << 7 | 1 << 60).collect(),
            ids: (0..CELLS).map(|_| id(&mut dice)).collect(),
            layered: (4096..kinds).map(|entry| (entry % 4096, id(&mut dice))).collect(),
            section: b"components"[..index % 11].to_vec(),
            entities: vec![[7; 16]; index % 3],
            sides: vec![(3, b"a side".to_vec())],
        };
        let chunk = Slot { version: kinds, schema_generation: 1, value: parts.bytes() };
        chunks.insert(index as u16 % 4 + index as u16 / 4 * 16, chunk);
    }
    let naive = Stored { scale_level: 2, chunks };
    let row = written(&naive);
    assert_eq!(forms(2, &row).0[1], 2, "two groups by field");
    check_holds(&row, &naive);
}

#[test]
fn equal_groups_that_are_stored_once_are_read() {
    let mut chunks = BTreeMap::new();
    // Groups 0, 5 and 63 are alike, 9 and 10 are others: 63 goes back over both.
    for (group, kind) in [(0, 7), (5, 7), (9, 8), (10, 9), (63, 7)] {
        for inner in 0..20 {
            let version = 100 * u64::from(group) + inner;
            let chunk = Slot { version, schema_generation: group.into(), value: filled(kind + inner % 2) };
            chunks.insert(group::slot_at(2, 2, group, inner as u16), chunk);
        }
    }
    let naive = Stored { scale_level: 2, chunks };
    let row = written(&naive);
    assert_eq!(forms(2, &row), ([0, 5], 2), "forms, and groups with the bytes of another");
    check_holds(&row, &naive);
}

/// Which groups are by field, and with which bytes.
#[test]
fn the_same_group_gives_the_same_bytes() {
    let mut dice = Dice(44);
    let (mut whole, mut short, mut apart) = (0, 0, 0);
    // A group of one chunk with one kind is too short to be by field, whatever compresses it.
    let one = Slot { version: 1, schema_generation: 1, value: filled(7) };
    let short_one = Stored { scale_level: 2, chunks: BTreeMap::from([(0, one)]) };
    for cluster in (0..20).map(|_| random(&mut dice, 2)).chain([short_one]) {
        let row = written(&cluster);
        let stored = StoredCluster::open(tier(2), KEY, &row).expect("a right row");
        for group in stored.groups() {
            let group = stored.group(group, &mut Limits::default()).expect("a right group").expect("chunks");
            let chunks: Plain = group
                .chunks()
                .map(|(slot, value)| (u16::from(slot.in_cube()) % 32, value.into_owned()))
                .collect();
            let by_field = cluster::fields::encode(&chunks);
            let fits = |bytes: &Vec<u8>| {
                let mut packed = Vec::new();
                codec::compress(Codec::Zstd, Effort::Small, bytes, &mut packed);
                bytes.len() >= 521 + chunks.len() && packed.len() < bytes.len()
            };
            let seen = match &by_field {
                None => &mut whole,
                Some(bytes) if !fits(bytes) => &mut short,
                Some(_) => &mut apart,
            };
            *seen += 1;
            let expected = by_field.filter(fits).or_else(|| cluster::encode(1, &chunks).ok());
            assert_eq!(Some(hex(group.bytes())), expected.map(|bytes| hex(&bytes)));
        }
    }
    assert!(whole > 0 && short > 0 && apart > 20, "{whole} whole, {short} short, {apart} by field");
}
