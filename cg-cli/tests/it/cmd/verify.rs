//! `cg verify`

use expect_test::expect;
use serde_json::json;

use super::Sample;

#[test]
fn a_sound_world_passes_and_no_byte_of_it_changes() {
    let sample = Sample::new();
    let before = sample.files();
    let said = sample.cg("verify", &["--json"]);
    assert_eq!(said.code, 0, "{said:?}");
    let found = said.json();
    assert_eq!((&found["ok"], &found["problems"]), (&json!(true), &json!([])));
    assert_eq!((&found["checked"]["chunks"], &found["checked"]["entity"]), (&json!(3), &json!(2)));
    assert_eq!(sample.cg("verify", &["--quick", "--json"]).json()["checked"]["chunks"], json!(null));
    assert!(sample.files() == before, "verifying changed the world");
}

#[test]
fn every_problem_names_a_row_that_can_be_dumped() {
    let sample = Sample::new();
    let key = sample.spoil_ground();
    let said = sample.cg("verify", &["--json"]);
    assert_eq!(said.code, 1, "{said:?}");
    let found = said.json();
    assert_eq!(found["ok"], json!(false));
    let problems = found["problems"].as_array().expect("a list");
    assert!(problems.iter().any(|problem| problem["key"] == json!(key)), "{problems:?}");
    for problem in problems {
        let [space, key] = ["space", "key"].map(|field| problem[field].as_str().expect("a text"));
        let dumped = sample.cg("dump", &["--row", space, key]);
        assert!(!dumped.out.is_empty(), "{problem}: {dumped:?}");
    }
    // The frame is sound, so a quick look does not see it.
    assert_eq!(sample.cg("verify", &["--quick"]).code, 0);
}

#[test]
fn a_person_reads_one_line_per_problem() {
    let sample = Sample::new();
    sample.spoil_ground();
    let said = sample.cg("verify", &[]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    expect![[r#"
        chunkl0 0000000000000000c492492492492492492492492492492492492492492492c9: chunk 0, 4, -1 of dimension 0 is damaged (ChunkL0 row 0000000000000000c492492492492492492492492492492492492492492492c9): chunk header: entity offset needs 8 bytes and 3 are left (at byte 16); restore it from a checkpoint or set it aside with `cg quarantine`
          cg quarantine add WORLD --dimension game:overworld --box 0 64 -16 15 79 -1 --yes
        entity 00000000000000000000000000005ee9: its owner is chunk 0, 4, -1 of dimension 0, but no chunk refers to it
        checked 3 chunkl0, 3 chunks, 2 entity, 6 index, 16 worldMeta
        2 problems found
    "#]].assert_eq(&said.out.replace(super::text(&sample.path()), "WORLD"));
}
