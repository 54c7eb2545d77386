//! Entities of a save as entities of a world: each with a UUID of its own and an owner, or detached.

use std::collections::BTreeSet;

use cg_format::entity::{Entity, Owner};
use cg_format::{ChunkAt, EntityId};
use cg_registry::Catalog;
use cg_store::{Error, ErrorKind, World};
use uuid::Uuid;

use super::apply::Importer;
use super::choices::Merge;
use super::error::ImportError;
use super::prepare::not_kept;
use super::{Rekeyed, progress};
use crate::codec::{self, PreparedEntities};
use crate::mapping::entity_id::derived;
use crate::mapping::kept::{self, Bytes, Folder, KeptSlot, Mapped};
use crate::mapping::origin::ListedIn;
use crate::mapping::unless_damaged;
use crate::region::{Extent, ReadLimits, Slot};
use crate::save::{RegionKind, stray_of};
use crate::{EntityRecord, Region, entity};

/// Bytes that an entity's frame, position and owner add to its components; an upper bound.
pub(super) const ENTITY_OVERHEAD_BYTES: u64 = 512;
/// Bytes of the [origin](crate::mapping::Origin) of an entity that neither rides nor is ridden.
const ORIGIN_BYTES: usize = 19;
/// Further bytes of it for a vehicle and for each rider, and those once where there are riders.
const ORIGIN_ID_BYTES: usize = 16;
const ORIGIN_RIDERS_BYTES: usize = 8;
/// Entities that are given to their chunks in one transaction.
pub(super) const ADOPTIONS: usize = 512;

/// The holder of a UUID.
enum Holder {
    /// None.
    Nobody,
    /// An entity that the world had before this import, and that the save's may replace.
    World,
    /// An entity of a chunk that this import replaces.
    Replaced,
    /// An entity that came with this import, or one that it leaves alone.
    Import,
    /// An entity of the world that cannot be read, and stays.
    Damaged(String),
}

