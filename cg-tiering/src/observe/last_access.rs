//! When each cube was last accessed, in bounded memory.
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
/// What stands for no tick.
const NEVER: u64 = u64::MAX;

/// What is remembered of a cube.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Heat {
    /// When one of its chunks was last asked for, saved, or left by its holders.
    pub last_access: GameTick,
    /// When chunks of it last changed their tier, if they did.
    pub moved_at: Option<GameTick>,
}

impl Heat {
    /// Bytes of the stored form.
    pub const LEN_BYTES: usize = 17;

    /// The same with no moment after this one: what was stored before the clock was set back.
    #[must_use]
    pub fn not_after(self, now: GameTick) -> Self {
        Self { last_access: self.last_access.min(now), moved_at: self.moved_at.map(|at| at.min(now)) }
    }

    /// Appends the stored form. Equal heats give equal bytes.
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

/// When each cube was last accessed.
///
/// A cache over stored rows, and the buffer of those that are still to be stored: [`touch`](Self::touch) is one look
/// into a hash map, [`take_dirty`](Self::take_dirty) hands out what changed, [`insert`](Self::insert) brings a stored
/// row back. A cube that is not known counts as accessed when the world was opened, so what is lost delays a move and
/// loses nothing else.
///
/// Memory is bounded: about 130 bytes for each cube, of which there are `capacity_cubes` at most; the ones that were
/// not touched for longest are forgotten.
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
    /// Cubes touched in the generation before, and not since; dropped at the next change.
    old: CubeMap<Entry>,
    /// What is to be stored, in the order in which it became so; entries may have been forgotten since.
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
    /// Cubes that are remembered unless another number is given: 16.8 million chunks.
    pub const DEFAULT_CAPACITY_CUBES: usize = 1 << 18;
    /// A cube that is accessed all the time is stored once in this many ticks: half a minute.
    pub const STORE_EVERY_TICKS: u64 = 30 * GameTick::PER_SECOND;

    /// Knows of no cube; all count as accessed when the world was opened.
    pub fn new(opened_at: GameTick) -> Self {
        Self::with_capacity(opened_at, Self::DEFAULT_CAPACITY_CUBES)
    }

    /// As [`new`](Self::new), remembering at most this many cubes (2 at least).
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

    /// Forgets every cube; all count as accessed at this moment.
    pub fn restart(&mut self, now: GameTick) {
        *self = Self { lost: self.lost, ..Self::with_capacity(now, self.capacity_cubes) };
    }

    /// Notes that a chunk of the cube was asked for, saved or left.
    pub fn touch(&mut self, cube: CubeAt, now: GameTick) {
        let entry = self.entry(cube);
        entry.last_access = entry.last_access.max(now.get());
        let stale = entry.stored == NEVER || entry.last_access - entry.stored >= Self::STORE_EVERY_TICKS;
        if stale && !entry.queued {
            entry.queued = true;
            self.dirty.push_back(cube);
        }
    }

    /// Notes an access of a cube that is known; of the others nothing was ever asked.
    pub(crate) fn refresh(&mut self, cube: CubeAt, now: GameTick) {
        if self.young.contains_key(&cube) || self.old.contains_key(&cube) {
            self.touch(cube, now);
        }
    }

    /// Notes that chunks of the cube changed their tier.
    pub fn moved(&mut self, cube: CubeAt, now: GameTick) {
        let entry = self.entry(cube);
        entry.moved_at = now.get();
        if !entry.queued {
            entry.queued = true;
            self.dirty.push_back(cube);
        }
    }

    /// When the cube was last accessed: when the world was opened, if nothing is known.
    pub fn last_access(&self, cube: CubeAt) -> GameTick {
        self.get(cube).map_or(self.opened_at, |heat| heat.last_access)
    }

    /// What is known of the cube.
    pub fn get(&self, cube: CubeAt) -> Option<Heat> {
        self.young.get(&cube).or_else(|| self.old.get(&cube)).map(Entry::heat)
    }

    /// Brings a stored row back. What was noted since is kept.
    pub fn insert(&mut self, cube: CubeAt, stored: Heat) {
        let noted = self.get(cube).map(|heat| heat.last_access);
        let entry = self.entry(cube);
        entry.stored = stored.last_access.get();
        entry.last_access = noted.map_or(entry.stored, |noted| noted.get().max(entry.stored));
        if entry.moved_at == NEVER {
            entry.moved_at = stored.moved_at.map_or(NEVER, GameTick::get);
        }
    }

    /// Takes at most this many cubes that are to be stored, those that wait longest first.
    ///
    /// If storing them fails, give them back by [`unsaved`](Self::unsaved); if they are lost, nothing else is.
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

    /// Says that a cube which was taken is not stored after all.
    pub fn unsaved(&mut self, cube: CubeAt) {
        let Some(entry) = self.young.get_mut(&cube).or_else(|| self.old.get_mut(&cube)) else { return };
        if !entry.queued {
            entry.queued = true;
            self.dirty.push_back(cube);
        }
    }

    /// Makes every cube dirty whose last access is not the stored one, however near. For closing.
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

    /// Forgets a cube, for example because its last chunk was deleted.
    pub fn forget(&mut self, cube: CubeAt) {
        self.young.remove(&cube);
        self.old.remove(&cube);
    }

    /// How many cubes are known.
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Whether no cube is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many cubes at most wait to be stored.
    pub fn dirty_count(&self) -> usize {
        self.dirty.len()
    }

    /// How many cubes were forgotten, for want of room, before they were stored.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// The entry of a cube, made or brought into the young generation.
    fn entry(&mut self, cube: CubeAt) -> &mut Entry {
        if !self.young.contains_key(&cube) {
            let known = self.old.remove(&cube);
            if self.young.len() >= self.capacity_cubes / 2 {
                let forgotten = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
                self.lost += forgotten.values().filter(|entry| entry.queued).count() as u64;
                // The queue holds a cube once for each time that it became dirty; forgotten ones are swept out here.
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
