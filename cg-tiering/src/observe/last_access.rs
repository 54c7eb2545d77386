//! The last access of each cube, in bounded memory.
//!
//! The stored form of one cube's [`Heat`], see `docs/format/heat.md`:
//!
//! | offset | width | field |
//! |---|---|---|
//! | 0 | 1 | `heat version`: 1 |
//! | 1 | 8 | `last access`: game tick |
//! | 9 | 8 | `moved at`: game tick, or 2^64 − 1 for never |

use std::collections::VecDeque;

use cg_format::wire::{Reader, Span, Trace, Writer};
use cg_format::{DecodeError, Section};

use crate::hash::CubeMap;
use crate::{CubeAt, GameTick};

/// The layout that this release writes, and the newest that it reads.
const HEAT_VERSION: u8 = 1;
/// The value for no tick.
const NEVER: u64 = u64::MAX;

/// The stored state of a cube.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Heat {
    /// When one of its chunks was last requested or saved, or when its stay ended.
    pub last_access: GameTick,
    /// When chunks of it last changed their tier; `None` if never.
    pub moved_at: Option<GameTick>,
}

impl Heat {
    /// The length of the stored form.
    pub const LEN_BYTES: usize = 17;

    /// Limits all moments to `now`. Used for rows that were stored before the clock was set back.
    #[must_use]
    pub fn not_after(self, now: GameTick) -> Self {
        Self { last_access: self.last_access.min(now), moved_at: self.moved_at.map(|at| at.min(now)) }
    }

    /// Appends the stored form. Equal values give equal bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.u8(HEAT_VERSION);
        writer.u64(self.last_access.get());
        writer.u64(self.moved_at.map_or(NEVER, GameTick::get));
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`DecodeError`] in [`Section::Heat`] for another version or length.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(Reader::new(bytes, Section::Heat))
    }

    /// Explains the stored form: the fields that [`decode`](Self::decode) reads, up to the first error.
    pub fn trace(bytes: &[u8]) -> (Vec<Span>, Result<Self, DecodeError>) {
        let trace = Trace::default();
        let result = Self::read(Reader::new(bytes, Section::Heat).traced(Some(&trace)));
        (trace.into_inner(), result)
    }

    fn read(mut reader: Reader<'_>) -> Result<Self, DecodeError> {
        reader.version_u8("heat version", HEAT_VERSION)?;
        let last_access = GameTick::new(reader.u64("last access")?);
        let moved_at = reader.u64("moved at")?;
        reader.end("bytes after the heat")?;
        Ok(Self { last_access, moved_at: (moved_at != NEVER).then_some(GameTick::new(moved_at)) })
    }
}

/// The last access of each cube.
///
/// It is a cache over stored rows and a buffer of rows to store. [`touch`](Self::touch) costs one lookup in a hash map.
/// [`take_dirty`](Self::take_dirty) returns what changed; [`insert`](Self::insert) adds a stored row. An unknown cube
/// counts as accessed when the world was opened, so a lost row only delays a move.
///
/// Memory is bounded: about 130 bytes for each cube, and at most `capacity_cubes` cubes. The least recently touched
/// cubes are dropped.
///
/// ```
/// use cg_format::{ChunkAt, ChunkPos, Dimension};
/// use cg_tiering::{CubeAt, GameTick, LastAccess};
/// let mut heat = LastAccess::new(GameTick::new(100));
/// let chunk = ChunkAt::new(Dimension::new(0), ChunkPos::constant(5, 0, -9));
/// assert_eq!(heat.last_access(CubeAt::of(chunk)), GameTick::new(100));
/// heat.touch(CubeAt::of(chunk), GameTick::new(250));
/// assert_eq!(heat.last_access(CubeAt::of(chunk)), GameTick::new(250));
/// let [(cube, row)] = heat.take_dirty(10)[..] else { panic!("one cube changed") };
/// assert_eq!((cube, row.last_access), (CubeAt::of(chunk), GameTick::new(250)));
/// ```
#[derive(Debug, Clone)]
pub struct LastAccess {
    opened_at: GameTick,
    capacity_cubes: usize,
    /// Cubes touched since the last change of generations.
    young: CubeMap<Entry>,
    /// Cubes touched in the generation before, and not since. They are dropped at the next change.
    old: CubeMap<Entry>,
    /// Cubes to store, in the order in which they became dirty. Some may have been dropped since.
    dirty: VecDeque<CubeAt>,
    lost: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    last_access: u64,
    moved_at: u64,
    /// The last access that was stored, or [`NEVER`].
    stored: u64,
    queued: bool,
}

impl LastAccess {
    /// The default number of cubes: 16.8 million chunks.
    pub const DEFAULT_CAPACITY_CUBES: usize = 1 << 18;
    /// A cube that is accessed continuously is stored once in this many ticks: half a minute.
    pub const STORE_EVERY_TICKS: u64 = 30 * GameTick::PER_SECOND;

    /// Creates an empty map. All cubes count as accessed when the world was opened.
    pub fn new(opened_at: GameTick) -> Self {
        Self::with_capacity(opened_at, Self::DEFAULT_CAPACITY_CUBES)
    }

    /// As [`new`](Self::new), with at most this many cubes (2 at least).
    pub fn with_capacity(opened_at: GameTick, capacity_cubes: usize) -> Self {
        Self {
            opened_at,
            capacity_cubes: capacity_cubes.max(2),
            young: CubeMap::default(),
            old: CubeMap::default(),
            dirty: VecDeque::new(),
            lost: 0,
        }
    }

