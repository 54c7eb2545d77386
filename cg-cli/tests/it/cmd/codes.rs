//! Exit codes, the codes of errors, and waiting for a world that another process has open.

use std::time::{Duration, Instant};

use cg_store::prelude::*;
use serde_json::Value;

use super::{Said, Sample, run, text};

const NO_RECORD: &str = "00000000-0000-0000-0000-00000000000a";

/// The exit code and the code of an error in JSON.
#[track_caller]
fn codes(said: &Said) -> (i32, String) {
    let error: Value = serde_json::from_str(&said.err).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    assert_eq!(said.out, "", "{said:?}");
    (said.code, error["error"]["code"].as_str().expect("text").to_owned())
}

#[track_caller]
fn check(sample: &Sample, verb: &str, args: &[&str], exit: i32, code: &str) {
    let said = sample.cg(verb, &[args, &["--json"]].concat());
    assert_eq!(codes(&said), (exit, code.to_owned()), "{said:?}");
}

#[test]
fn wrong_usage_is_two() {
    let sample = Sample::new();
    check(&sample, "records delete", &[NO_RECORD], 2, "usage");
    check(&sample, "get", &["--chunk", "1", "2", "3", "--chunk", "1", "2", "3"], 2, "usage");
    check(&sample, "get", &["--chunk", "0", "0", "0", "-d", "nether"], 2, "unknown_dimension");
    check(&sample, "info", &["--min-free", "1"], 2, "usage");
}

#[test]
fn damage_is_one() {
    let sample = Sample::new();
    sample.spoil_ground();
    check(&sample, "get", &["--chunk", "0", "4", "-1"], 1, "damaged");
    check(&sample, "hash", &[], 1, "damaged");
    let verified = sample.cg("verify", &["--json"]);
    assert_eq!((verified.code, &verified.json()["ok"]), (1, &Value::from(false)));
    let file = sample.beside("pack");
    std::fs::write(&file, b"no pack").expect("writes");
    assert_eq!(
        codes(&run(&["unpack", text(&file), text(&sample.beside("new")), "--json"])),
        (1, "damaged".into())
    );
}

#[test]
fn loss_is_one() {
    let sample = Sample::new();
    let world_file = sample.path().join("world.cg");
    let bytes = std::fs::read(&world_file).expect("is there");
    std::fs::remove_file(&world_file).expect("removes");
    check(&sample, "info", &[], 1, "lost");
    std::fs::write(&world_file, bytes).expect("writes");
    std::fs::remove_dir_all(sample.path().join("db")).expect("removes");
    check(&sample, "info", &[], 1, "lost");
}

#[test]
fn refusal_is_one() {
    let sample = Sample::new();
    let much = u64::MAX.to_string();
    check(&sample, "object put", &["k", "--text", "t", "--min-free", &much], 1, "refused");
    let file = sample.beside("map.png");
    std::fs::write(&file, b"is there").expect("writes");
    check(&sample, "map", &["--out", text(&file)], 1, "refused");
}

#[test]
fn other_failures_are_one() {
    let sample = Sample::new();
    sample.cg("object put", &["k", "--text", "t"]).good();
    let below_a_file = sample.path().join("world.cg/file");
    check(&sample, "object get", &["k", "--to", text(&below_a_file)], 1, "failed");
}

