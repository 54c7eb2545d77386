//! The rows of overlays: one engine for all arenas over a base.
//!
//! | row | family | key | value |
//! |---|---|---|---|
//! | head | `worldMeta` | `overlay` | the base, and how many of its names are known |
//! | names | `worldMeta` | as in a world | as in a world |
//! | leases | `worldMeta` | `leases` | u64: the next lease when an arena was last removed; absent before |
//! | openings | `worldMeta` | as in a world | as in a world: which opening for writing made which commit |
//! | arena | `worldMeta` | `arena/` ‖ number as 8 hex digits | its lease and its holder |
//! | merge | `worldMeta` | `merge/` ‖ lease as 16 hex digits | u64: the last commit when the lease's merge began |
//! | chunk | `chunkl0` | lease ‖ chunk key | origin, and the chunk, its delta to the base's chunk, or its deletion |
//! | ancestor | `chunkDelta` | lease ‖ chunk key | the same origin, and the base's chunk of it or the delta back to it |
//! | entity | `entity` | lease ‖ UUID | origin, and the entity or its deletion |
//! | object | `object` | lease ‖ the object's key | origin, and the object as a world stores it, even if deleted |
//! | property | `worldProperties` | lease ‖ its key in a world | origin, and its bytes or its deletion |
//! | record's place | `record` | lease ‖ key of the place | origin, and the record's leaf or its deletion |
//! | record | `record` | lease ‖ key of the record | the record |
//!
//! **Invariants**.
//! - A lease is issued once. The content of an arena is the rows of its present lease. Rows of expired leases are
//!   never read; [`sweep`](Store::sweep) deletes them.
//! - An ancestor belongs to the chunk's row of the same origin. Every commit that writes that row writes the ancestor
//!   too, or deletes it.
//! - A row in memory equals the row in the engine. A writer removes it from memory before the write and inserts it
//!   after the write, under one lock. A reader inserts a row only if nothing was written since before it read.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cg_format::chunk::Chunk;
use cg_format::frame::{Codec, Draft, FrameView};
use cg_format::lineage::{HistoryPoint, Lineage};
use cg_format::overlay::Origin;
use cg_format::wire::Reader;
use cg_format::{ChunkAt, Lookup, Section, Space};
use cg_registry::{Catalog, Registration};
use cg_store::engine::{Batch, Engine, Level, Stamp};
use cg_store::error::Damage;
use cg_store::layer::{
    ApplyLatch, Base, MetaRow, Mutex, RwLock, finish_commits, rank, read_catalog, registry_rows, with_history,
};
use cg_store::{Error, StoreLimits, WorldOptions};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use uuid::Uuid;

use super::arena::{Arena, DamagedArenas, read_arenas, read_next_lease};
use super::names::{Head, Names};
use super::rows::Row;
use super::{OverlayError, OverlayStats};

/// The base, and how many of its names are known.
const HEAD: MetaRow<Head> =
    MetaRow { key: "overlay", what: "the head of the overlay", encode: Head::encode, decode: Head::decode };

/// All arenas over one base.
pub(super) struct Store<S> {
    pub(super) base: S,
    pub(super) engine: Box<dyn Engine>,
    /// The openings that made its commits.
    lineage: Arc<Lineage>,
    /// How many overlays are stacked, this one included.
    pub(super) layer: u8,
    pub(super) limits: StoreLimits,
    head: Mutex<Head, rank::OverlayHead>,
    names: RwLock<Names, rank::OverlayNames>,
    pub(super) level: Level,
    pub(super) cache: Cache<(u64, ChunkAt), Row<Arc<Chunk>>, Weight>,
    /// Whether chunks may be stored as deltas to the base's.
    pub(super) deltas: bool,
    /// Held while rows are written and replaced in memory.
    pub(super) publishing: Mutex<(), rank::OverlayPublishing>,
    /// Held while a commit has a number and is not written yet.
    pub(super) numbering: Mutex<(), rank::OverlayNumbering>,
    pub(super) apply_latch: ApplyLatch,
    /// How many batches were written or have failed.
    pub(super) written: AtomicU64,
    pub(super) next_lease: AtomicU64,
    /// The first lease that was issued since the store was opened.
    pub(super) given_from: u64,
    pub(super) arenas: Mutex<BTreeMap<u32, Arc<Arena>>, rank::OverlayArenas>,
    pub(super) damaged: Mutex<DamagedArenas, rank::OverlayDamaged>,
    pub(super) counts: Counts,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) here: AtomicU64,
    pub(super) below: AtomicU64,
    pub(super) resets: AtomicU64,
    pub(super) rows_written: AtomicU64,
    pub(super) rows_swept: AtomicU64,
    pub(super) chunks_decoded: AtomicU64,
    pub(super) damage_met: AtomicU64,
}

