//! Laws for any bytes that are taken for a row of an overlay or for an arena: what decodes encodes to the same, and
//! every byte of it is explained.

use cg_format::overlay::{ArenaRow, OverlayRow, OverlayValue};
use cg_format::wire::Span;

/// Decodes bytes and says whether they are a row of an overlay or an arena; the first byte says which is meant.
///
/// # Panics
/// If a law is broken.
pub(crate) fn check(bytes: &[u8]) -> bool {
    match bytes.split_first() {
        Some((0, bytes)) => row(bytes),
        Some((1, bytes)) => arena(bytes),
        _ => false,
    }
}

fn row(bytes: &[u8]) -> bool {
    let (spans, traced) = OverlayRow::trace(bytes);
    let decoded = OverlayRow::decode(bytes);
    assert_eq!(decoded.map(drop), traced);
    let Ok(row) = decoded else { return false };
    let mut again = Vec::new();
    let write = |value| move |out: &mut Vec<u8>| out.extend_from_slice(value);
    let value = match row.value {
        OverlayValue::Deleted => OverlayValue::Deleted,
        OverlayValue::Here(value) => OverlayValue::Here(write(value)),
        OverlayValue::Changed(value) => OverlayValue::Changed(write(value)),
    };
    OverlayRow::encode(row.origin, value, &mut again);
    if bytes.first() == Some(&1) {
        // A row of the draft before has no opening.
        again.drain(11..19);
        again[0] = 1;
    }
    explained(bytes, &again, &spans)
}

fn arena(bytes: &[u8]) -> bool {
    let (spans, traced) = ArenaRow::trace(bytes);
    let decoded = ArenaRow::decode(bytes);
    assert_eq!(decoded.as_ref().map(drop), traced.as_ref().map(drop));
    let Ok(arena) = decoded else { return false };
    let mut again = Vec::new();
    arena.encode(&mut again);
    explained(bytes, &again, &spans)
}

fn explained(bytes: &[u8], again: &[u8], spans: &[Span]) -> bool {
    assert_eq!(again, bytes);
    let explained: u64 = spans.iter().map(|span| span.len_bytes).sum();
    assert_eq!(explained, bytes.len() as u64);
    true
}
