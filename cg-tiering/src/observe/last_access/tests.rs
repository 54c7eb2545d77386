//! Heat: the pinned layout, bounded memory, and what is stored when.

use super::*;
use cg_format::wire::annotate;
use cg_format::{ChunkAt, ChunkPos, Dimension};
use expect_test::expect;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn cube(x: i64) -> CubeAt {
    CubeAt::of(ChunkAt::new(Dimension::new(0), ChunkPos::constant(x * 4, 0, 0)))
}

fn heat(last_access: u64) -> Heat {
    Heat { last_access: GameTick::new(last_access), moved_at: None }
}

#[test]
fn bytes_are_pinned() {
    let moved = Heat { last_access: GameTick::new(72_000), moved_at: Some(GameTick::new(36_000)) };
    for (name, value) in [("moved", moved), ("never_moved", heat(u64::MAX))] {
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        crate::testing::golden(&format!("heat/{name}"), &bytes, &format!("{value:#?}\n"));
        assert_eq!(bytes.len(), Heat::LEN_BYTES);
        assert_eq!(Heat::decode(&bytes), Ok(value));
    }
    let mut bytes = Vec::new();
    moved.encode(&mut bytes);
    expect![[r#"
        heat
          000000  01                                                heat version
          000001  40 19 01 00 00 00 00 00                           last access
          000009  a0 8c 00 00 00 00 00 00                           moved at
    "#]]
    .assert_eq(&annotate(&Heat::trace(&bytes).0, &bytes));
}

#[test]
fn wrong_rows_are_named() {
    let message = |bytes: &[u8]| Heat::decode(bytes).unwrap_err().to_string();
    expect!["heat: heat version is 2, and this release reads up to 1; use a newer release (at byte 0)"]
        .assert_eq(&message(&[2; 17]));
    expect!["heat: moved at needs 8 bytes and 7 are left (at byte 9)"].assert_eq(&message(&[1; 16]));
    expect!["heat: bytes after the heat must be zero or absent, found 1 (at byte 17)"]
        .assert_eq(&message(&[1; 18]));
}

#[test]
fn a_busy_cube_is_stored_twice_a_minute_at_most() {
    let mut known = LastAccess::new(GameTick::new(0));
    let mut stored = Vec::new();
    for tick in 0..=1300 {
        known.touch(cube(1), GameTick::new(tick));
        stored.extend(known.take_dirty(9).iter().map(|(_, row)| row.last_access.get()));
    }
    assert_eq!(stored, [0, 600, 1200]);
    known.mark_all_dirty();
    assert_eq!(known.take_dirty(9), [(cube(1), heat(1300))]);
    known.mark_all_dirty();
    assert_eq!(known.take_dirty(9), []);
}

#[test]
fn an_access_that_is_told_late_does_not_take_time_back() {
    let mut known = LastAccess::new(GameTick::new(0));
    known.touch(cube(1), GameTick::new(70));
    known.touch(cube(1), GameTick::new(50));
    assert_eq!(known.last_access(cube(1)), GameTick::new(70));
}

#[test]
fn what_was_not_stored_after_all_comes_again() {
    let mut known = LastAccess::new(GameTick::new(0));
    known.touch(cube(1), GameTick::new(7));
    known.moved(cube(1), GameTick::new(8));
    let row = Heat { moved_at: Some(GameTick::new(8)), ..heat(7) };
    assert_eq!(known.take_dirty(9), [(cube(1), row)]);
    assert_eq!(known.take_dirty(9), []);
    known.unsaved(cube(1));
    known.unsaved(cube(1));
    assert_eq!(known.take_dirty(9), [(cube(1), row)]);
}

#[test]
fn a_stored_row_fills_in_what_is_not_known() {
    let mut known = LastAccess::new(GameTick::new(100));
    let row = Heat { moved_at: Some(GameTick::new(8)), ..heat(40) };
    known.insert(cube(1), row);
    assert_eq!(known.get(cube(1)), Some(row), "also if it is older than the opening");
    known.touch(cube(2), GameTick::new(150));
    known.insert(cube(2), row);
    assert_eq!(known.last_access(cube(2)), GameTick::new(150));
    assert_eq!(known.take_dirty(9).len(), 1, "what came from the disk need not go there");
    known.forget(cube(1));
    assert_eq!(known.last_access(cube(1)), GameTick::new(100));
}

#[test]
fn memory_is_bounded_and_the_latest_are_kept() {
    let mut known = LastAccess::with_capacity(GameTick::new(0), 100);
    for x in 0..10_000 {
        known.touch(cube(x), GameTick::new(5));
        known.touch(cube(-1), GameTick::new(6));
        assert!(known.len() <= 100);
    }
    assert!((9950..10_000).all(|x| known.get(cube(x)).is_some()));
    assert_eq!(known.get(cube(-1)), Some(heat(6)), "what is in use stays");
    assert!(known.dirty_count() <= 100, "{} wait", known.dirty_count());
    let taken = known.take_dirty(usize::MAX).len() as u64;
    assert_eq!(known.lost() + taken, 10_001, "every cube was lost or handed out, and says which");
}

#[derive(Debug, Clone)]
enum Op {
    Touch(i64, u64),
    Moved(i64),
    Take(usize),
    Fail(usize),
    Forget(i64),
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (0..12_i64, 0..400_u64).prop_map(|(x, ticks)| Op::Touch(x, ticks)),
        1 => (0..12_i64).prop_map(Op::Moved),
        2 => (0..6_usize).prop_map(Op::Take),
        1 => (0..6_usize).prop_map(Op::Fail),
        1 => (0..12_i64).prop_map(Op::Forget),
    ]
}

proptest! {
    /// Compares it with a map: the known cubes, and that stored rows never lag far.
    #[test]
    fn it_is_a_map_with_rows_behind_it(ops in prop::collection::vec(any_op(), 1..200)) {
        let mut known = LastAccess::with_capacity(GameTick::new(3), 24);
        let (mut model, mut rows) = (BTreeMap::new(), BTreeMap::new());
        let mut now = 3;
        for op in ops {
            match op {
                Op::Touch(x, ticks) => {
                    now += ticks;
                    known.touch(cube(x), GameTick::new(now));
                    model.entry(x).or_insert(heat(3)).last_access = GameTick::new(now);
                }
                Op::Moved(x) => {
                    known.moved(cube(x), GameTick::new(now));
                    model.entry(x).or_insert(heat(3)).moved_at = Some(GameTick::new(now));
                }
                Op::Take(count) => rows.extend(known.take_dirty(count)),
                Op::Fail(count) => {
                    known.take_dirty(count).into_iter().for_each(|(cube, _)| known.unsaved(cube));
                }
                Op::Forget(x) => {
                    known.forget(cube(x));
                    model.remove(&x);
                    rows.remove(&cube(x));
                }
            }
            for x in 0..12 {
                prop_assert_eq!(known.get(cube(x)), model.get(&x).copied());
            }
        }
        rows.extend(known.take_dirty(usize::MAX));
        for (x, heat) in &model {
            let row = rows.get(&cube(*x)).expect("everything known was stored");
            prop_assert!(heat.last_access.since(row.last_access) < LastAccess::STORE_EVERY_TICKS);
            prop_assert_eq!(row.moved_at, heat.moved_at);
        }
        known.mark_all_dirty();
        rows.extend(known.take_dirty(usize::MAX));
        prop_assert!(model.iter().all(|(x, heat)| rows.get(&cube(*x)) == Some(heat)));
    }

    #[test]
    fn any_bytes_are_heat_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..20), version: bool) {
        let mut bytes = bytes;
        if let (true, Some(first)) = (version, bytes.first_mut()) {
            *first = 1;
        }
        if let Ok(heat) = Heat::decode(&bytes) {
            let mut again = Vec::new();
            heat.encode(&mut again);
            prop_assert_eq!(again, bytes);
        }
    }
}
