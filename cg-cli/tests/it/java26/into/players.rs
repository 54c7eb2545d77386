//! Players who are in the boxes: left out by name, and put back by hand.

use std::fs;

use cg_anvil::nbt;
use serde_json::json;
use uuid::Uuid;

use super::super::save::{Dimensions, LATER, LIVE, Mark, NEW, OVERWORLD};
use super::super::test_dir::TestDir;
use super::counts;
use crate::cmd::{run, text};
use crate::maker;

/// Both columns. The second has players alone.
const BOX: [[i32; 6]; 1] = [[0, 0, 0, 31, 0, 0]];

fn path(number: u128) -> String {
    format!("players/data/{}.dat", Uuid::from_u128(number))
}

/// A save with a player in a column, and twelve in one that is not there.
fn save(dir: &TestDir, name: &str, (mark, health): (Mark, i32)) {
    let save = dir.save(name);
    save.level(NEW, "world").blocks(Dimensions.folder(OVERWORLD), mark, &[(0, 0)]).file("session.lock", "");
    for number in 1..=13 {
        let player = nbt::document(|root| {
            root.int("DataVersion", NEW);
            root.int("Health", health);
            root.doubles("Pos", &[if number == 1 { 5.0 } else { 20.0 }, 70.0, 5.0]);
        });
        save.file(&path(number), maker::gzip(&player));
    }
}

#[test]
fn players_who_are_left_out_are_named() {
    let dir = TestDir::new();
    save(&dir, "before", (LIVE, 1));
    save(&dir, "save", (LATER, 2));
    assert_eq!(dir.import("before", "world", &[]).good()["players"], 13);
    let report = dir.put_into("world", "save", &BOX, &["--dry-run"]).ended(1);
    let left = |number| json!({ "uuid": Uuid::from_u128(number), "why": "their column is not put" });
    let left: Vec<_> = (2..=13).map(left).collect();
    assert_eq!(report["left_players"], json!({ "count": 12, "first": left }));
    assert_eq!(report["players"], counts(0, 1, 0, 0));
    let (world, into) = (dir.at("world"), dir.at("save"));
    let words =
        ["export", text(&world), "--into", text(&into), "--box", "0", "0", "0", "31", "0", "0", "--dry-run"];
    let said = run(&words);
    let named =
        |number| format!("player {}: left out, as their column is not put\n", Uuid::from_u128(number));
    assert!((2..=11).all(|number| said.out.contains(&named(number))), "{}", said.out);
    assert!(!said.out.contains(&named(12)));
    assert!(said.out.contains("… and 2 more players, left out\n"), "{}", said.out);
}

#[test]
fn replaced_players_are_put_back_by_hand() {
    let dir = TestDir::new();
    save(&dir, "before", (LIVE, 1));
    save(&dir, "save", (LATER, 2));
    dir.import("before", "world", &[]).good();
    let was = fs::read(dir.at("save").join(path(1))).expect("there");
    dir.put_into("world", "save", &BOX, &[]).ended(1);
    let (is, kept) = (dir.at("save").join(path(1)), dir.at("save.cg-replaced-1/files").join(path(1)));
    assert!(fs::read(&is).expect("there") != was && fs::read(&kept).expect("kept") == was);
    assert!(!dir.at("save.cg-replaced-1/level.dat").exists());
    // What is made of it as the manual says has no player.
    let report = dir.import("save.cg-replaced-1", "undo", &[]);
    assert_eq!((report.code, &report.report["players"]), (0, &json!(0)), "{}", report.err);
    dir.put_into("undo", "save", &BOX, &["--no-backup"]).good();
    assert!(fs::read(&is).expect("there") != was);
}
