//! Rows of a world, as they are, in parts into an empty engine: the rows of a copy, or of an archive.
//!
//! Rows come in the order of families and keys. Each part that is loaded stores with its rows how far it came and the
//! digest of all rows so far, so that what was interrupted is continued behind the last row. To continue, the rows before
//! it are read again: maintenance moves rows from one family to another without a commit. A thread reads the next part
//! while one is stored.
//!
//! **Invariant**: parts are stored in order, one after the other. After one that fails none is stored.
//! **Invariant**: the last part has the row of the newest commit and the state of a finished copy. An engine without it
//! opens as no world.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use cg_format::Space;
use cg_format::frame::{Codec, Draft, Version};
use cg_format::key::Family;
use sha2::{Digest as _, Sha256};

use crate::engine::{Batch, COMMIT_SEQUENCE_KEY, CommitSeq, Engine, Level, Readable, SealedRow};
use crate::storage::copy_mark::{CopyMark, STATE, StoredState};
use crate::storage::directory::WorldFile;
use crate::storage::error::{Error, OpenError};
use crate::storage::location::Location;
use crate::storage::meta::{IDENTITY, Identity, MetaRow, open_row};

/// Rows are loaded in parts of this many bytes, or of half of what the engine takes if that is less. The rest is for the
/// row that says how far the copy came.
const MAX_PART_BYTES: u64 = 4 << 20;

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

/// Visits a row: its family, its key, and the row with its frame.
pub(crate) type Visit<'v, E> = dyn FnMut(Family, &[u8], &[u8]) -> Result<ControlFlow<()>, E> + 'v;

/// Looks at rows in their new place.
pub(crate) type Check<E> = fn(&dyn Engine, &WorldFile) -> Result<(), E>;

/// The rows of one state of a world, without those of its [place](is_own), in the order of families and keys.
pub(crate) trait RowSource: Send {
    /// What can go wrong.
    type Error: From<Error> + Send;

    /// What looks at the rows before the last one makes a world of them.
    const CHECK: Option<Check<Self::Error>>;

    /// Visits the rows until a visit fails or ends it.
    fn visit(&mut self, visit: &mut Visit<'_, Self::Error>) -> Result<ControlFlow<()>, Self::Error>;
}

/// The world whose rows are loaded.
#[derive(Debug)]
pub(crate) struct Original {
    /// Its identity.
    pub(crate) file: WorldFile,
    /// The row of its newest commit.
    end: Box<[u8]>,
    version: Version,
}

impl Original {
    /// A world with the row of its newest commit.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if that is damaged.
    pub(crate) fn new(file: WorldFile, end: Box<[u8]>) -> Result<Self, Error> {
        let header = open_row(
            Space::WorldMeta,
            COMMIT_SEQUENCE_KEY,
            &end,
            || "the row of the newest commit",
            |frame| Ok(frame.header()),
        )?;
        let version = Version { commit: header.version, lineage: header.lineage };
        Ok(Self { file, end, version })
    }

    /// A world in one state of its rows.
    ///
    /// # Errors
    /// [`OpenError::HalfCreated`] if it is not ready; those of the engine.
    pub(crate) fn of_view(file: &WorldFile, at: &Location, view: &dyn Readable) -> Result<Self, Error> {
        match view.get(Space::WorldMeta, COMMIT_SEQUENCE_KEY)? {
            Some(end) => Self::new(file.clone(), (*end).into()),
            None => Err(OpenError::HalfCreated { at: at.clone() }.into()),
        }
    }

    pub(crate) const fn commit(&self) -> CommitSeq {
        CommitSeq::new(self.version.commit)
    }

