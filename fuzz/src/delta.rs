//! Laws for any bytes that are taken for a delta: what decodes encodes to the same, and a dump explains every byte of
//! it.

use cg_format::delta::Delta;

/// Decodes bytes and says whether they are a delta.
///
/// # Panics
/// If a law is broken.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let (spans, traced) = Delta::trace(bytes);
    let decoded = Delta::decode(bytes);
    assert_eq!(decoded, traced);
    let Ok(delta) = decoded else { return false };
    let mut again = Vec::new();
    delta.encode(&mut again);
    assert_eq!(again, bytes);
    let explained: u64 = spans.iter().map(|span| span.len_bytes).sum();
    assert_eq!(explained, bytes.len() as u64);
    true
}
