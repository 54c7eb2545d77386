//! Damaged region files: every readable column arrives, every lost one has its reason.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use cg_anvil::{ColumnError, SlotError};
use expect_test::{Expect, expect};

use crate::worlds::{self, Reading};

/// Reads a damaged file; compares what is left with the other decoder and the losses with what is expected.
#[track_caller]
fn check(file: &str, expected: Expect) -> Option<Reading> {
    let folder = worlds::folder()?;
    let reading = worlds::read(&folder.join(file));
    let truth = worlds::truth(&folder).remove(file);
    // The zero-byte file has no entry of its own figures.
    if let Some(truth) = truth.filter(|truth| truth.get("unreadable_chunks").is_some()) {
        let unreadable = truth["unreadable_chunks"].as_object().expect("an object");
        let lost: Vec<_> = reading.lost.keys().copied().collect();
        let mut named: Vec<u16> = unreadable.keys().map(|slot| slot.parse().expect("a slot")).collect();
        named.sort_unstable();
        let both: BTreeMap<_, _> = reading.refused.iter().filter(|(_, error)| no_nbt(error)).collect();
        let mut ours: Vec<_> = lost.into_iter().chain(both.into_keys().copied()).collect();
        ours.sort_unstable();
        assert_eq!(ours, named, "{file}: {:?} {:?}", reading.lost, reading.refused);
        if reading.refused.values().all(no_nbt) {
            worlds::check_figures(file, &worlds::figures(&reading), &truth);
        }
    }
    let mut text = String::new();
    let mut reasons = BTreeMap::<String, Vec<u16>>::new();
    for (slot, error) in &reading.lost {
        let reason = match error {
            SlotError::PastEnd { file_bytes, .. } => format!("past the file's end at {file_bytes}"),
            _ => error.to_string(),
        };
        reasons.entry(reason).or_default().push(*slot);
    }
    for (slot, error) in reading.refused.iter().chain(&reading.misplaced) {
        reasons.entry(error.to_string()).or_default().push(*slot);
    }
    let mut lines: Vec<_> = reasons.into_iter().map(|(reason, slots)| (slots, reason)).collect();
    lines.sort();
    for (slots, reason) in lines {
        match slots.as_slice() {
            [first, .., last] if slots.len() > 4 => {
                writeln!(text, "{} slots {first} to {last}: {reason}", slots.len()).expect("text");
            }
            _ => writeln!(text, "{slots:?}: {reason}").expect("text"),
        }
    }
    write!(text, "{} columns", reading.columns.len()).expect("text");
    expected.assert_eq(&text);
    Some(reading)
}

/// The other decoder only asks for NBT; what is NBT but no column that we read is ours to refuse.
fn no_nbt(error: &ColumnError) -> bool {
    matches!(error, ColumnError::Nbt(_))
}

#[test]
fn an_empty_file_holds_nothing_and_loses_nothing() {
    check("corrupt/made_empty.mca", expect!["0 columns"]);
}

#[test]
fn a_header_without_sectors_loses_every_column() {
    check(
        "corrupt/made_header_only.mca",
        expect![[r#"
            225 slots 0 to 462: past the file's end at 8192
            0 columns"#]],
    );
}

#[test]
fn a_bad_header_loses_what_it_points_at() {
    check(
        "corrupt/made_badheader_1.21.1.mca",
        expect![[r#"
            [0]: past the file's end at 1056768
            [1]: the slot points at sector 1, inside the header
            [2]: the slot of column (2, 0) shows column (3, 0)
            [4]: the stored length of 4294967295 bytes exceeds the 389116 bytes left in the file
            222 columns"#]],
    );
}

#[test]
fn flipped_bits_lose_their_columns() {
    check(
        "corrupt/made_bitflip_1.21.1.mca",
        expect![[r#"
        5 slots 234 to 459: the zlib stream is damaged: deflate decompression error
        220 columns"#]],
    );
}

#[test]
fn a_cut_file_loses_what_lay_behind_the_cut() {
    let Some(reading) = check_truncated() else { return };
    assert_eq!(reading.columns.len() + reading.lost.len(), 225);
}

fn check_truncated() -> Option<Reading> {
    let folder = worlds::folder()?;
    let file = "corrupt/made_truncated_1.21.1.mca";
    let reading = worlds::read(&folder.join(file));
    worlds::check_figures(file, &worlds::figures(&reading), &worlds::truth(&folder)[file]);
    let mut kinds = BTreeMap::<&str, usize>::new();
    for error in reading.lost.values() {
        let kind = match error {
            SlotError::PastEnd { file_bytes: 600_000, .. } => "past the end",
            SlotError::LengthPastEnd { .. } => "cut",
            _ => panic!("{error}"),
        };
        *kinds.entry(kind).or_default() += 1;
    }
    expect![[r#"{"past the end": 99}"#]].assert_eq(&format!("{kinds:?}"));
    Some(reading)
}

#[test]
fn natural_damage_is_told_too() {
    check(
        "corrupt/natural_querz_r.2.2.mca",
        expect![[r#"
        [0, 512, 1023]: the zlib stream ends early
        0 columns"#]],
    );
    check(
        "corrupt/natural_twoolie_regiontest.mca",
        expect![[r#"
            12 slots 1 to 39: Minecraft 1.12.2 and older (here data version 0) number their blocks, which are not read; the game upgrades a column when it loads it, all of them with --forceUpgrade
            [2]: compression 0 does not exist
            [3]: the zlib stream is damaged: deflate decompression error
            [11]: NBT: the tree begins with tag 120 where a compound (10) has to be (at byte 0)
            [14]: the slot points at sector 1, inside the header
            [15]: past the file's end at 110592
            [35]: the NBT is no column: it has neither Level nor sections, Entities or Sections
            [36]: the stored length is 0
            [37]: NBT: the tree begins with tag 77 where a compound (10) has to be (at byte 0)
            [40]: the zlib stream ends early
            0 columns"#]],
    );
}
