//! Clusters: properties of both forms, and helpers for the tests of layout and damage.

use super::*;
use crate::frame::head::Version;
use crate::frame::{self, Codec, LEN_BYTES};
use crate::{ClusterTier, DecodeError, Limits, Problem, Section, Space};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

mod damage;
mod fields;
mod halves;
mod layout;
mod slabs;

const KEY: &[u8] = b"a cluster's key";

type Chunks = BTreeMap<Slot, (SlotInfo, Vec<u8>)>;

fn slot(tier: ClusterTier, index: u16) -> Slot {
    Slot::new(tier, index).unwrap()
}

/// A chunk whose bytes, length and version are derived from its slot, so that all are different.
fn chunk(slot: Slot) -> (SlotInfo, Vec<u8>) {
    let index = u32::from(slot.index());
    let value = format!("chunk {index} {}", "ab".repeat(index as usize % 9)).into_bytes();
    (SlotInfo { version: u64::from(index) + 1000, schema_generation: index % 3 }, value)
}

fn chunks(tier: ClusterTier, indices: impl IntoIterator<Item = u16>) -> Chunks {
    indices.into_iter().map(|index| slot(tier, index)).map(|slot| (slot, chunk(slot))).collect()
}

fn build(tier: ClusterTier, codec: Codec, chunks: &Chunks) -> Vec<u8> {
    let mut builder = ClusterBuilder::new(tier);
    builder.set_codec(codec);
    for (slot, (info, value)) in chunks {
        builder.put(*slot, *info, value);
    }
    seal(&builder).unwrap().expect("at least one chunk")
}

fn seal(builder: &ClusterBuilder<'_>) -> Result<Option<Vec<u8>>, AssembleError> {
    let tier = builder.tier();
    let draft = builder.finish(&mut Limits::default())?;
    Ok(draft.map(|draft| draft.seal(Space::of_cluster(tier), KEY, 77)))
}

/// The content of a row, and the error of each unreadable group.
fn read(tier: ClusterTier, row: &[u8]) -> Result<(Chunks, Vec<DecodeError>), DecodeError> {
    let cluster = StoredCluster::open(tier, KEY, row)?;
    let (mut chunks, mut errors) = (Chunks::new(), Vec::new());
    let mut last = LastGroup::default();
    // Each twice, so that a group is followed once by the same group and once by another.
    for group in cluster.groups().flat_map(|group| [group, group]) {
        let alone = cluster.group(group, &mut Limits::default());
        let after = cluster.group_after(group, &mut Limits::default(), &mut last);
        let bytes = |read: &Result<Option<GroupBytes<'_>>, DecodeError>| {
            let all = |group: &GroupBytes<'_>| {
                let chunks = group.chunks().map(|(slot, value)| (slot, value.into_owned()));
                (group.bytes().to_vec(), chunks.collect::<Vec<_>>())
            };
            read.as_ref().map(|group| group.as_ref().map(all)).map_err(Clone::clone)
        };
        assert_eq!(bytes(&after), bytes(&alone), "group {group} after another");
    }
    for group in cluster.groups() {
        match cluster.group(group, &mut Limits::default()) {
            Ok(bytes) => chunks.extend(bytes.unwrap().chunks().map(|(slot, value)| {
                (slot, (cluster.chunk_info(slot).expect("present in its group"), value.to_vec()))
            })),
            Err(error) => errors.push(error),
        }
    }
    Ok((chunks, errors))
}

fn read_whole(tier: ClusterTier, row: &[u8]) -> Chunks {
    let (chunks, errors) = read(tier, row).unwrap();
    assert_eq!(errors, []);
    chunks
}

fn any_tier() -> impl Strategy<Value = ClusterTier> {
    prop_oneof![Just(ClusterTier::L1), Just(ClusterTier::L2)]
}

fn any_codec() -> impl Strategy<Value = Codec> {
    prop::sample::select(&Codec::ALL[..])
}

