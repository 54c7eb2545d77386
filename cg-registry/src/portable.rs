//! The names of portable ids, and their conversion to the ids of another catalog.
//!
//! **Invariant**: ids never leave a world without names. Exported data contains ids, and only these names define them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cg_format::chunk::{Chunk, EditError};
use cg_format::{BlockId, ComponentId, ComponentShape, EntityTypeId, LocalPos, SchemaView, SideKind};

use crate::schema::Field;
use crate::{
    BlockOffer, Catalog, ComponentOffer, ComponentSpec, FieldOffer, HexBytes, ListKind, Name, Registration,
};

mod listed;

pub use listed::Listed;

/// The two counters that `Arc` stores before its content.
const ARC_BYTES: usize = 2 * size_of::<usize>();

/// The meaning of portable ids. It is also the schema for decoding the chunks that use them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names {
    /// Block kinds.
    pub blocks: Listed<BlockId, Arc<NamedBlock>>,
    /// The components of those blocks, and others in use.
    pub components: Listed<ComponentId, Arc<NamedComponent>>,
    /// Kinds of entities.
    pub entities: Listed<EntityTypeId, Name>,
    /// Kinds of side data.
    pub sides: Listed<SideKind, Name>,
}

/// The meaning of a block id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedBlock {
    /// The block's name.
    pub name: Name,
    /// Whether it hides the blocks behind it.
    pub opaque: bool,
    /// Its components, ascending.
    pub components: Vec<ComponentId>,
}

/// The meaning of a component id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedComponent {
    /// The name without the registry's revision, as packs use it.
    pub name: Name,
    /// Its shape, its fields and its default.
    pub spec: ComponentSpec,
}

/// Ids that are in use.
#[derive(Debug, Clone, Default)]
pub struct Used {
    /// Block kinds.
    pub blocks: BTreeSet<BlockId>,
    /// Components in addition to those of the blocks.
    pub components: BTreeSet<ComponentId>,
    /// Kinds of entities.
    pub entities: BTreeSet<EntityTypeId>,
    /// Kinds of side data.
    pub sides: BTreeSet<SideKind>,
}

/// An id that a catalog never issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{} {id:#x} is not in the registry", list.noun(1))]
pub struct UnknownId {
    /// Its list.
    pub list: ListKind,
    /// The id.
    pub id: u64,
}

impl Names {
    /// The names of ids, from the catalog that issued them.
    ///
    /// # Errors
    /// The first id that the catalog did not issue.
    pub fn of(catalog: &Catalog, used: &Used) -> Result<Self, UnknownId> {
        let schema = catalog.current_schema();
        let mut components = used.components.clone();
        let block = |id: &BlockId| {
            let unknown = UnknownId { list: ListKind::Blocks, id: id.get() };
            let (Some(name), Some(of_block)) = (catalog.block_name(*id), schema.components_of(*id)) else {
                return Err(unknown);
            };
            components.extend(of_block);
            let (name, components) = (name.clone(), of_block.to_vec());
            Ok((*id, Arc::new(NamedBlock { name, opaque: schema.is_opaque(*id), components })))
        };
        let blocks = used.blocks.iter().map(block).collect::<Result<_, UnknownId>>()?;
        let component = |id: ComponentId| {
            let unknown = || UnknownId { list: ListKind::Components, id: id.get() };
            let spec = catalog.component_spec(id).ok_or_else(unknown)?.clone();
            let name = catalog.component_name(id).and_then(|name| Name::new(name.unrevised()).ok());
            Ok((id, Arc::new(NamedComponent { name: name.ok_or_else(unknown)?, spec })))
        };
        let plain = |list: ListKind, id: u64| {
            let name = catalog.list(list).name(id).cloned();
            name.ok_or(UnknownId { list, id })
        };
        let entity = |id: &EntityTypeId| Ok((*id, plain(ListKind::Entities, id.get())?));
        let side = |kind: &SideKind| Ok((*kind, plain(ListKind::Sides, kind.get().into())?));
        Ok(Self {
            blocks,
            components: components.into_iter().map(component).collect::<Result<_, UnknownId>>()?,
            entities: used.entities.iter().map(entity).collect::<Result<_, UnknownId>>()?,
            sides: used.sides.iter().map(side).collect::<Result<_, UnknownId>>()?,
        })
    }

