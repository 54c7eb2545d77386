//! Copying all rows of a world into an empty engine.
//!
//! The copy is of one state. Rows come in the order of families and keys. Each part that is loaded stores with its rows
//! how far it came and the digest of all rows so far, so that an interrupted copy is continued behind the last row. To
//! continue, the rows before it are read again: maintenance moves rows from one family to another without a commit.
//!
//! **Invariant**: the last part has the row of the newest commit and the state of a finished copy. An engine without it
//! opens as no world.

use std::ops::ControlFlow;

use cg_format::Space;
use cg_format::frame::{Codec, Draft, Version};
use cg_format::key::Family;
use sha2::{Digest as _, Sha256};

use crate::admin::Admin;
use crate::engine::{
    ALL_KEYS, Batch, COMMIT_SEQUENCE_KEY, CommitSeq, Engine, Level, Readable, ReadableExt as _, SealedRow,
};
use crate::storage::copy_mark::{CopyMark, STATE, StoredState};
use crate::storage::directory::WorldFile;
use crate::storage::error::{Error, OpenError};
use crate::storage::location::Location;
use crate::storage::meta::{IDENTITY, MetaRow, open_row};

/// Rows are loaded in parts of this many bytes.
const PART_BYTES: u64 = 4 << 20;

/// How far a copy has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Copied {
    /// The commit whose rows are copied.
    pub commit: CommitSeq,
    /// The rows that this call copied.
    pub row_count: u64,
    /// Bytes of their keys and frames.
    pub len_bytes: u64,
    /// Whether the copy was begun by an earlier call, and continued.
    pub is_continued: bool,
}

/// Where a copy keeps the identity of its world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeepsIdentity {
    /// In a row.
    InRows,
    /// In `world.cg`.
    InFile,
}

impl Admin<'_> {
    /// See [`WorldBuilder::copy_over`](crate::WorldBuilder::copy_over).
    pub(crate) fn copy(
        &self,
        to: &dyn Engine,
        identity: KeepsIdentity,
        mut progress: impl FnMut(&Copied),
    ) -> Result<Copied, Error> {
        let engine = self.commit.drained_engine()?;
        // Waits while a staged commit is rolled forward, so the copy has none to finish.
        let view = engine.snapshot()?;
        let half = |at: &Location| Error::from(OpenError::HalfCreated { at: at.clone() });
        let Some(end) = view.get(Space::WorldMeta, COMMIT_SEQUENCE_KEY)? else {
            return Err(half(&self.shared.location));
        };
        let end: Box<[u8]> = (*end).into();
        let header = open_row(
            Space::WorldMeta,
            COMMIT_SEQUENCE_KEY,
            &end,
            || "the row of the newest commit",
            |frame| Ok(frame.header()),
        )?;
        let version = Version { commit: header.version, lineage: header.lineage };
        let commit = CommitSeq::new(version.commit);
        let source = self.shared.file.identity();
        let address = Location::Address(to.address());
        let mut copied = Copied { commit, ..Copied::default() };
        let mut begun = match STATE.get(to)? {
            Some(StoredState::Copying(mark)) if (mark.source, mark.commit) == (source, commit) => Some(mark),
            Some(StoredState::Creating | StoredState::Copying(_)) => return Err(half(&address)),
            // An earlier call ended without an answer.
            Some(StoredState::Copy) if is_copy_of(to, &self.shared.file, commit)? => {
                return Ok(Copied { is_continued: true, ..copied });
            }
            Some(StoredState::Copy) => return Err(OpenError::NotEmpty { at: address }.into()),
            None if to.last_commit() != CommitSeq::NONE || !to.is_empty()? => {
                return Err(OpenError::NotEmpty { at: address }.into());
            }
            None => None,
        };
        copied.is_continued = begun.is_some();
        let (mut part, mut digest) = (Part { rows: Vec::new(), len_bytes: 0 }, Digest::default());
        for family in Family::ALL {
            scan(&*view, family, |key, row| {
                if family == Family::WorldMeta && is_own(key) {
                    return Ok(());
                }
                let len_bytes = (key.len() + row.len()) as u64;
                if begun.is_none() && part.len_bytes > 0 && part.len_bytes + len_bytes > PART_BYTES {
                    let Some(SealedRow { family, key, .. }) = part.rows.last() else { return Ok(()) };
                    let (family, key, digest) = (*family, key.to_vec(), digest.now());
                    let mark = CopyMark { source, commit, digest, family, key };
                    part.load(to, &StoredState::Copying(mark))?;
                    progress(&copied);
                }
                digest.add(family, key, row);
                match &begun {
                    // The row is there already.
                    Some(mark) if (mark.family, &mark.key[..]) != (family, key) => {}
                    // Rows that moved meanwhile would be missing, or twice there.
                    Some(mark) if mark.digest != digest.now() => return Err(half(&address)),
                    Some(_) => begun = None,
                    None => {
                        part.push(family, key, row);
                        copied.row_count += 1;
                        copied.len_bytes += len_bytes;
                    }
                }
                Ok(())
            })?;
        }
        if begun.is_some() {
            return Err(half(&address));
        }
        if identity == KeepsIdentity::InRows {
            part.push_meta(&IDENTITY, &self.shared.file, version);
        }
        part.push(Family::WorldMeta, COMMIT_SEQUENCE_KEY, &end);
        part.load(to, &StoredState::Copy)?;
        if identity == KeepsIdentity::InFile {
            forget_state(to)?;
        }
        to.sync()?;
        progress(&copied);
        Ok(copied)
    }
}

