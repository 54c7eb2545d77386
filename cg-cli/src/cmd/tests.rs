//! Rule for every command that writes a file.

mod addresses;
mod options;

use std::fs;
use std::path::Path;

use cg_anvil::folder;
use cg_store::objects::ObjectKey;
use cg_store::prelude::*;
use clap::Parser as _;

use super::Args;
use crate::output::{Format, Outcome, Output};

/// Runs `cg` in this thread, and says how many folders it synced.
#[track_caller]
fn synced_by(words: &[&str]) -> u64 {
    let args = Args::try_parse_from(["cg"].iter().chain(words)).expect("it parses");
    let before = folder::sync_count();
    let outcome = args.command.run(&Output::new(Format::Json)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome, Outcome::Good, "{words:?}");
    folder::sync_count() - before
}

fn world(path: &Path) {
    let world = World::builder().create(path).expect("the directory is empty");
    let overworld = world.registry().register_dimension("minecraft:overworld").expect("new");
    let [stone] = world.registry().register_blocks(["minecraft:stone"]).expect("new");
    let saved = world.transaction(|tx| {
        let schema = tx.catalog().current_schema();
        tx.save(ChunkAt::new(overworld, ChunkPos::new(0, 4, 0)?), Chunk::filled(stone, &schema)?);
        Ok::<_, Box<dyn std::error::Error>>(())
    });
    saved.expect("it is sound");
    world
        .objects()
        .put(ObjectKey::new("key").expect("short"), b"content".to_vec())
        .expect("the disk takes it");
    world.close().expect("the disk takes it");
}

#[test]
fn an_output_is_in_its_folder_on_the_disk_before_the_exit_code_is_zero() {
    let dir = tempfile::tempdir().expect("a directory");
    world(&dir.path().join("w"));
    let path = |name: &str| dir.path().join(name).into_os_string().into_string().expect("text");
    let w = path("w");
    let area = ["--box", "0", "64", "0", "15", "79", "15"];
    let of = |command: &[&str], more: &[&str]| synced_by(&[command, more].concat());
    of(&["snapshot", "create", &w, "a"], &area);
    assert_eq!(of(&["pack", &w, &path("pack")], &area), 1);
    assert_eq!(of(&["snapshot", "export", &w, "a", &path("snap")], &[]), 1);
    assert_eq!(of(&["snapshot", "create", &w, "b", "--map", &path("b.png")], &area), 1);
    assert_eq!(of(&["schem", "export", &w, &path("schem")], &area), 1);
    assert_eq!(of(&["map", &w, "-o", &path("map.png")], &[]), 1);
    of(&["settings", &w, "--thumbnail", &path("map.png")], &[]);
    assert_eq!(of(&["info", &w, "--thumbnail", &path("thumbnail.png")], &[]), 1);
    for _again in 0..2 {
        assert_eq!(of(&["object", "get", &w, "key", "--to", &path("object")], &[]), 1);
    }
    for file in ["pack", "snap", "b.png", "schem", "map.png", "thumbnail.png", "object"] {
        assert!(fs::metadata(path(file)).expect("it is there").len() > 0, "{file}");
    }
}
