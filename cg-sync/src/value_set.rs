//! Which values other than chunks a cache keeps.

use std::collections::BTreeSet;

use cg_format::{BlockPos, ChunkBox, Dimension};
use cg_registry::Name;
use cg_store::layer::values::ValueKind;
use cg_store::objects::ObjectKey;
use serde::{Deserialize, Serialize};

use super::messages::{kind_byte, kind_of};

/// A set of values other than chunks: those of a kind, or the part of them that a cache wants.
///
/// ```
/// use cg_sync::{ValueKind, ValueSet};
/// # let world = cg_store::prelude::World::builder().in_memory()?;
/// # let overworld = world.registry().register_dimension("game:overworld")?;
/// # use cg_store::prelude::*;
/// # let area = ChunkBox::new(ChunkPos::new(0, 0, 0)?, ChunkPos::new(7, 7, 7)?);
/// let bricks = ValueSet::of(ValueKind::Objects).with_prefix("bricks/");
/// // What is in the chests stays on the server.
/// let near = ValueSet::of(ValueKind::Entities).within(overworld, area).without(Name::new("game:items")?);
/// # let _ = (bricks, near);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueSet {
    pub(super) kind: ValueKind,
    pub(super) prefix: Vec<u8>,
    /// Everywhere if there are none.
    pub(super) areas: Vec<(Dimension, ChunkBox)>,
    pub(super) without: BTreeSet<Name>,
}

/// A set as a cache stores it, with the dimensions of the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredSet {
    kind: u8,
    prefix: Vec<u8>,
    areas: Vec<(u64, [i64; 3], [i64; 3])>,
    without: Vec<Vec<u8>>,
}

impl ValueSet {
    /// All values of a kind.
    pub const fn of(kind: ValueKind) -> Self {
        Self { kind, prefix: Vec::new(), areas: Vec::new(), without: BTreeSet::new() }
    }

    /// Those whose keys have a prefix: objects and properties.
    #[must_use]
    pub fn with_prefix(self, prefix: impl Into<Vec<u8>>) -> Self {
        Self { prefix: prefix.into(), ..self }
    }

    /// Those with a position in a box of chunks, or in another one that was given: entities and records.
    #[must_use]
    pub fn within(mut self, dimension: Dimension, area: ChunkBox) -> Self {
        self.areas.push((dimension, area));
        self
    }

    /// Without a component: entities arrive as if they did not have it. An entity in several sets of one request has what any
    /// of them wants, so ask about sets that overlap in one request.
    #[must_use]
    pub fn without(mut self, component: Name) -> Self {
        self.without.insert(component);
        self
    }

    /// Its kind.
    pub const fn kind(&self) -> ValueKind {
        self.kind
    }

    pub(super) fn contains_position(&self, dimension: Dimension, block: BlockPos) -> bool {
        let chunk = block.chunk();
        self.areas.is_empty() || self.areas.iter().any(|(at, area)| *at == dimension && area.contains(chunk))
    }

    pub(super) fn stored(&self) -> StoredSet {
        let area = |(dimension, area): &(Dimension, ChunkBox)| {
            let (min, max) = (area.min(), area.max());
            (dimension.get(), [min.x(), min.y(), min.z()], [max.x(), max.y(), max.z()])
        };
        StoredSet {
            kind: kind_byte(self.kind),
            prefix: self.prefix.clone(),
            areas: self.areas.iter().map(area).collect(),
            without: self.without.iter().map(|name| name.as_str().into()).collect(),
        }
    }
}

impl StoredSet {
    /// The set; `None` if this release has no such kind or place.
    pub(super) fn set(&self) -> Option<ValueSet> {
        let corner = |[x, y, z]: [i64; 3]| cg_format::ChunkPos::new(x, y, z).ok();
        let area = |(dimension, min, max): &(u64, [i64; 3], [i64; 3])| {
            Some((Dimension::new(*dimension), ChunkBox::new(corner(*min)?, corner(*max)?)))
        };
        let name = |text: &Vec<u8>| Name::new(std::str::from_utf8(text).ok()?).ok();
        Some(ValueSet {
            kind: kind_of(self.kind)?,
            prefix: self.prefix.clone(),
            areas: self.areas.iter().map(area).collect::<Option<_>>()?,
            without: self.without.iter().map(name).collect::<Option<_>>()?,
        })
    }
}

/// The first byte of a name that is the engine's own.
const ENGINES: u8 = b':';

/// Whether a value is one that a server sends: objects of the store's own, as what a cache keeps of its
/// server, and properties of the engine are not.
pub(crate) fn is_sent(kind: ValueKind, key: &[u8]) -> bool {
    match kind {
        ValueKind::Objects => !key.starts_with(ObjectKey::STORES_OWN) && ObjectKey::new(key).is_ok(),
        // A property of no mod has a name without a colon.
        ValueKind::Properties => {
            key.len() <= Name::MAX_LEN_BYTES && key.first() != Some(&ENGINES) && key.contains(&b':')
        }
        ValueKind::Entities | ValueKind::Records => key.len() == 16,
    }
}
