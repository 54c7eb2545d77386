//! Where overlays keep their rows: one engine for all arenas over a base.
//!
//! | row | family | key | value |
//! |---|---|---|---|
//! | head | `worldMeta` | `overlay` | the base and how many of its names are known |
//! | names | `worldMeta` | as in a world | as in a world |
//! | leases | `worldMeta` | `leases` | u64: no lease from this on was ever given; only once an arena was removed |
//! | arena | `worldMeta` | `arena/` ‖ number as 8 hex digits | its lease and its holder |
//! | chunk | `chunkl0` | lease ‖ chunk key | what was there before, and the chunk, what of it differs from that, or that it is deleted |
//! | entity | `entity` | lease ‖ UUID | the same of an entity |
//! | object | `object` | lease ‖ the object's key | what was there before, and the object as a world stores it, a deleted one too |
//! | property | `worldProperties` | lease ‖ the key that it has in a world | what was there before, and its bytes or that it is deleted |
//! | record's place | `record` | lease ‖ key of the place | what was there before, and the record's leaf or that it is deleted |
//! | record | `record` | lease ‖ key of the record | the record |
//!
//! **Invariants**.
//! - A lease's number is given once. What an arena holds are the rows of its present lease; rows of other leases are
//!   garbage that is never read; [`sweep`](Store::sweep) deletes it.
//! - What is remembered of a row is what the engine holds: it is taken out under the lock under which the row is written,
//!   before that, and put in when it is written; by a reader only if nothing was written since before it read.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cg_format::chunk::Chunk;
use cg_format::delta::Delta;
use cg_format::entity::Entity;
use cg_format::frame::{Codec, Draft, FrameView};
use cg_format::key::{Family, RecordLeaf};
use cg_format::overlay::{Origin, OverlayRow, OverlayValue};
use cg_format::record::Record;
use cg_format::{ChunkAt, EntityId, Lookup, RecordId, Space, Tier, key};
use cg_registry::{Catalog, Registration};
use cg_store::engine::{
    Batch, CommitSeq, Engine, EngineError, Level, Readable as _, ReadableExt as _, Stamp,
};
use cg_store::error::{ConflictKey, Damage};
use cg_store::layer::{
    ApplyLatch, Applying, Base, Found, Mutex, RwLock, check_parts, decode, finish_commits, origin_of, rank,
    read_catalog, registry_rows, upgrade_entity, worth_a_delta,
};
use cg_store::objects::{ObjectKey, StoredObject};
use cg_store::view::StoredChunk;
use cg_store::{Error, Property, StoreLimits, WorldOptions};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use uuid::Uuid;

use super::arena::{Arena, DamagedArenas, read_arenas, read_next_lease};
use super::names::{Head, Names};
use super::properties::{decode_property, put_property};
use super::values::{decode_object, put_object, put_record, read_record, whole};
use super::{OverlayError, OverlayStats};

const HEAD_KEY: &[u8] = b"overlay";

/// What the layers of a row said: of a chunk or an entity.
#[derive(Debug, Clone)]
pub(super) struct Row<T> {
    /// Here or deleted.
    pub(super) value: Lookup<T>,
    /// The store's commit that wrote it.
    pub(super) version: u64,
    pub(super) origin: Origin,
}

/// A chunk's row as it is shown; with what the base had, if it is that and a delta.
type Remembered = (Row<Arc<Chunk>>, Option<Origin>);

