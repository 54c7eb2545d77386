//! The head of a store of overlays: its own identity, and its base's.

use cg_format::wire::{Reader, Writer};
use cg_format::{DecodeError, Section};
use cg_registry::ListKind;
#[cfg(feature = "rocks")]
use cg_store::Error;
#[cfg(feature = "rocks")]
use cg_store::engine::Engine;
use cg_store::layer::{Identity, MetaRow};
use uuid::Uuid;

use super::error::OverlayError;

/// The base, and how many of its names are known.
pub(super) const HEAD: MetaRow<Head> =
    MetaRow { key: "overlay", what: "the head of the overlay", encode: Head::encode, decode: Head::decode };

const HEAD_VERSION: u8 = 1;

/// How many names of each list are the base's.
pub(super) type Shared = [u64; ListKind::ALL.len()];

/// The identity and the name counts of an overlay's base, and the overlay's own identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// The identity of the store of overlays.
    pub(crate) uuid: Uuid,
    pub(crate) base: Identity,
    pub(super) shared: Shared,
}

impl Head {
    fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.u8(HEAD_VERSION);
        for uuid in [self.uuid, self.base.uuid, self.base.incarnation] {
            writer.bytes(uuid.as_bytes());
        }
        for count in self.shared {
            writer.u64(count);
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes, Section::Overlay);
        reader.version_u8("head version", HEAD_VERSION)?;
        let mut uuid = |field| reader.array(field).map(Uuid::from_bytes);
        let (own, base, incarnation) = (uuid("uuid")?, uuid("base uuid")?, uuid("base incarnation")?);
        let mut shared = Shared::default();
        for count in &mut shared {
            *count = reader.u64("shared names")?;
        }
        reader.end("bytes after the head")?;
        Ok(Self { uuid: own, base: Identity { uuid: base, incarnation }, shared })
    }

    /// Refuses a base whose identity is not the stored one.
    pub(crate) fn check(&self, found: Identity) -> Result<(), OverlayError> {
        let Identity { uuid, incarnation } = self.base;
        if found.uuid != uuid {
            return Err(OverlayError::WrongBase { expected: uuid, found: found.uuid });
        }
        if found.incarnation != incarnation {
            return Err(OverlayError::BaseReplaced { expected: incarnation, found: found.incarnation });
        }
        Ok(())
    }
}

/// Whether an engine holds overlays.
#[cfg(feature = "rocks")]
pub(crate) fn holds_overlays(engine: &dyn Engine) -> Result<bool, Error> {
    Ok(HEAD.get(engine)?.is_some())
}
