//! One arena, and its row.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::thread::ThreadId;

use cg_format::frame::{Codec, Draft};
use cg_format::overlay::ArenaRow;
use cg_format::wire::{Reader, Writer};
use cg_format::{Section, Space};
use cg_store::Error;
use cg_store::engine::{Batch, CommitSeq, Readable, Stamp};
use cg_store::layer::{MetaRow, Mutex, open_row, rank};

use super::submitted::Submitted;
use crate::store::RowEngine;

/// The next lease when an arena was last removed; absent before.
pub(super) const NEXT_LEASE: MetaRow<u64> = MetaRow {
    key: "leases",
    what: "the number of the next lease",
    encode: |lease, out| Writer::new(out).u64(*lease),
    decode: |payload| {
        let mut reader = Reader::new(payload, Section::Overlay);
        let lease = reader.u64("lease")?;
        reader.end("bytes after the number")?;
        Ok(lease)
    },
};
pub(super) const ARENA_PREFIX: &str = "arena/";

/// One arena of a store. All handles to it share this.
#[derive(Debug)]
pub(super) struct Arena {
    pub(super) number: u32,
    /// The lease whose rows are the arena's content.
    pub(super) lease: AtomicU64,
    /// The lease issued last, which may not be in effect yet.
    pub(super) next: AtomicU64,
    /// Counts the tenancies. A handle of an earlier one is refused.
    pub(super) tenancy: AtomicU64,
    pub(super) row: Mutex<ArenaRow, rank::OverlayRow>,
    /// Held by the running transaction, reset or merge.
    pub(super) writing: Mutex<(), rank::OverlayWriting>,
    /// The thread that holds `writing`.
    pub(super) writer: Mutex<Option<ThreadId>, rank::OverlayWriter>,
    /// The base may contain the values of rows up to this commit: a merge may have ended between writing them and
    /// emptying the arena. 0 if no row is older than the store's opening and none was merged.
    pub(super) merged_until: AtomicU64,
    /// The time of the tick that first found it leased and without a handle; [`HELD`](Self::HELD) if it had one since.
    pub(super) unheld_since: AtomicU64,
    /// The handles of the host.
    pub(super) handles: AtomicUsize,
    /// What was submitted and is not written yet.
    pub(super) submitted: Arc<Submitted>,
}

impl Arena {
    /// No tick has found the arena without a handle.
    pub(super) const HELD: u64 = u64::MAX;

    pub(super) fn new(number: u32, row: ArenaRow, merged_until: CommitSeq) -> Self {
        Self {
            number,
            lease: AtomicU64::new(row.lease),
            next: AtomicU64::new(row.lease),
            tenancy: AtomicU64::default(),
            row: Mutex::new(row),
            writing: Mutex::default(),
            writer: Mutex::default(),
            merged_until: AtomicU64::new(merged_until.get()),
            unheld_since: AtomicU64::new(Self::HELD),
            handles: AtomicUsize::new(0),
            submitted: Arc::default(),
        }
    }
}

/// Whether the row of the next lease is sound, or absent.
///
/// # Errors
/// [`Error::Corrupt`] if it is damaged.
pub(super) fn check_next_lease(view: &dyn Readable) -> Result<(), Error> {
    NEXT_LEASE.get(view).map(drop)
}

pub(super) fn arena_key(number: u32) -> String {
    format!("{ARENA_PREFIX}{number:08x}")
}

/// Stores an arena's row: one put. Calls `applied` once readers of the engine see the row, also if only its sync failed: what
/// memory says of an arena is what its row says.
///
/// # Errors
/// The errors of the engine. [`EngineError::SyncFailed`](cg_store::engine::EngineError::SyncFailed) comes after `applied`; any
/// other, instead of it.
pub(super) fn put_arena(
    rows: &RowEngine,
    number: u32,
    row: &ArenaRow,
    applied: impl FnOnce(),
) -> Result<(), Error> {
    put_arena_in(Batch::new(), rows, number, row, applied)
}

/// As [`put_arena`], of an arena whose lease ends. What is noted of a merge of that lease is deleted in the same commit.
pub(super) fn put_next_lease(
    rows: &RowEngine,
    number: u32,
    row: &ArenaRow,
    ended: u64,
    applied: impl FnOnce(),
) -> Result<(), Error> {
    let mut batch = Batch::new();
    rows.end_merge(ended, &mut batch)?;
    put_arena_in(batch, rows, number, row, applied)
}

fn put_arena_in(
    mut batch: Batch,
    rows: &RowEngine,
    number: u32,
    row: &ArenaRow,
    applied: impl FnOnce(),
) -> Result<(), Error> {
    let draft = Draft::plain(Codec::None, 0, |out| row.encode(out));
    batch.put(Space::WorldMeta, arena_key(number).as_bytes(), draft, Stamp::Commit);
    let (_, synced) = rows.apply(batch, rows.level())?;
    applied();
    Ok(synced?)
}

pub(super) fn decode_arena(key: &[u8], row: &[u8]) -> Result<ArenaRow, Error> {
    let what = || {
        let digits = key.strip_prefix(ARENA_PREFIX.as_bytes()).unwrap_or(key);
        format!("arena {}", String::from_utf8_lossy(digits))
    };
    open_row(Space::WorldMeta, key, row, what, |frame| ArenaRow::decode(frame.payload()))
}
