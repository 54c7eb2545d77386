//! `cg records`

use expect_test::{Expect, expect};
use serde_json::json;

use super::Sample;

const ONE: &str = "00000000-0000-0000-0000-000000000001";
const TWO: &str = "00000000-0000-0000-0000-000000000002";

#[track_caller]
fn refused(sample: &Sample, verb: &str, args: &[&str], code: i32, expected: Expect) {
    let before = sample.cg("hash", &[]).good();
    let said = sample.cg(verb, args);
    assert_eq!((said.code, said.out.as_str()), (code, ""), "{}", said.err);
    expected.assert_eq(&said.err);
    assert_eq!(sample.cg("hash", &[]).good(), before);
}

#[test]
fn records_are_added_listed_and_deleted() {
    let sample = Sample::new();
    let add = |more: &[&str]| sample.cg("records add", &[&["--kind", "sign"], more].concat()).good();
    let text = ["--text", "keep out"];
    let one = [&["--at", "-0.5", "64", "20.25", "--timestamp", "-5", "--id", ONE][..], &text].concat();
    assert_eq!(add(&one), format!("{ONE}\n"));
    add(&[&["--at", "300", "64", "0", "--timestamp", "7", "--id", TWO][..], &text].concat());
    let drawn = add(&[&["--at", "0", "0", "0", "-d", "moon"][..], &text].concat());
    assert_eq!(drawn.len(), 37, "a UUID: {drawn}");

    let said = sample.cg("records list", &["--box", "-9", "60", "30", "-1", "70", "31", "--json"]);
    let expected = json!({
        "id": ONE, "dimension": "game:overworld", "block": [-1, 64, 20], "fraction": [0.5, 0.0, 0.25],
        "timestamp": -5, "kind": "sign", "text": "keep out", "hex": null
    });
    assert_eq!((said.code, said.json()), (0, json!({ "records": [expected], "damaged": 0, "more": false })));
    let lines = |args: &[&str]| sample.cg("records list", args).good();
    assert_eq!(lines(&["--after", "-5"]), format!("{TWO}  300 64 0 (+0 +0 +0)  7  sign  keep out\n"));
    assert_eq!(lines(&["--kind", "grave"]), "");
    assert_eq!(lines(&["-d", "moon"]).lines().count(), 1);
    assert!(lines(&["--limit", "1"]).ends_with("and more: --limit says how many are listed\n"));
    assert_eq!(sample.cg("info", &["--json"]).json()["records"], 3);

    assert_eq!(sample.cg("records delete", &[ONE, "--yes"]).good(), format!("record {ONE} was deleted\n"));
    let said = sample.cg("records delete", &[ONE, "--yes", "--json"]);
    assert_eq!((said.code, said.json()), (4, json!({ "id": ONE, "deleted": false })));
    assert_eq!(lines(&[]).lines().count(), 1);
    assert_eq!(sample.cg("verify", &[]).code, 0);
}

#[test]
fn several_boxes_list_each_record_once() {
    let sample = Sample::new();
    let add = |x: &'static str, id: &'static str| {
        let at = ["--at", x, "64", "0", "--kind", "sign", "--text", "t", "--id", id];
        sample.cg("records add", &at).good()
    };
    add("-3", ONE);
    add("300", TWO);
    add("5000", "00000000-0000-0000-0000-000000000003");
    let list = |args: &[&str]| sample.cg("records list", args).good();
    let near = ["--box", "-9", "60", "0", "20", "70", "5"];
    let wide = ["--box", "-400", "60", "0", "400", "70", "5"];
    let both = list(&wide);
    assert_eq!(both.lines().count(), 2, "{both}");
    assert_eq!(list(&[near, wide].concat()), both);
    assert_eq!(list(&[wide, near, wide].concat()), both);
    let far = ["--box", "900", "60", "0", "901", "70", "5"];
    assert_eq!(list(&[far, far].concat()), "", "two boxes without a record list none, and not all");
    let one = list(&[far.as_slice(), &near].concat());
    assert_eq!(one.lines().count(), 1, "{one}");
    assert_eq!(
        list(&[wide.as_slice(), &near, &["--limit", "1"]].concat()).lines().next(),
        both.lines().next()
    );
}

#[test]
fn a_position_is_stored_as_it_was_written() {
    let sample = Sample::new();
    let cases = [
        (
            ["9007199254740993", "-9007199254740993.25", "0.1"],
            [9_007_199_254_740_993, -9_007_199_254_740_994, 0],
            [0.0, 0.75, 0.1],
        ),
        (["9223372036854775807.5", "-9223372036854775808", "-0"], [i64::MAX, i64::MIN, 0], [0.5, 0.0, 0.0]),
        (["1.5e3", "25E-2", ".5"], [1500, 0, 0], [0.0, 0.25, 0.5]),
        (["-0.00000000000000000001", "+7.", "2.99999999999"], [0, 7, 3], [0.0, 0.0, 0.0]),
    ];
    for (at, block, fraction) in cases {
        let at = ["--at", at[0], at[1], at[2], "--kind", "far", "--text", "t", "--id", ONE];
        sample.cg("records add", &at).good();
        let listed = sample.cg("records list", &["--json"]).json()["records"].take();
        assert_eq!(
            (&listed[0]["block"], &listed[0]["fraction"]),
            (&json!(block), &json!(fraction)),
            "{at:?}"
        );
    }
}

#[test]
fn the_shape_says_where_a_block_belongs() {
    expect![[r#"
        leaf_square_size      16   leaf of 16 blocks
        tree_degree          512
        num_levels             2   root of 128 blocks
        roots_per_table        8   table of 256 blocks
        leaf              records_0_n1_0_0 / 4 / 448
    "#]]
    .assert_eq(&Sample::new().cg("records shape", &["--at", "-1", "0", "0"]).good());
    let said = Sample::new().cg("records shape", &["--json"]).json();
    assert_eq!((&said["tree_degree"], &said["leaf"]), (&json!(512), &json!(null)));
}

#[test]
fn what_is_refused_says_why() {
    let sample = Sample::new();
    let add = |x: &'static str, more: &[&'static str]| [&["--at", x, "0", "0", "--text", "t"], more].concat();
    refused(
        &sample,
        "records add",
        &add("NaN", &["--kind", "k"]),
        2,
        expect![[r#"
        cg: x is `NaN`, allowed is a decimal number from -2^63 to below 2^63
    "#]],
    );
    refused(
        &sample,
        "records add",
        &add("inf", &["--kind", "k"]),
        2,
        expect![[r#"
        cg: x is `inf`, allowed is a decimal number from -2^63 to below 2^63
    "#]],
    );
    refused(
        &sample,
        "records add",
        &add("1e300", &["--kind", "k"]),
        2,
        expect![[r#"
        cg: x is `1e300`, allowed is a decimal number from -2^63 to below 2^63
    "#]],
    );
    refused(
        &sample,
        "records delete",
        &[ONE],
        2,
        expect![[r#"
        cg: record 00000000-0000-0000-0000-000000000001 would be deleted; nothing was changed, run it again with --yes
    "#]],
    );
}
