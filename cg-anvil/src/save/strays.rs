//! Dimensions with region files in both layouts: one side is the game's, the other is left over.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::file::{RegionFile, RegionKind};
use super::layout::Layout;
use crate::Region;

/// The namespace of dimensions that are made of strays.
const STRAY: &str = "stray";

/// Region files of a dimension in the layout in which the game does not look for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strays {
    /// The dimension.
    pub dimension: String,
    /// The layout of the files.
    pub layout: Layout,
    /// The files: blocks, entities and points of interest.
    pub files: Vec<RegionFile>,
    /// Summary of the files.
    pub side: Side,
    /// The files that cannot be opened, and why.
    pub unread: Vec<(PathBuf, String)>,
    /// Summary of the files in which the game looks for the dimension.
    pub live: Side,
}

/// Summary of the region files of a dimension in one layout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// The dimension's folder, from the save's folder on; `.` for that itself.
    pub folder: String,
    /// Region files, those of entities and points of interest too.
    pub files: u64,
    /// Columns: slots of `region/` in use.
    pub columns: u64,
    /// When a slot of them was last written, in seconds since 1970; 0 if no slot has a time.
    pub newest: u32,
}

/// The region files of a save, where both layouts hold some of a dimension.
#[derive(Debug)]
pub(super) struct Parted {
    pub(super) live: Vec<RegionFile>,
    pub(super) strays: Vec<Strays>,
    /// Files that hold nothing, or that are live by another path.
    pub(super) dropped: Vec<PathBuf>,
}

/// Sums over the headers of some files.
#[derive(Debug, Default)]
struct Headers {
    slots: u64,
    columns: u64,
    newest: u32,
    /// Whether a file of blocks cannot be opened, so that it may hold columns.
    has_unread_blocks: bool,
    unread: Vec<(PathBuf, String)>,
}

/// The name of the dimension that the strays of a dimension become.
pub fn stray_name(dimension: &str) -> String {
    let name = dimension.split_once(':').map_or(dimension, |(_, name)| name);
    format!("{STRAY}:{name}")
}

/// The dimension whose strays have this name.
pub fn stray_of(dimension: &str) -> Option<String> {
    let dimension = format!("minecraft:{}", dimension.strip_prefix(STRAY)?.strip_prefix(':')?);
    super::is_moved(&dimension).then_some(dimension)
}

/// Parts the files of each dimension that both layouts hold. The headers of these alone are read.
///
/// The side with columns is the game's. If both have some, or neither, the layout decides that `looks` gives. A file that
/// cannot be opened may hold some.
pub(super) fn part(files: Vec<RegionFile>, looks: Layout) -> Parted {
    let mut layouts = BTreeMap::<String, BTreeSet<Layout>>::new();
    for file in &files {
        if let Some(layout) = file.layout {
            layouts.entry(file.dimension.clone()).or_default().insert(layout);
        }
    }
    layouts.retain(|_, layouts| layouts.len() > 1);
    let (both, mut live): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|file| file.layout.is_some() && layouts.contains_key(&file.dimension));
    let (mut strays, mut dropped) = (Vec::new(), Vec::new());
    for dimension in layouts.into_keys() {
        let sides = [Layout::Old, Layout::Dimensions].map(|layout| {
            let of = |file: &&RegionFile| file.dimension == dimension && file.layout == Some(layout);
            both.iter().filter(of).cloned().collect::<Vec<_>>()
        });
        let [old, new] = [&sides[0], &sides[1]].map(|files| headers(files));
        let layout = match [&old, &new].map(|side| side.columns > 0 || side.has_unread_blocks) {
            [true, false] => Layout::Old,
            [false, true] => Layout::Dimensions,
            _ => looks,
        };
        let [old_files, new_files] = sides;
        let ((live_files, live_headers), (files, headers), stray) = match layout {
            Layout::Old => ((old_files, old), (new_files, new), Layout::Dimensions),
            Layout::Dimensions => ((new_files, new), (old_files, old), Layout::Old),
        };
        let live_side = side(&dimension, layout, &live_files, &live_headers);
        let (files, same) = others_than(&live_files, files);
        dropped.extend(same);
        live.extend(live_files);
        // A file without slots holds nothing.
        if (headers.slots > 0 || !headers.unread.is_empty()) && !files.is_empty() {
            let side = side(&dimension, stray, &files, &headers);
            let unread = headers.unread;
            strays.push(Strays { dimension, layout: stray, files, side, unread, live: live_side });
        } else {
            dropped.extend(files);
        }
    }
    let dropped = dropped.into_iter().map(|file| file.path).collect();
    Parted { live, strays, dropped }
}

/// Parts files into those that are not the same file as a live one and those that are: one folder may be a link to the
/// other.
fn others_than(live: &[RegionFile], files: Vec<RegionFile>) -> (Vec<RegionFile>, Vec<RegionFile>) {
    let place = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let live: BTreeSet<PathBuf> = live.iter().map(|file| place(&file.path)).collect();
    files.into_iter().partition(|file| !live.contains(&place(&file.path)))
}

fn side(dimension: &str, layout: Layout, files: &[RegionFile], headers: &Headers) -> Side {
    let folder = super::dimension_folder(dimension, layout).unwrap_or_default();
    let folder = match folder.to_str() {
        None | Some("") => ".".to_owned(),
        Some(folder) => folder.to_owned(),
    };
    Side { folder, files: files.len() as u64, columns: headers.columns, newest: headers.newest }
}

/// Reads the headers.
fn headers(files: &[RegionFile]) -> Headers {
    let mut all = Headers::default();
    for file in files {
        let region = match Region::open(&file.path) {
            Ok(region) => region,
            Err(error) => {
                all.has_unread_blocks |= file.kind == RegionKind::Blocks;
                all.unread.push((file.path.clone(), error.to_string()));
                continue;
            }
        };
        for slot in region.slots() {
            all.slots += 1;
            all.columns += u64::from(file.kind == RegionKind::Blocks);
            all.newest = all.newest.max(region.timestamp(slot));
        }
    }
    all
}
