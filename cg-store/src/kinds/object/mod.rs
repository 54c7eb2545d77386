//! Versioned objects: bytes under a key of the host, with a version that counts the changes.
//!
//! The keys provide the structure: `block/32,64,32/bricks` and `block/32,64,32/lights` are two objects, and a new
//! layout of the bricks gets a new suffix. An object is read and written whole.
//!
//! **Versions.** The first version is 0 and every change adds one. Writing the stored bytes again is not a change. A
//! cache of another store writes the versions that it received, which never decrease. A deleted object keeps its
//! version until [`purge_tombstones_before`](crate::tiers::Tiers::purge_tombstones_before), so that counting continues when it
//! is written again.

mod list;
mod write;

use std::sync::Arc;

use cg_format::Space;
use cg_format::frame::{self, Codec, Draft, Stamp};
use cg_format::object::ObjectView;

pub(crate) use list::scan_objects;
pub use list::{ObjectEntry, ObjectPage, behind_all, range};
pub use write::ObjectWrite;

use crate::engine::Batch;
use crate::storage::error::Error;
use crate::storage::object_key::ObjectKey;
use crate::storage::row::open_row;

/// An object and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The number of changes since it was first written.
    pub version: i64,
    /// What it holds.
    pub bytes: Arc<[u8]>,
}

/// A stored object, which may be deleted. A deleted one keeps its version, so that counting continues when it is
/// written again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredObject {
    /// The number of changes since it was first written.
    pub version: i64,
    /// What it holds; `None` if it was deleted.
    pub bytes: Option<Arc<[u8]>>,
}

impl StoredObject {
    /// The object, if it is not deleted.
    pub fn here(self) -> Option<Object> {
        let Self { version, bytes } = self;
        bytes.map(|bytes| Object { version, bytes })
    }

    /// The object as its row holds it.
    pub fn view(&self) -> ObjectView<'_> {
        ObjectView { version: self.version, bytes: self.bytes.as_deref() }
    }

    /// The number of its bytes.
    pub(crate) fn len_bytes(&self) -> usize {
        self.bytes.as_ref().map_or(0, |bytes| bytes.len())
    }

    /// The number of bytes of its row's value.
    pub(crate) fn row_len_bytes(&self) -> usize {
        frame::LEN_BYTES + ObjectView::len_bytes(self.len_bytes())
    }
}

impl From<ObjectView<'_>> for StoredObject {
    fn from(ObjectView { version, bytes }: ObjectView<'_>) -> Self {
        Self { version, bytes: bytes.map(Arc::from) }
    }
}

/// Decodes an object's row.
pub(crate) fn decode<'a>(key: &[u8], row: &'a [u8]) -> Result<ObjectView<'a>, Error> {
    let what = || format!("object `{}`", key.escape_ascii());
    open_row(Space::Object, key, row, what, |frame| ObjectView::decode(frame.payload()))
}

/// Adds an object's row to a batch.
pub(crate) fn put_row(batch: &mut Batch, key: &ObjectKey, object: &StoredObject) {
    let view = object.view();
    // The engine compresses the family.
    let draft = Draft::plain(Codec::None, 0, |out| view.encode(out));
    batch.put(Space::Object, key.as_bytes(), draft, Stamp::Commit);
}
