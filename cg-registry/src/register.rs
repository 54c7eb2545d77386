//! Registers names in a running world.

use std::collections::{HashMap, HashSet};

use cg_format::{BlockId, ComponentId};

use crate::block::BlockRow;
use crate::catalog::Catalog;
use crate::changes::Changes;
use crate::component::{ComponentRow, Replaces, id_at};
use crate::kind::ListKind;
use crate::manifest::{BlockOffer, ComponentOffer};
use crate::schema::{ComponentSpec, SpecDiff, diff_specs};
use crate::types::{Content, TypeRow};
use crate::{Name, NameError, RegistryError};

/// Names to be registered together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registration {
    /// Components. They are registered before the blocks.
    pub components: Vec<ComponentOffer>,
    /// Block kinds.
    pub blocks: Vec<BlockOffer>,
    /// Kinds of entities.
    pub entities: Vec<Name>,
    /// Structures.
    pub structures: Vec<Name>,
    /// Dimensions.
    pub dimensions: Vec<Name>,
    /// Kinds of side data.
    pub sides: Vec<Name>,
}

impl Registration {
    const fn plain(&self) -> [(ListKind, &Vec<Name>); 4] {
        [
            (ListKind::Entities, &self.entities),
            (ListKind::Structures, &self.structures),
            (ListKind::Dimensions, &self.dimensions),
            (ListKind::Sides, &self.sides),
        ]
    }
}

impl Catalog {
    /// Gives each new name the next id of its list, in the given order. Existing names keep their ids.
    ///
    /// Opens no schema generation, because no stored chunk can contain a block that did not exist. The cost depends on
    /// the size of the registration, not of the catalog.
    ///
    /// # Errors
    /// If a name is reserved, a schema is invalid, a block names an unknown component, a list would overflow, or an
    /// existing entry is described differently; [`RegistryError::UndeclaredState`] for a state that the packs of an
    /// [applied plan](crate::Plan::apply) do not declare. Then nothing is registered.
    pub fn register(&mut self, new: &Registration) -> Result<Changes, RegistryError> {
        self.check_registration(new)?;
        let mark = self.mark();
        for offer in &new.components {
            if self.list(ListKind::Components).id(offer.name.as_str()).is_none() {
                let id = self.register_component(offer.name.clone(), &offer.spec(), self.generation, None)?;
                self.add_types(id, offer.types())?;
            }
        }
        for offer in &new.blocks {
            if self.block_id(offer.name.as_str()).is_none() {
                let components = self.resolve_components(offer)?;
                self.register_block(offer.name.clone(), offer.opaque, &components, self.generation)?;
            }
        }
        for (list, names) in new.plain() {
            for name in names {
                if self.list(list).id(name.as_str()).is_none() {
                    self.add_name(list, name.clone())?;
                }
            }
        }
        Ok(self.since(mark))
    }

    fn check_registration(&self, new: &Registration) -> Result<(), RegistryError> {
        let mut components: HashMap<&str, (ComponentSpec, Option<Content>)> = HashMap::new();
        for offer in &new.components {
            let (name, spec, types) = (checked(&offer.name)?, offer.spec(), offer.types());
            let sound =
                spec.check().and_then(|()| types.iter().try_for_each(|types| types.check_spec(&spec)));
            sound.map_err(|error| RegistryError::Spec { name: name.into(), error })?;
            let id = self.component_id(name);
            let registered =
                id.and_then(|id| Some((self.component_spec(id)?.clone(), self.types(id).cloned())));
            let known = registered.or_else(|| components.get(name).cloned());
            let differs = |(known_spec, known_types): &(ComponentSpec, Option<Content>)| {
                diff_specs(known_spec, &spec) != SpecDiff::Same || types.is_some() && types != *known_types
            };
            if let Some((known, types)) = known.filter(differs) {
                let registered = describe(&known, types.is_some());
                return Err(RegistryError::Differs { name: name.into(), registered });
            }
            components.insert(name, (spec, types));
        }
        let mut blocks: HashMap<&str, &BlockOffer> = HashMap::new();
        for offer in &new.blocks {
            self.check_block(offer, &components)?;
            if let Some(twin) = blocks.insert(offer.name.as_str(), offer).filter(|twin| *twin != offer) {
                let registered = format!("{} components in the same request", twin.components.len());
                return Err(RegistryError::Differs { name: offer.name.as_str().into(), registered });
            }
        }
        let lists = [(ListKind::Components, components.into_keys().collect::<HashSet<_>>())]
            .into_iter()
            .chain([(ListKind::Blocks, blocks.into_keys().collect())]);
        for (list, names) in new.plain() {
            names.iter().try_for_each(|name| checked(name).map(drop))?;
            self.check_room(list, names.iter().map(Name::as_str).collect())?;
        }
        lists.into_iter().try_for_each(|(list, names)| self.check_room(list, names))
    }

