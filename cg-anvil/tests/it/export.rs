//! Exports that were stopped and are continued.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use cg_anvil::export::{ExportError, ExportOptions, ExportReport, LayoutChoice, UNFINISHED, export};
use cg_anvil::folder;
use cg_store::objects::ObjectKey;
use cg_store::prelude::*;
use tempfile::TempDir;

struct Sample {
    dir: TempDir,
    world: World,
}

/// Files that the sample's export writes.
const FILES: [&str; 5] =
    ["DIM1/region/r.0.0.mca", "data/raids.dat", "icon.png", "region/r.-1.0.mca", "region/r.0.0.mca"];

impl Sample {
    /// Two regions of the overworld, one of the end, in which a column has components that no save can hold, and two files.
    fn new() -> Self {
        let world = World::builder().in_memory().expect("memory");
        let [overworld, end] = ["minecraft:overworld", "minecraft:the_end"]
            .map(|name| world.registry().register_dimension(name).expect("new"));
        let [stone] = world.registry().register_blocks(["minecraft:stone"]).expect("new");
        let odd = world.registry().register_side("game:odd").expect("new");
        let saved = world.transaction(|tx| {
            let schema = tx.catalog().current_schema();
            let mut chunk = Chunk::filled(stone, &schema)?;
            tx.save(ChunkAt::new(overworld, ChunkPos::new(-1, 4, 0)?), chunk.clone());
            tx.save(ChunkAt::new(end, ChunkPos::new(3, 0, 3)?), chunk.clone());
            chunk.set_side(odd, vec![1]);
            tx.save(ChunkAt::new(overworld, ChunkPos::new(0, 4, 0)?), chunk);
            Ok::<_, Box<dyn std::error::Error>>(())
        });
        saved.expect("it is sound");
        for (name, bytes) in [("data/raids.dat", "raids"), ("icon.png", "icon")] {
            let key = ObjectKey::new(format!("minecraft/file/{name}")).expect("short");
            world.objects().put(key, bytes.as_bytes().to_vec()).expect("the store takes it");
        }
        Self { dir: TempDir::new().expect("a directory"), world }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn export(&self, name: &str) -> Result<ExportReport, ExportError> {
        export(&self.world, &self.path(name), &ExportOptions::default(), |_| {})
    }

    /// Begins an export and stops it after a number of regions.
    fn stop_after(&self, name: &str, regions: usize) {
        let stopped = catch_unwind(AssertUnwindSafe(|| {
            export(&self.world, &self.path(name), &ExportOptions::default(), |now| {
                assert!(now.regions_done < regions, "stopped");
            })
        }));
        stopped.expect_err("it was stopped");
        assert!(self.path(name).join(UNFINISHED).is_file());
    }

    #[track_caller]
    fn check_whole(&self, name: &str, report: &ExportReport) {
        let expected = self.export("whole").expect("it is writable");
        assert_eq!(*report, expected);
        assert_eq!(files(&self.path(name)), files(&self.path("whole")));
        fs::remove_dir_all(self.path("whole")).expect("it is there");
    }
}

/// Every file of a folder with its bytes.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    fn add(root: &Path, dir: &Path, all: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(dir).expect("a folder") {
            let path = entry.expect("listed").path();
            if path.is_dir() {
                add(root, &path, all);
            } else {
                let name = path.strip_prefix(root).expect("below").to_str().expect("text").to_owned();
                all.insert(name, fs::read(&path).expect("readable"));
            }
        }
    }
    let mut all = BTreeMap::new();
    add(dir, dir, &mut all);
    all
}

fn names(dir: &Path) -> Vec<String> {
    files(dir).into_keys().collect()
}

#[test]
fn one_that_was_stopped_continues_with_what_is_not_done() {
    for done in [1, 2] {
        let sample = Sample::new();
        sample.stop_after("out", done);
        let out = sample.path("out");
        let first = out.join("region/r.-1.0.mca");
        let was = fs::metadata(&first).expect("it is done").ino();
        // What a process leaves that is killed inside of a region, and in the middle of a line.
        let begun = "{\"begun\":{\"folder\":\"DIM1\",\"x\":0,\"z\":0}}\n{\"begun\":{\"fo";
        let journal = fs::read_to_string(out.join(UNFINISHED)).expect("text");
        fs::write(out.join(UNFINISHED), journal + begun).expect("writes");
        fs::create_dir_all(out.join("DIM1/region")).expect("creates");
        fs::write(out.join("DIM1/region/.r.0.0.mca.partial"), "half").expect("writes");

        let report = sample.export("out").expect("it continues");
        assert_eq!(fs::metadata(&first).expect("it is done").ino(), was, "it was not written again");
        assert_eq!(names(&out), FILES, "the journal is gone");
        assert_eq!(
            report.not_exported.get("side data `game:odd`"),
            Some(&1),
            "it is counted of regions that were done"
        );
        sample.check_whole("out", &report);
        let again = sample.export("out").expect_err("it is finished");
        assert!(matches!(&again, ExportError::NotEmpty(dir) if *dir == out), "{again}");
    }
}

