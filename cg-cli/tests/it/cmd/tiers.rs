//! Chunks of colder tiers: every command finds them where they lie.

use cg_format::ClusterTier;
use serde_json::json;

use super::{Sample, text};

const GROUND: [&str; 4] = ["--chunk", "0", "4", "-1"];

#[track_caller]
fn check(tier: ClusterTier, name: &str) {
    let sample = Sample::new();
    let hash = sample.cg("hash", &[]).good();
    let hot = sample.cg("get", &[&GROUND[..], &["--json"]].concat()).json();
    sample.cool_ground(tier);
    assert_eq!(sample.cg("hash", &[]).good(), hash);
    assert_eq!(sample.cg("verify", &[]).code, 0);

    let tiers = sample.cg("info", &["--json"]).json()["tiers"].take();
    assert_eq!((&tiers["l0"]["keys"], &tiers["l0"]["chunks"]), (&json!(2), &json!(2)));
    assert_eq!((&tiers[name]["keys"], &tiers[name]["chunks"]), (&json!(1), &json!(1)));

    let mut cold = sample.cg("get", &[&GROUND[..], &["--json"]].concat()).json();
    assert_eq!(cold["tier"], name);
    cold["tier"] = json!("l0");
    assert_eq!(cold, hot);

    let dumped = sample.cg("dump", &[&GROUND[..], &["--json"]].concat()).json();
    let parts = dumped["parts"].as_array().expect("a list");
    // The directory of a cold row is compressed.
    let (row, directory, chunk) = match (tier, &parts[..]) {
        (ClusterTier::L1, [row, chunk]) => (row, row, chunk),
        (ClusterTier::L2, [row, directory, chunk]) => (row, directory, chunk),
        _ => panic!("a row and a chunk in it: {parts:?}"),
    };
    let has = |part: &serde_json::Value, name: &str| {
        part["fields"].as_array().is_some_and(|fields| fields.iter().any(|field| field["field"] == name))
    };
    assert!(has(directory, "chunk schema generation") && has(row, "group") && has(chunk, "palette ids"));
    assert_eq!(chunk["bytes"], hot["value_bytes"]);
    let key = dumped["key"].as_str().expect("a text");
    let family = dumped["family"].as_str().expect("a text");
    let whole = sample.cg("dump", &["--row", family, key]);
    assert_eq!(whole.code, 0, "{whole:?}");
    assert!(whole.out.contains(", decompressed, "), "{}", whole.out);

    let file = sample.beside("map.png");
    let map = sample.cg("map", &["--out", text(&file), "--json"]).json();
    assert_eq!(map["surface"][0], json!({ "name": "game:grass_block", "columns": 254 }));
}

#[test]
fn a_chunk_of_a_warm_cluster_is_found() {
    check(ClusterTier::L1, "l1");
}

#[test]
fn a_chunk_of_a_cold_cluster_is_found() {
    check(ClusterTier::L2, "l2");
}

#[test]
fn tiers_are_counted_explained_and_settled() {
    let sample = Sample::new();
    let hash = sample.cg("hash", &[]).good();
    let shown = sample.cg("tiers", &["--json"]).json();
    assert_eq!((&shown["tiers"]["l0"]["chunks"], &shown["tiers"]["l2"]["chunks"]), (&json!(3), &json!(0)));
    let explained = sample.cg("tiers", &["--explain", "0", "4", "-1"]).good();
    assert!(explained.contains("lies in l0") && explained.contains("belongs in l0: accessed"), "{explained}");
    assert!(explained.contains("moves to l2 in") && explained.ends_with("if nobody comes\n"), "{explained}");

    let settled = sample.cg("tiers settle", &["--after", "30d", "--json"]).json();
    assert_eq!((&settled["cooled"], &settled["refused"]), (&json!(3), &json!(0)));
    let shown = sample.cg("tiers", &["--json"]).json();
    assert_eq!(shown["tiers"]["l0"], json!({"keys": 0, "chunks": 0, "shadowed": 0, "bytes": 0}));
    assert_eq!((&shown["tiers"]["l2"]["chunks"], &shown["clock_ticks"]), (&json!(3), &json!(0)));
    assert_eq!(sample.cg("hash", &[]).good(), hash);
    assert_eq!(sample.cg("verify", &[]).code, 0);
    let explained = sample.cg("tiers", &["--explain", "0", "4", "-1", "--json"]).json();
    assert_eq!((&explained["tier"], &explained["next"]), (&json!("l2"), &json!(null)));

    let absent = sample.cg("tiers", &["--explain", "99", "4", "-1"]);
    assert_eq!((absent.code, absent.err.contains("is not stored")), (4, true), "{absent:?}");
    let wrong = sample.cg("tiers settle", &["--after", "30x"]);
    assert_eq!((wrong.code, wrong.err.contains("`30x` is no span of game time")), (2, true), "{wrong:?}");
    assert_eq!(super::run(&["tiers"]).code, 2);
}

