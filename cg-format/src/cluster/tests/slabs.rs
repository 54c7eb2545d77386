//! Warm clusters in four slabs, and in one group, as earlier drafts wrote them.

use super::*;
use crate::codec::{Effort, compress};
use crate::wire::Writer;

/// A warm row as earlier drafts wrote it: a directory of version 1, and one group that is the whole seed form.
pub(super) fn in_one_group(codec: Codec, all: &Chunks) -> Vec<u8> {
    let tier = ClusterTier::L1;
    let raw = ClusterView::encode(tier, all.iter().map(|(slot, (_, value))| (*slot, &value[..]))).unwrap();
    let mut stored = Vec::new();
    compress(codec, Effort::Fast, &raw, &mut stored);
    if codec == Codec::None || stored.len() >= raw.len() {
        stored.clone_from(&raw);
    }
    let draft = frame::Draft::cluster(codec, |out| {
        let start = out.len();
        let mut writer = Writer::new(out);
        writer.bytes(&[1, 1, 0, 0]);
        writer.u32(all.len() as u32);
        writer.u64(all.keys().fold(0, |presence, slot| presence | 1 << slot.index()));
        writer.u32(0);
        writer.u32(stored.len() as u32);
        writer.u32(raw.len() as u32);
        writer.u32(crc32c::crc32c(&stored));
        for (info, _) in all.values() {
            writer.u64(info.version);
            writer.u32(info.schema_generation);
        }
        let len = out.len() - start;
        out.extend(&stored);
        len
    });
    draft.seal(Space::ClusterL1, KEY, 77)
}

/// Chunks of one version at the first three places of some slabs. All slabs but one have the same bytes.
pub(super) fn alike(slabs: impl IntoIterator<Item = u16>, other: u16) -> Chunks {
    let info = SlotInfo { version: 9, schema_generation: 1 };
    let value = |slab| if slab == other { b"ore".repeat(99) } else { b"air".repeat(99) };
    let places = |slab| (0..3).map(move |place| slot(ClusterTier::L1, slab * 16 + place));
    slabs.into_iter().flat_map(|slab| places(slab).map(move |slot| (slot, (info, value(slab))))).collect()
}

#[test]
fn a_slab_is_the_seed_form_of_its_chunks_at_places_0_to_15() {
    let tier = ClusterTier::L1;
    let all = chunks(tier, [33, 34, 47]);
    let row = build(tier, Codec::None, &all);
    let places = all.iter().map(|(place, (_, value))| (slot(tier, place.index() - 32), &value[..]));
    assert!(row.ends_with(&ClusterView::encode(tier, places).unwrap()));
    let cluster = StoredCluster::open(tier, KEY, &row).unwrap();
    assert_eq!(cluster.groups().collect::<Vec<_>>(), [2]);
    let seed = ClusterView::encode(tier, all.iter().map(|(slot, (_, value))| (*slot, &value[..]))).unwrap();
    assert_eq!(cluster.to_seed_bytes(&mut Limits::default()), Ok(seed));
}

#[test]
fn a_column_of_chunks_is_in_one_slab() {
    let tier = ClusterTier::L1;
    let row = build(tier, Codec::Lz4, &chunks(tier, 0..64));
    let cluster = StoredCluster::open(tier, KEY, &row).unwrap();
    let position = crate::ClusterPos::new(tier, -1, 5, 2).unwrap();
    for slot in Slot::all(tier) {
        let chunk = slot.chunk(position).unwrap();
        assert_eq!(i64::from(cluster.group_of(slot)), chunk.x().rem_euclid(4), "{chunk}");
    }
    let group = cluster.group(3, &mut Limits::default()).unwrap().unwrap();
    assert_eq!(group.chunk(slot(tier, 47)), None, "in another group");
    assert_eq!(group.chunk(slot(ClusterTier::L2, 48)), None, "another tier");
    assert_eq!(
        group.chunks().map(|(slot, _)| slot.index()).collect::<Vec<_>>(),
        (48..64).collect::<Vec<_>>()
    );
}

#[test]
fn equal_slabs_are_stored_once_and_decompressed_once() {
    let tier = ClusterTier::L1;
    let all = alike(0..4, 2);
    for codec in Codec::ALL {
        let row = build(tier, codec, &all);
        assert_eq!(read_whole(tier, &row), all);
        let spans = trace(tier, KEY, &row).0;
        assert_eq!(spans.iter().filter(|span| span.section == Section::ClusterGroup).count(), 2, "{codec:?}");
    }
    let row = build(tier, Codec::Lz4, &all);
    let cluster = StoredCluster::open(tier, KEY, &row).unwrap();
    let mut last = LastGroup::default();
    let spent = [0, 1, 2, 3].map(|group| {
        let read = cluster.group_after(group, &mut Limits::default(), &mut last).unwrap().unwrap();
        read.decompressed_bytes() > 0
    });
    assert_eq!(spent, [true, false, true, true]);
}

#[test]
fn slabs_without_changes_are_copied_even_if_they_are_damaged() {
    let tier = ClusterTier::L1;
    let mut row = build(tier, Codec::Lz4, &chunks(tier, [0, 1, 63]));
    *row.last_mut().unwrap() ^= 1;
    let base = StoredCluster::open(tier, KEY, &row).unwrap();
    let (info, value) = chunk(slot(tier, 2));
    let merged = seal(ClusterBuilder::over(&base).put(slot(tier, 2), info, &value)).unwrap().unwrap();
    let (found, errors) = read(tier, &merged).unwrap();
    assert_eq!(found, chunks(tier, [0, 1, 2]));
    assert!(matches!(errors[..], [DecodeError { problem: Problem::Checksum { .. }, .. }]), "still noticed");
    let error = seal(ClusterBuilder::over(&base).put(slot(tier, 62), info, value)).unwrap_err();
    let is_checksum = |error: &DecodeError| matches!(error.problem, Problem::Checksum { .. });
    assert!(matches!(&error, AssembleError::Damaged(error) if is_checksum(error)), "{error}");
}

