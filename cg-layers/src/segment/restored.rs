//! A segmented world from one stream of bytes.

use std::fmt::Display;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::{fs, mem};

use cg_format::Limits;
use cg_format::archive::{ArchiveReader, ArchiveWriter, Fault, Piece, SegmentAt, SegmentsReader, Source};
use cg_format::frame::FrameView;
use cg_store::engine::{COMMIT_SEQUENCE_KEY, CommitSeq, ErrorKind};
use cg_store::error::ArchiveError;
use cg_store::layer::{claim, sync_parent};
use cg_store::view::Copied;
use cg_store::{Error, Identity, OpenError, World, WorldOptions};

use super::checks::check_is_segment;
use super::disk::{OnDisk, UNFINISHED};
use super::pos::SegmentPos;
use super::root::{read_side, read_there};
use super::world::SegmentedWorld;

/// Bytes in which the archive of a world has its line and its head; an upper bound.
const HEAD_BYTES: u64 = 8192;

impl SegmentedWorld<OnDisk> {
    /// Makes the segmented world of an [archive](Self::archive) in an empty or missing directory.
    ///
    /// It is the same world: opened for writing, its root and its segments become worlds of a new incarnation. One pass over
    /// the stream, with the memory of [`WorldBuilder::restore`](cg_store::WorldBuilder::restore). Until the whole archive was
    /// read and found to be sound, the directory is no segmented world. After an interruption the same call with the same
    /// archive goes on; of a world that is there as a whole, as all of them are after a restore that was finished, it compares the
    /// head.
    ///
    /// # Errors
    /// [`ArchiveError::Fault`] and [`ArchiveError::NoWorld`] for a bad archive: what this call wrote is removed, unless an
    /// earlier call had begun it. [`OpenError::NotEmpty`] if the directory has other files, or a part of another archive, and
    /// [`OpenError::HalfCreated`] if a part of a world in it is of another one.
    pub fn restore(
        from: impl Read + Send,
        dir: impl AsRef<Path>,
        options: &WorldOptions,
        progress: impl FnMut(&Copied),
    ) -> Result<Copied, ArchiveError> {
        let mut stream = Worlds::open(from)?;
        let target = Target::begin(dir.as_ref(), options)?;
        match target.fill(&mut stream, progress) {
            Err(error @ (ArchiveError::Fault(_) | ArchiveError::NoWorld { .. })) => {
                target.discard()?;
                Err(error)
            }
            restored => restored,
        }
    }
}

/// The directory of a world that is not finished.
struct Target<'o> {
    dir: PathBuf,
    /// How it is when the call begins.
    was: Was,
    options: &'o WorldOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Was {
    Missing,
    Empty,
    /// Begun by an earlier call.
    Begun,
    /// A segmented world, maybe the one of the archive.
    Finished,
}

impl<'o> Target<'o> {
    fn begin(dir: &Path, options: &'o WorldOptions) -> Result<Self, Error> {
        let dir = std::path::absolute(dir).map_err(|source| OpenError::Io {
            action: "find",
            path: dir.into(),
            source,
        })?;
        let was = if OnDisk::new(&dir).root_dir().is_dir() {
            Was::Finished
        } else if dir.join(UNFINISHED).is_dir() {
            Was::Begun
        } else if dir.exists() {
            Was::Empty
        } else {
            Was::Missing
        };
        if matches!(was, Was::Empty | Was::Missing) {
            claim(&dir)?;
        }
        Ok(Self { dir, was, options })
    }

