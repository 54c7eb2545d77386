//! Loading the chunks of a pinned area in the segments that it meets, up to a limit.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use cg_format::{ChunkBox, Dimension};
use cg_store::cache::PinLoad;
use cg_store::{Error, World};

use super::home::SegmentHome;
use super::open::OpenSegments;
use super::parts::Parts;
use super::pins::LoadsPinned;
use super::pos::SegmentPos;
use super::rows::SegmentState;
use super::submissions::Submissions;

/// Loads pinned areas of a segmented world, as long as there is one.
pub(super) struct PinnedLoads<H: SegmentHome> {
    open: Weak<OpenSegments<H>>,
    submissions: Weak<Submissions<H>>,
}

impl<H: SegmentHome> PinnedLoads<H> {
    pub(super) fn of(parts: &Parts<H>) -> Self {
        let (open, submissions) = (Arc::downgrade(&parts.open), Arc::downgrade(&parts.submissions));
        Self { open, submissions }
    }
}

impl<H: SegmentHome> LoadsPinned for PinnedLoads<H> {
    fn load(&self, dimension: Dimension, area: ChunkBox, max_bytes: u64) -> Result<PinLoad, Error> {
        let (Some(open), Some(submissions)) = (self.open.upgrade(), self.submissions.upgrade()) else {
            return Err(Error::Closed);
        };
        open.check()?;
        let side_chunks = open.root().side_chunks();
        // Segments that are created by what waits for them are not listed yet.
        let (waiting, _) = submissions.waiting();
        let listed = open.root().segments(SegmentState::There).into_iter();
        let all: BTreeSet<SegmentPos> = listed.chain(waiting.into_keys()).collect();
        let mut sum = PinLoad::default();
        for segment in all.into_iter().filter(|segment| segment.meets(dimension, area, side_chunks)) {
            if !open.open_within(segment, |_| false)? {
                sum.is_limited = true;
                continue;
            }
            submissions.apply(segment)?;
            let left = max_bytes.saturating_sub(sum.bytes);
            // The area is pinned there since it was opened.
            let load = |world: &World| world.cache().pin(dimension, area).load(left);
            let Some(loaded) = open.with_stored(segment, load)? else { continue };
            sum.chunks += loaded.chunks;
            sum.bytes += loaded.bytes;
            sum.damaged += loaded.damaged;
            if loaded.is_limited {
                sum.is_limited = true;
                break;
            }
        }
        Ok(sum)
    }
}
