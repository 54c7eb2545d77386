//! The chunks that a thread used recently. It can use them again without writes to shared memory.
//!
//! A lookup in a shared cache writes to its lock and to the reference count of the chunk. So threads that use the same
//! chunks wait for each other's writes. The chunks here belong to one thread, and the epoch of the place shows whether
//! they are current. Only commits write an epoch.
//!
//! A thread that uses more chunks than it may hold would replace most of them before it uses them again. So it rests:
//! for [`REST`] calls it holds nothing and looks nothing up here.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use cg_format::ChunkAt;
use cg_format::chunk::Chunk;

use super::epoch::Epoch;

/// The initial places of a thread: 8 × 16 × 8 adjacent chunks fit.
const FEW: Places = Places { side: 8, height: 16 };
/// The places after chunks collided more often than there are places: the view of one player. They take half a
/// mebibyte.
const MANY: Places = Places { side: 16, height: 32 };

/// The number of calls after which a thread that uses too many chunks tries again to hold them.
const REST: u32 = 1 << 16;

/// A place, its cache, and the epoch in which it is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) cache: u64,
    pub(super) at: ChunkAt,
    pub(super) epoch: Epoch,
}

/// The dimensions of the places, powers of two. Adjacent chunks have places of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Places {
    side: usize,
    height: usize,
}

impl Places {
    const fn count(self) -> usize {
        self.side * self.height * self.side
    }

    #[inline]
    const fn of(self, at: ChunkAt) -> usize {
        let (side, height) = (self.side - 1, self.height - 1);
        let (x, y, z) =
            (at.pos.x() as usize & side, at.pos.y() as usize & height, at.pos.z() as usize & side);
        (x * self.side + z) * self.height + y
    }
}

/// The chunks that one thread used, each at the place given by its position.
#[derive(Debug)]
struct Recent {
    shape: Places,
    places: Vec<Option<(Seen, Arc<Chunk>)>>,
    /// The last use of each place. A chunk is held only when it is used twice without another in between. A thread that
    /// uses more chunks than fit gains nothing, and loses little.
    candidates: Vec<Option<Seen>>,
    /// The number of collisions.
    meetings: usize,
    bytes: u64,
}

impl Recent {
    const fn new() -> Self {
        Self { shape: FEW, places: Vec::new(), candidates: Vec::new(), meetings: 0, bytes: 0 }
    }

    /// Changes the shape, and moves the held chunks to their new places.
    fn reshape(&mut self, shape: Places) {
        let held = std::mem::take(&mut self.places);
        self.shape = shape;
        self.meetings = 0;
        self.places.resize_with(shape.count(), || None);
        self.candidates = vec![None; shape.count()];
        for (seen, chunk) in held.into_iter().flatten() {
            // No chunks collide, because each axis has a multiple of its previous size.
            self.candidates[shape.of(seen.at)] = Some(seen);
            self.places[shape.of(seen.at)] = Some((seen, chunk));
        }
    }

    /// Holds a chunk that is used for the second time, within `max_bytes`. Returns whether the chunks that the thread
    /// uses fit; if they do not, it holds none.
    fn note(&mut self, seen: Seen, chunk: &Arc<Chunk>, max_bytes: u64) -> bool {
        if self.places.is_empty() {
            self.reshape(FEW);
        }
        let place = self.shape.of(seen.at);
        let before = self.candidates[place].replace(seen);
        if before != Some(seen) {
            if before.is_none_or(|before| before.at == seen.at) {
                return true;
            }
            self.meetings += 1;
            if self.meetings <= self.shape.count() {
                return true;
            }
            if self.shape == FEW {
                self.reshape(MANY);
                return true;
            }
            self.release_all();
            return false;
        }
        let bytes = chunk.memory_bytes() as u64;
        if self.bytes + bytes > max_bytes {
            self.release_all();
            return false;
        }
        let before = self.places[place].replace((seen, Arc::clone(chunk)));
        self.bytes += bytes;
        self.bytes -= before.map_or(0, |(_, chunk)| chunk.memory_bytes() as u64);
        true
    }

    /// Releases the held chunks and the places.
    fn release_all(&mut self) {
        *self = Self::new();
    }
}

thread_local! {
    static RECENT: RefCell<Recent> = const { RefCell::new(Recent::new()) };
    /// The number of calls for which the thread still rests.
    static RESTS: Cell<u32> = const { Cell::new(0) };
}