/// At least one slot of a tier: few in few groups, or many in many.
fn some_chunks(tier: ClusterTier, version: u64) -> impl Strategy<Value = Chunks> {
    let value = prop::collection::vec(0_u8..4, 1..200);
    let index = prop_oneof![0..64_u16, 0..tier.slot_count() as u16];
    prop::collection::btree_map(index, (value, 0..5_u32), 1..40).prop_map(move |chunks| {
        chunks
            .into_iter()
            .map(|(index, (value, schema_generation))| {
                (slot(tier, index), (SlotInfo { version, schema_generation }, value))
            })
            .collect()
    })
}

/// A merge that removes some of the old chunks and then puts the new ones, and what it has to hold.
fn merge_over<'a>(
    base: &StoredCluster<'a>,
    old: &Chunks,
    new: &'a Chunks,
    gone: &[prop::sample::Index],
    codec: Codec,
) -> (ClusterBuilder<'a>, Chunks) {
    let (mut builder, mut expected) = (ClusterBuilder::over(base), old.clone());
    builder.set_codec(codec);
    for slot in gone.iter().map(|index| *old.keys().nth(index.index(old.len())).unwrap()) {
        builder.remove(slot);
        expected.remove(&slot);
    }
    for (slot, (info, value)) in new {
        builder.put(*slot, *info, value);
        expected.insert(*slot, (*info, value.clone()));
    }
    (builder, expected)
}

#[test]
fn full_clusters_come_back() {
    for tier in [ClusterTier::L1, ClusterTier::L2] {
        let all = chunks(tier, 0..tier.slot_count() as u16);
        let row = build(tier, Codec::Lz4, &all);
        assert_eq!(read_whole(tier, &row), all);
        let cluster = StoredCluster::open(tier, KEY, &row).unwrap();
        assert_eq!((cluster.present_count(), cluster.version()), (tier.slot_count(), 77));
        assert_eq!(cluster.groups().count(), tier.group_count());
        for (slot, (info, value)) in &all {
            assert_eq!(cluster.chunk_info(*slot), Some(*info));
            let group = cluster.group(cluster.group_of(*slot), &mut Limits::default()).unwrap().unwrap();
            assert_eq!(group.chunk(*slot).as_deref(), Some(&value[..]));
            if tier == ClusterTier::L2 && slot.index() > 300 {
                break;
            }
        }
    }
}

#[test]
fn absent_chunks_are_none_everywhere() {
    let tier = ClusterTier::L2;
    let ninth_group = Slot::in_cube_of(tier, 4, 0).unwrap();
    let row = build(tier, Codec::Zstd, &chunks(tier, [0, 1, ninth_group.index(), 4095]));
    let cluster = StoredCluster::open(tier, KEY, &row).unwrap();
    let mut limits = Limits::default();
    assert_eq!(cluster.groups().collect::<Vec<_>>(), [0, 8, 127]);
    assert_eq!(cluster.chunk_info(slot(tier, 2)), None);
    assert_eq!(cluster.chunk_info(slot(ClusterTier::L1, 0)), None, "another tier");
    assert_eq!(cluster.group(7, &mut limits), Ok(None));
    assert_eq!(cluster.group(128, &mut limits), Ok(None), "no such group");
    let group = cluster.group(0, &mut limits).unwrap().unwrap();
    assert_eq!(group.chunk(slot(tier, 2)), None);
    assert_eq!(group.chunk(slot(tier, 4095)), None, "in another group");
    assert_eq!(group.chunk(ninth_group), None, "at the same place of another group");
    assert_eq!(group.chunk(slot(ClusterTier::L1, 0)), None, "another tier");
}

#[test]
fn reading_a_group_decompresses_only_that_group() {
    let tier = ClusterTier::L2;
    let mut all = chunks(tier, [0, 1, 4095]);
    all.get_mut(&slot(tier, 4095)).unwrap().1 = vec![9; 100_000];
    let row = build(tier, Codec::Zstd, &all);
    let cluster = StoredCluster::open(tier, KEY, &row).unwrap();
    let mut limits = Limits::new(5000);
    let group = cluster.group(0, &mut limits).unwrap().unwrap();
    let raw_len_bytes = header_len_bytes(ClusterTier::L1) + b"chunk 0 ".len() + b"chunk 1 ab".len();
    assert_eq!(group.decompressed_bytes(), raw_len_bytes);
    assert_eq!(limits.left_bytes(), 5000 - raw_len_bytes as u64);
    let error = cluster.group(127, &mut limits).unwrap_err();
    assert!(matches!(error.problem, Problem::LimitExceeded { needed: 100_521, .. }), "{error}");
}

