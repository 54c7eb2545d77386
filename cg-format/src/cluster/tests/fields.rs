//! Groups by field: the same chunks come back byte for byte, and any other bytes are refused.

use super::super::fields::{Fields, encode, trace as trace_fields};
use super::layout::{annotated, explained};
use super::*;
use crate::BlockId;
use crate::chunk::Header;
use crate::codec::{Effort, compress};
use crate::wire::{Reader, Writer};

/// The bytes of a chunk with any palette, block ids and rest; only the header fits the layout.
fn any_chunk() -> impl Strategy<Value = Vec<u8>> {
    let kinds = prop_oneof![Just(1_u64), 2..20_u64, 2..300_u64, Just(4097)];
    let rest = prop::collection::vec(any::<u8>(), 0..40);
    (kinds, 0..3_u64, 0..9_u64, rest, any::<u64>()).prop_map(|(kinds, layered, components, rest, seed)| {
        chunk_bytes(kinds, layered.max(kinds.saturating_sub(4096)), components, seed, &rest)
    })
}

fn chunk_bytes(kinds: u64, layered: u64, components: u64, seed: u64, rest: &[u8]) -> Vec<u8> {
    let header = Header::of_counts(kinds, layered, components).unwrap();
    let mut out = Vec::new();
    header.write(&mut Writer::new(&mut out));
    let noise = (0..).scan(seed, |state, _: u64| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some((*state >> 56) as u8)
    });
    out.extend(noise.take(8 * kinds as usize + header.blocks_len_bytes()));
    out.extend_from_slice(rest);
    out
}

/// A group of chunks at the first places, by field.
fn group(chunks: &[Vec<u8>]) -> Vec<u8> {
    let presence = u64::MAX >> (64 - chunks.len());
    encode(presence, &chunks.iter().map(Vec::as_slice).collect::<Vec<_>>()).expect("all are chunks")
}

fn parse(bytes: &[u8]) -> Result<Fields, DecodeError> {
    Fields::parse(&mut Reader::new(bytes, Section::ClusterFields))
}

fn small_group() -> Vec<u8> {
    group(&[
        chunk_bytes(1, 0, 0, 7, b"one"),
        chunk_bytes(3, 1, 2, 8, b"another"),
        chunk_bytes(257, 0, 0, 9, b""),
    ])
}

#[test]
fn a_group_by_field_is_pinned() {
    let bytes = small_group();
    let (spans, answer) = trace_group(&bytes);
    assert_eq!(answer, Ok(()));
    explained(&spans, bytes.len());
    insta::assert_snapshot!(annotated(&bytes, &spans));
}

#[test]
fn what_is_no_chunk_keeps_the_seed_form() {
    let chunk = chunk_bytes(3, 0, 0, 1, b"");
    assert!(encode(1, &[&chunk]).is_some());
    assert_eq!(encode(1, &[&chunk[..chunk.len() - 1]]), None, "cut off");
    assert_eq!(encode(3, &[&chunk, b"something else"]), None);
    let mut newer = chunk.clone();
    newer[0] = 2;
    assert_eq!(encode(1, &[&newer]), None, "another layout");
    let mut other = chunk;
    other[8] ^= 1;
    assert_eq!(encode(1, &[&other]), None, "an offset that does not follow from the counts");
}

#[track_caller]
fn check(change: impl FnOnce(&mut Vec<u8>), expect: Expect) {
    let mut bytes = small_group();
    change(&mut bytes);
    let answer = parse(&bytes);
    assert_eq!(trace_fields(&bytes).1, answer.clone().map(drop));
    expect.assert_eq(&answer.map_or_else(|error| error.to_string(), |_| "read".to_string()));
}

#[test]
fn every_field_is_checked() {
    let set = |at: usize, value: u32| {
        move |bytes: &mut Vec<u8>| bytes[at..at + 4].copy_from_slice(&value.to_le_bytes())
    };
    check(|_| (), expect!["read"]);
    check(
        set(0, 3),
        expect![
            "cluster group by field: format version is 3, and this release reads up to 2; use a newer release (at byte 0)"
        ],
    );
    check(set(0, 1), expect!["cluster group by field: format version is 1, allowed is 2 (at byte 0)"]);
    check(
        set(8, 0),
        expect!["cluster group by field: presence is 0, allowed is at least one present chunk (at byte 8)"],
    );
    check(
        set(8, 3),
        expect![
            "cluster group by field: bytes after the rests must be zero or absent, found 10272 (at byte 1106)"
        ],
    );
    check(
        set(16, 0),
        expect![
            "cluster group by field: palette count is 0, allowed is 1 to 4096 + layered block count (at byte 16)"
        ],
    );
    check(
        set(20, 4098),
        expect![
            "cluster group by field: palette count is 4098, allowed is 1 to 4096 + layered block count (at byte 20)"
        ],
    );
    check(
        set(20, u32::MAX),
        expect![
            "cluster group by field: palette count is 4294967295, allowed is 1 to 4096 + layered block count (at byte 20)"
        ],
    );
    check(
        set(32, 1_044_481),
        expect![
            "cluster group by field: layered block count is 1044481, allowed is at most 1044480 (at byte 32)"
        ],
    );
    check(
        set(28, u32::MAX),
        expect![
            "cluster group by field: layered block count is 4294967295, allowed is at most 1044480 (at byte 28)"
        ],
    );
    check(
        set(52, 4),
        expect!["cluster group by field: 11 rests of 1 bytes exceed the 10 bytes left (at byte 11368)"],
    );
    check(
        set(52, 2),
        expect![
            "cluster group by field: bytes after the rests must be zero or absent, found 1 (at byte 11377)"
        ],
    );
    check(
        set(16, 2),
        expect!["cluster group by field: block ids needs 8192 bytes and 7682 are left (at byte 3696)"],
    );
    check(
        set(20, 8),
        expect![
            "cluster group by field: block ids is 15, allowed is a local id of the width that follows from the palette (at byte 2193)"
        ],
    );
    check(
        |bytes| bytes[64 + 8 * 261 + 1024 + 1] = 2,
        expect![
            "cluster group by field: block ids is 706, allowed is a local id of the width that follows from the palette (at byte 3176)"
        ],
    );
    check(
        |bytes| bytes.truncate(30),
        expect![
            "cluster group by field: 3 layered block counts of 4 bytes exceed the 2 bytes left (at byte 28)"
        ],
    );
}

