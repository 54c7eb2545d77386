//! Segments that moving players will reach: they are opened before their chunks are requested.
//!
//! **Invariants**.
//! - A tick opens and closes nothing itself. One job at a time does, on the shared threads.
//! - No segment that was near a player when a job began, and none that a player was about to reach then, is closed by it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cg_format::{ChunkAt, ChunkBox, ChunkPos, Dimension, EntityId};
use cg_store::PrefetchOptions;
use cg_store::layer::spawn;
use cg_tiering::{Ahead, Course, Courses, GameTick, PlayerAt};

use super::home::SegmentHome;
use super::open::OpenSegments;
use super::pos::SegmentPos;
use super::root::Root;
use super::rows::SegmentState;

/// Segments are opened for chunks this much farther away than those that are prefetched: opening one takes a while, and so
/// does measuring a speed there.
const SOONER_CHUNKS: u8 = 2;

/// The segments that players will reach.
#[derive(Debug)]
pub(super) struct SegmentsAhead {
    courses: Courses,
    /// The number of chunks around a player that the host keeps loaded, on x, y and z.
    near_chunks: [i64; 3],
    /// Those that each player will reach, the earliest first.
    reached: BTreeMap<EntityId, Vec<SegmentPos>>,
    /// Those that a job is to open: a course has changed since one tried.
    due: BTreeSet<SegmentPos>,
    is_opening: Arc<AtomicBool>,
}

/// The segments that a job does not close.
struct Kept {
    side_chunks: u32,
    near: Vec<(Dimension, ChunkBox)>,
    reached: BTreeSet<SegmentPos>,
}

/// The right to open segments, until this is dropped.
struct Opening(Arc<AtomicBool>);

impl Drop for Opening {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl SegmentsAhead {
    pub(super) fn new(options: &PrefetchOptions) -> Self {
        let (wide, high) = (options.width_chunks, options.height_chunks);
        let near = [wide, high, wide].map(|chunks| chunks.min(Ahead::MAX_REACH_CHUNKS));
        let reach_chunks = near.map(|chunks| chunks.saturating_add(SOONER_CHUNKS));
        let ahead = Ahead { chunks: options.ahead_chunks, ticks: options.lookahead_ticks, reach_chunks };
        Self {
            courses: Courses::new(ahead),
            near_chunks: near.map(i64::from),
            reached: BTreeMap::new(),
            due: BTreeSet::new(),
            is_opening: Arc::default(),
        }
    }

    /// Takes the positions of all players.
    pub(super) fn follow(&mut self, root: &Root, players: &[PlayerAt], now: GameTick) {
        for course in self.courses.update(players, now) {
            match course {
                Course::Wants(player, chunks) => {
                    let segments = segments_of(root, &chunks);
                    self.due.extend(&segments);
                    self.reached.insert(player, segments);
                }
                Course::Gone(player) => drop(self.reached.remove(&player)),
            }
        }
    }

    /// Starts to open the stored segments that are due, in the background. A segment that finds no room is due again when a
    /// player that will reach it has gone on.
    pub(super) fn open<H: SegmentHome>(&mut self, open: &Arc<OpenSegments<H>>, players: &[PlayerAt]) {
        if self.due.is_empty() || self.is_opening.load(Ordering::Acquire) {
            return;
        }
        let (due, is_open) = (std::mem::take(&mut self.due), open.list());
        let is_due = |segment: &SegmentPos| {
            due.contains(segment)
                && open.root().state(*segment) == Some(SegmentState::There)
                && is_open.binary_search(segment).is_err()
        };
        let wanted: Vec<_> = self.reached.values().flatten().copied().filter(is_due).collect();
        if wanted.is_empty() {
            return;
        }
        let kept = self.kept(open.root().side_chunks(), players);
        self.is_opening.store(true, Ordering::Release);
        let opening = Opening(Arc::clone(&self.is_opening));
        let weak = Arc::downgrade(open);
        spawn(open.root().world(), move || {
            let _opening = opening;
            for segment in wanted {
                let Some(open) = weak.upgrade() else { return };
                if let Err(error) = open.open_within(segment, |other| kept.has(other)) {
                    tracing::warn!(%error, %segment, "opening a segment ahead of a player failed");
                }
                // What is opened ahead is closed before them.
                open.list()
                    .into_iter()
                    .filter(|other| kept.is_near(*other))
                    .for_each(|near| open.touch(near));
            }
        });
    }

    fn kept(&self, side_chunks: u32, players: &[PlayerAt]) -> Kept {
        let near = players.iter().map(|player| (player.dimension, self.near(player.block.chunk()))).collect();
        Kept { side_chunks, near, reached: self.reached.values().flatten().copied().collect() }
    }

    /// The chunks near a player that are in the world.
    fn near(&self, center: ChunkPos) -> ChunkBox {
        let corner = |sign: i64| {
            let [x, y, z] = self.near_chunks.map(|chunks| sign * chunks);
            let place = |chunk: i64, by: i64| (chunk + by).clamp(ChunkPos::MIN, ChunkPos::MAX);
            let (x, y, z) = (place(center.x(), x), place(center.y(), y), place(center.z(), z));
            ChunkPos::new(x, y, z).unwrap_or(center)
        };
        ChunkBox::new(corner(-1), corner(1))
    }
}

impl Kept {
    fn has(&self, segment: SegmentPos) -> bool {
        self.reached.contains(&segment) || self.is_near(segment)
    }

    fn is_near(&self, segment: SegmentPos) -> bool {
        self.near.iter().any(|(dimension, area)| segment.meets(*dimension, *area, self.side_chunks))
    }
}

/// The segments of chunks, each once, in the order of the chunks.
fn segments_of(root: &Root, chunks: &[ChunkAt]) -> Vec<SegmentPos> {
    let mut segments: Vec<SegmentPos> = Vec::new();
    for at in chunks {
        if !segments.iter().rev().any(|segment| segment.has(*at, root.side_chunks())) {
            segments.push(root.segment_of(*at));
        }
    }
    segments
}