#[test]
fn deletions_are_forgotten_when_that_is_allowed() {
    let sample = Sample::new();
    let marks = |args: &[&str]| sample.cg("tiers forget", &[args, &["--json"]].concat()).json();
    let none = marks(&["--all", "--dry-run"]);
    assert_eq!((&none["marks"], &none["allowed"]), (&json!(0), &json!(false)));
    let gone = sample.cg("prune", &["--box", "0", "64", "-16", "15", "79", "-1", "--json", "--yes"]).json();
    assert_eq!(gone["chunks"], json!(1));
    let hash = sample.cg("hash", &[]).good();

    // Who may ask is told nothing is allowed before his state; the deletion was the last commit.
    let early = marks(&["--before", "2"]);
    assert_eq!(early, json!({ "forgotten_before": 2, "marks": 0, "allowed": true }));
    let settled = sample.cg("tiers settle", &["--after", "0t", "--json"]).json();
    assert_eq!(settled["marks_forgotten"], json!(0));
    let dry = marks(&["--all", "--dry-run"]);
    assert_eq!((&dry["marks"], &dry["allowed"]), (&json!(1), &json!(false)));
    let text = sample.cg("tiers forget", &["--all", "--dry-run"]).good();
    assert!(text.starts_with("1 row of deletions before commit "), "{text}");
    let allowed = marks(&["--all"]);
    assert_eq!((&allowed["marks"], &allowed["allowed"]), (&json!(1), &json!(true)));
    assert!(allowed["forgotten_before"].as_u64() > Some(2), "{allowed}");
    let again = marks(&["--before", "1", "--dry-run"]);
    assert_eq!(again["forgotten_before"], allowed["forgotten_before"], "it is not taken back");

    let settled = sample.cg("tiers settle", &["--after", "0t"]).good();
    assert!(settled.contains("\n0 shadowed copies dropped, 1 tombstones forgotten\n"), "{settled}");
    assert_eq!(marks(&["--all", "--dry-run"])["marks"], json!(0));
    assert_eq!(sample.cg("hash", &[]).good(), hash);
    assert_eq!(sample.cg("verify", &[]).code, 0);

    for wrong in [&[][..], &["--all", "--before", "3"], &["--before", "-1"]] {
        assert_eq!(sample.cg("tiers forget", wrong).code, 2, "{wrong:?}");
    }
}

#[test]
fn a_trace_is_replayed_against_two_policies() {
    let sample = Sample::new();
    let mut bytes = Vec::new();
    let mut writer = cg_tiering::trace::TraceWriter::new(&mut bytes);
    let chunk = cg_format::ChunkAt::new(cg_format::Dimension::new(0), cg_format::ChunkPos::constant(1, 2, 3));
    for event in [
        cg_tiering::trace::Event::Save { chunk, len_bytes: 2000 },
        cg_tiering::trace::Event::Tick(cg_tiering::GameTick::new(20 * 60 * 60)),
    ] {
        assert!(writer.write(&event, &mut bytes));
    }
    let file = sample.beside("play.trace");
    std::fs::write(&file, &bytes).expect("writes");
    let replayed = super::run(&["tiers", "simulate", text(&file), "--x", "1h", "--y", "2h", "--json"]).json();
    let settings = replayed["settings"].as_array().expect("a list");
    assert_eq!(settings.len(), 2);
    assert_eq!(settings[0]["chunks"], json!([0, 0, 1]));
    assert_eq!(settings[1]["name"], "asked for");
    std::fs::write(&file, &bytes[..bytes.len() - 1]).expect("writes");
    let cut = super::run(&["tiers", "simulate", text(&file)]);
    assert_eq!((cut.code, cut.err.contains("is no sound trace")), (1, true), "{cut:?}");
    let confused = super::run(&["tiers", "simulate", text(&file), "--x", "1h", "--y", "1m"]);
    assert_ne!(confused.code, 0);
}

#[test]
fn how_much_stays_free_can_be_said() {
    let sample = Sample::new();
    let settle = |mib: &str| sample.cg("tiers settle", &["--after", "30d", "--min-free", mib]);
    let refused = settle("1000000000");
    assert_eq!((refused.code, refused.out.as_str()), (1, ""));
    let demanded = (1_000_000_000_u64 << 20) / 4;
    assert!(refused.err.contains(&format!("less than the {demanded} that are to stay free")), "{refused:?}");
    assert!(refused.err.contains("`cg --min-free`"), "{refused:?}");
    assert!(settle("0").good().starts_with("3 chunks moved into cold clusters"));
}