/// Calls a closure with a chunk that this thread holds, or returns the closure.
#[inline]
pub(super) fn show<T, F: FnOnce(&Chunk) -> T>(seen: Seen, show: F) -> Result<T, F> {
    if !seen.epoch.is_calm() || rests() {
        return Err(show);
    }
    let mut show = Some(show);
    // While the closure runs, the places are borrowed: nested calls read them but hold nothing new.
    let shown = RECENT.try_with(|recent| {
        let recent = recent.try_borrow().ok()?;
        match recent.places.get(recent.shape.of(seen.at))? {
            Some((known, chunk)) if *known == seen => show.take().map(|show| show(chunk)),
            _ => None,
        }
    });
    match (shown.ok().flatten(), show) {
        (Some(shown), _) => Ok(shown),
        (None, Some(show)) => Err(show),
        (None, None) => unreachable!("the closure is taken only to be called"),
    }
}

/// Whether this thread rests. Counts the call.
#[inline]
fn rests() -> bool {
    let left = RESTS.get();
    RESTS.set(left.saturating_sub(1));
    left > 0
}

/// Holds a chunk for this thread, within `max_bytes` for all its chunks, unless the thread rests.
#[inline]
pub(super) fn note(seen: Seen, chunk: &Arc<Chunk>, max_bytes: u64) {
    if !seen.epoch.is_calm() || max_bytes == 0 || RESTS.get() > 0 {
        return;
    }
    // An ending thread holds nothing.
    let _ = RECENT.try_with(|recent| {
        if let Ok(mut recent) = recent.try_borrow_mut()
            && !recent.note(seen, chunk, max_bytes)
        {
            RESTS.set(REST);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::cache::epoch::{Epochs, Slot};
    use cg_format::schema::NoComponents;
    use cg_format::{BlockId, ChunkPos, Dimension};

    #[test]
    fn what_one_player_sees_has_room_once_it_was_seen() {
        let epoch = Epochs::new(1, 1).now(Slot(0));
        let chunk = Arc::new(Chunk::filled(BlockId::new(1), &NoComponents).unwrap());
        let view = |side: i64| {
            let all =
                (0..side).flat_map(move |x| (0..side).flat_map(move |z| (0..24).map(move |y| (x, y, z))));
            all.map(move |(x, y, z)| {
                let at = ChunkAt::new(Dimension::new(0), ChunkPos::constant(x - 3, y - 4, z));
                Seen { cache: 1, at, epoch }
            })
        };
        let mut recent = Recent::new();
        let mut look = |side| {
            let mut held = 0;
            for seen in view(side) {
                let known = recent.places.get(recent.shape.of(seen.at)).and_then(Option::as_ref);
                if known.is_some_and(|(known, _)| *known == seen) {
                    held += 1;
                } else {
                    recent.note(seen, &chunk, 1 << 30);
                }
            }
            (held, recent.shape)
        };
        let small = [look(4), look(4), look(4)];
        assert_eq!(small, [(0, FEW), (0, FEW), (128, FEW)], "two thirds of the heights meet others");
        for _ in 0..4 {
            look(11);
        }
        assert_eq!(look(11), (11 * 11 * 24, MANY));
        // The number of held bytes is exact.
        assert_eq!(recent.bytes, recent.places.iter().flatten().count() as u64 * chunk.memory_bytes() as u64);
    }

    #[test]
    fn a_thread_that_uses_more_than_fits_holds_nothing() {
        let epoch = Epochs::new(1, 1).now(Slot(0));
        let chunk = Arc::new(Chunk::filled(BlockId::new(1), &NoComponents).unwrap());
        let mut recent = Recent::new();
        let mut note = |x, fit| {
            let at = ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0));
            let fits = recent.note(Seen { cache: 1, at, epoch }, &chunk, fit * chunk.memory_bytes() as u64);
            (fits, recent.places.iter().flatten().count())
        };
        let twice = [0, 0, 1, 1, 2, 2].map(|x| note(x, 2));
        assert_eq!(twice, [(true, 0), (true, 1), (true, 1), (true, 2), (true, 2), (false, 0)]);
        // Chunks that share their places, however little memory they take.
        let shared = (0..1 << 20).take_while(|turn| note(turn % 2 * 16, u64::from(u16::MAX)).0).count();
        assert_eq!(shared, FEW.count() + MANY.count() + 3);
    }
}
