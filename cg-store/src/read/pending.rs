//! Committed changes that are not in the engine yet, as readers see them.

use std::sync::Arc;

use cg_format::entity::Entity;
use cg_format::record::Record;
use cg_format::{ChunkAt, EntityId, Lookup, RecordId};

use crate::kinds::object::StoredObject;
use crate::kinds::property::Property;
use crate::read::cache::Stored;
use crate::storage::object_key::ObjectKey;

/// The commit queue, as reads use it. A lookup returns `None` if the newest value is in the engine.
///
/// **Invariant**: a change leaves the queue only after it is in the engine. So a reader asks the queue first and the
/// engine second.
pub(crate) trait PendingWrites: Send + Sync {
    /// Whether every commit is in the engine.
    fn is_empty(&self) -> bool;

    /// A chunk, deleted or not.
    fn chunk(&self, at: ChunkAt) -> Option<Lookup<Stored>>;

    /// An entity and the commit that wrote it; `None` inside if it is deleted.
    fn entity(&self, id: EntityId) -> Option<(u64, Option<Entity>)>;

    /// A property and the commit that wrote it; `None` inside if it is removed.
    fn property(&self, property: &Property) -> Option<(u64, Option<Vec<u8>>)>;

    /// An object, deleted or not, and the commit that wrote it.
    fn object(&self, key: &ObjectKey) -> Option<(u64, StoredObject)>;

    /// A record and the commit that wrote it; `None` inside if it is deleted.
    fn record(&self, id: RecordId) -> Option<(u64, Option<Arc<Record>>)>;
}
