//! Converts a snapshot to the ids of another registry, section by section.

use std::collections::BTreeMap;
use std::sync::Arc;

use cg_format::entity::Entity;
use cg_format::{ComponentId, Dimension, EntityId};
use cg_registry::portable::{IdRemap, Names};
use cg_registry::{Catalog, ListKind, Schema, UpgradeFunctions};
use rayon::prelude::*;

use crate::builder::Collected;
use crate::capture::SECTIONS_IN_FLIGHT;
use crate::error::SnapshotError;
use crate::places::{LOST, Places};
use crate::region::Region;
use crate::section::Prepared;
use crate::snapshot::{Aside, Snapshot, SnapshotInfo, moved_entity};

/// What became of a snapshot that was converted to another registry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemapReport {
    /// Component data without a place there, or without a place for all its parts: the number of instances by
    /// component. The catalog has a layout to which the bytes cannot be converted whole, or the block does not have the
    /// component there. The bytes are kept in the chunk: in `:lost_components` if only the block lacks the component, in
    /// `:stale` otherwise. Those of an entity are kept in `:stale` of its chunk, at its cell.
    pub components_left: BTreeMap<String, u64>,
    /// Whether any ids were converted.
    pub is_remapped: bool,
}

/// A conversion in progress. The cost of a step does not depend on the number of sections.
#[derive(Debug)]
pub(crate) struct Remapping {
    from: Arc<Snapshot>,
    info: SnapshotInfo,
    remap: IdRemap,
    schema: Schema,
    sections: Collected,
    /// By section of the source: its place in the result.
    places: Vec<u32>,
    aside: Vec<Aside>,
    report: RemapReport,
}

/// A section with the new ids, and the number of dropped instances of each component.
type Remapped = (Prepared, BTreeMap<ComponentId, u64>);

impl Remapping {
    /// Begins a conversion to a catalog and one of its dimensions, by default the one with the snapshot's dimension
    /// name. `None` if all ids mean the same in the catalog.
    ///
    /// # Errors
    /// [`SnapshotError::UnknownNames`]; [`SnapshotError::UnknownId`] for the dimension.
    pub(crate) fn begin(
        from: &Arc<Snapshot>,
        catalog: &Catalog,
        functions: &Arc<UpgradeFunctions>,
        dimension: Option<Dimension>,
    ) -> Result<Option<Self>, SnapshotError> {
        let mut info = from.info().clone();
        let own = from.dimension_in(catalog);
        let has_its_place = dimension.is_some() || own == Some(from.region().dimension());
        if has_its_place && from.names().are_those_of(catalog) {
            return Ok(None);
        }
        if let Some(id) = dimension.map(Dimension::get) {
            let name = catalog.list(ListKind::Dimensions).current_name(id);
            let unknown = SnapshotError::UnknownId { list: ListKind::Dimensions, id };
            info.dimension = name.ok_or(unknown)?.clone();
        }
        let Some(dimension) = dimension.or(own) else {
            let names = vec![(ListKind::Dimensions, info.dimension)];
            return Err(SnapshotError::UnknownNames { names });
        };
        info.region = Region::new(dimension, info.region.area());
        let remap = IdRemap::with_functions(from.names(), catalog, Arc::clone(functions))
            .map_err(|names| SnapshotError::UnknownNames { names })?;
        Ok(Some(Self {
            from: Arc::clone(from),
            info,
            remap,
            schema: catalog.current_schema(),
            sections: Collected::default(),
            places: Vec::with_capacity(from.kept.len()),
            aside: Vec::new(),
            report: RemapReport { is_remapped: true, ..RemapReport::default() },
        }))
    }

    /// Converts one section; `false` if none is left.
    ///
    /// # Errors
    /// If the section cannot be verified, or its components cannot be converted.
    pub(crate) fn step(&mut self) -> Result<bool, SnapshotError> {
        let next = self.places.len();
        if next == self.from.kept.len() {
            return Ok(false);
        }
        let arrived = self.bring(next)?;
        self.take(arrived);
        Ok(true)
    }

    /// Converts all remaining sections in the caller's rayon pool.
    ///
    /// # Errors
    /// As [`step`](Self::step) and [`finish`](Self::finish).
    pub(crate) fn run(mut self, catalog: &Catalog) -> Result<(Snapshot, RemapReport), SnapshotError> {
        let end = self.from.kept.len();
        while self.places.len() < end {
            // Bounds the memory: a converted section is in memory twice until it is stored.
            let window = self.places.len()..end.min(self.places.len() + SECTIONS_IN_FLIGHT);
            let arrived: Result<Vec<_>, _> = window.into_par_iter().map(|index| self.bring(index)).collect();
            arrived?.into_iter().for_each(|arrived| self.take(arrived));
        }
        self.finish(catalog)
    }