/// All arenas over one base.
pub(super) struct Store<S> {
    pub(super) base: S,
    pub(super) engine: Box<dyn Engine>,
    /// How many overlays there are up to this one.
    pub(super) layer: u8,
    pub(super) limits: StoreLimits,
    head: Mutex<Head, rank::OverlayHead>,
    names: RwLock<Names, rank::OverlayNames>,
    pub(super) level: Level,
    kept: Cache<(u64, ChunkAt), Remembered, Weight>,
    /// Whether chunks are written as what differs from the base.
    deltas: bool,
    /// Held while rows are written and what is remembered of them follows.
    publishing: Mutex<(), rank::OverlayPublishing>,
    /// Held while a commit has a number and is not written.
    numbering: Mutex<(), rank::OverlayNumbering>,
    pub(super) apply_latch: ApplyLatch,
    /// How many batches were written, or failed.
    written: AtomicU64,
    pub(super) next_lease: AtomicU64,
    /// The first lease that was given since the store was opened.
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
struct Weight;

impl Weighter<(u64, ChunkAt), Remembered> for Weight {
    fn weight(&self, _: &(u64, ChunkAt), (row, _): &Remembered) -> u64 {
        /// What an entry takes beside its chunk.
        const ENTRY_BYTES: usize = 160;
        let bytes = match &row.value {
            Lookup::Found(chunk) => chunk.memory_bytes(),
            Lookup::Tombstone | Lookup::NotFound => 0,
        };
        (ENTRY_BYTES + bytes) as u64
    }
}

/// Counts a batch when it is over, however it ended.
struct Counted<'w>(&'w AtomicU64);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// The changes of one commit of an arena.
#[derive(Debug, Default)]
pub(super) struct Edits {
    pub(super) chunks: Vec<(ChunkAt, Option<Arc<Chunk>>, Origin)>,
    pub(super) entities: Vec<(EntityId, Option<Entity>, Origin)>,
    pub(super) properties: Vec<(Property, Option<Vec<u8>>, Origin)>,
    pub(super) objects: Vec<(ObjectKey, StoredObject, Origin)>,
    pub(super) records: Vec<(RecordId, RecordEdit, Origin)>,
}

/// One record before and after.
#[derive(Debug)]
pub(super) struct RecordEdit {
    /// The leaf in which the overlay has it.
    pub(super) old: Option<RecordLeaf>,
    /// `None` is a deletion.
    pub(super) new: Option<(RecordLeaf, Arc<Record>)>,
}

/// A row of a lease.
pub(super) enum Written {
    Chunk(ChunkAt, Row<Arc<Chunk>>),
    Entity(EntityId, Row<Entity>),
    Property(Property, Row<Vec<u8>>),
    Object(ObjectKey, Row<StoredObject>),
    Record(RecordId, Row<Arc<Record>>),
}

impl Edits {
    pub(super) const fn is_empty(&self) -> bool {
        let Self { chunks, entities, properties, objects, records } = self;
        chunks.is_empty()
            && entities.is_empty()
            && properties.is_empty()
            && objects.is_empty()
            && records.is_empty()
    }
}

impl<S: Base> Store<S> {
    /// Begins to use an engine that holds arenas over this base, or nothing yet.
    pub(super) fn begin(engine: Box<dyn Engine>, base: S, options: &WorldOptions) -> Result<Self, Error> {
        /// A usual decoded chunk; only a hint for the size of the tables.
        const TYPICAL_BYTES: u64 = 2048;
        let layers = base.layers() + 1;
        let layer = u8::try_from(layers).map_err(|_| OverlayError::TooDeep { layers })?;
        let base_catalog = base.catalog();
        let (mut head, names) = match read_head(&*engine)? {
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
            kept: Cache::with_weighter(capacity, options.cache_bytes, Weight),
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
        };
        if !store.engine.caps().read_only {
            store.keep_names(&store.names.read(), base_catalog)?;
        }
        Ok(store)
    }

    /// Refuses a base that is not the one that was there at the beginning.
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

    /// The catalog for callers that cannot be told that the base does not fit it any more.
    pub(super) fn unchecked_catalog(&self) -> Arc<Catalog> {
        self.names.read().unchecked(self.base.catalog())
    }

    pub(super) fn register(&self, new: &Registration) -> Result<Arc<Catalog>, Error> {
        let mut names = self.names.write();
        let base = self.base.catalog();
        if let Some(grown) = names.grown(Arc::clone(&base), new)? {
            self.keep_names(&grown, base)?;
            *names = grown;
        }
        Ok(names.catalog(self.base.catalog())?)
    }

    pub(super) fn own_names(&self) -> Option<Registration> {
        self.names.read().own_names()
    }

