//! Columns with unreadable chunks: a game that loads the export makes new ones, and each is named.

use cg_anvil::column::{Blocks, Column, Section};
use cg_format::{ClusterTier, Space, key};
use cg_store::prelude::*;
use serde_json::{Value, json};

use super::folder::{marks, slots};
use super::save::{At, LIVE, OLD, OVERWORLD, column, document};
use super::test_dir::TestDir;
use crate::cmd::text;
use crate::{held, worlds};

/// Two columns of one cube, and two of others.
const AT: [At; 4] = [(0, 0), (1, 0), (20, 0), (70, 70)];

/// A world of columns of two sections, with points of interest.
fn make(dir: &TestDir) {
    let save = dir.save("save");
    let slot = |at: At| {
        let mut column = column(at, LIVE);
        let blocks = || Some(Blocks::uniform("test:live"));
        column.sections = [4, 5].map(|y| Section { blocks: blocks(), ..Section::new(y) }).into();
        (at, document(&column), LIVE.time)
    };
    save.level(OLD, "save").slots("region", AT.map(slot)).points("", LIVE, &AT);
    dir.import("save", "world", &[]).good();
}

fn at((x, z): At, y: i64) -> ChunkAt {
    ChunkAt::new(Dimension::new(0), ChunkPos::constant(x.into(), y, z.into()))
}

/// Entry of a column in a report.
fn damaged((x, z): At, sections: &[i32], is_written: bool) -> Value {
    json!({ "dimension": OVERWORLD, "x": x, "z": z, "sections": sections, "is_written": is_written })
}

fn exported(dir: &TestDir, out: &str) -> Vec<At> {
    marks(&dir.at(out)).into_keys().collect()
}

#[test]
fn a_column_of_which_a_chunk_is_lost_is_left_out_and_named() {
    let dir = TestDir::new();
    make(&dir);
    dir.spoil("world", Space::ChunkL0, &key::chunk(at(AT[0], 4)));
    let report = dir.export("world", "out", &[]).ended(1);
    assert_eq!(report["damaged_columns"], json!([damaged(AT[0], &[4], false)]));
    assert_eq!((exported(&dir, "out").as_slice(), &report["changed_columns"]), (&AT[1..], &json!(0)));
    let points: Vec<_> = slots(&dir.at("out/poi/r.0.0.mca")).into_keys().collect();
    assert_eq!(points, [1, 20], "those of the column belong to its blocks");
    let said = dir.cg("export", "world", &["--mca", text(&dir.at("said"))]);
    let line = "minecraft:overworld column (0, 0): sections 4 cannot be read; left out";
    assert!(said.out.lines().any(|said| said == line), "{}", said.out);
}

#[test]
fn a_column_of_which_a_chunk_is_lost_is_generated_again_if_that_is_asked_for() {
    let dir = TestDir::new();
    make(&dir);
    dir.spoil("world", Space::ChunkL0, &key::chunk(at(AT[0], 4)));
    let report = dir.export("world", "out", &["--damaged", "regenerate"]).ended(1);
    assert_eq!(report["damaged_columns"], json!([damaged(AT[0], &[4], true)]));
    assert_eq!(report["columns"], 4);
    let column = |at: At| -> Column {
        let columns = worlds::read(&dir.at("out/region/r.0.0.mca")).columns;
        let found = columns.into_iter().find(|(_, column)| (column.pos.x, column.pos.z) == at);
        found.expect("written").1
    };
    let (begun, full) = (column(AT[0]), column(AT[1]));
    let heights = |column: &Column| column.sections.iter().map(|section| section.y).collect::<Vec<_>>();
    assert_eq!((heights(&begun), heights(&full)), (vec![5], vec![4, 5]));
    assert_eq!(begun.status().as_deref(), Some("minecraft:empty"));
    assert_eq!(full.status().as_deref(), Some("minecraft:full"));
}

#[test]
fn every_column_of_a_lost_cluster_is_named() {
    let dir = TestDir::new();
    make(&dir);
    // One of the cluster's columns was deleted before.
    let world = held::open(&dir.at("world"));
    let deleted = world.transaction(|tx| {
        tx.delete(at(AT[2], 4));
        tx.delete(at(AT[2], 5));
        Ok::<_, Error>(())
    });
    deleted.expect("committed");
    world.close().expect("closed");
    drop(world);
    dir.cg("tiers settle", "world", &["--after", "30d"]).good();
    let cube = at(AT[0], 4).pos.cluster(ClusterTier::L2);
    dir.spoil("world", Space::ClusterL2, &key::cluster(Dimension::new(0), cube));
    for choice in ["leave-out", "regenerate"] {
        let report = dir.export("world", choice, &["--damaged", choice]).ended(1);
        let lost = [AT[0], AT[1]].map(|at| damaged(at, &[4, 5], false));
        assert_eq!(report["damaged_columns"], json!(lost), "{choice}");
        assert_eq!(exported(&dir, choice), AT[3..]);
    }
}
