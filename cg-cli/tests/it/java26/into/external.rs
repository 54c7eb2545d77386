//! Columns that are too large for a region file: their `.mcc` file comes, goes and changes with them.

use std::fs;
use std::path::Path;

use cg_anvil::nbt;
use cg_anvil::region::{ColumnPos, Compression, ReadLimits, Region, compress_as};
use serde_json::json;

use super::super::folder::{check_bytes, copy, paths, slots};
use super::super::save::{At, Dimensions, LATER, LIVE, Mark, NEW, OVERWORLD, column, document};
use super::super::test_dir::TestDir;
use super::{counts, raw_slots};

/// Large in the world, in the save, in both, in neither, and in the save outside of the box.
pub(super) const GROWS: At = (0, 0);
pub(super) const SHRINKS: At = (1, 0);
pub(super) const STAYS_LARGE: At = (2, 0);
pub(super) const SMALL: At = (3, 0);
pub(super) const OUTSIDE: At = (9, 0);
pub(super) const BOX: [[i32; 6]; 1] = [[0, 0, 0, 63, 0, 0]];
/// Where they are, from the save's folder on.
pub(super) const REGION: &str = "dimensions/minecraft/overworld/region";

/// A column that no compression makes smaller than the largest slot.
fn large(at: At, mark: Mark) -> Vec<u8> {
    let mut state = mark.time | 1;
    let noise = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    });
    let noise: Vec<u8> = noise.take(1_050_000).collect();
    let mut column = column(at, mark);
    column.left = Some(nbt::payload(|out| out.byte_array("mod:noise", &noise)));
    document(&column)
}

/// A save, and a world of its earlier state.
pub(super) fn make(dir: &TestDir) {
    for (name, mark, large_ones) in
        [("before", LIVE, &[GROWS, STAYS_LARGE][..]), ("save", LATER, &[SHRINKS, STAYS_LARGE, OUTSIDE])]
    {
        let save = dir.save(name);
        save.level(NEW, "world");
        let all = [GROWS, SHRINKS, STAYS_LARGE, SMALL, OUTSIDE].into_iter().zip(mark.time..);
        let slot = |(at, time): (At, u32)| {
            let bytes = if large_ones.contains(&at) { large(at, mark) } else { document(&column(at, mark)) };
            (at, bytes, time)
        };
        save.slots(REGION, all.map(slot));
        save.entities(Dimensions.folder(OVERWORLD), mark, &[SMALL, OUTSIDE]);
    }
    dir.import("before", "world", &[]).good();
    copy(&dir.at("save"), &dir.at("was"));
}

/// The names of the `.mcc` files of a save.
pub(super) fn externals(save: &Path) -> Vec<String> {
    let names = paths(&save.join(REGION)).into_iter();
    names.filter(|name| Path::new(name).extension() == Some("mcc".as_ref())).collect()
}

#[test]
fn a_large_column_gets_its_file_and_a_small_one_loses_it() {
    let dir = TestDir::new();
    make(&dir);
    assert_eq!(externals(&dir.at("save")), ["c.1.0.mcc", "c.2.0.mcc", "c.9.0.mcc"]);
    let report = dir.put_into("world", "save", &BOX, &[]).good();
    assert_eq!(report["columns"], counts(0, 4, 0, 0));
    assert_eq!(externals(&dir.at("save")), ["c.0.0.mcc", "c.2.0.mcc", "c.9.0.mcc"]);
    let file = |root: &str| dir.at(root).join(REGION).join("r.0.0.mca");
    let [mut is, mut before] = ["save", "before"].map(|root| slots(&file(root)));
    let outside = ColumnPos::new(OUTSIDE.0, OUTSIDE.1).slot().index();
    is.remove(&outside);
    before.remove(&outside);
    check_bytes("r.0.0.mca", &before, &is);
    assert_eq!(raw_slots(&file("save"))[&outside], raw_slots(&file("was"))[&outside]);
    let mcc = |root: &str| fs::read(dir.at(root).join(REGION).join("c.9.0.mcc")).expect("there");
    assert!(mcc("save") == mcc("was"), "that of another column");
    // What was replaced is whole: all three files are beside it.
    let kept = dir.at("save.cg-replaced-1");
    assert_eq!(externals(&kept), externals(&dir.at("was")));
    check_bytes("kept", &slots(&file("was")), &slots(&kept.join(REGION).join("r.0.0.mca")));
    let again = dir.put_into("world", "save", &BOX, &[]).good();
    assert_eq!((&again["columns"], &again["files"]), (&counts(0, 0, 4, 0), &serde_json::json!(0)));
}

#[test]
fn a_file_that_is_replaced_before_its_region_is_compressed_as_the_region_says() {
    let dir = TestDir::new();
    make(&dir);
    let slot = ColumnPos::new(STAYS_LARGE.0, STAYS_LARGE.1).slot();
    for compression in [Compression::Gzip, Compression::None, Compression::Lz4] {
        fs::remove_dir_all(dir.at("save")).expect("there");
        copy(&dir.at("was"), &dir.at("save"));
        let folder = dir.at("save").join(REGION);
        let (path, mcc) = (folder.join("r.0.0.mca"), folder.join("c.2.0.mcc"));
        let nbt = slots(&path)[&slot.index()].1.clone();
        let mut bytes = fs::read(&path).expect("there");
        let entry: [u8; 4] = bytes[usize::from(slot.index()) * 4..][..4].try_into().expect("four bytes");
        let sector = (u32::from_be_bytes(entry) >> 8) as usize;
        bytes[sector * 4096 + 4] = 0x80 | compression as u8;
        fs::write(&path, &bytes).expect("written");
        fs::write(&mcc, compress_as(compression, &nbt)).expect("written");
        dir.put_into("world", "save", &BOX, &["--no-backup"]).good();
        let mut region = Region::open(&path).expect("opens");
        let mut found = Vec::new();
        let read = region.read(slot, &ReadLimits::default(), &mut found).expect("readable");
        assert_eq!(read, Some(compression));
        let before = slots(&dir.at("before").join(REGION).join("r.0.0.mca"));
        assert!(found == before[&slot.index()].1, "{compression}");
        // The region as it was reads the new file, as after a kill between the two.
        fs::write(&path, &bytes).expect("written");
        let mut region = Region::open(&path).expect("opens");
        region.read(slot, &ReadLimits::default(), &mut found).expect("readable");
        assert!(found == before[&slot.index()].1, "{compression}");
    }
}

#[test]
fn a_file_that_no_slot_refers_to_stays() {
    let dir = TestDir::new();
    make(&dir);
    // Beside a slot that stays as it is, one that changes, and one that is not there.
    let stray = |at: At| dir.at("save").join(REGION).join(format!("c.{}.{}.mcc", at.0, at.1));
    let strays = [GROWS, SMALL, (20, 20)].map(stray);
    for path in &strays[1..] {
        fs::write(path, "of no slot").expect("writes");
    }
    dir.put_into("world", "save", &BOX, &["--no-backup"]).good();
    let again = dir.put_into("world", "save", &BOX, &[]).good();
    assert_eq!((&again["files"], &again["backups"]), (&json!(0), &json!([])));
    for path in &strays[1..] {
        assert_eq!(fs::read(path).expect("it stays"), b"of no slot", "{}", path.display());
    }
}
