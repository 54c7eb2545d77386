//! A world as one stream of bytes: its rows as they are, and back. The bytes are [`cg_format::archive`]'s.

use std::io::{self, Read, Write};
use std::ops::ControlFlow;

use cg_format::archive::{ArchiveReader, ArchiveWriter, Fault, Head, Source, Totals};
use cg_format::cluster::StoredCluster;
use cg_format::codec::Codec;
use cg_format::frame::FrameView;
use cg_format::key::Family;
use cg_format::{ClusterTier, DecodeError, Limits, Problem, Section, Space};
use uuid::Uuid;

use crate::admin::Admin;
use crate::admin::copy::OfView;
use crate::admin::load::{Check, Original, RowSource, Visit, is_own};
use crate::engine::{CommitSeq, Engine, ErrorKind, row_in_words};
use crate::storage::directory::{State, WorldFile};
use crate::storage::error::{Damage, Error};
use crate::storage::meta::{WORLD, WorldRows};
use crate::storage::staged::is_part;

/// The most bytes that the rows of `worldMeta` take together. An open reads them all.
const MAX_META_BYTES: u64 = 256 << 20;

/// Why a world was not archived, or an archive not restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The bytes are no archive, or a damaged one. Restored, none of it is a world.
    #[error("{0}; {advice}", advice = advice(.0))]
    Fault(Fault),
    /// The rows of an archive with valid checksums do not make a world. None of it is one.
    #[error("the archive holds no world that this release could open: {why}")]
    NoWorld {
        /// What is wrong with them.
        why: String,
    },
    /// The names of the world, and what else it has once, take more than an archive holds.
    #[error(
        "the rows of `worldMeta`, its names among them, take more than {limit_bytes} bytes, which no archive holds"
    )]
    NamesTooLarge {
        /// The maximum.
        limit_bytes: u64,
    },
    /// The stream could not be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The world, or the place of the restored one.
    #[error(transparent)]
    Store(#[from] Error),
}

impl From<Fault> for ArchiveError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// What a person does about a fault.
const fn advice(fault: &Fault) -> &'static str {
    match fault.error {
        DecodeError { problem: Problem::Newer { .. }, .. }
        // An archive of a segmented world in the place of one of a world, or the other way round.
        | DecodeError { section: Section::ArchiveLine, problem: Problem::OutOfRange { .. }, .. } => {
            "nothing was restored"
        }
        DecodeError { section: Section::ArchiveLine, .. } => "the file is no archive of a world",
        DecodeError { section: Section::ArchivePart, problem: Problem::Truncated { .. }, .. } => {
            "the archive is cut off: copy the whole file again, or archive the world again"
        }
        _ => "the archive is damaged: take another copy of it, or archive the world again",
    }
}

/// What happens to a row that is damaged in the world that is archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DamagedRows {
    /// The archive is not finished.
    #[default]
    Refuse,
    /// It is archived as it is, and counted. Restored, it is as damaged as before.
    Keep,
}

/// How far an archive has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Archived {
    /// The commit whose rows are archived.
    pub commit: CommitSeq,
    /// The rows.
    pub row_count: u64,
    /// Bytes of their keys and frames.
    pub len_bytes: u64,
    /// The rows that are damaged.
    pub damaged_count: u64,
    /// The bytes that were written.
    pub written_bytes: u64,
}

impl Admin<'_> {
    /// See [`WorldBuilder::archive`](crate::WorldBuilder::archive).
    pub(crate) fn archive(
        &self,
        mut to: impl Write,
        damaged: DamagedRows,
        mut progress: impl FnMut(&Archived),
    ) -> Result<Archived, ArchiveError> {
        let engine = self.commit.drained_engine()?;
        let view = engine.snapshot().map_err(Error::from)?;
        let of = Original::of_view(&self.shared.file, &self.shared.location, &*view)?;
        let WorldFile { uuid, incarnation, signature, .. } = &of.file;
        let head = Head {
            uuid: *uuid.as_bytes(),
            incarnation: *incarnation.as_bytes(),
            signature: signature.clone(),
            commit_row: of.commit_row().into(),
        };
        let mut so_far = Archived { commit: of.commit(), ..Archived::default() };
        let mut parts = Vec::new();
        let mut archive = ArchiveWriter::new(Codec::Zstd, &head, &mut parts)?;
        let (mut failed, mut meta) = (None, MetaRoom::default());
        let mut add = |family, key: &[u8], row: &[u8]| {
            if !meta.take(family, key, row) {
                return Err(ArchiveError::NamesTooLarge { limit_bytes: MAX_META_BYTES });
            }
            match check_row(family, key, row) {
                Err(error) if damaged == DamagedRows::Refuse => return Err(error.into()),
                checked => so_far.damaged_count += u64::from(checked.is_err()),
            }
            archive.row(family, key, row, &mut parts)?;
            so_far.row_count += 1;
            so_far.len_bytes += (key.len() + row.len()) as u64;
            if !parts.is_empty() {
                to.write_all(&parts)?;
                so_far.written_bytes += parts.len() as u64;
                parts.clear();
                progress(&so_far);
            }
            Ok::<_, ArchiveError>(())
        };
        let visited = OfView(&*view).visit(&mut |family, key, row| match add(family, key, row) {
            Ok(()) => Ok(ControlFlow::Continue(())),
            Err(error) => {
                failed = Some(error);
                Ok(ControlFlow::Break(()))
            }
        })?;
        if let (ControlFlow::Break(()), Some(error)) = (visited, failed) {
            return Err(error);
        }
        let Totals { len_bytes, .. } = archive.finish(&mut parts)?;
        to.write_all(&parts)?;
        to.flush()?;
        so_far.written_bytes = len_bytes;
        progress(&so_far);
        Ok(so_far)
    }
}

