//! A column that was read takes the place of the one that a world has.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::ops::ControlFlow;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::{Entity, Owner};
use cg_format::{ChunkAt, ChunkBox, ChunkPos, Dimension, EntityId};
use cg_minecraft::name;
use cg_registry::{Catalog, ListKind};
use cg_store::prelude::{Property, Transaction};
use cg_store::view::Area;
use cg_store::{Error, World};

use super::entities::ColumnEntities;
use super::parts::{ColumnReport, DecodedColumn};
use super::prepared::PreparedEntities;
use super::{chunks, entity, listed, names};
use crate::EntityRecord;
use crate::mapping::defaults::SECTION_Y;
use crate::mapping::entity_id::derived;
use crate::mapping::{Ids, KeptSlot, NO_CHUNK, key, place};
use crate::region::ColumnPos;

/// UUIDs that follow from an entity's bytes and are tried before a new one is taken.
const KNOWN_IDS: u64 = 4;

/// Where a column is saved.
pub(super) struct Save<'a, 't, 'w> {
    pub(super) world: &'a World,
    pub(super) ids: &'a Ids,
    pub(super) tx: &'t mut Transaction<'w>,
    pub(super) entities: &'a mut ColumnEntities,
    pub(super) place: (Dimension, ColumnPos),
}

/// The dimension's name in a save.
pub(super) fn dimension_name(catalog: &Catalog, dimension: Dimension) -> String {
    let name = catalog.list(ListKind::Dimensions).name(dimension.get());
    name::text(name.map_or("", |name| name.as_str()))
}

