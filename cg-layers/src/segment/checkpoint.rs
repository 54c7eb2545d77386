//! A copy of a segmented world that is in use.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

use cg_store::error::ConflictKey;
use cg_store::layer::{claim, sync_parent};
use cg_store::{CheckpointFiles, Durability, Error, OpenError, World, WorldOptions};

use super::accept::delete_all;
use super::disk::OnDisk;
use super::held::{Held, delete};
use super::place::Place;
use super::pos::SegmentPos;
use super::root::read_known;
use super::rows::{SegmentState, place_property, whole};
use super::world::SegmentedWorld;

/// The root's directory in a copy that is not finished: without `root`, the copy is no segmented world.
pub(super) const UNFINISHED: &str = "root.unfinished";

impl SegmentedWorld<OnDisk> {
    /// Copies the world into a new directory, by hard links where the file system allows: each segment and the root, as
    /// [`World::checkpoint`](cg_store::World::checkpoint) copies a world. The copy opens like any segmented world.
    ///
    /// Several databases have no common moment. What the copy has is this:
    ///
    /// - Names, what is in the root, and the list of segments are of the moment at which the call began.
    /// - Each entity, property, object and record is in one segment or in none, no entity is in transit, and the root's places
    ///   are those of the copy. One that was deleted in a segment and put into another one during the call is in the latter, if
    ///   both copies have it. Calls that transfer entities, merge overlays, register names or delete a segment wait until the
    ///   call ends; no other call does.
    /// - Each segment is of one moment within the call, with all that was committed or submitted before the call began. So a
    ///   transaction is there whole or not at all. Everything may be written meanwhile; of two commits in two segments during the
    ///   call, the copy may have the later one only.
    ///
    /// Opens every stored segment, one after the other. Costs a flush and the links or copies of the files of each. A copy
    /// that fails is removed; one that a crash interrupts is no segmented world.
    ///
    /// # Errors
    /// [`OpenError::NotEmpty`] if the directory exists and is not empty; why a segment cannot be opened; the errors of
    /// `World::checkpoint`. [`Error::Nested`] inside a closure of [`transaction`](Self::transaction) or
    /// [`Segments::with`](crate::Segments::with).
    pub fn checkpoint(&self, dir: impl AsRef<Path>, files: CheckpointFiles) -> Result<(), Error> {
        let (parts, dir) = (&*self.parts, dir.as_ref());
        parts.open.refuse_inside()?;
        parts.submissions.apply_all()?;
        let _alone = parts.borders.moving().lock();
        parts.transfers.resolve()?;
        let _no_new_names = parts.root.hold_names();
        claim(dir)?;
        self.fill(dir, files).inspect_err(|_| {
            for part in [UNFINISHED, "segments"] {
                if let Err(error) = fs::remove_dir_all(dir.join(part))
                    && error.kind() != io::ErrorKind::NotFound
                {
                    tracing::warn!(%error, dir = %dir.display(), "a copy that failed is not removed");
                }
            }
        })
    }

    fn fill(&self, dir: &Path, files: CheckpointFiles) -> Result<(), Error> {
        let (parts, copy) = (&*self.parts, OnDisk::new(dir));
        let unfinished = dir.join(UNFINISHED);
        // First: a segment that is created meanwhile is not in its list. None is deleted meanwhile.
        let since = parts.borders.placed.begin();
        self.root().checkpoint(&unfinished, files)?;
        let options =
            WorldOptions { resources: cg_store::layer::resources(self.root()), ..WorldOptions::default() };
        let known = read_known(&World::builder().options(&options).open_read_only(&unfinished)?)?;
        let segments: BTreeSet<_> = known
            .into_iter()
            .filter(|(_, state)| *state == SegmentState::There)
            .map(|(segment, _)| segment)
            .collect();
        for segment in &segments {
            parts.open.with_there(*segment, |world| world.checkpoint(copy.path(*segment), files))?;
        }
        let places = since.places();
        drop(since);
        if !places.is_empty() {
            let root = World::builder().options(&options).open(&unfinished)?;
            Copied { copy: &copy, root: &root, options: &options, segments }.place(places)?;
            root.close()?;
        }
        let root = copy.root_dir();
        fs::rename(&unfinished, &root).map_err(|source| OpenError::Io {
            action: "rename",
            path: unfinished,
            source,
        })?;
        sync_parent(&root)?;
        Ok(sync_parent(dir)?)
    }
}

/// A copy whose root does not know what was put while it was made.
struct Copied<'c> {
    copy: &'c OnDisk,
    root: &'c World,
    options: &'c WorldOptions,
    segments: BTreeSet<SegmentPos>,
}

impl Copied<'_> {
    /// Stores the places that keys got. A key that several worlds of the copy have is deleted in all but the last one that got
    /// it.
    fn place(&self, placed: BTreeMap<ConflictKey, Vec<Place>>) -> Result<(), Error> {
        let mut opened = BTreeMap::<SegmentPos, World>::new();
        let mut deleted = BTreeMap::<SegmentPos, Vec<ConflictKey>>::new();
        let (mut of_root, mut values) = (Vec::new(), Vec::new());
        for (key, placed) in placed {
            let before = self.root.property(&place_property(&key)?)?;
            let before =
                before.map(|bytes| whole(format_args!("place of {key}"), &bytes, Place::read)).transpose()?;
            let mut newest_first = Vec::<Place>::new();
            for place in before.into_iter().chain(placed).rev() {
                let is_other = newest_first.iter().all(|other| other.segment != place.segment);
                if is_other && self.segments.contains(&place.segment) {
                    newest_first.push(place);
                }
            }
            let is_value = !matches!(key, ConflictKey::Entity(_));
            let in_root = is_value && Held::of(self.root, &key)?.is_live();
            if newest_first.len() + usize::from(in_root) > 1 {
                let mut holders = Vec::new();
                for place in newest_first {
                    let world = match opened.entry(place.segment) {
                        Entry::Occupied(opened) => opened.into_mut(),
                        Entry::Vacant(closed) => closed.insert(self.open(place.segment)?),
                    };
                    if Held::of(world, &key)?.is_live() {
                        holders.push(place);
                    }
                }
                newest_first = holders;
            }
            let Some((place, others)) = newest_first.split_first() else { continue };
            values.push((place_property(&key)?, Some(place.to_bytes())));
            for other in others {
                deleted.entry(other.segment).or_default().push(key.clone());
            }
            of_root.extend(in_root.then_some(key));
        }
        for (segment, world) in opened {
            delete_all(&world, deleted.get(&segment).map_or(&[], Vec::as_slice))?;
            world.close()?;
        }
        let stored = self.root.transaction_at(Durability::Safe, |tx| {
            of_root.iter().try_for_each(|key| delete(tx, key))?;
            for (property, bytes) in values {
                tx.set_property(property, bytes);
            }
            Ok::<_, Error>(())
        });
        stored.map(drop)
    }

    fn open(&self, segment: SegmentPos) -> Result<World, Error> {
        World::builder().options(self.options).open(self.copy.path(segment))
    }
}
