//! `cg object`

use expect_test::{Expect, expect};
use serde_json::json;

use super::{Sample, text};

#[track_caller]
fn refused(sample: &Sample, verb: &str, args: &[&str], code: i32, expected: Expect) {
    let before = sample.cg("hash", &[]).good();
    let said = sample.cg(verb, args);
    assert_eq!((said.code, said.out.as_str()), (code, ""), "{}", said.err);
    expected.assert_eq(&said.err);
    assert_eq!(sample.cg("hash", &[]).good(), before);
}

#[test]
fn objects_go_in_and_out() {
    let sample = Sample::new();
    let put = |key: &str, content: &str| sample.cg("object put", &[key, "--text", content]).good();
    assert_eq!(put("block/1/bricks", "one"), "object `block/1/bricks` is at version 0\n");
    assert_eq!(put("block/1/bricks", "two"), "object `block/1/bricks` is at version 1\n");
    put("block/1/lights", "");
    let said = sample.cg("object get", &["block/1/bricks", "--json"]);
    let two = json!({ "key": "block/1/bricks", "version": 1, "bytes": 3, "text": "two", "hex": null });
    assert_eq!((said.code, said.json()), (0, two));

    // Any bytes, from a file and back, under a key that is no text.
    let (from, to) = (sample.beside("from"), sample.beside("to"));
    std::fs::write(&from, [0, 255, 7]).expect("is written");
    let said = sample.cg("object put", &["hex:00ff", "--from", text(&from), "--version", "1234", "--json"]);
    assert_eq!((said.code, said.json()), (0, json!({ "key": "hex:00ff", "version": 1234 })));
    assert_eq!(
        sample.cg("object get", &["hex:00ff"]).good(),
        "object `hex:00ff`, version 1234, 3 bytes\n00ff07\n"
    );
    sample.cg("object get", &["hex:00ff", "--to", text(&to)]).good();
    assert_eq!(std::fs::read(&to).expect("was written"), [0, 255, 7]);

    let listed = sample.cg("object list", &[]).good();
    let listed: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    let expected = [["1234", "3", "hex:00ff"], ["1", "3", "block/1/bricks"], ["0", "0", "block/1/lights"]];
    assert_eq!(listed, expected);
    let said = sample.cg("object list", &["--prefix", "block/", "--limit", "1", "--json"]).json();
    let bricks = json!({ "key": "block/1/bricks", "version": 1, "bytes": 3 });
    assert_eq!(said, json!({ "objects": [bricks], "next": "block/1/bricks" }));
    let rest = ["--prefix", "block/", "--after", "block/1/bricks", "--json"];
    assert_eq!(sample.cg("object list", &rest).json()["objects"][0]["key"], "block/1/lights");

    let deleted = sample.cg("object delete", &["block/1/bricks", "--yes"]).good();
    assert_eq!(deleted, "object `block/1/bricks` was deleted\n");
    assert_eq!(sample.cg("object delete", &["block/1/bricks", "--yes"]).code, 4);
    assert_eq!(put("block/1/bricks", "three"), "object `block/1/bricks` is at version 2\n");
    assert_eq!(sample.cg("info", &["--json"]).json()["objects"], 3);
    assert_eq!(sample.cg("verify", &[]).code, 0);
    let dumped = sample.cg("dump", &["--row", "object", "626c6f636b2f312f627269636b73"]).good();
    assert!(dumped.contains("object version") && dumped.contains("block/1/bricks"), "{dumped}");
}

#[test]
fn what_is_refused_says_why() {
    let sample = Sample::new();
    sample.cg("object put", &["a", "--text", "x", "--version", "9"]).good();
    refused(
        &sample,
        "object get",
        &["b"],
        4,
        expect![[r#"
        cg: there is no object `b`
    "#]],
    );
    refused(
        &sample,
        "object put",
        &["a", "--text", "y", "--version", "5"],
        1,
        expect![[r#"
        cg: object `a` is at version 9, and version 5 was to be written; versions do not go back
    "#]],
    );
    refused(
        &sample,
        "object put",
        &["a", "--text", "y", "--version", "-1"],
        1,
        expect![[r#"
        cg: object `a` was to be written at version -1; versions count from 0
    "#]],
    );
    refused(
        &sample,
        "object put",
        &["", "--text", "y"],
        2,
        expect![[r#"
        cg: the key of an object has 0 bytes, allowed are 1 to 512
    "#]],
    );
    refused(
        &sample,
        "object get",
        &["hex:0"],
        2,
        expect![[r#"
        cg: `0` is no hexadecimal
    "#]],
    );
    refused(
        &sample,
        "object delete",
        &["a"],
        2,
        expect![[r#"
        cg: object `a` would be deleted; nothing was changed, run it again with --yes
    "#]],
    );
}
