//! The UUIDs of entities whose own is taken, or that have none.

use cg_format::EntityId;
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

/// The nth UUID that follows from an entity's bytes.
pub(crate) fn derived(uuid: Option<Uuid>, nbt: &[u8], n: u64) -> EntityId {
    let mut hash = Sha256::new();
    hash.update(uuid.unwrap_or(Uuid::nil()).as_bytes());
    hash.update(n.to_le_bytes());
    hash.update(nbt);
    let digest: [u8; 32] = hash.finalize().into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    EntityId::new(Builder::from_custom_bytes(bytes).into_uuid())
}
