//! Verifies a pool of arenas: every row, and what must hold between the rows of an arena.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::Ordering;

use cg_format::entity::Owner;
use cg_format::frame::FrameView;
use cg_format::key::{self, Family};
use cg_format::overlay::{OverlayRow, OverlayValue};
use cg_format::{ChunkAt, ChunkBox, EntityId, Lookup, RecordId, Space};
use cg_store::engine::{ALL_KEYS, Met, Readable, row_in_words, scan_skipping_damage};
use cg_store::layer::Base;
use cg_store::layer::kind::{Chunks, Entities, Objects, Properties, Records};
use cg_store::quarantine::LostChunks;
use cg_store::verify::{Finding, VerifyDepth, VerifyReport};
use cg_store::{Error, ErrorKind};

use super::arena::check_next_lease;
use super::arenas::Arenas;
use super::pool::Pool;
use crate::store::{LeaseView, OverlayKind, Row, value_of};

/// What can be done about a damaged row of an arena.
const REMEDY: &str = "reset or release the arena";

/// The chunks and entities that an arena stores.
#[derive(Default)]
struct Content {
    /// Whether a chunk is there, of those whose rows say all about it.
    chunks: BTreeMap<ChunkAt, bool>,
    /// The entities that these chunks list.
    listed: BTreeMap<EntityId, ChunkAt>,
    /// Where an entity is, or that it is deleted.
    entities: BTreeMap<EntityId, Option<Owner>>,
}

struct Verifier<'p, S: Base> {
    pool: &'p Pool<S>,
    view: &'p dyn Readable,
    report: VerifyReport,
    rows: u64,
    progress: &'p mut dyn FnMut(u64),
}

impl<S: Base> Arenas<S> {
    /// Verifies the rows of all arenas. Changes nothing.
    ///
    /// Every row is read, and its key and frame are checked. With [`VerifyDepth::Full`] each row of an arena is decoded,
    /// a delta over the chunk that the base has; each record has its place; each entity is in the chunk that lists it,
    /// where both were written in the arena; and no two arenas have one lease. Rows of expired leases are never read,
    /// and not checked. That the pool fits its base was checked when it was opened.
    ///
    /// Memory holds the ids of the entities of one arena. `progress` gets the number of checked rows.
    ///
    /// # Errors
    /// If the engine fails otherwise than by damage.
    pub fn verify(&self, depth: VerifyDepth, mut progress: impl FnMut(u64)) -> Result<VerifyReport, Error> {
        let pool = self.pool();
        let view = pool.store.rows.snapshot()?;
        let report = VerifyReport::default();
        let mut verifier = Verifier { pool, view: &view, report, rows: 0, progress: &mut progress };
        let (leases, any_damaged) = verifier.arenas();
        if let Err(error) = check_next_lease(&view) {
            verifier.find(Space::WorldMeta, &[], in_words(&error));
        }
        for family in Family::ALL {
            verifier.family(family, &leases, any_damaged)?;
        }
        if depth == VerifyDepth::Full {
            for (lease, arena) in leases {
                verifier.arena(lease, arena)?;
            }
        }
        Ok(verifier.report)
    }
}

