//! Typed rows: opened with their checks, so that damage names what the row holds.

use cg_format::frame::{Codec, Draft, FrameView, Stamp};
use cg_format::{DecodeError, Space};

use crate::engine::{Batch, Readable};
use crate::storage::error::{Damage, Error};

/// Checks the frame of a row, and decodes what it holds. `what` names that in an error.
///
/// # Errors
/// [`Error::Corrupt`] if the frame or its content is damaged.
pub fn open_row<'r, T, W: Into<String>>(
    space: Space,
    key: &[u8],
    row: &'r [u8],
    what: impl FnOnce() -> W,
    decode: impl FnOnce(FrameView<'r>) -> Result<T, DecodeError>,
) -> Result<T, Error> {
    let decoded = FrameView::open(space, key, row).and_then(decode);
    decoded.map_err(|problem| Damage::of_row(space, key, what(), problem))
}

/// A row of `worldMeta` with a fixed key.
#[derive(Debug)]
pub struct MetaRow<T: 'static> {
    /// Its key.
    pub key: &'static str,
    /// What it holds, for errors.
    pub what: &'static str,
    /// Appends a value.
    pub encode: fn(&T, &mut Vec<u8>),
    /// The inverse of `encode`.
    pub decode: fn(&[u8]) -> Result<T, DecodeError>,
}

impl<T> MetaRow<T> {
    /// The value, or `None` if it was never written.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the row is damaged, and if the engine fails.
    pub fn get(&self, view: &dyn Readable) -> Result<Option<T>, Error> {
        let key = self.key.as_bytes();
        let Some(row) = view.get(Space::WorldMeta, key)? else { return Ok(None) };
        let decode = |frame: FrameView<'_>| (self.decode)(frame.payload());
        open_row(Space::WorldMeta, key, &row, || self.what, decode).map(Some)
    }

    /// Adds the row to a batch.
    pub fn put(&self, batch: &mut Batch, value: &T) {
        let row = Draft::plain(Codec::None, 0, |out| (self.encode)(value, out));
        batch.put(Space::WorldMeta, self.key, row, Stamp::Commit);
    }
}
