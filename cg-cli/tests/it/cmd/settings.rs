//! `cg settings`, and what `cg info` shows of settings.

use std::fs;
use std::path::PathBuf;

use cg_format::Space;
use cg_store::settings::WorldSettings;
use expect_test::{Expect, expect};
use serde_json::json;

use super::{Sample, text};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

/// Every setting but the thumbnail.
const ALL: [&str; 18] = [
    "name=Grove=\\ of Å",
    "created_ms=1700000000000",
    "changed_ms=1700000060000",
    "engine=",
    "seed=-9223372036854775808",
    "spawn=game:moon 9223372036854775807 -64 8",
    "time=6000",
    "game_time=123",
    "time_cycle=true",
    "raining=false",
    "rain_time=12000",
    "thundering=true",
    "thunder_time=-1",
    "weather_cycle=false",
    "required_sleep_ticks=100",
    "game_mode=survival",
    "difficulty=hard",
    "tick_range=6",
];

/// A picture beside the world.
fn picture(sample: &Sample, name: &str, bytes: &[u8]) -> PathBuf {
    let path = sample.beside(name);
    fs::write(&path, bytes).expect("writes");
    path
}

/// Sets, and checks that nothing is changed.
#[track_caller]
fn refused(sample: &Sample, args: &[&str], code: i32, expected: &Expect) {
    let before = sample.cg("settings", &["--json"]).out;
    let said = sample.cg("settings", args);
    assert_eq!((said.code, said.out.as_str()), (code, ""), "{}", said.err);
    let folder = sample.beside("").display().to_string();
    expected.assert_eq(&said.err.replace(&folder, "DIR/"));
    assert_eq!(sample.cg("settings", &["--json"]).out, before);
}

