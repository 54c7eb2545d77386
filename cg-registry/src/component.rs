//! The stored records about a component: one for each registration, and more when its default changes.

use std::sync::Arc;

use cg_format::{ComponentId, ComponentShape};
use serde::{Deserialize, Serialize};

use crate::schema::{ComponentSpec, Conversion, Field, SpecError};
use crate::types::Content;

/// A stored record about one component. The first one registers its shape, which never changes. A later one describes
/// it anew, or makes it the next registration of a component of another name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentRow {
    /// The first schema generation in which it is valid.
    pub generation: u32,
    /// The component's id, with the top bit set for variable size.
    pub component: u64,
    /// The length of one instance; 0 for variable size.
    pub width_bytes: u32,
    /// The bytes of a new instance.
    pub default_bytes: Vec<u8>,
    /// The named parts in their order; empty if not described.
    pub fields: Vec<Field>,
    /// The registration that this one replaces; in a later record that of another name.
    pub replaces: Option<Replaces>,
}

/// The registration that a new one replaces, and the conversion of its instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replaces {
    /// The id of the older registration.
    pub component: u64,
    /// The conversion of stored instances.
    pub by: Conversion,
}

impl ComponentRow {
    pub(crate) fn new(
        generation: u32,
        id: ComponentId,
        spec: &ComponentSpec,
        replaces: Option<Replaces>,
    ) -> Self {
        let width_bytes = match spec.shape {
            ComponentShape::Fixed { width_bytes } => width_bytes,
            ComponentShape::Variable => 0,
        };
        let (default_bytes, fields) = (spec.default_bytes.clone(), spec.fields.clone());
        Self { generation, component: id.get(), width_bytes, default_bytes, fields, replaces }
    }

    /// The component's id.
    pub const fn id(&self) -> ComponentId {
        ComponentId::new(self.component)
    }

    /// The schema that the record describes.
    ///
    /// # Errors
    /// A [`SpecError`] if the record contradicts itself.
    pub fn spec(&self) -> Result<ComponentSpec, SpecError> {
        let shape = if self.id().is_variable() {
            if self.width_bytes != 0 {
                return Err(SpecError::TooWide { width_bytes: self.width_bytes });
            }
            ComponentShape::Variable
        } else {
            ComponentShape::Fixed { width_bytes: self.width_bytes }
        };
        let (default_bytes, fields) = (self.default_bytes.clone(), self.fields.clone());
        let spec = ComponentSpec { shape, default_bytes, fields };
        spec.check()?;
        Ok(spec)
    }
}

/// The id of the entry at an index, given its shape.
pub(crate) const fn id_at(index: u64, shape: ComponentShape) -> ComponentId {
    match shape {
        ComponentShape::Fixed { .. } => ComponentId::fixed(index),
        ComponentShape::Variable => ComponentId::variable(index),
    }
}

/// A registration of another name that was united with a component.
#[derive(Debug, Clone, Copy)]
pub(crate) struct United {
    /// The first generation in which the component has its instances.
    pub(crate) generation: u32,
    pub(crate) component: ComponentId,
    pub(crate) by: Conversion,
}

/// The states of one component in all generations.
#[derive(Debug, Clone)]
pub(crate) struct ComponentHistory {
    pub(crate) id: ComponentId,
    pub(crate) first: ComponentSpec,
    /// Later defaults and descriptions, ascending by generation.
    pub(crate) later: Vec<(u32, ComponentSpec)>,
    pub(crate) replaces: Option<Replaces>,
    /// The type of its instances.
    pub(crate) content: Option<Arc<Content>>,
    /// The registration that replaces this one.
    pub(crate) replaced_by: Option<ComponentId>,
    /// Registrations of other names that were united with this one; their `replaced_by` is this one.
    pub(crate) united: Vec<United>,
}

impl ComponentHistory {
    /// The last schema. It is the one that a registration had when the next one came.
    pub(crate) fn newest(&self) -> &ComponentSpec {
        self.later.last().map_or(&self.first, |(_, spec)| spec)
    }

    /// The schema in a generation. The first record is also valid before its own generation, when nothing can refer to
    /// it.
    pub(crate) fn at(&self, generation: u32) -> &ComponentSpec {
        let count = self.later.partition_point(|(from, _)| *from <= generation);
        match count.checked_sub(1).and_then(|last| self.later.get(last)) {
            Some((_, spec)) => spec,
            None => &self.first,
        }
    }
}