    fn check_block(
        &self,
        offer: &BlockOffer,
        offered: &HashMap<&str, (ComponentSpec, Option<Content>)>,
    ) -> Result<(), RegistryError> {
        let name = checked(&offer.name)?;
        for component in &offer.components {
            if !offered.contains_key(component.as_str()) && self.component_id(component.as_str()).is_none() {
                let (block, component) = (name.into(), component.as_str().into());
                return Err(RegistryError::UnknownComponent { block, component });
            }
        }
        let (found, max) = (offer.components.len(), BlockRow::MAX_COMPONENTS);
        if found > max {
            return Err(RegistryError::TooManyComponents { block: name.into(), found, max });
        }
        let Some(known) = self.block_id(name).and_then(|id| self.tables.blocks.get(id.get())) else {
            return self.check_state(&offer.name);
        };
        let known = known.newest();
        let same = self.resolve_components(offer).is_ok_and(|offered| *known.components == *offered);
        if !same || known.opaque != offer.opaque {
            let names = known.components.iter().filter_map(|id| self.component_name(*id));
            let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
            let opacity = if known.opaque { "opaque" } else { "not opaque" };
            let registered = format!("components [{}], {opacity}", names.join(", "));
            return Err(RegistryError::Differs { name: name.into(), registered });
        }
        Ok(())
    }

    fn check_room(&self, list: ListKind, names: HashSet<&str>) -> Result<(), RegistryError> {
        let entries = self.list(list);
        let new = names.into_iter().filter(|name| entries.id(name).is_none()).count();
        if entries.len() + new > list.max_len() {
            return Err(RegistryError::Full { list, max: list.max_len() });
        }
        Ok(())
    }

    /// The newest registrations of a block's components, ascending.
    pub(crate) fn resolve_components(&self, offer: &BlockOffer) -> Result<Vec<ComponentId>, RegistryError> {
        let mut out = Vec::with_capacity(offer.components.len());
        for component in &offer.components {
            let (block, name) = (offer.name.as_str(), component.as_str());
            out.push(self.component_id(name).ok_or_else(|| RegistryError::UnknownComponent {
                block: block.into(),
                component: name.into(),
            })?);
        }
        out.sort_unstable();
        out.dedup();
        Ok(out)
    }

    pub(crate) fn register_component(
        &mut self,
        name: Name,
        spec: &ComponentSpec,
        generation: u32,
        replaces: Option<Replaces>,
    ) -> Result<ComponentId, RegistryError> {
        let id = id_at(self.add_name(ListKind::Components, name)?, spec.shape);
        self.add_component_row(ComponentRow::new(generation, id, spec, replaces))?;
        Ok(id)
    }

    /// Records the type of a component, if one is offered that is not the recorded one.
    pub(crate) fn add_types(&mut self, id: ComponentId, types: Option<Content>) -> Result<(), RegistryError> {
        match types.filter(|types| self.types(id) != Some(types)) {
            Some(content) => self.add_type_row(TypeRow { component: id.get(), content }),
            None => Ok(()),
        }
    }

    /// Takes over the types that another catalog has of the components that both have under the same id.
    ///
    /// # Errors
    /// [`RegistryError`], if the other one is not sound.
    pub fn take_types(&mut self, base: &Self) -> Result<(), RegistryError> {
        let names = |catalog: &Self| catalog.list(ListKind::Components).names().to_vec();
        for (index, (own, theirs)) in (0..).zip(names(self).iter().zip(&names(base))) {
            let id = |catalog: &Self| catalog.tables.components.get(index).map(|component| component.id);
            if let Some(id) = id(self)
                && own == theirs
                && Some(id) == base.tables.components.get(index).map(|component| component.id)
            {
                self.add_types(id, base.types(id).cloned())?;
            }
        }
        Ok(())
    }