    /// The base has registered the overlay's own names under the same ids.
    pub(super) fn names_adopted(&self) -> Result<(), Error> {
        let mut names = self.names.write();
        let base = self.base.catalog();
        let adopted = names.adopted(&base)?;
        self.keep_names(&adopted, base)?;
        *names = adopted;
        Ok(())
    }

    /// Stores the names that the base has issued since, before rows use them: a base that lost its newest names in a
    /// crash, and issues their ids for others, must not pass for the one that the rows were written over.
    fn remember_names(&self) -> Result<(), Error> {
        if self.names.read().has_all(&self.base.catalog()) {
            return Ok(());
        }
        let mut names = self.names.write();
        let base = self.base.catalog();
        if !names.has_all(&base) {
            let grown = Names::of_base(&base);
            self.keep_names(&grown, base)?;
            *names = grown;
        }
        Ok(())
    }

    /// Stores the head and the names over those of a base, as far as they are not stored yet.
    fn keep_names(&self, names: &Names, base: Arc<Catalog>) -> Result<(), Error> {
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
        if !batch.is_empty() || read_head(&*self.engine)? != Some(now) {
            put(&mut batch, HEAD_KEY, |out| now.encode(out));
            self.commit(batch, self.level)?;
            *head = now;
        }
        Ok(())
    }

    /// A chunk's row in a lease; `None` if it has none. A look into memory, else one key read; and a look at the base, if it
    /// is what the base has with a delta.
    pub(super) fn chunk(&self, lease: u64, at: ChunkAt) -> Result<Option<Row<Arc<Chunk>>>, Error> {
        if let Some((row, over)) = self.kept.get(&(lease, at))
            && (over.is_none() || over == Some(origin_of(&self.base.find_chunk(at)?)))
        {
            return Ok(Some(row));
        }
        let before = self.written.load(Ordering::Acquire);
        let key = key::overlay_chunk(lease, at);
        let guard = self.apply_latch.lock_shared()?;
        let bytes = self.engine.get(Space::ChunkL0, &key)?;
        drop(guard);
        let Some(bytes) = bytes else { return Ok(None) };
        let (row, over) = self.decode_chunk(at, &key, &bytes)?;
        if let Some(_nothing_is_written) = self.publishing.try_lock()
            && self.written.load(Ordering::Acquire) == before
        {
            self.kept.insert((lease, at), (row.clone(), over));
        }
        Ok(Some(row))
    }

    /// What a row says of a chunk, and what the base has if it says what differs from that.
    fn decode_chunk(&self, at: ChunkAt, key: &[u8], bytes: &[u8]) -> Result<Remembered, Error> {
        let damaged = |problem| Damage::of_row(Space::ChunkL0, key, at.to_string(), problem);
        let frame = FrameView::open(Space::ChunkL0, key, bytes).map_err(damaged)?;
        let row = OverlayRow::decode(frame.payload()).map_err(damaged)?;
        let header = frame.header();
        let (value, over) = match row.value {
            OverlayValue::Here(value) => {
                let (version, schema_generation) = (header.version, header.schema_generation);
                let stored = StoredChunk { at, version, schema_generation, tier: Tier::L0, value };
                self.counts.chunks_decoded.fetch_add(1, Ordering::Relaxed);
                let chunk = decode(&*self.catalog()?, &self.base.upgrades(), stored);
                (Lookup::Found(Arc::new(chunk.map_err(|error| in_row(error, key))?)), None)
            }
            OverlayValue::Changed(value) => {
                let delta = Delta::decode(value).map_err(damaged)?;
                let below = self.base.find_chunk(at)?;
                let found = origin_of(&below);
                let (chunk, over) = (self.changed(at, &delta, below, row.origin)?, Some(found));
                (Lookup::Found(chunk), over)
            }
            OverlayValue::Deleted => (Lookup::Tombstone, None),
        };
        Ok((Row { value, version: header.version, origin: row.origin }, over))
    }

