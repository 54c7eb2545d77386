//! Cold clusters in halves of cubes, and in whole cubes, as earlier drafts wrote them.

use super::super::directory::{Directory, GroupEntry};
use super::super::encoded_group::GroupChunks;
use super::*;

const TIER: ClusterTier = ClusterTier::L2;

/// A cold row as earlier drafts wrote it, with a directory of version 1 or 2: its groups are whole cubes.
pub(super) fn in_cubes(version: Version, codec: Codec, all: &Chunks) -> Vec<u8> {
    let (mut groups, mut slots, mut body) = (Vec::<GroupEntry>::new(), Vec::new(), Vec::new());
    for cube in 0..64 {
        let of_cube = all.iter().filter(|(slot, _)| slot.cube() == cube);
        let chunks: GroupChunks<'_> =
            of_cube.map(|(slot, (info, value))| (slot.in_cube(), (*info, value.into()))).collect();
        let group = EncodedGroup::encode(TIER, codec, &chunks).unwrap();
        let is_equal = |earlier: &&GroupEntry| {
            let offset_bytes = earlier.offset_bytes;
            earlier.is_shared_with(&GroupEntry { offset_bytes, ..group.entry })
        };
        let earlier = groups.iter().find(is_equal).filter(|_| version.shares_groups()).copied();
        slots.extend(&group.slots);
        groups.push(match earlier {
            Some(earlier) => earlier,
            None if chunks.is_empty() => group.entry,
            None => GroupEntry { offset_bytes: body.len() as u32, ..group.entry },
        });
        if earlier.is_none() {
            body.extend_from_slice(&group.stored);
        }
    }
    let draft = frame::Draft::cluster(codec, |out| {
        let start = out.len();
        Directory::encode((version, TIER), codec, &groups, &slots, out);
        let len = out.len() - start;
        out.extend(body);
        len
    });
    draft.seal(Space::ClusterL2, KEY, 77)
}

/// The chunks of a cube.
fn whole_cube(cube: u8) -> Chunks {
    let slots = (0..64).map(|place| Slot::in_cube_of(TIER, cube, place).unwrap());
    slots.map(|slot| (slot, chunk(slot))).collect()
}

/// Rows of version 1 and 2.
fn earlier_drafts(all: &Chunks) -> impl Iterator<Item = (Codec, Vec<u8>)> {
    let versions = [Version::Plain, Version::Compact];
    Codec::ALL
        .into_iter()
        .flat_map(move |codec| versions.map(|version| (codec, in_cubes(version, codec, all))))
}

#[test]
fn a_half_is_the_seed_form_of_its_chunks_at_places_0_to_31() {
    let all: Chunks = whole_cube(9).into_iter().filter(|(slot, _)| slot.in_cube() >= 32).collect();
    let row = build(TIER, Codec::None, &all);
    let places =
        all.iter().map(|(at, (_, value))| (slot(ClusterTier::L1, u16::from(at.in_cube()) - 32), &value[..]));
    assert!(row.ends_with(&ClusterView::encode(ClusterTier::L1, places).unwrap()));
    let cluster = StoredCluster::open(TIER, KEY, &row).unwrap();
    assert_eq!(cluster.groups().collect::<Vec<_>>(), [19]);
    let seed = ClusterView::encode(TIER, all.iter().map(|(slot, (_, value))| (*slot, &value[..]))).unwrap();
    assert_eq!(cluster.to_seed_bytes(&mut Limits::default()), Ok(seed));
}

#[test]
fn a_chunk_costs_the_decompression_of_its_half_alone() {
    let row = build(TIER, Codec::Zstd, &whole_cube(9));
    let cluster = StoredCluster::open(TIER, KEY, &row).unwrap();
    let position = crate::ClusterPos::new(TIER, -1, 5, 2).unwrap();
    for (at, (_, value)) in whole_cube(9) {
        let group = cluster.group_of(at);
        let x = at.chunk(position).unwrap().x().rem_euclid(4);
        assert_eq!(i64::from(group), 18 + x / 2, "{at:?}");
        let mut limits = Limits::default();
        let before = limits.left_bytes();
        let read = cluster.group(group, &mut limits).unwrap().unwrap();
        assert_eq!(read.chunk(at).as_deref(), Some(&value[..]));
        assert_eq!(read.chunks().count(), 32);
        let values_len_bytes: usize = read.chunks().map(|(_, value)| value.len()).sum();
        assert_eq!(read.decompressed_bytes(), header_len_bytes(ClusterTier::L1) + values_len_bytes);
        assert_eq!(before - limits.left_bytes(), read.decompressed_bytes() as u64);
    }
    let other = cluster.group(19, &mut Limits::default()).unwrap().unwrap();
    assert_eq!(other.chunk(Slot::in_cube_of(TIER, 9, 31).unwrap()), None, "in the other half");
    assert_eq!(other.chunk(Slot::in_cube_of(TIER, 10, 0).unwrap()), None, "in the next cube");
}

