//! Laws for any bytes that are taken for an object: what decodes encodes to the same, and a dump explains every byte of
//! it.

use cg_format::object::ObjectView;

/// Decodes bytes and says whether they are an object.
///
/// # Panics
/// If a law is broken.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let (spans, traced) = ObjectView::trace(bytes);
    let decoded = ObjectView::decode(bytes);
    assert_eq!(decoded.map(drop), traced);
    let Ok(object) = decoded else { return false };
    let mut again = Vec::new();
    object.encode(&mut again);
    assert_eq!(again, bytes);
    let explained: u64 = spans.iter().map(|span| span.len_bytes).sum();
    assert_eq!(explained, bytes.len() as u64);
    true
}
