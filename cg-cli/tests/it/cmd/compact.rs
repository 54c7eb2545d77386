//! `cg compact`

use super::{Sample, run, text};

/// Overwrites an object of 300,000 bytes that do not compress, each time in another file.
fn overwrite(sample: &Sample) {
    for round in 1..=3_u32 {
        let world = sample.open();
        let mut state = round;
        let bytes: Vec<u8> = (0..300_000)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        world.objects().put("large", bytes).expect("puts");
        world.close().expect("closes");
    }
}

#[test]
fn bytes_are_given_back_and_the_content_stays() {
    let sample = Sample::new();
    overwrite(&sample);
    let hash = sample.cg("hash", &[]).good();
    let said = sample.cg("compact", &["--json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    let report = said.json();
    let number = |name: &str| report[name].as_u64().unwrap_or_else(|| panic!("{name} in {report}"));
    assert!(number("before_bytes") > 900_000, "{report}");
    assert!(number("after_bytes") < 320_000, "{report}");
    assert_eq!(number("freed_bytes"), number("before_bytes") - number("after_bytes"));
    assert!(number("slices") > 0);
    let names = [
        "warmed",
        "cooled",
        "shadows_dropped",
        "tombstones_purged",
        "deltas_folded",
        "refused",
        "skipped_low_disk",
        "skipped_damaged",
    ];
    assert_eq!(names.map(number), [0; 8]);
    assert_eq!(sample.cg("hash", &[]).good(), hash);
    assert_eq!(sample.cg("verify", &[]).code, 0);
}

#[test]
fn an_area_is_compacted_without_what_is_elsewhere() {
    let sample = Sample::new();
    overwrite(&sample);
    let said = sample.cg("compact", &["--dim", "moon", "--box", "0", "0", "0", "15", "15", "15"]).good();
    assert!(said.contains(" given back: ") && said.contains("of files rewritten; 0 chunks moved"), "{said}");
    // The object is in no area.
    let report = sample.cg("compact", &["--json"]).json();
    assert!(report["freed_bytes"].as_u64().expect("a number") > 500_000, "{report}");
    let said = sample.cg("compact", &["--dim", "moon"]);
    assert_eq!(
        (said.code, said.err.as_str()),
        (2, "cg: --dimension needs --box: without it the whole world is compacted\n")
    );
}

#[test]
fn files_that_are_left_because_of_damage_are_told() {
    let sample = Sample::new();
    overwrite(&sample);
    std::fs::write(sample.path().join("db/DAMAGED"), "object damaged in 000011.sst\n").expect("writes");
    let said = sample.cg("compact", &["--json"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(said.json()["skipped_damaged"], 1);
    let said = sample.cg("compact", &[]);
    let told = "the files of 1 kind of row were left as they are, because one of them is damaged; `cg verify` tells which\n";
    assert!(said.code == 1 && said.out.ends_with(told), "{said:?}");
    let area = ["--dim", "moon", "--box", "0", "0", "0", "15", "15", "15"];
    assert_eq!(sample.cg("compact", &area).code, 0, "nothing of the area is left");
}

#[test]
fn a_world_that_another_process_has_open_is_not_compacted() {
    let sample = Sample::new();
    let _held = sample.open();
    assert_eq!(run(&["compact", text(&sample.path())]).code, 3);
}