    /// What the base has, as a delta changes it. Where the base went on, the delta stays on top, if it still can.
    fn changed(
        &self,
        at: ChunkAt,
        delta: &Delta,
        below: Found<Arc<Chunk>>,
        origin: Origin,
    ) -> Result<Arc<Chunk>, Error> {
        let found = origin_of(&below);
        let gone = || {
            let key = ConflictKey::Chunk(at);
            Error::from(OverlayError::BaseChanged { key, expected: origin, found })
        };
        let (mut chunk, _) = below.here().ok_or_else(gone)?;
        let schema = self.catalog()?.current_schema();
        delta.apply(Arc::make_mut(&mut chunk), &schema).map_err(|_| gone())?;
        Ok(chunk)
    }

    /// What the base has and a chunk has not, if the base has what the chunk was written over and it is worth it.
    fn delta(&self, at: ChunkAt, new: &Chunk, origin: Origin) -> Option<Vec<u8>> {
        if !self.deltas {
            return None;
        }
        let (below, found) = self.base.find_chunk(at).ok()?.here()?;
        if found != origin {
            return None;
        }
        let schema = self.catalog().ok()?.current_schema();
        worth_a_delta(&below, new, &schema)
    }

    /// An entity's row in a lease, as [`chunk`](Self::chunk). One key read.
    pub(super) fn entity(&self, lease: u64, id: EntityId) -> Result<Option<Row<Entity>>, Error> {
        let key = key::overlay_entity(lease, id);
        let guard = self.apply_latch.lock_shared()?;
        let bytes = self.engine.get(Space::Entity, &key)?;
        drop(guard);
        let Some(bytes) = bytes else { return Ok(None) };
        self.decode_entity(id, &key, &bytes).map(Some)
    }

    fn decode_entity(&self, id: EntityId, key: &[u8], bytes: &[u8]) -> Result<Row<Entity>, Error> {
        let damaged = |problem| Damage::of_row(Space::Entity, key, format!("entity {id}"), problem);
        let frame = FrameView::open(Space::Entity, key, bytes).map_err(damaged)?;
        let row = OverlayRow::decode(frame.payload()).map_err(damaged)?;
        let value = match whole(row).map_err(damaged)? {
            Some(value) => {
                let entity = Entity::decode(value).map_err(damaged)?;
                Lookup::Found(upgrade_entity(&*self.catalog()?, &self.base.upgrades(), id, entity)?)
            }
            None => Lookup::Tombstone,
        };
        Ok(Row { value, version: frame.header().version, origin: row.origin })
    }

    /// Shows every row of a lease, chunks first, then entities, properties, objects and records, until the closure fails. All are of one
    /// state.
    pub(super) fn for_each(
        &self,
        lease: u64,
        mut show: impl FnMut(Written) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let guard = self.apply_latch.lock_shared()?;
        let view = self.engine.snapshot()?;
        drop(guard);
        let (from, to) = (key::lease(lease), key::lease(lease + 1));
        let range = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
        let mut each_chunk = |row_key: &[u8], bytes: &[u8]| -> Result<(), Error> {
            let (_, at) = key::decode_overlay_chunk(row_key).map_err(|problem| {
                Damage::of_row(Space::ChunkL0, row_key, "a row of the overlay", problem)
            })?;
            show(Written::Chunk(at, self.decode_chunk(at, row_key, bytes)?.0))
        };
        let failed = view.scan(Family::ChunkL0, range, |key, bytes| broken(each_chunk(key, bytes)))?;
        failed.map_or(Ok(()), Err)?;
        let mut each_entity = |row_key: &[u8], bytes: &[u8]| -> Result<(), Error> {
            let (_, id) = key::decode_overlay_entity(row_key)
                .map_err(|problem| Damage::of_row(Space::Entity, row_key, "a row of the overlay", problem))?;
            show(Written::Entity(id, self.decode_entity(id, row_key, bytes)?))
        };
        let failed = view.scan(Family::Entity, range, |key, bytes| broken(each_entity(key, bytes)))?;
        failed.map_or(Ok(()), Err)?;
        let mut each_property = |row_key: &[u8], bytes: &[u8]| {
            let (property, row) = decode_property(row_key, bytes)?;
            show(Written::Property(property, row))
        };
        let failed =
            view.scan(Family::WorldProperties, range, |key, bytes| broken(each_property(key, bytes)))?;
        failed.map_or(Ok(()), Err)?;
        let mut each_object = |row_key: &[u8], bytes: &[u8]| {
            let (key, row) = decode_object(row_key, bytes)?;
            show(Written::Object(ObjectKey::new(key)?, row))
        };
        let failed = view.scan(Family::Object, range, |key, bytes| broken(each_object(key, bytes)))?;
        failed.map_or(Ok(()), Err)?;
        let from = key::overlay_record_places(lease);
        let range = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
        let mut each_record = |row_key: &[u8], bytes: &[u8]| {
            let (_, id) = key::decode_overlay_record_place(row_key).map_err(|problem| {
                Damage::of_row(Space::RecordPlace, row_key, "a row of the overlay", problem)
            })?;
            show(Written::Record(id, read_record(&view, lease, id, bytes)?))
        };
        let failed = view.scan(Family::Record, range, |key, bytes| broken(each_record(key, bytes)))?;
        failed.map_or(Ok(()), Err)
    }

