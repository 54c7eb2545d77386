//! The names of portable ids, and their conversion to the ids of another catalog.
//!
//! **Invariant**: ids never leave a world without names. Exported data contains ids, and only these names define them.

use std::collections::BTreeSet;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::{BlockId, ComponentId, ComponentShape, Dimension, EntityTypeId, SchemaView, SideKind};

use crate::schema::{SpecDiff, diff_specs};
use crate::{
    BlockOffer, Catalog, ComponentOffer, ComponentSpec, KeptComponents, LOST_COMPONENTS, ListKind, Name,
    Registration, STALE,
};

mod listed;
mod remap;

pub use listed::Listed;
pub use remap::{Carried, IdRemap};

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
    /// The other names of the ids above, and of a dimension, the newest first. Only of those that have some.
    pub aliases: Listed<(ListKind, u64), Arc<[Name]>>,
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
    /// Dimensions. Only their aliases are portable names.
    pub dimensions: BTreeSet<Dimension>,
}

impl Used {
    /// Adds the ids of component data without an owner, which a chunk holds in `:lost_components` and `:stale`.
    pub fn add_kept(&mut self, chunk: &Chunk) {
        let sides = [LOST_COMPONENTS, STALE].into_iter().filter_map(|kind| chunk.side(kind));
        for kept in sides.filter_map(|bytes| KeptComponents::decode(bytes, None).ok()) {
            for (owner, _) in kept.iter() {
                self.blocks.insert(owner.block);
                self.components.insert(owner.component);
            }
        }
    }
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
            let name = catalog.list(list).current_name(id).cloned();
            name.ok_or(UnknownId { list, id })
        };
        let entity = |id: &EntityTypeId| Ok((*id, plain(ListKind::Entities, id.get())?));
        let side = |kind: &SideKind| Ok((*kind, plain(ListKind::Sides, kind.get().into())?));
        let mut aliases = Vec::new();
        let known = catalog.aliases();
        if !known.is_empty() {
            let mut add = |list, id: u64, place: u64| {
                let names = known.get(&(list, catalog.entry_of(list, place)));
                aliases.extend(names.map(|names| ((list, id), Arc::from(names.as_slice()))));
            };
            used.blocks.iter().for_each(|id| add(ListKind::Blocks, id.get(), id.get()));
            for id in &components {
                add(ListKind::Components, id.get(), id.index());
            }
            used.entities.iter().for_each(|id| add(ListKind::Entities, id.get(), id.get()));
            used.dimensions.iter().for_each(|id| add(ListKind::Dimensions, id.get(), id.get()));
            used.sides.iter().for_each(|id| add(ListKind::Sides, id.get().into(), id.get().into()));
        }
        Ok(Self {
            blocks,
            aliases: aliases.into_iter().collect(),
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
        let is_used = |(list, id): &(ListKind, u64)| match list {
            ListKind::Blocks => used.blocks.contains(&BlockId::new(*id)),
            ListKind::Components => {
                let id = ComponentId::new(*id);
                carried.contains(&id) || used.components.contains(&id)
            }
            ListKind::Entities => used.entities.contains(&EntityTypeId::new(*id)),
            ListKind::Sides => u16::try_from(*id).is_ok_and(|id| used.sides.contains(&SideKind::new(id))),
            ListKind::Dimensions => used.dimensions.contains(&Dimension::new(*id)),
            ListKind::Structures => false,
        };
        let aliases = self.aliases.iter().filter(|(key, _)| is_used(key));
        Self {
            blocks,
            aliases: aliases.map(|(key, names)| (*key, Arc::clone(names))).collect(),
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

    /// The entry of a catalog that has the name of an id, or else one of its other names.
    pub fn find(&self, catalog: &Catalog, list: ListKind, id: u64, name: &Name) -> Option<u64> {
        let entries = catalog.list(list);
        let aliases = self.aliases.get(&(list, id)).map_or(&[][..], |names| &names[..]);
        std::iter::once(name).chain(aliases).find_map(|name| entries.id(name.as_str()))
    }

    pub(crate) fn find_component(
        &self,
        catalog: &Catalog,
        id: ComponentId,
        component: &NamedComponent,
    ) -> Option<ComponentId> {
        let place = self.find(catalog, ListKind::Components, id.get(), &component.name)?;
        Some(catalog.newest_registration(catalog.tables.components.get(place)?.id))
    }

    /// Whether every id has the same meaning in a catalog, and components have the same layout.
    pub fn are_those_of(&self, catalog: &Catalog) -> bool {
        let schema = catalog.current_schema();
        let has_layout = |id: &ComponentId, component: &NamedComponent| {
            let diff = catalog.component_spec(*id).map(|spec| diff_specs(&component.spec, spec));
            matches!(diff, Some(SpecDiff::Same | SpecDiff::NewInstancesOnly))
        };
        let is_entry = |list, id: u64, name: &Name| self.find(catalog, list, id, name) == Some(id);
        let blocks = self.blocks.iter().all(|(id, block)| {
            is_entry(ListKind::Blocks, id.get(), &block.name)
                && schema.components_of(*id) == Some(&block.components)
        });
        let components = self.components.iter().all(|(id, component)| {
            self.find_component(catalog, *id, component) == Some(*id) && has_layout(id, component)
        });
        let entities = self.entities.iter().all(|(id, name)| is_entry(ListKind::Entities, id.get(), name));
        let sides = self.sides.iter().all(|(id, name)| is_entry(ListKind::Sides, id.get().into(), name));
        blocks && components && entities && sides
    }

    /// Shares the memory of names that both values have.
    pub fn share_with(&mut self, others: &Self) {
        self.blocks.share_with(&others.blocks);
        self.components.share_with(&others.components);
        self.entities.share_with(&others.entities);
        self.sides.share_with(&others.sides);
        self.aliases.share_with(&others.aliases);
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
            + self.sides.memory_beside(others.map(|others| &others.sides))
            + self.aliases.memory_beside(others.map(|others| &others.aliases));
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
        let mut note = |list, id, name: &Name| {
            if self.find(catalog, list, id, name).is_none() {
                missing.push((list, name.clone()));
            }
        };
        self.components.iter().for_each(|(id, it)| note(ListKind::Components, id.get(), &it.name));
        self.blocks.iter().for_each(|(id, block)| note(ListKind::Blocks, id.get(), &block.name));
        self.entities.iter().for_each(|(id, name)| note(ListKind::Entities, id.get(), name));
        self.sides.iter().for_each(|(id, name)| note(ListKind::Sides, id.get().into(), name));
        missing
    }

    /// The registration that adds the absent names to a catalog; empty if none is absent.
    pub fn registration(&self, catalog: &Catalog) -> Registration {
        let lacks = |list: ListKind, id, name: &Name| self.find(catalog, list, id, name).is_none();
        let components =
            self.components.iter().filter(|(id, it)| lacks(ListKind::Components, id.get(), &it.name));
        let blocks = self.blocks.iter().filter(|(id, block)| lacks(ListKind::Blocks, id.get(), &block.name));
        // A component that the catalog has under another of its names is registered with the block under that one.
        let name_of = |id: &ComponentId| {
            let component = self.components.get(id)?;
            let place = self.find(catalog, ListKind::Components, id.get(), &component.name);
            let there = place.and_then(|place| catalog.list(ListKind::Components).name(place));
            there.and_then(|name| Name::new(name.unrevised()).ok()).or_else(|| Some(component.name.clone()))
        };
        let entities = self.entities.iter().filter(|(id, name)| lacks(ListKind::Entities, id.get(), name));
        let sides = self.sides.iter().filter(|(id, name)| lacks(ListKind::Sides, id.get().into(), name));
        let mut known = BTreeSet::new();
        Registration {
            components: components
                .filter(|(_, it)| known.insert(&it.name))
                .map(|(_, it)| ComponentOffer::described(it.name.clone(), &it.spec, None))
                .collect(),
            blocks: blocks
                .map(|(_, block)| BlockOffer {
                    name: block.name.clone(),
                    components: block.components.iter().filter_map(name_of).collect(),
                    opaque: block.opaque,
                })
                .collect(),
            entities: entities.map(|(_, name)| name.clone()).collect(),
            sides: sides.map(|(_, name)| name.clone()).collect(),
            ..Registration::default()
        }
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
