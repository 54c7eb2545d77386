//! Simulations: the reports of small traces pinned, and what must hold in every one.

use std::collections::BTreeSet;

use cg_format::{BlockPos, ChunkAt, ChunkBox, ChunkPos, Dimension, EntityId};
use cg_tiering::simulate::{Comparison, Report, Simulation, StoreModel, simulate};
use cg_tiering::synthetic::{Scenario, Synthetic};
use cg_tiering::trace::{Event, TraceReader, TraceWriter};
use cg_tiering::{Budget, GameTick, PlayerAt, TierPolicy};
use expect_test::{Expect, expect};
use proptest::prelude::*;

const MINUTE: u64 = 60 * GameTick::PER_SECOND;

/// A scenario that is small enough for a test.
fn small(scenario: Scenario) -> Synthetic {
    let (players, minutes) = match scenario {
        Scenario::Explorers => (2, 6),
        Scenario::Town | Scenario::Spread => (3, 6),
        Scenario::Mine => (2, 15),
        Scenario::Admin => (1, 12),
        Scenario::Fliers => (3, 1),
    };
    Synthetic { players, minutes, view_chunks: 3, ..Synthetic::new(scenario, 11) }
}

fn run(scenario: Scenario) -> Report {
    simulate(small(scenario).events(), TierPolicy::default(), StoreModel::default()).unwrap()
}

#[track_caller]
fn check(scenario: Scenario, expected: Expect) {
    expected.assert_eq(&run(scenario).to_string());
}