#[test]
fn a_group_that_is_stored_as_the_one_before_is_decompressed_once() {
    let tier = ClusterTier::L2;
    // The first and the third group contain the same chunks, the second contains others.
    let all: Chunks = [(0, b"air"), (64, b"ore"), (128, b"air")]
        .into_iter()
        .map(|(index, value)| (slot(tier, index), (chunk(slot(tier, index)).0, value.repeat(200))))
        .collect();
    let row = build(tier, Codec::Lz4, &all);
    let cluster = StoredCluster::open(tier, KEY, &row).unwrap();
    let mut last = LastGroup::default();
    let mut spent = |group: u8| {
        let mut limits = Limits::new(1 << 20);
        let read = cluster.group_after(group, &mut limits, &mut last).unwrap().unwrap();
        assert_eq!(read.chunks().map(|(slot, _)| cluster.group_of(slot)).collect::<Vec<_>>(), [group]);
        assert_eq!(limits.left_bytes() + read.decompressed_bytes() as u64, 1 << 20);
        read.decompressed_bytes() > 0
    };
    let [first, second, third] = [0, 64, 128].map(|index| cluster.group_of(slot(tier, index)));
    let steps = [first, first, third, second, third, first, second];
    assert_eq!(steps.map(&mut spent), [true, false, false, true, true, false, true]);
}

/// Chunks of one version, in the first halves of some cubes. All groups but one have the same bytes.
fn alike(cubes: impl IntoIterator<Item = u8>, other: u8) -> Chunks {
    let info = SlotInfo { version: 9, schema_generation: 1 };
    let places = |cube| (0..3).map(move |place| Slot::in_cube_of(ClusterTier::L2, cube, place).unwrap());
    let value = |slot: Slot| if slot.cube() == other { b"ore".repeat(99) } else { b"air".repeat(99) };
    cubes.into_iter().flat_map(places).map(|slot| (slot, (info, value(slot)))).collect()
}

#[test]
fn equal_groups_of_a_cold_cluster_are_stored_once() {
    let tier = ClusterTier::L2;
    let (few, many) = (alike([0, 20], 20), alike(0..40, 20));
    for codec in Codec::ALL {
        let rows = [&few, &many].map(|held| build(tier, codec, held));
        let stored = rows.each_ref().map(|row| {
            let groups =
                trace(tier, KEY, row).0.into_iter().filter(|span| span.section == Section::ClusterGroup);
            groups.map(|span| span.len_bytes).collect::<Vec<_>>()
        });
        assert_eq!((stored[0].len(), &stored[0]), (2, &stored[1]));
        assert_eq!(rows.each_ref().map(|row| read_whole(tier, row)), [few.clone(), many.clone()]);

        // A merge shares groups, too: with those that it copies, and with those that it makes.
        let base = StoredCluster::open(tier, KEY, &rows[0]).unwrap();
        let mut merge = ClusterBuilder::over(&base);
        for (slot, (info, value)) in many.iter().filter(|(slot, _)| !few.contains_key(slot)) {
            merge.put(*slot, *info, value);
        }
        assert!(seal(&merge).unwrap().unwrap() == rows[1]);
    }
}