impl<S: Base> Verifier<'_, S> {
    /// Reports a problem of the pool.
    fn find(&mut self, space: Space, key: &[u8], what: impl Into<String>) {
        let (family, key, what) = (space.family(), key.into(), what.into());
        let finding = Finding { arena: None, family, space: Some(space), key, what, lost: None };
        self.report.findings.push(finding);
    }

    /// Reports a problem of an arena.
    fn find_in(&mut self, arena: u32, space: Space, key: &[u8], what: impl Display) {
        self.find_with(arena, space, key, format!("{what}; {REMEDY}"));
    }

    fn find_with(&mut self, arena: u32, space: Space, key: &[u8], what: impl Display) {
        self.find(space, key, format!("arena {arena}: {what}"));
        if let Some(finding) = self.report.findings.last_mut() {
            finding.arena = Some(arena);
        }
    }

    /// Reports a damaged row of an arena, and of a chunk what giving it up would show.
    fn damaged(&mut self, arena: u32, space: Space, key: &[u8], problem: impl Display) {
        let is_of_chunk = matches!(space, Space::ChunkL0 | Space::ChunkDelta);
        let Some(at) = is_of_chunk.then(|| Chunks::key_of(key).ok()).flatten() else {
            return self.find_in(arena, space, key, problem);
        };
        let found = self.pool.store.base.find_chunk(at);
        let remedy = match (&found, space) {
            (Err(_), _) => format!("the base's chunk cannot be read; mend the base, or {REMEDY}"),
            (_, Space::ChunkDelta) => "`Overlay::reset_damaged` deletes it, and the chunk stays".into(),
            (Ok(found), _) if value_of(found).is_some() => {
                format!("the base has the chunk, and `Overlay::reset_damaged` shows it; or {REMEDY}")
            }
            _ => format!("the base has no chunk there, and `Overlay::reset_damaged` shows none; or {REMEDY}"),
        };
        self.find_with(arena, space, key, format!("{problem}; {remedy}"));
        if let Some(finding) = self.report.findings.last_mut().filter(|_| found.is_ok()) {
            let bounds = ChunkBox::new(at.pos, at.pos);
            finding.lost = Some(LostChunks { dimension: at.dimension, bounds });
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.report.checked.entry(what).or_default() += 1;
    }

    /// Reports a damaged row, of an arena if its lease is one's.
    fn find_row(
        &mut self,
        arena: Option<u32>,
        is_leased: bool,
        space: Space,
        key: &[u8],
        what: impl Display,
    ) {
        match arena {
            Some(arena) => self.damaged(arena, space, key, what),
            None => self.find(space, key, format!("{what}; {}", remedy(is_leased))),
        }
    }

    /// The leases of the arenas, and whether there may be arenas whose leases are unknown.
    fn arenas(&mut self) -> (BTreeMap<u64, u32>, bool) {
        let mut leases = BTreeMap::new();
        let all: Vec<_> = self.pool.arenas.all.lock().values().cloned().collect();
        for arena in all {
            let lease = arena.lease.load(Ordering::Acquire);
            self.count("arenas");
            if let Some(other) = leases.insert(lease, arena.number) {
                let number = arena.number;
                let what = format!(
                    "arenas {other} and {number} have the same lease {lease}, so each shows what is written in the \
                     other; {REMEDY}"
                );
                self.find(Space::WorldMeta, &[], what);
            }
        }
        let damaged = self.pool.arenas.damaged.lock();
        let (numbers, any_damaged) = (damaged.numbers.clone(), damaged.are_any());
        drop(damaged);
        for number in numbers {
            let what =
                format!("the row of arena {number:08x} is damaged; `Arenas::reclaim` gives up what it held");
            self.find(Space::WorldMeta, format!("arena/{number:08x}").as_bytes(), what);
        }
        (leases, any_damaged)
    }

    /// Checks the key and the frame of every row of a family. `any_damaged`: there may be arenas whose leases are unknown.
    fn family(
        &mut self,
        family: Family,
        leases: &BTreeMap<u64, u32>,
        any_damaged: bool,
    ) -> Result<(), Error> {
        let view = self.view;
        scan_skipping_damage(view, family, ALL_KEYS, |met| {
            let (row_key, row) = match met {
                Met::Row(row_key, row) => (row_key, row),
                Met::Gap { error, .. } => {
                    let (key, what) = (Vec::new(), format!("rows cannot be read: {error}; {REMEDY}"));
                    let finding = Finding { arena: None, family, space: None, key, what, lost: None };
                    self.report.findings.push(finding);
                    return ControlFlow::<()>::Continue(());
                }
            };
            self.rows += 1;
            if self.rows.is_multiple_of(1024) {
                (self.progress)(self.rows);
            }
            let Some((space, is_leased)) = space_of(family, row_key) else {
                let what = "a key that this release does not know; the row is left alone".into();
                self.report.findings.push(Finding {
                    arena: None,
                    family,
                    space: None,
                    key: row_key.into(),
                    what,
                    lost: None,
                });
                return ControlFlow::Continue(());
            };
            let lease = key::lease_of(row_key).filter(|_| is_leased);
            let arena = lease.and_then(|lease| leases.get(&lease).copied());
            if lease.is_some() && arena.is_none() && !any_damaged {
                self.count("rows of expired leases");
                return ControlFlow::Continue(());
            }
            self.count(family.name());
            let opened =
                check_key(space, is_leased, row_key).and_then(|()| FrameView::open(space, row_key, row));
            let opened = opened.map(|frame| frame.header());
            if let Ok(header) = &opened
                && header.lineage != self.pool.store.rows.word_of(header.version)
            {
                let what = "it is of another history of the pool: its file was brought from a copy that went on by itself";
                match arena {
                    Some(arena) => self.find_in(arena, space, row_key, what),
                    None => self.find(space, row_key, format!("{what}; {}", remedy(is_leased))),
                }
            }
            if let Err(problem) = opened
                && !(space == Space::WorldMeta && is_reported_by_name(row_key))
            {
                let words = row_in_words(space, row_key).filter(|_| !is_leased);
                let words = words.map(|words| format!("{words}: ")).unwrap_or_default();
                self.find_row(arena, is_leased, space, row_key, format!("{words}{problem}"));
            }
            ControlFlow::Continue(())
        })?;
        Ok(())
    }

    /// Decodes every row of an arena, and compares those that refer to each other.
    fn arena(&mut self, lease: u64, arena: u32) -> Result<(), Error> {
        let (mut content, mut places) = (Content::default(), BTreeMap::new());
        let view = self.view;
        self.kind::<Chunks>(lease, arena, |at, row_key, row| {
            if !says_all(view, row_key, row) {
                return;
            }
            content.chunks.insert(at, row.here().is_some());
            let listed = row.here().into_iter().flat_map(|chunk| chunk.entities());
            content.listed.extend(listed.map(|id| (*id, at)));
        })?;
        self.kind::<Entities>(lease, arena, |id, _, row| {
            content.entities.insert(id, row.here().map(|entity| entity.owner.clone()));
        })?;
        self.kind::<Properties>(lease, arena, |_, _, _| {})?;
        self.kind::<Objects>(lease, arena, |_, _, _| {})?;
        self.kind::<Records>(lease, arena, |id, _, row| {
            places.insert(id, row.here().is_some());
        })?;
        self.entities(lease, arena, &content);
        self.records(lease, arena, &places)
    }

    /// Decodes the rows of one kind. Rows with a damaged frame were reported before.
    fn kind<K: OverlayKind>(
        &mut self,
        lease: u64,
        arena: u32,
        mut visit: impl FnMut(K::Key, &[u8], &Row<K::Value>),
    ) -> Result<(), Error> {
        let (from, to) = (K::first_row_key(lease), key::lease(lease + 1));
        let range = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
        let (store, view) = (&self.pool.store, self.view);
        let rows = LeaseView { store, lease, view };
        scan_skipping_damage(view, K::SPACE.family(), range, |met| {
            let Met::Row(row_key, row) = met else { return ControlFlow::<()>::Continue(()) };
            let Ok(key) = K::key_of(row_key) else { return ControlFlow::Continue(()) };
            if FrameView::open(K::SPACE, row_key, row).is_err() {
                return ControlFlow::Continue(());
            }
            match K::decode(&rows, &key, row_key, row) {
                Ok(row) => visit(key, row_key, &row),
                Err(error) => {
                    let words = in_words(&error);
                    if error.kind() == ErrorKind::Damaged {
                        self.damaged(arena, K::SPACE, row_key, words);
                    } else {
                        self.find_in(arena, K::SPACE, row_key, words);
                    }
                }
            }
            ControlFlow::Continue(())
        })?;
        Ok(())
    }

    /// Compares the entities of an arena with the chunks that list them.
    fn entities(&mut self, lease: u64, arena: u32, content: &Content) {
        let Content { chunks, listed, entities } = content;
        let mut wrong = Vec::new();
        for (id, at) in listed {
            match entities.get(id) {
                Some(Some(Owner::Chunk(owner))) if owner == at => {}
                // It was written in the base alone.
                None => {}
                Some(None) => wrong.push((*id, format!("{at} lists entity {id}, which is deleted"))),
                Some(Some(Owner::Chunk(owner))) => {
                    wrong.push((*id, format!("{at} lists entity {id}, which is in {owner}")));
                }
                Some(Some(Owner::Detached(_))) => {
                    wrong.push((*id, format!("{at} lists entity {id}, which is in no chunk")));
                }
            }
        }
        for (id, owner) in entities {
            let Some(Owner::Chunk(at)) = owner else { continue };
            match chunks.get(at) {
                Some(false) => wrong.push((*id, format!("entity {id} is in {at}, which is deleted"))),
                Some(true) if listed.get(id) != Some(at) => {
                    wrong.push((*id, format!("entity {id} is in {at}, which does not list it")));
                }
                Some(true) | None => {}
            }
        }
        for (id, what) in wrong {
            self.find_in(arena, Space::Entity, &key::overlay_entity(lease, id), what);
        }
    }

    /// Finds records that no place names.
    fn records(&mut self, lease: u64, arena: u32, places: &BTreeMap<RecordId, bool>) -> Result<(), Error> {
        let (from, to) = (key::lease(lease), key::overlay_record_places(lease));
        let range = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
        let (view, mut seen) = (self.view, BTreeSet::new());
        scan_skipping_damage(view, Family::Record, range, |met| {
            let Met::Row(row_key, _) = met else { return ControlFlow::<()>::Continue(()) };
            let Some(id) = row_key.last_chunk().map(|id| RecordId::from_bytes(*id)) else {
                return ControlFlow::Continue(());
            };
            if !seen.insert(id) {
                self.find_in(arena, Space::Record, row_key, format!("record {id} is stored twice"));
            } else if places.get(&id) != Some(&true) {
                self.find_in(arena, Space::Record, row_key, format!("no place names record {id}"));
            }
            ControlFlow::Continue(())
        })?;
        Ok(())
    }
}

