//! Entities: the pinned layout, refused input, and the laws.

use super::*;
use crate::BlockPos;
use crate::testing::{annotated, golden};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use std::format;
use std::string::ToString;
use std::vec;

/// The offset of the count of [`cow`]'s components.
const COW_COUNT_AT: usize = 17 + 32 + 44;

fn cow() -> Entity {
    let position = EntityPos::new(Dimension::new(1), BlockPos::new(-1, 64, 20), [0.5, 0.0, 0.25]).unwrap();
    let owner = Owner::Chunk(ChunkAt::new(Dimension::new(1), ChunkPos::new(-1, 4, 1).unwrap()));
    let mut cow = Entity::new(EntityTypeId::new(7), owner, position);
    cow.set_component(ComponentId::variable(3), b"moo".to_vec()).unwrap();
    cow.set_component(ComponentId::fixed(2), vec![20, 0]).unwrap();
    cow
}

/// A detached entity at the most distant position.
fn sleeper() -> Entity {
    let block = BlockPos::new(i64::MIN, i64::MAX, 0);
    let position = EntityPos::new(Dimension::new(0), block, [0.0, 1.0_f32.next_down(), 0.0]).unwrap();
    let owner = Owner::Detached(Reason::new("offline player").unwrap());
    Entity::new(EntityTypeId::new(0), owner, position)
}

fn encoded(entity: &Entity) -> Vec<u8> {
    let mut out = Vec::new();
    entity.encode(&mut out);
    out
}

#[track_caller]
fn check_error(bytes: &[u8], expected: Expect) {
    expected.assert_eq(&Entity::decode(bytes).unwrap_err().to_string());
}

/// The cow with some bytes replaced.
#[track_caller]
fn check_changed(at: usize, bytes: &[u8], expected: Expect) {
    let mut cow = encoded(&cow());
    cow[at..at + bytes.len()].copy_from_slice(bytes);
    check_error(&cow, expected);
}

#[test]
fn bytes_are_pinned() {
    for (name, entity) in [("cow", cow()), ("sleeper", sleeper())] {
        let bytes = encoded(&entity);
        golden(&format!("entity/{name}"), &bytes, &format!("{entity:#?}\n"));
        let (fields, read) = Entity::trace(&bytes);
        assert_eq!(read, Ok(entity));
        insta::assert_snapshot!(name, annotated(&bytes, &fields));
    }
}

#[test]
fn components_are_kept_in_order() {
    let mut cow = cow();
    assert_eq!(cow.component(ComponentId::variable(3)), Some(&b"moo"[..]));
    assert_eq!(cow.component(ComponentId::fixed(3)), None);
    let ids: Vec<_> = cow.components().map(|(id, _)| id).collect();
    assert_eq!(ids, [ComponentId::fixed(2), ComponentId::variable(3)]);
    assert_eq!(cow.set_component(ComponentId::fixed(2), vec![5, 0]), Ok(Some(vec![20, 0])));
    assert_eq!(cow.remove_component(ComponentId::fixed(2)), Some(vec![5, 0]));
    assert_eq!(cow.remove_component(ComponentId::fixed(2)), None);
    assert_eq!(cow.components().len(), 1);
}

#[test]
fn wrong_headers_and_owners_are_named() {
    check_error(&[], expect!["entity: format version needs 8 bytes and 0 are left (at byte 0)"]);
    check_changed(0, &[0], expect!["entity: format version is 0, allowed is 1 and up (at byte 0)"]);
    check_changed(
        0,
        &[2],
        expect![
            "entity: format version is 2, and this release reads up to 1; use a newer release (at byte 0)"
        ],
    );
    check_changed(
        16,
        &[0],
        expect!["entity: owner kind is 0, allowed is 1 for a chunk or 2 for none (at byte 16)"],
    );
    check_changed(
        16,
        &[3],
        expect!["entity: owner kind is 3, allowed is 1 for a chunk or 2 for none (at byte 16)"],
    );
    check_changed(
        25,
        &(ChunkPos::MIN - 1).to_le_bytes(),
        expect![
            "entity: owner x is -576460752303423489, the world runs from -576460752303423488 to 576460752303423487 (at byte 25)"
        ],
    );
    check_changed(
        41,
        &i64::MAX.to_le_bytes(),
        expect![
            "entity: owner z is 9223372036854775807, the world runs from -576460752303423488 to 576460752303423487 (at byte 41)"
        ],
    );

    let mut sleeper = encoded(&sleeper());
    sleeper[19 + 3] = 0xff;
    check_error(&sleeper, expect!["entity: reason is not UTF-8 from byte 0xff on (at byte 22)"]);
    sleeper[17] = 0xff;
    check_error(&sleeper, expect!["entity: reason needs 255 bytes and 62 are left (at byte 19)"]);
    sleeper[18] = 0xff;
    check_error(&sleeper, expect!["entity: reason needs 65535 bytes and 62 are left (at byte 19)"]);
}

