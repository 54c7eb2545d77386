//! The pieces in which a promotion is put by in the root before it counts.
//!
//! They are written a few mebibytes at a time, so neither memory nor a batch of the root is ever as large as what is
//! promoted, and nobody waits for them: without the property `:promotion` they mean nothing. Who finds them without it
//! deletes them.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use cg_format::Section;
use cg_format::wire::Reader;
use uuid::Uuid;

use super::place::{PROMOTION_PREFIX, promotion_piece_property};
use super::redo::{Kept, Part, PartHead, Redo};
use super::{SegmentError, SegmentHome, SegmentPos, SegmentedWorld};
use crate::durability::Durability;
use crate::error::Error;
use crate::property::Property;
use crate::world::World;

/// A piece is not made longer than this, unless a change is.
const PIECE_BYTES: u64 = 1 << 20;
/// Nor are pieces of more than this written at once.
const AT_ONCE_BYTES: u64 = 4 << 20;
/// So many are deleted at once.
const DELETED_AT_ONCE: usize = 1024;
/// First byte of the last piece of a part.
const LAST: u8 = 1;
const NOT_LAST: u8 = 0;

/// The pieces that a root has.
pub(super) struct Pieces<'r> {
    root: &'r World,
}

impl<'r> Pieces<'r> {
    pub(super) const fn of(root: &'r World) -> Self {
        Self { root }
    }

    /// The bytes of a piece, without what says whether it is the last.
    ///
    /// # Errors
    /// If it is missing or damaged.
    pub(super) fn read(&self, number: u32, piece: u32) -> Result<Vec<u8>, Error> {
        let (mut bytes, _) = self.with_flag(number, piece)?;
        bytes.remove(0);
        Ok(bytes)
    }

    /// How many pieces a part has. Reads all of them.
    ///
    /// # Errors
    /// If one is missing or damaged.
    pub(super) fn count(&self, number: u32) -> Result<u32, Error> {
        let mut count = 0;
        loop {
            let (_, is_last) = self.with_flag(number, count)?;
            count += 1;
            if is_last {
                return Ok(count);
            }
        }
    }

    fn with_flag(&self, number: u32, piece: u32) -> Result<(Vec<u8>, bool), Error> {
        let property = promotion_piece_property(number, piece)?;
        let bytes = self.root.property(&property)?.unwrap_or_default();
        let flag = Reader::new(&bytes, Section::Overlay).u8("piece of a promotion");
        let flag =
            flag.map_err(|problem| SegmentError::DamagedRoot { what: property.to_string(), problem })?;
        Ok((bytes, flag == LAST))
    }

    /// Every piece that there is, whatever it belongs to.
    fn all(&self) -> Result<Vec<Property>, Error> {
        let mut all = Vec::new();
        self.root.for_each_property(PROMOTION_PREFIX, |met| {
            let property = match &met {
                Ok((name, _)) => Property::of_key(name.as_bytes()),
                Err(Error::Corrupt(damage)) => Property::of_key(&damage.key),
                Err(_) => None,
            };
            all.extend(property);
            ControlFlow::<()>::Continue(())
        })?;
        Ok(all)
    }

    /// One more than the greatest number of a part of which there is a piece.
    pub(super) fn part_count(&self) -> Result<u32, Error> {
        let number = |property: &Property| {
            let Property::Named(name) = property else { return None };
            let (number, _) = name.as_str().strip_prefix(PROMOTION_PREFIX)?.split_once('.')?;
            u32::from_str_radix(number, 16).ok()
        };
        let last = self.all()?.iter().filter_map(number).max();
        Ok(last.map_or(0, |last| last.saturating_add(1)))
    }

    /// The pieces of a part.
    pub(super) fn of_part(&self, number: u32) -> Result<Vec<Property>, Error> {
        let prefix = format!("{PROMOTION_PREFIX}{number:08x}.");
        let is_of_part = |property: &Property| property.to_string().starts_with(&prefix);
        Ok(self.all()?.into_iter().filter(is_of_part).collect())
    }

