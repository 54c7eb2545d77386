//! The six ways to add to a catalog, each with its checks. There are no others.

use std::collections::BTreeSet;
use std::sync::Arc;

use cg_format::ComponentId;

use crate::block::{BlockHistory, BlockRow, BlockState};
use crate::catalog::{Catalog, INTRINSIC_SIDES};
use crate::codec::Row;
use crate::component::{ComponentHistory, ComponentRow, Replaces, United};
use crate::kind::ListKind;
use crate::pack::{PackRow, RenameRow};
use crate::schema::ComponentSpec;
use crate::types::TypeRow;
use crate::{Name, RegistryError};

// Each checks first and changes afterwards, so an error leaves the catalog unchanged.
impl Catalog {
    pub(crate) fn add_name(&mut self, list: ListKind, name: Name) -> Result<u64, RegistryError> {
        let entries = &mut self.lists[list.place()];
        if entries.len() >= list.max_len() {
            return Err(RegistryError::Full { list, max: list.max_len() });
        }
        if let Some(id) = entries.id(name.as_str()) {
            return Err(RegistryError::Duplicate { list, name: name.as_str().into(), id });
        }
        Ok(entries.issue(name).expect("just looked up: the name is new"))
    }

    pub(crate) fn add_component_row(&mut self, row: ComponentRow) -> Result<(), RegistryError> {
        let at = self.component_rows.len() as u64;
        let bad =
            |reason| RegistryError::Inconsistent { row: Row::ComponentSchemas.name(), index: at, reason };
        let spec = row.spec().map_err(|error| bad(error.to_string()))?;
        let (id, index) = (row.id(), row.id().index());
        let last = at.checked_sub(1).and_then(|last| self.component_rows.get(last));
        if let Some(last) = last.filter(|last| last.generation > row.generation) {
            return Err(bad(format!("generation {} follows {}", row.generation, last.generation)));
        }
        let registered = self.tables.components.len() as u64;
        if index > registered || index >= self.lists[ListKind::Components.place()].len() as u64 {
            return Err(bad(format!("component {index} has no name or comes before its turn")));
        }
        let tables = Arc::make_mut(&mut self.tables);
        if let Some(known) = tables.components.get(index) {
            let newest = known.later.last().map(|(generation, _)| *generation);
            if known.id != id || known.first.shape != spec.shape {
                return Err(bad(format!("the shape of component {index} would change")));
            }
            if let Some(replaces) = row.replaces {
                return self.unite_component(row, &spec, replaces).map_err(bad);
            }
            if row.generation == 0 || newest.is_some_and(|newest| newest >= row.generation) {
                return Err(bad(format!("component {index} changes twice in generation {}", row.generation)));
            }
            let known = tables.components.get_mut(index).expect("found above");
            known.later.push((row.generation, spec));
        } else {
            if let Some(replaces) = row.replaces {
                let old = ComponentId::new(replaces.component);
                match tables.components.get_mut(old.index()).filter(|known| known.id == old) {
                    None => {
                        return Err(bad(format!("it replaces component {}, which is unknown", old.get())));
                    }
                    Some(known) if known.replaced_by.is_some() => {
                        return Err(bad(format!("it replaces component {} a second time", old.get())));
                    }
                    Some(known) => known.replaced_by = Some(id),
                }
            }
            let (replaces, later) = (row.replaces, Vec::new());
            let (replaced_by, united) = (None, Vec::new());
            tables.components.push(ComponentHistory {
                id,
                first: spec,
                later,
                replaces,
                content: None,
                replaced_by,
                united,
            });
        }
        self.generation = self.generation.max(row.generation);
        let is_next = row.replaces.is_some();
        self.component_rows.push(row);
        if is_next {
            self.rename_registrations(index);
        }
        Ok(())
    }

