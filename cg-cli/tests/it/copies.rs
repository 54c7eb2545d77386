//! Copies of all sample worlds that fail at each of their parts, and go on; and their archives.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cg_anvil::import::{ImportOptions, import};
use cg_store::engine::{
    ALL_KEYS, Batch, Caps, CommitSeq, Engine, EngineError, Family, Guard, Level, MemEngine, Readable,
    ReadableExt as _, Reopen, SealedRow, delegate,
};
use cg_store::prelude::*;
use cg_store::view::{Area, Copied};

use crate::archives::assert_is_archived;
use crate::worlds;

/// Each world is copied in about this many parts.
pub(crate) const PARTS: u64 = 4;

/// Samples whose restores from an archive fail at each part; the others are restored once.
const ARCHIVES_THAT_FAIL: usize = 4;

/// When the load of a part fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fails {
    /// Before it is applied.
    Before,
    /// After it is applied: its answer is lost.
    After,
}

/// Rows that outlive the process that copies, which loads small parts until one fails.
#[derive(Debug)]
pub(crate) struct Failing {
    pub(crate) rows: Arc<MemEngine>,
    pub(crate) part_bytes: u64,
    pub(crate) loads: Arc<AtomicU64>,
    /// The number of the load that fails, counted from 1.
    pub(crate) fails: Option<(u64, Fails)>,
}

impl Engine for Failing {
    fn commit(&self, batch: Batch, guards: &[Guard], level: Level) -> Result<CommitSeq, EngineError> {
        self.rows.commit(batch, guards, level)
    }

    fn load(&self, rows: Vec<SealedRow>) -> Result<(), EngineError> {
        let number = self.loads.fetch_add(1, Ordering::Relaxed) + 1;
        let lost = EngineError::Unavailable { message: format!("part {number} is lost") };
        match self.fails.filter(|(fails, _)| *fails == number) {
            Some((_, Fails::Before)) => Err(lost),
            Some((_, Fails::After)) => self.rows.load(rows).and(Err(lost)),
            None => self.rows.load(rows),
        }
    }

    fn caps(&self) -> Caps {
        let mut caps = self.rows.caps();
        caps.max_batch_bytes = 2 * self.part_bytes;
        caps
    }

    fn reopening(&self) -> Reopen {
        self.rows.reopening()
    }

    delegate! {
        rows => snapshot sync last_commit batch_count last_synced checkpoint flush compact close failure free_bytes usage
    }
}

impl Readable for Failing {
    delegate! { rows => get get_many get_slices scan_rows }
}

pub(crate) type Rows = Vec<(Family, Vec<u8>, Vec<u8>)>;

/// All rows but those that each place has for itself.
pub(crate) fn rows(view: &dyn Readable) -> Rows {
    let mut rows = Rows::new();
    for family in Family::ALL {
        let scanned = view.try_scan(family, ALL_KEYS, |key, row| {
            if family != Family::WorldMeta || ![&b"identity"[..], b"state"].contains(&key) {
                rows.push((family, key.to_vec(), row.to_vec()));
            }
            Ok::<_, EngineError>(())
        });
        scanned.expect("scans");
    }
    rows
}

/// Copies into rows. Returns the number of loads too.
fn copy(
    world: &World,
    rows: &Arc<MemEngine>,
    part_bytes: u64,
    fails: Option<(u64, Fails)>,
) -> (Result<Copied, Error>, u64) {
    let loads = Arc::new(AtomicU64::new(0));
    let engine = Failing { rows: Arc::clone(rows), part_bytes, loads: Arc::clone(&loads), fails };
    let copied = World::builder().copy_over(world, &engine, |_| {});
    (copied, loads.load(Ordering::Relaxed))
}

fn assert_goes_on_after_each_part(world: &World, name: &Path) {
    let expected = rows(&*world.engine());
    let hash = world.content_hash(Area::World).expect("hashes");
    let len_bytes: u64 = expected.iter().map(|(_, key, row)| (key.len() + row.len()) as u64).sum();
    let part_bytes = len_bytes.div_ceil(PARTS);
    let (whole, parts) = copy(world, &Arc::default(), part_bytes, None);
    let row_count = whole.expect("copies").row_count;
    assert!((3..=2 * PARTS + 1).contains(&parts), "{}: {parts} parts", name.display());
    for part in 1..=parts {
        for fails in [Fails::Before, Fails::After] {
            let there = Arc::<MemEngine>::default();
            let (failed, loads) = copy(world, &there, part_bytes, Some((part, fails)));
            match failed {
                Err(Error::Engine(EngineError::Unavailable { message })) => {
                    assert_eq!(message, format!("part {part} is lost"));
                }
                other => panic!("expected that part {part} is lost, got {other:?}"),
            }
            assert_eq!(loads, part, "no part is stored after one that failed");
            let (copied, loads) = copy(world, &there, part_bytes, None);
            let copied = copied.unwrap_or_else(|error| panic!("part {part} {fails:?}: {error}"));
            let stored = part - u64::from(fails == Fails::Before);
            assert_eq!((loads, copied.is_continued), (parts - stored, stored > 0), "part {part} {fails:?}");
            assert!(if stored == 0 { copied.row_count == row_count } else { copied.row_count < row_count });
            assert!(rows(&*there) == expected, "{}: part {part} {fails:?}", name.display());
            // Equal rows have one hash.
            if (part, fails) != (parts, Fails::After) {
                continue;
            }
            let whole = Failing { rows: there, part_bytes, loads: Arc::default(), fails: None };
            let copied = World::builder().open_read_only_over(whole).expect("opens");
            assert_eq!(copied.content_hash(Area::World).expect("hashes"), hash);
        }
    }
}

/// The saves that can be imported as worlds.
fn saves(folder: &Path) -> Vec<PathBuf> {
    let folders = ["mca", "mca_old", "java26"].map(|name| folder.join(name));
    let listed = |folder: &PathBuf| std::fs::read_dir(folder).expect("is there");
    let mut saves: Vec<PathBuf> =
        folders.iter().flat_map(listed).map(|entry| entry.expect("listed").path()).collect();
    saves.sort();
    saves
}

#[test]
fn a_copy_of_each_sample_that_fails_at_any_part_goes_on() {
    let Some(folder) = worlds::folder() else { return };
    let mut copied = 0;
    for save in saves(&folder) {
        let world = World::builder().in_memory().expect("a world");
        // Files of one kind of rows alone are imported with the others of their save.
        if import(&save, &world, &ImportOptions::default(), |_| {}).is_ok() {
            assert_goes_on_after_each_part(&world, &save);
            assert_is_archived(&world, &save, copied < ARCHIVES_THAT_FAIL);
            copied += 1;
        }
    }
    assert!(copied >= 18, "{copied} samples");
}
