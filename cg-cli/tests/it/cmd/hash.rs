//! `cg hash`

use cg_store::prelude::*;

use super::{GROUND, Sample, run, text};

#[test]
fn a_hash_is_one_line_and_follows_the_content() {
    let sample = Sample::new();
    let hash = |args: &[&str]| sample.cg("hash", args).good();
    let before = hash(&[]);
    assert!(before.len() == 65 && before.ends_with('\n'), "{before:?}");
    assert!(before.trim_end().bytes().all(|byte| byte.is_ascii_hexdigit()), "{before:?}");
    assert_eq!(before, Sample::new().cg("hash", &[]).good(), "two worlds of one content");

    let moon = hash(&["-d", "moon"]);
    let empty = hash(&["--box", "4096", "0", "0", "4100", "5", "5"]);
    let touched = hash(&["--box", "15", "79", "-1", "90", "79", "-1"]);
    assert!(before != moon && moon != empty && empty != touched);

    let world = sample.open();
    world
        .transaction(|tx| {
            let stone = tx.catalog().block_id("game:stone").expect("it is registered");
            tx.set_block(Dimension::new(0), GROUND.min_block(), stone)?;
            tx.set_block(Dimension::new(0), BlockPos::new(0, 79, -16), stone)
        })
        .expect("the chunk is there");
    // The lock is held as long as the handle is.
    world.close().expect("the disk takes it");
    drop(world);
    assert_ne!(hash(&[]), before);
    assert_ne!(hash(&["--box", "15", "79", "-1", "90", "79", "-1"]), touched);
    assert_eq!(hash(&["-d", "moon"]), moon);
}

/// The box around all that the sample has in the overworld.
const BOX: [&str; 7] = ["--box", "0", "64", "-16", "14", "95", "-1"];

fn keep(world: &Sample, name: &str) {
    world.cg("snapshot create", &[&[name], &BOX[..]].concat()).good();
}

#[test]
fn all_has_the_snapshots_too() {
    let sample = Sample::new();
    let [plain, all] = [&[][..], &["--all"]].map(|args| sample.cg("hash", args).good());
    assert_ne!(plain, all);
    keep(&sample, "a");
    let with_a = sample.cg("hash", &["--all"]).good();
    assert_eq!(sample.cg("hash", &[]).good(), plain, "its value stays");
    assert_ne!(with_a, all);
    keep(&sample, "b");
    let with_both = sample.cg("hash", &["--all"]).good();
    assert_ne!(with_both, with_a);

    // In another order, at another time, and colder.
    let other = Sample::new();
    keep(&other, "b");
    std::thread::sleep(std::time::Duration::from_millis(2));
    keep(&other, "a");
    other.cg("tiers demote", &["--after", "30d"]).good();
    assert_eq!(other.cg("hash", &["--all"]).good(), with_both);
    other.cg("snapshot delete", &["b", "--yes"]).good();
    assert_eq!(other.cg("hash", &["--all"]).good(), with_a);
    let said = sample.cg("hash", &["--all", "-d", "moon"]);
    assert_eq!(said.code, 2, "{said:?}");
}

#[test]
fn all_does_not_depend_on_ids() {
    let sample = Sample::new();
    let there = sample.beside("there");
    let file = sample.beside("it.cgpack");
    let area = ["--box", "0", "64", "-16", "15", "95", "-1", "--without-records"];
    sample.cg("pack", &[&[text(&file)], &area[..]].concat()).good();
    let world = World::builder().create(&there).expect("the directory is empty");
    for name in ["mod:wire", "game:water", "game:grass_block", "game:stone", ":air"] {
        world.registry().register_blocks([name]).expect("new");
    }
    world.registry().register_dimension("mod:void").expect("new");
    world.registry().register_entity("mod:drone").expect("new");
    world.registry().register_side("mod:fog").expect("new");
    world.close().expect("the disk takes it");
    drop(world);
    run(&["unpack", text(&file), text(&there)]).good();
    // The same world with the ids of the sample.
    let same = sample.beside("same");
    run(&["unpack", text(&file), text(&same)]).good();
    for world in [&there, &same] {
        let create = ["snapshot", "create", text(world), "a", "-d", "overworld"];
        run(&[&create[..], &BOX[..]].concat()).good();
    }
    let hash = |world, args: &[&str]| run(&[&["hash", text(world)], args].concat()).good();
    assert_eq!(hash(&there, &[]), hash(&same, &[]), "or this shows nothing");
    assert_eq!(hash(&there, &["--all"]), hash(&same, &["--all"]));
    let world = World::builder().open_read_only(&there).expect("sound");
    assert_ne!(world.catalog().block_id("game:stone"), Some(BlockId::new(1)), "or this shows nothing");
}

#[test]
fn all_has_what_was_quarantined() {
    let sample = Sample::new();
    let [x, y, z] = [GROUND.x(), GROUND.y(), GROUND.z()].map(|c| c.to_string());
    let chunk = ["--chunk", &x, &y, &z, "--yes"];
    sample.spoil_ground();
    sample.cg("quarantine add", &chunk).good();
    let [plain, all] = [&[][..], &["--all"]].map(|args| sample.cg("hash", args).good());
    let listed = sample.cg("quarantine list", &["--json"]).json();
    let row = &listed["quarantined"][0];
    let (space, key, commit) = (row["space"].as_str(), row["key"].as_str(), row["commit"].to_string());
    let copy = [space.expect("text"), key.expect("text"), &commit, "--yes"];
    sample.cg("quarantine delete", &copy).good();
    assert_eq!(sample.cg("hash", &[]).good(), plain);
    assert_ne!(sample.cg("hash", &["--all"]).good(), all);
}

#[test]
fn several_boxes_are_one_area() {
    let sample = Sample::new();
    let boxes = |all: &[[&'static str; 6]]| {
        let args: Vec<_> =
            all.iter().flat_map(|numbers| ["--box"].into_iter().chain(numbers.iter().copied())).collect();
        sample.cg("hash", &args).good()
    };
    let (ground, above, none) = (
        ["0", "64", "-16", "15", "79", "-1"],
        ["0", "80", "-16", "0", "80", "-16"],
        ["900", "0", "0", "901", "9", "9"],
    );
    let both = boxes(&[["0", "64", "-16", "15", "95", "-1"]]);
    assert_eq!(boxes(&[ground, above]), both);
    assert_eq!(boxes(&[none, above, ground, ground]), both, "order and overlaps change nothing");
    assert_ne!(boxes(&[ground, none]), both);
    assert_ne!(boxes(&[none, none]), sample.cg("hash", &["-d", "overworld"]).good(), "it is not everything");
}

#[test]
fn damage_ends_it() {
    let sample = Sample::new();
    sample.spoil_ground();
    let said = sample.cg("hash", &[]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.starts_with("cg: chunk"), "{}", said.err);
}