#[test]
fn a_group_that_does_not_shrink_is_borrowed() {
    let tier = ClusterTier::L1;
    let row = build(tier, Codec::None, &chunks(tier, [5]));
    let cluster = StoredCluster::open(tier, KEY, &row).unwrap();
    let group = cluster.group(0, &mut Limits::new(0)).unwrap().unwrap();
    assert_eq!(group.decompressed_bytes(), 0);
    // Incompressible data: compression lengthens the group by more than the compressed header saves.
    let noise: Vec<u8> = (0..300_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for codec in [Codec::Lz4, Codec::Zstd] {
        let random: Vec<u8> = noise
            .iter()
            .scan(1_u64, |state, byte| {
                *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(u64::from(*byte) | 1);
                Some((*state >> 56) as u8)
            })
            .collect();
        let all = Chunks::from([(slot(tier, 1), (chunk(slot(tier, 1)).0, random))]);
        let row = build(tier, codec, &all);
        assert!(row.len() <= LEN_BYTES + 8 + 4 * 24 + 12 + 521 + 300_000, "never longer than uncompressed");
        assert_eq!(read_whole(tier, &row), all);
    }
}

#[test]
fn the_last_chunk_leaves_no_row() {
    let tier = ClusterTier::L1;
    assert_eq!(seal(&ClusterBuilder::new(tier)), Ok(None));
    let row = build(tier, Codec::Lz4, &chunks(tier, [9]));
    let base = StoredCluster::open(tier, KEY, &row).unwrap();
    assert_eq!(seal(ClusterBuilder::over(&base).remove(slot(tier, 9))), Ok(None));
}

#[test]
fn what_the_layout_cannot_hold_is_refused() {
    let tier = ClusterTier::L1;
    let info = SlotInfo { version: 1, schema_generation: 1 };
    let megabytes = vec![0; 5 << 20];
    let noise: Vec<u8> = (0..1_300_000_u64)
        .scan(7_u64, |state, _| {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            Some((*state >> 33).to_le_bytes()[..7].to_vec())
        })
        .flatten()
        .collect();
    let mut empty = ClusterBuilder::new(tier);
    empty.put(slot(tier, 3), info, &b""[..]);
    let mut foreign = ClusterBuilder::new(tier);
    foreign.put(slot(ClusterTier::L2, 3), info, &b"x"[..]);
    let mut raw = ClusterBuilder::new(tier);
    for slot in Slot::all(tier) {
        raw.put(slot, info, &megabytes);
    }
    let mut stored = ClusterBuilder::new(tier);
    stored.put(slot(tier, 0), info, &noise);
    for (builder, expect) in [
        (empty, expect!["the chunk at Slot(L1: 0, 0, 3) has no bytes"]),
        (foreign, expect!["Slot(L2: 0, 0, 3) is no slot of an L1 cluster"]),
        (raw, expect!["the cluster would take more than 268435456 bytes decompressed, so it is not formed"]),
        (stored, expect!["the cluster would take more than 8388608 bytes stored, so it is not formed"]),
    ] {
        expect.assert_eq(&seal(&builder).unwrap_err().to_string());
    }
}

#[test]
fn groups_without_changes_are_copied_as_they_are_stored() {
    let tier = ClusterTier::L2;
    let row = build(tier, Codec::Zstd, &chunks(tier, [0, 1, 2000, 4095]));
    // The same group compressed by another encoder: valid, but different from what this code would write.
    let other = replace_group(&row, 127, |raw| {
        let mut stored = Vec::new();
        let level = ruzstd::encoding::CompressionLevel::Uncompressed;
        ruzstd::encoding::compress(raw, &mut stored, level);
        stored.truncate(raw.len() - 1);
        stored
    });
    let base = StoredCluster::open(tier, KEY, &other).unwrap();
    let (info, value) = chunk(slot(tier, 1));
    let merged = seal(ClusterBuilder::over(&base).put(slot(tier, 1), info, value)).unwrap().unwrap();
    let merged = StoredCluster::open(tier, KEY, &merged).unwrap();
    let stored = |cluster: &StoredCluster<'_>| cluster.stored(&cluster.entry(127).unwrap()).unwrap().to_vec();
    assert_eq!(stored(&merged), stored(&base));
    assert_eq!(merged.entry(127).unwrap().checksum, base.entry(127).unwrap().checksum);
}

/// Replaces the stored bytes of a group and adjusts directory and frame.
fn replace_group(row: &[u8], group: u8, bytes: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<u8> {
    replace_group_and_length(row, group, |raw| (bytes(raw), raw.len()))
}

/// As [`replace_group`], with another length of the decompressed bytes.
fn replace_group_and_length(row: &[u8], group: u8, bytes: impl FnOnce(&[u8]) -> (Vec<u8>, usize)) -> Vec<u8> {
    let tier = ClusterTier::from_scale_level(row[frame::LEN_BYTES + 1]).unwrap();
    let cluster = StoredCluster::open(tier, KEY, row).unwrap();
    let all = 0..tier.group_count() as u8;
    let mut groups: Vec<_> = all.map(|group| cluster.entry(group).unwrap_or_default()).collect();
    let slots: Vec<_> = cluster.slots().map(|(_, info)| info).collect();
    let mut body = Vec::new();
    let mut bytes = Some(bytes);
    for (entry, index) in groups.iter_mut().zip(0_u8..).filter(|(entry, _)| entry.presence != 0) {
        let mut stored = cluster.stored(entry).unwrap().to_vec();
        if index == group {
            let raw = cluster.group(group, &mut Limits::default()).unwrap().unwrap();
            let (replaced, raw_len_bytes) = bytes.take().unwrap()(raw.bytes());
            stored = replaced;
            entry.raw_len_bytes = raw_len_bytes as u32;
        }
        entry.offset_bytes = body.len() as u32;
        entry.stored_len_bytes = stored.len() as u32;
        entry.checksum = crc32c::crc32c(&stored);
        body.extend(stored);
    }
    let draft = frame::Draft::cluster(cluster.codec(), |out| {
        let start = out.len();
        directory::Directory::encode((Version::written(tier), tier), cluster.codec(), &groups, &slots, out);
        let len = out.len() - start;
        out.extend(body);
        len
    });
    draft.seal(Space::of_cluster(tier), KEY, cluster.version())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_put_is_read((tier, all) in any_tier().prop_flat_map(|tier| (Just(tier), some_chunks(tier, 3))), codec in any_codec()) {
        let row = build(tier, codec, &all);
        prop_assert_eq!(read_whole(tier, &row), all.clone());
        let cluster = StoredCluster::open(tier, KEY, &row).unwrap();
        let listed: BTreeMap<_, _> = cluster.slots().collect();
        let expected: BTreeMap<_, _> = all.iter().map(|(slot, (info, _))| (*slot, *info)).collect();
        prop_assert_eq!(listed, expected);
    }

    #[test]
    fn the_seed_form_converts_both_ways((tier, all) in any_tier().prop_flat_map(|tier| (Just(tier), some_chunks(tier, 3)))) {
        let mut builder = ClusterBuilder::new(tier);
        for (slot, (info, value)) in &all {
            builder.put(*slot, *info, value);
        }
        let row = seal(&builder).unwrap().unwrap();
        let seed = StoredCluster::open(tier, KEY, &row).unwrap().to_seed_bytes(&mut Limits::default()).unwrap();
        let view = ClusterView::new(&seed).unwrap();
        prop_assert_eq!(view.tier(), tier);
        for slot in Slot::all(tier) {
            prop_assert_eq!(view.chunk(slot), all.get(&slot).map(|(_, value)| &value[..]));
        }
        let mut builder = ClusterBuilder::new(view.tier());
        for (slot, value) in view.chunks() {
            builder.put(slot, all[&slot].0, value);
        }
        let again = seal(&builder).unwrap().unwrap();
        prop_assert!(again == row, "canonical");
        prop_assert_eq!(ClusterView::encode(tier, view.chunks()).unwrap(), seed);
    }

    #[test]
    fn a_merge_is_what_building_anew_gives(
        (tier, old, new) in any_tier().prop_flat_map(|tier| (Just(tier), some_chunks(tier, 3), some_chunks(tier, 9))),
        gone: Vec<prop::sample::Index>, codec in any_codec(), new_codec in any_codec(),
    ) {
        let base_row = build(tier, codec, &old);
        let base = StoredCluster::open(tier, KEY, &base_row).unwrap();
        let (builder, expected) = merge_over(&base, &old, &new, &gone, new_codec);
        let merged = seal(&builder).unwrap().unwrap();
        prop_assert_eq!(read_whole(tier, &merged), expected.clone());
        prop_assert!(merged == build(tier, new_codec, &expected));
        let groups = (0..tier.group_count() as u8)
            .map(|group| builder.encode_group(group, &mut Limits::default()).map(EncodedGroup::into_owned))
            .collect::<Result<Vec<_>, _>>()
            .unwrap();
        prop_assert_eq!(groups.iter().map(EncodedGroup::present_count).sum::<usize>(), expected.len());
        let joined = join_groups(tier, new_codec, &groups).unwrap().unwrap();
        prop_assert!(joined.seal(Space::of_cluster(tier), KEY, 77) == merged, "made in steps");
    }
}
