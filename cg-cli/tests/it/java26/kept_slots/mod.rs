//! Content that an import cannot read is kept as bytes, and goes back until its column is changed.

mod changed;
mod faults;
mod header;
mod later;

use std::fs;

use cg_anvil::import::{ImportError, ImportOptions, import};
use cg_store::prelude::*;
use cg_store::view::Area;
use serde_json::{Value, json};

use self::faults::{make, place, raw_slots, torn_columns, unread_slots};
use super::save::{At, OVERWORLD};
use super::test_dir::{TestDir, list};

/// Counts of kept slots in `cg info`.
fn info(dir: &TestDir, world: &str) -> Value {
    dir.cg("info", world, &["--json"]).json()["imported"]["kept_slots"].clone()
}

/// A number of a report.
#[track_caller]
fn number(report: &Value, name: &str) -> u64 {
    report[name].as_u64().unwrap_or_else(|| panic!("no {name}: {report}"))
}

/// All three folders of two saves hold the same bytes, slot by slot.
#[track_caller]
fn check_raw(dir: &TestDir, before: &str, after: &str) {
    for folder in ["region", "entities", "poi"] {
        let name = format!("{folder}/r.0.0.mca");
        let [before, after] = [before, after].map(|save| raw_slots(&dir.at(save).join(&name)));
        assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>(), "{name}");
        for (slot, raw) in before {
            assert!(after[&slot] == raw, "{name} slot {slot}: {raw:?} became {:?}", after[&slot]);
        }
    }
}

#[test]
fn every_fault_goes_back_byte_for_byte() {
    let dir = TestDir::new();
    let save = dir.save("save");
    let count = make(&save);
    let imported = dir.import("save", "world", &[]).ended(1);
    let (torn, unread) = (torn_columns().len(), unread_slots(0).len());
    assert_eq!(count, torn + unread);
    // All of region/ but the sound column, seven of entities/, three of poi/.
    assert_eq!(number(&imported, "kept_slots"), count as u64 + 7 + 3, "{imported}");
    assert_eq!(number(&imported, "imported_columns"), torn as u64 + 1);
    let world = info(&dir, "world");
    assert_eq!((&world["objects"], &world["bytes"]), (&imported["kept_slots"], &imported["kept_slot_bytes"]));
    let verified = dir.cg("verify", "world", &["--json"]);
    // Four columns of entities/ and one of poi/ have no column.
    assert_eq!(
        (verified.code, &verified.json()["unread"]["columns"]),
        (0, &json!(count + 5)),
        "{}",
        verified.out
    );
    let exported = dir.export("world", "out", &[]).ended(0);
    for name in ["kept_slots", "kept_slot_bytes"] {
        assert_eq!(exported[name], imported[name], "{name}");
    }
    assert_eq!(exported["columns"], imported["imported_columns"]);
    check_raw(&dir, "save", "out");
    // What came out goes in the same way.
    assert_eq!(dir.import("out", "again", &[]).ended(1), imported);
    assert_eq!(dir.hash("again"), dir.hash("world"));
}

#[test]
fn what_can_be_read_of_a_torn_column_is_there() {
    let dir = TestDir::new();
    make(&dir.save("save"));
    dir.import("save", "world", &[]).ended(1);
    for (index, (what, _)) in torn_columns().iter().enumerate() {
        let (x, z) = place(index);
        let block = |y: i32| {
            let at = [x * 16, y, z * 16].map(|number| number.to_string());
            dir.cg("get", "world", &["--block", &at[0], &at[1], &at[2]])
        };
        let sound = block(64);
        assert!(sound.code == 0 && sound.out.contains("test:live"), "{what}");
        let warning =
            format!("cg: not all of the slot of column ({x}, {z}) could be read when it was imported (");
        assert!(sound.err.starts_with(&warning), "{what}: {}", sound.err);
        let torn = block(80);
        if torn.code != 0 {
            let said = format!(
                "cg: chunk {x} 5 {z} of {OVERWORLD} is not stored: not all of the slot of column ({x}, {z}) could be read when it was imported ("
            );
            assert!(torn.err.starts_with(&said), "{what}: {}", torn.err);
        }
    }
    let from = torn_columns().len();
    let said = dir.cg(
        "get",
        "world",
        &["--chunk", &place(from + 2).0.to_string(), "4", &place(from + 2).1.to_string()],
    );
    assert_eq!(said.code, 1);
    assert!(said.err.contains("(compression 9 does not exist); its bytes are kept"), "{}", said.err);
}