#[test]
fn explorers() {
    check(
        Scenario::Explorers,
        expect![[r#"
            game time     7200 ticks
            loads         4022 hot, 0 warm, 0 cold, 8288 absent
                          100.0 % with one read, 2.35 keys each, 0 rows fetched, 0 found in memory, 3792.8 KiB
            saves         8330, 7804.6 KiB
            moved         0 chunks to L0, 0 to L1, 0 to L2
                          0 B read, 0 B written, 0.0 % of what loads read, write amplification 1.00
                          0 clusters rewritten, 0 steps outdated, 0 ticks full, 930 heat rows
            L0            8288 chunks in 8288 rows, 7772.5 KiB
            L1            0 chunks in 0 rows, 0 B
            L2            0 chunks in 0 rows, 0 B
            shadowed      0 slots
        "#]],
    );
}

#[test]
fn town() {
    check(
        Scenario::Town,
        expect![[r#"
        game time     7200 ticks
        loads         6042 hot, 0 warm, 3527 cold, 0 absent
                      63.1 % with one read, 1.74 keys each, 7 rows fetched, 3520 found in memory, 17.9 MiB
        saves         378, 360.7 KiB
        moved         6173 chunks to L0, 0 to L1, 0 to L2
                      0 B read, 5804.5 KiB written, 31.7 % of what loads read, write amplification 17.09
                      0 clusters rewritten, 0 steps outdated, 7 ticks full, 626 heat rows
        L0            6272 chunks in 6272 rows, 5907.3 KiB
        L1            0 chunks in 0 rows, 0 B
        L2            22400 chunks in 7 rows, 13.1 MiB
        shadowed      6272 slots
    "#]],
    );
}

#[test]
fn mine() {
    check(
        Scenario::Mine,
        expect![[r#"
        game time     18000 ticks
        loads         0 hot, 0 warm, 0 cold, 2870 absent
                      0.0 % with one read, 3.00 keys each, 0 rows fetched, 0 found in memory, 0 B
        saves         4023, 3734.3 KiB
        moved         0 chunks to L0, 1066 to L1, 0 to L2
                      997.6 KiB read, 850.5 KiB written, 0.0 % of what loads read, write amplification 1.23
                      0 clusters rewritten, 0 steps outdated, 0 ticks full, 681 heat rows
        L0            1804 chunks in 1804 rows, 1667.8 KiB
        L1            1066 chunks in 36 rows, 850.5 KiB
        L2            0 chunks in 0 rows, 0 B
        shadowed      0 slots
    "#]],
    );
}

#[test]
fn admin() {
    check(
        Scenario::Admin,
        expect![[r#"
        game time     14400 ticks
        loads         0 hot, 0 warm, 2744 cold, 0 absent
                      0.0 % with one read, 3.00 keys each, 9 rows fetched, 2735 found in memory, 18.3 MiB
        saves         0, 0 B
        moved         2496 chunks to L0, 0 to L1, 0 to L2
                      0 B read, 2289.3 KiB written, 12.2 % of what loads read
                      0 clusters rewritten, 0 steps outdated, 4 ticks full, 289 heat rows
        L0            2496 chunks in 2496 rows, 2289.3 KiB
        L1            0 chunks in 0 rows, 0 B
        L2            34368 chunks in 9 rows, 18.3 MiB
        shadowed      2496 slots
    "#]],
    );
}

#[test]
fn spread() {
    check(
        Scenario::Spread,
        expect![[r#"
        game time     7200 ticks
        loads         5392 hot, 0 warm, 3827 cold, 0 absent
                      58.5 % with one read, 1.83 keys each, 15 rows fetched, 3812 found in memory, 39.4 MiB
        saves         380, 345.7 KiB
        moved         8282 chunks to L0, 0 to L1, 0 to L2
                      0 B read, 7926.2 KiB written, 19.7 % of what loads read, write amplification 23.93
                      0 clusters rewritten, 0 steps outdated, 10 ticks full, 750 heat rows
        L0            8384 chunks in 8384 rows, 8022.1 KiB
        L1            0 chunks in 0 rows, 0 B
        L2            53056 chunks in 15 rows, 34.2 MiB
        shadowed      8384 slots
    "#]],
    );
}

#[test]
fn fliers() {
    check(
        Scenario::Fliers,
        expect![[r#"
        game time     1200 ticks
        loads         0 hot, 0 warm, 20307 cold, 0 absent
                      0.0 % with one read, 3.00 keys each, 68 rows fetched, 20239 found in memory, 151.5 MiB
        saves         0, 0 B
        moved         0 chunks to L0, 0 to L1, 0 to L2
                      0 B read, 0 B written, 0.0 % of what loads read
                      0 clusters rewritten, 0 steps outdated, 0 ticks full, 532 heat rows
        L0            0 chunks in 0 rows, 0 B
        L1            0 chunks in 0 rows, 0 B
        L2            278528 chunks in 68 rows, 151.2 MiB
        shadowed      0 slots
    "#]],
    );
}

#[test]
fn settings_are_compared_line_by_line() {
    let default = TierPolicy::default();
    let literal = TierPolicy { promote_after_ticks: 0, ..default };
    let run = |policy| simulate(small(Scenario::Fliers).events(), policy, StoreModel::default()).unwrap();
    let comparison = Comparison(vec![
        ("after a stay".to_owned(), run(default)),
        ("whatever was read".to_owned(), run(literal)),
    ]);
    expect![[r#"
        setting            one read  keys/load      loaded  moves wrote  amplification      L0      L1      L2
        after a stay          0.0 %       3.00   151.5 MiB          0 B              -       0       0  278528
        whatever was read    62.8 %       1.74   162.9 MiB     30.8 MiB              -   34048       0  244480
    "#]]
    .assert_eq(&comparison.to_string());
}

#[test]
fn who_flies_over_a_settled_world_writes_next_to_nothing() {
    let report = run(Scenario::Fliers);
    assert!(report.load_bytes > 0 && report.written_per_loaded() <= 0.1, "{report}");
    assert_eq!(report.moved, [0; 3]);
}

#[test]
fn what_everybody_left_ends_in_l2_and_nothing_is_lost() {
    for scenario in Scenario::ALL {
        let mut simulation = Simulation::new(TierPolicy::default(), StoreModel::default()).unwrap();
        let (mut ids, mut saved, mut now) = (BTreeSet::new(), BTreeSet::new(), 0);
        for event in small(scenario).events() {
            match event {
                Event::Player(player) => drop(ids.insert(player.id)),
                Event::Save { chunk, .. } => drop(saved.insert(chunk)),
                Event::Tick(tick) => now = tick.get(),
                _ => {}
            }
            simulation.apply(&event);
        }
        let before = simulation.finish();
        for id in ids {
            simulation.apply(&Event::Leave(id));
        }
        simulation.apply(&Event::Tick(GameTick::new(now + 30 * 24 * 60 * MINUTE)));
        let after = simulation.finish();
        assert_eq!(after.chunks.iter().sum::<u64>(), before.chunks.iter().sum::<u64>(), "{scenario:?}");
        assert_eq!(
            (&after.chunks[..2], &after.rows[..2], after.shadowed_slots),
            (&[0, 0][..], &[0, 0][..], 0)
        );
        if matches!(scenario, Scenario::Explorers | Scenario::Mine) {
            assert_eq!(after.chunks[2], saved.len() as u64, "{scenario:?}");
        }
        // In one direction, and at most once per tier.
        assert_eq!(after.moved[0], before.moved[0], "{scenario:?}");
        assert!(after.moved[1] - before.moved[1] <= before.chunks[0], "{scenario:?}");
        assert_eq!(after.moved[2] - before.moved[2], before.chunks[0] + before.chunks[1], "{scenario:?}");
        let shrank = after.bytes[2] < before.bytes.iter().sum();
        assert!(shrank || before.chunks[..2] == [0, 0], "{scenario:?}: colder is smaller");
    }
}

#[test]
fn a_trace_replays_as_what_was_recorded() {
    for scenario in [Scenario::Town, Scenario::Mine] {
        let mut bytes = Vec::new();
        let mut writer = TraceWriter::new(&mut bytes);
        let count = small(scenario).events().filter(|event| writer.write(event, &mut bytes)).count();
        assert!(bytes.len() < count * 12, "{scenario:?}: {count} events take {} bytes", bytes.len());
        let events = TraceReader::new(&bytes).unwrap().map(Result::unwrap);
        let replayed = simulate(events, TierPolicy::default(), StoreModel::default());
        assert_eq!(replayed, Ok(run(scenario)), "{scenario:?}");
    }
}

#[test]
fn what_is_pinned_stays_until_it_is_not() {
    let (overworld, chunk) =
        (Dimension::new(0), |x| ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0)));
    let place = ChunkBox::new(chunk(0).pos, chunk(3).pos);
    let mut simulation = Simulation::new(TierPolicy::default(), StoreModel::default()).expect("the default");
    simulation.apply(&Event::Pin { pin: 7, dimension: overworld, place });
    for x in 0..8 {
        simulation.apply(&Event::Save { chunk: chunk(x), len_bytes: 1000 });
    }
    simulation.apply(&Event::Unpin(8));
    simulation.apply(&Event::Tick(GameTick::new(3 * 60 * MINUTE)));
    assert_eq!(simulation.finish().chunks, [4, 0, 4], "the cube that is pinned is as it was");
    simulation.apply(&Event::Unpin(7));
    simulation.apply(&Event::Tick(GameTick::new(6 * 60 * MINUTE)));
    assert_eq!(simulation.finish().chunks, [0, 0, 8]);
}

/// Around a place, a chunk loader keeps hot what a player who left let go of.
#[test]
fn what_is_held_stays_hot_without_players_until_it_is_released() {
    let overworld = Dimension::new(0);
    let chunk = |x| ChunkAt::new(overworld, ChunkPos::constant(x, 0, 0));
    let place = ChunkBox::new(chunk(0).pos, chunk(3).pos);
    let mut events = vec![Event::Hold { hold: 4, dimension: overworld, place }];
    events.extend((0..8).map(|x| Event::Save { chunk: chunk(x), len_bytes: 1000 }));
    events.push(Event::Hold { hold: 5, dimension: overworld, place: ChunkBox::EVERYTHING });
    events.push(Event::Tick(GameTick::new(3 * 60 * MINUTE)));
    let mut simulation = Simulation::new(TierPolicy::default(), StoreModel::default()).unwrap();
    for event in &events {
        simulation.apply(event);
    }
    let held = simulation.finish();
    assert_eq!((held.chunks, held.refused_holds), ([4, 0, 4], 1));
    simulation.apply(&Event::Release(4));
    simulation.apply(&Event::Tick(GameTick::new(6 * 60 * MINUTE)));
    assert_eq!(simulation.finish().chunks, [0, 0, 8]);
}

#[test]
fn a_policy_that_cannot_be_meant_is_refused() {
    let policy = TierPolicy { cold_distance_blocks: 1, ..TierPolicy::default() };
    let error = simulate([], policy, StoreModel::default()).unwrap_err();
    assert_eq!(error.to_string(), "cold from 1 blocks on is not beyond near, 128; raise it");
}

#[derive(Debug, Clone)]
enum Act {
    Wait(u64),
    Load([i64; 3]),
    Save([i64; 3]),
    Walk([i64; 3]),
    Leave,
}

fn any_act() -> impl Strategy<Value = Act> {
    let place = || prop::array::uniform3(-12..12_i64);
    prop_oneof![
        3 => prop_oneof![1..50_u64, 300..2000_u64].prop_map(Act::Wait),
        3 => place().prop_map(Act::Load),
        3 => place().prop_map(Act::Save),
        2 => place().prop_map(Act::Walk),
        1 => Just(Act::Leave),
    ]
}

/// Events, where time goes on in steps of so many ticks at most.
fn events(acts: &[Act], step_ticks: u64) -> Vec<Event> {
    let (mut events, mut now) = (Vec::new(), 0);
    let id = EntityId::from_bytes([3; 16]);
    let chunk = |[x, y, z]: [i64; 3]| ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, y, z));
    for act in acts {
        match *act {
            Act::Wait(ticks) => {
                let until = now + ticks;
                while now < until {
                    now = (now + step_ticks).min(until);
                    events.push(Event::Tick(GameTick::new(now)));
                }
            }
            Act::Load(at) => events.push(Event::Load { chunk: chunk(at), len_bytes: 900 }),
            Act::Save(at) => events.push(Event::Save { chunk: chunk(at), len_bytes: 1000 }),
            Act::Walk([x, y, z]) => {
                let block = BlockPos::new(x * 20, y * 20, z * 20);
                events.push(Event::Player(PlayerAt { id, dimension: Dimension::new(0), block }));
            }
            Act::Leave => events.push(Event::Leave(id)),
        }
    }
    events
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Ticks without work are skipped. They must be those without work.
    #[test]
    fn skipped_ticks_change_nothing(acts in prop::collection::vec(any_act(), 1..25)) {
        let model = StoreModel { scan_cubes: usize::MAX, ..StoreModel::default() };
        let policy = TierPolicy {
            warm_after_ticks: 900,
            cold_after_ticks: 3000,
            hysteresis_ticks: 400,
            promote_after_ticks: 300,
            gather_ticks: 170,
            rewrite_after_ticks: 1000,
            ..TierPolicy::default()
        };
        let run = |step| simulate(events(&acts, step), policy, model).unwrap();
        prop_assert_eq!(run(u64::MAX / 2), run(1));
    }

    /// A small budget delays moves and changes nothing in the end.
    #[test]
    fn budgets_change_nothing_in_the_end(acts in prop::collection::vec(any_act(), 1..40), chunks in 1..40_u64) {
        let settle = [Act::Leave, Act::Wait(200_000)];
        let trace = events(&[&acts[..], &settle].concat(), u64::MAX / 2);
        let run = |budget| {
            let model = StoreModel { budget, ..StoreModel::default() };
            simulate(trace.iter().copied(), TierPolicy::default(), model).unwrap()
        };
        let (narrow, wide) = (run(Budget { bytes: 3000, chunks }), run(Budget::UNLIMITED));
        prop_assert_eq!(narrow.chunks, wide.chunks);
        prop_assert_eq!(narrow.bytes, wide.bytes);
    }
}