#[test]
fn all_settings_go_in_and_out() {
    let sample = Sample::new();
    assert_eq!(sample.cg("settings", &[]).good(), "the world has no settings\n");
    let none = sample.cg("settings", &["--json"]);
    assert_eq!((none.code, none.json()), (0, json!({ "settings": {}, "damaged": [] })));
    let file = picture(&sample, "in.png", PNG);
    let set = sample.cg("settings", &[&ALL[..], &["--thumbnail", text(&file)]].concat()).good();
    expect![[r#"
        name = Grove=\\ of Å
        created_ms = 1700000000000
        changed_ms = 1700000060000
        engine = 
        thumbnail = 12 bytes
        seed = -9223372036854775808
        spawn = game:moon 9223372036854775807 -64 8
        time = 6000
        game_time = 123
        time_cycle = true
        raining = false
        rain_time = 12000
        thundering = true
        thunder_time = -1
        weather_cycle = false
        required_sleep_ticks = 100
        game_mode = survival
        difficulty = hard
        tick_range = 6
    "#]]
    .assert_eq(&set);
    assert_eq!(sample.cg("settings", &[]).good(), set);
    assert_eq!(set.lines().count(), WorldSettings::NAMES.len());
    let copy = fs::read_to_string(sample.path().join("settings.txt")).expect("the world wrote it");
    assert_eq!(copy, format!("cherrygrove settings 1\n{set}"));
    let stored = WorldSettings::of(&sample.open()).expect("reads");
    assert_eq!(stored.name.as_deref(), Some("Grove=\\ of Å"));
    assert_eq!(stored.thumbnail.as_deref(), Some(PNG));

    let said = sample.cg("settings", &["--json"]);
    let (place, picture) =
        (json!({ "dimension": "game:moon", "x": i64::MAX, "y": -64, "z": 8 }), json!({ "bytes": 12 }));
    let expected = json!({
        "name": "Grove=\\ of Å", "created_ms": 1_700_000_000_000_i64, "changed_ms": 1_700_000_060_000_i64,
        "engine": "", "thumbnail": picture, "seed": i64::MIN, "spawn": place, "time": 6000, "game_time": 123,
        "time_cycle": true, "raining": false, "rain_time": 12000, "thundering": true, "thunder_time": -1,
        "weather_cycle": false, "required_sleep_ticks": 100, "game_mode": "survival", "difficulty": "hard",
        "tick_range": 6,
    });
    assert_eq!((said.code, said.json()), (0, json!({ "settings": expected, "damaged": [] })));
    assert!(said.out.starts_with(r#"{"settings":{"name":"#), "the name is first: {}", said.out);
    assert_eq!(sample.cg("verify", &[]).code, 0);
}

#[test]
fn some_are_set_and_removed_and_the_others_stay() {
    let sample = Sample::new();
    sample.cg("settings", &["name=Grove", "seed=-3", "time=6000", "raining=true"]).good();
    let before = sample.open().last_commit().get();
    let said =
        sample.cg("settings", &["time=7000", "--unset", "raining", "spawn=moon 1 2 3", "--unset", "seed"]);
    expect![[r#"
        spawn = game:moon 1 2 3
        time = 7000
        seed was removed
        raining was removed
    "#]]
    .assert_eq(&said.good());
    assert_eq!(sample.open().last_commit().get(), before + 1, "one commit");
    let said = sample.cg("settings", &["name=", "--unset", "time", "--json"]);
    assert_eq!((said.code, said.json()), (0, json!({ "set": { "name": "" }, "removed": ["time"] })));
    assert_eq!(sample.cg("settings", &[]).good(), "name = \nspawn = game:moon 1 2 3\n");
    sample.cg("settings", &["--unset", "name", "--unset", "spawn"]).good();
    assert_eq!(sample.cg("settings", &[]).good(), "the world has no settings\n");
}

#[test]
fn what_is_wrong_in_one_changes_none() {
    let sample = Sample::new();
    sample.cg("settings", &["name=Grove", "time=1"]).good();
    let check = |args: &[&str], code, expected: Expect| {
        refused(&sample, &[&["time=2"], args].concat(), code, &expected);
    };
    check(
        &["weather=fine"],
        2,
        expect![[r#"
            cg: there is no setting `weather`; there are name, created_ms, changed_ms, engine, thumbnail, seed, spawn, time, game_time, time_cycle, raining, rain_time, thundering, thunder_time, weather_cycle, required_sleep_ticks, game_mode, difficulty, tick_range; nothing was changed
        "#]],
    );
    check(
        &["--unset", "Name"],
        2,
        expect![[r#"
            cg: there is no setting `Name`; there are name, created_ms, changed_ms, engine, thumbnail, seed, spawn, time, game_time, time_cycle, raining, rain_time, thundering, thunder_time, weather_cycle, required_sleep_ticks, game_mode, difficulty, tick_range; nothing was changed
        "#]],
    );
    check(
        &["name"],
        2,
        expect![[r#"
            cg: `name` has no value: write it as NAME=VALUE, or remove a setting with --unset NAME; nothing was changed
        "#]],
    );
    check(
        &["seed=6e3"],
        2,
        expect![[r#"
            cg: setting `seed` cannot be `6e3`: it is a whole number; nothing was changed
        "#]],
    );
    check(
        &["raining="],
        2,
        expect![[r#"
            cg: setting `raining` cannot be ``: it is `true` or `false`; nothing was changed
        "#]],
    );
    check(
        &["spawn=1 2 3"],
        2,
        expect![[r#"
            cg: setting `spawn` cannot be `1 2 3`: it is the name of a dimension, and x, y and z of a block; nothing was changed
        "#]],
    );
    check(
        &["spawn=nether 1 2 3"],
        2,
        expect![[r#"
            cg: the world has no dimension `nether`; it has `game:overworld`, `game:moon`
        "#]],
    );
    check(
        &["time=3"],
        2,
        expect![[r#"
            cg: setting `time` is named 2 times; name it once, nothing was changed
        "#]],
    );
    check(
        &["name=x", "--unset", "name"],
        2,
        expect![[r#"
            cg: setting `name` is named 2 times; name it once, nothing was changed
        "#]],
    );
    let long = format!("name={}", "é".repeat(129));
    check(
        &[&long],
        2,
        expect![[r#"
            cg: setting `name` has 258 bytes, and at most 256 are allowed; nothing was changed
        "#]],
    );
    check(
        &["--unset", "seed"],
        4,
        expect![[r#"
            cg: the world has no setting `seed` that could be removed; nothing was changed
        "#]],
    );
    check(
        &["thumbnail=a.png"],
        2,
        expect![[r#"
            cg: setting `thumbnail` is a picture: set it with --thumbnail FILE; nothing was changed
        "#]],
    );
    assert_eq!(sample.cg("settings", &[]).good(), "name = Grove\ntime = 1\n");
}

#[test]
fn a_thumbnail_is_a_small_png_file() {
    let sample = Sample::new();
    let check = |args: &[&str], code, expected: Expect| refused(&sample, args, code, &expected);
    let gif = picture(&sample, "a.gif", b"GIF89a....");
    check(
        &["--thumbnail", text(&gif)],
        1,
        expect![[r#"
            cg: DIR/a.gif is no PNG file, it has 10 bytes that begin with [47, 49, 46, 38, 39, 61, 2e, 2e]; nothing was changed
        "#]],
    );
    let limit = WorldSettings::MAX_THUMBNAIL_BYTES;
    let large = picture(&sample, "large.png", &[PNG, &vec![7; limit + 1 - PNG.len()]].concat());
    let too_large = || {
        expect![[r#"
            cg: DIR/large.png has more than 262,144 bytes, which no thumbnail may have; choose a smaller picture, nothing was changed
        "#]]
    };
    check(&["name=x", "--thumbnail", text(&large)], 1, too_large());
    // Of a file without an end no more is read than a thumbnail may have.
    let said = sample.cg("settings", &["--thumbnail", "/dev/zero"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.starts_with("cg: /dev/zero has more than 262,144 bytes, "), "{}", said.err);
    check(
        &["--thumbnail", text(&sample.beside("none.png"))],
        4,
        expect![[r#"
            cg: cannot read DIR/none.png: No such file or directory (os error 2)
        "#]],
    );
    check(
        &["--thumbnail", text(&gif), "--unset", "thumbnail"],
        2,
        expect![[r#"
            cg: setting `thumbnail` is named 2 times; name it once, nothing was changed
        "#]],
    );
    let largest = [PNG, &vec![7; limit - PNG.len()]].concat();
    let file = picture(&sample, "largest.png", &largest);
    assert_eq!(sample.cg("settings", &["--thumbnail", text(&file)]).good(), "thumbnail = 262144 bytes\n");
    assert_eq!(WorldSettings::of(&sample.open()).expect("reads").thumbnail, Some(largest));
}

#[test]
fn a_damaged_setting_hides_no_other_and_can_be_set_or_removed() {
    let sample = Sample::new();
    sample.cg("settings", &["name=Grove", "seed=7", "raining=true", "time=6000"]).good();
    sample.spoil(Space::WorldMeta, b"seed", b"\x01");
    sample.spoil(Space::WorldProperty, b"cg:raining", b"\x02");
    let said = sample.cg("settings", &[]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    expect![[r#"
        name = Grove
        time = 6000
        DAMAGED seed (WorldMeta row 73656564: frame: seed needs 8 bytes and 1 are left (at byte 24)); set it again, or remove it with `cg settings WORLD --unset seed`
        DAMAGED raining (WorldProperty row 63673a7261696e696e67: frame: raining is 2, allowed is 0 or 1 (at byte 24)); set it again, or remove it with `cg settings WORLD --unset raining`
    "#]]
    .assert_eq(&said.out);
    let said = sample.cg("settings", &["--json"]);
    let found = said.json();
    assert_eq!((said.code, &found["settings"]), (1, &json!({ "name": "Grove", "time": 6000 })));
    assert_eq!(found["damaged"].as_array().map(Vec::len), Some(2));
    assert_eq!(found["damaged"][1]["setting"], "raining");
    let problem = found["damaged"][1]["problem"].as_str().expect("text");
    expect!["WorldProperty row 63673a7261696e696e67: frame: raining is 2, allowed is 0 or 1 (at byte 24)"]
        .assert_eq(problem);

    let info = sample.cg("info", &[]);
    assert_eq!((info.code, info.err.as_str()), (1, ""));
    let damaged = info.out.lines().filter(|line| line.starts_with("DAMAGED   setting "));
    assert_eq!(damaged.count(), 2, "{}", info.out);
    let info = sample.cg("info", &["--json"]);
    assert_eq!((info.code, &info.json()["damaged_settings"]), (1, &found["damaged"]));

    // The others are set beside it, and it is made good by setting or removing it.
    sample.cg("settings", &["time=1"]).good();
    assert_eq!(sample.cg("settings", &[]).code, 1);
    sample.cg("settings", &["seed=8", "--unset", "raining"]).good();
    assert_eq!(sample.cg("settings", &[]).good(), "name = Grove\nseed = 8\ntime = 1\n");
    sample.cg("info", &[]).good();
}

#[test]
fn info_shows_settings_and_the_name_above_all() {
    let sample = Sample::new();
    sample.cg("settings", &["name=a\u{1b}b\\", "seed=-3", "spawn=overworld 0 64 0"]).good();
    let said = sample.cg("info", &[]).good();
    let mut parts = said.split("\n\n");
    let head = parts.next().expect("there is one");
    assert_eq!(head.lines().next(), Some("name      a\\u{1b}b\\"), "{said}");
    assert_eq!(
        parts.next(),
        Some("name = a\\u{1b}b\\\\\nseed = -3\nspawn = game:overworld 0 64 0"),
        "{said}"
    );
    let found = sample.cg("info", &["--json"]).json();
    assert_eq!(found["settings"], sample.cg("settings", &["--json"]).json()["settings"]);
    assert_eq!(found["settings"]["name"], "a\u{1b}b\\");
    assert_eq!((&found["name"], found.get("damaged_settings")), (&json!(null), None));
}

#[test]
fn info_writes_the_thumbnail_to_a_new_file() {
    let sample = Sample::new();
    let new = sample.beside("new.png");
    let info = || sample.cg("info", &["--thumbnail", text(&new)]);
    let said = info();
    assert_eq!((said.code, said.out.as_str()), (4, ""));
    expect![[r#"
        cg: the world has no thumbnail; `cg settings WORLD --thumbnail FILE` sets it
    "#]]
    .assert_eq(&said.err);
    assert!(!new.exists());
    let file = picture(&sample, "in.png", PNG);
    sample.cg("settings", &["--thumbnail", text(&file)]).good();
    assert_eq!(info().good(), sample.cg("info", &[]).good());
    assert_eq!(fs::read(&new).expect("is there"), PNG);

    fs::write(&new, "mine").expect("writes");
    let said = info();
    let expected = format!("cg: {} is there already; delete it or choose another name\n", new.display());
    assert_eq!((said.code, said.out, said.err), (1, String::new(), expected));
    assert_eq!(fs::read(&new).expect("is there"), b"mine");
}

#[test]
fn the_help_names_every_setting() {
    let help = super::run(&["settings", "--help"]).good();
    for name in WorldSettings::NAMES {
        assert!(help.contains(&format!("`{name}`")), "{name}: {help}");
    }
}
