//! Keys: their bytes, their order, and that they decode to their input.

use super::*;
use crate::{BlockPos, RecordId};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use std::format;
use std::string::String;

fn at(dimension: u64, x: i64, y: i64, z: i64) -> ChunkAt {
    ChunkAt::new(Dimension::new(dimension), ChunkPos::new(x, y, z).unwrap())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn leaf(dimension: u64, table: [i64; 3], numbers: &[u32]) -> RecordLeaf {
    let path = numbers.iter().fold(RecordPath::EMPTY, |path, number| path.child(*number).unwrap());
    RecordLeaf { dimension: Dimension::new(dimension), table, path }
}

#[track_caller]
fn check(found: &str, expected: Expect) {
    expected.assert_eq(found);
}

#[test]
fn bytes_are_pinned() {
    check(
        &hex(&chunk(at(0, 0, 0, 0))),
        expect!["0000000000000000e00000000000000000000000000000000000000000000000"],
    );
    check(
        &hex(&chunk(at(1, -1, 2, -3))),
        expect!["000000000000000156db6db6db6db6db6db6db6db6db6db6db6db6db6db6db75"],
    );
    check(
        &hex(&opacity_patch(at(1, -1, 2, -3))),
        expect!["00000000000000013fffffffffffffffffffffffffffffff80000000000000020d"],
    );
    check(
        &hex(&delta(at(0, 0, 0, 1), 258)),
        expect!["0000000000000000e000000000000000000000000000000000000000000000010000000000000102"],
    );
    check(
        &hex(&heat(at(0, 4, 0, 0))),
        expect!["010000000000000000e00000000000000000000000000000000000000000000004"],
    );
    check(
        &hex(&change_mark(Dimension::new(0), at(0, 16, 0, 0).pos.cluster(ClusterTier::L2))),
        expect!["02020000000000000000e00000000000000000000000000000000000000000000004"],
    );
    check(&hex(&quarantine(Space::Entity, &[1, 2], 258)), expect!["030601020000000000000102"]);
    check(&hex(&intent(258)), expect!["040000000000000102"]);
    check(&hex(&change_log(Space::Object, 258, b"a/b")), expect!["060a0000000000000102612f62"]);
    check(&hex(&staged(258, 7)), expect!["04000000000000010200000007"]);
    let id = RecordId::new(uuid::Uuid::from_u128(7));
    check(
        &hex(&record(&leaf(1, [-1, 2, -3], &[5, 258]), id)),
        expect![
            "01000000000000000156db6db6db6db6db6db6db6db6db6db6db6db6db6db6db75000000050000010200000000000000000000000000000007"
        ],
    );
    check(&hex(&record_place(id)), expect!["0200000000000000000000000000000007"]);
}

#[test]
fn every_space_is_told_from_its_key() {
    let chunk_at = at(3, -5, 6, 7);
    let l1 = chunk_at.pos.cluster(ClusterTier::L1);
    for (space, key) in [
        (Space::ChunkL0, chunk(chunk_at).to_vec()),
        (Space::OpacityTile, opacity_tile(chunk_at).to_vec()),
        (Space::OpacityPatch, opacity_patch(chunk_at).to_vec()),
        (Space::Heat, heat(chunk_at).to_vec()),
        (Space::ColdHeat, cold_heat(chunk_at).to_vec()),
        (Space::ChangeMark, change_mark(chunk_at.dimension, l1).to_vec()),
        (Space::Quarantine, quarantine(Space::Entity, &[1], 7)),
        (Space::ChangeLog, change_log(Space::Object, 7, b"a")),
        (Space::Intent, intent(7).to_vec()),
        (Space::Record, record(&leaf(3, [0; 3], &[1]), RecordId::from_bytes([9; 16]))),
        (Space::RecordPlace, record_place(RecordId::from_bytes([9; 16])).to_vec()),
    ] {
        assert_eq!(Space::of_row(space.family(), &key), Some(space));
    }
    assert_eq!(Space::of_row(Family::Index, &[7, 0]), None, "reserved tags are unknown");
    assert_eq!(Space::of_row(Family::Index, &[]), None);
    assert_eq!(Space::of_row(Family::OpacityMap, &[0; 25]), None);
    assert_eq!(Space::of_row(Family::Record, &[3; 17]), None);
    assert_eq!(Space::of_row(Family::Record, &[]), None);
}

#[test]
fn space_bytes_are_their_own_inverse() {
    for space in Space::ALL {
        assert_eq!(Space::from_byte(space.byte()), Some(space));
    }
    assert_eq!(Space::from_byte(0), None);
    assert_eq!(Space::from_byte(20), None);
}

#[test]
fn wrong_keys_are_named() {
    let message = |error: DecodeError| format!("{error}");
    check(
        &message(decode_chunk(&[0; 31]).unwrap_err()),
        expect!["key: Morton code needs 24 bytes and 23 are left (at byte 8)"],
    );
    check(
        &message(decode_chunk(&[chunk(at(0, 0, 0, 0)).as_slice(), &[0]].concat()).unwrap_err()),
        expect!["key: bytes after the key must be zero or absent, found 1 (at byte 32)"],
    );
    check(
        &message(decode_chunk(&[0; 32]).unwrap_err()),
        expect!["key: coordinate is 9223372036854775808, allowed is a position inside the world (at byte 8)"],
    );
    check(
        &message(decode_change_mark(&[2; 34]).unwrap_err()),
        expect![
            "key: coordinate is 11538257567673229344, allowed is a position inside the world (at byte 10)"
        ],
    );
    check(
        &message(decode_change_mark(&[1; 34]).unwrap_err()),
        expect!["key: tag is 1, but the rest of the value implies 2 (at byte 0)"],
    );
    check(
        &message(decode_delta(&[0; 40]).unwrap_err()),
        expect!["key: coordinate is 9223372036854775808, allowed is a position inside the world (at byte 8)"],
    );
    check(
        &message(decode_delta(&delta(at(0, 0, 0, 0), 1)[..39]).unwrap_err()),
        expect!["key: commit sequence needs 8 bytes and 7 are left (at byte 32)"],
    );
    check(
        &message(decode_opacity_patch(&[0; 30]).unwrap_err()),
        expect!["key: chunk y needs 8 bytes and 6 are left (at byte 24)"],
    );
    let mut patch = opacity_patch(at(0, 0, 0, 0));
    patch[32] = 16;
    check(
        &message(decode_opacity_patch(&patch).unwrap_err()),
        expect!["key: place in tile is 16, allowed is 0 to 15 (at byte 32)"],
    );
    check(
        &message(decode_heat(&[1; 32]).unwrap_err()),
        expect!["key: Morton code needs 24 bytes and 23 are left (at byte 9)"],
    );
    check(
        &message(decode_heat(&[2; 33]).unwrap_err()),
        expect!["key: tag is 2, but the rest of the value implies 1 (at byte 0)"],
    );
    check(
        &message(decode_intent(&[4; 10]).unwrap_err()),
        expect!["key: bytes after the key must be zero or absent, found 1 (at byte 9)"],
    );
    check(
        &message(decode_quarantine(&[3, 99, 0]).unwrap_err()),
        expect!["key: space is 99, allowed is 1 to 17 (at byte 1)"],
    );
    check(
        &message(decode_quarantine(&[3, 6, 0, 0, 0, 0, 0, 0, 0]).unwrap_err()),
        expect!["key: commit sequence needs 8 bytes and 7 are left (at byte 2)"],
    );
    check(
        &message(decode_change_log(&[6, 3, 0]).unwrap_err()),
        expect!["key: space is 3, allowed is 2, 6, 10 or 17 (at byte 1)"],
    );
    check(
        &message(decode_change_log(&change_log(Space::Object, 7, b"")).unwrap_err()),
        expect!["key: value needs 1 bytes and 0 are left (at byte 10)"],
    );
    let of_record = record(&leaf(0, [0; 3], &[1, 2]), RecordId::from_bytes([9; 16]));
    check(
        &message(decode_record(&of_record[..56]).unwrap_err()),
        expect!["key: bytes of the way to a leaf is 7, allowed is 4, 8, 12, … 64 (at byte 33)"],
    );
    check(
        &message(decode_record(&of_record[..49]).unwrap_err()),
        expect!["key: bytes of the way to a leaf is 0, allowed is 4, 8, 12, … 64 (at byte 33)"],
    );
    check(
        &message(decode_record(&[of_record.as_slice(), &[0; 60]].concat()).unwrap_err()),
        expect!["key: bytes of the way to a leaf is 68, allowed is 4, 8, 12, … 64 (at byte 33)"],
    );
    check(
        &message(decode_record(&[2; 57]).unwrap_err()),
        expect!["key: tag is 2, but the rest of the value implies 1 (at byte 0)"],
    );
    check(
        &message(decode_record_place(&[2; 16]).unwrap_err()),
        expect!["key: record uuid needs 16 bytes and 15 are left (at byte 1)"],
    );
    check(
        &message(check_object(&[]).unwrap_err()),
        expect!["key: object key length is 0, allowed is 1 to 512 (at byte 0)"],
    );
    check(
        &message(check_object(&[b'k'; 513]).unwrap_err()),
        expect!["key: object key length is 513, allowed is 1 to 512 (at byte 0)"],
    );
}

#[test]
fn an_object_s_key_is_any_bytes_of_1_to_512() {
    assert_eq!([1, 2, 512].map(|len| check_object(&[0xff; 512][..len])), [Ok(()); 3]);
}

#[test]
fn a_way_has_no_more_levels_than_a_key_can_name() {
    let deepest = (0..16).try_fold(RecordPath::EMPTY, RecordPath::child).unwrap();
    assert_eq!(deepest.numbers(), (0..16).collect::<std::vec::Vec<_>>());
    assert_eq!(deepest.child(16), None);
    assert_eq!(
        record_leaf(&RecordLeaf { path: deepest, ..leaf(0, [0; 3], &[]) }).len(),
        record_len_bytes(16) - 16
    );
    assert!(decode_record_leaf(&record_leaf(&leaf(0, [0; 3], &[]))).is_err(), "a leaf lies in a root");
}

#[test]
fn all_copies_of_a_row_lie_in_one_range() {
    let row = b"worldMeta row".as_slice();
    let copies = quarantine_copies(Space::WorldMeta, row);
    for commit in [0, 1, 255, 256, u64::MAX] {
        assert!(copies.contains(&quarantine(Space::WorldMeta, row, commit)), "{commit}");
    }
    assert!(quarantine(Space::WorldMeta, row, 255) < quarantine(Space::WorldMeta, row, 256));
    assert!(!copies.contains(&quarantine(Space::WorldProperty, row, 1)));
    assert!(!copies.contains(&quarantine(Space::WorldMeta, b"worldMeta sow", 1)));
    // The range contains this key, but decoding distinguishes it.
    let longer = quarantine(Space::WorldMeta, b"worldMeta row\0\0", 1);
    assert!(copies.contains(&longer));
    assert_eq!(decode_quarantine(&longer), Ok((Space::WorldMeta, &b"worldMeta row\0\0"[..], 1)));
}

proptest! {
    #[test]
    fn keys_come_back(dimension: u64, x: i64, y: i64, z: i64, seq: u64, id: u128) {
        let at = ChunkAt::new(Dimension::new(dimension), BlockPos::new(x, y, z).chunk());
        prop_assert_eq!(decode_chunk(&chunk(at)), Ok(at));
        prop_assert_eq!(decode_delta(&delta(at, seq)), Ok((at, seq)));
        prop_assert_eq!(decode_opacity_patch(&opacity_patch(at)), Ok(at));
        prop_assert_eq!(decode_opacity_tile(&opacity_tile(at)), Ok((at.dimension, [at.pos.x() >> 2, at.pos.z() >> 2])));
        for tier in [ClusterTier::L1, ClusterTier::L2] {
            let pos = at.pos.cluster(tier);
            prop_assert_eq!(decode_cluster(tier, &cluster(at.dimension, pos)), Ok((at.dimension, pos)));
            prop_assert_eq!(decode_change_mark(&change_mark(at.dimension, pos)), Ok((at.dimension, pos)));
            prop_assert!(chunks_of_cluster(at.dimension, pos).contains(&chunk(at)));
        }
        prop_assert_eq!(decode_heat(&heat(at)), Ok((at.dimension, at.pos.cluster(ClusterTier::L1))));
        prop_assert_eq!(decode_cold_heat(&cold_heat(at)), Ok((at.dimension, at.pos.cluster(ClusterTier::L2))));
        prop_assert_eq!(decode_intent(&intent(seq)), Ok(seq));
        prop_assert_eq!(decode_staged(&staged(seq, x as u32)), Ok((seq, x as u32)));
        let row = chunk(at);
        let logged = change_log(Space::Object, seq, &row);
        prop_assert_eq!(decode_change_log(&logged), Ok((Space::Object, seq, &row[..])));
        let set_aside = quarantine(Space::ChunkL0, &row, seq);
        prop_assert_eq!(decode_quarantine(&set_aside), Ok((Space::ChunkL0, &row[..], seq)));
        let record_id = RecordId::new(uuid::Uuid::from_u128(id));
        let id = EntityId::new(uuid::Uuid::from_u128(id));
        prop_assert_eq!(decode_entity(&entity(id)), Ok(id));
        let leaf = leaf(dimension, [x, y, z], &[seq as u32, (seq >> 32) as u32, 7]);
        prop_assert_eq!(decode_record_leaf(&record_leaf(&leaf)), Ok(leaf));
        prop_assert_eq!(decode_record(&record(&leaf, record_id)), Ok((leaf, record_id)));
        prop_assert_eq!(decode_record_place(&record_place(record_id)), Ok(record_id));
    }

    #[test]
    fn any_bytes_are_a_key_or_an_error(mut bytes in proptest::collection::vec(any::<u8>(), 0..130), tag in 0_u8..7) {
        if let Some(first) = bytes.first_mut() { *first = tag; }
        if let Ok((leaf, id)) = decode_record(&bytes) { prop_assert_eq!(&record(&leaf, id), &bytes); }
        if let Ok(leaf) = decode_record_leaf(&bytes) { prop_assert_eq!(&record_leaf(&leaf), &bytes); }
        if let Ok(id) = decode_record_place(&bytes) { prop_assert_eq!(&record_place(id)[..], &bytes[..]); }
        if let Ok(at) = decode_chunk(&bytes) { prop_assert_eq!(&chunk(at)[..], &bytes[..]); }
        if let Ok((at, seq)) = decode_delta(&bytes) { prop_assert_eq!(&delta(at, seq)[..], &bytes[..]); }
        if let Ok(at) = decode_opacity_patch(&bytes) { prop_assert_eq!(&opacity_patch(at)[..], &bytes[..]); }
        if let Ok((dimension, pos)) = decode_change_mark(&bytes) { prop_assert_eq!(&change_mark(dimension, pos)[..], &bytes[..]); }
        if let Ok((dimension, pos)) = decode_heat(&bytes) {
            let at = ChunkAt { dimension, pos: pos.min_chunk() };
            prop_assert_eq!(&heat(at)[..], &bytes[..]);
        }
        if let Ok(number) = decode_intent(&bytes) { prop_assert_eq!(&intent(number)[..], &bytes[..]); }
        if let Ok((number, part)) = decode_staged(&bytes) { prop_assert_eq!(&staged(number, part)[..], &bytes[..]); }
        if let Ok((space, commit, value)) = decode_change_log(&bytes) { prop_assert_eq!(change_log(space, commit, value), bytes.clone()); }
        if let Ok((space, row, commit)) = decode_quarantine(&bytes) { prop_assert_eq!(quarantine(space, row, commit), bytes); }
    }
}

#[test]
fn the_numbers_of_families_are_pinned() {
    let numbers: std::vec::Vec<_> =
        Family::ALL.iter().map(|family| format!("{} {}", family.number(), family.name())).collect();
    check(
        &numbers.join("\n"),
        expect![[r"
            0 worldMeta
            1 worldProperties
            2 chunkl0
            3 chunkl1
            4 chunkl2
            5 entity
            6 opacityMap
            7 chunkDelta
            8 object
            9 record
            10 snapshot
            11 index"]],
    );
    assert!(Family::ALL.into_iter().all(|family| Family::from_number(family.number()) == Some(family)));
    assert_eq!(Family::from_number(12), None);
}
