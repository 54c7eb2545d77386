//! Schemas, which chunk bytes do not contain: the components of a block kind, and their shapes.

use crate::{BlockId, ComponentId};

/// The size of one instance of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ComponentShape {
    /// Every instance has the same width.
    Fixed {
        /// The length of one instance.
        width_bytes: u32,
    },
    /// Every instance has its own length.
    Variable,
}

/// One schema generation of a world, as a view for a codec.
///
/// A chunk is always decoded with the generation with which it was encoded. The chunk's frame contains that generation,
/// and the registry keeps every generation permanently. A kind of block always has the same components, so a chunk can
/// store component data without separators.
pub trait SchemaView {
    /// The components of a block kind in ascending order; `None` if this schema does not know the block.
    fn components_of(&self, block: BlockId) -> Option<&[ComponentId]>;

    /// The shape of a component; `None` if this schema does not know it.
    fn shape(&self, component: ComponentId) -> Option<ComponentShape>;

    /// The bytes of a new instance: exactly the width for a fixed-size component, empty if unknown.
    fn default_bytes(&self, component: ComponentId) -> &[u8];

    /// Whether a block of this kind hides the blocks behind it.
    fn is_opaque(&self, block: BlockId) -> bool;
}

impl<S: SchemaView + ?Sized> SchemaView for &S {
    fn components_of(&self, block: BlockId) -> Option<&[ComponentId]> {
        (**self).components_of(block)
    }

    fn shape(&self, component: ComponentId) -> Option<ComponentShape> {
        (**self).shape(component)
    }

    fn default_bytes(&self, component: ComponentId) -> &[u8] {
        (**self).default_bytes(component)
    }

    fn is_opaque(&self, block: BlockId) -> bool {
        (**self).is_opaque(block)
    }
}

/// A schema in which no block has components and every block but [`BlockId`] 0 is opaque.
///
/// For hosts that store blocks only, and for tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoComponents;

impl SchemaView for NoComponents {
    fn components_of(&self, _: BlockId) -> Option<&[ComponentId]> {
        Some(&[])
    }

    fn shape(&self, _: ComponentId) -> Option<ComponentShape> {
        None
    }

    fn default_bytes(&self, _: ComponentId) -> &[u8] {
        &[]
    }

    fn is_opaque(&self, block: BlockId) -> bool {
        block.get() != 0
    }
}
