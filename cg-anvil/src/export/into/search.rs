//! Where else in a save an entity is: every slot that may hold some, and the players.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use uuid::Uuid;

use super::error::IntoError;
use super::lists;
use super::options::IntoProgress;
use crate::export::slots::Part;
use crate::nbt::{self, Compound, Document, List};
use crate::region::{ColumnPos, Compression, ReadLimits, Region, RegionPos, Slot, decompress};
use crate::save::{self, Layout, RegionKind};

/// Folders of players, in the order of versions.
const PLAYERS: [&str; 3] = ["players", "playerdata", "players/data"];
/// The largest file of a player that is read.
pub(super) const MAX_PLAYER_BYTES: usize = 64 << 20;
/// Threads that read at most.
const MAX_THREADS: usize = 16;

/// A file that may hold entities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Searched {
    pub(super) dimension: String,
    pub(super) part: Part,
    pub(super) pos: RegionPos,
    pub(super) path: PathBuf,
}

/// Where entities are found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// By region file and slot.
    pub(super) slots: BTreeMap<PathBuf, (Searched, BTreeMap<Slot, BTreeSet<Uuid>>)>,
    /// By the file of the player who rides them.
    pub(super) players: BTreeMap<PathBuf, BTreeSet<Uuid>>,
    /// Slots that cannot be read.
    pub(super) unread: u64,
}

/// The region files of a save that may hold entities, in those folders in which the game looks.
pub(super) fn files(root: &Path, looks: Layout) -> Result<Vec<Searched>, IntoError> {
    let save = save::find(root)?;
    let strays = save.strays.iter().flat_map(|strays| &strays.files);
    let mut files = Vec::new();
    for file in save.regions.iter().chain(strays) {
        let part = match file.kind {
            RegionKind::Blocks => Part::Region,
            RegionKind::Entities => Part::Entities,
            RegionKind::ByContent | RegionKind::PointsOfInterest => continue,
        };
        let Some(pos) = file.pos else { continue };
        let is_looked_at = save::only_layout(&file.dimension).is_some() || file.layout == Some(looks);
        if is_looked_at && file.path.file_name().is_some_and(|name| *name == *pos.file_name()) {
            let (dimension, path) = (file.dimension.clone(), file.path.clone());
            files.push(Searched { dimension, part, pos, path });
        }
    }
    Ok(files)
}

/// Finds these entities in files, but for slots that are `skipped`, and with the players of the save.
///
/// Reads every slot of the files once, with a thread for each processor; holds a slot for each.
pub(super) fn search(
    root: &Path,
    files: &[Searched],
    wanted: &HashSet<Uuid>,
    skipped: impl Fn(&Searched, ColumnPos) -> bool + Sync,
    watch: &mut dyn FnMut(IntoProgress<'_>),
) -> Result<Found, IntoError> {
    let mut found = Found { players: players(root, wanted)?, ..Found::default() };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS).min(files.len());
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (send, receive) = channel();
        for _ in 0..threads {
            let (send, next, skipped) = (send.clone(), &next, &skipped);
            scope.spawn(move || {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if send.send((file, search_file(file, wanted, skipped))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        for (done, (file, searched)) in receive.into_iter().enumerate() {
            let (slots, unread) =
                searched.map_err(|source| IntoError::Io { path: file.path.clone(), source })?;
            found.unread += unread;
            if !slots.is_empty() {
                found.slots.insert(file.path.clone(), (file.clone(), slots));
            }
            watch(IntoProgress::Searched { files_done: done + 1, files: files.len() });
        }
        Ok(found)
    })
}

/// The wanted entities of a file by slot, and how many slots cannot be read.
fn search_file(
    file: &Searched,
    wanted: &HashSet<Uuid>,
    skipped: &impl Fn(&Searched, ColumnPos) -> bool,
) -> io::Result<(BTreeMap<Slot, BTreeSet<Uuid>>, u64)> {
    let mut region = Region::open(&file.path)?;
    let slots: Vec<_> = region.slots().collect();
    let (mut found, mut unread, mut bytes) = (BTreeMap::new(), 0, Vec::new());
    for slot in slots.into_iter().filter(|slot| !skipped(file, file.pos.column(*slot))) {
        if region.read(slot, &ReadLimits::default(), &mut bytes).is_err() {
            unread += 1;
            continue;
        }
        let Ok(document) = Document::parse(&bytes, &nbt::Limits::default()) else {
            unread += 1;
            continue;
        };
        let here: BTreeSet<_> =
            lists::uuids(document.root).into_iter().flatten().filter(|uuid| wanted.contains(uuid)).collect();
        if !here.is_empty() {
            found.insert(slot, here);
        }
    }
    Ok((found, unread))
}

/// The wanted entities that players ride, or have thrown, by file. A file that is none of a player's is passed over.
fn players(root: &Path, wanted: &HashSet<Uuid>) -> Result<BTreeMap<PathBuf, BTreeSet<Uuid>>, IntoError> {
    let mut files = vec![root.join("level.dat")];
    for folder in PLAYERS.map(|folder| root.join(folder)).into_iter().filter(|folder| folder.is_dir()) {
        let failed = |source| IntoError::Io { path: folder.clone(), source };
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|ending| ending == "dat") && path.is_file() {
                files.push(path);
            }
        }
    }
    let mut found = BTreeMap::new();
    for path in files {
        let mut stored = Vec::new();
        let read =
            File::open(&path).and_then(|file| file.take(MAX_PLAYER_BYTES as u64).read_to_end(&mut stored));
        read.map_err(|source| IntoError::Io { path: path.clone(), source })?;
        let here: BTreeSet<_> = held_in(&stored).into_iter().filter(|uuid| wanted.contains(uuid)).collect();
        if !here.is_empty() {
            found.insert(path, here);
        }
    }
    Ok(found)
}

/// The entities that the player of a file has with them; none if it cannot be read.
pub(super) fn held_in(stored: &[u8]) -> Vec<Uuid> {
    let mut raw = Vec::new();
    if decompress(Compression::Gzip, stored, MAX_PLAYER_BYTES, &mut raw).is_err() {
        return Vec::new();
    }
    let document = Document::parse(&raw, &nbt::Limits::default());
    document.map_or_else(|_| Vec::new(), |document| held_by(document.root))
}

/// The entities that a player, or the one of a `level.dat`, has with them.
pub(super) fn held_by(root: Compound<'_>) -> Vec<Uuid> {
    let player = root.compound("Data").map_or(Some(root), |data| data.compound("Player"));
    let ridden = player.and_then(|player| player.compound("RootVehicle")?.compound("Entity"));
    let thrown = player.and_then(|player| player.list("ender_pearls")).into_iter().flat_map(List::compounds);
    ridden.into_iter().chain(thrown).flat_map(lists::uuids_of_entity).flatten().collect()
}
