//! Builds a snapshot: sections in their order, equal ones stored once, and entities.

use std::collections::{BTreeMap, HashMap};

use cg_format::entity::Entity;
use cg_format::{ComponentId, Dimension, EntityId};
use cg_registry::Catalog;
use cg_registry::portable::{Names, UnknownId, Used};

use crate::error::SnapshotError;
use crate::kept::{Kept, KeptWriter};
use crate::places::Places;
use crate::region::Region;
use crate::section::Prepared;
use crate::snapshot::{Snapshot, SnapshotInfo};

/// Sections, equal ones stored once, and the ids in use.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    kept: KeptWriter,
    /// Section numbers by checksum and length. A candidate counts as equal only after its bytes are compared.
    known: HashMap<(u32, usize), Vec<u32>>,
    used: Used,
    /// The ids of component data without an owner. The catalog may lack those of a damaged chunk.
    kept_ids: Used,
}

impl Collected {
    /// Stores a section unless an equal one is stored. Returns its place.
    pub(crate) fn keep(&mut self, prepared: Prepared) -> u32 {
        let Prepared { bytes, checksum, kinds, sides, kept } = prepared;
        let known = self.known.entry((checksum, bytes.len())).or_default();
        let is_equal =
            |place: &&u32| self.kept.get(**place as usize - 1).is_some_and(|kept| kept.bytes() == bytes);
        if let Some(place) = known.iter().find(is_equal) {
            return *place;
        }
        self.kept.push(&bytes, checksum);
        let place = self.kept.len() as u32;
        known.push(place);
        self.used.blocks.extend(kinds);
        self.used.sides.extend(sides);
        self.kept_ids.blocks.extend(kept.blocks);
        self.kept_ids.components.extend(kept.components);
        place
    }

    pub(crate) fn is_of(&mut self, dimension: Dimension) {
        self.used.dimensions.insert(dimension);
    }

    pub(crate) fn uses(&mut self, entity: &Entity) {
        self.used.entities.insert(entity.kind);
        self.used.components.extend(entity.components().map(|(component, _)| component));
    }

    /// Returns the sections and the names of their ids.
    ///
    /// # Errors
    /// [`SnapshotError::UnknownId`] if the catalog is not the one that issued the ids.
    pub(crate) fn finish(mut self, catalog: &Catalog) -> Result<(Kept, Names), SnapshotError> {
        let Used { blocks, components, .. } = self.kept_ids;
        self.used.blocks.extend(blocks.into_iter().filter(|id| catalog.block_name(*id).is_some()));
        let is_known = |id: &ComponentId| catalog.component_spec(*id).is_some();
        self.used.components.extend(components.into_iter().filter(is_known));
        let names = Names::of(catalog, &self.used)
            .map_err(|UnknownId { list, id }| SnapshotError::UnknownId { list, id })?;
        Ok((self.kept.finish(), names))
    }
}

/// A snapshot that is being built.
pub(crate) struct Builder {
    info: SnapshotInfo,
    places: Vec<u32>,
    sections: Collected,
    entities: BTreeMap<EntityId, Entity>,
}

impl Builder {
    pub(crate) fn new(info: SnapshotInfo, region: Region) -> Self {
        Self {
            info: SnapshotInfo { region, ..info },
            places: Vec::new(),
            sections: Collected::default(),
            entities: BTreeMap::new(),
        }
    }

    /// Adds the next section. `None`: there is no chunk.
    pub(crate) fn push(&mut self, section: Option<Prepared>) {
        let place = section.map_or(0, |section| self.sections.keep(section));
        self.places.push(place);
    }

    pub(crate) fn entity(&mut self, id: EntityId, entity: Entity) {
        self.sections.uses(&entity);
        self.entities.insert(id, entity);
    }

    pub(crate) fn section_count(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn finish(mut self, catalog: &Catalog) -> Result<Snapshot, SnapshotError> {
        self.sections.is_of(self.info.region.dimension());
        let (kept, names) = self.sections.finish(catalog)?;
        let (places, entities) = (Places::new(&self.places), self.entities.into_iter().collect());
        Ok(Snapshot::new(self.info, names, places, kept, entities))
    }
}
