//! The read interface of an engine and of its snapshots, and the bytes of a row.

use std::fmt;
use std::ops::{Bound, ControlFlow, Deref, Range};
use std::sync::Arc;

use cg_format::Space;
use cg_format::key::Family;

use super::{ALL_KEYS, EngineError, KeyRange};

/// The callback of a scan. It gets the key and the bytes of each row. A break ends the scan.
pub type RowVisitor<'v> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'v;

/// The callback of a comparison of columns. It gets the family and the key of a row, and what is wrong, as a sentence.
pub type ColumnsVisitor<'v> = dyn FnMut(Family, &[u8], &str) + 'v;

/// Which rows a scan visits, and how.
#[derive(Debug, Clone, Copy)]
pub struct Scan<'k> {
    /// The family whose rows are visited.
    pub family: Family,
    /// The range of keys. An empty or inverted range has no rows.
    pub range: KeyRange<'k>,
    /// The rows are unlikely to be read again soon, so they evict no other rows from a cache.
    pub is_uncached: bool,
    /// The scan ends after this many rows, as if `visit` broke; [`usize::MAX`] for all. An engine fetches at most
    /// this many in advance.
    pub max_rows: usize,
}

/// A part of a row's bytes.
#[derive(Debug, Clone)]
pub struct RowSlice<'k> {
    /// The space of the row.
    pub space: Space,
    /// The row's key.
    pub key: &'k [u8],
    /// The range of bytes. It is cut at the end of the row.
    pub bytes: Range<usize>,
}

/// An engine as it is now, or a [snapshot](super::Engine::snapshot) of it.
///
/// Implement [`scan_rows`](Self::scan_rows). To read, call [`scan`](ReadableExt::scan) and its siblings.
pub trait Readable: Send + Sync {
    /// Reads the bytes of a row with one key read. Returns `None` if there is no row.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] if the engine finds the row damaged; [`EngineError::Closed`].
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value<'_>>, EngineError>;

    /// Reads one row per key, in the order of the keys. Cheaper than one [`get`](Self::get) per key.
    ///
    /// All rows come from one state of the engine. A damaged row fails only its own key.
    fn get_many(&self, keys: &[(Space, &[u8])]) -> Vec<Result<Option<Value<'_>>, EngineError>>;