#[test]
fn an_import_that_is_stopped_keeps_the_same() {
    let dir = TestDir::new();
    make(&dir.save("save"));
    let imported = |stop_after_transactions| {
        let world = World::builder().in_memory().expect("a world in memory");
        let options = ImportOptions { stop_after_transactions, ..ImportOptions::default() };
        let report = loop {
            match import(&dir.at("save"), &world, &options, |_| {}) {
                Err(ImportError::Stopped(_)) => {}
                ended => break ended.expect("an import"),
            }
        };
        (report, world.content_hash(Area::World).expect("no damage"))
    };
    assert_eq!(imported(Some(1)), imported(None));
}

#[test]
fn a_save_without_faults_keeps_nothing() {
    let dir = TestDir::new();
    dir.save("save").level(super::save::OLD, "sound").dimension("", super::save::LIVE, &[(0, 0), (5, 5)]);
    let (imported, exported) = dir.round("save", &[]);
    for report in [&imported, &exported] {
        assert_eq!((number(report, "kept_slots"), number(report, "kept_slot_bytes")), (0, 0));
    }
    assert_eq!(dir.objects("world", "minecraft/slot"), [""; 0]);
}

#[test]
fn thousands_of_one_fault_are_one_line() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(super::save::OLD, "many").folder("region");
    let at = |index: i32| -> At { (index % 32, index / 32) };
    let slots: Vec<_> = (0..1024)
        .map(|index| {
            let nbt = cg_anvil::nbt::document(|root| {
                root.int("DataVersion", super::save::NEW);
                root.int("xPos", at(index).0);
                root.int("zPos", at(index).1);
                let written = root.compounds("sections", 0..10, |out, y| {
                    out.byte("Y", y);
                    out.compound("block_states", |_| ());
                    Ok::<_, cg_anvil::nbt::TooLong>(())
                });
                written.expect("short names");
            });
            faults::slot_of(at(index), &nbt)
        })
        .collect();
    faults::write(&save.path().join("region/r.0.0.mca"), &slots);
    let report = dir.import("save", "world", &[]).ended(1);
    let [reason] = list(&report["reasons"]) else { panic!("{}", report["reasons"]) };
    assert_eq!(
        (&reason["count"], &reason["reason"]),
        (&json!(10_240), &json!("section 0: its blocks have no palette"))
    );
    assert!(list(&report["unreadable"]).len() <= 2048);
    let said = dir.cg("import", "save", &[crate::cmd::text(&dir.at("said"))]);
    let said: Vec<_> = said.out.lines().filter(|line| line.contains("palette")).collect();
    assert_eq!(
        said,
        [
            "region/r.0.0.mca slot 0: section 0: its blocks have no palette; and 10,239 more like it, first in \
          region/r.0.0.mca slot 1, region/r.0.0.mca slot 2, region/r.0.0.mca slot 3"
        ]
    );
    dir.export("world", "out", &[]).ended(0);
    assert_eq!(raw_slots(&save.path().join("region/r.0.0.mca")), raw_slots(&dir.at("out/region/r.0.0.mca")));
}

#[test]
fn what_is_kept_is_packed_with_the_other_objects() {
    let dir = TestDir::new();
    make(&dir.save("save"));
    dir.import("save", "world", &[]).ended(1);
    let pack = dir.at("pack");
    dir.cg("pack", "world", &[crate::cmd::text(&pack), "--objects", "minecraft/slot"]).good();
    crate::cmd::run(&["unpack", crate::cmd::text(&pack), crate::cmd::text(&dir.at("other"))]).good();
    assert_eq!(info(&dir, "other"), info(&dir, "world"));
    assert!(fs::metadata(pack).expect("a file").len() > 0);
}

#[test]
fn a_pack_of_a_box_is_refused_where_it_would_leave_kept_slots() {
    let dir = TestDir::new();
    make(&dir.save("save"));
    dir.import("save", "world", &[]).ended(1);
    let file = dir.at("pack");
    // The region, and the columns beside it, of which none is in the save.
    let (all, none) = (["0", "0", "0", "511", "15", "511"], ["-512", "0", "0", "-1", "15", "511"]);
    let pack = |area: &[&str], more: &[&str]| {
        dir.cg("pack", "world", &[&[crate::cmd::text(&file), "--box"], area, more].concat())
    };
    let slots = number(&info(&dir, "world"), "objects");
    let refused = format!(
        "cg: the box has {slots} kept slots, which a pack does not hold; nothing was written, and with --without-detached \
         it is packed without them\n"
    );
    let said = pack(&all, &[]);
    assert_eq!((said.code, said.err), (1, refused));
    assert!(!file.exists());
    let report = pack(&all, &["--without-records", "--json"]).json();
    assert_eq!(report["left_kept_slots"], slots);
    fs::remove_file(&file).expect("a file");
    let report = pack(&all, &["--objects", "minecraft/slot", "--json"]).json();
    assert_eq!((&report["left_kept_slots"], &report["objects"]), (&json!(0), &json!(slots)));
    fs::remove_file(&file).expect("a file");
    pack(&none, &[]).good();
}
