//! Names in a schematic for which a world has no id yet: its states and kinds of entities.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use cg_format::LocalPos;
use cg_minecraft::{kind, name, water};
use cg_registry::{Catalog, Registration};
use cg_snapshot::schem::Grid;
use cg_store::Error;

use super::import::{ImportError, Importer, block};
use super::paste::Kind;
use super::slab::Slabs;
use super::state;

impl Importer<'_> {
    /// Blocks of other namespaces that are seen with a block entity: they own one from now on.
    fn owners_seen(&self) -> Result<HashSet<String>, ImportError> {
        let mut seen = HashSet::new();
        let Some(grid) = self.file.schematic.blocks() else { return Ok(seen) };
        let foreign: HashMap<u16, &str> = grid
            .states()
            .filter(|(_, state, _)| kind::is_foreign(state))
            .map(|(index, state, _)| (index, state))
            .collect();
        if foreign.is_empty() || self.inside.is_empty() {
            return Ok(seen);
        }
        let mut cells = self.file.open(grid)?;
        let mut buffer = Vec::new();
        for slab in Slabs::new(self.area)?.iter() {
            self.fill(&mut cells, &mut buffer, slab.cells())?;
            for part in slab.parts() {
                let inside = self.inside.get(&part.pos).into_iter().flatten();
                let wanted: HashSet<_> = inside.map(|(cell, _)| *cell).collect();
                if wanted.is_empty() {
                    continue;
                }
                for (first, count, at) in part.rows() {
                    let row = buffer.get(at..at + count).unwrap_or_default();
                    for (index, x) in row.iter().zip(first.x()..) {
                        let cell = LocalPos::new(x, first.y(), first.z());
                        if let Some(state) = foreign.get(index).filter(|_| wanted.contains(&cell)) {
                            seen.insert(kind::base(state).to_owned());
                        }
                    }
                }
            }
        }
        Ok(seen)
    }

    /// Registers what the world has no name of yet: by name, so that the order is always the same.
    pub(super) fn register(&mut self) -> Result<Arc<Catalog>, ImportError> {
        let seen = self.owners_seen()?;
        let catalog = self.world.catalog();
        let mut states = BTreeSet::from([name::AIR.to_owned()]);
        for (_, text, _) in self.file.schematic.blocks().into_iter().flat_map(Grid::states) {
            let state = state::canonical(text, self.file.schematic.data_version());
            match water::split(&state) {
                Some(dry) => states.extend([dry, water::WATER.to_owned()]),
                None => {
                    states.insert(state.into_owned());
                }
            }
        }
        let mut new = Registration::default();
        for state in states {
            let name = name::of(&state).map_err(Error::from)?;
            if catalog.block_id(name.as_str()).is_some() {
                continue;
            }
            let owns = kind::owns_block_entity(&state) || seen.contains(kind::base(&state));
            new.blocks.push(kind::offer(name, owns, kind::is_opaque(&state)));
        }
        new.blocks.sort_by(|a, b| a.name.cmp(&b.name));
        self.report.new_states = new.blocks.len() as u64;
        let kinds: BTreeSet<_> =
            self.file.schematic.entities().map(|entity| name::of_entity_kind(&entity.id)).collect();
        new.entities =
            kinds.into_iter().filter(|kind| catalog.entity_type(kind.as_str()).is_none()).collect();
        Ok(if new == Registration::default() { catalog } else { self.world.registry().register(&new)? })
    }

    pub(super) fn kinds(&self, catalog: &Catalog) -> Result<Vec<Option<Kind>>, ImportError> {
        let mut kinds = Vec::new();
        for (index, text, _) in self.file.schematic.blocks().into_iter().flat_map(Grid::states) {
            let state = state::canonical(text, self.file.schematic.data_version());
            let dry = water::split(&state);
            let name = name::of(dry.as_deref().unwrap_or(&state)).map_err(Error::from)?;
            kinds.resize(usize::from(index) + 1, None);
            if let Some(kind) = kinds.last_mut() {
                *kind = Some((block(catalog, name.as_str()), dry.is_some()));
            }
        }
        Ok(kinds)
    }
}
