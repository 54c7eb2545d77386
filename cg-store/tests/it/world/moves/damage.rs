//! Moves beside what is damaged, or was left by a killed process.

use super::*;

#[test]
fn a_damaged_row_is_told_once_and_nothing_is_written_for_it() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let all: Vec<_> = (0..9).map(|n| ids.at(n % 3, n / 3, 0)).collect();
    save(&world, all.iter().map(|at| (*at, marked(&world, &ids, 1))));
    drop(world);
    let damaged = key::chunk(all[4]);
    disk.raw().flip(Family::ChunkL0, damaged, frame::LEN_BYTES + 3);
    let world = disk.open(&[]);
    let mut told = Vec::new();
    for tick in 0..100 {
        told.extend(world.tick(GameTick::new(DAY + tick), &[], ENOUGH).expect("ticks").damaged);
    }
    let places: Vec<_> = told.iter().map(|met| met.place.clone()).collect();
    let row = engine::Place::Row { family: Family::ChunkL0, key: damaged.as_slice().into() };
    assert_eq!((places, tiers(&world)[2]), (vec![row], 8));
    let before = world.metrics().stats;
    for later in 1..=50 {
        let report = world.tick(GameTick::new(DAY + later * MINUTE), &[], ENOUGH).expect("ticks");
        assert_eq!((report.moves, report.damaged), (MoveCounts::default(), vec![]));
    }
    let work = world.metrics().stats - before;
    assert_eq!((work.moves, work.rows_written), (0, 0));
    // Once it is quarantined and written anew, it goes where the others are.
    assert!(world.quarantine().chunk(all[4]).expect("quarantines"));
    save(&world, [(all[4], marked(&world, &ids, 2))]);
    play(&world, 3 * DAY, &[]);
    assert_eq!(tiers(&world), [0, 0, 9]);
    assert_sound(&world);
}

#[test]
fn what_a_killed_process_left_without_heat_grows_cold_too() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    // More cubes of one cold cluster than one tick reads.
    let all: Vec<_> = (0..20).map(|n| ids.at(4 * (n % 4), 4 * (n / 4 % 4), 4 * (n / 16))).collect();
    save(&world, all.iter().map(|at| (*at, marked(&world, &ids, 1))));
    drop(world);
    for at in &all {
        disk.raw().delete(Family::Index, key::heat(*at));
    }
    let world = disk.open(&[]);
    // All rows are met before any of them is due.
    for tick in 1..=40 {
        world.tick(GameTick::new(tick), &[], ENOUGH).expect("ticks");
    }
    assert_eq!(tiers(&world), [20, 0, 0]);
    for tick in 1..=40 {
        world.tick(GameTick::new(DAY + tick), &[], ENOUGH).expect("ticks");
    }
    assert_eq!(tiers(&world), [0, 0, 20]);
    assert_sound(&world);
}

#[test]
fn damage_stays_where_it_is_and_holds_up_nothing_else() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let all: Vec<_> = (0..3).map(|n| ids.at(n, 0, 0)).collect();
    save(&world, all.iter().map(|at| (*at, marked(&world, &ids, 1))));
    drop(world);
    disk.raw().flip(Family::ChunkL0, key::chunk(all[1]), frame::LEN_BYTES + 3);
    let world = disk.open(&[]);
    world.tiers().demote_all(DAY, |_| {}).expect("settles");
    save(&world, [(ids.at(3, 0, 0), marked(&world, &ids, 7))]);
    for (at, is_damaged) in all.iter().zip([false, true, false]) {
        match world.load(*at) {
            Err(Error::Corrupt(damage)) => assert!(is_damaged && damage.space == Space::ChunkL0, "{damage}"),
            chunk => assert!(!is_damaged && chunk.expect("is sound").is_some()),
        }
    }
    assert_eq!(tiers(&world)[2], 2);
    drop(world);
    // A damaged cluster takes no more chunks in, and what is hot above it stays readable.
    let cold = key::cluster(ids.overworld, all[0].pos.cluster(ClusterTier::L2));
    disk.raw().flip(Family::ChunkL2, cold, frame::LEN_BYTES + 3);
    let before = disk.raw().get(Family::ChunkL2, cold);
    let world = disk.open(&[]);
    let counts = world.tiers().demote_all(DAY, |_| {}).expect("settles");
    assert!(counts.refused > 0 && counts.cooled == 0, "{counts:?}");
    assert!(world.load(ids.at(3, 0, 0)).expect("is sound").is_some());
    drop(world);
    assert!(disk.raw().get(Family::ChunkL2, cold) == before, "it was not overwritten");
}
