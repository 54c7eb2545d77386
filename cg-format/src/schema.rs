//! What bytes alone do not say: which components a block kind has, and what shape they are.

use crate::{BlockId, ComponentId};

/// The size of one instance of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ComponentShape {
    /// Every instance has the same width.
    Fixed {
        /// Bytes of one instance.
        width_bytes: u32,
    },
    /// Every instance has its own length.
    Variable,
}

/// One schema generation of a world, as a codec sees it.
///
/// A chunk is always decoded with the generation that it was encoded with, which its frame names; the registry
/// keeps every generation for ever. A kind of block always has the same components, and that is what lets a chunk
/// store component data without separators.
pub trait SchemaView {
    /// The components of a block kind in ascending order, or `None` if this schema does not know the block.
    fn components_of(&self, block: BlockId) -> Option<&[ComponentId]>;

    /// The shape of a component, or `None` if this schema does not know it.
    fn shape(&self, component: ComponentId) -> Option<ComponentShape>;

    /// What a new instance holds: exactly the width for a fixed-size component, empty if unknown.
    fn default_bytes(&self, component: ComponentId) -> &[u8];

    /// Whether a block of this kind hides what is behind it.
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