#[test]
fn wrong_fractions_are_named() {
    check_changed(
        81,
        &1.0_f32.to_le_bytes(),
        expect!["entity: fraction x is 1.0, allowed is 0.0 to below 1.0 (at byte 81)"],
    );
    check_changed(
        85,
        &(-0.0_f32).to_le_bytes(),
        expect!["entity: fraction y is -0.0, allowed is 0.0 to below 1.0 (at byte 85)"],
    );
    check_changed(
        89,
        &f32::NAN.to_le_bytes(),
        expect!["entity: fraction z is NaN, allowed is 0.0 to below 1.0 (at byte 89)"],
    );
    check_changed(
        89,
        &(-1.5_f32).to_le_bytes(),
        expect!["entity: fraction z is -1.5, allowed is 0.0 to below 1.0 (at byte 89)"],
    );
    check_changed(
        89,
        &f32::INFINITY.to_le_bytes(),
        expect!["entity: fraction z is inf, allowed is 0.0 to below 1.0 (at byte 89)"],
    );
}

#[test]
fn wrong_components_are_named() {
    check_changed(
        COW_COUNT_AT,
        &u32::MAX.to_le_bytes(),
        expect!["entity: 4294967295 components of 12 bytes exceed the 29 bytes left (at byte 93)"],
    );
    check_changed(
        COW_COUNT_AT,
        &[1],
        expect![
            "component section: bytes after the components must be zero or absent, found 15 (at byte 111)"
        ],
    );
    check_changed(
        COW_COUNT_AT + 4 + 8,
        &[0xff],
        expect!["component section: component bytes needs 255 bytes and 17 are left (at byte 109)"],
    );
    // The second component, made equal to the first and then smaller.
    let second = COW_COUNT_AT + 4 + 12 + 2;
    check_changed(
        second,
        &2_u64.to_le_bytes(),
        expect!["component section: component id 2 appears twice (at byte 111)"],
    );
    check_changed(
        second,
        &1_u64.to_le_bytes(),
        expect![
            "component section: component id is 1, allowed is an id above the one before it (at byte 111)"
        ],
    );
    let mut longer = encoded(&cow());
    longer.push(0);
    check_error(
        &longer,
        expect![
            "component section: bytes after the components must be zero or absent, found 1 (at byte 126)"
        ],
    );
}

#[test]
fn what_cannot_be_stored_cannot_be_built() {
    assert!(Reason::new("x".repeat(65_535)).is_ok());
    let error = Reason::new("x".repeat(65_536)).unwrap_err();
    expect!["the reason of a detached entity has 65536 bytes, at most 65535 can be stored"]
        .assert_eq(&error.to_string());
    // 4 GiB are too much for a test, so only the check is tested.
    assert!(check_len("a component", u64::from(u32::MAX), u32::MAX.into()).is_ok());
    let error = check_len("a component", 1 << 32, u32::MAX.into()).unwrap_err();
    expect!["a component has 4294967296 bytes, at most 4294967295 can be stored"]
        .assert_eq(&error.to_string());
}

#[test]
fn fractions_are_checked_and_have_one_zero() {
    let new = |fraction| EntityPos::new(Dimension::new(0), BlockPos::default(), fraction);
    let message = |fraction: [f32; 3]| new(fraction).unwrap_err().to_string();
    expect!["the fraction of y is 1.0, allowed is 0.0 to below 1.0"].assert_eq(&message([0.0, 1.0, 2.0]));
    expect!["the fraction of x is NaN, allowed is 0.0 to below 1.0"].assert_eq(&message([
        f32::NAN,
        0.0,
        0.0,
    ]));
    expect!["the fraction of z is -1.1754944e-38, allowed is 0.0 to below 1.0"].assert_eq(&message([
        0.0,
        0.0,
        -f32::MIN_POSITIVE,
    ]));
    let zero = new([-0.0; 3]).unwrap();
    assert_eq!(zero.fraction().map(f32::to_bits), [0; 3]);
}