#[test]
fn absence_is_four() {
    let sample = Sample::new();
    let missing = sample.beside("missing");
    for world in [text(&missing), text(sample.beside("").as_path())] {
        let said = run(&["info", world, "--json"]);
        assert_eq!(codes(&said), (4, "absent".into()), "{said:?}");
    }
    check(&sample, "get", &["--chunk", "9", "9", "9"], 4, "absent");
    check(&sample, "dump", &["--chunk", "9", "9", "9"], 4, "absent");
    check(&sample, "dump", &["--entity", NO_RECORD], 4, "absent");
    check(&sample, "tiers", &["--explain", "9", "9", "9"], 4, "absent");
    check(&sample, "object get", &["none"], 4, "absent");
    check(&sample, "settings", &["--unset", "name"], 4, "absent");
    check(&sample, "info", &["--thumbnail", text(&missing)], 4, "absent");
    check(&sample, "snapshot show", &["none"], 4, "absent");
    check(&sample, "snapshot delete", &["none", "--yes"], 4, "absent");
    check(&sample, "pack", &[text(&missing), "--objects", "none"], 4, "absent");
    let area = ["--box", "0", "0", "0", "1", "1", "1"];
    check(&sample, "export", &[&["--into", text(&missing)], &area[..]].concat(), 4, "absent");
    let new = sample.beside("new");
    for words in [
        &["unpack", text(&missing), text(&new)][..],
        &["import", text(&missing), text(&new)],
        &["schem", "info", text(&missing)],
    ] {
        let said = run(&[words, &["--json"]].concat());
        assert_eq!(codes(&said), (4, "absent".into()), "{said:?}");
    }
    assert!(!new.exists());
    for (verb, args) in [
        ("object delete", &["none", "--yes"][..]),
        ("records delete", &[NO_RECORD, "--yes"]),
        ("quarantine delete", &["ChunkL0", "00", "1", "--yes"]),
        ("quarantine add", &["--chunk", "9", "9", "9", "--yes"]),
        ("quarantine add", &["--entity", NO_RECORD, "--yes"]),
        ("quarantine add", &["--object", "none", "--yes"]),
        ("quarantine add", &["--record", NO_RECORD, "--yes"]),
    ] {
        let said = sample.cg(verb, &[args, &["--json"]].concat());
        assert_eq!((said.code, said.err.as_str()), (4, ""), "{said:?}");
        said.json();
    }
}

#[test]
fn a_held_world_is_three() {
    let sample = Sample::new();
    let writer = sample.open();
    let file = sample.beside("file");
    let all: [(&str, &[&str]); 11] = [
        ("info", &[]),
        ("hash", &[]),
        ("verify", &[]),
        ("dump", &["--chunk", "0", "4", "-1"]),
        ("registry replace", &["--block", "game:stone", "game:grass_block"]),
        ("object put", &["k", "--text", "t"]),
        ("settings", &[]),
        ("settings", &["name=Grove"]),
        ("checkpoint", &[text(&file)]),
        ("accept-loss", &[]),
        ("quarantine add", &["--commit", "--yes"]),
    ];
    for (verb, args) in all {
        check(&sample, verb, args, 3, "held");
    }
    let said = sample.cg("info", &[]);
    assert_eq!((said.code, said.out.as_str()), (3, ""));
    assert!(said.err.contains(&std::process::id().to_string()), "it names the process: {said:?}");
    writer.close().expect("closes");
    drop(writer);
    // Readers hold it for writers, and not for each other.
    let reader = World::builder().open_read_only(sample.path()).expect("opens");
    assert_eq!(sample.cg("info", &[]).code, 0);
    assert_eq!(sample.cg("settings", &[]).good(), "the world has no settings\n");
    check(&sample, "object put", &["k", "--text", "t"], 3, "held");
    drop(reader);
    assert_eq!(sample.cg("object put", &["k", "--text", "t"]).code, 0);
}

#[test]
fn a_command_waits_for_a_held_world_within_its_limit() {
    let sample = Sample::new();
    let world = sample.open();
    let began = Instant::now();
    let said = sample.cg("info", &["--wait", "1"]);
    assert_eq!((said.code, said.out.as_str()), (3, ""));
    assert!(began.elapsed() >= Duration::from_secs(1), "it waited");
    let lines: Vec<_> = said.err.lines().collect();
    assert_eq!(lines.len(), 2, "{said:?}");
    assert!(lines[0].ends_with("; waiting for 1 s at most") && lines[0].starts_with(lines[1]), "{said:?}");

    drop(world);

    for (verb, args) in [("info", &[][..]), ("object put", &["k", "--text", "t"])] {
        let world = sample.open();
        let holder = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(1500));
            drop(world);
        });
        let said = sample.cg(verb, &[args, &["--wait", "60", "--json"]].concat());
        assert_eq!(said.code, 0, "{said:?}");
        said.json();
        let warning: Value = serde_json::from_str(&said.err).expect("one line of JSON");
        let warning = warning["warning"].as_str().expect("text");
        assert!(warning.ends_with("; waiting for 60 s at most"), "{warning}");
        holder.join().expect("closes");
    }
}
