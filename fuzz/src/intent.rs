//! Laws for any bytes that are taken for an intent or for a part of what one rolls forward: what decodes encodes to the
//! same, and a dump explains every byte of it.

use cg_format::staged::{Intent, PartWriter, StagedOps};
use cg_format::wire::Span;

/// Decodes bytes and says whether they are either.
///
/// # Panics
/// If a law is broken.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let is_intent = intent(bytes);
    part(bytes) || is_intent
}

fn intent(bytes: &[u8]) -> bool {
    let (spans, traced) = Intent::trace(bytes);
    let decoded = Intent::decode(bytes);
    assert_eq!(decoded.map(drop), traced);
    let Ok(intent) = decoded else { return false };
    let mut again = Vec::new();
    intent.encode(&mut again);
    assert_eq!(again, bytes);
    is_explained(&spans, bytes);
    true
}

fn part(bytes: &[u8]) -> bool {
    let (spans, traced) = StagedOps::trace(bytes);
    let mut again = PartWriter::new();
    let read = StagedOps::new(bytes).and_then(|mut ops| ops.try_for_each(|op| op.map(|op| again.add(&op))));
    assert_eq!(read, traced);
    if read.is_err() {
        return false;
    }
    assert_eq!(again.into_bytes(), bytes);
    is_explained(&spans, bytes);
    true
}

fn is_explained(spans: &[Span], bytes: &[u8]) {
    let explained: u64 = spans.iter().map(|span| span.len_bytes).sum();
    assert_eq!(explained, bytes.len() as u64);
}