    /// Writes the changes of one transaction, seen whole or not at all. Readers of rows wait while it takes more than one
    /// batch.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for a row that is longer than any batch; [`EngineError::ReadOnly`] if a commit before it got
    /// stuck; what the engine and the base's say.
    pub(super) fn write(&self, lease: u64, edits: Edits, generation: u32) -> Result<u64, Error> {
        self.remember_names()?;
        let mut batch = Batch::new();
        let mut over = Vec::with_capacity(edits.chunks.len());
        for (at, chunk, origin) in &edits.chunks {
            let delta = chunk.as_deref().and_then(|chunk| self.delta(*at, chunk, *origin));
            over.push(delta.is_some().then_some(*origin));
            let draft = Draft::plain(Codec::None, generation, |out| {
                if let Some(delta) = delta {
                    let value = OverlayValue::Changed(|out: &mut Vec<u8>| out.extend(delta));
                    OverlayRow::encode(*origin, value, out);
                } else {
                    let value = chunk.as_deref().map(|chunk| |out: &mut Vec<u8>| chunk.encode(out));
                    OverlayRow::encode(*origin, value, out);
                }
            });
            batch.put(Space::ChunkL0, key::overlay_chunk(lease, *at), draft, Stamp::Commit);
        }
        for (id, entity, origin) in &edits.entities {
            let value = entity.as_ref().map(|entity: &Entity| move |out: &mut Vec<u8>| entity.encode(out));
            let draft = Draft::plain(Codec::None, generation, |out| OverlayRow::encode(*origin, value, out));
            batch.put(Space::Entity, key::overlay_entity(lease, *id), draft, Stamp::Commit);
        }
        for (property, bytes, origin) in &edits.properties {
            put_property(&mut batch, lease, property, bytes.as_deref(), *origin);
        }
        for (key, object, origin) in &edits.objects {
            put_object(&mut batch, lease, key, object, *origin);
        }
        for (id, edit, origin) in &edits.records {
            put_record(&mut batch, lease, *id, edit, *origin);
        }
        let (len_bytes, rows) = (batch.len_bytes(), batch.op_count() as u64);
        let limit_bytes = self.limits.batch_bytes.min(self.engine.caps().max_batch_bytes);
        let is_staged = len_bytes > limit_bytes;
        if is_staged {
            check_parts(&batch, self.engine.caps().max_batch_bytes)?;
        }
        // What the rows remember is as durable as they are.
        self.base.keep_found(self.level)?;
        let _readers_keep_nothing = self.publishing.lock();
        // Whatever becomes of it, memory then says nothing else than the rows: a batch that failed may be seen.
        let _what_was_read_is_old = Counted(&self.written);
        for (at, ..) in &edits.chunks {
            self.kept.remove(&(lease, *at));
        }
        let (version, closed) = if is_staged {
            let (version, closed) = self.commit_in_parts(batch, limit_bytes)?;
            (version, Some(closed))
        } else {
            (self.commit(batch, self.level)?.get(), None)
        };
        self.counts.rows_written.fetch_add(rows, Ordering::Relaxed);
        for ((at, chunk, origin), over) in edits.chunks.into_iter().zip(over) {
            let value = chunk.map_or(Lookup::Tombstone, Lookup::Found);
            self.kept.insert((lease, at), (Row { value, version, origin }, over));
        }
        if let Some(closed) = closed {
            closed.open();
            if self.level == Level::Power {
                self.engine.sync()?;
            }
        }
        Ok(version)
    }

