//! `cg prune` on imported worlds: what the save says of visits, and what goes with a column.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cg_anvil::ColumnPos;
use cg_anvil::{nbt, write};
use cg_store::prelude::*;
use cg_tiering::GameTick;
use serde_json::json;
use tempfile::TempDir;

use super::super::{run, text};
use crate::maker;

/// The save's time: the newest at which a column was saved.
const NOW: i64 = 1_000_000;
/// The columns, each with when it was saved last and for how long players were near. The second and the third lie in one
/// cold cluster.
const COLUMNS: [(i32, i64, i64); 3] = [(0, NOW, 50), (16, 100_000, 9), (20, NOW, 0)];

struct Imported {
    dir: TempDir,
}

impl Imported {
    fn new() -> Self {
        let dir = TempDir::new().expect("a directory");
        let save = dir.path().join("save");
        fs::create_dir_all(save.join("region")).expect("creates");
        let slots = COLUMNS.map(|(x, last_update, inhabited)| {
            let mut column = maker::column(x, 0, [maker::patterned(0, 3)]);
            column.carried = nbt::payload(|out| {
                out.string("Status", "minecraft:full").expect("short");
                out.long("LastUpdate", last_update);
                out.long("InhabitedTime", inhabited);
            });
            maker::zlib((x, 0), &write::column(&column).expect("a column of the game's form"))
        });
        maker::region(&save.join("region/r.0.0.mca"), &slots);
        let imported = Self { dir };
        assert_eq!(run(&["import", text(&save), text(&imported.world())]).code, 0);
        imported
    }

    fn world(&self) -> PathBuf {
        self.dir.path().join("world")
    }

    fn cg(&self, verb: &[&str], args: &[&str]) -> super::super::Said {
        run(&[verb, &[text(&self.world())], args].concat())
    }

    fn prune(&self, span: &str) -> serde_json::Value {
        self.cg(&["prune"], &["--not-visited-for", span, "--json", "--yes"]).json()
    }

    /// The columns that have a chunk, and those with something that an import kept.
    fn left(&self) -> (Vec<i32>, usize) {
        let world = World::builder().open_read_only(self.world()).expect("opens");
        let has_chunk = |x: &i32| {
            let chunk = world.load(ColumnPos::new(*x, 0).chunk_at(Dimension::new(0), 0));
            chunk.expect("is sound").is_some()
        };
        let chunks = COLUMNS.map(|(x, ..)| x).into_iter().filter(has_chunk).collect();
        let mut objects = 0;
        let listed = world.objects().for_each("minecraft/column/", |object| {
            object.expect("is sound");
            objects += 1;
            std::ops::ControlFlow::<()>::Continue(())
        });
        listed.expect("lists");
        (chunks, objects)
    }
}

/// Somebody looks at a column at a moment, and all is demoted again.
fn tick(world: &Path, now: u64, x: i32) {
    let world = World::builder().open(world).expect("opens");
    world.tick(GameTick::new(now), &[], Duration::ZERO).expect("ticks");
    let loaded = world.load(ColumnPos::new(x, 0).chunk_at(Dimension::new(0), 0));
    assert!(loaded.expect("is sound").is_some());
    world.tiers().demote_all(1 << 40, |_| {}).expect("settles");
    world.close().expect("closes");
}

#[test]
fn what_the_save_says_of_visits_counts_in_every_tier() {
    for after in [None, Some("10m"), Some("30d")] {
        let imported = Imported::new();
        if let Some(after) = after {
            imported.cg(&["tiers", "settle"], &["--after", after]).good();
        }
        assert_eq!(imported.prune("1000000t")["chunks"], json!(1), "nobody ever was in one: {after:?}");
        assert_eq!(imported.left(), (vec![0, 16], 2));
        let said = imported.prune("900000t");
        let expected = json!({
            "dimension": "minecraft:overworld", "chunks": 1, "entities": 0, "detached": 0, "left_detached": 0, "bytes": 1274,
            "records": 0, "leftovers": 1, "unknown": 0, "deleted": true,
        });
        assert_eq!(said, expected, "{after:?}");
        assert_eq!(imported.left(), (vec![0], 1));
        assert_eq!(imported.cg(&["verify"], &[]).code, 0);
    }
}

#[test]
fn visits_since_the_import_are_remembered_of_cold_chunks() {
    let imported = Imported::new();
    tick(&imported.world(), 1_000_000, 0);
    tick(&imported.world(), 1_400_000, 16);
    let tiers = imported.cg(&["tiers"], &["--json"]).json();
    assert_eq!(tiers["tiers"]["l2"]["chunks"], json!(3));
    let said = imported.prune("500000t");
    assert_eq!((&said["chunks"], &said["unknown"]), (&json!(1), &json!(0)), "nobody ever was in one");
    assert_eq!(imported.left(), (vec![0, 16], 2), "somebody was in the others, 400,000 ticks ago and now");
    tick(&imported.world(), 1_600_000, 16);
    assert_eq!(imported.prune("500000t")["chunks"], json!(1));
    assert_eq!(imported.left(), (vec![16], 1));
}

#[test]
fn a_dry_run_deletes_nothing_and_a_column_keeps_its_leftovers_as_long_as_it_has_a_chunk() {
    let imported = Imported::new();
    let said = imported.cg(&["prune"], &["--not-visited-for", "900000t", "--dry-run"]);
    assert_eq!(
        said.good(),
        "2 chunks of minecraft:overworld, 0 entities (2.5 KiB) would be deleted\n2 objects of columns that are gone would be deleted\n"
    );
    assert_eq!(imported.left(), (vec![0, 16, 20], 3));
    // Another chunk above the one that goes.
    let world = World::builder().open(imported.world()).expect("opens");
    let saved = world.transaction(|tx| {
        let chunk = Chunk::filled(BlockId::new(0), &tx.catalog().current_schema())?;
        tx.save(ColumnPos::new(16, 0).chunk_at(Dimension::new(0), 7), chunk);
        Ok::<_, Box<dyn std::error::Error>>(())
    });
    saved.expect("saves");
    world.close().expect("closes");
    drop(world);
    let area = ["--box", "256", "0", "0", "335", "15", "15", "--yes"];
    assert_eq!(
        imported.cg(&["prune"], &area).good(),
        "2 chunks of minecraft:overworld, 0 entities (2.5 KiB) deleted\n1 object of columns that are gone deleted\n"
    );
    assert_eq!(imported.left(), (vec![0], 2));
}
