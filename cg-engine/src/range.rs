//! Ranges of keys.

use std::ops::Bound;

/// The lower and the upper bound of a range of keys.
pub type KeyRange<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// Every key of a family.
pub const ALL_KEYS: KeyRange<'static> = (Bound::Unbounded, Bound::Unbounded);

/// Whether the range ends before it begins, so that it contains no key.
pub(super) fn is_empty(range: KeyRange<'_>) -> bool {
    match range {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => {
            from >= to
        }
        _ => false,
    }
}

/// The first key of the range. `None` if the range has no lower bound.
#[cfg(feature = "rocks")]
pub(super) fn first(from: Bound<&[u8]>) -> Option<Vec<u8>> {
    match from {
        Bound::Included(key) => Some(key.to_vec()),
        Bound::Excluded(key) => Some(successor(key)),
        Bound::Unbounded => None,
    }
}

/// The first key after the range. `None` if the range has no upper bound.
#[cfg(feature = "rocks")]
pub(super) fn behind(to: Bound<&[u8]>) -> Option<Vec<u8>> {
    match to {
        Bound::Included(key) => Some(successor(key)),
        Bound::Excluded(key) => Some(key.to_vec()),
        Bound::Unbounded => None,
    }
}

/// The smallest key above this one.
#[cfg(feature = "rocks")]
fn successor(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}
