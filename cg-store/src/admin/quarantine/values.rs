//! Quarantine of damaged objects and records, and of records whose rows disagree: damage is kept, and sound rows become
//! readable again.
//!
//! The key of a damaged object is free afterwards. A record has two rows, and each may be lost without the other.
//!
//! | sound rows of the record | what is done |
//! |---|---|
//! | none | the record is absent from then on |
//! | one | its place names it, and it is written anew |
//! | more, in several leaves | the one that was written last stays, its place names it, and it is written anew |
//!
//! Every other row of it, damaged or not, is copied and deleted.

use std::ops::ControlFlow;

use cg_format::frame::{Codec, Draft, version_of};
use cg_format::key::{self, Family, RecordLeaf};
use cg_format::{RecordId, Space};

use super::Damaged;
use crate::admin::Admin;
use crate::commit::commit_log::Committing;
use crate::engine::{ALL_KEYS, Batch, EngineError, Met, Stamp, scan_skipping_damage};
use crate::kinds::object;
use crate::kinds::record::{decode, decode_place};
use crate::storage::error::{ConflictKey, Error};
use crate::storage::object_key::ObjectKey;

impl Admin<'_> {
    /// See [`Quarantine::object`](crate::quarantine::Quarantine::object).
    pub(crate) fn quarantine_object(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let key = ObjectKey::new(key)?;
        self.shared.check_open()?;
        let committing = self.commit.commit_alone()?;
        let is_sound = |row: &[u8]| object::decode(key.as_bytes(), row).is_ok();
        let Some(damaged) = self.if_damaged(Space::Object, key.as_bytes(), is_sound)? else {
            return Ok(false);
        };
        let mut batch = Batch::new();
        self.put_copy(&mut batch, &damaged, &committing)?;
        batch.delete(Space::Object, key.as_bytes());
        let what = || format!("setting object `{key}` aside");
        self.commit_quarantine(committing, batch, what, vec![ConflictKey::Object(key.clone())], |_| {})?;
        Ok(true)
    }
}

/// A row of the record in any leaf.
struct LeafRow {
    leaf: RecordLeaf,
    /// The commit that wrote it, if it is sound and in its own leaf.
    sound: Option<u64>,
    row: Damaged,
}

/// The stored place of a record.
enum Place {
    Nowhere,
    In(RecordLeaf),
    Damaged,
}

impl Admin<'_> {
    /// Every readable row of a record. Reads every record of the world.
    fn rows_of_record(&self, id: RecordId) -> Result<Vec<LeafRow>, Error> {
        let uuid = id.to_bytes();
        let mut found = Vec::new();
        scan_skipping_damage(&self.shared.engine()?.snapshot()?, Family::Record, ALL_KEYS, |met| {
            if let Met::Row(row_key, row) = met
                && row_key.ends_with(&uuid)
                && Space::of_row(Family::Record, row_key) == Some(Space::Record)
                && let Ok((leaf, _)) = key::decode_record(row_key)
            {
                let row = Damaged { space: Space::Record, key: row_key.into(), bytes: row.into() };
                found.push(self.leaf_row(id, leaf, row));
            }
            ControlFlow::<()>::Continue(())
        })?;
        Ok(found)
    }

    fn leaf_row(&self, id: RecordId, leaf: RecordLeaf, row: Damaged) -> LeafRow {
        let record = decode(id, &row.key, &row.bytes).ok();
        let sound = record.filter(|record| {
            self.shared.record_shape.leaf(record.position.dimension(), record.position.block()) == leaf
        });
        let sound = sound.and_then(|_| version_of(&row.bytes));
        LeafRow { leaf, sound, row }
    }

    fn place_of(&self, id: RecordId) -> Result<Place, Error> {
        match self.shared.engine()?.get(Space::RecordPlace, &key::record_place(id)) {
            Ok(None) => Ok(Place::Nowhere),
            Ok(Some(row)) => Ok(decode_place(id, &row).map_or(Place::Damaged, Place::In)),
            Err(EngineError::Corrupt { .. }) => Ok(Place::Damaged),
            Err(error) => Err(error.into()),
        }
    }

    /// Adds to a batch what is needed so that at most one row of a record is left, and its place names it.
    fn put_right(
        &self,
        batch: &mut Batch,
        id: RecordId,
        lying: &mut Vec<LeafRow>,
        held: &Committing<'_>,
    ) -> Result<(), Error> {
        let place = self.place_of(id)?;
        if let Place::In(leaf) = place
            && lying.iter().all(|lying| lying.leaf != leaf)
        {
            // The row is missing, or in an unreadable part of a file. Its key is known in both cases.
            let row_key = key::record(&leaf, id);
            if let Some(row) = self.if_damaged(Space::Record, &row_key, |_| false)? {
                lying.push(self.leaf_row(id, leaf, row));
            }
        }
        let kept = lying.iter().filter(|lying| lying.sound.is_some()).max_by_key(|lying| lying.sound);
        let kept_row = kept.map(|lying| (lying.row.key.clone(), lying.row.bytes.clone()));
        let kept = kept.map(|lying| lying.leaf);
        for LeafRow { row, .. } in lying.iter().filter(|lying| Some(lying.leaf) != kept) {
            self.put_copy(batch, row, held)?;
            batch.delete(Space::Record, &row.key);
        }
        let place_key = key::record_place(id);
        let is_right = match (&place, &kept) {
            (Place::Nowhere, None) => true,
            (Place::In(leaf), Some(kept)) => leaf == kept,
            _ => false,
        };
        if is_right {
            return Ok(());
        }
        if !matches!(place, Place::Nowhere) {
            self.put_copy(batch, &self.damaged_row(Space::RecordPlace, &place_key)?, held)?;
        }
        // It may be older than what was lost, so a cache that has the newer one is told of it: it becomes newer than that.
        if let Some((row_key, row)) = &kept_row {
            let record = decode(id, row_key, row)?;
            let draft = Draft::plain(Codec::None, 0, |out| record.to_record().encode(out));
            batch.put(Space::Record, row_key, draft, Stamp::Commit);
        }
        match kept {
            Some(leaf) => {
                let draft = Draft::plain(Codec::None, 0, |out| out.extend(key::record_leaf(&leaf)));
                batch.put(Space::RecordPlace, place_key, draft, Stamp::Commit);
            }
            None => batch.delete(Space::RecordPlace, place_key),
        }
        Ok(())
    }

    /// See [`Quarantine::record`](crate::quarantine::Quarantine::record).
    pub(crate) fn quarantine_record(&self, id: RecordId) -> Result<bool, Error> {
        self.shared.check_open()?;
        loop {
            // The order matters: changes that are accepted while the queue is written are detected as newer than what
            // is read.
            let begun = self.commit.log.begin();
            self.commit.drain()?;
            let mut lying = self.rows_of_record(id)?;
            let committing = self.commit.commit_alone()?;
            let record = ConflictKey::Record(id);
            if committing.written_since(begun.at, [&record]).is_some() {
                continue;
            }
            let mut batch = Batch::new();
            self.put_right(&mut batch, id, &mut lying, &committing)?;
            if batch.is_empty() {
                return Ok(false);
            }
            let what = || format!("setting record {id} aside");
            self.commit_quarantine(committing, batch, what, vec![record], |_| {})?;
            return Ok(true);
        }
    }
}