/// A cold row of one group with these chunks, each at its own place.
fn cold_row(codec: Codec, chunks: &[Vec<u8>]) -> (Chunks, Vec<u8>) {
    let tier = ClusterTier::L2;
    let places = (0..).filter_map(|place| Slot::in_cube_of(tier, 9, place));
    let info = SlotInfo { version: 3, schema_generation: 1 };
    let held: Chunks = places.zip(chunks).map(|(slot, value)| (slot, (info, value.clone()))).collect();
    let row = build(tier, codec, &held);
    (held, row)
}

fn raw_group(row: &[u8]) -> Vec<u8> {
    let cluster = StoredCluster::open(ClusterTier::L2, KEY, row).unwrap();
    cluster.group(18, &mut Limits::default()).unwrap().unwrap().bytes().to_vec()
}

#[test]
fn cold_groups_of_chunks_are_by_field_and_others_are_not() {
    let chunks = [filled(1), filled(2), mixed()];
    let (held, row) = cold_row(Codec::Zstd, &chunks);
    assert!(raw_group(&row) == group(&chunks), "by field");
    assert_eq!(read_whole(ClusterTier::L2, &row), held);
    for codec in [Codec::None, Codec::Lz4] {
        let (held, other) = cold_row(codec, &chunks);
        assert_eq!(raw_group(&other)[0], 1, "the seed form");
        assert_eq!(read_whole(ClusterTier::L2, &other), held);
        // To another codec and back.
        let base = StoredCluster::open(ClusterTier::L2, KEY, &row).unwrap();
        assert!(seal(ClusterBuilder::over(&base).set_codec(codec)).unwrap().unwrap() == other);
        let base = StoredCluster::open(ClusterTier::L2, KEY, &other).unwrap();
        assert!(seal(ClusterBuilder::over(&base).set_codec(Codec::Zstd)).unwrap().unwrap() == row);
    }
    for others in [vec![filled(1), mixed(), b"not a chunk".to_vec()], vec![filled(1), filled(2)]] {
        let (held, row) = cold_row(Codec::Zstd, &others);
        assert_eq!(raw_group(&row)[0], 1, "the seed form");
        assert_eq!(read_whole(ClusterTier::L2, &row), held);
    }
}

#[test]
fn only_compressed_groups_of_cold_rows_may_be_by_field() {
    let (_, row) = cold_row(Codec::Lz4, &[filled(1), mixed()]);
    let by_field = group(&[filled(1), mixed()]);
    let resealed = replace_group_and_length(&row, 18, |_| {
        let mut stored = Vec::new();
        compress(Codec::Lz4, Effort::Fast, &by_field, &mut stored);
        (stored, by_field.len())
    });
    let error = read(ClusterTier::L2, &resealed).unwrap().1.remove(0);
    expect![
        "cluster header: format version is 2, and this release reads up to 1; use a newer release (at byte 0)"
    ]
    .assert_eq(&error.to_string());
    let (_, row) = cold_row(Codec::Zstd, &[filled(1), mixed()]);
    let resealed = replace_group_and_length(&row, 18, |raw| (raw.to_vec(), raw.len()));
    let error = read(ClusterTier::L2, &resealed).unwrap().1.remove(0);
    expect![
        "cluster header: format version is 2, and this release reads up to 1; use a newer release (at byte 0)"
    ]
    .assert_eq(&error.to_string());
}