    /// Adds a record that makes a known component the next registration of another one. Both are what they were.
    fn unite_component(
        &mut self,
        row: ComponentRow,
        spec: &ComponentSpec,
        replaces: Replaces,
    ) -> Result<(), String> {
        let (id, old) = (row.id(), ComponentId::new(replaces.component));
        if row.generation == 0 {
            return Err(format!("component {} would be united with another one in generation 0", id.index()));
        }
        if self.component_spec(id) != Some(spec) {
            return Err(format!("component {} would change in a record that unites it", id.index()));
        }
        match self.history(old).map(|old| old.replaced_by) {
            None => return Err(format!("it replaces component {}, which is unknown", old.get())),
            Some(Some(_)) => return Err(format!("it replaces component {} a second time", old.get())),
            Some(None) if self.newest_registration(id) == old => {
                return Err(format!("component {} would be united with itself", id.index()));
            }
            Some(None) => {}
        }
        let components = &mut Arc::make_mut(&mut self.tables).components;
        components.get_mut(old.index()).expect("found above").replaced_by = Some(id);
        let united = United { generation: row.generation, component: old, by: replaces.by };
        components.get_mut(id.index()).expect("it is known").united.push(united);
        self.generation = self.generation.max(row.generation);
        self.component_rows.push(row);
        Ok(())
    }

    pub(crate) fn add_block_row(&mut self, row: BlockRow) -> Result<(), RegistryError> {
        let at = self.block_rows.len() as u64;
        let bad = |reason| RegistryError::Inconsistent { row: Row::BlockSchemas.name(), index: at, reason };
        let last = at.checked_sub(1).and_then(|last| self.block_rows.get(last));
        if let Some(last) = last.filter(|last| last.generation > row.generation) {
            return Err(bad(format!("generation {} follows {}", row.generation, last.generation)));
        }
        if row.components.len() > BlockRow::MAX_COMPONENTS {
            return Err(bad(format!("block {} has {} components", row.block, row.components.len())));
        }
        if let Some((first, second)) =
            row.components.iter().zip(row.components.iter().skip(1)).find(|(a, b)| a >= b)
        {
            return Err(bad(format!("component {second} follows {first}, they must ascend")));
        }
        let unknown = |id: &&u64| {
            let id = ComponentId::new(**id);
            self.tables.components.get(id.index()).is_none_or(|known| known.id != id)
        };
        if let Some(id) = row.components.iter().find(unknown) {
            return Err(bad(format!("block {} has component {id}, which is unknown", row.block)));
        }
        let registered = self.tables.blocks.len() as u64;
        if row.block > registered || row.block >= self.lists[ListKind::Blocks.place()].len() as u64 {
            return Err(bad(format!("block {} has no name or comes before its turn", row.block)));
        }
        let tables = Arc::make_mut(&mut self.tables);
        let state = BlockState::from(&row);
        match tables.blocks.get_mut(row.block) {
            None => tables.blocks.push(BlockHistory { first: state, later: Vec::new() }),
            Some(history) if history.newest().generation >= row.generation => {
                return Err(bad(format!(
                    "block {} changes twice in generation {}",
                    row.block, row.generation
                )));
            }
            Some(history) => history.later.push(state),
        }
        self.generation = self.generation.max(row.generation);
        self.block_rows.push(row);
        Ok(())
    }

    /// A name that is free becomes an alias of the entry. One that finds the entry already becomes its current name.
    /// One that finds another entry unites that entry with this one; of components a record has united the registrations.
    pub(crate) fn add_rename(&mut self, row: RenameRow) -> Result<(), RegistryError> {
        let (list, at) = (row.list, self.renames.len() as u64);
        let bad = |reason| RegistryError::Inconsistent { row: Row::Renames.name(), index: at, reason };
        let entries = &mut self.lists[list.place()];
        if row.id >= entries.len() as u64 {
            return Err(bad(format!("{list} has no entry {}", row.id)));
        }
        let known = entries.id(row.name.as_str());
        match known {
            Some(other) if self.entry_of(list, other) != self.entry_of(list, row.id) => {
                if !list.can_unite() || self.lists[list.place()].newest(row.id) != row.id {
                    return Err(bad(format!("`{}` is {list} entry {other}, not {}", row.name, row.id)));
                }
                self.unite(list, other, row.id).map_err(bad)?;
            }
            Some(id) => self.set_current(list, id, row.name.clone()),
            None => {
                self.lists[list.place()].alias(row.id, row.name.clone());
                self.set_current(list, row.id, row.name.clone());
            }
        }
        self.renames.push(row);
        Ok(())
    }

    /// The entry that a place of a list stands for: the one with which it was united, and of a component the first
    /// registration.
    pub(crate) fn entry_of(&self, list: ListKind, id: u64) -> u64 {
        let newest = |id: u64| self.list(list).newest(id);
        match list {
            ListKind::Components => {
                let mut entry = self.first_of_chain(id);
                while newest(entry) != entry {
                    entry = self.first_of_chain(newest(entry));
                }
                entry
            }
            _ => newest(id),
        }
    }

