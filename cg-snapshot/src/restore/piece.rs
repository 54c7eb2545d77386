//! Restores one section: compares the live chunk with the captured part and combines them.
//!
//! If the live chunk has the snapshot's bytes, the section is skipped without being decoded. Otherwise the new chunk is
//! combined from both, the host is notified of each changed cell, and the chunk is saved once.

use std::sync::Arc;

use cg_format::chunk::{CellLayer, Chunk, EditError};
use cg_format::{BlockId, ChunkAt, Dimension, Editor, LocalPos, SchemaView};

use super::job::RestoreJob;
use super::options::{Merge, Unverifiable};
use super::report::BlockChange;
use crate::error::{RestoreError, SnapshotError};
use crate::kept::KeptSection;
use crate::region::{Region, Section};
use crate::section::{Outside, all_blocks, keep_also, remove_sides, spliced, without_references};
use crate::snapshot::Place;

/// A section to restore: one unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Its index in the snapshot.
    index: usize,
    /// The section in the snapshot.
    pub(super) from: Section,
    /// The section in the target.
    pub(crate) to: Section,
}

/// The context of one section, beside the job.
pub(super) struct Work<'w, E: ?Sized, F> {
    pub(super) editor: &'w mut E,
    schema: &'w (dyn SchemaView + Send + Sync),
    observe: &'w mut F,
    pub(super) piece: Piece,
}

/// The sections of a region, each with the same section moved by whole chunks in a dimension.
pub(super) fn pieces(
    region: Region,
    dimension: Dimension,
    by_chunks: [i64; 3],
) -> Box<dyn Iterator<Item = Piece> + Send> {
    let pieces = region.sections().enumerate();
    Box::new(
        pieces.filter_map(move |(index, from)| {
            Some(Piece { index, from, to: from.moved(dimension, by_chunks)? })
        }),
    )
}

impl RestoreJob {
    /// Restores a section over the live chunk.
    pub(crate) fn perform<E: Editor + ?Sized>(
        &mut self,
        piece: Piece,
        live: Option<Arc<Chunk>>,
        schema: &(dyn SchemaView + Send + Sync),
        editor: &mut E,
        observe: &mut impl FnMut(BlockChange),
    ) -> Result<(), RestoreError<E::Error>> {
        self.report.sections += 1;
        self.held.read();
        self.put_back(live.as_deref(), &mut Work { editor, schema, observe, piece })?;
        let (done, max_held_bytes) = (self.report.sections, self.options.max_held_bytes);
        if self.held.bytes() > max_held_bytes {
            return Err(RestoreError::TooMuch { done, sections: self.section_count(), max_held_bytes });
        }
        Ok(())
    }

    fn put_back<E: Editor + ?Sized, F: FnMut(BlockChange)>(
        &mut self,
        live: Option<&Chunk>,
        work: &mut Work<'_, E, F>,
    ) -> Result<(), RestoreError<E::Error>> {
        let (snapshot, piece) = (Arc::clone(&self.snapshot), work.piece);
        if self.options.merge == Merge::Keep && live.is_some() {
            self.report.kept += 1;
            return Ok(());
        }
        let blocks = match (snapshot.section(piece.index), live) {
            (Place::Lost, _) => Err(SnapshotError::Lost { at: piece.to.at }.into()),
            (Place::Absent, None) => {
                self.report.unchanged += 1;
                Ok(false)
            }
            (Place::Absent, Some(live)) => self.delete(live, work),
            (Place::Kept(kept), None) => self.create(kept, work),
            (Place::Kept(kept), Some(live)) => self.replace(kept, live, work),
        };
        let there_is_a_chunk = match blocks {
            Err(RestoreError::Snapshot(_)) if self.options.unverifiable == Unverifiable::Skip => {
                self.report.unverifiable.push(piece.to.at);
                return Ok(());
            }
            blocks => blocks?,
        };
        if there_is_a_chunk && self.options.entities && self.snapshot.info().contents.entities {
            let references = live.map_or(&[][..], Chunk::entities);
            self.replace_entities(references, work)?;
        }
        Ok(())
    }

    fn delete<E: Editor + ?Sized, F: FnMut(BlockChange)>(
        &mut self,
        live: &Chunk,
        work: &mut Work<'_, E, F>,
    ) -> Result<bool, RestoreError<E::Error>> {
        if !work.piece.to.is_whole() {
            let Some(block) = self.options.absent else {
                self.report.left_alone += 1;
                return Ok(false);
            };
            let at = work.piece.to.at;
            let empty = Chunk::filled(block, work.schema);
            let empty = empty.map_err(|error| SnapshotError::Section { at, error })?;
            return self.change(empty, live, work);
        }
        for (at, old) in all_blocks(live) {
            self.report.blocks += 1;
            work.tell(at, Some(old), None);
        }
        self.report.deleted += 1;
        self.held.change(Some(live), None);
        let at = work.piece.to.at;
        work.editor.delete(at).map_err(|error| RestoreError::Target { at, error })?;
        Ok(false)
    }