    fn bring(&self, index: usize) -> Result<Remapped, SnapshotError> {
        let at = || self.from.first_place(index);
        let Some(kept) = self.from.kept.get(index) else { return Err(SnapshotError::Lost { at: at() }) };
        let old = self.from.decode_at(at, kept)?;
        let new = self.remap.chunk(&old, &self.schema);
        let (new, left) = new.map_err(|error| SnapshotError::Section { at: at(), error })?;
        Ok((Prepared::new(&new), left))
    }

    fn take(&mut self, (section, left): Remapped) {
        self.places.push(self.sections.keep(section));
        for (component, count) in left {
            leave(&mut self.report, self.from.names(), component, count);
        }
    }

    /// Returns the converted snapshot.
    ///
    /// # Errors
    /// [`SnapshotError::UnknownId`] if the catalog is not the one of the conversion.
    pub(crate) fn finish(mut self, catalog: &Catalog) -> Result<(Snapshot, RemapReport), SnapshotError> {
        let region = self.info.region;
        let mut entities: Vec<(EntityId, Entity)> = Vec::with_capacity(self.from.entities().len());
        let from = Arc::clone(&self.from);
        for (id, entity) in from.entities() {
            let entity = self.entity(*id, entity, region);
            self.sections.uses(&entity);
            entities.push((*id, entity));
        }
        self.sections.is_of(region.dimension());
        let (kept, names) = self.sections.finish(catalog)?;
        // The places differ only if two sections became equal, which needs dropped components.
        let places = if (1..).zip(&self.places).all(|(number, place): (u32, _)| number == *place) {
            self.from.places.clone()
        } else {
            let renumbered = |place: u32| match place {
                0 | LOST => place,
                place => self.places.get(place as usize - 1).copied().unwrap_or(LOST),
            };
            Places::new(&self.from.places.iter().map(renumbered).collect::<Vec<_>>())
        };
        let info = SnapshotInfo {
            unique_count: kept.len() as u64,
            unique_bytes: kept.iter().map(|kept| kept.bytes().len() as u64).sum(),
            ..self.info
        };
        Ok((Snapshot { info, names, places, kept, entities, aside: self.aside }, self.report))
    }

    /// Converts an entity. What of its components has no place is kept beside it and counted.
    fn entity(&mut self, id: EntityId, entity: &Entity, region: Region) -> Entity {
        let kind = self.remap.entity(entity.kind).unwrap_or(entity.kind);
        let mut new = Entity::new(kind, entity.owner.clone(), entity.position);
        for (component, bytes) in entity.components() {
            let Some(carried) = self.remap.value(component, bytes) else {
                leave(&mut self.report, self.from.names(), component, 1);
                continue;
            };
            let there = carried.component;
            let is_free = new.component(there).is_none();
            let converted = carried.bytes.filter(|_| is_free).map(std::borrow::Cow::into_owned);
            let is_put = converted.is_some_and(|bytes| new.set_component(there, bytes).is_ok());
            if !(is_put && carried.is_whole) {
                self.aside.push(Aside { entity: id, component: there, bytes: bytes.to_vec() });
                leave(&mut self.report, self.from.names(), component, 1);
            }
        }
        moved_entity(&new, region, [0; 3]).unwrap_or(new)
    }
}

impl Snapshot {
    /// Converts the snapshot to the ids of a catalog, by names.
    ///
    /// Costs nothing if all ids mean the same in the catalog. Otherwise every stored section is decoded and encoded
    /// again, in the caller's rayon pool. Component data is converted by field names as a load converts it. What cannot
    /// be converted whole is kept beside and [counted](RemapReport::components_left). The snapshot gets the catalog's
    /// dimension with the same name.
    ///
    /// # Errors
    /// [`SnapshotError::UnknownNames`] if names are not registered. [`Names::registration`] lists what to register.
    pub fn arrive(self, catalog: &Catalog) -> Result<(Self, RemapReport), SnapshotError> {
        self.arrive_with(catalog, &Arc::default())
    }

    /// As [`arrive`](Self::arrive), with the functions of the host that convert and fill components.
    ///
    /// # Errors
    /// As [`arrive`](Self::arrive).
    pub fn arrive_with(
        self,
        catalog: &Catalog,
        functions: &Arc<UpgradeFunctions>,
    ) -> Result<(Self, RemapReport), SnapshotError> {
        let coming = Arc::new(self);
        match Remapping::begin(&coming, catalog, functions, None)? {
            None => Ok((Arc::unwrap_or_clone(coming), RemapReport::default())),
            Some(arriving) => arriving.run(catalog),
        }
    }
}

fn leave(report: &mut RemapReport, names: &Names, component: ComponentId, count: u64) {
    let name = names.components.get(&component).map(|it| it.name.to_string());
    *report.components_left.entry(name.unwrap_or_default()).or_default() += count;
}