/// Where the entries of a row start.
fn entries_at(row: &[u8]) -> usize {
    if row[24] == 5 { 44 } else { 36 }
}

/// The entries of a row as stored, and one after another.
fn entries(row: &[u8]) -> (&[u8], Vec<u8>) {
    let len = u32::from_le_bytes(row[32..36].try_into().unwrap()) as usize;
    (&row[entries_at(row)..][..len], trace_entries(TIER, KEY, row).expect("entries in planes").0)
}

/// Entries of 128 groups and of chunks, one after another, in planes: which are one byte, and the bytes.
fn in_planes(rows: &[u8], shorten: bool) -> (u64, Vec<u8>) {
    let (groups, chunks) = rows.split_at(128 * 24);
    let (mut equal, mut out) = (0, Vec::new());
    for (plane, (rows, len, byte)) in
        (0..24).map(|byte| (groups, 24, byte)).chain((0..12).map(|byte| (chunks, 12, byte))).enumerate()
    {
        let bytes: Vec<u8> = rows.chunks(len).map(|row| row[byte]).collect();
        let is_short = shorten && bytes.iter().all(|byte| *byte == bytes[0]);
        out.extend(&bytes[..if is_short { 1 } else { bytes.len() }]);
        equal |= u64::from(is_short) << plane;
    }
    (equal, out)
}

#[test]
fn entries_are_in_byte_planes() {
    let all = chunks(TIER, [0, 1, 5, 2000, 4094, 4095]);
    let row = build(TIER, Codec::None, &all);
    let (stored, rows) = entries(&row);
    assert_eq!(rows.len(), 128 * 24 + 6 * 12);
    let (equal, expected) = in_planes(&rows, true);
    assert_eq!(stored, expected);
    assert_eq!(row[36..44], u64::to_le_bytes(equal));
    assert!(stored.len() < rows.len() * 3 / 4 && equal.count_ones() == 20, "{equal:x}, {}", stored.len());
    let rows = &rows[128 * 24..];
    let in_order: Vec<_> = StoredCluster::open(TIER, KEY, &row).unwrap().slots().collect();
    for (index, (slot, info)) in in_order.into_iter().enumerate() {
        let expected = [&info.version.to_le_bytes()[..], &info.schema_generation.to_le_bytes()].concat();
        assert_eq!(rows[index * 12..][..12], expected);
        assert_eq!(info, chunk(slot).0);
    }
    for codec in [Codec::Lz4, Codec::Zstd] {
        let row = build(TIER, codec, &all);
        let (stored, rows) = entries(&row);
        let raw_len = in_planes(&rows, true).1.len();
        assert!(stored.len() < raw_len, "compressed: {} of {raw_len}", stored.len());
        let fields = trace_entries(TIER, KEY, &row).unwrap().1;
        assert_eq!(fields.iter().filter(|span| span.field == "chunk version").count(), 6);
        assert_eq!(fields.iter().map(|span| span.len_bytes).sum::<u64>(), rows.len() as u64);
    }
}

#[test]
fn planes_of_equal_bytes_may_be_stored_in_full() {
    let all = chunks(TIER, [0, 1, 5, 2000, 4094, 4095]);
    for codec in Codec::ALL {
        let row = build(TIER, codec, &all);
        let (equal, planes) = in_planes(&entries(&row).1, false);
        assert_eq!((equal, planes.len()), (0, 128 * 24 + 6 * 12));
        let full = with_entries(&row, equal, &planes);
        assert_eq!(read_whole(TIER, &full), all);
        let base = StoredCluster::open(TIER, KEY, &full).unwrap();
        assert!(seal(&ClusterBuilder::over(&base)).unwrap().unwrap() == row);
        // Directories of version 4 have all planes in full, and do not say so.
        let mut payload = full[LEN_BYTES..].to_vec();
        payload[0] = 4;
        payload.drain(12..20);
        let draft = frame::Draft::cluster(codec, |out| {
            out.extend(&payload);
            12 + planes.len()
        });
        let earlier = draft.seal(Space::ClusterL2, KEY, 7);
        assert_eq!(read_whole(TIER, &earlier), all);
        let base = StoredCluster::open(TIER, KEY, &earlier).unwrap();
        assert!(seal(&ClusterBuilder::over(&base)).unwrap().unwrap() == row);
    }
}