    /// Deletes rows of a lease that say no more than the base does.
    ///
    /// # Errors
    /// As [`commit`](Self::commit); some may be deleted then.
    pub(super) fn forget(&self, lease: u64, chunks: &[ChunkAt], entities: &[EntityId]) -> Result<(), Error> {
        /// At most this many rows are deleted in one batch.
        const AT_ONCE: usize = 4096;
        let _readers_keep_nothing = self.publishing.lock();
        let _what_was_read_is_old = Counted(&self.written);
        for at in chunks {
            self.kept.remove(&(lease, *at));
        }
        let chunks = chunks.iter().map(|at| (Space::ChunkL0, key::overlay_chunk(lease, *at).to_vec()));
        let entities = entities.iter().map(|id| (Space::Entity, key::overlay_entity(lease, *id).to_vec()));
        let rows: Vec<_> = chunks.chain(entities).collect();
        for some in rows.chunks(AT_ONCE) {
            let mut batch = Batch::new();
            for (space, row_key) in some {
                batch.delete(*space, row_key);
            }
            self.commit(batch, Level::Process)?;
        }
        // One that came back after a power cut would hide what the base has got since.
        Ok(self.engine.sync()?)
    }

    /// Writes a batch as the next commit.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] if a commit before it got stuck, and what the engine says.
    pub(super) fn commit(&self, batch: Batch, level: Level) -> Result<CommitSeq, EngineError> {
        let _in_order = self.numbering.lock();
        // What got stuck is rolled forward when the rows are opened again: over what would be written after it.
        drop(self.apply_latch.lock_shared()?);
        self.engine.commit(batch, &[], level)
    }

    /// Writes what is too large for one batch as the next commit. No row is read until the second value is opened.
    fn commit_in_parts(&self, batch: Batch, limit_bytes: u64) -> Result<(u64, Applying<'_>), EngineError> {
        let _in_order = self.numbering.lock();
        let seq = self.engine.last_commit().next().get();
        Ok((seq, self.apply_latch.write_in_parts(&*self.engine, batch, seq, limit_bytes)?))
    }

    /// Makes everything that was written, here and below, as durable as a level says: below first.
    pub(super) fn keep_found(&self, level: Level) -> Result<(), Error> {
        self.base.keep_found(level)?;
        let is_behind = self.engine.last_synced() < self.engine.last_commit();
        if level == Level::Power && is_behind && !self.engine.caps().read_only {
            self.engine.sync()?;
        }
        Ok(())
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

/// Whether an engine holds overlays.
#[cfg(feature = "rocks")]
pub(crate) fn holds_overlays(engine: &dyn Engine) -> Result<bool, Error> {
    Ok(read_head(engine)?.is_some())
}

fn broken(shown: Result<(), Error>) -> ControlFlow<Error> {
    match shown {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

/// Damage of a chunk, told by the row in which it was met.
fn in_row(error: Error, key: &[u8]) -> Error {
    match error {
        Error::Corrupt(damage) => Error::Corrupt(Box::new(Damage { key: key.into(), ..*damage })),
        other => other,
    }
}

pub(super) fn put(batch: &mut Batch, key: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
    batch.put(Space::WorldMeta, key, Draft::plain(Codec::None, 0, write), Stamp::Commit);
}

fn read_head(engine: &dyn Engine) -> Result<Option<Head>, Error> {
    let Some(row) = engine.get(Space::WorldMeta, HEAD_KEY)? else { return Ok(None) };
    let head =
        FrameView::open(Space::WorldMeta, HEAD_KEY, &row).and_then(|frame| Head::decode(frame.payload()));
    head.map(Some)
        .map_err(|problem| Damage::of_row(Space::WorldMeta, HEAD_KEY, "the head of the overlay", problem))
}