/// Whether a chunk's row is no delta, whose chunk depends on the base.
fn says_all<T>(view: &dyn Readable, row_key: &[u8], row: &Row<T>) -> bool {
    if matches!(row.value, Lookup::Tombstone | Lookup::NotFound) {
        return true;
    }
    let Ok(Some(bytes)) = view.get(Space::ChunkL0, row_key) else { return false };
    FrameView::open(Space::ChunkL0, row_key, &bytes)
        .and_then(|frame| {
            OverlayRow::decode(frame.payload()).map(|row| matches!(row.value, OverlayValue::Here(_)))
        })
        .unwrap_or(false)
}

/// The kind of row of a key, and whether its key begins with a lease.
fn space_of(family: Family, row_key: &[u8]) -> Option<(Space, bool)> {
    let leased = |space| Some((space, true));
    match family {
        Family::ChunkL0 => leased(Space::ChunkL0),
        // The ancestor of a chunk.
        Family::ChunkDelta => leased(Space::ChunkDelta),
        Family::Entity => leased(Space::Entity),
        Family::WorldProperties => leased(Space::WorldProperty),
        Family::Object => leased(Space::Object),
        Family::Record => leased(Space::of_row(family, row_key.get(key::LEASE_LEN_BYTES..)?)?),
        family => Space::of_row(family, row_key).map(|space| (space, false)),
    }
}

/// Whether damage in a row of `worldMeta` was reported before: a row of an arena, or the next lease.
fn is_reported_by_name(row_key: &[u8]) -> bool {
    row_key.starts_with(b"arena/") || row_key == b"leases"
}

fn check_key(space: Space, is_leased: bool, row_key: &[u8]) -> Result<(), cg_format::DecodeError> {
    match space {
        _ if !is_leased => Ok(()),
        Space::ChunkL0 | Space::ChunkDelta => Chunks::key_of(row_key).map(drop),
        Space::Entity => Entities::key_of(row_key).map(drop),
        Space::WorldProperty => Properties::key_of(row_key).map(drop),
        Space::Object => Objects::key_of(row_key).map(drop),
        Space::RecordPlace => Records::key_of(row_key).map(drop),
        // The place of a record has its key.
        _ => Ok(()),
    }
}

const fn remedy(is_leased: bool) -> &'static str {
    if is_leased { REMEDY } else { "merge what the arenas hold, and make them again" }
}

/// The text of an error without the advice to verify a world.
fn in_words(error: &Error) -> String {
    match error {
        Error::Corrupt(damage) => damage.to_string(),
        error => error.to_string(),
    }
}