    fn delete(&self, pieces: &[Property]) -> Result<(), Error> {
        for some in pieces.chunks(DELETED_AT_ONCE) {
            self.root.transaction_at(Durability::Process, |tx| {
                for property in some {
                    tx.set_property(property.clone(), None);
                }
                Ok::<_, Error>(())
            })?;
        }
        Ok(())
    }
}

/// What is to be written next.
struct Writing<'r> {
    root: &'r World,
    piece_bytes: usize,
    at_once_bytes: usize,
    rows: Vec<(Property, Vec<u8>)>,
    rows_bytes: usize,
    /// Of all that was written or is to be.
    len_bytes: u64,
}

impl<'r> Writing<'r> {
    fn begin(root: &'r World) -> Result<Self, Error> {
        let at_once_bytes = AT_ONCE_BYTES.min(root.settled()?.batch_limit()? / 2).max(1);
        let piece_bytes = PIECE_BYTES.min(root.limits().property_bytes).min(at_once_bytes).max(2);
        Ok(Self {
            root,
            piece_bytes: piece_bytes as usize,
            at_once_bytes: at_once_bytes as usize,
            rows: Vec::new(),
            rows_bytes: 0,
            len_bytes: 0,
        })
    }

    /// Writes a part; returns how many pieces it has.
    fn part(&mut self, number: u32, head: &PartHead, part: &Part) -> Result<u32, Error> {
        let (mut count, mut left) = (0, Vec::new());
        part.encode(head, |bytes| {
            left.append(bytes);
            // One byte at least is left for the last.
            while left.len() > self.piece_bytes - 1 {
                let rest = left.split_off(self.piece_bytes - 1);
                let piece = std::mem::replace(&mut left, rest);
                self.piece(number, count, NOT_LAST, &piece)?;
                count += 1;
            }
            Ok(())
        })?;
        self.piece(number, count, LAST, &left)?;
        Ok(count + 1)
    }

    fn piece(&mut self, number: u32, count: u32, flag: u8, bytes: &[u8]) -> Result<(), Error> {
        if self.rows_bytes + bytes.len() > self.at_once_bytes {
            self.write()?;
        }
        let mut piece = Vec::with_capacity(bytes.len() + 1);
        piece.push(flag);
        piece.extend_from_slice(bytes);
        self.rows_bytes += piece.len();
        self.len_bytes += piece.len() as u64;
        self.rows.push((promotion_piece_property(number, count)?, piece));
        Ok(())
    }

    fn write(&mut self) -> Result<(), Error> {
        self.rows_bytes = 0;
        let rows = std::mem::take(&mut self.rows);
        self.root.transaction_at(Durability::Process, |tx| {
            for (property, bytes) in rows {
                tx.set_property(property, Some(bytes));
            }
            Ok::<_, Error>(())
        })?;
        Ok(())
    }
}

impl<H: SegmentHome> SegmentedWorld<H> {
    /// Puts the parts of a promotion by; none of them counts. Returns how many bytes they are.
    ///
    /// # Errors
    /// What the root says.
    pub(super) fn put_by(&self, id: Uuid, parts: &BTreeMap<SegmentPos, Part>) -> Result<(Redo, u64), Error> {
        self.forget_pieces()?;
        let generation = self.catalog().current_generation();
        let segment_count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        let mut redo = Redo { id, generation, segments: Vec::with_capacity(parts.len()) };
        let mut writing = Writing::begin(&self.shared.root)?;
        for (number, (segment, part)) in (0..).zip(parts) {
            let head = PartHead { id, generation, segment_count, segment: *segment };
            let pieces = writing.part(number, &head, part)?;
            redo.segments.push(Kept { number, segment: *segment, pieces, commit: u64::MAX });
        }
        writing.write()?;
        Ok((redo, writing.len_bytes))
    }

    /// Deletes the pieces of a promotion that does not count: there is none, or none any more.
    ///
    /// # Errors
    /// What the root says. They mean nothing where they stay.
    pub(super) fn forget_pieces(&self) -> Result<(), Error> {
        let pieces = Pieces::of(&self.shared.root);
        let all = pieces.all()?;
        pieces.delete(&all)
    }
}