#[derive(Debug, Clone)]
pub(super) struct Weight;

impl Weighter<(u64, ChunkAt), Row<Arc<Chunk>>> for Weight {
    fn weight(&self, _: &(u64, ChunkAt), row: &Row<Arc<Chunk>>) -> u64 {
        /// The size of an entry without its chunk.
        const ENTRY_BYTES: usize = 160;
        let bytes = match &row.value {
            Lookup::Found(chunk) => chunk.memory_bytes(),
            Lookup::Tombstone | Lookup::NotFound => 0,
        };
        (ENTRY_BYTES + bytes) as u64
    }
}

impl<S: Base> Store<S> {
    /// Opens an engine that is empty or holds arenas over this base.
    pub(super) fn begin(engine: Box<dyn Engine>, base: S, options: &WorldOptions) -> Result<Self, Error> {
        /// The size of a typical decoded chunk; only a hint for the size of the tables.
        const TYPICAL_BYTES: u64 = 2048;
        let layers = base.layers() + 1;
        let layer = u8::try_from(layers).map_err(|_| OverlayError::TooDeep { layers })?;
        let base_catalog = base.catalog();
        let (engine, lineage) = with_history(engine)?;
        let (mut head, names) = match HEAD.get(&*engine)? {
            None => {
                let names = Names::of_base(&base_catalog);
                let shared = names.shared;
                (Head { uuid: Uuid::new_v4(), base: base.identity(), shared }, names)
            }
            Some(head) => {
                head.check(base.identity())?;
                let names = Names::stored(read_catalog(&engine)?, head.shared, &base_catalog)?;
                (head, names)
            }
        };
        finish_commits(&*engine)?;
        head.shared = names.shared;
        let (arenas, damaged) = read_arenas(&*engine)?;
        let next_lease = read_next_lease(&*engine, &arenas, &damaged)?;
        let counts = Counts::default();
        counts.damage_met.store((damaged.gaps + damaged.numbers.len()) as u64, Ordering::Relaxed);
        let capacity = (options.cache_bytes / TYPICAL_BYTES) as usize;
        let store = Self {
            layer,
            limits: options.limits,
            head: Mutex::new(head),
            names: RwLock::new(names),
            level: if options.durability.is_synced() { Level::Power } else { Level::Process },
            cache: Cache::with_weighter(capacity, options.cache_bytes, Weight),
            deltas: options.deltas,
            publishing: Mutex::default(),
            numbering: Mutex::default(),
            apply_latch: ApplyLatch::default(),
            written: AtomicU64::default(),
            next_lease: AtomicU64::new(next_lease),
            given_from: next_lease,
            arenas: Mutex::new(arenas),
            damaged: Mutex::new(damaged),
            counts,
            base,
            engine,
            lineage,
        };
        if !store.engine.caps().read_only {
            store.store_names(&store.names.read(), base_catalog)?;
        }
        Ok(store)
    }

    /// The origin of a value that this layer has, by its version.
    pub(super) fn origin(&self, version: u64) -> Origin {
        Origin { layer: self.layer, version, opening: self.lineage.opening_of(version) }
    }

    /// Whether a value of this layer is of the history of its store.
    pub(super) fn has(&self, origin: Origin) -> bool {
        self.lineage.has(HistoryPoint { opening: origin.opening, commit: origin.version })
    }

    /// What a row of a commit carries of the opening that made it.
    pub(super) fn word_of(&self, version: u64) -> u32 {
        self.lineage.word_of(version)
    }

    /// Refuses a base whose identity is not the stored one.
    pub(super) fn check_base(&self) -> Result<(), Error> {
        let found = self.base.identity();
        Ok(self.head.lock().check(found)?)
    }

    pub(super) fn head(&self) -> Head {
        *self.head.lock()
    }

    pub(super) fn catalog(&self) -> Result<Arc<Catalog>, Error> {
        Ok(self.names.read().catalog(self.base.catalog())?)
    }

    /// The catalog, for callers that cannot return an error if the base no longer fits it.
    pub(super) fn unchecked_catalog(&self) -> Arc<Catalog> {
        self.names.read().unchecked(self.base.catalog())
    }

    pub(super) fn register(&self, new: &Registration) -> Result<Arc<Catalog>, Error> {
        let mut names = self.names.write();
        let base = self.base.catalog();
        if let Some(grown) = names.grown(Arc::clone(&base), new)? {
            self.store_names(&grown, base)?;
            *names = grown;
        }
        Ok(names.catalog(self.base.catalog())?)
    }

    pub(super) fn own_names(&self) -> Option<Registration> {
        self.names.read().own_names()
    }