#[test]
fn the_same_bytes_in_a_row_of_another_tier_are_read_anew() {
    let chunks = [filled(1), mixed()];
    let (held, cold) = cold_row(Codec::Zstd, &chunks);
    let by_field = raw_group(&cold);
    let base = StoredCluster::open(ClusterTier::L2, KEY, &cold).unwrap();
    let stored = base.stored(&base.entry(18).unwrap()).unwrap().to_vec();
    let warm: Chunks =
        held.values().zip(0..).map(|(chunk, place)| (slot(ClusterTier::L1, place), chunk.clone())).collect();
    let warm = build(ClusterTier::L1, Codec::Zstd, &warm);
    let warm = replace_group_and_length(&warm, 0, |_| (stored, by_field.len()));
    let warm = StoredCluster::open(ClusterTier::L1, KEY, &warm).unwrap();
    let mut last = LastGroup::default();
    for _ in 0..2 {
        let error = warm.group_after(0, &mut Limits::default(), &mut last).unwrap_err();
        assert_eq!(Err(error), warm.group(0, &mut Limits::default()));
        let group = base.group_after(18, &mut Limits::default(), &mut last).unwrap().unwrap();
        assert!(group.chunks().map(|(_, value)| value.into_owned()).eq(chunks.iter().cloned()));
    }
}

#[test]
fn a_seed_form_of_a_group_by_field_is_charged_before_it_is_made() {
    let (_, row) = cold_row(Codec::Zstd, &[filled(1), mixed()]);
    let cluster = StoredCluster::open(ClusterTier::L2, KEY, &row).unwrap();
    let seed_len_bytes = cluster.to_seed_bytes(&mut Limits::default()).unwrap().len() as u64;
    let needed = raw_group(&row).len() as u64 + seed_len_bytes;
    assert!(cluster.to_seed_bytes(&mut Limits::new(needed)).is_ok());
    let error = cluster.to_seed_bytes(&mut Limits::new(needed - 1)).unwrap_err();
    let (field, left) = ("seed form", seed_len_bytes - 1);
    assert_eq!(error.problem, Problem::LimitExceeded { field, needed: seed_len_bytes, left });
}

fn filled(block: u64) -> Vec<u8> {
    crate::Chunk::filled(BlockId::new(block), &crate::schema::NoComponents).unwrap().to_bytes()
}

/// A chunk in layers.
fn mixed() -> Vec<u8> {
    let mut chunk = crate::Chunk::filled(BlockId::new(1), &crate::schema::NoComponents).unwrap();
    for cell in crate::LocalPos::all() {
        let kind = BlockId::new(1 + u64::from(cell.y() / 3));
        chunk.set_block(cell, kind, &crate::schema::NoComponents).unwrap();
    }
    chunk.to_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn chunks_come_back_byte_for_byte(chunks in prop::collection::vec(any_chunk(), 1..6), gaps in any::<u64>()) {
        // The chunks at the set bits, as far as there are both.
        let places: Vec<u8> = (0..64).filter(|place| gaps >> place & 1 == 1).take(chunks.len()).collect();
        prop_assume!(!places.is_empty());
        let presence = places.iter().fold(0_u64, |all, place| all | 1 << place);
        let values: Vec<_> = chunks.iter().take(places.len()).map(Vec::as_slice).collect();
        let bytes = encode(presence, &values).unwrap();
        let fields = parse(&bytes).unwrap();
        prop_assert_eq!(fields.presence, presence);
        for place in 0..64 {
            let expected = places.iter().position(|held| *held == place).map(|index| values[index].to_vec());
            prop_assert!(fields.chunk(&bytes, place) == expected, "place {}", place);
        }
        let (spans, answer) = trace_fields(&bytes);
        prop_assert_eq!(answer, Ok(()));
        explained(&spans, bytes.len());
    }

    #[test]
    fn changed_bytes_are_refused_or_are_what_is_written(
        chunks in prop::collection::vec(any_chunk(), 1..4), at: prop::sample::Index, early in 0..80_usize,
        flip in 1_u8.., cut: prop::sample::Index,
    ) {
        let bytes = group(&chunks);
        prop_assert!(parse(&bytes[..cut.index(bytes.len())]).is_err());
        for at in [at.index(bytes.len()), early.min(bytes.len() - 1)] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            let Ok(fields) = parse(&changed) else { continue };
            let values: Vec<_> = (0..64).filter_map(|place| fields.chunk(&changed, place)).collect();
            let values: Vec<_> = values.iter().map(Vec::as_slice).collect();
            prop_assert!(encode(fields.presence, &values).as_ref() == Some(&changed), "byte {}", at);
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_group_by_field_or_an_error(
        rest in prop::collection::vec(any::<u8>(), 0..300), presence in prop_oneof![1..8_u64, any::<u64>()],
        counts in prop::collection::vec(prop_oneof![0..4_u32, any::<u32>()], 0..12),
    ) {
        let counts = counts.into_iter().flat_map(u32::to_le_bytes);
        let bytes: Vec<u8> = [2, presence].into_iter().flat_map(u64::to_le_bytes).chain(counts).chain(rest).collect();
        if let Ok(fields) = parse(&bytes) {
            let values: Vec<_> = (0..64).filter_map(|place| fields.chunk(&bytes, place)).collect();
            let values: Vec<_> = values.iter().map(Vec::as_slice).collect();
            prop_assert!(encode(fields.presence, &values).as_ref() == Some(&bytes));
        }
    }
}
