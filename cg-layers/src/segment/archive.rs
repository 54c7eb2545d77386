//! A segmented world as one stream of bytes.

use std::io::{self, Write};
use std::path::Path;

use cg_format::archive::{SegmentAt, SegmentsWriter};
use cg_store::error::ArchiveError;
use cg_store::view::{Archived, DamagedRows};
use cg_store::{World, WorldOptions};

use super::closed::ClosedWorld;
use super::disk::OnDisk;
use super::pos::SegmentPos;
use super::world::SegmentedWorld;

impl SegmentedWorld<OnDisk> {
    /// Writes a segmented world that no process has open as one stream of bytes: the [archive](cg_store::WorldBuilder::archive)
    /// of its root, then that of each segment. Changes nothing.
    ///
    /// [`restore`](Self::restore) makes the world of it again; `docs/format/archive.md` describes the bytes. The root is open
    /// for reading until this returns, so no process opens the segmented world for writing meanwhile, and the archive is of one
    /// moment. A process that opens one segment as a world of its own is not kept from it: until the archive has come to that
    /// segment, what it writes there is in it. A world that is in use has an archive too: that of a
    /// [`checkpoint`](Self::checkpoint) of it. Pools of arenas are worlds of their own, and not in it. `options` are those of the
    /// root and of each segment; one segment is open at a time; `progress` gets sums.
    ///
    /// # Errors
    /// [`SegmentError::NotSegmented`](crate::SegmentError::NotSegmented); why the root or a segment cannot be opened for
    /// reading; [`SegmentError::NotKnown`](crate::SegmentError::NotKnown) if there is a segment that the root does not know;
    /// [`SegmentError::UnfinishedMerge`](crate::SegmentError::UnfinishedMerge);
    /// [`SegmentError::Lost`](crate::SegmentError::Lost), [`SegmentError::Replaced`](crate::SegmentError::Replaced),
    /// [`SegmentError::Names`](crate::SegmentError::Names), and [`SegmentError`](crate::SegmentError) if a segment is not one of
    /// this root; and as [`WorldBuilder::archive`](cg_store::WorldBuilder::archive). A stream that was not finished is refused
    /// whole.
    pub fn archive(
        dir: impl AsRef<Path>,
        to: impl Write,
        damaged: DamagedRows,
        options: &WorldOptions,
        mut progress: impl FnMut(&Archived),
    ) -> Result<Archived, ArchiveError> {
        let closed = ClosedWorld::open_whole(dir.as_ref(), options)?;
        let mut parts = Vec::new();
        let archive = SegmentsWriter::new(&mut parts)?;
        let mut pieces = Pieces { archive, to, parts };
        let mut sum = Archived::default();
        let mut add = |world: &World, pieces: &mut Pieces<_>| {
            let before = sum;
            let mut of_all = |now: &Archived| {
                sum.row_count = before.row_count + now.row_count;
                sum.len_bytes = before.len_bytes + now.len_bytes;
                sum.damaged_count = before.damaged_count + now.damaged_count;
                sum.written_bytes = before.written_bytes + now.written_bytes;
                progress(&sum);
            };
            let archived = World::builder().archive(world, pieces, damaged, &mut of_all)?;
            of_all(&archived);
            Ok::<_, ArchiveError>(archived.commit)
        };
        let commit = add(closed.root(), &mut pieces)?;
        for segment in closed.segments() {
            pieces.segment(segment)?;
            add(&closed.segment(segment)?, &mut pieces)?;
        }
        sum.commit = commit;
        sum.written_bytes = pieces.finish()?;
        progress(&sum);
        Ok(sum)
    }
}

/// What an archive is written to: pieces of the stream.
struct Pieces<W> {
    archive: SegmentsWriter,
    to: W,
    /// Parts that are not written yet.
    parts: Vec<u8>,
}

impl<W: Write> Pieces<W> {
    fn segment(&mut self, SegmentPos { dimension, x, y, z }: SegmentPos) -> Result<(), ArchiveError> {
        self.archive.segment(SegmentAt { dimension, at: [x, y, z] }, &mut self.parts)?;
        Ok(())
    }

    /// Ends the stream. Returns its length.
    fn finish(mut self) -> Result<u64, ArchiveError> {
        let len_bytes = self.archive.finish(&mut self.parts)?;
        self.to.write_all(&self.parts)?;
        self.to.flush()?;
        Ok(len_bytes)
    }
}

impl<W: Write> Write for Pieces<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.archive.bytes(bytes, &mut self.parts).map_err(io::Error::other)?;
        self.to.write_all(&self.parts)?;
        self.parts.clear();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
