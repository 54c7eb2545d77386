//! Frames: refused input, and that the checksum covers payload, place and header.

use super::*;
use expect_test::{Expect, expect};
use proptest::prelude::*;
use std::string::ToString;
use std::vec;

const KEY: &[u8] = b"some key";

fn row(codec: Codec, payload: &[u8]) -> Vec<u8> {
    Draft::plain(codec, 3, |out| out.extend_from_slice(payload)).seal(Space::ChunkL0, KEY, 42)
}

/// Changes a row's header and corrects its checksum.
fn resealed(mut bytes: Vec<u8>, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    change(&mut bytes);
    let (header, payload) = bytes.split_at_mut(LEN_BYTES);
    header[4..8].fill(0);
    let sum = crc32c::crc32c_append(crc32c::crc32c(payload), &[Space::ChunkL0.byte()]);
    let sum = crc32c::crc32c_append(crc32c::crc32c_append(sum, KEY), header);
    header[4..8].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[track_caller]
fn check(bytes: &[u8], expect: Expect) {
    let answer = FrameView::open(Space::ChunkL0, KEY, bytes)
        .and_then(|frame| frame.raw_payload(&mut Limits::new(1000)).map(|raw| (frame.header, raw.len())));
    expect.assert_eq(&answer.map_or_else(|error| error.to_string(), |value| std::format!("{value:?}")));
}

#[test]
fn a_frame_comes_back() {
    for codec in Codec::ALL {
        let payload = [7; 500];
        let bytes = row(codec, &payload);
        let frame = FrameView::open(Space::ChunkL0, KEY, &bytes).unwrap();
        assert_eq!(
            frame.header(),
            FrameHeader { kind: FrameKind::Plain, codec, version: 42, schema_generation: 3, lineage: 0 }
        );
        assert_eq!(*frame.raw_payload(&mut Limits::new(500)).unwrap(), payload);
        assert_eq!(version_of(&bytes), Some(42));
    }
    assert_eq!(version_of(&[0; 15]), None);
}

#[test]
fn a_row_that_is_sealed_again_is_the_same() {
    let deltas = Draft::deltas(Codec::None, 5, |out| out.extend(b"deltas"));
    let rows = Codec::ALL.map(|codec| row(codec, &[7; 500]));
    let version = Version { commit: 43, lineage: 7 };
    let others = [deltas, Draft::tombstone(4)].map(|draft| draft.seal(Space::ChunkL0, KEY, version));
    for bytes in rows.into_iter().chain(others) {
        let (draft, version) = Draft::of_row(Space::ChunkL0, KEY, &bytes).unwrap();
        assert_eq!(draft.clone().seal(Space::ChunkL0, KEY, version), bytes);
        let [mut later, mut other] = [version; 2];
        (later.commit, other.lineage) = (version.commit + 1, version.lineage + 1);
        assert_ne!(draft.clone().seal(Space::ChunkL0, KEY, later), bytes);
        assert_ne!(draft.seal(Space::ChunkL0, KEY, other), bytes);
        assert!(Draft::of_row(Space::ChunkL0, b"another key", &bytes).is_err());
    }
}

#[test]
fn what_does_not_shrink_is_stored_as_it_is() {
    for codec in Codec::ALL {
        let draft = Draft::plain(codec, 0, |out| out.extend(b"abcdefgh"));
        assert_eq!((draft.codec(), draft.payload(), draft.len_bytes()), (Codec::None, &b"abcdefgh"[..], 32));
    }
}

#[test]
fn a_tombstone_is_a_bare_header() {
    let bytes = Draft::tombstone(9).seal(Space::ChunkL0, KEY, 7);
    assert_eq!(bytes.len(), LEN_BYTES);
    check(
        &bytes,
        expect![
            "(FrameHeader { kind: Tombstone, codec: None, version: 7, schema_generation: 9, lineage: 0 }, 0)"
        ],
    );
    check(
        &resealed(bytes.iter().copied().chain([1]).collect(), |_| ()),
        expect!["frame: bytes after a tombstone must be zero or absent, found 1 (at byte 24)"],
    );
    check(
        &resealed(bytes, |header| header[2] = 1),
        expect!["frame: codec is 1, allowed is 0 for a tombstone (at byte 2)"],
    );
}

#[test]
fn deltas_are_their_own_kind() {
    let bytes = Draft::deltas(Codec::None, 2, |out| out.push(1)).seal(Space::ChunkL0, KEY, 8);
    check(
        &bytes,
        expect![
            "(FrameHeader { kind: Deltas, codec: None, version: 8, schema_generation: 2, lineage: 0 }, 1)"
        ],
    );
}

#[test]
fn each_field_is_checked_even_under_a_right_checksum() {
    let good = row(Codec::None, b"payload");
    check(
        &resealed(good.clone(), |_| ()),
        expect![
            "(FrameHeader { kind: Plain, codec: None, version: 42, schema_generation: 3, lineage: 0 }, 7)"
        ],
    );
    for (at, value, expect) in [
        (0, 0, expect!["frame: frame version is 0, allowed is 1 and up (at byte 0)"]),
        (
            0,
            2,
            expect![
                "frame: frame version is 2, and this release reads up to 1; use a newer release (at byte 0)"
            ],
        ),
        (1, 0, expect!["frame: kind is 0, allowed is 1 to 4 (at byte 1)"]),
        (1, 5, expect!["frame: kind is 5, allowed is 1 to 4 (at byte 1)"]),
        (2, 3, expect!["frame: codec is 3, allowed is 0, 1 or 2 (at byte 2)"]),
        (
            2,
            2,
            expect!["frame: raw length needs 1819894128 bytes of memory, the limit leaves 1000 (at byte 24)"],
        ),
        (3, 1, expect!["frame: reserved byte must be zero or absent, found 1 (at byte 3)"]),
    ] {
        check(&resealed(good.clone(), |header| header[at] = value), expect);
    }
    check(&[], expect!["frame: frame version needs 1 bytes and 0 are left (at byte 0)"]);
    check(&good[..23], expect!["frame: lineage needs 4 bytes and 3 are left (at byte 20)"]);
}

#[test]
fn a_cluster_frame_has_no_generation_of_its_own() {
    let mut bytes = row(Codec::None, b"payload");
    bytes[1] = FrameKind::Cluster.byte();
    check(&bytes, expect!["frame: schema generation must be zero or absent, found 3 (at byte 16)"]);
}

#[test]
fn a_row_in_another_place_is_damaged() {
    let bytes = row(Codec::None, b"payload");
    for (space, key) in [(Space::ClusterL1, KEY), (Space::ChunkL0, &b"some kez"[..]), (Space::ChunkL0, b"")] {
        let error = FrameView::open(space, key, &bytes).unwrap_err();
        assert!(matches!(error.problem, Problem::Checksum { .. }), "{error}");
    }
}

#[test]
fn a_raw_length_is_spent_before_it_is_allocated() {
    let bytes = row(Codec::Lz4, &[7; 500]);
    let huge = resealed(bytes, |bytes| bytes[24..28].copy_from_slice(&u32::MAX.to_le_bytes()));
    check(
        &huge,
        expect!["frame: raw length needs 4294967295 bytes of memory, the limit leaves 1000 (at byte 24)"],
    );
    let short = resealed(row(Codec::None, b"abc"), |header| header[2] = 1);
    check(&short, expect!["frame: raw length needs 4 bytes and 3 are left (at byte 24)"]);
}

#[test]
fn the_header_is_pinned() {
    let bytes = row(Codec::None, b"hi");
    let hex: std::string::String = bytes.iter().map(|byte| std::format!("{byte:02x} ")).collect();
    expect!["01 01 00 00 1d 58 00 de 2a 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00 68 69"]
        .assert_eq(hex.trim_end());
}

#[test]
fn the_trace_names_every_byte_once() {
    for codec in [Codec::None, Codec::Zstd] {
        let bytes = row(codec, &[1; 300]);
        let (spans, answer) = trace(Space::ChunkL0, KEY, &bytes);
        assert_eq!(answer.map(|header| header.version), Ok(42));
        let mut end = 0;
        for span in &spans {
            assert_eq!(span.offset_bytes, end, "{span:?}");
            end += span.len_bytes;
        }
        assert_eq!(end, bytes.len() as u64);
    }
    let (spans, answer) = trace(Space::ChunkL0, KEY, &[1, 1, 9]);
    assert_eq!(spans.len(), 3);
    assert!(answer.is_err());
}

#[test]
fn stamps_say_the_version() {
    assert_eq!([Stamp::Commit, Stamp::Keep(3)].map(|stamp| stamp.version(10)), [10, 3]);
}

proptest! {
    #[test]
    fn every_flip_of_every_bit_is_noticed(payload in prop::collection::vec(any::<u8>(), 0..100), codec in 0_u8..3) {
        let bytes = row(Codec::from_byte(codec).unwrap(), &payload);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(FrameView::open(Space::ChunkL0, KEY, &damaged).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn every_truncation_and_every_tail_is_noticed(payload in prop::collection::vec(any::<u8>(), 0..100), tail in 1_usize..9) {
        let mut bytes = row(Codec::None, &payload);
        for end in 0..bytes.len() {
            prop_assert!(FrameView::open(Space::ChunkL0, KEY, &bytes[..end]).is_err(), "cut at {end}");
        }
        bytes.extend(vec![0; tail]);
        prop_assert!(FrameView::open(Space::ChunkL0, KEY, &bytes).is_err());
    }

    #[test]
    fn any_bytes_give_a_value_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let resealed = if bytes.len() >= LEN_BYTES { resealed(bytes, |header| header[0] = 1) } else { bytes };
        if let Ok(frame) = FrameView::open(Space::ChunkL0, KEY, &resealed) {
            let _ = frame.raw_payload(&mut Limits::new(1 << 16));
        }
    }
}
