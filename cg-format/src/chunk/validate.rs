//! Checks that a chunk is consistent, for tests, fuzzing and `cg verify`.

use super::components::instances_of;
use super::instances::CellLayer;
use super::owned::Chunk;
use super::palette::count;
use crate::{BlockId, ComponentId, SchemaView};

/// A contradiction between a chunk and a schema, or inside a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// The schema does not know a block, and the chunk contains component data.
    #[error("block {} is unknown to the schema, so the component data cannot be assigned", .block.get())]
    UnknownBlock {
        /// The block.
        block: BlockId,
    },
    /// The chunk lacks instances that the schema defines for its blocks, or has additional ones.
    #[error("component {:#x} has {found} instances, the schema gives {expected} to the blocks", .component.get())]
    Instances {
        /// The component.
        component: ComponentId,
        /// The instances in the chunk.
        found: usize,
        /// The instances that the schema defines for the blocks.
        expected: usize,
    },
    /// The component has another shape in the schema.
    #[error("component {:#x} has another shape in the schema", .component.get())]
    Shape {
        /// The component.
        component: ComponentId,
    },
    /// The chunk's internal state is wrong: a defect of this crate.
    #[error("the chunk's {0} disagree with its blocks; this is a defect, please report it")]
    Bookkeeping(&'static str),
}

impl Chunk {
    /// Checks the chunk against a schema and its internal state. Costs about as much as encoding it.
    ///
    /// Chunks that this crate made with the same schema always pass. Of a chunk with [unread
    /// components](Self::has_unread_components) the part that was read is checked.
    ///
    /// # Errors
    /// The first [`Mismatch`] found.
    pub fn validate(&self, schema: &(impl SchemaView + ?Sized)) -> Result<(), Mismatch> {
        self.check_bookkeeping()?;
        self.conforms_to(schema)
    }

    /// Checks that the chunk has exactly the component instances that a schema defines for its blocks. Then its encoded
    /// bytes can be decoded with that schema. Costs a pass over the palette if no block has components.
    ///
    /// # Errors
    /// The first [`Mismatch`] found.
    pub fn conforms_to(&self, schema: &(impl SchemaView + ?Sized)) -> Result<(), Mismatch> {
        let ids = self.palette.ids();
        let plain = |block: &BlockId| schema.components_of(*block).is_some_and(<[_]>::is_empty);
        if self.columns.is_empty() && ids.iter().all(plain) {
            return Ok(());
        }
        let kinds = ids.iter().map(|block| schema.components_of(*block));
        let upper = self.upper.iter().map(|entry| (entry.cell, entry.local));
        let Some(mut expected) = instances_of(kinds, &self.blocks.unpacked(), upper) else {
            let unknown = self.kinds().into_iter().find(|block| schema.components_of(*block).is_none());
            return match unknown {
                Some(block) if !self.columns.is_empty() => Err(Mismatch::UnknownBlock { block }),
                _ => Ok(()),
            };
        };
        if let Some(unread) = &self.unread {
            expected.retain(|(component, _)| *component < unread.from);
        }
        let found = |component| self.columns.iter().find(|column| column.component == component);
        for (component, instances) in &expected {
            let same = found(*component).is_some_and(|column| column.instances == *instances);
            if !same {
                let found = found(*component).map_or(0, |column| column.instances.len());
                return Err(Mismatch::Instances { component: *component, found, expected: instances.len() });
            }
        }
        for column in &self.columns {
            let component = column.component;
            if !expected.iter().any(|(known, _)| *known == component) {
                let found = column.instances.len();
                return Err(Mismatch::Instances { component, found, expected: 0 });
            }
            if schema.shape(component) != Some(column.shape()) {
                return Err(Mismatch::Shape { component });
            }
        }
        Ok(())
    }

    fn check_bookkeeping(&self) -> Result<(), Mismatch> {
        let locals = self.blocks.unpacked();
        let kinds = self.palette.ids().len();
        let upper = || self.upper.iter().map(|entry| entry.local);
        if locals.iter().copied().chain(upper()).any(|local| local as usize >= kinds) {
            return Err(Mismatch::Bookkeeping("local ids"));
        }
        if !self.palette.agrees_with(&count(kinds, &locals, upper())) {
            return Err(Mismatch::Bookkeeping("palette counts"));
        }
        if self.has_canonical_blocks && self.canonical() != self.canonical_anew() {
            return Err(Mismatch::Bookkeeping("canonical form"));
        }
        let sorted = |instances: &[CellLayer]| instances.is_sorted_by(|a, b| a < b);
        let is_sorted = self.upper.is_sorted_by_key(|entry| entry.cell)
            && self.columns.is_sorted_by(|a, b| a.component < b.component)
            && self.columns.iter().all(|column| sorted(&column.instances) && !column.instances.is_empty())
            && self.entities.is_sorted_by(|a, b| a < b)
            && self.sides.is_sorted_by(|a, b| a.0 < b.0);
        if is_sorted { Ok(()) } else { Err(Mismatch::Bookkeeping("sorted lists")) }
    }
}
