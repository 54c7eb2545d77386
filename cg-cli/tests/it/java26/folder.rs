//! Two folders of saves against each other: paths, bytes, and regions slot by slot.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use cg_anvil::region::{ReadLimits, Region};
use cg_anvil::save;

use super::save::At;
use super::tree;
use crate::worlds;

/// A slot's time and its NBT.
pub(super) type Slots = BTreeMap<u16, (u32, Vec<u8>)>;

/// Every slot of a region file.
pub(super) fn slots(path: &Path) -> Slots {
    let mut region = Region::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let listed: Vec<_> = region.slots().collect();
    let read = |slot| {
        let mut bytes = Vec::new();
        region.read(slot, &ReadLimits::default(), &mut bytes).expect("readable");
        (slot.index(), (region.timestamp(slot), bytes))
    };
    listed.into_iter().map(read).collect()
}

/// The paths of all files below a folder, with `/`.
pub(super) fn paths(folder: &Path) -> BTreeSet<String> {
    fn add(folder: &Path, prefix: &str, all: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let entry = entry.expect("readable");
            let name = format!("{prefix}{}", entry.file_name().to_str().expect("made with text"));
            if entry.path().is_dir() {
                add(&entry.path(), &format!("{name}/"), all);
            } else {
                all.insert(name);
            }
        }
    }
    let mut all = BTreeSet::new();
    add(folder, "", &mut all);
    all
}

/// The paths that have to come back: not the lock, and no region file without a slot.
fn lasting(folder: &Path) -> BTreeSet<String> {
    let is_empty = |name: &str| is_region(name) && slots(&folder.join(name)).is_empty();
    paths(folder).into_iter().filter(|name| name != "session.lock" && !is_empty(name)).collect()
}

pub(super) fn is_region(name: &str) -> bool {
    save::is_region_part(name) && !is_external(name)
}

fn is_external(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending == "mcc")
}

/// All paths are the same, and so is what is there: bytes of files, trees and times of slots.
#[track_caller]
pub(super) fn check_same(before: &Path, after: &Path) {
    check_moved(before, after, str::to_owned);
}

/// As [`check_same`], where each path of the first folder has become another.
#[track_caller]
pub(super) fn check_moved(before: &Path, after: &Path, moved: impl Fn(&str) -> String) {
    let wanted: BTreeMap<_, _> = lasting(before).into_iter().map(|name| (moved(&name), name)).collect();
    let (wanted_names, found): (Vec<_>, Vec<_>) =
        (wanted.keys().collect(), lasting(after).into_iter().collect());
    assert_eq!(found.iter().collect::<Vec<_>>(), wanted_names, "other paths");
    for (name, source) in wanted {
        let (before, after) = (before.join(source), after.join(&name));
        if is_region(&name) {
            check_slots(&name, &slots(&before), &slots(&after));
        } else if !is_external(&name) {
            assert!(fs::read(before).expect("readable") == fs::read(after).expect("readable"), "{name}");
        }
    }
}

/// Slots are in the same places, of the same times, and hold the same trees.
#[track_caller]
pub(super) fn check_slots(name: &str, before: &Slots, after: &Slots) {
    let times = |slots: &Slots| -> Vec<_> { slots.iter().map(|(slot, (time, _))| (*slot, *time)).collect() };
    assert_eq!(times(after), times(before), "{name}: slots and times");
    for (slot, (_, bytes)) in before {
        assert_eq!(tree::difference(bytes, &after[slot].1), None, "{name} slot {slot}");
    }
}

/// Slots are byte for byte what they were.
#[track_caller]
pub(super) fn check_bytes(name: &str, before: &Slots, after: &Slots) {
    check_slots(name, before, after);
    for (slot, (_, bytes)) in before {
        assert!(after[slot].1 == *bytes, "{name} slot {slot}: other bytes");
    }
}

/// Mark of each column of a dimension's folder, from its blocks; empty where there is no region file.
pub(super) fn marks(folder: &Path) -> BTreeMap<At, String> {
    let mut marks = BTreeMap::new();
    let Ok(files) = fs::read_dir(folder.join("region")) else { return marks };
    for file in files {
        let path = file.expect("readable").path();
        if path.extension().is_none_or(|ending| ending != "mca") {
            continue;
        }
        for (_, column) in worlds::read(&path).columns {
            let at = (column.pos.x, column.pos.z);
            let state = column.state(at.0 * 16, 64, at.1 * 16).map_or("", |state| state);
            marks.insert(at, state.trim_start_matches("test:").to_owned());
        }
    }
    marks
}

/// A dimension's folder holds these columns, all of one mark.
#[track_caller]
pub(super) fn check_marks(folder: &Path, mark: &str, columns: &[At]) {
    let wanted: BTreeMap<_, _> = columns.iter().map(|at| (*at, mark.to_owned())).collect();
    assert_eq!(marks(folder), wanted, "{}", folder.display());
}

/// The region files of a save that have slots, by path.
pub(super) fn regions(folder: &Path) -> Vec<String> {
    lasting(folder).into_iter().filter(|name| is_region(name)).collect()
}

/// The files of a save that are no part of a region.
pub(super) fn other_files(folder: &Path) -> Vec<String> {
    lasting(folder).into_iter().filter(|name| !save::is_region_part(name)).collect()
}

/// Copies a folder so that the copy can be changed, whatever the original allows.
pub(super) fn copy(from: &Path, to: &Path) {
    for name in paths(from) {
        let path = to.join(&name);
        fs::create_dir_all(path.parent().expect("below the folder")).expect("a folder");
        fs::write(path, fs::read(from.join(name)).expect("readable")).expect("written");
    }
}

/// Moves a folder, and makes what is around the new place.
pub(super) fn move_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().expect("below a folder")).expect("a folder");
    fs::rename(from, to).expect("moved");
}