    fn fill(
        &self,
        stream: &mut Worlds<impl Read + Send>,
        mut progress: impl FnMut(&Copied),
    ) -> Result<Copied, ArchiveError> {
        let (home, unfinished) = (OnDisk::new(&self.dir), self.dir.join(UNFINISHED));
        // A reader of archives refuses what does not begin with the root.
        stream.next_world()?;
        if self.was == Was::Finished {
            let begin = stream.begin().map_err(of_io)?;
            return Self::is_there(&home.root_dir(), &begin, &self.open(&home.root_dir())?);
        }
        let mut begun = Copied::default();
        begun.is_continued = self.was == Was::Begun;
        let mut sum = self.restore(&unfinished, &"the root", stream, begun, &mut progress)?;
        let root = self.open(&unfinished)?;
        if read_side(&root).map_err(|error| no_world(&"the root", &error))?.is_none() {
            return Err(no_world(&"the root", &"it says nothing of segments"));
        }
        let mut left = read_there(&root).map_err(|error| no_world(&"the root", &error))?;
        while let Some(segment) = stream.next_world()? {
            if !left.remove(&segment) {
                return Err(no_world(&segment, &"its root does not know it"));
            }
            let dir = home.path(segment);
            Self::make_parent(&dir)?;
            sum = self.restore(&dir, &segment, stream, sum, &mut progress)?;
            check_is_segment(&root, &self.open(&dir)?, segment)
                .map_err(|error| no_world(&segment, &error))?;
        }
        if let Some(segment) = left.first() {
            return Err(no_world(segment, &"its root knows it, and the archive has it not"));
        }
        drop(root);
        let root = home.root_dir();
        fs::rename(&unfinished, &root)
            .map_err(|source| Error::from(OpenError::Io { action: "rename", path: unfinished, source }))?;
        sync_parent(&root).and_then(|()| sync_parent(&self.dir)).map_err(Error::from)?;
        progress(&sum);
        Ok(sum)
    }

    /// Restores the world that the stream has next, and adds it to a sum.
    fn restore(
        &self,
        dir: &Path,
        name: &dyn Display,
        stream: &mut Worlds<impl Read + Send>,
        before: Copied,
        progress: &mut impl FnMut(&Copied),
    ) -> Result<Copied, ArchiveError> {
        let sum = |now: &Copied| {
            let mut sum = before;
            sum.row_count += now.row_count;
            sum.len_bytes += now.len_bytes;
            sum
        };
        let restored = match self.restore_alone(dir, stream, |now| progress(&sum(now))) {
            Err(ArchiveError::Io(error)) => Err(of_io(error)),
            // The stream was compared with its checksums: what is wrong in it was archived so.
            Err(ArchiveError::Fault(fault)) => Err(no_world(name, &fault)),
            Err(ArchiveError::NoWorld { why }) => Err(no_world(name, &why)),
            restored => restored,
        }?;
        let mut sum = sum(&restored);
        if before.commit == CommitSeq::NONE {
            sum.commit = restored.commit;
        }
        Ok(sum)
    }

    fn restore_alone(
        &self,
        dir: &Path,
        stream: &mut Worlds<impl Read + Send>,
        progress: impl FnMut(&Copied),
    ) -> Result<Copied, ArchiveError> {
        let begin = stream.begin()?;
        let restored = match self.open(dir) {
            Ok(world) => Self::is_there(dir, &begin, &world)?,
            Err(error) if error.kind() == ErrorKind::Busy => return Err(error.into()),
            Err(_) => {
                let from = (&begin[..]).chain(&mut *stream);
                World::builder().options(self.options).restore(from, dir, progress)?
            }
        };
        io::copy(stream, &mut io::sink())?;
        Ok(restored)
    }

    /// What a restore says of a world that is there already.
    ///
    /// # Errors
    /// [`OpenError::NotEmpty`] if it is not the one of the archive that begins so, or was written since.
    fn is_there(dir: &Path, begin: &[u8], world: &World) -> Result<Copied, ArchiveError> {
        let commit = world.last_commit();
        if !is_of(begin, world.identity(), commit)? {
            return Err(Error::from(OpenError::NotEmpty { at: dir.into() }).into());
        }
        let mut there = Copied::default();
        (there.commit, there.is_continued) = (commit, true);
        Ok(there)
    }

    fn open(&self, dir: &Path) -> Result<World, Error> {
        World::builder().options(self.options).open_read_only(dir)
    }

    /// Makes the directory of all segments, if it is not there.
    fn make_parent(segment: &Path) -> Result<(), Error> {
        let Some(all) = segment.parent().filter(|all| !all.is_dir()) else { return Ok(()) };
        fs::create_dir(all).map_err(|source| OpenError::Io { action: "create", path: all.into(), source })?;
        Ok(sync_parent(all)?)
    }

    /// Removes what was begun by this value, and nothing that was there before.
    fn discard(self) -> Result<(), Error> {
        if !matches!(self.was, Was::Empty | Was::Missing) {
            return Ok(());
        }
        let remove = |path: PathBuf, by: fn(&Path) -> io::Result<()>| match by(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(OpenError::Io { action: "remove", path, source })
            }
            _ => Ok(()),
        };
        // The root goes last: while it is there, it says that this is unfinished.
        remove(self.dir.join("segments"), |path| fs::remove_dir_all(path))?;
        remove(self.dir.join(UNFINISHED), |path| fs::remove_dir_all(path))?;
        if self.was == Was::Missing {
            remove(self.dir, |path| fs::remove_dir(path))?;
        }
        Ok(())
    }
}

