//! `cg hash`

use cg_store::prelude::*;

use super::{GROUND, Sample};

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

#[test]
fn damage_ends_it() {
    let sample = Sample::new();
    sample.spoil_ground();
    let said = sample.cg("hash", &[]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.starts_with("cg: chunk"), "{}", said.err);
}
