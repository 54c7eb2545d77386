//! The stored bytes: pinned as annotated hex, and every field with invalid values.

use super::*;
use crate::wire::Span;
use core::fmt::Write;

/// One line per field: offset, length, name and bytes; long fields are shortened.
pub(super) fn annotated(bytes: &[u8], spans: &[Span]) -> String {
    let mut out = String::new();
    let mut section = None;
    for span in spans {
        if section.replace(span.section) != Some(span.section) {
            writeln!(out, "-- {}", span.section).unwrap();
        }
        let field = &bytes[span.offset_bytes as usize..][..span.len_bytes as usize];
        let hex: Vec<_> = field.iter().take(24).map(|byte| format!("{byte:02x}")).collect();
        let more = if field.len() > 24 { " ..." } else { "" };
        let (at, len, name) = (span.offset_bytes, span.len_bytes, span.field);
        writeln!(out, "{at:5} {len:4}  {name:24} {}{more}", hex.join(" ")).unwrap();
    }
    out
}

/// Each byte belongs to exactly one field.
pub(super) fn explained(spans: &[Span], len_bytes: usize) {
    let mut end = 0;
    for span in spans {
        assert_eq!(span.offset_bytes, end, "{span:?}");
        end += span.len_bytes;
    }
    assert_eq!(end, len_bytes as u64);
}

#[test]
fn a_small_row_is_pinned() {
    let row = build(ClusterTier::L1, Codec::None, &chunks(ClusterTier::L1, [1, 6, 62]));
    let (spans, answer) = trace(ClusterTier::L1, KEY, &row);
    assert_eq!(answer, Ok(()));
    explained(&spans, row.len());
    insta::assert_snapshot!(annotated(&row, &spans));
}

#[test]
fn a_full_row_is_pinned() {
    let row = build(ClusterTier::L1, Codec::Lz4, &chunks(ClusterTier::L1, 0..64));
    let (spans, answer) = trace(ClusterTier::L1, KEY, &row);
    assert_eq!(answer, Ok(()));
    explained(&spans, row.len());
    insta::assert_snapshot!(annotated(&row, &spans));
}

#[test]
fn the_seed_form_is_pinned() {
    let all = chunks(ClusterTier::L1, [1, 6, 62]);
    let values = all.iter().map(|(slot, (_, value))| (*slot, &value[..]));
    let seed = ClusterView::encode(ClusterTier::L1, values).unwrap();
    let (spans, answer) = trace_seed(&seed);
    assert_eq!(answer, Ok(()));
    explained(&spans, seed.len());
    insta::assert_snapshot!(annotated(&seed, &spans));
}

#[test]
fn the_headers_have_the_lengths_of_the_design() {
    assert_eq!([ClusterTier::L1, ClusterTier::L2].map(header_len_bytes), [521, 32_777]);
}

#[track_caller]
fn check_seed(change: impl FnOnce(&mut Vec<u8>), expect: Expect) {
    let all = chunks(ClusterTier::L1, [1, 6, 62]);
    let values = all.iter().map(|(slot, (_, value))| (*slot, &value[..]));
    let mut seed = ClusterView::encode(ClusterTier::L1, values).unwrap();
    change(&mut seed);
    let answer = ClusterView::new(&seed);
    expect.assert_eq(&answer.map_or_else(|error| error.to_string(), |_| "read".to_string()));
}

fn set<const N: usize>(at: usize, value: [u8; N]) -> impl FnOnce(&mut Vec<u8>) {
    move |bytes| bytes[at..at + N].copy_from_slice(&value)
}

fn offset_of(slot: usize, value: u64) -> impl FnOnce(&mut Vec<u8>) {
    set(9 + 8 * slot, value.to_le_bytes())
}

