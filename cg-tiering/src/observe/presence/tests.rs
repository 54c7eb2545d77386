//! Presence: the incremental counts compared with a recount, stays, and the ends of the world.

use super::*;
use cg_format::ChunkPos;
use proptest::prelude::*;
use std::collections::BTreeSet;

const NEAR: u64 = 128;

fn player(id: u8, x: i64, y: i64, z: i64) -> PlayerAt {
    PlayerAt {
        id: EntityId::from_bytes([id; 16]),
        dimension: Dimension::new(0),
        block: BlockPos::new(x, y, z),
    }
}

fn cube(x: i64, y: i64, z: i64) -> CubeAt {
    CubeAt::within(Dimension::new(0), [x, y, z])
}

#[test]
fn a_stay_begins_when_the_first_comes_and_ends_when_the_last_leaves() {
    let mut presence = Presence::default();
    let mut left = Vec::new();
    let here = cube(0, 0, 0);
    let mut check = |presence: &mut Presence, players: &[PlayerAt], tick| {
        presence.check(players, 0, GameTick::new(tick), |_| false, |cube| left.push((tick, cube)));
        presence.stay(here).map(|stay| (stay.since.get(), stay.loaded))
    };
    assert_eq!(check(&mut presence, &[player(1, 5, 5, 5)], 10), Some((10, false)));
    assert_eq!(check(&mut presence, &[player(1, 5, 5, 5), player(2, 6, 6, 6)], 20), Some((10, false)));
    assert_eq!(check(&mut presence, &[player(2, 6, 6, 6)], 30), Some((10, false)));
    let yard = ChunkBox::around(ChunkPos::constant(0, 0, 0), 1).unwrap();
    let hold = presence.hold(Dimension::new(0), &yard, GameTick::new(35)).unwrap();
    assert_eq!(presence.len(), 8, "the yard reaches into eight cubes");
    assert_eq!(check(&mut presence, &[], 40), Some((10, true)));
    assert!(presence.release(hold, |cube| assert!(cube.coordinates().iter().all(|c| *c <= 0))));
    assert!(!presence.release(hold, |_| unreachable!()));
    assert!(presence.is_empty());
    assert_eq!(check(&mut presence, &[player(1, -1, 5, 5)], 60), None);
    assert_eq!(check(&mut presence, &[], 70), None);
    assert_eq!(left, [(70, cube(-1, 0, 0))], "the others were held or in use when one left");
}

#[test]
fn settled_cubes_come_once_in_a_stay_oldest_first() {
    let mut presence = Presence::default();
    let at = |presence: &mut Presence, x, tick| {
        presence.check(&[player(1, x, 0, 0)], 0, GameTick::new(tick), |_| true, |_| ());
    };
    at(&mut presence, 0, 0);
    at(&mut presence, 64, 50);
    at(&mut presence, 0, 60);
    assert_eq!(presence.take_settled(GameTick::new(159), 100, 9), [], "it was left and entered again");
    assert_eq!(presence.take_settled(GameTick::new(160), 100, 9), [cube(0, 0, 0)]);
    assert_eq!(presence.take_settled(GameTick::new(999), 100, 9), []);
    presence.again(cube(0, 0, 0));
    presence.again(cube(1, 0, 0));
    assert_eq!(presence.take_settled(GameTick::new(999), 100, 9), [cube(0, 0, 0)]);
}

#[test]
fn what_nobody_asks_for_does_not_settle() {
    let mut presence = Presence::default();
    let asked = cube(0, 0, 0);
    presence.access(asked);
    presence.check(&[player(1, 0, 0, 0)], NEAR, GameTick::new(0), |cube| cube == cube_at_side(), |_| ());
    assert_eq!(presence.next_settled(100), Some(GameTick::new(100)));
    assert_eq!(presence.take_settled(GameTick::new(100), 100, 999), [cube_at_side()]);
    assert_eq!(presence.next_settled(100), None);
    presence.access(asked);
    presence.access(asked);
    assert_eq!(presence.stay(asked).map(|stay| stay.accessed), Some(true));
    assert_eq!(presence.take_settled(GameTick::new(500), 100, 999), [asked]);
    presence.access(asked);
    assert_eq!(presence.take_settled(GameTick::new(900), 100, 999), [], "once in a stay");
    let yard = ChunkBox::around(ChunkPos::constant(5, 5, 5), 0).unwrap();
    presence.hold(Dimension::new(0), &yard, GameTick::new(900)).unwrap();
    assert_eq!(
        presence.take_settled(GameTick::new(900), 100, 999),
        [cube(1, 1, 1)],
        "what is held is asked for"
    );
    presence.check(&[], NEAR, GameTick::new(1), |_| true, |_| ());
    assert_eq!(presence.len(), 1);
}

