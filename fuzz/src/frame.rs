//! Laws for any bytes that are taken for a row: as they are, and with the checksum that they would need to be taken for
//! whole.

use cg_format::frame::{
    Codec, Draft, FrameHeader, FrameKind, FrameView, LEN_BYTES, Version, trace, version_of,
};
use cg_format::{Limits, Space};

const KEY: &[u8] = b"key";
const SPACE: Space = Space::Object;

/// Opens bytes both ways and says whether one of them is a row.
///
/// # Panics
/// If a law is broken.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let opens = open(bytes);
    let mut whole = bytes.to_vec();
    let Some((header, payload)) = whole.split_first_chunk_mut::<LEN_BYTES>() else { return opens };
    header[4..8].fill(0);
    let sum = crc32c::crc32c_append(crc32c::crc32c(payload), &[SPACE.byte()]);
    let sum = crc32c::crc32c_append(crc32c::crc32c_append(sum, KEY), header);
    header[4..8].copy_from_slice(&sum.to_le_bytes());
    open(&whole) || opens
}

fn open(bytes: &[u8]) -> bool {
    let opened = FrameView::open(SPACE, KEY, bytes);
    let (spans, answer) = trace(SPACE, KEY, bytes);
    assert_eq!(answer, opened.map(|frame| frame.header()));
    assert!(spans.is_sorted_by_key(|span| span.offset_bytes));
    let Ok(frame) = opened else { return false };
    let FrameHeader { kind, version, schema_generation, lineage, .. } = frame.header();
    assert_eq!(version_of(bytes), Some(version));
    let Ok(raw) = frame.raw_payload(&mut Limits::new(1 << 20)) else { return true };
    let write = |out: &mut Vec<u8>| out.extend_from_slice(&raw);
    let again = match kind {
        FrameKind::Plain => Draft::plain(Codec::None, schema_generation, write),
        FrameKind::Deltas => Draft::deltas(Codec::None, schema_generation, write),
        FrameKind::Tombstone => Draft::tombstone(schema_generation),
        FrameKind::Cluster => return true,
    };
    let again = again.seal(SPACE, KEY, Version { commit: version, lineage });
    let reread = FrameView::open(SPACE, KEY, &again).expect("what is written is read");
    assert_eq!(reread.payload(), &*raw);
    assert!(frame.header().codec != Codec::None || again == bytes, "one frame for one value");
    true
}
