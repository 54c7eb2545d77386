//! The observers together: the behaviour that a store relies on.

use super::*;
use crate::{Budget, Candidate, MovePlan};
use cg_format::{BlockPos, ChunkPos, EntityId};

const HOME: ChunkAt = ChunkAt::new(Dimension::new(0), ChunkPos::constant(8, 4, -7));

fn at_home() -> PlayerAt {
    let block = HOME.pos.min_block();
    PlayerAt { id: EntityId::from_bytes([1; 16]), dimension: HOME.dimension, block }
}

fn far_away() -> PlayerAt {
    PlayerAt { block: BlockPos::new(9000, 0, 0), ..at_home() }
}

fn tick(now: u64) -> GameTick {
    GameTick::new(now)
}

/// The step that is due for home's chunks in a tier.
#[track_caller]
fn planned(seen: &Observers, from: Tier, now: GameTick) -> Step {
    let cube = CubeAt::of(HOME);
    let decision = seen.due(cube, from, now).expect("something is due");
    let mut plan = MovePlan::new();
    plan.offer(Candidate {
        cube,
        from,
        decision,
        chunks: 1,
        bytes: 1,
        last_access: tick(0),
        nearest_player_blocks: None,
    });
    let mut budget = Budget::UNLIMITED;
    plan.next_step(&mut budget).expect("it was offered")
}

#[test]
fn a_demotion_is_not_right_any_more_when_somebody_came_or_asked() {
    let mut seen = Observers::new(TierPolicy::default(), tick(0));
    seen.touch(HOME, tick(10));
    for (now, to) in [(6010, Tier::L1), (42_000, Tier::L2)] {
        seen.check_players(&[PlayerAt { block: BlockPos::new(400, 0, 0), ..at_home() }], tick(now));
        let step = planned(&seen, Tier::L0, tick(now));
        assert_eq!(step.to, to);
        assert!(seen.confirms(&step, tick(now)));
        let mut visited = seen.clone();
        visited.check_players(&[at_home()], tick(now + 1));
        assert!(!visited.confirms(&step, tick(now + 1)));
        let mut asked = seen.clone();
        asked.touch(HOME, tick(now + 1));
        assert!(!asked.confirms(&step, tick(now + 1)));
        let mut pinned = seen.clone();
        pinned.pin(HOME.dimension, ChunkBox::new(HOME.pos, HOME.pos));
        assert!(!pinned.confirms(&step, tick(now)));
    }
}

#[test]
fn a_promotion_is_not_right_any_more_when_everybody_left() {
    let mut seen = Observers::new(TierPolicy::default(), tick(0));
    seen.check_players(&[at_home()], tick(1));
    seen.touch(HOME, tick(2));
    assert_eq!(seen.next_settled(), Some(tick(2401)));
    assert_eq!(seen.take_settled(tick(2401), 10), [CubeAt::of(HOME)]);
    let step = planned(&seen, Tier::L2, tick(2401));
    assert!(seen.confirms(&step, tick(2402)));
    seen.check_players(&[far_away()], tick(2403));
    assert!(!seen.confirms(&step, tick(2403)));
}

#[test]
fn idle_time_counts_from_when_the_last_left() {
    let mut seen = Observers::new(TierPolicy::default(), tick(0));
    seen.check_players(&[at_home()], tick(1));
    seen.touch(HOME, tick(2));
    seen.check_players(&[far_away()], tick(5000));
    assert_eq!(seen.observe(CubeAt::of(HOME), Tier::L0).last_access, tick(5000));
    assert_eq!(seen.heat().len(), 1, "of cubes that nobody asked for nothing is remembered");
    let id = seen.hold(HOME.dimension, &ChunkBox::new(HOME.pos, HOME.pos), tick(5500)).unwrap();
    assert!(seen.release(id, tick(6000)) && !seen.release(id, tick(6001)));
    assert_eq!(seen.observe(CubeAt::of(HOME), Tier::L0).last_access, tick(6000));
}

#[test]
fn what_was_asked_for_shortly_before_somebody_came_counts_as_asked_for() {
    let arrive = |now| {
        let mut seen = Observers::new(TierPolicy::default(), tick(0));
        seen.touch(HOME, tick(10));
        seen.check_players(&[at_home()], tick(now));
        seen.observe(CubeAt::of(HOME), Tier::L2).stay.map(|stay| stay.accessed)
    };
    assert_eq!((arrive(6009), arrive(6010)), (Some(true), Some(false)));
}

#[test]
fn who_is_on_his_way_is_near_but_is_not_there() {
    let mut seen = Observers::new(TierPolicy::default(), tick(0));
    let on_his_way = |x| PlayerAt { block: BlockPos::new(x, 64, -100), ..at_home() };
    seen.check_players(&[on_his_way(-400)], tick(0));
    seen.check_players(&[on_his_way(-370)], tick(20));
    let observation = seen.observe(CubeAt::of(HOME), Tier::L0);
    assert_eq!((observation.nearest_player_blocks, observation.stay), (Some(198), None));
}
