//! Laws for any bytes that are taken for the registry's rows: a catalog that encodes to exactly them, or an error.
//!
//! The input is ten rows one after another, each as u16 length and bytes; what is left over is side data of the
//! registry's own kinds, and the row of types.

use cg_registry::codec::Row;
use cg_registry::{Catalog, KeptComponents};

/// Decodes bytes as rows and what follows them, and says whether the rows are a catalog.
///
/// # Panics
/// If a law is broken.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    let mut rows = Vec::new();
    for row in Row::ALL.into_iter().filter(|row| !row.is_optional()) {
        let (len_bytes, behind) = rest.split_at(rest.len().min(2));
        let len_bytes = len_bytes.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        let (bytes, behind) = behind.split_at(behind.len().min(len_bytes));
        rows.push((row.name().to_owned(), bytes.to_vec()));
        rest = behind;
    }
    let catalog = Catalog::decode(rows.iter().map(|(row, bytes)| (row.as_str(), bytes.as_slice())));
    if let Ok(catalog) = &catalog {
        assert_eq!(catalog.encode_full(), rows);
    }
    let mut typed = rows.clone();
    typed.push((Row::ComponentTypes.name().to_owned(), rest.to_vec()));
    if let Ok(catalog) = Catalog::decode(typed.iter().map(|(row, bytes)| (row.as_str(), bytes.as_slice())))
        && catalog.has_types()
    {
        assert_eq!(catalog.encode_full(), typed);
    }
    for (row, bytes) in &typed {
        let (spans, _) = cg_registry::codec::trace(row, bytes);
        assert!(spans.iter().all(|span| span.offset_bytes + span.len_bytes <= bytes.len() as u64));
    }
    if let Ok(kept) = KeptComponents::decode(rest, None) {
        assert_eq!(kept.encode(), rest);
    }
    catalog.is_ok()
}