    /// Drops the overlay's own names: the base has registered them under the same ids.
    pub(super) fn names_adopted(&self) -> Result<(), Error> {
        let mut names = self.names.write();
        let base = self.base.catalog();
        let adopted = names.adopted(&base)?;
        self.store_names(&adopted, base)?;
        *names = adopted;
        Ok(())
    }

    /// Stores the names that the base has issued since, before rows use them. A base that lost its newest names in a
    /// crash may issue their ids for others. It must not pass for the base of these rows.
    pub(super) fn remember_names(&self) -> Result<(), Error> {
        if self.names.read().has_all(&self.base.catalog()) {
            return Ok(());
        }
        let mut names = self.names.write();
        let base = self.base.catalog();
        if !names.has_all(&base) {
            let grown = Names::of_base(&base);
            self.store_names(&grown, base)?;
            *names = grown;
        }
        Ok(())
    }

    /// Stores the head and the names, unless they are stored already.
    fn store_names(&self, names: &Names, base: Arc<Catalog>) -> Result<(), Error> {
        let catalog = names.unchecked(base);
        let mut stored = registry_rows(&*self.engine)?;
        let mut batch = Batch::new();
        for (name, bytes) in catalog.encode_full() {
            if stored.remove(&name).as_ref() != Some(&bytes) {
                put(&mut batch, name.as_bytes(), |out| out.extend(bytes));
            }
        }
        for row in stored.keys() {
            batch.delete(Space::WorldMeta, row);
        }
        let mut head = self.head.lock();
        let now = Head { shared: names.shared, ..*head };
        if !batch.is_empty() || HEAD.get(&*self.engine)? != Some(now) {
            HEAD.put(&mut batch, &now);
            self.commit(batch, self.level)?;
            *head = now;
        }
        Ok(())
    }

    /// Makes everything that was written as durable as a level: first in the base, then here.
    pub(super) fn keep_found(&self, level: Level) -> Result<(), Error> {
        self.base.keep_found(level)?;
        let is_behind = self.engine.last_synced() < self.engine.last_commit();
        if level == Level::Power && is_behind && !self.engine.caps().read_only {
            self.engine.sync()?;
        }
        Ok(())
    }

    /// Stores until which commit the rows of a lease may be merged, or that none is.
    pub(super) fn note_merge(&self, lease: u64, until: Option<u64>) -> Result<(), Error> {
        let (key, mut batch) = (merge_key(lease), Batch::new());
        match until {
            Some(until) => put(&mut batch, key.as_bytes(), |out| out.extend(until.to_le_bytes())),
            None => batch.delete(Space::WorldMeta, key.as_bytes()),
        }
        // The base must not have rows of which this does not survive.
        self.commit(batch, if until.is_some() { Level::Power } else { self.level })?;
        Ok(())
    }

    /// Until which commit the rows of a lease may be merged; 0 if none is.
    pub(super) fn merged_until(&self, lease: u64) -> Result<u64, Error> {
        let key = merge_key(lease);
        let Some(row) = self.engine.get(Space::WorldMeta, key.as_bytes())? else { return Ok(0) };
        let damaged = |problem| Damage::of_row(Space::WorldMeta, key.as_bytes(), "a merge", problem);
        let frame = FrameView::open(Space::WorldMeta, key.as_bytes(), &row).map_err(damaged)?;
        let mut reader = Reader::new(frame.payload(), Section::Overlay);
        let until = reader.u64("merged until").map_err(damaged)?;
        reader.end("bytes after the commit").map_err(damaged)?;
        Ok(until)
    }

    pub(super) fn stats(&self) -> OverlayStats {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        OverlayStats {
            reads_here: read(&self.counts.here),
            reads_below: read(&self.counts.below),
            resets: read(&self.counts.resets),
            rows_written: read(&self.counts.rows_written),
            rows_swept: read(&self.counts.rows_swept),
            chunks_decoded: read(&self.counts.chunks_decoded),
            damage_met: read(&self.counts.damage_met),
        }
    }
}

impl<S> Drop for Store<S> {
    fn drop(&mut self) {
        if let Err(error) = self.engine.close() {
            tracing::error!(%error, layer = self.layer, "closing the overlays failed");
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for Store<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("base", &self.base).field("layer", &self.layer).finish_non_exhaustive()
    }
}

fn merge_key(lease: u64) -> String {
    format!("merge/{lease:016x}")
}

/// Whether an engine holds overlays.
#[cfg(feature = "rocks")]
pub(crate) fn holds_overlays(engine: &dyn Engine) -> Result<bool, Error> {
    Ok(HEAD.get(engine)?.is_some())
}

pub(super) fn put(batch: &mut Batch, key: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
    batch.put(Space::WorldMeta, key, Draft::plain(Codec::None, 0, write), Stamp::Commit);
}
