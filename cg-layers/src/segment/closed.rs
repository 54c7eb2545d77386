//! A segmented world that no process has open, opened for reading.

use std::collections::BTreeMap;
use std::path::Path;

use cg_store::{Error, World, WorldOptions};

use super::checks::{check_is_segment, check_names};
use super::disk::OnDisk;
use super::error::SegmentError;
use super::history;
use super::home::SegmentHome as _;
use super::pos::SegmentPos;
use super::root::read_known;
use super::rows::{SegmentState, old_merge_property};

/// A segmented world that is only read. Its root is open; a segment is opened by each call that asks for it.
pub(super) struct ClosedWorld {
    home: OnDisk,
    root: World,
    side_chunks: u32,
    known: BTreeMap<SegmentPos, SegmentState>,
    options: WorldOptions,
}

impl ClosedWorld {
    /// Opens the root.
    ///
    /// # Errors
    /// [`SegmentError::NotSegmented`], [`SegmentError::DamagedRoot`], and the errors of opening it for reading.
    pub(super) fn open(dir: &Path, options: &WorldOptions) -> Result<Self, Error> {
        let home = OnDisk::new(dir);
        let (root, side_chunks) = home.read_root(options)?;
        let known = read_known(&root)?;
        Ok(Self { home, root, side_chunks, known, options: options.clone() })
    }

    /// As [`open`](Self::open), for what must have all of the world.
    ///
    /// # Errors
    /// As [`open`](Self::open); [`SegmentError::UnfinishedMerge`]; [`SegmentError::NotKnown`].
    pub(super) fn open_whole(dir: &Path, options: &WorldOptions) -> Result<Self, Error> {
        let world = Self::open(dir, options)?;
        world.check_merged()?;
        world.home.refuse_unknown(|segment| world.known.contains_key(&segment))?;
        Ok(world)
    }

    pub(super) const fn root(&self) -> &World {
        &self.root
    }

    pub(super) const fn side_chunks(&self) -> u32 {
        self.side_chunks
    }

    /// The segments that the root has, ascending.
    pub(super) fn segments(&self) -> Vec<SegmentPos> {
        let there = self.known.iter().filter(|(_, state)| **state == SegmentState::There);
        there.map(|(segment, _)| *segment).collect()
    }

    /// Opens the world of a segment for reading, with the checks of a segment that is opened for writing. Its names are those
    /// that it had when it was opened for writing last.
    ///
    /// # Errors
    /// [`SegmentError::Lost`], [`SegmentError::Names`], those of a world that is not this segment of this root,
    /// [`SegmentError::Replaced`], and the errors of opening it.
    pub(super) fn segment(&self, segment: SegmentPos) -> Result<World, Error> {
        let path = self.home.path(segment);
        if !self.home.has(segment)? {
            return Err(SegmentError::Lost { segment, at: path.into() }.into());
        }
        let world = World::builder().options(&self.options).open_read_only(&path)?;
        check_names(segment, &world.catalog(), &self.root.catalog())?;
        check_is_segment(&self.root, &world, segment)?;
        history::check(&self.root, &world, segment)?;
        Ok(world)
    }

    /// Refuses a merge that an earlier version committed and did not finish.
    ///
    /// # Errors
    /// [`SegmentError::UnfinishedMerge`].
    fn check_merged(&self) -> Result<(), Error> {
        let merge = self.root.property(&old_merge_property()?)?;
        merge.map_or(Ok(()), |_| Err(SegmentError::UnfinishedMerge.into()))
    }

    /// What is wrong with the world beside the content of its parts, each as a sentence.
    pub(super) fn findings(&self) -> Result<Vec<String>, Error> {
        let mut findings = Vec::new();
        match self.check_merged() {
            Err(error) if error.layer() == Some(&SegmentError::UnfinishedMerge) => {
                findings.push(error.to_string());
            }
            checked => checked?,
        }
        let unknown = self.home.unknown(|segment| self.known.contains_key(&segment))?;
        findings.extend(unknown.segments.iter().map(|segment| self.home.not_known(*segment).to_string()));
        let others = unknown.others.iter();
        findings.extend(others.map(|name| format!("segments/{name} is no segment; it may be moved away")));
        Ok(findings)
    }
}