    /// Drops every cube. All cubes count as accessed at this moment.
    pub fn restart(&mut self, now: GameTick) {
        *self = Self { lost: self.lost, ..Self::with_capacity(now, self.capacity_cubes) };
    }

    /// Records that a chunk of the cube was requested or saved, or that its stay ended.
    pub fn touch(&mut self, cube: CubeAt, now: GameTick) {
        let entry = self.entry(cube);
        entry.last_access = entry.last_access.max(now.get());
        let stale = entry.stored == NEVER || entry.last_access - entry.stored >= Self::STORE_EVERY_TICKS;
        if stale && !entry.queued {
            entry.queued = true;
            self.dirty.push_back(cube);
        }
    }

    /// Records an access of a known cube. No chunk of an unknown cube was ever requested.
    pub(crate) fn refresh(&mut self, cube: CubeAt, now: GameTick) {
        if self.young.contains_key(&cube) || self.old.contains_key(&cube) {
            self.touch(cube, now);
        }
    }

    /// Records that chunks of the cube changed their tier.
    pub fn moved(&mut self, cube: CubeAt, now: GameTick) {
        let entry = self.entry(cube);
        entry.moved_at = now.get();
        if !entry.queued {
            entry.queued = true;
            self.dirty.push_back(cube);
        }
    }

    /// The last access of the cube: the opening of the world if the cube is unknown.
    pub fn last_access(&self, cube: CubeAt) -> GameTick {
        self.get(cube).map_or(self.opened_at, |heat| heat.last_access)
    }

    /// The state of the cube, if it is known.
    pub fn get(&self, cube: CubeAt) -> Option<Heat> {
        self.young.get(&cube).or_else(|| self.old.get(&cube)).map(Entry::heat)
    }

    /// Adds a stored row. Accesses that were recorded since are kept.
    pub fn insert(&mut self, cube: CubeAt, stored: Heat) {
        let noted = self.get(cube).map(|heat| heat.last_access);
        let entry = self.entry(cube);
        entry.stored = stored.last_access.get();
        entry.last_access = noted.map_or(entry.stored, |noted| noted.get().max(entry.stored));
        if entry.moved_at == NEVER {
            entry.moved_at = stored.moved_at.map_or(NEVER, GameTick::get);
        }
    }

    /// Takes at most this many cubes to store, those that wait longest first.
    ///
    /// If storing fails, pass them to [`unsaved`](Self::unsaved). Losing them loses nothing else.
    pub fn take_dirty(&mut self, max_cubes: usize) -> Vec<(CubeAt, Heat)> {
        let mut taken = Vec::new();
        while taken.len() < max_cubes {
            let Some(cube) = self.dirty.pop_front() else { break };
            let Some(entry) = self.young.get_mut(&cube).or_else(|| self.old.get_mut(&cube)) else { continue };
            if entry.queued {
                entry.queued = false;
                entry.stored = entry.last_access;
                taken.push((cube, entry.heat()));
            }
        }
        taken
    }

    /// Marks a cube as dirty again because it was taken and could not be stored.
    pub fn unsaved(&mut self, cube: CubeAt) {
        let Some(entry) = self.young.get_mut(&cube).or_else(|| self.old.get_mut(&cube)) else { return };
        if !entry.queued {
            entry.queued = true;
            self.dirty.push_back(cube);
        }
    }

    /// Marks every cube as dirty whose last access differs from the stored one, however little. For closing.
    pub fn mark_all_dirty(&mut self) {
        let mut added = Vec::new();
        for (cube, entry) in self.young.iter_mut().chain(&mut self.old) {
            if !entry.queued && entry.last_access != entry.stored {
                entry.queued = true;
                added.push(*cube);
            }
        }
        added.sort_unstable();
        self.dirty.extend(added);
    }

    /// Drops a cube, for example because its last chunk was deleted.
    pub fn forget(&mut self, cube: CubeAt) {
        self.young.remove(&cube);
        self.old.remove(&cube);
    }

    /// The number of known cubes.
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Whether no cube is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An upper bound of the number of cubes that wait to be stored.
    pub fn dirty_count(&self) -> usize {
        self.dirty.len()
    }

    /// The number of cubes that were dropped for lack of capacity before they were stored.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// The entry of a cube, created or moved to the young generation.
    fn entry(&mut self, cube: CubeAt) -> &mut Entry {
        if !self.young.contains_key(&cube) {
            let known = self.old.remove(&cube);
            if self.young.len() >= self.capacity_cubes / 2 {
                let forgotten = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
                self.lost += forgotten.values().filter(|entry| entry.queued).count() as u64;
                // The queue holds a cube once for each time it became dirty. Entries of dropped cubes are removed here.
                self.dirty.retain(|cube| self.old.get(cube).is_some_and(|entry| entry.queued));
            }
            let opened_at = self.opened_at.get();
            let new = Entry { last_access: opened_at, moved_at: NEVER, stored: NEVER, queued: false };
            self.young.insert(cube, known.unwrap_or(new));
        }
        self.young.get_mut(&cube).expect("inserted above")
    }
}

impl Entry {
    const fn heat(&self) -> Heat {
        let moved_at = if self.moved_at == NEVER { None } else { Some(GameTick::new(self.moved_at)) };
        Heat { last_access: GameTick::new(self.last_access), moved_at }
    }
}

#[cfg(test)]
mod tests;