    /// The subset of names that are in use, and the components of those blocks. A used id without a name is omitted.
    #[must_use]
    pub fn only(&self, used: &Used) -> Self {
        let blocks: Listed<_, _> = self
            .blocks
            .iter()
            .filter(|(id, _)| used.blocks.contains(id))
            .map(|(id, block)| (*id, Arc::clone(block)))
            .collect();
        let carried: BTreeSet<_> = blocks.values().flat_map(|block| &block.components).copied().collect();
        let components = self.components.iter();
        let components = components.filter(|(id, _)| carried.contains(id) || used.components.contains(id));
        let entities = self.entities.iter().filter(|(id, _)| used.entities.contains(id));
        let sides = self.sides.iter().filter(|(kind, _)| used.sides.contains(kind));
        Self {
            blocks,
            components: components.map(|(id, component)| (*id, Arc::clone(component))).collect(),
            entities: entities.map(|(id, name)| (*id, name.clone())).collect(),
            sides: sides.map(|(kind, name)| (*kind, name.clone())).collect(),
        }
    }

    /// The name of a block kind.
    pub fn block(&self, id: BlockId) -> Option<&Name> {
        self.blocks.get(&id).map(|block| &block.name)
    }

    /// Every block kind with its name, by id.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = (BlockId, &Name)> {
        self.blocks.iter().map(|(id, block)| (*id, &block.name))
    }

    /// The name of a kind of entity.
    pub fn entity(&self, id: EntityTypeId) -> Option<&Name> {
        self.entities.get(&id)
    }

    /// Whether every id has the same meaning in a catalog.
    pub fn are_those_of(&self, catalog: &Catalog) -> bool {
        let schema = catalog.current_schema();
        let blocks = self.blocks.iter().all(|(id, block)| {
            catalog.block_id(block.name.as_str()) == Some(*id)
                && schema.components_of(*id) == Some(&block.components)
        });
        let components = self.components.iter().all(|(id, component)| {
            catalog.component_id(component.name.as_str()) == Some(*id)
                && schema.shape(*id) == Some(component.spec.shape)
        });
        let entities = self.entities.iter().all(|(id, name)| catalog.entity_type(name.as_str()) == Some(*id));
        let sides = self.sides.iter().all(|(id, name)| catalog.side_kind(name.as_str()) == Some(*id));
        blocks && components && entities && sides
    }

    /// Shares the memory of names that both values have.
    pub fn share_with(&mut self, others: &Self) {
        self.blocks.share_with(&others.blocks);
        self.components.share_with(&others.components);
        self.entities.share_with(&others.entities);
        self.sides.share_with(&others.sides);
    }

    /// The approximate memory that it takes in addition to this value. The texts of names are shared and do not count.
    pub fn memory_bytes(&self) -> usize {
        self.memory_of(None)
    }

    /// As [`memory_bytes`](Self::memory_bytes), without the memory that it [shares](Self::share_with) with others.
    pub fn memory_beside(&self, others: &Self) -> usize {
        self.memory_of(Some(others))
    }

    fn memory_of(&self, others: Option<&Self>) -> usize {
        let lists = self.blocks.memory_beside(others.map(|others| &others.blocks))
            + self.components.memory_beside(others.map(|others| &others.components))
            + self.entities.memory_beside(others.map(|others| &others.entities))
            + self.sides.memory_beside(others.map(|others| &others.sides));
        let blocks = self.blocks.iter().filter(|(id, block)| {
            let there = others.and_then(|others| others.blocks.get(id));
            there.is_none_or(|there| !Arc::ptr_eq(block, there))
        });
        let blocks = blocks.map(|(_, block)| {
            let NamedBlock { components, .. } = &**block;
            ARC_BYTES + size_of::<NamedBlock>() + size_of_val(&**components)
        });
        let components = self.components.iter().filter(|(id, component)| {
            let there = others.and_then(|others| others.components.get(id));
            there.is_none_or(|there| !Arc::ptr_eq(component, there))
        });
        let components = components.map(|(_, component)| {
            let ComponentSpec { default_bytes, fields, .. } = &component.spec;
            let texts: usize = fields.iter().map(|field| field.name.len()).sum();
            ARC_BYTES + size_of::<NamedComponent>() + default_bytes.len() + size_of_val(&**fields) + texts
        });
        lists + blocks.chain(components).sum::<usize>()
    }

    /// The names that are absent in a catalog, each with its list.
    pub fn missing_in(&self, catalog: &Catalog) -> Vec<(ListKind, Name)> {
        let mut missing = Vec::new();
        let mut note = |list, name: &Name| {
            if catalog.list(list).id(name.as_str()).is_none() {
                missing.push((list, name.clone()));
            }
        };
        self.components.values().for_each(|component| note(ListKind::Components, &component.name));
        self.blocks.values().for_each(|block| note(ListKind::Blocks, &block.name));
        self.entities.values().for_each(|name| note(ListKind::Entities, name));
        self.sides.values().for_each(|name| note(ListKind::Sides, name));
        missing
    }

    /// The registration that adds the absent names to a catalog; empty if none is absent.
    pub fn registration(&self, catalog: &Catalog) -> Registration {
        let lacks = |list: ListKind, name: &Name| catalog.list(list).id(name.as_str()).is_none();
        let components = self.components.values().filter(|it| lacks(ListKind::Components, &it.name));
        let blocks = self.blocks.values().filter(|block| lacks(ListKind::Blocks, &block.name));
        let name_of = |id: &ComponentId| self.components.get(id).map(|component| component.name.clone());
        Registration {
            components: components.map(|component| offer(&component.name, &component.spec)).collect(),
            blocks: blocks
                .map(|block| BlockOffer {
                    name: block.name.clone(),
                    components: block.components.iter().filter_map(name_of).collect(),
                    opaque: block.opaque,
                })
                .collect(),
            entities: self
                .entities
                .values()
                .filter(|name| lacks(ListKind::Entities, name))
                .cloned()
                .collect(),
            sides: self.sides.values().filter(|name| lacks(ListKind::Sides, name)).cloned().collect(),
            ..Registration::default()
        }
    }
}