impl Importer<'_> {
    /// Whether entities of the file still wait; takes up the last page of them when no others do.
    pub(super) fn has_waiting(&mut self) -> Result<bool, ImportError> {
        if !self.progress.waiting.is_empty() {
            return Ok(true);
        }
        let Some(page) = self.progress.pages.checked_sub(1) else { return Ok(false) };
        self.progress.waiting = progress::page(self.world, self.number, page)?;
        self.progress.pages = page;
        self.pending.properties.insert(progress::page_name(self.number, page), None);
        Ok(true)
    }

    /// Gives the next waiting entities to their chunks, where those are stored by now.
    pub(super) fn adopt(&mut self) -> Result<(), ImportError> {
        let from = self.progress.waiting.len().saturating_sub(ADOPTIONS);
        let adopted = adopted(self.world, &self.progress.waiting.split_off(from))?;
        self.progress.report.detached -= adopted.len() as u64;
        self.pending.entities.extend(adopted);
        Ok(())
    }

    /// Takes a slot of `entities/`.
    pub(super) fn entity_slot(
        &mut self,
        slot: Slot,
        catalog: &Catalog,
        mut entities: PreparedEntities,
    ) -> Result<(), ImportError> {
        let (column, left, len_bytes) = (entities.column, entities.left.take(), entities.len_bytes());
        let len_bytes = len_bytes + left.as_ref().map_or(0, Vec::len);
        if !self.fits(len_bytes) {
            return self.unread_again(slot, Folder::Entities, self.too_large(len_bytes));
        }
        if !self.keeps(column)? {
            self.drop_kept(Folder::Entities, column)?;
        }
        let sums = self.sums_of_large(&entities);
        let refused = self.put_entities(slot, catalog, entities)?;
        if let Some(left) = left {
            self.put_entity_slot(column, left)?;
        }
        if refused.is_empty() {
            return Ok(());
        }
        let there = sums.iter().enumerate().filter(|(index, _)| !refused.contains(index));
        let sum = kept::sum_of_entities(there.map(|(_, nbt)| nbt.as_slice()));
        let region = Region::open(&self.region().path)
            .and_then(|mut region| region.raw(slot, Extent::Length, &ReadLimits::default()));
        match region {
            Ok(Some(raw)) => {
                let reason = "an entity is too large for the world".to_owned();
                let (bytes, mapped) = (Bytes::Raw(raw), Mapped::Entities(sum));
                self.keep_entities(slot, column, &KeptSlot { bytes, mapped, reason })
            }
            Ok(None) => Ok(()),
            Err(error) => {
                self.unreadable(slot, not_kept(&error.to_string()));
                Ok(())
            }
        }
    }

    /// The NBT of each entity with its riders, if one of them is too large for the world.
    fn sums_of_large(&self, entities: &PreparedEntities) -> Vec<Vec<u8>> {
        let limit_bytes = self.world.limits().entity_bytes;
        if entities.groups.iter().all(|group| too_large(group, limit_bytes).is_none()) {
            return Vec::new();
        }
        let whole = |group: &Vec<EntityRecord>| {
            let whole = group.first().map(|first| entity::join(first, |rider| group.get(*rider)));
            whole.and_then(Result::ok).unwrap_or_default()
        };
        entities.groups.iter().map(whole).collect()
    }

    /// Takes the entities of a column, whose kinds are registered. Returns which of the list are too large for the world,
    /// or have such a rider: these are left out whole.
    pub(super) fn put_entities(
        &mut self,
        slot: Slot,
        catalog: &Catalog,
        entities: PreparedEntities,
    ) -> Result<BTreeSet<usize>, ImportError> {
        let PreparedEntities { place, column, data_version, groups, .. } = entities;
        let list = codec::List { place, column, data_version };
        let is_kept = self.keeps(column)?;
        let limit_bytes = self.world.limits().entity_bytes;
        let mut refused = BTreeSet::new();
        for (index, group) in (0..).zip(groups) {
            if let Some((large, len_bytes)) = too_large(&group, limit_bytes) {
                let kind = &large.kind;
                let id = large.uuid.map_or_else(String::new, |id| format!("{id} "));
                let reason = format!(
                    "entity {id}({kind}) takes {len_bytes} bytes, more than the world's {limit_bytes}"
                );
                self.unreadable(slot, reason);
                refused.insert(index as usize);
                continue;
            }
            let mut ids = Vec::with_capacity(group.len());
            for record in &group {
                ids.push(self.take_id(slot, record, &ids)?);
            }
            let (ids, are_new): (Vec<_>, Vec<_>) = ids.into_iter().unzip();
            for (member, is_new) in list.members(index, group, &ids).into_iter().zip(are_new) {
                if !is_new || is_kept {
                    self.progress.report.kept_entities += 1;
                    continue;
                }
                self.put_entity(catalog, member)?;
            }
        }
        Ok(refused)
    }

    fn put_entity(
        &mut self,
        catalog: &Catalog,
        (id, record, origin): codec::Member,
    ) -> Result<(), ImportError> {
        let origin_bytes = origin.encode();
        let len_bytes = (record.nbt.len() + origin_bytes.len()) as u64 + ENTITY_OVERHEAD_BYTES;
        let position = codec::position(self.dimension, &record, &origin);
        let at = ChunkAt::new(self.dimension, position.block().chunk());
        let owner = self.owner(at)?;
        if matches!(owner, Owner::Detached(_)) {
            self.progress.report.detached += 1;
            if self.region().kind != RegionKind::Entities {
                self.progress.waiting.push(id.get());
            }
        }
        let entity = codec::made(catalog, &self.ids, (owner, position), record, origin_bytes)?;
        self.pending.deleted.remove(&id);
        self.pending.entities.insert(id, entity);
        self.progress.report.entities += 1;
        if origin.place == ListedIn::EntityFile {
            // A column was weighed with the entities in it.
            self.pending.len_bytes += len_bytes as usize;
        }
        Ok(())
    }

    /// The chunk if it is stored, else none. Entities never make a chunk.
    ///
    /// While blocks are still merged into a world that had some, a chunk that is there may yet be replaced: then
    /// entities wait until the end.
    fn owner(&self, at: ChunkAt) -> Result<Owner, ImportError> {
        let is_settled = self.head.choices.merge.is_none() || self.region().kind == RegionKind::Entities;
        let stored = match self.pending.chunks.get(&at) {
            Some(chunk) => chunk.is_some(),
            None => is_settled && unless_damaged(self.world.load(at))?.flatten().is_some(),
        };
        Ok(if stored { Owner::Chunk(at) } else { codec::without_chunk() })
    }

    /// The UUID that an entity gets, and whether it is written at all.
    ///
    /// The first entity of a UUID has it, later ones get one that follows from their bytes. For a dimension that is made of
    /// another, an entity elsewhere in the world counts as the first.
    fn take_id(
        &mut self,
        slot: Slot,
        record: &EntityRecord,
        taken: &[(EntityId, bool)],
    ) -> Result<(EntityId, bool), ImportError> {
        let candidates = record
            .uuid
            .into_iter()
            .map(EntityId::new)
            .chain((0..).map(|n| derived(record.uuid, &record.nbt, n)));
        for (index, id) in candidates.enumerate() {
            let holder = self.holder(id, taken)?;
            let is_new = match &holder {
                Holder::Import => continue,
                Holder::World => self.head.choices.merge == Some(Merge::Replace),
                Holder::Replaced | Holder::Nobody => true,
                Holder::Damaged(why) => {
                    let reason = format!("the world keeps its entity {id}, which is damaged: {why}");
                    self.unreadable(slot, reason);
                    false
                }
            };
            if !matches!(holder, Holder::Nobody) {
                // One that is put as it was keeps its version, and one that is kept too.
                self.met.insert(id.get());
                self.pending.met.push(id.get());
            }
            if index > 0 || record.uuid.is_none() {
                let file = self.file_name().to_owned();
                let (was, is) = (record.uuid, id.get());
                self.progress.report.note_rekeyed(Rekeyed { file, slot: slot.index(), was, is });
            }
            return Ok((id, is_new));
        }
        unreachable!("there are more numbers than entities");
    }

    fn holder(&self, id: EntityId, taken: &[(EntityId, bool)]) -> Result<Holder, ImportError> {
        let is_met = self.pending.entities.contains_key(&id) || self.met.contains(&id.get());
        if is_met || taken.iter().any(|(other, _)| *other == id) {
            return Ok(Holder::Import);
        }
        if self.pending.deleted.contains(&id) {
            return Ok(Holder::Replaced);
        }
        match self.holder_in_world(id) {
            Err(error) if error.kind() == ErrorKind::Damaged => Ok(Holder::Damaged(error.to_string())),
            holder => Ok(holder?),
        }
    }

    fn holder_in_world(&self, id: EntityId) -> Result<Holder, Error> {
        if self.head.choices.merge.is_some() {
            // A version does not tell that the rest is damaged.
            self.world.entity(id)?;
        }
        Ok(match self.world.entity_version(id)? {
            None => Holder::Nobody,
            Some(version) if version.get() > self.head.began_after => Holder::Import,
            Some(_) if self.is_left_alone(id)? => Holder::Import,
            Some(_) => Holder::World,
        })
    }

    /// Whether an entity of the world came with this import.
    pub(super) fn has_brought(&self, id: EntityId) -> Result<bool, Error> {
        let version = unless_damaged(self.world.entity_version(id))?.flatten();
        Ok(version.is_some_and(|version| version.get() > self.head.began_after))
    }

    /// Whether an entity of the world is in another dimension than one that is made of a save's: the import changes nothing
    /// outside of that.
    fn is_left_alone(&self, id: EntityId) -> Result<bool, Error> {
        let choices = &self.head.choices;
        let is_stray = || choices.take_strays && stray_of(&self.region().dimension).is_some();
        if choices.as_dimension.is_none() && !is_stray() {
            return Ok(false);
        }
        let entity = self.world.entity(id)?;
        Ok(entity.is_some_and(|entity| entity.position.dimension() != self.dimension))
    }
}

