//! Accepts segments, or a root, that were put back from copies.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use cg_format::EntityId;
use cg_store::{Durability, Error};

use super::history::{crossed_of_root, crossed_of_segment};
use super::home::SegmentHome;
use super::parts::Parts;
use super::pos::SegmentPos;
use super::rows::{entity_property, transfer_property};
use super::segments::Segments;

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

impl<H: SegmentHome> Segments<'_, H> {
    /// Accepts segments, or a root, that were put back from copies: makes the entities of what is there fit together,
    /// and stores that it is of one history now. Costs a visit of all entities.
    ///
    /// Each world stays as it was put back. An entity that one of them has as of another time stays so.
    ///
    /// # Errors
    /// [`SegmentError::Lost`](crate::SegmentError::Lost) if a segment is missing; [`Error::Corrupt`] at the first
    /// damaged entity; the errors of the disk. A call that failed can be repeated. [`Error::Nested`] inside a closure
    /// of [`SegmentedWorld::transaction`](crate::SegmentedWorld::transaction) or [`with`](Self::with).
    pub fn accept(&self) -> Result<AcceptedSegments, Error> {
        let Parts { root, open, borders, submissions, .. } = self.parts();
        open.refuse_inside()?;
        submissions.apply_all()?;
        let _alone = borders.moving().lock();
        let _others_wait = borders.close();
        let segments = self.list();
        let mut homes = BTreeMap::<EntityId, BTreeSet<SegmentPos>>::new();
        for segment in &segments {
            open.with_any_history(*segment, |world| {
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
        let said = root.places()?;
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
                values.push((entity_property(*id)?, Some(home.to_bytes())));
            }
        }
        for id in said.keys().filter(|id| !homes.contains_key(id)) {
            accepted.gone.push(*id);
            values.push((entity_property(*id)?, None));
        }
        for (segment, ids) in deleted {
            open.with_any_history(segment, |world| {
                world.transaction_at(Durability::Safe, |tx| {
                    for id in ids {
                        tx.delete_entity(id);
                    }
                    Ok::<_, Error>(())
                })
            })?;
        }
        root.set(Durability::Safe, values)?;
        borders.stuck().clear();
        borders.set_unfinished(false);
        for segment in segments {
            let (property, bytes) = crossed_of_root(root.world())?;
            let crossed = open.with_any_history(segment, |world| {
                world.transaction_at(Durability::Safe, |tx| {
                    tx.set_property(property, bytes);
                    Ok::<_, Error>(())
                })?;
                crossed_of_segment(segment, world)
            })?;
            root.set(Durability::Safe, [crossed])?;
        }
        Ok(accepted)
    }
}
