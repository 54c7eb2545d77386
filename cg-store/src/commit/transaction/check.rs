//! What a world refuses to store: content that could not be read again, has no name, or is too large.
//!
//! Everything is checked before a transaction is accepted. After acceptance nothing can be refused.

use cg_format::chunk::{Chunk, Mismatch};
use cg_format::entity::Entity;
use cg_format::frame;
use cg_format::record::Record;
use cg_format::{
    BlockId, ChunkAt, ComponentId, ComponentShape, Dimension, EntityId, RecordId, SchemaView as _,
};
use cg_registry::{Catalog, ListKind};

use super::changes::{Changes, chunk_row, entity_row};
use crate::kinds::object::StoredObject;
use crate::kinds::property::Property;
use crate::storage::error::Error;
use crate::storage::object_key::ObjectKey;
use crate::storage::options::StoreLimits;

/// Refuses changes that contain anything that cannot be stored.
pub(super) fn check(changes: &Changes, limits: &StoreLimits) -> Result<(), Error> {
    let check = Check { catalog: &changes.catalog, limits };
    for (at, change) in &changes.chunks {
        if let Some(new) = &change.new {
            check.chunk(*at, new)?;
        }
    }
    for (id, entity) in &changes.entities {
        if let Some(entity) = entity {
            check.entity(*id, entity)?;
        }
    }
    for (property, bytes) in &changes.properties {
        check.property(property, bytes.as_deref())?;
    }
    for (key, object) in &changes.objects {
        check.object(key, object)?;
    }
    for (id, change) in &changes.records {
        if let Some(record) = &change.new {
            check.record(*id, record)?;
        }
    }
    Ok(())
}

/// The maximum size of the rows of changes, keys included. Costs a look at each chunk's palette and lists.
pub(super) fn max_batch_bytes(changes: &Changes) -> u64 {
    /// Two change marks and an outline with their keys and frames.
    const BESIDE_A_CHUNK_BYTES: usize = 1024;
    /// A key and a frame.
    const ROW_BYTES: usize = 64;
    let chunk = |chunk: &Chunk| chunk.max_len_bytes() + BESIDE_A_CHUNK_BYTES;
    let chunks =
        changes.chunks.iter().map(|(_, change)| change.new.as_deref().map_or(BESIDE_A_CHUNK_BYTES, chunk));
    let entities = changes
        .entities
        .iter()
        .map(|(_, entity)| entity.as_ref().map_or(0, |entity| entity_row(entity, 0).len_bytes()));
    let properties = changes
        .properties
        .iter()
        .map(|(property, bytes)| property.row().1.len() + bytes.as_ref().map_or(0, Vec::len));
    let values: usize = chunks.chain(entities).chain(properties).sum();
    (values + changes.kept_len_bytes() + changes.count() * ROW_BYTES) as u64
}

pub(super) fn check_limit(
    limit_bytes: u64,
    len_bytes: u64,
    what: impl FnOnce() -> String,
) -> Result<(), Error> {
    if len_bytes > limit_bytes {
        return Err(Error::TooLarge { what: what(), len_bytes, limit_bytes });
    }
    Ok(())
}

/// Refuses what could not be read again: ids that were never issued, what its schema does not fit, and what exceeds a limit.
#[derive(Debug)]
pub struct Check<'c> {
    /// The names that were issued.
    pub catalog: &'c Catalog,
    /// The limits of the store.
    pub limits: &'c StoreLimits,
}

