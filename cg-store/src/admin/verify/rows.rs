//! Verification of single rows: the key, the frame, and everything that needs few other rows.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use cg_format::cluster::{Slot, SlotInfo, StoredCluster};
use cg_format::entity::Entity;
use cg_format::frame::{FrameHeader, FrameView, version_of};
use cg_format::key::{self, Family};
use cg_format::opacity::{Patch, TileView, unpack};
use cg_format::{ChunkAt, ChunkBox, ClusterPos, ClusterTier, DecodeError, Limits, Lookup, Section, Space};

use super::{Verifier, VerifyDepth};
use crate::admin::quarantine::{Gap, LostChunks};
use crate::engine::{ALL_KEYS, EngineError, Met, Readable, row_in_words, scan_skipping_damage};
use crate::read::chunk::{Rows, find};
use crate::read::delta;
use crate::storage::error::{Error, hex};
use crate::storage::staged::is_part;

impl Verifier<'_> {
    /// Checks every row of a family. Rows that the engine cannot read are reported by the keys around them.
    pub(super) fn rows(
        &mut self,
        view: &dyn Readable,
        family: Family,
        depth: VerifyDepth,
    ) -> Result<(), Error> {
        let mut last = None::<Vec<u8>>;
        let stopped = scan_skipping_damage(view, family, ALL_KEYS, |met| {
            let (key, row) = match met {
                Met::Row(key, row) => (key, row),
                Met::Gap { until, error } => {
                    self.gap_in_snapshots();
                    let told = self.gap(view, family, last.as_deref(), until, &error);
                    return told.map_or_else(ControlFlow::Break, ControlFlow::Continue);
                }
            };
            let last = last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(key);
            self.rows += 1;
            if self.rows.is_multiple_of(1024) {
                (self.progress)(self.rows);
            }
            self.count(family.name());
            let Some(space) = Space::of_row(family, key) else {
                self.find_in(family, key, "a key that this release does not know; the row is left alone");
                return ControlFlow::Continue(());
            };
            if space == Space::Snapshot && depth == VerifyDepth::Full {
                self.snapshot_row(view, key, row);
            }
            match self.row(view, space, key, row, depth) {
                Ok(()) => {}
                // Without a sound key a row cannot be restored or quarantined.
                Err(problem) if problem.section == Section::Key => {
                    self.find(space, key, problem.to_string());
                }
                Err(problem) => match row_in_words(space, key) {
                    Some(words) => self.damaged(space, key, format_args!("{words}: {problem}")),
                    None => self.damaged(space, key, problem),
                },
            }
            ControlFlow::Continue(())
        })?;
        self.end_of_snapshot();
        stopped.map_or(Ok(()), Err)
    }

    /// Reports keys that the engine cannot list: for chunks the affected ones, otherwise the rows around the gap.
    fn gap(
        &mut self,
        view: &dyn Readable,
        family: Family,
        last: Option<&[u8]>,
        until: Option<&[u8]>,
        error: &EngineError,
    ) -> Result<(), Error> {
        let space = match family {
            Family::ChunkL0 => Space::ChunkL0,
            Family::ChunkL1 => Space::ClusterL1,
            Family::ChunkL2 => Space::ClusterL2,
            _ => {
                let first =
                    last.map_or("the first key".into(), |last| format!("after {}", in_words(family, last)));
                let until = until.map_or("the end".into(), |key| format!("before {}", in_words(family, key)));
                let what = format!(
                    "nothing can be read from {first} to {until}: {error}; restore it from a checkpoint"
                );
                self.find_in(family, &[], what);
                return Ok(());
            }
        };
        let gap = Gap::new(space, last, until, error);
        let Some(boxes) = gap.lost(view)? else {
            let what = format!("{error}; which chunks are lost is not known; restore them from a checkpoint");
            self.find(space, &[], what);
            return Ok(());
        };
        for (chunks, count) in &boxes {
            let LostChunks { dimension, bounds } = chunks;
            let (min, max, dimension) = (bounds.min(), bounds.max(), dimension.get());
            let row = if space == Space::ChunkL0 { "chunk" } else { "cluster" };
            let plural = if *count == 1 { "" } else { "s" };
            let what = format!(
                "{count} {row}{plural} in the box of chunks {min} to {max} of dimension {dimension} cannot be read: {error}; {}",
                super::remedy(space)
            );
            self.find_lost(space, &[], what, Some(*chunks));
        }
        if boxes.is_empty() {
            let what =
                format!("rows cannot be listed, but each can be read: {error}; `cg quarantine` mends that");
            self.find_lost(space, &[], what, gap.place(view)?);
        }
        Ok(())
    }

    fn row(
        &mut self,
        view: &dyn Readable,
        space: Space,
        key: &[u8],
        row: &[u8],
        depth: VerifyDepth,
    ) -> Result<(), DecodeError> {
        // A part of a commit that is being staged, or that was never committed. It has no effect, and is deleted later.
        if is_part(space, key) {
            return Ok(());
        }
        let frame = FrameView::open(space, key, row)?;
        let FrameHeader { version, lineage, .. } = frame.header();
        let of_world = self.lineage.word_of(version);
        if version > self.last_commit {
            let last = self.last_commit;
            self.find(space, key, format!("version {version} is newer than the last commit, {last}"));
        } else if lineage != of_world {
            let what = format!(
                "it is of another history of this world: commit {version} is of opening {lineage:08x} there, and of \
                 opening {of_world:08x} here; its file was brought from a copy that went on by itself, so bring the \
                 file of this world back, or restore a checkpoint"
            );
            self.find_lost(space, key, what, LostChunks::of_row(space, key));
        }
        match space {
            Space::ChunkL0 => {
                key::decode_chunk(key)?;
                if depth == VerifyDepth::Full {
                    frame.raw_payload_in(&mut Limits::default(), &mut self.buffer)?;
                }
            }
            Space::ClusterL1 => self.cluster(view, ClusterTier::L1, key, &frame, depth)?,
            Space::ClusterL2 => self.cluster(view, ClusterTier::L2, key, &frame, depth)?,
            Space::Entity => {
                let id = key::decode_entity(key)?;
                if depth == VerifyDepth::Full {
                    self.entity(id, frame.header().schema_generation, &Entity::decode(frame.payload())?);
                }
            }
            Space::OpacityTile => {
                key::decode_opacity_tile(key)?;
                TileView::new(&unpack(frame.payload())?)?;
            }
            Space::OpacityPatch => {
                key::decode_opacity_patch(key)?;
                Patch::decode(frame.payload())?;
            }
            Space::ChunkDelta => {
                delta::read(key, row)?;
                let (at, _) = key::decode_delta(key)?;
                // Damage is reported with the damaged row.
                if depth == VerifyDepth::Full
                    && let Ok(Lookup::Tombstone | Lookup::NotFound) =
                        find(Rows::View(view), self.counters, at, |_| Ok(()))
                {
                    let what = format!("it changes {at}, which is not stored");
                    self.find(space, key, what);
                }
            }
            Space::ChangeMark => drop(key::decode_change_mark(key)?),
            Space::ChangeLog => {
                let (.., commit) = key::decode_change_log(key).map(|(space, commit, _)| (space, commit))?;
                let version = frame.header().version;
                if commit != version {
                    let what =
                        format!("its key says that commit {commit} logged it, its frame says {version}");
                    self.find(space, key, what);
                }
            }
            Space::Object => Self::object(key, &frame)?,
            Space::Record => self.record(view, key, &frame, depth)?,
            Space::RecordPlace => self.record_place(view, key, &frame, depth)?,
            Space::Intent => {
                let commit = key::decode_intent(key)?;
                let what = format!(
                    "commit {commit} is not rolled forward to its end; close the world and open it for writing"
                );
                self.find(space, key, what);
            }
            Space::Snapshot => self.snapshot(key, row, &frame, depth)?,
            Space::Quarantine => {
                let (.., commit) = key::decode_quarantine(key)?;
                let version = frame.header().version;
                if commit != version {
                    let what =
                        format!("its key says that commit {commit} set it aside, its frame says {version}");
                    self.find(space, key, what);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks every slot of a cluster: it is readable, not newer than the last commit, and not newer than a copy that
    /// hides it.
    fn cluster(
        &mut self,
        view: &dyn Readable,
        tier: ClusterTier,
        key: &[u8],
        frame: &FrameView<'_>,
        depth: VerifyDepth,
    ) -> Result<(), DecodeError> {
        let (dimension, pos) = key::decode_cluster(tier, key)?;
        let cluster = StoredCluster::new(tier, frame)?;
        let space = Space::of_cluster(tier);
        let mut warm = WarmVersions::default();
        for (slot, SlotInfo { version, .. }) in cluster.slots() {
            let Some(pos) = slot.chunk(pos) else {
                self.find(space, key, format!("{slot:?} lies outside the world"));
                continue;
            };
            let at = ChunkAt { dimension, pos };
            if version > self.last_commit {
                let what =
                    format!("{at} has version {version}, newer than the last commit, {}", self.last_commit);
                self.find(space, key, what);
            } else if depth == VerifyDepth::Full {
                let hot = version_in(view, Space::ChunkL0, &key::chunk(at));
                let hiding = hot.or_else(|| (tier == ClusterTier::L2).then(|| warm.of(view, at))?);
                if let Some(hiding) = hiding.filter(|hiding| *hiding < version) {
                    let what = format!(
                        "{at} has version {version}, but a hotter copy with version {hiding} hides it"
                    );
                    self.find(space, key, what);
                }
            }
        }
        if depth == VerifyDepth::Full {
            for index in cluster.groups() {
                if let Err(problem) = cluster.group(index, &mut Limits::default()) {
                    let mut slots = Slot::all(tier).filter(|slot| cluster.group_of(*slot) == index);
                    let corner = |slot: Option<Slot>| slot.and_then(|slot| slot.chunk(pos));
                    let bounds = corner(slots.next())
                        .zip(corner(slots.next_back()))
                        .map(|(first, last)| ChunkBox::new(first, last));
                    let place = bounds.map_or_else(
                        || format!("group {index}"),
                        |bounds| format!("chunks {} to {}", bounds.min(), bounds.max()),
                    );
                    let (number, help) = (dimension.get(), super::remedy(space));
                    let what = format!("{place} of dimension {number}: {problem}; {help}");
                    self.find_lost(space, key, what, bounds.map(|bounds| LostChunks { dimension, bounds }));
                }
            }
        }
        Ok(())
    }
}

/// The versions of warm chunks. One cluster is cached.
#[derive(Default)]
struct WarmVersions {
    cluster: Option<(ClusterPos, BTreeMap<Slot, u64>)>,
}

impl WarmVersions {
    /// The version of a warm chunk; `None` if there is no readable one.
    fn of(&mut self, view: &dyn Readable, at: ChunkAt) -> Option<u64> {
        let pos = at.pos.cluster(ClusterTier::L1);
        let versions = match &mut self.cluster {
            Some((known, versions)) if *known == pos => versions,
            cluster => &mut cluster.insert((pos, Self::read(view, at).unwrap_or_default())).1,
        };
        versions.get(&Slot::of(at.pos, ClusterTier::L1)).copied()
    }

    fn read(view: &dyn Readable, at: ChunkAt) -> Option<BTreeMap<Slot, u64>> {
        let key = key::cluster(at.dimension, at.pos.cluster(ClusterTier::L1));
        let row = view.get(Space::ClusterL1, &key).ok()??;
        let cluster = StoredCluster::open(ClusterTier::L1, &key, &row).ok()?;
        Some(cluster.slots().map(|(slot, info)| (slot, info.version)).collect())
    }
}

/// The version of a row; `None` if there is no readable one.
fn version_in(view: &dyn Readable, space: Space, key: &[u8]) -> Option<u64> {
    version_of(&view.get(space, key).ok()??)
}

/// A description of a row, or its key if that does not show its kind.
fn in_words(family: Family, row: &[u8]) -> String {
    let words = Space::of_row(family, row).and_then(|space| row_in_words(space, row));
    words.unwrap_or_else(|| hex(row))
}
