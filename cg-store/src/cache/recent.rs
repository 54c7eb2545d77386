//! What a thread looked at last, so that it can look again without writing a word that other threads read.
//!
//! Even a look into a shared cache writes: its lock, and the count of who holds a chunk. Two threads that look at the
//! same chunks wait for each other's writes. What is remembered here is asked by one thread alone, and the epoch of
//! its place says whether it is true still; an epoch is written by commits only.

use std::cell::RefCell;
use std::sync::Arc;

use cg_format::ChunkAt;
use cg_format::chunk::Chunk;

use super::epoch::Epoch;

const PLACES: usize = 1024;

/// Where, of which cache, and until when it is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) cache: u64,
    pub(super) at: ChunkAt,
    pub(super) epoch: Epoch,
}

/// The chunks that one thread has seen, each at the place that its position says.
#[derive(Debug, Default)]
struct Recent {
    places: Vec<Option<(Seen, Arc<Chunk>)>>,
    /// What was last shown at each place. Only what is shown twice without another between is held: who looks at more
    /// than fits gains nothing, and pays little.
    candidates: Vec<Option<Seen>>,
    bytes: u64,
}

thread_local! {
    static RECENT: RefCell<Recent> = RefCell::default();
}

/// Shows a chunk that this thread has seen already, or gives the closure back.
#[inline]
pub(super) fn show<T, F: FnOnce(&Chunk) -> T>(seen: Seen, show: F) -> Result<T, F> {
    if !seen.epoch.is_calm() {
        return Err(show);
    }
    let mut show = Some(show);
    // While the closure runs, what it looks at is borrowed: looks inside it find what is here and remember nothing.
    let shown = RECENT.try_with(|recent| {
        let recent = recent.try_borrow().ok()?;
        match recent.places.get(place(seen.at))? {
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

/// Remembers a chunk for this thread, which holds at most so many bytes of them.
pub(super) fn note(seen: Seen, chunk: &Arc<Chunk>, max_bytes: u64) {
    if !seen.epoch.is_calm() || max_bytes == 0 {
        return;
    }
    // A thread that ends has nothing to remember for.
    let _ = RECENT.try_with(|recent| {
        let Ok(mut recent) = recent.try_borrow_mut() else { return };
        if recent.places.is_empty() {
            recent.places.resize_with(PLACES, || None);
            recent.candidates.resize(PLACES, None);
        }
        if recent.candidates[place(seen.at)].replace(seen) != Some(seen) {
            return;
        }
        let bytes = chunk.memory_bytes() as u64;
        if bytes > max_bytes {
            return;
        }
        if recent.bytes + bytes > max_bytes {
            recent.places.fill(None);
            recent.bytes = 0;
        }
        let before = recent.places[place(seen.at)].replace((seen, Arc::clone(chunk)));
        recent.bytes += bytes;
        recent.bytes -= before.map_or(0, |(_, chunk)| chunk.memory_bytes() as u64);
    });
}

/// Neighbours have places of their own: 8 × 16 × 8 chunks fit beside each other.
const fn place(at: ChunkAt) -> usize {
    let (x, y, z) = (at.pos.x() & 7, at.pos.y() & 15, at.pos.z() & 7);
    (x << 7 | z << 4 | y) as usize
}