    /// The first registration of a component, by its place in the list.
    fn first_of_chain(&self, index: u64) -> u64 {
        let before = |index: &u64| {
            Some(ComponentId::new(self.tables.components.get(*index)?.replaces?.component).index())
        };
        std::iter::successors(Some(index), before).last().unwrap_or(index)
    }

    fn set_current(&mut self, list: ListKind, id: u64, name: Name) {
        match list {
            ListKind::Components => {
                let first = self.first_of_chain(id);
                self.lists[list.place()].set_current(first, name);
                self.rename_registrations(first);
            }
            _ => self.lists[list.place()].set_current(id, name),
        }
    }

    /// Gives every later registration of a component's chain the component's current name.
    fn rename_registrations(&mut self, index: u64) {
        let first = self.first_of_chain(index);
        let entries = &mut self.lists[ListKind::Components.place()];
        let Some(name) = entries.current_name(first).cloned() else { return };
        let next = |index: &u64| {
            let next = self.tables.components.get(*index)?.replaced_by?.index();
            let is_own = self
                .tables
                .components
                .get(next)?
                .replaces
                .is_some_and(|it| ComponentId::new(it.component).index() == *index);
            is_own.then_some(next)
        };
        for later in std::iter::successors(next(&first), next) {
            let revision = entries.name(later).map_or(1, Name::revision);
            if let Ok(name) = name.revised(revision) {
                entries.set_current(later, name);
            }
        }
    }

    fn unite(&mut self, list: ListKind, id: u64, with: u64) -> Result<(), String> {
        if list == ListKind::Components {
            let [before, after] = [id, with].map(|id| self.tables.components.get(id).map(|it| it.id));
            let newest = |id: Option<ComponentId>| id.map(|id| self.newest_registration(id));
            if newest(before) != newest(after) {
                return Err(format!("no record makes component {with} the next registration of {id}"));
            }
        }
        self.lists[list.place()].unite(id, with);
        Ok(())
    }

    /// Types never change a length, so they need no generation.
    pub(crate) fn add_type_row(&mut self, row: TypeRow) -> Result<(), RegistryError> {
        let at = self.type_rows.len() as u64;
        let bad = |reason| RegistryError::Inconsistent { row: Row::ComponentTypes.name(), index: at, reason };
        let (id, index) = (row.id(), row.id().index());
        let known = self.tables.components.get(index).filter(|known| known.id == id);
        let Some(known) = known else {
            return Err(bad(format!("component {:#x} is unknown", row.component)));
        };
        row.content.check_shape(known.first.shape).map_err(|error| bad(error.to_string()))?;
        let known = Arc::make_mut(&mut self.tables).components.get_mut(index).expect("found above");
        known.content = Some(Arc::new(row.content.clone()));
        self.type_rows.push(row);
        Ok(())
    }

    pub(crate) fn add_pack(&mut self, row: PackRow) {
        self.packs.push(row);
    }

    /// Checks the rules that need all rows.
    pub(crate) fn check_complete(&self) -> Result<(), RegistryError> {
        let sides = self.list(ListKind::Sides);
        for (id, side) in INTRINSIC_SIDES.into_iter().enumerate() {
            if sides.name(id as u64).is_none_or(|name| name.as_str() != side) {
                return Err(RegistryError::Incomplete(format!("`sides` entry {id} is not `{side}`")));
            }
        }
        let described = [
            (ListKind::Blocks, Row::BlockSchemas, self.tables.blocks.len()),
            (ListKind::Components, Row::ComponentSchemas, self.tables.components.len()),
        ];
        for (list, row, described) in described {
            let (row, registered) = (row.name(), self.list(list).len());
            if described != registered {
                let what = format!("`{row}` describes {described} of the {registered} {list}");
                return Err(RegistryError::Incomplete(what));
            }
        }
        let components = self.component_rows.iter().map(|row| row.generation);
        let blocks = self.block_rows.iter().map(|row| row.generation);
        let seen: BTreeSet<u32> = components.chain(blocks).filter(|generation| *generation > 0).collect();
        if seen.len() as u64 != u64::from(self.generation) {
            let what = format!("{} schema generations of {} are described", seen.len(), self.generation);
            return Err(RegistryError::Incomplete(what));
        }
        Ok(())
    }
}