    pub(crate) fn register_block(
        &mut self,
        name: Name,
        opaque: bool,
        components: &[ComponentId],
        generation: u32,
    ) -> Result<BlockId, RegistryError> {
        let block = self.add_name(ListKind::Blocks, name)?;
        let components = components.iter().map(|id| id.get()).collect();
        self.add_block_row(BlockRow { generation, block, opaque, components })?;
        Ok(BlockId::new(block))
    }
}

/// Checks a name again: names from serde may contain the registry's own `@`.
pub(crate) fn checked(name: &Name) -> Result<&str, RegistryError> {
    match name.as_str().find('@') {
        None => Ok(name.as_str()),
        Some(offset_bytes) => {
            let error = NameError::Character { found: '@', offset_bytes };
            Err(RegistryError::Name { name: name.as_str().into(), error })
        }
    }
}

fn describe(spec: &ComponentSpec, has_types: bool) -> String {
    let shape = crate::schema::shape_text(spec.shape);
    let types = if has_types { ", types" } else { "" };
    format!(
        "{shape}, {} fields{types} and default {}",
        spec.fields.len(),
        crate::HexBytes(spec.default_bytes.clone())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Size;
    use expect_test::{Expect, expect};

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn sample() -> Registration {
        let crate_block =
            BlockOffer { components: vec![name("a:items")], ..BlockOffer::new(name("a:crate")) };
        Registration {
            components: vec![ComponentOffer::variable(name("a:items"))],
            blocks: vec![BlockOffer { opaque: false, ..BlockOffer::new(name(":air")) }, crate_block],
            dimensions: vec![name("a:home")],
            ..Registration::default()
        }
    }

    #[test]
    fn registering_twice_issues_nothing_new() {
        let mut catalog = Catalog::new();
        let changes = catalog.register(&sample()).unwrap();
        assert_eq!(changes.names(ListKind::Blocks), (0, &[name(":air"), name("a:crate")][..]));
        let before = catalog.clone();
        assert!(catalog.register(&sample()).unwrap().is_empty());
        assert_eq!(catalog, before);
        assert_eq!(catalog.current_generation(), 0, "registering opens no generation");
    }

    #[track_caller]
    fn check(edit: impl FnOnce(&mut Registration), expected: Expect) {
        let mut catalog = Catalog::new();
        catalog.register(&sample()).unwrap();
        let before = catalog.clone();
        let mut request = Registration { entities: vec![name("a:new")], ..Registration::default() };
        edit(&mut request);
        expected.assert_eq(&catalog.register(&request).unwrap_err().to_string());
        assert_eq!(catalog, before, "nothing was registered");
    }

    #[test]
    fn what_does_not_fit_is_refused_whole() {
        let block =
            |text, component| BlockOffer { components: vec![name(component)], ..BlockOffer::new(name(text)) };
        check(
            |new| new.blocks.push(block("a:x", "a:unknown")),
            expect!["block `a:x` names component `a:unknown`, which is not registered"],
        );
        check(
            |new| new.blocks.push(BlockOffer::new(name("a:crate"))),
            expect![
                "`a:crate` is registered with components [`a:items`], opaque; use a manifest and a plan to change it"
            ],
        );
        check(
            |new| new.components.push(ComponentOffer::fixed(name("a:items"), 4)),
            expect![
                "`a:items` is registered with variable size, 0 fields and default ; use a manifest and a plan to change it"
            ],
        );
        check(
            |new| new.components.push(ComponentOffer::fixed(name("a:wide"), 1 << 20)),
            expect![
                "component `a:wide`: a width of 1048576 bytes is over the 65536 allowed; make it variable"
            ],
        );
        check(
            |new| new.entities.push(name("a:x").revised(2).unwrap()),
            expect![[r#""a:x@2" cannot be registered: '@' at byte 3 is not allowed there"#]],
        );
        check(
            |new| {
                new.components.push(ComponentOffer::fixed(name("a:two"), 4));
                new.components.push(ComponentOffer { size: Size::Variable, ..new.components[0].clone() });
            },
            expect![
                "`a:two` is registered with 4 bytes, 0 fields and default 00000000; use a manifest and a plan to change it"
            ],
        );
        check(
            |new| {
                new.blocks = vec![BlockOffer::new(name("a:two")), block("a:two", "a:items")];
            },
            expect![
                "`a:two` is registered with 0 components in the same request; use a manifest and a plan to change it"
            ],
        );
        check(
            |new| new.sides = (0..65_535).map(|n| name(&format!("a:{n}"))).collect(),
            expect!["sides is full: it holds 65536 entries; nothing was registered"],
        );
    }
}
