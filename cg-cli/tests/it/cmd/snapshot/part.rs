//! `cg snapshot restore --box`, and what `cg verify` says of it.

use serde_json::json;

use super::super::{Said, Sample, run};
use super::{create, harm};

/// Runs a command that another one printed, in a world whose path has no blanks.
fn run_printed(command: &serde_json::Value) -> Said {
    let words: Vec<_> = command.as_str().expect("a text").split(' ').skip(1).collect();
    run(&words)
}

#[test]
fn verify_names_the_snapshots_that_have_what_is_damaged() {
    let sample = Sample::new();
    let hash = sample.cg("hash", &[]).good();
    for name in ["older", "newer"] {
        sample.cg("snapshot create", &[name, "--box", "0", "64", "-16", "15", "79", "-1"]).good();
    }
    sample.cg("snapshot create", &["elsewhere", "--box", "900", "0", "900", "915", "15", "915"]).good();
    sample.spoil_ground();
    let said = sample.cg("verify", &["--json"]);
    assert_eq!(said.code, 1, "{said:?}");
    let problem = said.json()["problems"][0].clone();
    let names: Vec<_> =
        problem["copies"].as_array().expect("a list").iter().map(|copy| &copy["snapshot"]).collect();
    assert_eq!(names, ["newer", "older"]);
    assert!(
        sample.cg("verify", &[]).out.contains("  then, for its state in a snapshot: cg snapshot restore ")
    );
    // A damaged chunk is not overwritten by a restore.
    let refused = run_printed(&problem["copies"][0]["command"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("is damaged"), "{refused:?}");
    run_printed(&problem["command"]).good();
    assert_ne!(sample.cg("hash", &[]).good(), hash);
    run_printed(&problem["copies"][0]["command"]).good();
    sample.cg("verify", &[]).good();
    assert_eq!(sample.cg("hash", &[]).good(), hash);
}

#[test]
fn of_a_snapshot_only_the_chunks_of_a_box_are_restored() {
    let sample = Sample::new();
    create(&sample, "whole", &[]);
    harm(&sample);
    let harmed = sample.cg("hash", &[]).good();
    let elsewhere = ["whole", "--box", "900", "0", "0", "901", "1", "1"];
    let absent = sample.cg("snapshot restore", &elsewhere);
    assert_eq!((absent.code, absent.err.as_str()), (4, "cg: the snapshot `whole` has no block of the box\n"));
    // Chunks beside the harmed one.
    let beside = ["whole", "--json", "--box", "-16", "64", "-16", "-1", "79", "-1"];
    let report = sample.cg("snapshot restore", &beside).json();
    assert_eq!((&report["sections"], &report["blocks"]), (&json!(1), &json!(0)), "{report}");
    assert_eq!(sample.cg("hash", &[]).good(), harmed);
    let there = ["whole", "--json", "--box", "3", "70", "-9", "3", "70", "-9"];
    let report = sample.cg("snapshot restore", &there).json();
    assert_eq!((&report["sections"], &report["blocks"]), (&json!(1), &json!(10)), "{report}");
}
