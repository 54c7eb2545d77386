//! Keys: what they look like, how they sort, and that they come back.

use super::*;
use crate::BlockPos;
use expect_test::{Expect, expect};
use proptest::prelude::*;
use std::string::String;
use std::{format, vec};

fn at(dimension: u64, x: i64, y: i64, z: i64) -> ChunkAt {
    ChunkAt::new(Dimension::new(dimension), ChunkPos::new(x, y, z).unwrap())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
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
    check(&hex(&quarantine(Space::Entity, &[1, 2])), expect!["03060102"]);
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
        (Space::ChangeMark, change_mark(chunk_at.dimension, l1).to_vec()),
        (Space::Quarantine, quarantine(Space::Entity, &[1])),
        (Space::Intent, vec![4, 0]),
    ] {
        assert_eq!(Space::of_row(space.family(), &key), Some(space));
    }
    assert_eq!(Space::of_row(Family::Index, &[5, 0]), None, "reserved tags are unknown");
    assert_eq!(Space::of_row(Family::Index, &[]), None);
    assert_eq!(Space::of_row(Family::OpacityMap, &[0; 25]), None);
}

#[test]
fn space_bytes_are_their_own_inverse() {
    for space in Space::ALL {
        assert_eq!(Space::from_byte(space.byte()), Some(space));
    }
    assert_eq!(Space::from_byte(0), None);
    assert_eq!(Space::from_byte(17), None);
}

/// The lengths that a space's keys can have, and `None` where there is no longest.
fn lengths(space: Space) -> (usize, Option<usize>) {
    let exactly = |len| (len, Some(len));
    match space {
        Space::ChunkL0 | Space::ClusterL1 | Space::ClusterL2 => exactly(CHUNK_LEN_BYTES),
        Space::Entity => exactly(EntityId::LEN_BYTES),
        Space::OpacityTile => exactly(OPACITY_TILE_LEN_BYTES),
        Space::OpacityPatch => exactly(OPACITY_PATCH_LEN_BYTES),
        Space::ChunkDelta => exactly(DELTA_LEN_BYTES),
        Space::Heat => exactly(HEAT_LEN_BYTES),
        Space::ChangeMark => exactly(CHANGE_MARK_LEN_BYTES),
        Space::Quarantine => (quarantine(Space::WorldMeta, &[0]).len(), None),
        Space::Intent => exactly(1 + 8),
        Space::Object => (1, Some(OBJECT_MAX_LEN_BYTES)),
        Space::WorldMeta | Space::WorldProperty | Space::Record | Space::Snapshot => (1, None),
    }
}

#[test]
fn the_table_of_keys_lists_every_space() {
    let rows = crate::testing::table(include_str!("../../../docs/format/keys.md"), "keys");
    assert_eq!(rows.len(), Space::ALL.len());
    for (space, row) in Space::ALL.into_iter().zip(rows) {
        let length = match lengths(space) {
            (shortest, Some(longest)) if shortest == longest => format!("{shortest}"),
            (shortest, Some(longest)) => format!("{shortest}…{longest}"),
            (shortest, None) => format!("{shortest}…"),
        };
        let found = [row[0], row[1], row[2], row[4]].map(String::from);
        let expected = [
            format!("{}", space.byte()),
            format!("`{space:?}`"),
            format!("`{}`", space.family().name()),
            length,
        ];
        assert_eq!(found, expected);
        if let Some(tag) = space.index_tag() {
            assert!(row[3].starts_with(&format!("{tag} ‖ ")), "{space:?}: tag {tag} in {}", row[3]);
        }
    }
}

#[test]
fn wrong_keys_are_named() {
    let message = |error: DecodeError| format!("{error}");
    check(
        &message(decode_chunk(&[0; 31]).unwrap_err()),
        expect!["key: Morton code needs 24 bytes and 23 are left (at byte 8)"],
    );
    check(
        &message(decode_chunk(&[0; 33]).unwrap_err()),
        expect!["key: bytes behind the key must be zero or absent, found 1 (at byte 32)"],
    );
    check(
        &message(decode_chunk(&[0; 32]).unwrap_err()),
        expect!["key: coordinate is 9223372036854775808, allowed is a position inside the world (at byte 8)"],
    );
    check(
        &message(decode_change_mark(&[2; 34]).unwrap_err()),
        expect![
            "key: coordinate is 11538257567673229344, allowed is a position inside the world (at byte 8)"
        ],
    );
    check(
        &message(decode_change_mark(&[1; 34]).unwrap_err()),
        expect!["key: tag is 1, but the rest of the value implies 2 (at byte 0)"],
    );
    check(
        &message(decode_quarantine(&[3, 99, 0]).unwrap_err()),
        expect!["key: space is 99, allowed is 1 to 16 (at byte 1)"],
    );
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
        let id = EntityId::new(uuid::Uuid::from_u128(id));
        prop_assert_eq!(decode_entity(&entity(id)), Ok(id));
    }

    #[test]
    fn any_bytes_are_a_key_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..48)) {
        if let Ok(at) = decode_chunk(&bytes) { prop_assert_eq!(&chunk(at)[..], &bytes[..]); }
        if let Ok((at, seq)) = decode_delta(&bytes) { prop_assert_eq!(&delta(at, seq)[..], &bytes[..]); }
        if let Ok(at) = decode_opacity_patch(&bytes) { prop_assert_eq!(&opacity_patch(at)[..], &bytes[..]); }
        if let Ok((dimension, pos)) = decode_change_mark(&bytes) { prop_assert_eq!(&change_mark(dimension, pos)[..], &bytes[..]); }
        if let Ok((space, key)) = decode_quarantine(&bytes) { prop_assert_eq!(quarantine(space, key), bytes); }
    }
}
