//! The shared saves of 26.1.1 and 26.2: a part of each changed, and put back from a world.

use std::fs;

use cg_anvil::region::{ReadLimits, Region, RegionPos, RegionWriter};

use super::super::folder::{check_same, copy, paths};
use super::super::save::{Dimensions, NETHER, OVERWORLD};
use super::super::test_dir::TestDir;
use crate::long::size;
use crate::worlds;

/// Takes every third slot out of each region file of a dimension, and changes the time of every other third.
fn spoil(folder: &std::path::Path) {
    for part in ["region", "entities", "poi"] {
        let folder = folder.join(part);
        let Ok(files) = fs::read_dir(&folder) else { continue };
        for file in files {
            let path = file.expect("readable").path();
            let Some(pos) = cg_anvil::region::region_pos(&path) else { continue };
            let mut region = Region::open(&path).expect("opens");
            let listed: Vec<_> = region.slots().collect();
            let mut slots = Vec::new();
            for (count, slot) in listed.into_iter().enumerate().filter(|(count, _)| count % 3 != 0) {
                let mut bytes = Vec::new();
                region.read(slot, &ReadLimits::default(), &mut bytes).expect("readable");
                slots.push((slot, bytes, region.timestamp(slot) + u32::from(count % 3 == 1)));
            }
            write(&folder, pos, &slots);
        }
    }
}

fn write(folder: &std::path::Path, pos: RegionPos, slots: &[(cg_anvil::region::Slot, Vec<u8>, u32)]) {
    let mut writer = RegionWriter::create(folder, pos).expect("a file");
    for (slot, bytes, time) in slots {
        writer.put(*slot, bytes, *time).expect("written");
    }
    writer.finish().expect("finished");
}

#[test]
fn a_dimension_of_a_shared_save_that_was_spoilt_is_put_back_whole() {
    let saves = [("java26/26.1.1_paper_server", NETHER), ("java26/26.2_upgraded_map", OVERWORLD)];
    for (name, dimension) in size(&saves[..1], &saves) {
        let dir = TestDir::new();
        let Some(source) = worlds::folder() else { return };
        copy(&source.join(name), &dir.at("before"));
        copy(&source.join(name), &dir.at("save"));
        dir.import("before", "world", &[]).ended(0);
        let folder = dir.at("save").join(Dimensions.folder(dimension));
        spoil(&folder);
        let all = 30_000_000;
        let area = [[-all, 0, -all, all, 0, all]];
        let report = dir.put_into("world", "save", &area, &["-d", dimension]).good();
        assert!(
            report["columns"]["new"].as_u64() > Some(0) && report["columns"]["equal"].as_u64() > Some(0),
            "{report}"
        );
        assert_eq!(report["kept_columns"], 0);
        check_same(&dir.at("before"), &dir.at("save"));
        assert!(!paths(&dir.at("save")).iter().any(|name| name.ends_with(".partial")));
        // Of a save that is as the world was, nothing changes.
        fs::remove_dir_all(dir.at("save")).expect("there");
        copy(&source.join(name), &dir.at("save"));
        let report = dir.put_into("world", "save", &area, &["-d", dimension]).good();
        assert_eq!(report["files"], 0, "{report}");
    }
}
