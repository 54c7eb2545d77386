//! Damaged region files: every readable column arrives, every lost one has its reason.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use cg_cli::anvil::ColumnError;
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
        let both: BTreeMap<_, _> = reading.refused.iter().filter(|(_, error)| !too_old(error)).collect();
        let mut ours: Vec<_> = lost.into_iter().chain(both.into_keys().copied()).collect();
        ours.sort_unstable();
        assert_eq!(ours, named, "{file}");
        if reading.refused.values().all(|error| !too_old(error)) {
            worlds::check_figures(file, &worlds::figures(&reading), &truth);
        }
    }
    let mut text = String::new();
    let mut reasons = BTreeMap::<String, Vec<u16>>::new();
    for (slot, error) in &reading.lost {
        reasons.entry(error.to_string()).or_default().push(*slot);
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

fn too_old(error: &ColumnError) -> bool {
    matches!(error, ColumnError::TooOld { .. })
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
        [0]: the slot points at byte 147456, and the file ends at 8192
        [1]: the slot points at byte 524288, and the file ends at 8192
        [2]: the slot points at byte 851968, and the file ends at 8192
        [3]: the slot points at byte 110592, and the file ends at 8192
        [4]: the slot points at byte 667648, and the file ends at 8192
        [5]: the slot points at byte 204800, and the file ends at 8192
        [6]: the slot points at byte 507904, and the file ends at 8192
        [7]: the slot points at byte 1052672, and the file ends at 8192
        [8]: the slot points at byte 331776, and the file ends at 8192
        [9]: the slot points at byte 425984, and the file ends at 8192
        [10]: the slot points at byte 253952, and the file ends at 8192
        [11]: the slot points at byte 778240, and the file ends at 8192
        [12]: the slot points at byte 847872, and the file ends at 8192
        [13]: the slot points at byte 413696, and the file ends at 8192
        [14]: the slot points at byte 1032192, and the file ends at 8192
        [32]: the slot points at byte 659456, and the file ends at 8192
        [33]: the slot points at byte 688128, and the file ends at 8192
        [34]: the slot points at byte 765952, and the file ends at 8192
        [35]: the slot points at byte 118784, and the file ends at 8192
        [36]: the slot points at byte 176128, and the file ends at 8192
        [37]: the slot points at byte 712704, and the file ends at 8192
        [38]: the slot points at byte 921600, and the file ends at 8192
        [39]: the slot points at byte 401408, and the file ends at 8192
        [40]: the slot points at byte 806912, and the file ends at 8192
        [41]: the slot points at byte 888832, and the file ends at 8192
        [42]: the slot points at byte 1044480, and the file ends at 8192
        [43]: the slot points at byte 987136, and the file ends at 8192
        [44]: the slot points at byte 315392, and the file ends at 8192
        [45]: the slot points at byte 913408, and the file ends at 8192
        [46]: the slot points at byte 405504, and the file ends at 8192
        [64]: the slot points at byte 307200, and the file ends at 8192
        [65]: the slot points at byte 344064, and the file ends at 8192
        [66]: the slot points at byte 352256, and the file ends at 8192
        [67]: the slot points at byte 131072, and the file ends at 8192
        [68]: the slot points at byte 458752, and the file ends at 8192
        [69]: the slot points at byte 389120, and the file ends at 8192
        [70]: the slot points at byte 753664, and the file ends at 8192
        [71]: the slot points at byte 835584, and the file ends at 8192
        [72]: the slot points at byte 233472, and the file ends at 8192
        [73]: the slot points at byte 585728, and the file ends at 8192
        [74]: the slot points at byte 364544, and the file ends at 8192
        [75]: the slot points at byte 471040, and the file ends at 8192
        [76]: the slot points at byte 69632, and the file ends at 8192
        [77]: the slot points at byte 802816, and the file ends at 8192
        [78]: the slot points at byte 716800, and the file ends at 8192
        [96]: the slot points at byte 819200, and the file ends at 8192
        [97]: the slot points at byte 745472, and the file ends at 8192
        [98]: the slot points at byte 98304, and the file ends at 8192
        [99]: the slot points at byte 139264, and the file ends at 8192
        [100]: the slot points at byte 937984, and the file ends at 8192
        [101]: the slot points at byte 1024000, and the file ends at 8192
        [102]: the slot points at byte 339968, and the file ends at 8192
        [103]: the slot points at byte 40960, and the file ends at 8192
        [104]: the slot points at byte 225280, and the file ends at 8192
        [105]: the slot points at byte 675840, and the file ends at 8192
        [106]: the slot points at byte 909312, and the file ends at 8192
        [107]: the slot points at byte 860160, and the file ends at 8192
        [108]: the slot points at byte 278528, and the file ends at 8192
        [109]: the slot points at byte 167936, and the file ends at 8192
        [110]: the slot points at byte 172032, and the file ends at 8192
        [128]: the slot points at byte 393216, and the file ends at 8192
        [129]: the slot points at byte 790528, and the file ends at 8192
        [130]: the slot points at byte 491520, and the file ends at 8192
        [131]: the slot points at byte 614400, and the file ends at 8192
        [132]: the slot points at byte 573440, and the file ends at 8192
        [133]: the slot points at byte 24576, and the file ends at 8192
        [134]: the slot points at byte 684032, and the file ends at 8192
        [135]: the slot points at byte 16384, and the file ends at 8192
        [136]: the slot points at byte 815104, and the file ends at 8192
        [137]: the slot points at byte 155648, and the file ends at 8192
        [138]: the slot points at byte 700416, and the file ends at 8192
        [139]: the slot points at byte 73728, and the file ends at 8192
        [140]: the slot points at byte 434176, and the file ends at 8192
        [141]: the slot points at byte 974848, and the file ends at 8192
        [142]: the slot points at byte 634880, and the file ends at 8192
        [160]: the slot points at byte 1036288, and the file ends at 8192
        [161]: the slot points at byte 159744, and the file ends at 8192
        [162]: the slot points at byte 884736, and the file ends at 8192
        [163]: the slot points at byte 221184, and the file ends at 8192
        [164]: the slot points at byte 651264, and the file ends at 8192
        [165]: the slot points at byte 319488, and the file ends at 8192
        [166]: the slot points at byte 28672, and the file ends at 8192
        [167]: the slot points at byte 1048576, and the file ends at 8192
        [168]: the slot points at byte 286720, and the file ends at 8192
        [169]: the slot points at byte 94208, and the file ends at 8192
        [170]: the slot points at byte 282624, and the file ends at 8192
        [171]: the slot points at byte 655360, and the file ends at 8192
        [172]: the slot points at byte 872448, and the file ends at 8192
        [173]: the slot points at byte 569344, and the file ends at 8192
        [174]: the slot points at byte 950272, and the file ends at 8192
        [192]: the slot points at byte 610304, and the file ends at 8192
        [193]: the slot points at byte 970752, and the file ends at 8192
        [194]: the slot points at byte 409600, and the file ends at 8192
        [195]: the slot points at byte 798720, and the file ends at 8192
        [196]: the slot points at byte 335872, and the file ends at 8192
        [197]: the slot points at byte 598016, and the file ends at 8192
        [198]: the slot points at byte 1040384, and the file ends at 8192
        [199]: the slot points at byte 565248, and the file ends at 8192
        [200]: the slot points at byte 81920, and the file ends at 8192
        [201]: the slot points at byte 323584, and the file ends at 8192
        [202]: the slot points at byte 1003520, and the file ends at 8192
        [203]: the slot points at byte 212992, and the file ends at 8192
        [204]: the slot points at byte 475136, and the file ends at 8192
        [205]: the slot points at byte 864256, and the file ends at 8192
        [206]: the slot points at byte 430080, and the file ends at 8192
        [224]: the slot points at byte 200704, and the file ends at 8192
        [225]: the slot points at byte 557056, and the file ends at 8192
        [226]: the slot points at byte 86016, and the file ends at 8192
        [227]: the slot points at byte 360448, and the file ends at 8192
        [228]: the slot points at byte 372736, and the file ends at 8192
        [229]: the slot points at byte 249856, and the file ends at 8192
        [230]: the slot points at byte 385024, and the file ends at 8192
        [231]: the slot points at byte 843776, and the file ends at 8192
        [232]: the slot points at byte 544768, and the file ends at 8192
        [233]: the slot points at byte 602112, and the file ends at 8192
        [234]: the slot points at byte 503808, and the file ends at 8192
        [235]: the slot points at byte 581632, and the file ends at 8192
        [236]: the slot points at byte 643072, and the file ends at 8192
        [237]: the slot points at byte 704512, and the file ends at 8192
        [238]: the slot points at byte 876544, and the file ends at 8192
        [256]: the slot points at byte 696320, and the file ends at 8192
        [257]: the slot points at byte 839680, and the file ends at 8192
        [258]: the slot points at byte 540672, and the file ends at 8192
        [259]: the slot points at byte 946176, and the file ends at 8192
        [260]: the slot points at byte 831488, and the file ends at 8192
        [261]: the slot points at byte 1028096, and the file ends at 8192
        [262]: the slot points at byte 229376, and the file ends at 8192
        [263]: the slot points at byte 290816, and the file ends at 8192
        [264]: the slot points at byte 983040, and the file ends at 8192
        [265]: the slot points at byte 237568, and the file ends at 8192
        [266]: the slot points at byte 61440, and the file ends at 8192
        [267]: the slot points at byte 827392, and the file ends at 8192
        [268]: the slot points at byte 53248, and the file ends at 8192
        [269]: the slot points at byte 12288, and the file ends at 8192
        [270]: the slot points at byte 45056, and the file ends at 8192
        [288]: the slot points at byte 442368, and the file ends at 8192
        [289]: the slot points at byte 36864, and the file ends at 8192
        [290]: the slot points at byte 962560, and the file ends at 8192
        [291]: the slot points at byte 561152, and the file ends at 8192
        [292]: the slot points at byte 536576, and the file ends at 8192
        [293]: the slot points at byte 77824, and the file ends at 8192
        [294]: the slot points at byte 786432, and the file ends at 8192
        [295]: the slot points at byte 65536, and the file ends at 8192
        [296]: the slot points at byte 679936, and the file ends at 8192
        [297]: the slot points at byte 933888, and the file ends at 8192
        [298]: the slot points at byte 811008, and the file ends at 8192
        [299]: the slot points at byte 417792, and the file ends at 8192
        [300]: the slot points at byte 720896, and the file ends at 8192
        [301]: the slot points at byte 757760, and the file ends at 8192
        [302]: the slot points at byte 638976, and the file ends at 8192
        [320]: the slot points at byte 1015808, and the file ends at 8192
        [321]: the slot points at byte 294912, and the file ends at 8192
        [322]: the slot points at byte 184320, and the file ends at 8192
        [323]: the slot points at byte 208896, and the file ends at 8192
        [324]: the slot points at byte 32768, and the file ends at 8192
        [325]: the slot points at byte 327680, and the file ends at 8192
        [326]: the slot points at byte 299008, and the file ends at 8192
        [327]: the slot points at byte 266240, and the file ends at 8192
        [328]: the slot points at byte 303104, and the file ends at 8192
        [329]: the slot points at byte 380928, and the file ends at 8192
        [330]: the slot points at byte 438272, and the file ends at 8192
        [331]: the slot points at byte 774144, and the file ends at 8192
        [332]: the slot points at byte 892928, and the file ends at 8192
        [333]: the slot points at byte 421888, and the file ends at 8192
        [334]: the slot points at byte 1011712, and the file ends at 8192
        [352]: the slot points at byte 512000, and the file ends at 8192
        [353]: the slot points at byte 622592, and the file ends at 8192
        [354]: the slot points at byte 782336, and the file ends at 8192
        [355]: the slot points at byte 929792, and the file ends at 8192
        [356]: the slot points at byte 192512, and the file ends at 8192
        [357]: the slot points at byte 724992, and the file ends at 8192
        [358]: the slot points at byte 897024, and the file ends at 8192
        [359]: the slot points at byte 516096, and the file ends at 8192
        [360]: the slot points at byte 57344, and the file ends at 8192
        [361]: the slot points at byte 905216, and the file ends at 8192
        [362]: the slot points at byte 1007616, and the file ends at 8192
        [363]: the slot points at byte 196608, and the file ends at 8192
        [364]: the slot points at byte 520192, and the file ends at 8192
        [365]: the slot points at byte 880640, and the file ends at 8192
        [366]: the slot points at byte 454656, and the file ends at 8192
        [384]: the slot points at byte 217088, and the file ends at 8192
        [385]: the slot points at byte 548864, and the file ends at 8192
        [386]: the slot points at byte 917504, and the file ends at 8192
        [387]: the slot points at byte 368640, and the file ends at 8192
        [388]: the slot points at byte 733184, and the file ends at 8192
        [389]: the slot points at byte 262144, and the file ends at 8192
        [390]: the slot points at byte 552960, and the file ends at 8192
        [391]: the slot points at byte 868352, and the file ends at 8192
        [392]: the slot points at byte 450560, and the file ends at 8192
        [393]: the slot points at byte 729088, and the file ends at 8192
        [394]: the slot points at byte 188416, and the file ends at 8192
        [395]: the slot points at byte 532480, and the file ends at 8192
        [396]: the slot points at byte 1019904, and the file ends at 8192
        [397]: the slot points at byte 487424, and the file ends at 8192
        [398]: the slot points at byte 978944, and the file ends at 8192
        [416]: the slot points at byte 593920, and the file ends at 8192
        [417]: the slot points at byte 901120, and the file ends at 8192
        [418]: the slot points at byte 446464, and the file ends at 8192
        [419]: the slot points at byte 741376, and the file ends at 8192
        [420]: the slot points at byte 925696, and the file ends at 8192
        [421]: the slot points at byte 999424, and the file ends at 8192
        [422]: the slot points at byte 954368, and the file ends at 8192
        [423]: the slot points at byte 479232, and the file ends at 8192
        [424]: the slot points at byte 966656, and the file ends at 8192
        [425]: the slot points at byte 270336, and the file ends at 8192
        [426]: the slot points at byte 761856, and the file ends at 8192
        [427]: the slot points at byte 8192, and the file ends at 8192
        [428]: the slot points at byte 258048, and the file ends at 8192
        [429]: the slot points at byte 241664, and the file ends at 8192
        [430]: the slot points at byte 163840, and the file ends at 8192
        [448]: the slot points at byte 245760, and the file ends at 8192
        [449]: the slot points at byte 376832, and the file ends at 8192
        [450]: the slot points at byte 958464, and the file ends at 8192
        [451]: the slot points at byte 274432, and the file ends at 8192
        [452]: the slot points at byte 630784, and the file ends at 8192
        [453]: the slot points at byte 483328, and the file ends at 8192
        [454]: the slot points at byte 589824, and the file ends at 8192
        [455]: the slot points at byte 20480, and the file ends at 8192
        [456]: the slot points at byte 606208, and the file ends at 8192
        [457]: the slot points at byte 626688, and the file ends at 8192
        [458]: the slot points at byte 49152, and the file ends at 8192
        [459]: the slot points at byte 737280, and the file ends at 8192
        [460]: the slot points at byte 708608, and the file ends at 8192
        [461]: the slot points at byte 90112, and the file ends at 8192
        [462]: the slot points at byte 647168, and the file ends at 8192
        0 columns"#]],
    );
}

#[test]
fn a_bad_header_loses_what_it_points_at() {
    check(
        "corrupt/made_badheader_1.21.1.mca",
        expect![[r#"
        [0]: the slot points at byte 68719411200, and the file ends at 1056768
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
            cg_cli::anvil::SlotError::PastEnd { file_bytes: 600_000, .. } => "past the end",
            cg_cli::anvil::SlotError::LengthPastEnd { .. } => "cut",
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
    check("corrupt/natural_twoolie_regiontest.mca", expect![[""]]);
}