#[test]
fn equal_planes_are_among_the_36() {
    let row = build(TIER, Codec::None, &chunks(TIER, [0, 4095]));
    let with = |equal: u64| answer(&with_entries(&row, equal, entries(&row).0));
    let equal = u64::from_le_bytes(row[36..44].try_into().unwrap());
    assert_eq!(with(equal), "2 chunks");
    expect!["cluster directory: equal planes is 137372683510, allowed is below 68719476736, as there are 36 planes (at byte 36)"].assert_eq(&with(equal | 1 << 36));
    // A plane less, or more, than the entries have bytes for.
    expect![
        "cluster directory: uncompressed block of 1562 bytes does not decompress to 1563 bytes (at byte 44)"
    ]
    .assert_eq(&with(equal ^ 1 << 35));
    expect!["cluster directory: entries length is 1562, allowed is 1 to what the entries take decompressed (at byte 32)"].assert_eq(&with(equal | 1 << 12));
}

#[test]
fn a_row_of_cubes_is_read_and_gets_halves_when_it_is_written_again() {
    let all: Chunks = whole_cube(0).into_iter().chain(chunks(TIER, [2000, 4094, 4095])).collect();
    for (codec, old) in earlier_drafts(&all) {
        assert_eq!(read_whole(TIER, &old), all);
        let base = StoredCluster::open(TIER, KEY, &old).unwrap();
        assert_eq!(base.groups().last(), Some(63));
        assert!(Slot::all(TIER).all(|slot| base.group_of(slot) == slot.cube()));
        assert!(seal(&ClusterBuilder::over(&base)).unwrap().unwrap() == build(TIER, codec, &all));
    }
}

#[test]
fn a_merge_over_cubes_decompresses_each_once() {
    let all: Chunks = whole_cube(0).into_iter().chain(whole_cube(63)).collect();
    let row = in_cubes(Version::Compact, Codec::Zstd, &all);
    let base = StoredCluster::open(TIER, KEY, &row).unwrap();
    let raw_len_bytes = [0, 63].map(|group| u64::from(base.entry(group).unwrap().raw_len_bytes));
    let mut limits = Limits::new(raw_len_bytes.iter().sum());
    ClusterBuilder::over(&base).finish(&mut limits).unwrap().unwrap();
    assert_eq!(limits.left_bytes(), 0);
}

#[test]
fn damage_of_a_cube_stops_a_merge_that_keeps_any_of_its_chunks() {
    let all = chunks(TIER, [0, 4094, 4095]);
    let mut row = in_cubes(Version::Compact, Codec::Zstd, &all);
    *row.last_mut().unwrap() ^= 1;
    let base = StoredCluster::open(TIER, KEY, &row).unwrap();
    let mut merge = ClusterBuilder::over(&base);
    let error = seal(merge.remove(slot(TIER, 4095))).unwrap_err();
    let is_checksum = |error: &DecodeError| matches!(error.problem, Problem::Checksum { .. });
    assert!(matches!(&error, AssembleError::Damaged(error) if is_checksum(error)), "{error}");
    let replaced = seal(merge.remove(slot(TIER, 4094))).unwrap().unwrap();
    assert_eq!(read_whole(TIER, &replaced), chunks(TIER, [0]));
}