    /// The row of the newest commit.
    pub(crate) fn commit_row(&self) -> &[u8] {
        &self.end
    }
}

/// Loads all rows of a source, or those behind what an interrupted call loaded.
///
/// # Errors
/// [`OpenError::NotEmpty`] if the engine has rows, [`OpenError::HalfCreated`] if it has a part of another copy; those of
/// the source and of the engine.
pub(crate) fn load_rows<S: RowSource>(
    source: S,
    of: &Original,
    to: &dyn Engine,
    identity: KeepsIdentity,
    mut progress: impl FnMut(&Copied),
) -> Result<Copied, S::Error> {
    let address = Location::Address(to.address());
    let half = || Error::from(OpenError::HalfCreated { at: address.clone() });
    let not_empty = || Error::from(OpenError::NotEmpty { at: address.clone() });
    let (commit, world) = (of.commit(), of.file.identity());
    let mut copied = Copied { commit, ..Copied::default() };
    let begun = match STATE.get(to)? {
        Some(StoredState::Copying(mark)) if (mark.source, mark.commit) == (world, commit) => Some(mark),
        Some(StoredState::Creating | StoredState::Copying(_)) => return Err(half().into()),
        // An earlier call ended without an answer.
        Some(StoredState::Copy) if is_copy_of(to, &of.file, commit)? => {
            to.sync().map_err(Error::from)?;
            return Ok(Copied { is_continued: true, ..copied });
        }
        Some(StoredState::Copy) => return Err(not_empty().into()),
        None if to.last_commit() != CommitSeq::NONE || !to.is_empty().map_err(Error::from)? => {
            return Err(not_empty().into());
        }
        None => None,
    };
    copied.is_continued = begun.is_some();
    let reader = Reader {
        source: world,
        begun,
        half,
        part_bytes: MAX_PART_BYTES.min(to.caps().max_batch_bytes / 2),
        digest: Digest::default(),
        part: Part::default(),
        copied,
    };
    let (mut last, copied) = thread::scope(|scope| {
        // The reader waits until its part is taken, so memory has two.
        let (give, parts) = sync_channel(0);
        let reading = thread::Builder::new().name("cg-store-copy".into());
        let reading = reading.spawn_scoped(scope, move || reader.read(source, &give));
        let reading = reading.map_err(|error| Error::from(OpenError::Threads { source: error.into() }))?;
        // When this ends by an error, the next part finds no taker, and the reader ends.
        for Full { part, so_far } in parts {
            to.load(part.rows).map_err(Error::from)?;
            progress(&so_far);
        }
        reading.join().unwrap_or_else(|panicked| resume_unwind(panicked))
    })?;
    if let Some(check) = S::CHECK {
        to.load(std::mem::take(&mut last).rows).map_err(Error::from)?;
        check(to, &of.file)?;
    }
    if identity == KeepsIdentity::InRows {
        last.push_meta(&IDENTITY, &of.file, of.version);
    }
    last.push(Family::WorldMeta, COMMIT_SEQUENCE_KEY, &of.end);
    last.push_meta(&STATE, &StoredState::Copy, Version::from(0));
    to.load(last.rows).map_err(Error::from)?;
    if identity == KeepsIdentity::InFile {
        forget_state(to)?;
    }
    to.sync().map_err(Error::from)?;
    progress(&copied);
    Ok(copied)
}

/// A part that is ready, and how far the copy has come with it.
struct Full {
    part: Part,
    so_far: Copied,
}

/// Rows that are read in parts.
struct Reader<F> {
    /// The world that they are of.
    source: Identity,
    /// How far an earlier call came; `None` from the row after it on.
    begun: Option<CopyMark>,
    /// The error of a part that is of another state.
    half: F,
    part_bytes: u64,
    digest: Digest,
    part: Part,
    copied: Copied,
}

impl<F: Fn() -> Error> Reader<F> {
    /// Gives all parts but the last, which it returns. Ends early if nothing takes them any more.
    fn read<S: RowSource>(
        mut self,
        mut source: S,
        give: &SyncSender<Full>,
    ) -> Result<(Part, Copied), S::Error> {
        let visited = source.visit(&mut |family, key, row| Ok(self.add(family, key, row, give)?))?;
        if visited.is_continue() && self.begun.is_some() {
            return Err((self.half)().into());
        }
        if S::CHECK.is_none() {
            return Ok((self.part, self.copied));
        }
        // It is loaded before the rows that make it a world, and says until then that it is none.
        let Full { part, so_far } = self.full();
        Ok((part, so_far))
    }

    /// Adds a row, after it gave the part before it if that is full.
    fn add(
        &mut self,
        family: Family,
        key: &[u8],
        row: &[u8],
        give: &SyncSender<Full>,
    ) -> Result<ControlFlow<()>, Error> {
        let len_bytes = (key.len() + row.len()) as u64;
        let is_full = self.part.len_bytes > 0 && self.part.len_bytes + len_bytes > self.part_bytes;
        if self.begun.is_none() && is_full && give.send(self.full()).is_err() {
            return Ok(ControlFlow::Break(()));
        }
        self.digest.add(family, key, row);
        match &self.begun {
            // The row is there already.
            Some(mark) if (mark.family, &mark.key[..]) != (family, key) => {}
            // Rows that moved meanwhile would be missing, or twice there.
            Some(mark) if mark.digest != self.digest.now() => return Err((self.half)()),
            Some(_) => self.begun = None,
            None => {
                self.part.push(family, key, row);
                self.copied.row_count += 1;
                self.copied.len_bytes += len_bytes;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The part as it is, with the row that says how far the copy has come.
    fn full(&mut self) -> Full {
        let mut part = std::mem::take(&mut self.part);
        if let Some(SealedRow { family, key, .. }) = part.rows.last() {
            let (source, commit, family, key) = (self.source, self.copied.commit, *family, key.to_vec());
            let mark = CopyMark { source, commit, digest: self.digest.now(), family, key };
            part.push_meta(&STATE, &StoredState::Copying(mark), Version::from(0));
        }
        Full { part, so_far: self.copied }
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
pub(crate) fn is_own(key: &[u8]) -> bool {
    [COMMIT_SEQUENCE_KEY, IDENTITY.key.as_bytes(), STATE.key.as_bytes()].contains(&key)
}

/// Whether an engine has a finished copy of a commit of a world.
fn is_copy_of(engine: &dyn Engine, file: &WorldFile, commit: CommitSeq) -> Result<bool, Error> {
    let stored = IDENTITY.get(engine)?;
    let is_same = stored.is_some_and(|stored| stored.identity() == file.identity());
    Ok(is_same && engine.last_commit() == commit)
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
#[derive(Default)]
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
}
