//! The worlds of segments as they are stored: looked for, created and opened.

use std::sync::Arc;

use cg_registry::Catalog;
use cg_store::layer::{Base as _, promised_transaction};
use cg_store::{Durability, Error, World, WorldOptions};

use super::OpenSegments;
use crate::segment::checks::{check_dimension, check_is_segment, check_names};
use crate::segment::error::SegmentError;
use crate::segment::history;
use crate::segment::home::SegmentHome;
use crate::segment::pos::SegmentPos;
use crate::segment::rows::{SegmentState, own_property};

impl<H: SegmentHome> OpenSegments<H> {
    /// Whether a segment is stored, by its state in the root.
    ///
    /// # Errors
    /// [`SegmentError::NotKnown`] if a world is in its place and the root does not know it: the segment is not absent.
    pub(super) fn is_there(&self, segment: SegmentPos) -> Result<bool, Error> {
        match self.root.state(segment) {
            Some(state) => Ok(state == SegmentState::There),
            // It may have been created since the first check.
            None if self.home.has(segment)? && self.root.state(segment).is_none() => {
                Err(self.not_known(segment))
            }
            None => {
                self.root.note_absent(segment);
                Ok(false)
            }
        }
    }

    fn not_known(&self, segment: SegmentPos) -> Error {
        SegmentError::NotKnown { segment, at: self.home.location(segment) }.into()
    }

    pub(super) fn open_or_create(&self, segment: SegmentPos) -> Result<World, Error> {
        if self.root.state(segment) == Some(SegmentState::There) {
            self.open(segment)
        } else {
            self.create(segment)
        }
    }

    /// Synced at every durability: what is durable in a segment is not found if the root does not know the segment.
    fn create(&self, segment: SegmentPos) -> Result<World, Error> {
        if self.root.state(segment).is_none() && self.home.has(segment)? {
            return Err(self.not_known(segment));
        }
        check_dimension(segment, &self.root.world().catalog())?;
        self.root.note(segment, Some(SegmentState::Creating), Durability::Safe)?;
        // Records have the same leaves in all worlds, whatever a host's options say later.
        let options =
            WorldOptions { records: Some(self.root.world().record_shape()), ..self.options.clone() };
        let world = self.home.create(segment, self.root.world().catalog(), &options)?;
        let property = own_property()?;
        let mut bytes = self.root.world().identity().uuid.as_bytes().to_vec();
        segment.encode(&mut bytes);
        promised_transaction(&world, Durability::Safe, |tx| {
            tx.set_property(property, Some(bytes));
            Ok::<_, Error>(())
        })?;
        self.root.note(segment, Some(SegmentState::There), Durability::Safe)?;
        Ok(world)
    }

    pub(super) fn open(&self, segment: SegmentPos) -> Result<World, Error> {
        let world = self.open_of_any_history(segment)?;
        history::check(self.root.world(), &world, segment)?;
        Ok(world)
    }

    pub(super) fn open_of_any_history(&self, segment: SegmentPos) -> Result<World, Error> {
        if !self.home.has(segment)? {
            return Err(SegmentError::Lost { segment, at: self.home.location(segment) }.into());
        }
        let names = self.root.world().catalog();
        let check = |stored: &Catalog| Ok(check_names(segment, stored, &names)?);
        let world = self.home.open(segment, Arc::clone(&names), &check, &self.options)?;
        check_is_segment(self.root.world(), &world, segment)?;
        Ok(world)
    }
}