/// Removes the row that says that the copy is one, where a file says it.
pub(crate) fn forget_state(engine: &dyn Engine) -> Result<(), Error> {
    let mut batch = Batch::new();
    batch.delete(Space::WorldMeta, STATE.key);
    engine.commit(batch.maintenance(), &[], Level::Process)?;
    Ok(())
}

/// Whether a row of `worldMeta` is of the place, and not of the world: the copy gets its own.
fn is_own(key: &[u8]) -> bool {
    [COMMIT_SEQUENCE_KEY, IDENTITY.key.as_bytes(), STATE.key.as_bytes()].contains(&key)
}

/// Whether an engine has a finished copy of a commit of a world.
fn is_copy_of(engine: &dyn Engine, file: &WorldFile, commit: CommitSeq) -> Result<bool, Error> {
    let stored = IDENTITY.get(engine)?;
    let is_same = stored.is_some_and(|stored| stored.identity() == file.identity());
    Ok(is_same && engine.last_commit() == commit)
}

/// Visits the rows of a family until one fails.
fn scan(
    view: &dyn Readable,
    family: Family,
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let failed = view.scan_uncached(family, ALL_KEYS, |key, row| match visit(key, row) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    })?;
    failed.map_or(Ok(()), Err)
}

/// The digest of the rows so far.
#[derive(Default)]
struct Digest(Sha256);

impl Digest {
    fn add(&mut self, family: Family, key: &[u8], row: &[u8]) {
        self.0.update([family.number()]);
        for len_bytes in [key.len(), row.len()] {
            self.0.update((len_bytes as u64).to_le_bytes());
        }
        self.0.update(key);
        self.0.update(row);
    }

    fn now(&self) -> [u8; 32] {
        self.0.clone().finalize().into()
    }
}

/// Rows that are loaded together.
struct Part {
    rows: Vec<SealedRow>,
    len_bytes: u64,
}

impl Part {
    fn push(&mut self, family: Family, key: &[u8], bytes: &[u8]) {
        let row = SealedRow { family, key: key.into(), bytes: bytes.into() };
        self.len_bytes += row.len_bytes();
        self.rows.push(row);
    }

    fn push_meta<T>(&mut self, row: &MetaRow<T>, value: &T, version: Version) {
        let draft = Draft::plain(Codec::None, 0, |out| (row.encode)(value, out));
        let bytes = draft.seal(Space::WorldMeta, row.key.as_bytes(), version);
        self.push(Family::WorldMeta, row.key.as_bytes(), &bytes);
    }

    /// Loads the rows, and how far the copy has come.
    fn load(&mut self, to: &dyn Engine, state: &StoredState) -> Result<(), Error> {
        self.push_meta(&STATE, state, Version::from(0));
        self.len_bytes = 0;
        Ok(to.load(std::mem::take(&mut self.rows))?)
    }
}
