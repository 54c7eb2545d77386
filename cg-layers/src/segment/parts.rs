//! The parts of a segmented world.

use std::sync::Arc;

use cg_store::{Error, World};

use super::borders::Borders;
use super::home::SegmentHome;
use super::open::OpenSegments;
use super::options::SegmentOptions;
use super::root::Root;
use super::rows::SegmentState;
use super::submissions::Submissions;
use super::ticks::Ticks;
use super::transfers::Transfers;

/// The parts of a segmented world. Each uses those before it.
pub(super) struct Parts<H: SegmentHome> {
    pub(super) root: Arc<Root>,
    pub(super) open: Arc<OpenSegments<H>>,
    pub(super) ticks: Ticks<H>,
    pub(super) borders: Arc<Borders<H>>,
    pub(super) transfers: Arc<Transfers<H>>,
    pub(super) submissions: Arc<Submissions<H>>,
}

impl<H: SegmentHome> Parts<H> {
    /// Begins with a root, which is new if there is a `new_side`. Finishes what a crash interrupted.
    pub(super) fn begin(
        home: H,
        root: World,
        new_side: Option<u32>,
        options: &SegmentOptions,
    ) -> Result<Self, Error> {
        let root = Arc::new(Root::begin(root, new_side, options.world.durability)?);
        let open = Arc::new(OpenSegments::new(Arc::clone(&root), home, options));
        let ticks = Ticks::new(Arc::clone(&open), options.world.prefetch.as_ref());
        let borders = Arc::new(Borders::new(Arc::clone(&open)));
        let transfers = Arc::new(Transfers::new(Arc::clone(&open), Arc::clone(&borders)));
        let submissions = Submissions::new(Arc::clone(&open), Arc::clone(&borders), Arc::clone(&transfers));
        root.refuse_old_merge()?;
        for segment in root.segments(SegmentState::Deleting) {
            open.finish_deletion(segment)?;
            borders.forget_places_of(segment)?;
        }
        transfers.finish_at_open()?;
        Ok(Self { root, open, ticks, borders, transfers, submissions: Arc::new(submissions) })
    }
}