fn cube_at_side() -> CubeAt {
    cube(1, -1, 2)
}

#[test]
fn only_as_many_are_taken_as_are_asked_for() {
    let mut presence = Presence::default();
    presence.check(&[player(1, 0, 0, 0)], NEAR, GameTick::new(0), |_| true, |_| ());
    let mut taken = BTreeSet::new();
    for expected in [100, 25, 0] {
        let part = presence.take_settled(GameTick::new(1), 0, 100);
        assert_eq!(part.len(), expected);
        taken.extend(part);
    }
    assert_eq!(taken.len(), 125);
}

#[test]
fn at_the_ends_of_the_world_surroundings_are_cut_off() {
    for end in [i64::MIN, i64::MAX] {
        let mut presence = Presence::default();
        presence.check(&[player(1, end, end, end)], NEAR, GameTick::new(0), |_| true, |_| ());
        assert_eq!(presence.len(), 27, "two cubes beyond the last, on one side");
    }
}

#[test]
fn a_continent_cannot_be_held() {
    let mut presence = Presence::default();
    let place = ChunkBox::new(ChunkPos::constant(0, 0, 0), ChunkPos::constant(127, 127, 131));
    let error = presence.hold(Dimension::new(0), &place, GameTick::new(0)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a box over 33792 cubes of 4x4x4 chunks cannot be held as loaded, 32768 can; pin it instead"
    );
    let everything = presence.hold(Dimension::new(0), &ChunkBox::EVERYTHING, GameTick::new(0)).unwrap_err();
    assert_eq!(everything, HoldError { cubes: u64::MAX, max_cubes: 32_768 });
    assert!(presence.is_empty());
}

/// The cubes of all players of a check and all loaded boxes, counted from scratch.
fn recount(players: &[PlayerAt], holds: &[ChunkBox]) -> BTreeSet<CubeAt> {
    let mut cubes = BTreeSet::new();
    for player in players {
        cubes.extend(Window::around(player.dimension, player.block, NEAR).cubes());
    }
    for place in holds {
        cubes.extend(place.iter().map(|pos| CubeAt::of(ChunkAt::new(Dimension::new(0), pos))));
    }
    cubes
}

proptest! {
    #[test]
    fn counting_changes_is_counting_anew(
        checks in prop::collection::vec(
            (prop::collection::vec((0..4_u8, prop::array::uniform3(-400..400_i64)), 0..5), any::<bool>()), 1..12,
        ),
        place in (prop::array::uniform3(-20..20_i64), prop::array::uniform3(-20..20_i64)),
    ) {
        let mut presence = Presence::default();
        let corner = |[x, y, z]: [i64; 3]| ChunkPos::constant(x, y, z);
        let place = ChunkBox::new(corner(place.0), corner(place.1));
        let (mut hold, mut here, mut now) = (None, BTreeSet::new(), 0);
        for (players, toggle) in checks {
            now += 10;
            let mut left = BTreeSet::new();
            if toggle {
                hold = match hold.take() {
                    Some(id) => {
                        presence.release(id, |cube| { left.insert(cube); });
                        None
                    }
                    None => presence.hold(Dimension::new(0), &place, GameTick::new(now)).ok(),
                };
            }
            let mut last = BTreeMap::new();
            for (id, [x, y, z]) in players {
                last.insert(id, player(id, x, y, z));
            }
            let players: Vec<_> = last.into_values().collect();
            presence.check(&players, NEAR, GameTick::new(now), |_| false, |cube| { left.insert(cube); });
            let holds = hold.map(|_| place);
            let expected = recount(&players, holds.as_slice());
            prop_assert_eq!(presence.len(), expected.len());
            prop_assert!(expected.iter().all(|cube| presence.stay(*cube).is_some()));
            prop_assert!(here.difference(&expected).all(|cube| left.contains(cube)));
            for cube in expected.intersection(&here).filter(|cube| !left.contains(cube)) {
                prop_assert!(presence.stay(*cube).unwrap().since < GameTick::new(now));
            }
            here = expected;
        }
    }
}