#[test]
fn a_warm_directory_has_no_halves_and_version_1_shares_no_groups() {
    let row = build(ClusterTier::L1, Codec::None, &chunks(ClusterTier::L1, [0, 63]));
    let mut payload = row[LEN_BYTES..].to_vec();
    payload[0] = 4;
    let draft = frame::Draft::cluster(Codec::None, |out| {
        out.extend(&payload);
        8 + 4 * 24 + 2 * 12
    });
    let error = StoredCluster::open(ClusterTier::L1, KEY, &draft.seal(Space::ClusterL1, KEY, 7)).unwrap_err();
    expect!["cluster directory: directory version is 4, allowed is 1 to 3 in L1 (at byte 24)"]
        .assert_eq(&error.to_string());

    let groups_of = |row: &[u8]| {
        let spans = trace(TIER, KEY, row).0;
        spans.iter().filter(|span| span.section == Section::ClusterGroup).count()
    };
    let held = alike([0, 20], 9);
    assert_eq!(groups_of(&in_cubes(Version::Plain, Codec::Lz4, &held)), 2);
    assert_eq!(groups_of(&in_cubes(Version::Compact, Codec::Lz4, &held)), 1);
}

/// A row with the groups of another and these entries, which are not compressed.
fn with_entries(row: &[u8], equal_planes: u64, entries: &[u8]) -> Vec<u8> {
    let groups = row.len() - entries_at(row) - u32::from_le_bytes(row[32..36].try_into().unwrap()) as usize;
    let codec = Codec::from_byte(row[2]).unwrap();
    let draft = frame::Draft::cluster(codec, |out| {
        out.extend(&row[24..32]);
        out.extend(u32::to_le_bytes(entries.len() as u32));
        if row[24] == 5 {
            out.extend(equal_planes.to_le_bytes());
        }
        out.extend(entries);
        let len = out.len() - LEN_BYTES;
        out.extend(&row[row.len() - groups..]);
        len
    });
    draft.seal(Space::ClusterL2, KEY, 7)
}

fn answer(row: &[u8]) -> String {
    let answer = read(TIER, row).map(|(chunks, errors)| {
        errors.first().map_or_else(|| format!("{} chunks", chunks.len()), ToString::to_string)
    });
    // The length of the groups depends on the encoder.
    let groups = row.len() - entries_at(row) - u32::from_le_bytes(row[32..36].try_into().unwrap()) as usize;
    answer.unwrap_or_else(|error| error.to_string()).replace(&format!("implies {groups} "), "implies END ")
}

/// Changes the entries of both versions that may compress them. The entries are one after another in the first, and
/// in planes in the second.
#[track_caller]
fn check_entries(change: impl Fn(&mut Vec<u8>), expect: Expect) {
    let held = alike(0..3, 1);
    // The third cube is group 2 in one and group 4 in the other: the change is at its entry.
    for (row, entry, group_count) in [
        (in_cubes(Version::Compact, Codec::Zstd, &held), 2 * 24, 64),
        (build(TIER, Codec::Zstd, &held), 4 * 24, 128),
    ] {
        let (_, mut rows) = entries(&row);
        let mut changed = rows[entry..entry + 24].to_vec();
        change(&mut changed);
        rows[entry..entry + 24].copy_from_slice(&changed);
        let (mut equal, mut stored) = (0, rows);
        if group_count == 128 {
            (equal, stored) = in_planes(&stored, true);
        }
        let answer = answer(&with_entries(&row, equal, &stored));
        // Byte 0 is that of the entry.
        let at = |offset: usize| format!("(at byte {})", entries_at(&row) + entry + offset);
        let answer =
            (0..24).fold(answer, |text, offset| text.replace(&at(offset), &format!("(at entry + {offset})")));
        expect.assert_eq(&answer);
    }
}

#[test]
fn every_field_of_entries_is_checked_even_under_a_right_checksum() {
    let set = |at: usize, bytes: &'static [u8]| {
        move |entry: &mut Vec<u8>| entry[at..at + bytes.len()].copy_from_slice(bytes)
    };
    check_entries(|_| (), expect!["9 chunks"]);
    // The group shares the first one's bytes: it must name all of them.
    check_entries(
        set(8, &[1]),
        expect!["cluster directory: group offset is 1, but the rest of the value implies END (at entry + 8)"],
    );
    check_entries(
        set(12, &[1, 0, 0, 0]),
        expect!["cluster directory: group offset is 0, but the rest of the value implies END (at entry + 8)"],
    );
    check_entries(
        set(20, &[1, 2, 3, 4]),
        expect!["cluster directory: group offset is 0, but the rest of the value implies END (at entry + 8)"],
    );
    check_entries(
        set(0, &[15]),
        expect!["cluster directory: group offset is 0, but the rest of the value implies END (at entry + 8)"],
    );
}