/// The offer that registers a component with this description.
fn offer(name: &Name, spec: &ComponentSpec) -> ComponentOffer {
    let base = match spec.shape {
        ComponentShape::Fixed { width_bytes } => ComponentOffer::fixed(name.clone(), width_bytes),
        ComponentShape::Variable => ComponentOffer::variable(name.clone()),
    };
    let field = |field: &Field| FieldOffer {
        name: field.name.clone(),
        width_bytes: field.width_bytes,
        default_bytes: None,
    };
    ComponentOffer {
        default_bytes: Some(HexBytes(spec.default_bytes.clone())),
        fields: spec.fields.iter().map(field).collect(),
        ..base
    }
}

impl SchemaView for Names {
    fn components_of(&self, block: BlockId) -> Option<&[ComponentId]> {
        self.blocks.get(&block).map(|block| block.components.as_slice())
    }

    fn shape(&self, component: ComponentId) -> Option<ComponentShape> {
        self.components.get(&component).map(|component| component.spec.shape)
    }

    fn default_bytes(&self, component: ComponentId) -> &[u8] {
        self.components.get(&component).map_or(&[], |component| &component.spec.default_bytes)
    }

    fn is_opaque(&self, block: BlockId) -> bool {
        self.blocks.get(&block).is_some_and(|block| block.opaque)
    }
}

