//! Frames against the naive ones.

use cg_format::frame::{Codec, Draft, FrameKind, FrameView, Version};
use cg_format::{Limits, Space};
use proptest::prelude::*;

use crate::naive::frame::{self, Frame};
use crate::naive::{hex, lz4, put};

fn space() -> impl Strategy<Value = Space> {
    prop::sample::select(Space::ALL.to_vec())
}

/// Bytes that compress, and bytes that do not.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![prop::collection::vec(0_u8..3, 0..400), prop::collection::vec(any::<u8>(), 0..60)]
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..40)
}

/// Opens a row with our reader, and returns it in the naive form.
fn opened(space: Space, key: &[u8], row: &[u8]) -> Option<Frame> {
    let view = FrameView::open(space, key, row).ok()?;
    let header = view.header();
    Some(Frame {
        kind: header.kind.byte(),
        codec: header.codec.byte(),
        version: header.version,
        schema_generation: header.schema_generation,
        lineage: header.lineage,
        payload: view.payload().to_vec(),
    })
}

proptest! {
    #[test]
    fn the_same_frame_gives_the_same_bytes(
        space in space(), key in key(), payload in payload(), version: u64, schema_generation: u32, lineage: u32,
    ) {
        let draft = Draft::plain(Codec::None, schema_generation, |out| out.extend(&payload));
        let sealed_at = Version { commit: version, lineage };
        let ours = draft.seal(space, &key, sealed_at);
        let naive = Frame { kind: FrameKind::Plain.byte(), codec: 0, version, schema_generation, lineage, payload };
        let row = frame::encode(&naive, naive.payload.len(), space.byte(), &key);
        prop_assert_eq!(hex(&ours), hex(&row));
        prop_assert_eq!(opened(space, &key, &row), Some(naive));

        let ours = Draft::tombstone(schema_generation).seal(space, &key, sealed_at);
        let naive = Frame { kind: FrameKind::Tombstone.byte(), codec: 0, version, schema_generation, lineage, payload: vec![] };
        prop_assert_eq!(hex(&ours), hex(&frame::encode(&naive, 0, space.byte(), &key)));
    }

    #[test]
    fn compressed_payloads_are_read_by_the_other(space in space(), key in key(), payload in payload()) {
        let ours = Draft::plain(Codec::Lz4, 1, |out| out.extend(&payload)).seal(space, &key, 2);
        let found = frame::decode(&ours, ours.len() - 24, space.byte(), &key).and_then(|row| frame::raw_payload(&row));
        prop_assert_eq!(found, Ok(payload.clone()));

        let mut block = Vec::new();
        put(&mut block, payload.len() as u64, 4);
        block.extend(lz4(&payload));
        let naive = Frame { kind: 1, codec: 1, version: 2, schema_generation: 1, lineage: 0, payload: block };
        let row = frame::encode(&naive, naive.payload.len(), space.byte(), &key);
        let view = FrameView::open(space, &key, &row).expect("a right frame");
        prop_assert_eq!(view.raw_payload(&mut Limits::default()).expect("a right block").to_vec(), payload);
    }

    /// Rows with a right checksum and any header: kinds and codecs that do not exist, fields that must be zero.
    #[test]
    fn sealed_lies_are_judged_alike(
        space in space(), key in key(), payload in payload(),
        kind in prop::sample::select(vec![0_u8, 1, 4, 5, 255]), codec in 0_u8..5,
        frame_version in 0_u8..3, zero in 0_u8..2, lineage in 0_u32..2, flip: Option<(prop::sample::Index, u8)>,
    ) {
        let naive = Frame { kind, codec, version: 77, schema_generation: 3, lineage, payload };
        let mut row = frame::encode(&naive, naive.payload.len(), space.byte(), &key);
        row[0] = frame_version;
        row[3] = zero;
        frame::reseal(&mut row, naive.payload.len(), space.byte(), &key);
        if let Some((at, mask)) = flip {
            let at = at.index(row.len());
            row[at] ^= mask;
        }
        let expected = frame::decode(&row, naive.payload.len(), space.byte(), &key).ok();
        prop_assert_eq!(opened(space, &key, &row), expected, "\n{}", hex(&row));
    }
}

/// Rows as random ones seldom are: compressed, with a right checksum, and too short for the length in front.
#[test]
fn a_length_that_is_cut_off_is_refused_by_both() {
    for (kind, codec, len_bytes) in [1, 4].into_iter().flat_map(|kind| {
        [0, 1, 2].into_iter().flat_map(move |codec| (0..6).map(move |len_bytes| (kind, codec, len_bytes)))
    }) {
        let naive =
            Frame { kind, codec, version: 7, schema_generation: 0, lineage: 0, payload: vec![0; len_bytes] };
        let (space, key) = (Space::WorldMeta, [0]);
        let row = frame::encode(&naive, len_bytes, space.byte(), &key);
        let expected = (codec == 0 || len_bytes >= 4).then_some(naive);
        assert_eq!(frame::decode(&row, len_bytes, space.byte(), &key).ok(), expected, "{kind} {codec}");
        assert_eq!(opened(space, &key, &row), expected, "{kind} {codec} {len_bytes}");
    }
}
