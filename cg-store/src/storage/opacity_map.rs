//! Whether a world keeps the opacity map: what the host asks for, what is stored, and what holds while it is open.
//!
//! **Invariant**: a world with the row [`WHOLE`] has a map that agrees with its chunks by the opacity of blocks in that
//! row's generation, and every commit puts its patches. Without the row, rows of the map mean nothing.

use std::sync::atomic::{AtomicU8, Ordering};

use cg_format::frame::LEN_BYTES;
use cg_format::wire::{Reader, Writer};
use cg_format::{Section, Space};
use cg_registry::Catalog;

use crate::engine::Batch;
use crate::storage::error::Error;
use crate::storage::meta::MetaRow;
use crate::storage::options::WorldOptions;

/// Whether a world keeps its [opacity map](crate::opacity::OpacityMap).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Keep {
    /// As it is stored. A new world keeps no map.
    #[default]
    AsStored,
    /// The world keeps a map from now on.
    ///
    /// A new world begins with one. In a world without a map, opening draws it from the chunks before it returns: one
    /// read and one decoding of every chunk, so minutes for a million chunks. A process that is killed meanwhile leaves
    /// a world without a map, and the next opening draws what is missing.
    On,
    /// The world keeps no map from now on. Opening deletes a stored one.
    Off,
}

/// The schema generation by whose opacity of blocks the map is drawn, a `u32`. Absent in a world without a map.
pub(crate) const WHOLE: MetaRow<u32> = MetaRow {
    key: "opacityMap",
    what: "the row that says that the opacity map is whole",
    encode: |generation, out| Writer::new(out).u32(*generation),
    decode: |payload| {
        let mut reader = Reader::at_offset(payload, LEN_BYTES as u64, Section::Frame);
        let generation = reader.u32("generation")?;
        reader.end("bytes after the generation")?;
        Ok(generation)
    },
};

const ABSENT: u8 = 0;
const BEGUN: u8 = 1;
const KEPT: u8 = 2;

/// Whether an open world keeps the map. It changes under the commit lock, with an empty queue.
#[derive(Debug)]
pub(crate) struct KeptMap(AtomicU8);

impl KeptMap {
    /// The state of a world that is being opened, whose names are current, by its row [`WHOLE`].
    ///
    /// # Errors
    /// If the row was not read. A damaged one is logged: the world has no map then.
    pub(crate) fn at_open(
        whole: Result<Option<u32>, Error>,
        names: &Catalog,
        options: &WorldOptions,
    ) -> Result<Self, Error> {
        let state = match whole {
            Ok(None) => ABSENT,
            // Rows of lost commits may exist in one family and not in another.
            Ok(Some(_)) if options.accept_lost_commits => ABSENT,
            Ok(Some(generation)) if names.opacity_changed_since(generation) => {
                tracing::warn!("blocks have another opacity than the opacity map was drawn with: rebuild it");
                ABSENT
            }
            Ok(Some(_)) => KEPT,
            Err(Error::Corrupt(damage)) => {
                tracing::warn!(%damage, "the world has no opacity map until it is rebuilt");
                ABSENT
            }
            Err(error) => return Err(error),
        };
        Ok(Self(AtomicU8::new(state)))
    }

    /// Takes the state of another one.
    pub(crate) fn replace(&self, by: Self) {
        self.0.store(by.0.into_inner(), Ordering::Release);
    }

    /// Whether the map agrees with the chunks, so that it can be read.
    pub(crate) fn is_whole(&self) -> bool {
        self.0.load(Ordering::Acquire) == KEPT
    }

    /// Whether commits put patches: the map is whole, or being drawn.
    pub(crate) fn gets_patches(&self) -> bool {
        self.0.load(Ordering::Acquire) != ABSENT
    }

    /// # Errors
    /// [`Error::NotKept`] unless the map [is whole](Self::is_whole).
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.is_whole() { Ok(()) } else { Err(Error::NotKept { what: "opacity map" }) }
    }

    /// Lets commits put patches, before a map is drawn that does not exist yet.
    pub(crate) fn begin(&self) {
        let _kept = self.0.compare_exchange(ABSENT, BEGUN, Ordering::AcqRel, Ordering::Acquire);
    }

    /// The map was drawn.
    pub(crate) fn end(&self) {
        self.0.store(KEPT, Ordering::Release);
    }

    /// The map no longer agrees with the chunks. One that is being drawn is drawn again by the thread that began it.
    pub(crate) fn outdate(&self) {
        let _begun = self.0.compare_exchange(KEPT, ABSENT, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// Deletes the row that says that the map is whole.
pub(crate) fn disown(batch: &mut Batch) {
    batch.delete(Space::WorldMeta, WHOLE.key);
}
