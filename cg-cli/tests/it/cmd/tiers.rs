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
    let [row, chunk] = &parts[..] else { panic!("a row and a chunk in it: {parts:?}") };
    let has = |part: &serde_json::Value, name: &str| {
        part["fields"].as_array().is_some_and(|fields| fields.iter().any(|field| field["field"] == name))
    };
    assert!(has(row, "chunk schema generation") && has(row, "group") && has(chunk, "palette ids"));
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
