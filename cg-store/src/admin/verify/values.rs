//! Verification of objects, and of records with their leaves and places.

use cg_format::frame::FrameView;
use cg_format::key;
use cg_format::object::ObjectView;
use cg_format::record::RecordView;
use cg_format::{DecodeError, Space};
use cg_registry::ListKind;

use super::{Verifier, VerifyDepth};
use crate::engine::Readable;
use crate::kinds::record::decode_place;

impl Verifier<'_> {
    /// Checks one object.
    pub(super) fn object(key: &[u8], frame: &FrameView<'_>) -> Result<(), DecodeError> {
        key::check_object(key)?;
        ObjectView::decode(frame.payload()).map(drop)
    }

    /// Checks that a record is in the leaf of its position, and that its place names this leaf.
    pub(super) fn record(
        &mut self,
        view: &dyn Readable,
        key: &[u8],
        frame: &FrameView<'_>,
        depth: VerifyDepth,
    ) -> Result<(), DecodeError> {
        let (leaf, id) = key::decode_record(key)?;
        let record = RecordView::decode(frame.payload())?;
        let shape = self.shape;
        let mut find = |what: String| self.find(Space::Record.family(), Some(Space::Record), key, what);
        let position = record.position;
        if shape.leaf(position.dimension(), position.block()) != leaf {
            find(format!("record {id} does not lie in the leaf that its position names"));
        }
        if depth == VerifyDepth::Quick {
            return Ok(());
        }
        // A damaged place is reported with its own row.
        let place = view.get(Space::RecordPlace, &key::record_place(id)).ok().flatten();
        match place.as_deref().map(|row| decode_place(id, row)) {
            Some(Ok(place)) if place != leaf => find(format!("record {id} has its place in another leaf")),
            None => find(format!("record {id} has no place, so nobody finds it by its id")),
            Some(_) => {}
        }
        let issued = self.catalog.as_ref().map(|catalog| catalog.list(ListKind::Dimensions).len() as u64);
        let dimension = position.dimension().get();
        if issued.is_some_and(|issued| dimension >= issued) {
            let what = format!("dimension {dimension} of its position was never issued");
            self.find(Space::Record.family(), Some(Space::Record), key, what);
        }
        Ok(())
    }

    /// Checks that the record of a place exists.
    pub(super) fn record_place(
        &mut self,
        view: &dyn Readable,
        key: &[u8],
        frame: &FrameView<'_>,
        depth: VerifyDepth,
    ) -> Result<(), DecodeError> {
        let id = key::decode_record_place(key)?;
        let leaf = key::decode_record_leaf(frame.payload())?;
        if depth == VerifyDepth::Full && matches!(view.get(Space::Record, &key::record(&leaf, id)), Ok(None))
        {
            let what = format!("record {id} is not in the leaf that its place names");
            self.find(Space::RecordPlace.family(), Some(Space::RecordPlace), key, what);
        }
        Ok(())
    }
}