impl Check<'_> {
    /// # Errors
    /// [`Error::UnknownBlock`], [`Error::UnknownSide`], [`Error::UnknownDimension`], [`Error::WrongSchema`],
    /// [`Error::TooLarge`].
    pub fn chunk(&self, at: ChunkAt, chunk: &Chunk) -> Result<(), Error> {
        self.dimension(at.dimension)?;
        let issued = self.issued(ListKind::Blocks);
        if let Some(id) = chunk.kind_from(BlockId::new(issued)) {
            return Err(Error::UnknownBlock { at, id, issued });
        }
        let issued = self.issued(ListKind::Sides);
        if let Some((kind, _)) = chunk.sides().find(|(kind, _)| u64::from(kind.get()) >= issued) {
            return Err(Error::UnknownSide { at, kind, issued });
        }
        let schema = self.catalog.current_schema();
        chunk.conforms_to(&schema).map_err(|why| Error::WrongSchema { at, name: self.name(&why), why })?;
        let mut len_bytes = frame::LEN_BYTES + chunk.max_len_bytes();
        if len_bytes as u64 > self.limits.chunk_bytes {
            // An edited chunk may be smaller than its upper bound.
            len_bytes = chunk_row(chunk, 0).len_bytes();
        }
        check_limit(self.limits.chunk_bytes, len_bytes as u64, || at.to_string())
    }

    /// # Errors
    /// [`Error::UnknownEntityType`], [`Error::UnknownComponent`], [`Error::WrongComponentWidth`],
    /// [`Error::UnknownDimension`], [`Error::TooLarge`].
    pub fn entity(&self, id: EntityId, entity: &Entity) -> Result<(), Error> {
        self.dimension(entity.position.dimension())?;
        let (kind, issued) = (entity.kind, self.issued(ListKind::Entities));
        if kind.get() >= issued {
            return Err(Error::UnknownEntityType { id, kind, issued });
        }
        let schema = self.catalog.current_schema();
        for (component, bytes) in entity.components() {
            match schema.shape(component) {
                None => return Err(Error::UnknownComponent { id, component }),
                Some(ComponentShape::Fixed { width_bytes }) if bytes.len() != width_bytes as usize => {
                    let (name, found) = (self.component_name(component), bytes.len());
                    return Err(Error::WrongComponentWidth { id, component, name, width_bytes, found });
                }
                Some(_) => {}
            }
        }
        let len_bytes = entity_row(entity, 0).len_bytes() as u64;
        check_limit(self.limits.entity_bytes, len_bytes, || format!("entity {id}"))
    }

    /// # Errors
    /// [`Error::TooLarge`].
    pub fn property(&self, property: &Property, bytes: Option<&[u8]>) -> Result<(), Error> {
        let len_bytes = bytes.map_or(0, <[u8]>::len) as u64;
        check_limit(self.limits.property_bytes, len_bytes, || property.to_string())
    }

    /// # Errors
    /// [`Error::TooLarge`].
    pub fn object(&self, key: &ObjectKey, object: &StoredObject) -> Result<(), Error> {
        check_limit(self.limits.object_bytes, object.len_bytes() as u64, || format!("object `{key}`"))
    }

    /// # Errors
    /// [`Error::UnknownDimension`], [`Error::TooLarge`].
    pub fn record(&self, id: RecordId, record: &Record) -> Result<(), Error> {
        self.dimension(record.position.dimension())?;
        check_limit(self.limits.record_bytes, record.len_bytes() as u64, || format!("record {id}"))
    }

    fn dimension(&self, dimension: Dimension) -> Result<(), Error> {
        let (found, issued) = (dimension.get(), self.issued(ListKind::Dimensions));
        if found < issued { Ok(()) } else { Err(Error::UnknownDimension { found, issued }) }
    }

    /// The name of the block or component at which a chunk differs from the schema.
    fn name(&self, why: &Mismatch) -> String {
        match why {
            Mismatch::UnknownBlock { block } => {
                self.catalog.block_name(*block).map_or_else(|| block.get().to_string(), ToString::to_string)
            }
            Mismatch::Instances { component, .. } | Mismatch::Shape { component } => {
                self.component_name(*component)
            }
            _ => "the chunk itself".into(),
        }
    }

    fn component_name(&self, id: ComponentId) -> String {
        let name = self.catalog.component_name(id);
        name.map_or_else(|| format!("{:#x}", id.get()), ToString::to_string)
    }

    fn issued(&self, list: ListKind) -> u64 {
        self.catalog.list(list).len() as u64
    }
}
