//! Accepts segments, or a root, that were put back from copies.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use cg_store::error::ConflictKey;
use cg_store::{Durability, Error, World};

use super::departures::departures;
use super::held::{Held, delete, for_each_key};
use super::history::{crossed_of_root, crossed_of_segment};
use super::home::SegmentHome;
use super::parts::Parts;
use super::pos::SegmentPos;
use super::root::Root;
use super::rows::{departure_property, place_property, transfer_property};
use super::segments::Segments;

/// The changes that make segments and root fit together again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AcceptedSegments {
    /// Entities, properties, objects and records that were in more than one segment, or in one and in the root. Each is
    /// deleted but in the segment that the root names; if the root names none and has it itself, it stays there.
    pub doubled: Vec<ConflictKey>,
    /// Those that were in a segment that the root does not name. The root names it now.
    pub moved: Vec<ConflictKey>,
    /// Those that the root names a segment of and that are in none. The root forgets them.
    pub gone: Vec<ConflictKey>,
}

impl<H: SegmentHome> Segments<'_, H> {
    /// Accepts segments, or a root, that were put back from copies: makes what is there fit together, and stores that
    /// it is of one history now. Costs a visit of all entities, properties, objects and records.
    ///
    /// Each world stays as it was put back. What one of them has as of another time stays so.
    ///
    /// # Errors
    /// [`SegmentError::Lost`](crate::SegmentError::Lost) if a segment is missing; [`Error::Corrupt`] at the first
    /// damaged one; the errors of the disk. A call that failed can be repeated. [`Error::Nested`] inside a closure
    /// of [`SegmentedWorld::transaction`](crate::SegmentedWorld::transaction) or [`with`](Self::with).
    pub fn accept(&self) -> Result<AcceptedSegments, Error> {
        let Parts { root, open, borders, submissions, .. } = self.parts();
        open.refuse_inside()?;
        submissions.apply_all()?;
        let _alone = borders.moving().lock();
        let _others_wait = borders.close();
        let segments = self.list();
        let mut homes = BTreeMap::<ConflictKey, BTreeSet<SegmentPos>>::new();
        for segment in &segments {
            open.with_any_history(*segment, |world| {
                let failed = for_each_key(world, |met| match met {
                    Ok(key) => {
                        homes.entry(key).or_default().insert(*segment);
                        ControlFlow::Continue(())
                    }
                    Err(error) => ControlFlow::Break(error),
                })?;
                failed.map_or(Ok(()), Err)
            })?;
        }
        let said = root.places()?;
        let mut accepted = AcceptedSegments::default();
        let mut values = vec![(transfer_property()?, None)];
        for id in departures(root.world())?.into_keys() {
            values.push((departure_property(id)?, None));
        }
        let mut deleted = BTreeMap::<SegmentPos, Vec<ConflictKey>>::new();
        let mut of_root = Vec::new();
        for (key, homes) in &homes {
            let named = said.get(key).filter(|named| homes.contains(named));
            let in_root = has_in_root(root, key)?;
            // What the root has itself stays there, unless it names a segment that has it too.
            let home = named.or_else(|| homes.first().filter(|_| !in_root));
            if homes.len() + usize::from(in_root) > 1 {
                accepted.doubled.push(key.clone());
            }
            for other in homes.iter().filter(|other| Some(*other) != home) {
                deleted.entry(*other).or_default().push(key.clone());
            }
            if in_root && home.is_some() {
                of_root.push(key.clone());
            }
            if let Some(home) = home.filter(|home| said.get(key) != Some(home)) {
                accepted.moved.push(key.clone());
                values.push((place_property(key)?, Some(home.to_bytes())));
            }
        }
        for (key, segment) in said.iter().filter(|(key, _)| !homes.contains_key(key)) {
            // The version of a deleted object counts on.
            let is_object = matches!(key, ConflictKey::Object(_));
            let has_it = |world: &World| Ok(is_object && !Held::of(world, key)?.is_absent());
            if !segments.contains(segment) || !open.with_any_history(*segment, has_it)? {
                accepted.gone.push(key.clone());
                values.push((place_property(key)?, None));
            }
        }
        for (segment, keys) in deleted {
            open.with_any_history(segment, |world| delete_all(world, &keys))?;
        }
        delete_all(root.world(), &of_root)?;
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

/// Whether the root has a value itself. It has no entities.
fn has_in_root(root: &Root, key: &ConflictKey) -> Result<bool, Error> {
    Ok(!matches!(key, ConflictKey::Entity(_)) && Held::of(root.world(), key)?.is_live())
}

/// Deletes what a world has of keys, in one synced commit.
pub(super) fn delete_all(world: &World, keys: &[ConflictKey]) -> Result<(), Error> {
    if keys.is_empty() {
        return Ok(());
    }
    let deleted =
        world.transaction_at(Durability::Safe, |tx| keys.iter().try_for_each(|key| delete(tx, key)));
    deleted.map(drop)
}