#[test]
fn presence_names_places_of_a_half() {
    let row = build(TIER, Codec::None, &chunks(TIER, [0, 4095]));
    let with = |group: usize, byte: usize, value: u8| {
        let (equal, mut planes) = in_planes(&entries(&row).1, false);
        planes[byte * 128 + group] = value;
        answer(&with_entries(&row, equal, &planes))
    };
    expect!["cluster directory: presence is 4294967297, allowed is below 4294967296, as a group has 32 places (at byte 44)"].assert_eq(&with(0, 4, 1));
    // The last group has chunk 4095 at place 31.
    expect![
        "cluster group: presence is 2147483648, but the rest of the value implies 1073741824 (at byte 3669)"
    ]
    .assert_eq(&with(127, 3, 0x40));
    expect!["cluster directory: present count is 2, but the rest of the value implies 3 (at byte 28)"]
        .assert_eq(&with(127, 3, 0xc0));
}

#[test]
fn entries_have_the_length_that_their_counts_say() {
    for (version, row) in [
        (2, in_cubes(Version::Compact, Codec::Zstd, &alike(0..3, 1))),
        (5, build(TIER, Codec::Zstd, &alike(0..3, 1))),
    ] {
        assert_eq!(row[24], version);
        let open = |change: &dyn Fn(&mut [u8])| {
            let mut payload = row[LEN_BYTES..].to_vec();
            change(&mut payload);
            let len = payload.len();
            let draft = frame::Draft::cluster(Codec::Zstd, |out| {
                out.extend(&payload);
                (entries_at(&row) - 24 + u32::from_le_bytes(payload[8..12].try_into().unwrap()) as usize)
                    .min(len)
            });
            read(TIER, &draft.seal(Space::ClusterL2, KEY, 7)).unwrap_err().to_string()
        };
        expect!["cluster directory: entries length is 0, allowed is 1 to what the entries take decompressed (at byte 32)"].assert_eq(&open(&|payload| payload[8..12].fill(0)));
        expect!["cluster directory: entries length is 5000, allowed is 1 to what the entries take decompressed (at byte 32)"].assert_eq(&open(&|payload| payload[8..12].copy_from_slice(&5000_u32.to_le_bytes())));
        let block = u32::from_le_bytes(row[32..36].try_into().unwrap());
        let (_, rows) = entries(&row);
        let (equal, planes) = if version == 5 { in_planes(&rows, true) } else { (0, rows) };
        let raw = planes.len();
        let expected = |block| {
            format!(
                "cluster directory: Zstandard block of {block} bytes does not decompress to {raw} bytes (at byte {})",
                entries_at(&row)
            )
        };
        assert_eq!(open(&|payload| payload[entries_at(&row) - 20] ^= 1), expected(block));
        // Planes, or rows, that are cut short.
        let cut = open(&|payload| payload[8..12].copy_from_slice(&(block - 1).to_le_bytes()));
        assert_eq!(cut, expected(block - 1));
        assert_eq!(answer(&with_entries(&row, equal, &planes[..raw - 1])), expected(raw as u32 - 1));
    }
    let row = build(TIER, Codec::None, &chunks(TIER, [0, 4095]));
    let (equal, planes) = in_planes(&entries(&row).1, true);
    expect![
        "cluster directory: uncompressed block of 1561 bytes does not decompress to 1562 bytes (at byte 44)"
    ]
    .assert_eq(&answer(&with_entries(&row, equal, &planes[..planes.len() - 1])));
    let whole = with_entries(&row, equal, &planes);
    expect!["frame: directory needs 1582 bytes and 476 are left (at byte 24)"]
        .assert_eq(&StoredCluster::open(TIER, KEY, &whole[..500]).unwrap_err().to_string());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_merge_over_cubes_is_what_building_anew_gives(
        old in some_chunks(TIER, 3), new in some_chunks(TIER, 9), compact: bool,
        gone: Vec<prop::sample::Index>, codec in any_codec(), new_codec in any_codec(),
    ) {
        let row = in_cubes(if compact { Version::Compact } else { Version::Plain }, codec, &old);
        prop_assert_eq!(read_whole(TIER, &row), old.clone());
        let base = StoredCluster::open(TIER, KEY, &row).unwrap();
        let (builder, expected) = merge_over(&base, &old, &new, &gone, new_codec);
        prop_assert!(seal(&builder).unwrap().unwrap() == build(TIER, new_codec, &expected));
    }
}
