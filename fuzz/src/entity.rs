//! Laws for any bytes that are taken for an entity: what decodes encodes to the same, and a dump explains every byte of
//! it.

use cg_format::entity::Entity;

/// Decodes bytes and says whether they are an entity.
///
/// # Panics
/// If a law is broken.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let (spans, traced) = Entity::trace(bytes);
    let decoded = Entity::decode(bytes);
    assert_eq!(decoded, traced);
    let Ok(entity) = decoded else { return false };
    let mut again = Vec::new();
    entity.encode(&mut again);
    assert_eq!(again, bytes);
    let explained: u64 = spans.iter().map(|span| span.len_bytes).sum();
    assert_eq!(explained, bytes.len() as u64);
    true
}
