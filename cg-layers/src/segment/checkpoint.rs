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
use super::root::read_there;
use super::rows::{place_property, whole};
use super::world::SegmentedWorld;

impl SegmentedWorld<OnDisk> {
    /// Copies the world into a new directory, by hard links where the file system allows: each segment and the root, as
    /// [`World::checkpoint`](cg_store::World::checkpoint) copies a world. The copy opens like any segmented world.
    ///
    /// Several databases have no common moment. What the copy has is this:
    ///
    /// - Names, what is in the root, and the list of segments are of the moment at which the call began.
    /// - Each entity, property, object and record is in one segment or in none, and the root's places are those of the copy. One
    ///   that was deleted in a segment and put into another one during the call is in the latter, if both copies have it. No
    ///   entity is in transit but one that damage keeps there, as [`transfer_entities`](Self::transfer_entities) says: it is in
    ///   transit in the copy too, and may be in two segments of it. Calls that transfer entities, merge overlays, register names
    ///   or delete a segment wait until the call ends; no other call does.
    /// - Each segment is of one moment within the call, with all that was committed or submitted before the call began. So a
    ///   transaction is there whole or not at all. Everything may be written meanwhile; of two commits in two segments during the
    ///   call, the copy may have the later one only.
    ///
    /// Opens every stored segment, one after the other. Costs a flush and the links or copies of the files of each. A copy
    /// that fails is removed; one that a crash interrupts is no segmented world.
    ///
    /// # Errors
    /// [`SegmentError::NotKnown`](crate::SegmentError::NotKnown) if there is a segment that the root does not know: the copy would
    /// not have it. [`OpenError::NotEmpty`] if the directory exists and is not empty; why a segment cannot be opened; the errors of
    /// `World::checkpoint`. [`Error::Nested`] inside a closure of [`transaction`](Self::transaction) or
    /// [`Segments::with`](crate::Segments::with).
    pub fn checkpoint(&self, dir: impl AsRef<Path>, files: CheckpointFiles) -> Result<(), Error> {
        let (parts, dir) = (&*self.parts, dir.as_ref());
        parts.open.refuse_inside()?;
        parts.submissions.apply_all()?;
        let _alone = parts.borders.moving().lock();
        parts.transfers.resolve()?;
        let _no_new_names = parts.root.hold_names();
        parts.open.home().refuse_unknown(|segment| parts.root.state(segment).is_some())?;
        claim(dir)?;
        let copy = OnDisk::new(dir);
        self.fill(&copy, files)
            .and_then(|()| publish(&copy, |path| Ok(sync_parent(path)?)))
            .inspect_err(|_| discard(&copy))
    }

    /// Makes a copy that is not published.
    fn fill(&self, copy: &OnDisk, files: CheckpointFiles) -> Result<(), Error> {
        let (parts, unfinished) = (&*self.parts, copy.unfinished_dir());
        // First: a segment that is created meanwhile is not in its list. None is deleted meanwhile.
        let since = parts.borders.placed.begin();
        self.root().checkpoint(&unfinished, files)?;
        let options =
            WorldOptions { resources: cg_store::layer::resources(self.root()), ..WorldOptions::default() };
        let segments = read_there(&World::builder().options(&options).open_read_only(&unfinished)?)?;
        for segment in &segments {
            parts.open.with_there(*segment, |world| world.checkpoint(copy.path(*segment), files))?;
        }
        let places = since.places();
        drop(since);
        if !places.is_empty() {
            let root = World::builder().options(&options).open(&unfinished)?;
            Copied { copy, root: &root, options: &options, segments }.place(places)?;
            root.close()?;
        }
        Ok(())
    }
}

/// Makes a segmented world of a copy that has everything. `sync_parent` syncs the directory that a path is in.
fn publish(copy: &OnDisk, sync_parent: impl Fn(&Path) -> Result<(), Error>) -> Result<(), Error> {
    let (root, unfinished) = (copy.root_dir(), copy.unfinished_dir());
    // A power cut must not keep the root without the segments.
    sync_parent(&copy.segments_dir())?;
    fs::rename(&unfinished, &root).map_err(|source| OpenError::Io {
        action: "rename",
        path: unfinished,
        source,
    })?;
    sync_parent(&root)?;
    sync_parent(copy.dir())
}

/// Removes a copy that failed. From the first step on it is no segmented world.
fn discard(copy: &OnDisk) {
    let (root, unfinished) = (copy.root_dir(), copy.unfinished_dir());
    let hidden = if root.exists() { fs::rename(&root, &unfinished) } else { Ok(()) };
    let removed = [root, unfinished, copy.segments_dir()].map(fs::remove_dir_all);
    for failed in removed.into_iter().chain([hidden]) {
        if let Err(error) = failed
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, dir = %copy.dir().display(), "a copy that failed is not removed");
        }
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::path::PathBuf;

    use super::*;

    /// A copy that has everything, in a directory of its own.
    struct Full(PathBuf, OnDisk);

    impl Full {
        fn new(name: &str) -> Self {
            let dir = std::env::temp_dir().join(format!("cg-checkpoint-{name}-{}", std::process::id()));
            let copy = OnDisk::new(&dir);
            for part in [copy.unfinished_dir(), copy.segments_dir().join("0.0.0.0")] {
                fs::create_dir_all(&part).expect("is new");
                fs::write(part.join("world.cg"), "world").expect("is new");
            }
            Self(dir, copy)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).expect("is there");
            let mut names: Vec<_> = entries
                .map(|entry| entry.expect("is listed").file_name().to_string_lossy().into_owned())
                .collect();
            names.sort();
            names
        }
    }

    impl Drop for Full {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_segments_are_on_the_disk_before_there_is_a_root() {
        let full = Full::new("order");
        let first = Cell::new(true);
        let published = publish(&full.1, |path| {
            if first.take() {
                assert_eq!(path, full.1.segments_dir());
                assert_eq!(full.names(), ["root.unfinished", "segments"]);
            } else {
                assert_eq!(full.names(), ["root", "segments"]);
            }
            Ok(())
        });
        published.expect("nothing fails");
        assert!(!first.get());
        assert_eq!(full.names(), ["root", "segments"]);
    }

    #[test]
    fn a_copy_whose_sync_fails_leaves_nothing() {
        for failing in 0..3 {
            let full = Full::new(&format!("sync-{failing}"));
            let calls = Cell::new(0);
            let published = publish(&full.1, |path| {
                if calls.replace(calls.get() + 1) < failing {
                    return Ok(());
                }
                let source = io::Error::other("no space left");
                Err(OpenError::Io { action: "sync", path: path.into(), source }.into())
            });
            let error = published.expect_err("a sync fails");
            assert!(matches!(error, Error::Open(OpenError::Io { action: "sync", .. })), "{error}");
            assert_eq!(calls.get(), failing + 1);
            discard(&full.1);
            assert_eq!(full.names(), [""; 0], "failing call {failing}");
        }
    }
}