#[test]
fn a_region_that_was_deleted_meanwhile_is_written_again() {
    let sample = Sample::new();
    sample.stop_after("out", 3);
    fs::remove_file(sample.path("out/region/r.0.0.mca")).expect("it is done");
    let report = sample.export("out").expect("it continues");
    sample.check_whole("out", &report);
}

#[test]
fn of_a_world_that_changed_nothing_stays() {
    let sample = Sample::new();
    sample.stop_after("out", 3);
    let end = sample.world.catalog().dimension("minecraft:the_end").expect("registered");
    let changed = sample.world.transaction(|tx| {
        tx.delete(ChunkAt::new(end, ChunkPos::new(3, 0, 3)?));
        tx.delete_object(ObjectKey::new("minecraft/file/icon.png")?)?;
        Ok::<_, Box<dyn std::error::Error>>(())
    });
    changed.expect("it is there");
    let report = sample.export("out").expect("it begins anew");
    assert_eq!(names(&sample.path("out")), ["data/raids.dat", "region/r.-1.0.mca", "region/r.0.0.mca"]);
    assert!(!sample.path("out/DIM1").exists());
    sample.check_whole("out", &report);

    sample.stop_after("other", 2);
    let options = ExportOptions { layout: LayoutChoice::New, ..ExportOptions::default() };
    export(&sample.world, &sample.path("other"), &options, |_| {}).expect("it begins anew");
    let folder = "dimensions/minecraft/overworld/region";
    let moved = [format!("{folder}/r.-1.0.mca"), format!("{folder}/r.0.0.mca")];
    assert_eq!(
        names(&sample.path("other")),
        [["data/raids.dat"].map(str::to_owned).as_slice(), &moved].concat()
    );
}

#[test]
fn a_folder_with_anything_else_is_refused() {
    let sample = Sample::new();
    let out = sample.path("out");
    for foreign in ["mine.txt", "region/r.5.5.mca", "poi/notes", "region/c.99.0.mcc"] {
        sample.stop_after("out", 2);
        let foreign = out.join(foreign);
        fs::create_dir_all(foreign.parent().expect("below")).expect("creates");
        fs::write(&foreign, "mine").expect("writes");
        let before = files(&out);
        let error = sample.export("out").expect_err("refused");
        let expected = format!(
            "{} holds an unfinished export and {}, which is not of it; move that away, or export into another directory",
            out.display(),
            foreign.display()
        );
        assert_eq!(error.to_string(), expected);
        assert_eq!(files(&out), before, "nothing was touched");
        fs::remove_dir_all(&out).expect("it is there");
    }
    fs::create_dir(&out).expect("creates");
    fs::write(out.join(UNFINISHED), "no journal\n").expect("writes");
    sample.export("out").expect("it holds nothing else");
    let other = Sample::new();
    other.stop_after("out", 1);
    let dir = other.path("out");
    let error = export(&sample.world, &dir, &ExportOptions::default(), |_| {}).expect_err("refused");
    let expected = format!(
        "{} holds the unfinished export of another world; export into another directory",
        dir.display()
    );
    assert_eq!(error.to_string(), expected);
    let journal = fs::File::open(dir.join(UNFINISHED)).expect("it is there");
    journal.try_lock().expect("free");
    let error = other.export("out").expect_err("held");
    assert_eq!(error.to_string(), format!("another process exports into {}", dir.display()));
}

#[test]
fn every_folder_is_synced_before_it_is_done() {
    let sample = Sample::new();
    let before = folder::sync_count();
    sample.export("new/out").expect("it is writable");
    // Made: `new`, `out`, `region`, `DIM1`, its `region`. Once for the journal, once for each of three regions; in the end
    // `region`, `DIM1`, its `region`, `data`, `new`, `out`, and again without the journal.
    assert_eq!(folder::sync_count() - before, 5 + 1 + 3 + 7);
}