/// Whether the head of a world's archive is of this commit of this world.
fn is_of(begin: &[u8], world: Identity, commit: CommitSeq) -> Result<bool, Fault> {
    let archive = ArchiveReader::open(begin, Limits::default())?;
    let head = archive.head();
    let row = FrameView::open(cg_format::Space::WorldMeta, COMMIT_SEQUENCE_KEY, &head.commit_row);
    let is_of_commit = row.is_ok_and(|row| row.header().version == commit.get());
    let Identity { uuid, incarnation } = world;
    Ok(is_of_commit && (head.uuid, head.incarnation) == (uuid.into_bytes(), incarnation.into_bytes()))
}

fn no_world(what: &dyn Display, why: &dyn Display) -> ArchiveError {
    ArchiveError::NoWorld { why: format!("{what}: {why}") }
}

/// The fault of the stream that its reader gave as an error of reading.
fn of_io(error: io::Error) -> ArchiveError {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Fault>()) {
        Some(fault) => (*fault).into(),
        None => error.into(),
    }
}

/// The archives of a stream, one after the other. Reads as the bytes of the one that has begun.
struct Worlds<R> {
    stream: SegmentsReader<OfReader<R>>,
    /// The bytes that were not taken yet: those from a place on.
    ready: (Vec<u8>, usize),
    /// What was read and follows these bytes.
    next: Next,
}

enum Next {
    Unread,
    /// The archive of the root, or of a segment.
    World(Option<SegmentPos>),
    End,
}

impl<R: Read> Worlds<R> {
    fn open(from: R) -> Result<Self, ArchiveError> {
        let stream = SegmentsReader::open(OfReader(from), Limits::new(ArchiveWriter::MAX_PART_BYTES))?;
        Ok(Self { stream, ready: (Vec::new(), 0), next: Next::Unread })
    }

    /// The first bytes of the archive that has begun, its head among them.
    fn begin(&mut self) -> io::Result<Vec<u8>> {
        let mut begin = Vec::new();
        self.by_ref().take(HEAD_BYTES).read_to_end(&mut begin)?;
        Ok(begin)
    }

    /// Begins the next archive, after all bytes of the one before were read. Returns its segment; `None` for the root, and
    /// after the last.
    fn next_world(&mut self) -> Result<Option<SegmentPos>, ArchiveError> {
        self.fill()?;
        match mem::replace(&mut self.next, Next::Unread) {
            Next::World(segment) => Ok(segment),
            Next::Unread | Next::End => {
                self.next = Next::End;
                Ok(None)
            }
        }
    }

    /// Reads on until there are bytes, or the next archive begins.
    fn fill(&mut self) -> Result<(), ArchiveError> {
        if self.ready.1 < self.ready.0.len() || !matches!(self.next, Next::Unread) {
            return Ok(());
        }
        match self.stream.next_piece()? {
            Some(Piece::Bytes(bytes)) => self.ready = (bytes, 0),
            Some(Piece::Root) => self.next = Next::World(None),
            Some(Piece::Segment(SegmentAt { dimension, at: [x, y, z] })) => {
                self.next = Next::World(Some(SegmentPos { dimension, x, y, z }));
            }
            None => self.next = Next::End,
        }
        Ok(())
    }
}

impl<R: Read> Read for Worlds<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.fill().map_err(|error| match error {
            ArchiveError::Io(error) => error,
            ArchiveError::Fault(fault) => io::Error::new(io::ErrorKind::InvalidData, fault),
            error => io::Error::other(error),
        })?;
        let (bytes, from) = &mut self.ready;
        let count = (&bytes[*from..]).read(buffer)?;
        *from += count;
        Ok(count)
    }
}

/// The bytes of a reader.
struct OfReader<R>(R);

impl<R: Read> Source for OfReader<R> {
    type Error = ArchiveError;

    fn take(&mut self, len_bytes: usize) -> Result<Vec<u8>, ArchiveError> {
        let mut bytes = Vec::new();
        self.0.by_ref().take(len_bytes as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
