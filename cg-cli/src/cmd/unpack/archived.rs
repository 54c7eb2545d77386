//! A part of an archive as a pack: its rows in a world that lasts as long as the command.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek as _};
use std::path::{Path, PathBuf};

use cg_format::archive::{ArchiveReader, ArchiveWriter, Fault, LINE_BYTES, Source, is_of_segments};
use cg_format::codec::Codec;
use cg_format::key::{self, Family};
use cg_format::{BlockBox, ChunkBox, ClusterTier, Limits};
use cg_store::World;
use cg_store::error::ArchiveError;
use uuid::Uuid;

use crate::args::options;
use crate::cmd::pack::{ChoiceArg, Left, is_worlds_own};
use crate::output::{Failure, Output};

/// The beginning of every archive.
const LINE: &[u8] = b"cherrygrove archive ";

/// Whether a file begins like an archive. It is at its first byte afterwards.
pub(super) fn is_archive(file: &File) -> io::Result<bool> {
    Ok(line(file)?.starts_with(LINE))
}

/// The first line of an archive.
fn line(mut file: &File) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    file.take(LINE_BYTES as u64).read_to_end(&mut line)?;
    file.rewind()?;
    Ok(line)
}

/// Packs a part of an archive into a file without a name. Returns it at its first byte, and what it left out.
pub(super) fn packed(
    file: File,
    path: &Path,
    choice: &ChoiceArg,
    out: &Output,
) -> Result<(File, Left), Failure> {
    let chosen = choice.get()?;
    let failed = |error: io::Error| Failure::io("write", &std::env::temp_dir(), &error);
    let folder = Folder::new().map_err(failed)?;
    let named = |error: &dyn std::fmt::Display| Failure::damaged(format!("{}: {error}", path.display()));
    let unread = |error: io::Error| match error.kind() {
        io::ErrorKind::InvalidData => named(&error),
        _ => Failure::io("read", path, &error),
    };
    if is_of_segments(&line(&file).map_err(unread)?) {
        return Err(Failure::refused(format!(
            "{} is the archive of a segmented world: restore it with `cg restore`, and take the part with `cg pack` from the segments that have it",
            path.display()
        )));
    }
    let rows = Rows::new(file, chosen.area, chosen.properties.clone()).map_err(unread)?;
    let world = folder.0.join("world");
    let options = options();
    World::builder().options(&options).restore(rows, &world, |_| {}).map_err(|error| match error {
        ArchiveError::Store(error) => error.into(),
        ArchiveError::Io(error) => unread(error),
        error => named(&error),
    })?;
    let world = World::builder().options(&options).open_read_only(&world)?;
    let left = choice.left(&world, &chosen)?;
    let pack = folder.0.join("pack");
    let to = File::options().read(true).write(true).create_new(true).open(&pack).map_err(failed)?;
    let (to, _) = choice.pack(&world, &chosen, BufWriter::new(to), &pack, out)?;
    let mut to = to.into_inner().map_err(|error| failed(error.into_error()))?;
    to.rewind().map_err(failed)?;
    Ok((to, left))
}

/// A folder for temporary files, which goes with this value.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("cg-unpack-{}", Uuid::new_v4()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What went wrong matters more than that it could not be deleted.
        let _gone = fs::remove_dir_all(&self.0);
    }
}

/// An archive of the rows of an archive that a box needs: names and values, and of chunks those of its columns.
struct Rows<R> {
    reader: ArchiveReader<OfReader<R>>,
    /// `None` after the end.
    writer: Option<ArchiveWriter>,
    area: Option<ChunkBox>,
    /// How the names of the properties begin.
    properties: Vec<String>,
    ready: Vec<u8>,
    read: usize,
}

impl<R: Read> Rows<R> {
    fn new(file: R, area: Option<BlockBox>, properties: Vec<String>) -> io::Result<Self> {
        let limits = Limits::new(ArchiveWriter::MAX_PART_BYTES);
        let reader = ArchiveReader::open(OfReader(file), limits)?;
        let mut ready = Vec::new();
        let writer = ArchiveWriter::new(Codec::None, reader.head(), &mut ready).map_err(of_fault)?;
        let area = area.map(|area| area.chunks());
        Ok(Self { reader, writer: Some(writer), area, properties, ready, read: 0 })
    }

    /// Whether a row is needed.
    fn takes(area: Option<ChunkBox>, properties: &[String], family: Family, key: &[u8]) -> bool {
        let meets = |[x0, x1]: [i64; 2], [z0, z1]: [i64; 2]| {
            area.is_some_and(|area| {
                let (min, max) = (area.min(), area.max());
                x0 <= max.x() && x1 >= min.x() && z0 <= max.z() && z1 >= min.z()
            })
        };
        let of_cluster = |tier: ClusterTier| {
            let shift = match tier {
                ClusterTier::L1 => 2,
                ClusterTier::L2 => 4,
            };
            key::decode_cluster(tier, key).is_ok_and(|(_, pos)| {
                let span = |at: i64| [at << shift, ((at + 1) << shift) - 1];
                meets(span(pos.x()), span(pos.z()))
            })
        };
        match family {
            Family::WorldMeta | Family::Object => true,
            Family::ChunkL0 => key::decode_chunk(key).is_ok_and(|at| meets([at.pos.x(); 2], [at.pos.z(); 2])),
            Family::ChunkDelta => {
                key::decode_delta(key).is_ok_and(|(at, _)| meets([at.pos.x(); 2], [at.pos.z(); 2]))
            }
            Family::ChunkL1 => of_cluster(ClusterTier::L1),
            Family::ChunkL2 => of_cluster(ClusterTier::L2),
            Family::Entity | Family::Record => area.is_some(),
            Family::WorldProperties => {
                !is_worlds_own(key) && properties.iter().any(|prefix| key.starts_with(prefix.as_bytes()))
            }
            Family::OpacityMap | Family::Snapshot | Family::Index => false,
        }
    }

    /// Makes the next bytes ready. There are none only after the end.
    fn fill(&mut self) -> io::Result<()> {
        while self.read == self.ready.len() {
            self.ready.clear();
            self.read = 0;
            let Some(mut writer) = self.writer.take() else { return Ok(()) };
            match self.reader.next_page()? {
                Some(page) => {
                    for (family, key, row) in page.iter() {
                        if Self::takes(self.area, &self.properties, family, key) {
                            writer.row(family, key, row, &mut self.ready).map_err(of_fault)?;
                        }
                    }
                    self.writer = Some(writer);
                }
                None => drop(writer.finish(&mut self.ready).map_err(of_fault)?),
            }
        }
        Ok(())
    }
}

impl<R: Read> Read for Rows<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.fill()?;
        let left = self.ready.get(self.read..).unwrap_or_default();
        let count = left.len().min(buffer.len());
        buffer[..count].copy_from_slice(&left[..count]);
        self.read += count;
        Ok(count)
    }
}

/// The bytes of a file.
struct OfReader<R>(R);

/// What is wrong with the bytes or the file.
struct ReadError(io::Error);

impl From<Fault> for ReadError {
    fn from(fault: Fault) -> Self {
        Self(of_fault(fault))
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        error.0
    }
}

fn of_fault(fault: Fault) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{fault}; nothing was written"))
}

impl<R: Read> Source for OfReader<R> {
    type Error = ReadError;

    fn take(&mut self, len_bytes: usize) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::new();
        self.0.by_ref().take(len_bytes as u64).read_to_end(&mut bytes).map_err(ReadError)?;
        Ok(bytes)
    }
}
