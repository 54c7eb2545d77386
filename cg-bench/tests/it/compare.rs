//! `cg-compare` on two subjects and a tiny workload, as a user would run it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn compare(out: &Path, arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_cg-compare"))
        // Other tests run beside it: the machine will not be quiet.
        .args(["run", "--quick", "--columns", "121", "--rounds", "2", "--patience", "0", "--out"])
        .arg(out)
        .args(arguments)
        // Hills from a seed, the same on every machine.
        .env("CG_WORLDS", out)
        .env_remove("CI")
        .output();
    output.expect("the program runs")
}

#[test]
fn two_subjects_are_measured_compared_and_reported() {
    let dir = tempfile::tempdir().expect("a folder");
    let subjects = ["--subject", "ours, L0", "--subject", "region files"];
    let output = compare(dir.path(), &[&["block-process"], &subjects[..]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("one block changed, until the system has it (block-process)"), "{text}");
    assert!(text.contains("hills from seed 7"), "{text}");

    let [json, page] = ["report.json", "report.html"].map(|name| dir.path().join(name));
    let report: Value = serde_json::from_str(&fs::read_to_string(&json).expect("a report")).expect("JSON");
    let rows = report["workloads"][0]["rows"].as_array().expect("rows");
    let names: Vec<_> = rows.iter().map(|row| row["subject"].as_str().expect("a name")).collect();
    assert_eq!(names, ["ours, L0", "region files"]);
    for outcome in rows.iter().flat_map(|row| row["outcomes"].as_array().expect("rounds")) {
        let figures = &outcome["Measured"];
        assert!(figures["value"].as_f64().is_some_and(|value| value > 0.0), "{outcome}");
        assert!(figures["compared_columns"].as_u64().is_some_and(|count| count > 0), "{outcome}");
    }
    assert!(fs::read_to_string(page).expect("a page").contains("<svg"));

    let again = compare(
        dir.path(),
        &[&["block-process", "--compare", json.to_str().expect("a name")], &subjects[..]].concat(),
    );
    let text = String::from_utf8_lossy(&again.stdout);
    assert!(again.status.success() && text.contains("since the other report; "), "{text}");
}

#[test]
fn a_name_that_is_nothing_is_an_error() {
    let dir = tempfile::tempdir().expect("a folder");
    let output = compare(dir.path(), &["no-such-workload"]);
    assert!(!output.status.success());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("cg-compare: no workload has \"no-such-workload\" in its name"), "{error}");
}