#[test]
fn every_field_of_the_seed_header_is_checked() {
    check_seed(|_| (), expect!["read"]);
    check_seed(set(0, [0]), expect!["cluster header: format version is 0, allowed is 1 and up (at byte 0)"]);
    check_seed(
        set(0, [2]),
        expect![
            "cluster header: format version is 2, and this release reads up to 1; use a newer release (at byte 0)"
        ],
    );
    check_seed(set(8, [0]), expect!["cluster header: scale level is 0, allowed is 1 or 2 (at byte 8)"]);
    check_seed(
        set(8, [2]),
        expect!["cluster header: 4096 chunk offsets of 8 bytes exceed the 567 bytes left (at byte 9)"],
    );
    check_seed(
        offset_of(0, 520),
        expect!["cluster header: chunk offset is 520, but the rest of the value implies 521 (at byte 9)"],
    );
    check_seed(
        offset_of(1, 522),
        expect!["cluster header: chunk offset is 522, but the rest of the value implies 521 (at byte 17)"],
    );
    check_seed(offset_of(2, 521), expect!["cluster header: chunk offset 521 appears twice (at byte 25)"]);
    check_seed(
        offset_of(6, 520),
        expect![
            "cluster header: chunk offset is 520, allowed is above the offset of the chunk before it (at byte 57)"
        ],
    );
    check_seed(
        offset_of(63, u64::MAX),
        expect![
            "cluster header: chunk offset is 18446744073709551615, allowed is inside the cluster's bytes (at byte 513)"
        ],
    );
    check_seed(
        |seed| seed.truncate(seed.len() - 31),
        expect!["cluster header: chunk offset is 551, allowed is inside the cluster's bytes (at byte 505)"],
    );
    check_seed(
        |seed| seed.truncate(520),
        expect!["cluster header: 64 chunk offsets of 8 bytes exceed the 511 bytes left (at byte 9)"],
    );
    check_seed(
        |seed| seed[9..521].fill(0),
        expect!["cluster header: chunk offsets is 0, allowed is at least one present chunk (at byte 9)"],
    );
    check_seed(
        |seed| seed.truncate(7),
        expect!["cluster header: format version needs 8 bytes and 7 are left (at byte 0)"],
    );
}

/// Changes a directory, corrects the checksums, and reads the row and its first group.
#[track_caller]
fn check_directory(codec: Codec, change: impl FnOnce(&mut Vec<u8>), expect: Expect) {
    let row = build(ClusterTier::L1, codec, &chunks(ClusterTier::L1, [1, 6, 62]));
    let mut payload = row[LEN_BYTES..].to_vec();
    change(&mut payload);
    let draft = frame::Draft::cluster(codec, |out| {
        out.extend(&payload);
        let present = u32::from_le_bytes(payload[4..8].try_into().unwrap()) as usize;
        (8 + 4 * 24 + 12 * present).min(payload.len())
    });
    let row = draft.seal(Space::ClusterL1, KEY, 7);
    let answer = read(ClusterTier::L1, &row).map(|(chunks, errors)| {
        errors.first().map_or_else(|| format!("{} chunks", chunks.len()), ToString::to_string)
    });
    expect.assert_eq(&answer.unwrap_or_else(|error| error.to_string()));
}

#[test]
fn every_field_of_the_directory_is_checked_even_under_a_right_checksum() {
    check_directory(Codec::None, |_| (), expect!["3 chunks"]);
    check_directory(
        Codec::None,
        set(0, [0]),
        expect!["cluster directory: directory version is 0, allowed is 1 and up (at byte 24)"],
    );
    check_directory(
        Codec::None,
        set(0, [6]),
        expect![
            "cluster directory: directory version is 6, and this release reads up to 5; use a newer release (at byte 24)"
        ],
    );
    check_directory(
        Codec::None,
        set(0, [4]),
        expect!["cluster directory: directory version is 4, allowed is 1 to 3 in L1 (at byte 24)"],
    );
    check_directory(
        Codec::None,
        set(1, [3]),
        expect!["cluster directory: scale level is 3, allowed is 1 or 2 (at byte 25)"],
    );
    check_directory(
        Codec::None,
        set(1, [2]),
        expect!["cluster directory: directory version is 3, allowed is 1, 2, 4 or 5 in L2 (at byte 24)"],
    );
    check_directory(
        Codec::None,
        set(2, [1]),
        expect!["cluster directory: reserved must be zero or absent, found 1 (at byte 26)"],
    );
    check_directory(
        Codec::None,
        set(4, [0]),
        expect!["cluster directory: present count is 0, allowed is 1 to 64 (at byte 28)"],
    );
    check_directory(
        Codec::None,
        set(4, [65]),
        expect!["cluster directory: present count is 65, allowed is 1 to 64 (at byte 28)"],
    );
    check_directory(
        Codec::None,
        set(4, [2]),
        expect!["cluster directory: present count is 2, but the rest of the value implies 3 (at byte 28)"],
    );
    check_directory(
        Codec::None,
        set(8, [0x40]),
        expect!["cluster directory: present count is 3, but the rest of the value implies 2 (at byte 28)"],
    );
    check_directory(
        Codec::None,
        set(8, [0; 8]),
        expect!["cluster directory: stored length must be zero or absent, found 551 (at byte 44)"],
    );
    check_directory(
        Codec::None,
        set(16, [1]),
        expect!["cluster directory: group offset is 1, but the rest of the value implies 0 (at byte 40)"],
    );
    check_directory(
        Codec::None,
        set(20, [0; 4]),
        expect![
            "cluster directory: stored length is 0, allowed is the raw length, as the frame names no codec (at byte 44)"
        ],
    );
    check_directory(
        Codec::None,
        set(24, [0; 4]),
        expect![
            "cluster directory: raw length is 0, allowed is at least the header and a byte for each chunk (at byte 48)"
        ],
    );
    check_directory(
        Codec::None,
        set(28, [0; 4]),
        expect![
            "cluster group: checksum is 0x00000000, the bytes give 0x76cbbc10: damaged, or stored under a wrong key (at byte 164)"
        ],
    );
    check_directory(
        Codec::None,
        |payload| payload.push(0),
        expect!["cluster group: bytes after the groups must be zero or absent, found 1 (at byte 1261)"],
    );
    check_directory(
        Codec::Lz4,
        set(26, [1]),
        expect!["cluster group: LZ4 block of 56 bytes does not decompress to 66087 bytes (at byte 164)"],
    );
}

