//! A stored value, as an engine returns it.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// The bytes of a row: borrowed from the engine if it can lend them, else shared or owned.
///
/// ```
/// use cg_engine::Value;
/// assert_eq!(&*Value::from(vec![1, 2]), [1, 2]);
/// ```
pub struct Value<'e>(Bytes<'e>);

enum Bytes<'e> {
    Shared(Arc<[u8]>),
    Owned(Vec<u8>),
    Lent(&'e [u8]),
    #[cfg(feature = "rocks")]
    Pinned(rocksdb::DBPinnableSlice<'e>),
    Slice(Box<Self>, Range<usize>),
}

impl Value<'_> {
    /// A part of the bytes, without a copy. A range that exceeds the value is cut at its end.
    #[must_use]
    pub fn slice(self, bytes: Range<usize>) -> Self {
        let end = bytes.end.min(self.len());
        Self(Bytes::Slice(Box::new(self.0), bytes.start.min(end)..end))
    }
}

impl From<Arc<[u8]>> for Value<'_> {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self(Bytes::Shared(bytes))
    }
}

impl From<Vec<u8>> for Value<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Bytes::Owned(bytes))
    }
}

impl<'e> From<&'e [u8]> for Value<'e> {
    fn from(bytes: &'e [u8]) -> Self {
        Self(Bytes::Lent(bytes))
    }
}

#[cfg(feature = "rocks")]
impl<'e> From<rocksdb::DBPinnableSlice<'e>> for Value<'e> {
    fn from(bytes: rocksdb::DBPinnableSlice<'e>) -> Self {
        Self(Bytes::Pinned(bytes))
    }
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Shared(bytes) => bytes,
            Self::Owned(bytes) => bytes,
            Self::Lent(bytes) => bytes,
            #[cfg(feature = "rocks")]
            Self::Pinned(bytes) => bytes,
            Self::Slice(whole, range) => &whole[range.clone()],
        }
    }
}

impl Deref for Value<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
