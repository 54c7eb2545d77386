//! Compaction by `demote_all` and by `compaction`, as the engine's files show it.

use super::*;
use cg_format::key::Family;
use cg_store::tiers::CompactReport;
use cg_store::view::Area;

/// Families that have files above the last level of their trees.
fn uncompacted(world: &World) -> Vec<&'static str> {
    let families = world.usage().expect("reads").families;
    families.iter().filter(|held| held.upper_file_count > 0).map(|held| held.family.name()).collect()
}

#[test]
fn a_demotion_that_moves_nothing_compacts_names_and_objects() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    Ids::register(&world);
    world.objects().put("a", *b"value").expect("puts");
    assert_eq!(world.tiers().demote_all(DAY, |_| {}).expect("settles"), MoveCounts::default());
    assert_eq!(uncompacted(&world), [""; 0]);
    world.close().expect("closes");
    drop(world);
    let world = disk.open(&[]);
    assert_eq!(uncompacted(&world), [""; 0], "the end had no names left to write");
    assert!(world.objects().get("a").expect("reads").is_some());
    world.objects().put("b", *b"value").expect("puts");
    world.close().expect("closes");
    drop(world);
    let world = disk.open(&[]);
    assert!(uncompacted(&world).contains(&Family::Object.name()), "what was written since is seen");
}

/// Compacts in one call.
fn compact(world: &World, area: Area<'_>) -> CompactReport {
    let mut compaction = world.tiers().compaction(area).expect("begins");
    assert!(!compaction.run(ENOUGH).expect("compacts"), "there is time for all of it");
    compaction.report()
}

#[test]
fn a_running_world_gives_bytes_back_and_holds_what_it_held() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let all: Vec<_> = (0..256).map(|n| ids.at(n % 16, n / 16 % 4, n / 64)).collect();
    for round in 0..4 {
        save(&world, all.iter().zip(0..).map(|(at, n)| (*at, noisy(&world, &ids, 1000 * round + n))));
    }
    world.tick(GameTick::new(90 * MINUTE), &[], Duration::ZERO).expect("ticks");
    let hash = world.content_hash(Area::World).expect("hashes");
    let report = compact(&world, Area::World);
    assert_eq!((report.moves.cooled, tiers(&world)), (256, [0, 0, 256]), "what was due is moved");
    let chunk_bytes = noisy(&world, &ids, 0).to_bytes().len() as u64;
    assert!(report.before_bytes >= 4 * 256 * chunk_bytes / 2, "{report:?}");
    assert!(report.after_bytes <= 256 * chunk_bytes, "{report:?}");
    assert_eq!(report.freed_bytes(), report.before_bytes - report.after_bytes);
    assert!(report.slices >= 2 && report.skipped_low_disk == 0, "{report:?}");
    assert_eq!(world.content_hash(Area::World).expect("hashes"), hash);
    assert_sound(&world);
    let again = compact(&world, Area::World);
    assert_eq!((again.moves, again.slices), (MoveCounts::default(), 0), "nothing is left to gain: {again:?}");
}

#[test]
fn what_cooled_is_given_back_without_a_call() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let all: Vec<_> = (0..1024).map(|n| ids.at(n % 16, n / 16 % 4, n / 64)).collect();
    save(&world, all.iter().zip(0..).map(|(at, n)| (*at, noisy(&world, &ids, n))));
    compact(&world, Area::World);
    let hot_bytes = |world: &World| {
        let families = world.usage().expect("reads").families;
        families.iter().find(|held| held.family == Family::ChunkL0).expect("is listed").table_bytes
    };
    let before = hot_bytes(&world);
    let mut minutes = 90;
    while tiers(&world) != [0, 0, 1024] {
        minutes += 1;
        world.tick(GameTick::new(minutes * MINUTE), &[], ENOUGH).expect("ticks");
    }
    assert!(
        hot_bytes(&world) > before / 2,
        "{} of {before}: the test has shown something",
        hot_bytes(&world)
    );
    // Tombstones are in memory until the buffer is full or the world closes.
    world.close().expect("closes");
    drop(world);
    let world = disk.open(&[]);
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while hot_bytes(&world) > before / 20 && std::time::Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(hot_bytes(&world) <= before / 20, "{} of {before}", hot_bytes(&world));
    assert_sound(&world);
}

#[test]
fn an_area_is_compacted_alone() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let part = |x: i64| (0..128).map(move |n| (x + n % 16, n / 16, 0));
    for x in [0, 1000] {
        save(&world, part(x).zip(0..).map(|((x, y, z), n)| (ids.at(x, y, z), noisy(&world, &ids, n))));
        // Into a file of their own.
        compact(&world, Area::World);
    }
    let hot_bytes = || {
        let families = world.usage().expect("reads").families;
        families.iter().find(|held| held.family == Family::ChunkL0).expect("is listed").table_bytes
    };
    let both = hot_bytes();
    for x in [0, 1000] {
        save(&world, part(x).map(|(x, y, z)| (ids.at(x, y, z), filled(&world, ids.stone))));
    }
    let area = |x: i64| {
        Area::Box(ids.overworld, ChunkBox::new(ChunkPos::constant(x, 0, 0), ChunkPos::constant(x + 15, 7, 0)))
    };
    assert_eq!(compact(&world, area(5000)).slices, 0, "there is nothing");
    assert!(compact(&world, area(1000)).slices > 0);
    let one = hot_bytes();
    assert!(one < both, "{one} of {both}");
    compact(&world, Area::World);
    let none = hot_bytes();
    assert!(none < both / 20, "{none} of {both}");
    assert_eq!(compact(&world, area(0)).slices, 0);
    assert_sound(&world);
}

#[test]
fn a_compaction_stops_between_two_steps_and_another_goes_on() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    save(&world, (0..64).map(|n| (ids.at(n, 0, 0), noisy(&world, &ids, 1))));
    world.objects().put("a", *b"value").expect("puts");
    let mut compaction = world.tiers().compaction(Area::World).expect("begins");
    let mut steps = 0;
    while compaction.run(Duration::ZERO).expect("compacts") {
        steps += 1;
        if compaction.report().slices == 1 {
            break;
        }
    }
    assert!(steps > 2, "{steps} steps");
    drop(compaction);
    assert_ne!(uncompacted(&world), [""; 0]);
    // A commit between two of them.
    save(&world, [(ids.at(0, 0, 0), filled(&world, ids.glass))]);
    let rest = compact(&world, Area::World);
    assert!(rest.slices > 0);
    assert_eq!(uncompacted(&world), [""; 0]);
    assert_eq!(world.load(ids.at(0, 0, 0)).expect("loads").as_deref(), Some(&filled(&world, ids.glass)));
}

#[test]
fn a_world_that_is_only_read_or_closed_is_not_compacted() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let mut compaction = world.tiers().compaction(Area::World).expect("begins");
    world.close().expect("closes");
    assert!(matches!(compaction.run(ENOUGH), Err(Error::Closed)));
    drop(world);
    let reading = World::builder().options(&options()).open_read_only(disk.path()).expect("opens");
    let refused = reading.tiers().compaction(Area::World).expect_err("it writes");
    assert!(matches!(refused, Error::Engine(engine::EngineError::OpenedReadOnly)), "{refused:?}");
}
