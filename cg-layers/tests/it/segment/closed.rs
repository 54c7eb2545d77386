//! A segmented world that no process has open is read whole, or refused.

use std::fs;

use cg_registry::PackManifest;
use cg_store::CheckpointFiles;
use cg_store::verify::ContentHash;
use cg_store::view::{Area, DamagedRows};
use expect_test::{Expect, expect};

use super::*;
use crate::fixture::copy_dir;

/// Three segments with a chunk each.
fn stored() -> (Disk, Ids) {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    for x in [-20, 0, 20] {
        save(&world, ids.at(x, 0, 0), filled(world.root(), ids.stone));
    }
    world.close().expect("closes");
    (disk, ids)
}

fn hash(disk: &Disk) -> Result<ContentHash, Error> {
    SegmentedWorld::content_hash(dir(disk), Area::World, &options(), |_| Ok(()))
}

/// The error of the hash, which is that of an archive too.
#[track_caller]
fn refused(disk: &Disk, expected: Expect) {
    let said = hash(disk).expect_err("is refused").to_string();
    let archived =
        SegmentedWorld::archive(dir(disk), std::io::sink(), DamagedRows::Refuse, &options(), |_| {});
    assert_eq!(archived.expect_err("is refused").to_string(), said);
    expected.assert_eq(&said.replace(dir(disk).to_str().expect("a text"), "DIR"));
}

#[test]
fn a_segment_that_is_lost_is_named() {
    let (disk, _) = stored();
    fs::remove_dir_all(dir(&disk).join("segments/0.1.0.0")).expect("is there");
    refused(
        &disk,
        expect![
            "segment 1 0 0 of dimension 0 is gone: the root knows it and DIR/segments/0.1.0.0 is missing; restore it, or delete the segment"
        ],
    );
}

#[test]
fn a_segment_that_the_root_does_not_know_is_not_left_out() {
    let (disk, ids) = stored();
    let (other, _) = stored();
    let world = open(&other);
    save(&world, ids.at(100, 0, 0), filled(world.root(), ids.stone));
    world.close().expect("closes");
    drop(world);
    copy_dir(&dir(&other).join("segments/0.6.0.0"), &dir(&disk).join("segments/0.6.0.0"));
    refused(
        &disk,
        expect![
            "segment 6 0 0 of dimension 0 lies in DIR/segments/0.6.0.0 and its root does not know it; restore both from one backup, or move it away"
        ],
    );
    let copy = Disk::new();
    let world = open(&disk);
    let copied = world.checkpoint(copy.root().join("copy"), CheckpointFiles::Copied);
    let error = copied.expect_err("is refused");
    assert!(matches!(error.layer(), Some(SegmentError::NotKnown { .. })), "{error}");
    assert!(!copy.root().join("copy").exists());
}

#[test]
fn the_hash_is_by_the_names_of_the_root() {
    let pack = |version: &str, block: &str, renamed: &str| {
        let json = format!(
            r#"{{"pack": "ores", "version": "{version}", "namespaces": ["ores"], "blocks": [{{"name": "{block}"}}],
                "renamed": [{renamed}]}}"#
        );
        [PackManifest::from_json(&json).expect("a manifest")]
    };
    let (disk, ids) = stored();
    let places = [-20, 0, 20].map(|x| ids.at(x, 0, 0));
    let open = |packs: &[PackManifest]| SegmentedWorld::open(dir(&disk), packs, &segments()).expect("opens");
    let world = open(&pack("1", "ores:tin", ""));
    let tin = world.root().catalog().block_id("ores:tin").expect("is registered");
    for at in places {
        save(&world, at, filled(world.root(), tin));
    }
    world.close().expect("closes");
    drop(world);
    let before = hash(&disk).expect("is sound");
    // One segment after the other gets the new name.
    let renamed = r#"{"list": "blocks", "old": "ores:tin", "new": "ores:lead"}"#;
    let renamed = pack("2", "ores:lead", renamed);
    let hashes = places.map(|at| {
        let world = open(&renamed);
        assert!(world.load(at).expect("loads").is_some());
        world.close().expect("closes");
        drop(world);
        hash(&disk).expect("is sound")
    });
    assert_ne!(hashes[0], before, "it has other names");
    assert_eq!(hashes, [hashes[2]; 3], "nothing was written");
}
