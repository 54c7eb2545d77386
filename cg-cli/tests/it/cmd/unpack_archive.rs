//! `cg unpack` of a part of an archive, into a world with other ids.

use std::fs;
use std::path::Path;

use cg_format::ClusterTier;
use serde_json::json;

use super::pack::{BOX, other_order, sample};
use super::{Said, Sample, run, text};

const OBJECTS: [&str; 3] = ["--objects", "avatar/7/", "--without-records"];

fn unpack(file: &Path, world: &Path, more: &[&[&str]]) -> Said {
    run(&[&["unpack", text(file), text(world)], &more.concat()[..]].concat())
}

fn archived(sample: &Sample) -> std::path::PathBuf {
    let file = sample.beside("w.cgw");
    sample.cg("archive", &[text(&file)]).good();
    file
}

#[test]
fn a_part_of_an_archive_comes_by_names_from_any_tier() {
    for tier in [None, Some(ClusterTier::L1), Some(ClusterTier::L2)] {
        let sample = sample();
        if let Some(tier) = tier {
            sample.cool_ground(tier);
        }
        let (pack, archive) = (sample.beside("it.cgpack"), archived(&sample));
        sample.cg("pack", &[&[text(&pack)], &OBJECTS[..], &BOX].concat()).good();
        let [of_pack, of_archive] = ["of_pack", "of_archive"].map(|name| sample.beside(name));
        other_order(&of_pack);
        other_order(&of_archive);
        let expected = unpack(&pack, &of_pack, &[&["--json"]]).json();
        assert_eq!((expected["objects_put"].clone(), expected["changed"].clone()), (json!(2), json!(2)));
        let said = unpack(&archive, &of_archive, &[&["--json"], &OBJECTS, &BOX]);
        let warned = "{\"warning\":\"of the archive's box, 1 detached entity stay out\"}\n";
        assert_eq!((said.code, said.err.as_str()), (0, warned), "{tier:?}");
        assert_eq!(said.json(), expected, "{tier:?}");
        let hash = |world: &Path| run(&["hash", text(world)]).good();
        assert_eq!(hash(&of_archive), hash(&of_pack), "{tier:?}");
        assert_eq!(run(&["verify", text(&of_archive)]).code, 0, "{tier:?}");
    }
}

#[test]
fn what_cannot_be_chosen_is_refused_and_nothing_is_made() {
    let sample = sample();
    let (pack, archive, to) = (sample.beside("it.cgpack"), archived(&sample), sample.beside("to"));
    sample.cg("pack", &[&[text(&pack)], &OBJECTS[..], &BOX].concat()).good();
    let check = |file: &Path, more: &[&[&str]], code: i32, expected: &str| {
        let said = unpack(file, &to, more);
        assert_eq!((said.code, said.err), (code, format!("cg: {expected}\n")));
        assert!(!to.exists());
    };
    let whole = "a pack is unpacked whole; --box, --dim, --objects, --properties, --without-detached and --without-records choose from an archive";
    check(&pack, &[&BOX], 2, whole);
    let nothing = "say what to pack: --objects PREFIX, --properties PREFIX, --box X0 Y0 Z0 X1 Y1 Z1, or several of them";
    check(&archive, &[], 2, nothing);
    let left = "the box has 1 detached entity, which a pack does not hold; nothing was written, and with --without-detached it is packed without them";
    check(&archive, &[&BOX], 1, left);
    check(&archive, &[&["--objects", "none/"]], 4, "no object begins with `none/`; nothing was written");
    let mut bad = fs::read(&archive).expect("it is there");
    let last = bad.len() - 1;
    bad[last] ^= 1;
    fs::write(&archive, &bad).expect("the disk takes it");
    let said = unpack(&archive, &to, &[&BOX, &OBJECTS]);
    let begins = format!("cg: {}: archive part: checksum is 0x", text(&archive));
    assert!(said.code == 1 && said.err.starts_with(&begins) && !to.exists(), "{said:?}");
    assert!(said.err.contains("; nothing was written"), "{said:?}");
}