/// The conversion from portable ids to those of a catalog that has all their names.
#[derive(Debug)]
pub struct IdRemap {
    blocks: BTreeMap<BlockId, BlockId>,
    /// The source component of each catalog component with the same shape.
    components: BTreeMap<ComponentId, ComponentId>,
    entities: BTreeMap<EntityTypeId, EntityTypeId>,
    sides: BTreeMap<SideKind, SideKind>,
}

impl IdRemap {
    /// Creates the conversion to a catalog.
    ///
    /// # Errors
    /// The absent names, as [`Names::missing_in`] returns them.
    pub fn new(names: &Names, catalog: &Catalog) -> Result<Self, Vec<(ListKind, Name)>> {
        let missing = names.missing_in(catalog);
        if !missing.is_empty() {
            return Err(missing);
        }
        let schema = catalog.current_schema();
        let component = |(id, component): (&ComponentId, &Arc<NamedComponent>)| {
            let there = catalog.component_id(component.name.as_str())?;
            (schema.shape(there) == Some(component.spec.shape)).then_some((there, *id))
        };
        let side = |(id, name): (&SideKind, &Name)| Some((*id, catalog.side_kind(name.as_str())?));
        let entity = |(id, name): (&EntityTypeId, &Name)| Some((*id, catalog.entity_type(name.as_str())?));
        let block =
            |(id, block): (&BlockId, &Arc<NamedBlock>)| Some((*id, catalog.block_id(block.name.as_str())?));
        Ok(Self {
            blocks: names.blocks.iter().filter_map(block).collect(),
            components: names.components.iter().filter_map(component).collect(),
            entities: names.entities.iter().filter_map(entity).collect(),
            sides: names.sides.iter().filter_map(side).collect(),
        })
    }

    /// Converts the blocks and side data of a chunk to the ids of the catalog. Also returns the number of dropped
    /// instances of each component: those whose component has another shape there, or whose block does not have it
    /// there. References to entities, and ids without a name, stay unchanged.
    ///
    /// # Errors
    /// [`EditError`] if the chunk's own schema does not explain its components, or they do not fit the new schema.
    pub fn chunk(
        &self,
        old: &Chunk,
        schema: &impl SchemaView,
    ) -> Result<(Chunk, BTreeMap<ComponentId, u64>), EditError> {
        if old.has_unread_components() {
            return Err(EditError::UnreadComponents { block: old.block(LocalPos::default()) });
        }
        let mut left: BTreeMap<ComponentId, u64> = BTreeMap::new();
        for (component, ..) in old.components() {
            *left.entry(component).or_default() += 1;
        }
        let mut new = old.clone();
        new.remap_blocks(|block| self.blocks.get(&block).copied().unwrap_or(block));
        let mut new = new.with_components(schema, |at, _, component| {
            let source = *self.components.get(&component)?;
            let bytes = old.component(at, source)?;
            if let Some(left) = left.get_mut(&source) {
                *left -= 1;
            }
            Some(Cow::Borrowed(bytes))
        })?;
        let sides: Vec<_> = old.sides().map(|(kind, _)| kind).collect();
        for kind in sides {
            new.remove_side(kind);
        }
        for (kind, data) in old.sides() {
            new.set_side(self.sides.get(&kind).copied().unwrap_or(kind), data.to_vec());
        }
        left.retain(|_, count| *count > 0);
        Ok((new, left))
    }

    /// The catalog's kind of entity for a portable one.
    pub fn entity(&self, here: EntityTypeId) -> Option<EntityTypeId> {
        self.entities.get(&here).copied()
    }

    /// The catalog's component for the component of a portable entity.
    pub fn component(&self, here: ComponentId) -> Option<ComponentId> {
        self.components.iter().find(|(_, id)| **id == here).map(|(there, _)| *there)
    }
}