/// Those of some entities that wait for their chunk and whose chunk is stored by now, as that chunk's.
pub(super) fn adopted(world: &World, waiting: &[Uuid]) -> Result<Vec<(EntityId, Entity)>, Error> {
    let mut adopted = Vec::new();
    for id in waiting.iter().copied().map(EntityId::new) {
        let Some(entity) = unless_damaged(world.entity(id))?.flatten() else { continue };
        let at = ChunkAt::new(entity.position.dimension(), entity.position.block().chunk());
        let waits = matches!(entity.owner, Owner::Detached(_));
        if waits && unless_damaged(world.load(at))?.flatten().is_some() {
            adopted.push((id, entity.owned_by(Owner::Chunk(at))));
        }
    }
    Ok(adopted)
}

/// The first of an entity and its riders that takes more than a world allows, and how many bytes it takes.
fn too_large(group: &[EntityRecord], limit_bytes: u64) -> Option<(&EntityRecord, u64)> {
    let mut taken = group.iter().enumerate().map(|(index, record)| {
        // All but the first ride.
        let vehicle = if index == 0 { 0 } else { ORIGIN_ID_BYTES };
        let riders = record
            .riders
            .as_ref()
            .map_or(0, |riders| ORIGIN_RIDERS_BYTES + ORIGIN_ID_BYTES * riders.ids.len());
        let len_bytes = record.nbt.len() + ORIGIN_BYTES + vehicle + riders;
        (record, len_bytes as u64 + ENTITY_OVERHEAD_BYTES)
    });
    taken.find(|(_, len_bytes)| *len_bytes > limit_bytes)
}
