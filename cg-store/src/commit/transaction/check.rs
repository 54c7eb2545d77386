//! Checks of content that a world refuses to store: it could not be read again, has no name, or is too large.
//!
//! Everything is checked before a transaction is accepted. After acceptance nothing can be refused.

use std::sync::Arc;

use cg_format::chunk::{Chunk, Mismatch};
use cg_format::entity::Entity;
use cg_format::frame;
use cg_format::record::Record;
use cg_format::{
    BlockId, ChunkAt, ComponentId, ComponentShape, Dimension, EntityId, RecordId, SchemaView as _,
};
use cg_registry::{Catalog, ListKind};

use super::changes::{Changeable as _, Changes};
use super::rows::entity_row;
use crate::each_kind;
use crate::kinds::kind::{self, Kind};
use crate::kinds::object::StoredObject;
use crate::kinds::property::Property;
use crate::storage::error::Error;
use crate::storage::object_key::ObjectKey;
use crate::storage::options::StoreLimits;
use crate::storage::value_check::ValueGuard;

/// A kind whose values are checked before they are stored.
pub trait Checked: Kind {
    /// Refuses a value that could not be read again, or exceeds a limit.
    ///
    /// # Errors
    /// [`Error::TooLarge`] and the errors of unknown names, as each kind documents them.
    fn check(check: &Check<'_>, key: &Self::Key, value: &Self::Value) -> Result<(), Error>;

    /// Whether a check of a value holds for the next one too, so that it is not repeated.
    fn shares_check(_: (&Self::Key, &Self::Value), _: (&Self::Key, &Self::Value)) -> bool {
        false
    }
}

/// Refuses changes that contain anything that cannot be stored.
pub(super) fn check(changes: &Changes, limits: &StoreLimits, values: &ValueGuard) -> Result<(), Error> {
    let check = Check { catalog: &changes.catalog, limits, values };
    each_kind!(changes, |changes: K| {
        let mut checked = None;
        for (key, change) in changes {
            let Some(value) = K::new(change) else { continue };
            let value = (key, value);
            if !checked.is_some_and(|checked| K::shares_check(checked, value)) {
                K::check(&check, value.0, value.1)?;
            }
            checked = Some(value);
        }
    });
    Ok(())
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
    /// What is done about values that their types do not allow.
    pub values: &'c ValueGuard,
}

impl Checked for kind::Chunks {
    /// # Errors
    /// [`Error::UnknownBlock`], [`Error::UnknownSide`], [`Error::UnknownDimension`], [`Error::WrongSchema`],
    /// [`Error::IllegalValue`], [`Error::TooLarge`].
    fn check(check: &Check<'_>, at: &ChunkAt, chunk: &Arc<Chunk>) -> Result<(), Error> {
        check.dimension(at.dimension)?;
        let issued = check.issued(ListKind::Blocks);
        if let Some(id) = chunk.kind_from(BlockId::new(issued)) {
            return Err(Error::UnknownBlock { at: *at, id, issued });
        }
        let issued = check.issued(ListKind::Sides);
        if let Some((kind, _)) = chunk.sides().find(|(kind, _)| u64::from(kind.get()) >= issued) {
            return Err(Error::UnknownSide { at: *at, kind, issued });
        }
        let schema = check.catalog.current_schema();
        chunk.conforms_to(&schema).map_err(|why| Error::WrongSchema {
            at: *at,
            name: check.name(&why),
            why,
        })?;
        check.values.chunk(check.catalog, *at, chunk)?;
        let mut len_bytes = frame::LEN_BYTES + chunk.max_len_bytes();
        if len_bytes as u64 > check.limits.chunk_bytes {
            // An edited chunk may be smaller than its upper bound.
            len_bytes = frame::LEN_BYTES + chunk.to_bytes().len();
        }
        check_limit(check.limits.chunk_bytes, len_bytes as u64, || at.to_string())
    }

    fn shares_check((at, chunk): (&ChunkAt, &Arc<Chunk>), (next_at, next): (&ChunkAt, &Arc<Chunk>)) -> bool {
        at.dimension == next_at.dimension && is_alike(chunk, next)
    }
}

/// Whether two chunks are known to be equal at no cost worth saving: they are the same, or short and equal. Empty and
/// solid space is made of such neighbours.
pub(super) fn is_alike(one: &Arc<Chunk>, next: &Arc<Chunk>) -> bool {
    /// No chunk with two kinds of blocks is as short.
    const SHORT_BYTES: usize = 512;
    let is_short = |chunk: &Chunk| chunk.max_len_bytes() < SHORT_BYTES;
    Arc::ptr_eq(one, next) || is_short(one) && is_short(next) && one == next
}

impl Checked for kind::Entities {
    /// # Errors
    /// [`Error::UnknownEntityType`], [`Error::UnknownComponent`], [`Error::WrongComponentWidth`],
    /// [`Error::IllegalValue`], [`Error::UnknownDimension`], [`Error::TooLarge`].
    fn check(check: &Check<'_>, id: &EntityId, entity: &Entity) -> Result<(), Error> {
        check.dimension(entity.position.dimension())?;
        let (kind, issued) = (entity.kind, check.issued(ListKind::Entities));
        if kind.get() >= issued {
            return Err(Error::UnknownEntityType { id: *id, kind, issued });
        }
        let schema = check.catalog.current_schema();
        for (component, bytes) in entity.components() {
            match schema.shape(component) {
                None => return Err(Error::UnknownComponent { id: *id, component }),
                Some(ComponentShape::Fixed { width_bytes }) if bytes.len() != width_bytes as usize => {
                    let (name, found) = (check.component_name(component), bytes.len());
                    return Err(Error::WrongComponentWidth { id: *id, component, name, width_bytes, found });
                }
                Some(_) => {}
            }
        }
        check.values.entity(check.catalog, *id, entity)?;
        let len_bytes = entity_row(entity, 0).len_bytes() as u64;
        check_limit(check.limits.entity_bytes, len_bytes, || format!("entity {id}"))
    }
}

impl Checked for kind::Properties {
    /// # Errors
    /// [`Error::TooLarge`].
    fn check(check: &Check<'_>, property: &Property, bytes: &Vec<u8>) -> Result<(), Error> {
        let len_bytes = bytes.len() as u64;
        check_limit(check.limits.property_bytes, len_bytes, || property.to_string())
    }
}

impl Checked for kind::Objects {
    /// # Errors
    /// [`Error::TooLarge`].
    fn check(check: &Check<'_>, key: &ObjectKey, object: &StoredObject) -> Result<(), Error> {
        check_limit(check.limits.object_bytes, object.len_bytes() as u64, || format!("object `{key}`"))
    }
}

impl Checked for kind::Records {
    /// # Errors
    /// [`Error::UnknownDimension`], [`Error::TooLarge`].
    fn check(check: &Check<'_>, id: &RecordId, record: &Arc<Record>) -> Result<(), Error> {
        check.dimension(record.position.dimension())?;
        check_limit(check.limits.record_bytes, record.len_bytes() as u64, || format!("record {id}"))
    }
}

impl Check<'_> {
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