#[test]
fn presence_names_places_of_the_group() {
    check_directory(
        Codec::None,
        set(8 + 2, [1]),
        expect![
            "cluster directory: presence is 65602, allowed is below 65536, as a group has 16 places (at byte 32)"
        ],
    );
    // The last group has chunk 62 at place 14.
    check_directory(
        Codec::None,
        set(8 + 3 * 24 + 1, [0x80]),
        expect!["cluster group: presence is 16384, but the rest of the value implies 32768 (at byte 715)"],
    );
}

#[test]
fn groups_that_reach_past_4_gib_are_no_overflow() {
    let tier = ClusterTier::L2;
    let first = directory::GroupEntry {
        presence: 1,
        offset_bytes: 0,
        stored_len_bytes: u32::MAX,
        raw_len_bytes: u32::MAX,
        checksum: 0,
    };
    let second = directory::GroupEntry { offset_bytes: u32::MAX, ..first };
    let mut groups = [directory::GroupEntry::default(); 128];
    groups[3] = first;
    let infos = [SlotInfo { version: 1, schema_generation: 1 }; 2];
    let open = |groups: &[_], infos: &[_]| {
        let draft = frame::Draft::cluster(Codec::None, |out| {
            let start = out.len();
            directory::Directory::encode((Version::written(tier), tier), Codec::None, groups, infos, out);
            out.len() - start
        });
        let row = draft.seal(Space::ClusterL2, KEY, 1);
        read(tier, &row).map_or_else(|error| error, |(_, errors)| errors[0]).to_string()
    };
    expect!["cluster group: group needs 4294967295 bytes and 0 are left (at byte 1223)"]
        .assert_eq(&open(&groups, &infos[..1]));
    groups[5] = second;
    expect!["cluster directory: stored length is 4294967295, allowed is less than 4 GiB for all groups (at byte 176)"].assert_eq(&open(&groups, &infos));
}

#[test]
fn a_group_must_be_what_its_entry_says() {
    let tier = ClusterTier::L2;
    let row = build(tier, Codec::None, &chunks(tier, [0, 1]));
    let error_of = |row: &[u8]| read(tier, row).unwrap().1[0].to_string();
    let fewer = replace_group(&row, 0, |raw| {
        let mut raw = raw.to_vec();
        raw[9 + 8..9 + 16].fill(0);
        raw
    });
    expect!["cluster group: presence is 1, but the rest of the value implies 3 (at byte 1225)"]
        .assert_eq(&error_of(&fewer));
    let version = replace_group(&row, 0, |raw| {
        let mut raw = raw.to_vec();
        raw[0] = 9;
        raw
    });
    expect![
        "cluster header: format version is 9, and this release reads up to 1; use a newer release (at byte 0)"
    ]
    .assert_eq(&error_of(&version));
    let compressed = build(tier, Codec::Lz4, &chunks(tier, [0, 1]));
    let shorter = replace_group(&compressed, 0, |_| vec![7; 20]);
    expect!["cluster group: LZ4 block of 20 bytes does not decompress to 539 bytes (at byte 111)"]
        .assert_eq(&error_of(&shorter));
}

#[test]
fn another_kind_of_row_is_no_cluster() {
    let row = frame::Draft::tombstone(0).seal(Space::ClusterL1, KEY, 1);
    let error = StoredCluster::open(ClusterTier::L1, KEY, &row).unwrap_err();
    expect!["frame: kind is 3, allowed is 2, a cluster (at byte 1)"].assert_eq(&error.to_string());
    let frame = frame::FrameView::open(Space::ClusterL1, KEY, &row).unwrap();
    assert_eq!(StoredCluster::new(ClusterTier::L1, &frame), Err(error));
}