/// How much of what the rows of `worldMeta` may take is taken.
#[derive(Debug, Default)]
struct MetaRoom {
    taken_bytes: u64,
}

impl MetaRoom {
    /// Takes the room of a row. Returns whether there is as much left.
    fn take(&mut self, family: Family, key: &[u8], row: &[u8]) -> bool {
        if family == Family::WorldMeta {
            self.taken_bytes += (key.len() + row.len()) as u64;
        }
        self.taken_bytes <= MAX_META_BYTES
    }
}

/// Checks every checksum of a row. What it holds is not decoded.
fn check_row(family: Family, key: &[u8], row: &[u8]) -> Result<(), Error> {
    let Some(space) = Space::of_row(family, key) else { return Ok(()) };
    // A part of a commit has no effect without its intent.
    if is_part(space, key) {
        return Ok(());
    }
    let checked = FrameView::open(space, key, row).and_then(|frame| match space {
        Space::ClusterL1 => check_groups(ClusterTier::L1, &frame),
        Space::ClusterL2 => check_groups(ClusterTier::L2, &frame),
        _ => Ok(()),
    });
    checked.map_err(|problem| {
        let place = row_in_words(space, key).unwrap_or_else(|| format!("a row of `{}`", family.name()));
        Damage::of_row(space, key, place, problem)
    })
}

fn check_groups(tier: ClusterTier, frame: &FrameView<'_>) -> Result<(), DecodeError> {
    let cluster = StoredCluster::new(tier, frame)?;
    cluster.groups().try_for_each(|group| cluster.group(group, &mut Limits::default()).map(drop))
}

/// An archive that is read: its world, and then its rows.
#[derive(Debug)]
pub(crate) struct OfArchive<R> {
    reader: ArchiveReader<OfReader<R>>,
}

impl<R: Read> OfArchive<R> {
    /// Reads the head.
    ///
    /// # Errors
    /// [`ArchiveError::Fault`], [`ArchiveError::Io`].
    pub(crate) fn open(reader: R) -> Result<Self, ArchiveError> {
        let limits = Limits::new(ArchiveWriter::MAX_PART_BYTES);
        Ok(Self { reader: ArchiveReader::open(OfReader(reader), limits)? })
    }

    /// The world.
    ///
    /// # Errors
    /// [`ArchiveError::NoWorld`] if the head is of none.
    pub(crate) fn original(&self) -> Result<Original, ArchiveError> {
        let Head { uuid, incarnation, signature, commit_row } = self.reader.head();
        let signed = WorldFile::signed(signature.clone()).map_err(|error| no_world(&error))?;
        let (uuid, incarnation) = (Uuid::from_bytes(*uuid), Uuid::from_bytes(*incarnation));
        let file = WorldFile { uuid, incarnation, state: State::Checkpoint, ..signed };
        let original = Original::new(file, commit_row.as_slice().into()).map_err(|error| no_world(&error))?;
        if original.commit() == CommitSeq::NONE {
            return Err(ArchiveError::NoWorld { why: "its newest commit has the number 0".into() });
        }
        Ok(original)
    }
}

fn no_world(error: &dyn std::error::Error) -> ArchiveError {
    ArchiveError::NoWorld { why: error.to_string() }
}

impl<R: Read + Send> RowSource for OfArchive<R> {
    type Error = ArchiveError;

    const CHECK: Option<Check<ArchiveError>> = Some(check_world);

    fn visit(&mut self, visit: &mut Visit<'_, ArchiveError>) -> Result<ControlFlow<()>, ArchiveError> {
        let mut meta = MetaRoom::default();
        while let Some(page) = self.reader.next_page()? {
            for (family, key, row) in page.iter() {
                if !meta.take(family, key, row) {
                    let why = format!(
                        "its names and other rows of `worldMeta` take more than {MAX_META_BYTES} bytes"
                    );
                    return Err(ArchiveError::NoWorld { why });
                }
                if family == Family::WorldMeta && is_own(key) {
                    let (at, key) = (page.offset_bytes(), key.escape_ascii());
                    let why =
                        format!("in the part at byte {at}: row `{key}`, which each world has for itself");
                    return Err(ArchiveError::NoWorld { why });
                }
                if visit(family, key, row)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// What is wrong with rows that were loaded, or the failure of the place where they are.
fn of_rows(error: Error) -> ArchiveError {
    match error.kind() {
        ErrorKind::Engine
        | ErrorKind::Unavailable
        | ErrorKind::Fenced
        | ErrorKind::InDoubt
        | ErrorKind::LowDisk => error.into(),
        _ => no_world(&error),
    }
}

/// Whether the rows are those of the world that the head names, and of one that opens.
fn check_world(engine: &dyn Engine, file: &WorldFile) -> Result<(), ArchiveError> {
    let rows = WorldRows::read(engine).map_err(of_rows)?;
    let why = match WORLD.get(engine).map_err(of_rows)? {
        Some(uuid) if uuid != file.uuid => {
            format!("its head names the world {}, its rows are of {uuid}", file.uuid)
        }
        _ if rows.limits.is_none() => "the row of the world's limits is missing".into(),
        _ => return Ok(()),
    };
    Err(ArchiveError::NoWorld { why })
}

/// The bytes of a reader.
#[derive(Debug)]
struct OfReader<R>(R);

impl<R: Read> Source for OfReader<R> {
    type Error = ArchiveError;

    fn take(&mut self, len_bytes: usize) -> Result<Vec<u8>, ArchiveError> {
        let mut bytes = Vec::new();
        self.0.by_ref().take(len_bytes as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
