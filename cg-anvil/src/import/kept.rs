//! Slots with an unreadable part, as objects: their bytes wait for an export.

use cg_store::ErrorKind;

use super::apply::Importer;
use super::choices::Merge;
use super::error::ImportError;
use super::ledger::Part;
use super::prepare::{self, Lost, not_kept};
use crate::codec::slot as slots;
use crate::mapping::kept::{self, Bytes, Folder, KeptSlot, Mask};
use crate::region::{ColumnPos, Extent, RawSlot, Slot};
use crate::save::RegionKind;
use crate::{Decoder, Region};

impl Importer<'_> {
    /// Reports a slot that cannot be read at all, and keeps its bytes where the world has nothing.
    pub(super) fn unread(&mut self, slot: Slot, lost: Lost) -> Result<(), ImportError> {
        let folder = match self.region().kind {
            RegionKind::Blocks | RegionKind::ByContent => Folder::Region,
            RegionKind::Entities => Folder::Entities,
            RegionKind::PointsOfInterest => Folder::Poi,
        };
        self.unread_of(slot, folder, lost)
    }

    fn unread_of(&mut self, slot: Slot, folder: Folder, lost: Lost) -> Result<(), ImportError> {
        let Lost { reason, raw } = lost;
        let place = self.region().pos.map(|region| region.column(slot));
        // Only a slot of blocks may have held a column.
        if let Some(column) = place.filter(|_| folder == Folder::Region) {
            self.ledger.note(Part::Unread, column);
        }
        self.unreadable(slot, reason.clone());
        let (Some(place), Some(raw)) = (place, raw) else { return Ok(()) };
        let kept = slots::unread(folder, raw, reason, self.is_alone(place));
        match folder {
            Folder::Region => {
                let bytes = self.encoded(slot, &kept);
                self.keep_region_slot(slot, place, bytes, false)
            }
            Folder::Entities => self.keep_entities(slot, place, &kept),
            Folder::Poi => self.keep_points(slot, place, &kept),
        }
    }

    /// As [`Importer::unread`], of a slot that was read and is too much for the world.
    pub(super) fn unread_again(
        &mut self,
        slot: Slot,
        folder: Folder,
        reason: String,
    ) -> Result<(), ImportError> {
        let lost = match Region::open(&self.region().path) {
            Ok(mut region) => prepare::lost(&mut region, slot, reason, Extent::Length),
            Err(error) => Lost { reason: format!("{reason}; {}", not_kept(&error.to_string())), raw: None },
        };
        self.unread_of(slot, folder, lost)
    }

    /// Keeps the slot of a column that is in the world only in part: all but what the mask says.
    pub(super) fn keep_torn(
        &mut self,
        slot: Slot,
        column: ColumnPos,
        kept: Option<KeptSlot>,
        mask: &Mask,
        is_masked_since: bool,
    ) -> Result<(), ImportError> {
        let kept = if is_masked_since {
            let reason = kept.map_or_else(|| "it is too large for the world".to_owned(), |kept| kept.reason);
            let region = Region::open(&self.region().path).map_err(|error| error.to_string());
            let keep =
                |mut region| prepare::keep_column(&mut region, slot, &mut Decoder::default(), mask, &reason);
            match region.and_then(keep) {
                Ok(kept) => Some(kept),
                Err(why) => {
                    self.unreadable(slot, not_kept(&why));
                    None
                }
            }
        } else {
            kept
        };
        let Some(kept) = kept else { return Ok(()) };
        let bytes = self.encoded(slot, &kept);
        self.put_kept(slot, Folder::Region, column, bytes).map(drop)
    }

    /// Keeps a slot of `entities/`, unless the world keeps the column as it is.
    pub(super) fn keep_entities(
        &mut self,
        slot: Slot,
        column: ColumnPos,
        kept: &KeptSlot,
    ) -> Result<(), ImportError> {
        if self.is_of_other_blocks(column)? {
            return Ok(());
        }
        self.ledger.note(Part::EntitySlot, column);
        let bytes = self.encoded(slot, kept);
        self.put_kept(slot, Folder::Entities, column, bytes).map(drop)
    }

    fn keep_points(&mut self, slot: Slot, column: ColumnPos, kept: &KeptSlot) -> Result<(), ImportError> {
        if self.has_points(column) || self.is_of_other_blocks(column)? {
            return Ok(());
        }
        self.ledger.note(Part::Points, column);
        let bytes = self.encoded(slot, kept);
        self.put_kept(slot, Folder::Poi, column, bytes).map(drop)
    }

    /// The object of a kept slot; of one that is too large for the world, without its bytes.
    fn encoded(&mut self, slot: Slot, kept: &KeptSlot) -> Vec<u8> {
        let bytes = kept.encode();
        let limit_bytes = self.object_limit_bytes();
        let is_large = bytes.len() as u64 > limit_bytes || !self.fits(bytes.len());
        let Bytes::Raw(raw) = &kept.bytes else { return bytes };
        if !is_large {
            return bytes;
        }
        let why = format!("it takes {} bytes, more than the {limit_bytes} of an object", bytes.len());
        self.unreadable(slot, not_kept(&why));
        let bytes = Bytes::Raw(RawSlot::without_bytes(raw.timestamp));
        KeptSlot { bytes, mapped: kept.mapped, reason: kept.reason.clone() }.encode()
    }

    /// Puts a kept slot into the next transaction, unless the world keeps its own. Says whether it did.
    pub(super) fn put_kept(
        &mut self,
        slot: Slot,
        folder: Folder,
        column: ColumnPos,
        bytes: Vec<u8>,
    ) -> Result<bool, ImportError> {
        let len_bytes = bytes.len() as u64;
        let key = kept::slot_key(folder, &self.dimension_name, column);
        if key.is_err() {
            self.unreadable(slot, not_kept("the dimension's name is too long"));
            return Ok(false);
        }
        self.pending.len_bytes += bytes.len();
        let is_put = self.put_object(key, bytes, "kept slots")?;
        if is_put {
            self.progress.report.kept_slots += 1;
            self.progress.report.kept_slot_bytes += len_bytes;
        }
        Ok(is_put)
    }

    /// Forgets what the world keeps of a slot that can be read now.
    pub(super) fn drop_kept(&mut self, folder: Folder, column: ColumnPos) -> Result<(), ImportError> {
        if self.head.choices.merge != Some(Merge::Replace) {
            return Ok(());
        }
        let Ok(key) = kept::slot_key(folder, &self.dimension_name, column) else { return Ok(()) };
        match self.world.objects().version(&key) {
            Ok(None) => {}
            Ok(Some(_)) => drop(self.pending.objects.insert(key, None)),
            // What is damaged stays, and is reported by what reads it.
            Err(error) if error.kind() == ErrorKind::Damaged => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