/// The places of the chunks of a column that are stored, of any height, ascending.
pub(super) fn stored(
    world: &World,
    (dimension, column): (Dimension, ColumnPos),
) -> Result<Vec<ChunkAt>, Error> {
    let end = |y| ChunkPos::new(column.x.into(), y, column.z.into()).expect("an i32 lies inside the world");
    let area = ChunkBox::new(end(ChunkPos::MIN), end(ChunkPos::MAX));
    let mut found = Vec::new();
    let failed = world.read_view(|view| {
        view.for_each_place(Area::Box(dimension, area), |stored| match stored {
            Ok(stored) => {
                found.push(stored.at);
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        })
    })?;
    found.sort_by_key(|at| at.pos.y());
    failed.map_or(Ok(found), Err)
}

impl Save<'_, '_, '_> {
    /// Saves the column.
    pub(super) fn save(mut self, decoded: DecodedColumn) -> Result<ColumnReport, Error> {
        let (dimension, at) = self.place;
        let catalog = names::register(self.world, &decoded.states, decoded.records())?;
        let mut report = ColumnReport {
            problems: decoded.problems().map(str::to_owned).collect(),
            kept_slots: decoded.kept.iter().flatten().count() as u64,
            ..ColumnReport::default()
        };
        let dimension_name = dimension_name(&catalog, dimension);
        let record = Property::Named(name::column_property(&dimension_name, at.x, at.z)?);
        let old = self.old_chunks()?;
        let had_record = self.tx.property(&record)?.is_some();
        let DecodedColumn { states, column, entities, points, kept, .. } = decoded;
        let is_torn = column.as_ref().is_some_and(|column| column.is_torn);
        if is_torn && (had_record || !old.is_empty()) {
            return Ok(ColumnReport { is_refused: true, ..report });
        }
        let (mut new, mut rest, mut left, mut lists) = (BTreeMap::new(), None, None, Vec::new());
        if let Some(column) = column {
            let blocks = names::blocks(&catalog, &states);
            new = chunks::placed(column.chunks, self.place, &blocks, &catalog.current_schema(), self.ids)?;
            (rest, left) = (Some(column.rest), Some(column.left));
            lists.push(column.entities);
        }
        if let (Some(mut lowest), Some(side)) = (new.first_entry(), self.ids.column)
            && let Some(rest) = rest.take()
        {
            lowest.get_mut().set_side(side, rest);
        }
        if had_record || rest.is_some() {
            self.tx.set_property(record, rest);
        }
        let beside = entities.as_ref().and_then(|entities| entities.left.clone());
        lists.extend(entities);
        let [region, of_entities, poi] = kept.map(|kept| kept.as_ref().map(KeptSlot::encode));
        let points = points.map(|points| points.encode());
        let objects = [left, points, beside, region, of_entities, poi];
        for (key, bytes) in key::keys_of_column(&dimension_name, at)?.into_iter().zip(objects) {
            let stored = self.tx.object(&key)?;
            match bytes {
                Some(bytes) if stored.as_ref().is_none_or(|stored| *stored.bytes != *bytes) => {
                    self.tx.put_object(key, bytes)?;
                }
                None if stored.is_some() => self.tx.delete_object(key)?,
                _ => {}
            }
        }
        report.chunks = new.len() as u64;
        report.removed_chunks = old.keys().filter(|at| !new.contains_key(at)).count() as u64;
        let there = self.there(&old)?;
        let put = self.put_lists(&catalog, &new, &there, lists)?;
        report.entities = put.len() as u64;
        for at in old.keys().filter(|at| !new.contains_key(at)) {
            self.tx.delete(*at);
        }
        let heights: BTreeSet<ChunkAt> = new.keys().copied().collect();
        for id in there.iter().filter(|id| !put.contains_key(id)) {
            self.tx.delete_entity(*id);
            report.removed_entities += 1;
        }
        for (at, chunk) in new {
            self.tx.save(at, chunk);
        }
        self.put_all(put);
        self.adopt(&old, &heights)?;
        Ok(report)
    }

    /// The chunks that the world has of the column.
    fn old_chunks(&mut self) -> Result<BTreeMap<ChunkAt, Arc<Chunk>>, Error> {
        let (dimension, at) = self.place;
        // What the transaction itself has saved is not stored yet.
        let own = SECTION_Y.map(|y| at.chunk_at(dimension, y as i32));
        let places: BTreeSet<_> = stored(self.world, self.place)?.into_iter().chain(own).collect();
        let places: Vec<_> = places.into_iter().collect();
        let loaded = self.tx.load_many(&places);
        let chunks = places.into_iter().zip(loaded).map(|(at, chunk)| Ok(chunk?.map(|chunk| (at, chunk))));
        chunks.filter_map(Result::transpose).collect()
    }

    /// The entities that the world has of the column.
    fn there(&mut self, old: &BTreeMap<ChunkAt, Arc<Chunk>>) -> Result<BTreeSet<EntityId>, Error> {
        let of_chunks = old.values().flat_map(|chunk| chunk.entities().to_vec());
        let candidates: BTreeSet<_> = self.entities.of(self.place).chain(of_chunks).collect();
        let mut there = BTreeSet::new();
        for id in candidates {
            let Some(entity) = self.tx.entity(id)? else { continue };
            // One that went to another column meanwhile is that one's.
            let is_here = entity.position.dimension() == self.place.0;
            if is_here && listed::column_of(self.ids, &entity) == self.place.1 {
                there.insert(id);
            }
        }
        Ok(there)
    }

    /// The entities of the column, each with a UUID of its own and an owner.
    fn put_lists(
        &mut self,
        catalog: &Catalog,
        new: &BTreeMap<ChunkAt, Chunk>,
        there: &BTreeSet<EntityId>,
        lists: Vec<PreparedEntities>,
    ) -> Result<BTreeMap<EntityId, Entity>, Error> {
        let (dimension, at) = self.place;
        let mut put = BTreeMap::new();
        for PreparedEntities { place, column, data_version, groups, .. } in lists {
            let list = entity::List { place, column, data_version };
            for (index, group) in (0..).zip(groups) {
                let mut taken: Vec<EntityId> = Vec::with_capacity(group.len());
                for record in &group {
                    let id = self.id_of(record, there, |id| put.contains_key(id) || taken.contains(id))?;
                    taken.push(id);
                }
                for (id, record, origin) in list.members(index, group, &taken) {
                    let position = entity::position(dimension, &record, &origin);
                    let chunk = ChunkAt::new(dimension, position.block().chunk());
                    let is_own = place::column_of(chunk.pos) == Some(at);
                    let is_stored = new.contains_key(&chunk) || !is_own && self.tx.load(chunk)?.is_some();
                    let owner = if is_stored { Owner::Chunk(chunk) } else { entity::without_chunk() };
                    let made = entity::made(catalog, self.ids, (owner, position), record, origin.encode())?;
                    put.insert(id, made);
                }
            }
        }
        Ok(put)
    }

    /// The UUID that an entity gets: that which it has in the world, else its own, else one that follows from its bytes.
    fn id_of(
        &mut self,
        record: &EntityRecord,
        there: &BTreeSet<EntityId>,
        is_taken: impl Fn(&EntityId) -> bool,
    ) -> Result<EntityId, Error> {
        let own = record.uuid.map(EntityId::new);
        let derived = |n| derived(record.uuid, &record.nbt, n);
        let mut known = own.into_iter().chain((0..KNOWN_IDS).map(derived));
        if let Some(id) = known.find(|id| there.contains(id) && !is_taken(id)) {
            return Ok(id);
        }
        if let Some(own) = own.filter(|own| !is_taken(own)) {
            return Ok(own);
        }
        for id in (0..).map(derived).filter(|id| !is_taken(id)) {
            if self.tx.entity(id)?.is_none() {
                return Ok(id);
            }
        }
        unreachable!("there are more numbers than entities")
    }

    /// Puts entities, and remembers which column they are of.
    fn put_all(&mut self, entities: impl IntoIterator<Item = (EntityId, Entity)>) {
        for (id, entity) in entities {
            self.entities.add(self.ids, id, &entity);
            self.tx.put_entity(id, entity);
        }
    }

    /// Gives entities of other columns that stand in this one to its chunks, or takes them from those that are gone.
    fn adopt(&mut self, old: &BTreeMap<ChunkAt, Arc<Chunk>>, new: &BTreeSet<ChunkAt>) -> Result<(), Error> {
        let of_chunks = old.values().flat_map(|chunk| chunk.entities().to_vec());
        let standing: BTreeSet<_> = self.entities.waiting(self.place).chain(of_chunks).collect();
        for id in standing {
            let Some(entity) = self.tx.entity(id)? else { continue };
            let at = ChunkAt::new(entity.position.dimension(), entity.position.block().chunk());
            if at.dimension != self.place.0 || place::column_of(at.pos) != Some(self.place.1) {
                continue;
            }
            let owner = match &entity.owner {
                Owner::Chunk(chunk) if !new.contains(chunk) => entity::without_chunk(),
                Owner::Chunk(chunk) => Owner::Chunk(*chunk),
                Owner::Detached(reason) if reason.as_str() == NO_CHUNK && new.contains(&at) => {
                    Owner::Chunk(at)
                }
                Owner::Detached(_) => continue,
            };
            self.put_all(iter::once((id, entity.owned_by(owner))));
        }
        Ok(())
    }
}