#[test]
fn a_merge_over_one_group_decompresses_it_once() {
    let tier = ClusterTier::L1;
    let row = in_one_group(Codec::Lz4, &chunks(tier, 0..64));
    let base = StoredCluster::open(tier, KEY, &row).unwrap();
    let raw_len_bytes = u64::from(base.entry(0).unwrap().raw_len_bytes);
    let mut limits = Limits::new(raw_len_bytes);
    ClusterBuilder::over(&base).finish(&mut limits).unwrap().unwrap();
    assert_eq!(limits.left_bytes(), 0);
}

#[test]
fn a_row_of_one_group_is_read_and_gets_slabs_when_it_is_written_again() {
    let tier = ClusterTier::L1;
    let all = chunks(tier, [0, 6, 17, 62, 63]);
    for codec in Codec::ALL {
        let old = in_one_group(codec, &all);
        assert_eq!(read_whole(tier, &old), all);
        let base = StoredCluster::open(tier, KEY, &old).unwrap();
        assert_eq!(base.groups().collect::<Vec<_>>(), [0]);
        assert!(Slot::all(tier).all(|slot| base.group_of(slot) == 0));
        assert!(seal(&ClusterBuilder::over(&base)).unwrap().unwrap() == build(tier, codec, &all));
    }
}

#[test]
fn damage_of_a_row_of_one_group_stops_a_merge_that_keeps_any_of_its_chunks() {
    let tier = ClusterTier::L1;
    let all = chunks(tier, [0, 63]);
    let mut row = in_one_group(Codec::Lz4, &all);
    *row.last_mut().unwrap() ^= 1;
    let base = StoredCluster::open(tier, KEY, &row).unwrap();
    let (info, value) = chunk(slot(tier, 1));
    let mut merge = ClusterBuilder::over(&base);
    let error = seal(merge.put(slot(tier, 0), info, &value)).unwrap_err();
    let is_checksum =
        |error: &DecodeError| matches!(error.problem, Problem::Checksum { .. }) && error.offset_bytes == 80;
    assert!(matches!(&error, AssembleError::Damaged(error) if is_checksum(error)), "{error}");
    let replaced = seal(merge.remove(slot(tier, 63))).unwrap().unwrap();
    assert_eq!(read_whole(tier, &replaced), Chunks::from([(slot(tier, 0), (info, value))]));
}

#[test]
fn equal_groups_of_a_warm_directory_name_the_same_bytes() {
    let tier = ClusterTier::L1;
    let row = build(tier, Codec::Lz4, &alike([0, 1, 3], 1));
    let check = |change: &dyn Fn(&mut Vec<u8>), expect: Expect| {
        let mut payload = row[LEN_BYTES..].to_vec();
        change(&mut payload);
        let draft = frame::Draft::cluster(Codec::Lz4, |out| {
            out.extend(&payload);
            8 + 4 * 24 + 9 * 12
        });
        let answer = read(tier, &draft.seal(Space::ClusterL1, KEY, 7));
        expect.assert_eq(&answer.map_or_else(
            |error| error.to_string(),
            |(chunks, errors)| format!("{} chunks, {} errors", chunks.len(), errors.len()),
        ));
    };
    let fourth = 8 + 3 * 24;
    check(&|_| (), expect!["9 chunks, 0 errors"]);
    check(
        &|payload| payload[fourth] = 0b1011,
        expect!["cluster directory: group offset is 0, but the rest of the value implies 86 (at byte 112)"],
    );
    check(
        &|payload| payload[fourth + 8] ^= 1,
        expect!["cluster directory: group offset is 1, but the rest of the value implies 86 (at byte 112)"],
    );
    check(
        &|payload| payload[fourth + 20] ^= 1,
        expect!["cluster directory: group offset is 0, but the rest of the value implies 86 (at byte 112)"],
    );
}

#[test]
fn a_cold_directory_has_no_slabs() {
    let row = build(ClusterTier::L2, Codec::None, &chunks(ClusterTier::L2, [0, 4095]));
    let mut payload = row[LEN_BYTES..].to_vec();
    payload[0] = 3;
    let draft = frame::Draft::cluster(Codec::None, |out| {
        out.extend(&payload);
        20 + u32::from_le_bytes(payload[8..12].try_into().unwrap()) as usize
    });
    let error = StoredCluster::open(ClusterTier::L2, KEY, &draft.seal(Space::ClusterL2, KEY, 7)).unwrap_err();
    expect!["cluster directory: directory version is 3, allowed is 1, 2, 4 or 5 in L2 (at byte 24)"]
        .assert_eq(&error.to_string());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_merge_over_one_group_is_what_building_anew_gives(
        old in some_chunks(ClusterTier::L1, 3), new in some_chunks(ClusterTier::L1, 9),
        gone: Vec<prop::sample::Index>, codec in any_codec(), new_codec in any_codec(),
    ) {
        let tier = ClusterTier::L1;
        let row = in_one_group(codec, &old);
        prop_assert_eq!(read_whole(tier, &row), old.clone());
        let base = StoredCluster::open(tier, KEY, &row).unwrap();
        let (builder, expected) = merge_over(&base, &old, &new, &gone, new_codec);
        prop_assert!(seal(&builder).unwrap().unwrap() == build(tier, new_codec, &expected));
    }
}
