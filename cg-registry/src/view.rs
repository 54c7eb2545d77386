//! One generation of a world's schemas, as a view for the codecs.

use std::sync::Arc;

use cg_format::{BlockId, ComponentId, ComponentShape, SchemaView};

use crate::tables::Tables;

/// One schema generation of a world.
///
/// Cheap to clone and to keep: it shares its tables with the catalog and the other generations, and never changes. A
/// lookup costs two array accesses. Only a block that changed in some generation costs a binary search over its
/// changes.
#[derive(Debug, Clone)]
pub struct Schema {
    tables: Arc<Tables>,
    generation: u32,
}

impl Schema {
    pub(crate) const fn new(tables: Arc<Tables>, generation: u32) -> Self {
        Self { tables, generation }
    }

    /// Its generation.
    pub const fn generation(&self) -> u32 {
        self.generation
    }
}

impl SchemaView for Schema {
    fn components_of(&self, block: BlockId) -> Option<&[ComponentId]> {
        Some(&self.tables.blocks.get(block.get())?.at(self.generation).components)
    }

    fn shape(&self, component: ComponentId) -> Option<ComponentShape> {
        let known = self.tables.components.get(component.index())?;
        (known.id == component).then_some(known.first.shape)
    }

    fn default_bytes(&self, component: ComponentId) -> &[u8] {
        match self.tables.components.get(component.index()) {
            Some(known) if known.id == component => &known.at(self.generation).default_bytes,
            _ => &[],
        }
    }

    fn is_opaque(&self, block: BlockId) -> bool {
        self.tables.blocks.get(block.get()).is_some_and(|history| history.at(self.generation).opaque)
    }
}