#[test]
fn points_become_blocks_and_fractions() {
    let block_and_fraction = |x: f64| {
        let pos = EntityPos::from_f64(Dimension::new(0), [x, 0.0, 0.0]).unwrap();
        (pos.block().x, pos.fraction()[0])
    };
    assert_eq!(block_and_fraction(1.25), (1, 0.25));
    assert_eq!(block_and_fraction(-1.25), (-2, 0.75));
    assert_eq!(block_and_fraction(-3.0), (-3, 0.0));
    assert_eq!(block_and_fraction(-0.0), (0, 0.0));
    assert_eq!(block_and_fraction(-1e-30), (0, 0.0), "rounds up into the next block");
    assert_eq!(block_and_fraction(1.0_f64.next_down()), (1, 0.0));
    assert_eq!(block_and_fraction(-9_223_372_036_854_775_808.0), (i64::MIN, 0.0));
    let message = |point| EntityPos::from_f64(Dimension::new(0), point).unwrap_err().to_string();
    expect!["y is 9.223372036854776e18, allowed is a number from -2^63 to below 2^63"].assert_eq(&message([
        0.0,
        9_223_372_036_854_775_808.0,
        0.0,
    ]));
    expect!["z is NaN, allowed is a number from -2^63 to below 2^63"].assert_eq(&message([
        0.0,
        0.0,
        f64::NAN,
    ]));
    expect!["x is -inf, allowed is a number from -2^63 to below 2^63"].assert_eq(&message([
        f64::NEG_INFINITY,
        0.0,
        0.0,
    ]));
}

fn any_position() -> impl Strategy<Value = EntityPos> {
    let fraction = || prop_oneof![Just(0.0_f32), Just(1.0_f32.next_down()), 0.0_f32..1.0];
    let fractions = [fraction(), fraction(), fraction()];
    (any::<u64>(), any::<[i64; 3]>(), fractions).prop_map(|(dimension, [x, y, z], fraction)| {
        EntityPos::new(Dimension::new(dimension), BlockPos::new(x, y, z), fraction).unwrap()
    })
}

fn any_owner() -> impl Strategy<Value = Owner> {
    prop_oneof![
        (any::<u64>(), any::<[i64; 3]>()).prop_map(|(dimension, [x, y, z])| {
            Owner::Chunk(ChunkAt::new(Dimension::new(dimension), BlockPos::new(x, y, z).chunk()))
        }),
        ".{0,20}".prop_map(|text| Owner::Detached(Reason::new(text).unwrap())),
    ]
}

fn any_entity() -> impl Strategy<Value = Entity> {
    let id = prop_oneof![0_u64..8, any::<u64>()];
    let components = proptest::collection::btree_map(id, proptest::collection::vec(any::<u8>(), 0..9), 0..5);
    (any::<u64>(), any_owner(), any_position(), components).prop_map(|(kind, owner, position, components)| {
        let mut entity = Entity::new(EntityTypeId::new(kind), owner, position);
        for (id, bytes) in components {
            entity.set_component(ComponentId::new(id), bytes).unwrap();
        }
        entity
    })
}

proptest! {
    #[test]
    fn entities_come_back(entity in any_entity()) {
        let bytes = encoded(&entity);
        prop_assert_eq!(Entity::decode(&bytes), Ok(entity));
        for len in 0..bytes.len() {
            prop_assert!(Entity::decode(&bytes[..len]).is_err(), "cut to {} bytes", len);
        }
    }

    #[test]
    fn a_changed_byte_is_an_error_or_another_entity(entity in any_entity(), change in 1_u8..) {
        let bytes = encoded(&entity);
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= change;
            if let Ok(other) = Entity::decode(&changed) {
                prop_assert_eq!(encoded(&other), changed, "byte {}", place);
                prop_assert_ne!(&other, &entity);
            }
        }
    }

    #[test]
    fn any_bytes_are_an_entity_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(entity) = Entity::decode(&bytes) {
            prop_assert_eq!(encoded(&entity), bytes);
        }
    }

    #[test]
    fn a_point_stays_within_rounding(x in -3e7_f64..3e7, y in -2048.0_f64..2048.0, z: f64) {
        prop_assume!(z.abs() < 9e18);
        let back = EntityPos::from_f64(Dimension::new(0), [x, y, z]).unwrap().to_f64();
        for (point, back) in [x, y, z].into_iter().zip(back) {
            prop_assert!((point - back).abs() <= f64::from(f32::EPSILON), "{} became {}", point, back);
        }
    }
}