    /// Reads parts of rows, in the order of `slices`; `None` if there is no row. All parts come from one state of the
    /// engine.
    ///
    /// Over a network this avoids the transfer of whole large rows. The default reads the rows whole. An engine may
    /// not notice damage outside the parts.
    fn get_slices(&self, slices: &[RowSlice<'_>]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
        let keys: Vec<_> = slices.iter().map(|slice| (slice.space, slice.key)).collect();
        let rows = self.get_many(&keys).into_iter().zip(slices);
        rows.map(|(row, slice)| Ok(row?.map(|row| row.slice(slice.bytes.clone())))).collect()
    }

    /// Visits the rows of a range in ascending order of their key bytes, until `visit` breaks.
    ///
    /// All rows come from one state of the engine, even if `visit` commits during the scan. To continue later, scan
    /// again from `Bound::Excluded` of the last visited key.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] at the first damaged place; the rows before it were visited. [`EngineError::Closed`].
    fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError>;

    /// Visits the rows of several ranges, which ascend and do not overlap, as [`scan_rows`](Self::scan_rows) does for
    /// one. Over a network, up to [`ranges_at_once`](Self::ranges_at_once) of them may cost what one costs.
    ///
    /// # Errors
    /// As [`scan_rows`](Self::scan_rows).
    fn scan_ranges(
        &self,
        family: Family,
        ranges: &[Range<Vec<u8>>],
        visit: &mut RowVisitor<'_>,
    ) -> Result<(), EngineError> {
        let mut is_ended = false;
        for range in ranges {
            let range = (Bound::Included(&range.start[..]), Bound::Excluded(&range.end[..]));
            let scan = Scan { family, range, is_uncached: false, max_rows: usize::MAX };
            self.scan_rows(scan, &mut |key, row| {
                let flow = visit(key, row);
                is_ended = flow.is_break();
                flow
            })?;
            if is_ended {
                break;
            }
        }
        Ok(())
    }

    /// The number of ranges of a family that [`scan_ranges`](Self::scan_ranges) visits for the price of one; 1 by
    /// default.
    fn ranges_at_once(&self, family: Family) -> usize {
        let _ = family;
        1
    }

    /// Whether there is no row in any family. Over a network this costs one call. The default scans one row of each
    /// family.
    ///
    /// # Errors
    /// As [`scan_rows`](Self::scan_rows).
    fn is_empty(&self) -> Result<bool, EngineError> {
        for family in Family::ALL {
            if self.scan_first(family, ALL_KEYS, 1, |_, _| ControlFlow::Break(()))?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Compares what the engine stores beside the bytes of its rows with them: columns that people query. Visits the
    /// family and the key of each row that they contradict, and says how. By default there is nothing beside them.
    ///
    /// # Errors
    /// As [`scan_rows`](Self::scan_rows).
    fn check_columns(&self, visit: &mut ColumnsVisitor<'_>) -> Result<(), EngineError> {
        let _ = visit;
        Ok(())
    }
}

/// Reads through a pointer.
macro_rules! readable_through {
    ($($pointer:ident)+) => {$(
        impl<R: Readable + ?Sized> Readable for $pointer<R> {
            fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value<'_>>, EngineError> {
                (**self).get(space, key)
            }

            fn get_many(&self, keys: &[(Space, &[u8])]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
                (**self).get_many(keys)
            }

            fn get_slices(&self, slices: &[RowSlice<'_>]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
                (**self).get_slices(slices)
            }

            fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
                (**self).scan_rows(scan, visit)
            }

            fn scan_ranges(
                &self,
                family: Family,
                ranges: &[Range<Vec<u8>>],
                visit: &mut RowVisitor<'_>,
            ) -> Result<(), EngineError> {
                (**self).scan_ranges(family, ranges, visit)
            }

            fn ranges_at_once(&self, family: Family) -> usize {
                (**self).ranges_at_once(family)
            }

            fn is_empty(&self) -> Result<bool, EngineError> {
                (**self).is_empty()
            }

            fn check_columns(&self, visit: &mut ColumnsVisitor<'_>) -> Result<(), EngineError> {
                (**self).check_columns(visit)
            }
        }
    )+};
}
readable_through! { Box Arc }

/// Scans that every [`Readable`] gets without implementing them.
pub trait ReadableExt: Readable {
    /// Visits the rows of a range in ascending order, until `visit` breaks with a value.
    ///
    /// # Errors
    /// As [`Readable::scan_rows`].
    fn scan<B>(
        &self,
        family: Family,
        range: KeyRange<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>, EngineError> {
        broken(self, Scan { family, range, is_uncached: false, max_rows: usize::MAX }, visit)
    }

    /// As [`scan`](Self::scan), until `visit` fails.
    ///
    /// # Errors
    /// The error of `visit`, and as [`Readable::scan_rows`].
    fn try_scan<X: From<EngineError>>(
        &self,
        family: Family,
        range: KeyRange<'_>,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), X>,
    ) -> Result<(), X> {
        let failed = self.scan(family, range, |key, row| match visit(key, row) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        })?;
        failed.map_or(Ok(()), Err)
    }

    /// As [`scan`](Self::scan), for the first `max_rows` rows of the range.
    ///
    /// # Errors
    /// As [`Readable::scan_rows`].
    fn scan_first<B>(
        &self,
        family: Family,
        range: KeyRange<'_>,
        max_rows: usize,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>, EngineError> {
        broken(self, Scan { family, range, is_uncached: false, max_rows }, visit)
    }

    /// As [`scan`](Self::scan), for rows that are unlikely to be read again soon.
    ///
    /// # Errors
    /// As [`Readable::scan_rows`].
    fn scan_uncached<B>(
        &self,
        family: Family,
        range: KeyRange<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>, EngineError> {
        broken(self, Scan { family, range, is_uncached: true, max_rows: usize::MAX }, visit)
    }
}

impl<R: Readable + ?Sized> ReadableExt for R {}

/// Scans, and returns the value that `visit` broke with.
fn broken<B>(
    rows: &(impl Readable + ?Sized),
    scan: Scan<'_>,
    mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
) -> Result<Option<B>, EngineError> {
    let mut value = None;
    rows.scan_rows(scan, &mut |key, row| visit(key, row).map_break(|broke| value = Some(broke)))?;
    Ok(value)
}

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
