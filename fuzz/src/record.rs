//! Laws for any bytes that are taken for a record: what decodes encodes to the same, and a dump explains every byte of
//! it.

use cg_format::record::RecordView;

/// Decodes bytes and says whether they are a record.
///
/// # Panics
/// If a law is broken.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let (spans, traced) = RecordView::trace(bytes);
    let decoded = RecordView::decode(bytes);
    assert_eq!(decoded.map(drop), traced);
    let Ok(record) = decoded else { return false };
    let mut again = Vec::new();
    record.to_record().encode(&mut again);
    assert_eq!(again, bytes);
    let explained: u64 = spans.iter().map(|span| span.len_bytes).sum();
    assert_eq!(explained, bytes.len() as u64);
    true
}