    fn create<E: Editor + ?Sized, F: FnMut(BlockChange)>(
        &mut self,
        kept: KeptSection<'_>,
        work: &mut Work<'_, E, F>,
    ) -> Result<bool, RestoreError<E::Error>> {
        let at = work.piece.to.at;
        let new = match (work.piece.to.is_whole(), self.options.absent) {
            (true, _) => self.snapshot.decode(at, kept)?,
            (false, None) => {
                self.report.left_alone += 1;
                return Ok(false);
            }
            (false, Some(block)) => {
                let saved = self.snapshot.decode(at, kept)?;
                let made = spliced(&Outside::Fill(block), &saved, &work.piece.to, work.schema);
                let mut made = made.map_err(|error| SnapshotError::Section { at, error })?;
                keep_also(&mut made, &saved, &work.piece.to);
                made
            }
        };
        for (at, block) in all_blocks(&new) {
            self.report.blocks += 1;
            work.tell(at, None, Some(block));
        }
        self.report.changed += 1;
        self.report.created += 1;
        self.held.change(None, Some(&new));
        work.save(new)?;
        Ok(true)
    }

    fn replace<E: Editor + ?Sized, F: FnMut(BlockChange)>(
        &mut self,
        kept: KeptSection<'_>,
        live: &Chunk,
        work: &mut Work<'_, E, F>,
    ) -> Result<bool, RestoreError<E::Error>> {
        let at = work.piece.to.at;
        if work.piece.to.is_whole() && self.has_bytes_of(kept, live) {
            self.report.unchanged += 1;
            return Ok(true);
        }
        let saved = self.snapshot.decode(at, kept)?;
        self.change(saved, live, work)
    }

    /// Puts the section of a saved chunk over a live one.
    fn change<E: Editor + ?Sized, F: FnMut(BlockChange)>(
        &mut self,
        saved: Chunk,
        live: &Chunk,
        work: &mut Work<'_, E, F>,
    ) -> Result<bool, RestoreError<E::Error>> {
        let at = work.piece.to.at;
        let new = self.put_together(saved, live, work);
        let new = new.map_err(|error| SnapshotError::Section { at, error })?;
        let (mut blocks, mut components) = (0, 0);
        live.for_each_difference(&new, |place, old, new| {
            blocks += 1;
            work.tell(place, old, new);
        });
        for (component, place, bytes) in new.components() {
            let kind = new.layer(place.cell, place.layer);
            let was_there = live.layer(place.cell, place.layer) == kind;
            if was_there && live.component(place, component) != Some(bytes) {
                components += 1;
                work.tell(place, kind, kind);
            }
        }
        self.report.blocks += blocks;
        self.report.components += components;
        if blocks + components == 0 && live.sides().eq(new.sides()) {
            self.report.unchanged += 1;
        } else {
            self.report.changed += 1;
            self.held.change(Some(live), Some(&new));
            work.save(new)?;
        }
        Ok(true)
    }

    /// Whether a whole live chunk has the bytes of a section, without references.
    fn has_bytes_of(&mut self, kept: KeptSection<'_>, live: &Chunk) -> bool {
        self.scratch.clear();
        live.encode(&mut self.scratch);
        let (Some((live, live_sides)), Some((saved, saved_sides))) =
            (without_references(&self.scratch), without_references(kept.bytes()))
        else {
            return false;
        };
        live == saved && (!self.snapshot.info().contents.sides || live_sides == saved_sides)
    }

    /// Combines the new chunk: the snapshot's part, and the live chunk's content where the snapshot has none.
    fn put_together<E: ?Sized, F>(
        &self,
        saved: Chunk,
        live: &Chunk,
        work: &Work<'_, E, F>,
    ) -> Result<Chunk, EditError> {
        let contents = self.snapshot.info().contents;
        let section = &work.piece.to;
        if !contents.components && live.has_unread_components() {
            // It is unknown which components belong to blocks that stay.
            return Err(EditError::UnreadComponents { block: live.block(LocalPos::default()) });
        }
        let mut new = if section.is_whole() {
            let mut new = saved;
            if !contents.sides {
                // What a conversion kept is no side data of the capture.
                let kept = new.clone();
                remove_sides(&mut new);
                for (kind, data) in live.sides() {
                    new.set_side(kind, data.to_vec());
                }
                keep_also(&mut new, &kept, section);
            }
            new
        } else {
            let mut new = spliced(&Outside::Chunk(live), &saved, section, work.schema)?;
            keep_also(&mut new, &saved, section);
            new
        };
        if !contents.components && live.components().next().is_some() {
            new = new.with_components(work.schema, |at, block, component| {
                let is_same = live.layer(at.cell, at.layer) == Some(block);
                let bytes = if is_same { live.component(at, component) } else { None };
                bytes.map(std::borrow::Cow::Borrowed)
            })?;
        }
        for id in live.entities() {
            new.add_entity(*id);
        }
        Ok(new)
    }
}

impl<E: Editor + ?Sized, F: FnMut(BlockChange)> Work<'_, E, F> {
    fn tell(&mut self, at: CellLayer, old: Option<BlockId>, new: Option<BlockId>) {
        let ChunkAt { dimension, pos } = self.piece.to.at;
        (self.observe)(BlockChange { dimension, pos: pos.block(at.cell), layer: at.layer, old, new });
    }

    fn save(&mut self, chunk: Chunk) -> Result<(), RestoreError<E::Error>> {
        let at = self.piece.to.at;
        self.editor.save(at, Arc::new(chunk)).map_err(|error| RestoreError::Target { at, error })
    }
}
