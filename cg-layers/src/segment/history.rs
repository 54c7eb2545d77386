//! Whether root and segments are of one history: a world that was put back from a copy lacks transfers that the others know.
//!
//! | property | of | value |
//! |---|---|---|
//! | `:crossed/D.X.Y.Z` | the root | a commit of the segment after its newest transfer: opening u64, commit u64 |
//! | `:crossed` | a segment | a commit of the root after its newest transfer: the same |
//!
//! A world has such a commit if its [openings](cg_format::lineage) say so. Only synced commits are stored, because a power cut
//! may take others back. So with transfers that are not synced, a copy is noticed if it lacks a commit that was synced then.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use cg_format::lineage::HistoryPoint;
use cg_format::wire::{Reader, Writer};
use cg_format::{DecodeError, EntityId};
use cg_store::layer::newest_synced;
use cg_store::{Durability, Error, Property, World};

use super::place::{
    ENTITY_PREFIX, crossed_property, entity_property, own_crossed_property, transfer_property, whole,
};
use super::transaction::encode as encode_segment;
use super::{SegmentError, SegmentHome, SegmentPos, SegmentedWorld};

/// A property to be set.
type ToSet = (Property, Option<Vec<u8>>);

/// The changes that make segments and root fit together again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AcceptedSegments {
    /// Entities that were in more than one segment. Each is deleted but in the segment that the root names.
    pub doubled: Vec<EntityId>,
    /// Entities that were in a segment that the root does not name. The root names it now.
    pub moved: Vec<EntityId>,
    /// Entities that the root names a segment of and that are in none. The root forgets them.
    pub gone: Vec<EntityId>,
}

impl<H: SegmentHome> SegmentedWorld<H> {
    /// Accepts segments, or a root, that were put back from copies: makes the entities of what is there fit together, and
    /// stores that it is of one history now. Costs a visit of all entities.
    ///
    /// Each world stays as it was put back. An entity that one of them has as of another time stays so.
    ///
    /// # Errors
    /// [`SegmentError::Lost`] if a segment is missing; [`Error::Corrupt`] at the first damaged entity; the errors of the
    /// disk. A call that failed can be repeated. [`Error::Nested`] inside a closure of
    /// [`transaction`](Self::transaction) or [`with_segment`](Self::with_segment).
    pub fn accept_segments(&self) -> Result<AcceptedSegments, Error> {
        self.refuse_inside()?;
        let _alone = self.shared.moving.lock();
        let _others_wait = self.shared.borders.write();
        let segments = self.segments();
        let mut homes = BTreeMap::<EntityId, BTreeSet<SegmentPos>>::new();
        for segment in &segments {
            self.with_any_history(*segment, |world| {
                let failed = world.read_view(|view| {
                    view.for_each_entity(|met| match met {
                        Ok((id, _)) => {
                            homes.entry(id).or_default().insert(*segment);
                            ControlFlow::Continue(())
                        }
                        Err(error) => ControlFlow::Break(error),
                    })
                })?;
                failed.map_or(Ok(()), Err)
            })?;
        }
        let said = self.said_homes()?;
        let mut accepted = AcceptedSegments::default();
        let mut values = vec![(transfer_property()?, None)];
        let mut deleted = BTreeMap::<SegmentPos, Vec<EntityId>>::new();
        for (id, homes) in &homes {
            let named = said.get(id).filter(|named| homes.contains(named)).or_else(|| homes.first());
            let Some(home) = named else { continue };
            if homes.len() > 1 {
                accepted.doubled.push(*id);
            }
            for other in homes.iter().filter(|other| *other != home) {
                deleted.entry(*other).or_default().push(*id);
            }
            if said.get(id) != Some(home) {
                accepted.moved.push(*id);
                values.push((entity_property(*id)?, Some(encode_segment(*home))));
            }
        }
        for id in said.keys().filter(|id| !homes.contains_key(id)) {
            accepted.gone.push(*id);
            values.push((entity_property(*id)?, None));
        }
        for (segment, ids) in deleted {
            self.with_any_history(segment, |world| {
                world.transaction_at(Durability::Safe, |tx| {
                    for id in ids {
                        tx.delete_entity(id);
                    }
                    Ok::<_, Error>(())
                })
            })?;
        }
        self.set_in_root(Durability::Safe, values)?;
        self.shared.stuck.lock().clear();
        self.shared.unfinished.store(false, Ordering::Release);
        for segment in segments {
            let (property, bytes) = self.crossed_of_root()?;
            let point = self.with_any_history(segment, |world| {
                world.transaction_at(Durability::Safe, |tx| {
                    tx.set_property(property, bytes);
                    Ok::<_, Error>(())
                })?;
                Ok(newest_synced(world))
            })?;
            self.set_in_root(Durability::Safe, [(crossed_property(segment)?, Some(encode(point)))])?;
        }
        Ok(accepted)
    }

    /// The segment that the root names for each entity.
    fn said_homes(&self) -> Result<BTreeMap<EntityId, SegmentPos>, Error> {
        let mut said = BTreeMap::new();
        let failed = self.shared.root.read_view(|view| {
            view.for_each_property(ENTITY_PREFIX, |met| {
                let add = || -> Result<(), Error> {
                    let (name, value) = met?;
                    let id = name.strip_prefix(ENTITY_PREFIX).and_then(|id| id.parse().ok());
                    if let Some(id) = id.map(EntityId::new) {
                        said.insert(id, whole(name, value, SegmentPos::read)?);
                    }
                    Ok(())
                };
                add().map_or_else(ControlFlow::Break, ControlFlow::Continue)
            })
        })?;
        failed.map_or(Ok(said), Err)
    }

    /// The property of a segment that says which transfer of the root it knows.
    pub(super) fn crossed_of_root(&self) -> Result<ToSet, Error> {
        Ok((own_crossed_property()?, Some(encode(newest_synced(&self.shared.root)))))
    }

    /// The properties of the root that say which transfers of segments it knows, after a transfer.
    pub(super) fn crossed_of(
        &self,
        segments: impl IntoIterator<Item = SegmentPos>,
    ) -> Result<Vec<ToSet>, Error> {
        let mut values = Vec::new();
        for segment in segments.into_iter().collect::<BTreeSet<_>>() {
            if let Some(point) = self.with_stored(segment, |world| Ok(newest_synced(world)))? {
                values.push((crossed_property(segment)?, Some(encode(point))));
            }
        }
        Ok(values)
    }
}

/// Refuses a segment if it, or the root, lacks a transfer that the other knows.
pub(super) fn check(root: &World, world: &World, segment: SegmentPos) -> Result<(), Error> {
    let known = |of: &World, property: Property| {
        let bytes = of.property(&property)?;
        bytes.map(|bytes| whole(format_args!("transfer of {segment}"), &bytes, decode)).transpose()
    };
    for (name, there, property, knows) in [
        ("the segment", world, crossed_property(segment)?, root),
        ("the root", root, own_crossed_property()?, world),
    ] {
        if let Some(point) = known(knows, property)?
            && !cg_store::layer::has_point(there, point)
        {
            return Err(SegmentError::Replaced { segment, what: name, commit: point.commit }.into());
        }
    }
    Ok(())
}

fn encode(HistoryPoint { opening, commit }: HistoryPoint) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    writer.u64(opening);
    writer.u64(commit);
    bytes
}

fn decode(reader: &mut Reader<'_>) -> Result<HistoryPoint, DecodeError> {
    Ok(HistoryPoint { opening: reader.u64("opening")?, commit: reader.u64("commit")? })
}
