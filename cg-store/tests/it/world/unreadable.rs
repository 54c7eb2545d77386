//! Blocks of RocksDB's files that are really damaged: maintenance leaves what lies in them, tells of it once and goes on.

mod held;
mod mended;

use std::collections::BTreeSet;
use std::time::Duration;

use super::moves::{play, player, tiers};
use super::*;
use cg_format::{ClusterTier, Space, Tier, key};
use cg_store::engine::{EngineError, Place};
use cg_store::error::DamageCause;
use cg_store::tiers::{DamageReport, TickReport};
use cg_tiering::{GameTick, PlayerAt};

const DAY: u64 = 24 * 60 * 60 * GameTick::PER_SECOND;
const ENOUGH: Duration = Duration::from_secs(600);

/// Saves so many chunks that do not compress, each in a 4³ cube of its own: the rows of one file, in their order.
fn noisy_line(world: &World, ids: &Ids, count: i64) -> Vec<ChunkAt> {
    let all: Vec<_> = (0..count).map(|n| ids.at(4 * n, 0, 0)).collect();
    save(world, all.iter().zip(0..).map(|(at, n)| (*at, super::tier::noisy(world, ids, n))));
    all
}

/// Damages a block of a closed world's largest file of a family, so far in; returns the keys that nobody can read now.
fn hide(disk: &Disk, family: Family, part: f64) -> BTreeSet<Vec<u8>> {
    let (keys, file) = disk.raw().keys_and_file(family);
    let mut bytes = fs::read(&file).expect("reads");
    let at = (bytes.len() as f64 * part) as usize;
    bytes[at] ^= 0x10;
    fs::write(&file, bytes).expect("writes");
    let families = Family::ALL.map(Family::name);
    let options = rocksdb::Options::default();
    let db = rocksdb::DB::open_cf_for_read_only(&options, disk.path().join("db"), families, false);
    let db = db.expect("opens");
    let handle = db.cf_handle(family.name()).expect("is there");
    let hidden: BTreeSet<_> = keys.iter().filter(|key| db.get_cf(&handle, key).is_err()).cloned().collect();
    assert!((1..keys.len()).contains(&hidden.len()), "{} of {} keys are hidden", hidden.len(), keys.len());
    hidden
}

/// As [`hide`], of the block with the last keys.
fn hide_last(disk: &Disk, family: Family) {
    let (keys, file) = disk.raw().keys_and_file(family);
    let sound = fs::read(&file).expect("reads");
    let families = Family::ALL.map(Family::name);
    for part in (1..200).rev() {
        let mut bytes = sound.clone();
        let at = bytes.len() * part / 200;
        bytes[at] ^= 0x10;
        fs::write(&file, &bytes).expect("writes");
        let options = rocksdb::Options::default();
        let db = rocksdb::DB::open_cf_for_read_only(&options, disk.path().join("db"), families, false);
        let Ok(db) = db else { continue };
        let handle = db.cf_handle(family.name()).expect("is there");
        let is_hidden = |key: &Vec<u8>| db.get_cf(&handle, key).is_err();
        if keys.last().is_some_and(is_hidden) && !keys.first().is_some_and(is_hidden) {
            return;
        }
    }
    panic!("no block of {} is to be damaged alone", file.display());
}

/// A world with caches and write buffers of its own. Shared caches would answer with what they read before the damage,
/// and a full shared buffer would write part of a family to a file of its own.
fn alone(options: WorldOptions) -> WorldOptions {
    WorldOptions { resources: Some(cg_store::Resources::new(64 << 20, 2)), ..options }
}

fn create(disk: &Disk, options: WorldOptions) -> World {
    World::builder().options(&alone(options)).create(disk.path()).expect("is created")
}

fn open(disk: &Disk, options: WorldOptions) -> World {
    World::builder().options(&alone(options)).open(disk.path()).expect("opens")
}

/// A tick. RocksDB may meet the damage before anybody else does, and takes no writes then; but that happens once.
fn tick(world: &World, now: u64, players: &[PlayerAt]) -> TickReport {
    for _ in 0..3 {
        match world.tick(GameTick::new(now), players, ENOUGH) {
            Ok(report) => return report,
            Err(Error::Engine(EngineError::WriteFailed { .. } | EngineError::ReadOnly { .. })) => {
                assert!(world.engine().failure().is_some_and(|failure| is_damage(failure.cause())));
                world.resume().expect("goes on without compactions");
            }
            Err(error) => panic!("damage stops no tick: {error}"),
        }
    }
    panic!("it happens again and again")
}

fn is_damage(error: &EngineError) -> bool {
    matches!(error, EngineError::Corrupt { place: Place::Table(_), .. })
}

/// Ticks through a part of a day; returns what they told to be damaged.
fn ticks(world: &World, from: u64, count: u64) -> Vec<DamageReport> {
    (0..count).flat_map(|later| tick(world, from + later, &[]).damaged).collect()
}

/// Ticks that are to find nothing to do, and that read nothing but what little the heat of cubes takes.
#[track_caller]
fn assert_at_rest(world: &World, from: u64) {
    let before = world.metrics().stats;
    for later in 0..100 {
        let report = tick(world, from + later, &[]);
        assert_eq!((report.moves, report.damaged), (MoveCounts::default(), vec![]), "it is told once");
    }
    let work = world.metrics().stats - before;
    assert_eq!((work.keys_scanned, work.engine_reads, work.clusters_read), (0, 0, 0));
}

#[track_caller]
fn unreadable<T: std::fmt::Debug>(loaded: Result<T, Error>) {
    match loaded {
        Err(Error::Corrupt(damage)) => {
            assert!(matches!(damage.problem, DamageCause::Unreadable(_)), "{damage}");
        }
        // It lies somewhere in a range of keys.
        Err(Error::Engine(EngineError::Corrupt { place: Place::Table(_), .. })) => {}
        other => panic!("not seen as damage: {other:?}"),
    }
}

#[track_caller]
fn assert_told(met: &[DamageReport], family: Family) {
    assert!(!met.is_empty(), "nobody was told");
    for met in met {
        let place = met.place.to_string();
        assert!(
            place.contains(family.name()) && met.message.contains("checksum"),
            "{place}: {}",
            met.message
        );
    }
    let texts: BTreeSet<_> = met.iter().map(|met| &met.message).collect();
    assert_eq!(texts.len(), met.len(), "each once");
}

fn tier_of(world: &World, at: ChunkAt) -> Tier {
    world.tiers().with_stored_bytes(at, |stored| Ok(stored.tier)).expect("is sound").expect("is stored")
}

#[test]
fn a_damaged_block_of_hot_rows_keeps_its_chunks_hot_and_no_others() {
    let disk = Disk::new();
    let world = create(&disk, options());
    let ids = Ids::register(&world);
    let all = noisy_line(&world, &ids, 600);
    drop(world);
    let hidden = hide(&disk, Family::ChunkL0, 0.4);
    let world = open(&disk, options());
    let mut met = ticks(&world, 1, 200);
    met.extend(ticks(&world, DAY, 700));
    assert_told(&met, Family::ChunkL0);
    for at in &all {
        world.cache().clear();
        if hidden.contains(&key::chunk(*at)[..]) {
            unreadable(world.load(*at));
        } else {
            assert_eq!(tier_of(&world, *at), Tier::L2, "{at}");
        }
    }
    assert_at_rest(&world, DAY + 1000);
}

#[test]
fn a_damaged_block_of_warm_clusters_keeps_its_cubes_warm_and_no_others() {
    let disk = Disk::new();
    let world = create(&disk, options());
    let ids = Ids::register(&world);
    let all = noisy_line(&world, &ids, 400);
    demote(&world, ClusterTier::L1, &all, false);
    // Beside each lies a hot chunk, which must not be lost on the way either.
    let beside = |at: &ChunkAt| ids.at(at.pos.x() + 1, 0, 0);
    save(&world, all.iter().map(|at| (beside(at), marked(&world, &ids, 5))));
    drop(world);
    let hidden = hide(&disk, Family::ChunkL1, 0.4);
    let world = open(&disk, options());
    let mut met = ticks(&world, 1, 200);
    met.extend(ticks(&world, DAY, 1500));
    assert_told(&met, Family::ChunkL1);
    for at in &all {
        world.cache().clear();
        assert!(world.load(beside(at)).expect("is sound").is_some());
        if hidden.contains(&key::cluster(at.dimension, at.pos.cluster(ClusterTier::L1))[..]) {
            unreadable(world.load(*at));
        } else {
            assert_eq!([*at, beside(at)].map(|at| tier_of(&world, at)), [Tier::L2; 2], "{at}");
        }
    }
    assert_at_rest(&world, DAY + 2000);
}

#[test]
fn a_damaged_block_of_cold_clusters_takes_nothing_more_and_holds_up_no_others() {
    let disk = Disk::new();
    let world = create(&disk, options());
    let ids = Ids::register(&world);
    let all: Vec<_> = (0..100).map(|n| ids.at(16 * n, 0, 0)).collect();
    // Each takes more than a cluster of equal chunks, of which a block would hold all.
    save(&world, all.iter().zip(0..).map(|(at, n)| (*at, super::tier::noisy(&world, &ids, n))));
    world.tiers().demote_all(DAY, |_| {}).expect("settles");
    // Two cubes of each cold cluster were played in since.
    let beside = |at: &ChunkAt| [4, 8].map(|x| ids.at(at.pos.x() + x, 0, 0));
    save(&world, all.iter().flat_map(beside).map(|at| (at, marked(&world, &ids, 2))));
    drop(world);
    let hidden = hide(&disk, Family::ChunkL2, 0.4);
    let world = open(&disk, options());
    let mut met = ticks(&world, 1, 200);
    met.extend(ticks(&world, DAY, 1000));
    assert_told(&met, Family::ChunkL2);
    for at in &all {
        world.cache().clear();
        if hidden.contains(&key::cluster(at.dimension, at.pos.cluster(ClusterTier::L2))[..]) {
            unreadable(world.load(*at));
            // A place that the cluster may hold is not absent.
            unreadable(world.load(ids.at(at.pos.x() + 12, 0, 0)));
            for at in beside(at) {
                assert_eq!(tier_of(&world, at), Tier::L0, "{at}");
            }
        } else {
            assert_eq!(tier_of(&world, *at), Tier::L2);
            assert_eq!(beside(at).map(|at| tier_of(&world, at)), [Tier::L2; 2], "{at}");
        }
    }
    assert_at_rest(&world, DAY + 2000);
    // Who comes to such a place is served from what can be read, and the tick goes on.
    let here = |at: &ChunkAt| [player(1, at.dimension, at.pos.min_block().x, 8, 8)];
    let of = |is_hidden: bool| {
        let cluster = |at: &&ChunkAt| key::cluster(at.dimension, at.pos.cluster(ClusterTier::L2)).to_vec();
        all.iter().find(|at| hidden.contains(&cluster(at)) == is_hidden).expect("some are")
    };
    for (at, now) in [(of(true), 2 * DAY), (of(false), 3 * DAY)] {
        play(&world, now, &here(at));
        world.cache().clear();
        for result in world.load_many(&[*at, beside(at)[0]]) {
            drop(result);
        }
        play(&world, now + 1, &here(at));
        for later in 1..5 {
            // A promotion that finds the threads busy comes in the background.
            assert!((0..2000).any(|_| !tick(&world, now + later * 1200, &here(at)).work_left), "it ends");
        }
    }
    unreadable(world.load(*of(true)));
    assert_eq!(tier_of(&world, *of(false)), Tier::L0, "who stays has it hot");
}

#[test]
fn a_damaged_block_of_heat_counts_as_none() {
    let disk = Disk::new();
    let world = create(&disk, options());
    let ids = Ids::register(&world);
    let all: Vec<_> = (0..900).map(|n| ids.at(4 * n, 0, 0)).collect();
    save(&world, all.iter().map(|at| (*at, marked(&world, &ids, 1))));
    drop(world);
    let hidden = hide(&disk, Family::Index, 0.03);
    let is_heat = |key: &Vec<u8>| Space::of_row(Family::Index, key) == Some(Space::Heat);
    assert!(hidden.iter().any(is_heat), "the block of {} keys holds heat", hidden.len());
    let world = open(&disk, options());
    let mut met = ticks(&world, 1, 500);
    met.extend(ticks(&world, DAY, 1000));
    assert_told(&met, Family::Index);
    assert_eq!(tiers(&world), [0, 0, 900]);
}

#[test]
fn a_damaged_block_of_the_opacity_map_keeps_its_tiles_unfolded_and_no_others() {
    let disk = Disk::new();
    let world = create(&disk, options());
    let ids = Ids::register(&world);
    let all: Vec<_> = (0..600_u16).map(|n| ids.at(4 * i64::from(n), 0, 0)).collect();
    save(&world, all.iter().zip(0..).map(|(at, n)| (*at, marked(&world, &ids, n))));
    drop(world);
    let hidden = hide(&disk, Family::OpacityMap, 0.4);
    let world = open(&disk, options());
    assert_told(&ticks(&world, 1, 100), Family::OpacityMap);
    let is_hidden = |at: &ChunkAt| hidden.contains(&key::opacity_patch(*at)[..]);
    for (n, at) in (0..).zip(&all) {
        let cell = LocalPos::from_index(n % 4096).expect("below 4096");
        let block = at.pos.block(cell);
        let column = world.opacity().column(at.dimension, block.x, block.z);
        if is_hidden(at) {
            unreadable(column);
        } else {
            let engine = world.engine();
            let patch = engine.get(Space::OpacityPatch, &key::opacity_patch(*at)).expect("reads");
            assert!(patch.is_none(), "{at} is folded");
            assert_eq!(column.expect("reads").runs(), [block.y..=block.y]);
        }
    }
    // A patch more in such a tile holds up no tile after it.
    let beside = |at: &ChunkAt| ids.at(at.pos.x() + 1, 0, 0);
    let [first, last] = [all.iter().find(|at| is_hidden(at)).expect("some are"), &all[599]];
    save(&world, [first, last].map(|at| (beside(at), filled(&world, ids.stone))));
    ticks(&world, 200, 5);
    let has_patch = |at: &ChunkAt| {
        let engine = world.engine();
        engine.get(Space::OpacityPatch, &key::opacity_patch(beside(at))).expect("lies in memory").is_some()
    };
    assert!(has_patch(first) && !has_patch(last));
    let before = world.metrics().stats;
    ticks(&world, 300, 20);
    assert_eq!(world.metrics().stats.engine_reads, before.engine_reads);
}

#[test]
fn a_world_of_which_nothing_can_be_read_is_not_taken_for_empty() {
    let disk = Disk::new();
    let world = create(&disk, options());
    let ids = Ids::register(&world);
    let at = ids.at(0, 0, 0);
    save(&world, [(at, super::tier::noisy(&world, &ids, 1))]);
    drop(world);
    let (_, file) = disk.raw().keys_and_file(Family::ChunkL0);
    disk.raw().delete(Family::Index, key::heat(at));
    let mut bytes = fs::read(&file).expect("reads");
    bytes[20] ^= 0x10;
    fs::write(&file, bytes).expect("writes");
    let world = open(&disk, options());
    assert_told(&ticks(&world, 1, 5), Family::ChunkL0);
    unreadable(world.load(at));
}

#[test]
fn a_damaged_block_of_deltas_is_damage_of_its_chunks_and_of_no_others() {
    let disk = Disk::new();
    let deltas = || WorldOptions { deltas: true, ..options() };
    let world = create(&disk, deltas());
    let ids = Ids::register(&world);
    let all = noisy_line(&world, &ids, 400);
    let set = |world: &World, at: &ChunkAt, change: u8| {
        let set = world.transaction(|tx| {
            // So many at once that the block is not compressed to nothing.
            for n in 0..40 {
                let cell =
                    LocalPos::from_index((u16::from(change) * 97 + n * 101 + at.pos.x() as u16 * 7) % 4096);
                tx.set_block(at.dimension, at.pos.block(cell.expect("below 4096")), ids.stone)?;
            }
            Ok::<_, Error>(())
        });
        drop(set.expect("sets"));
    };
    for change in 0..3 {
        for at in &all {
            set(&world, at, change);
        }
    }
    assert_eq!(world.metrics().stats.deltas_written, 1200);
    let chunks: Vec<_> = all.iter().map(|at| world.load(*at).expect("loads").expect("is there")).collect();
    drop(world);
    let hidden: BTreeSet<_> = hide(&disk, Family::ChunkDelta, 0.4)
        .iter()
        .map(|row| key::decode_delta(row).expect("is a delta's").0)
        .collect();

    let world = open(&disk, deltas());
    let check = |world: &World| {
        world.cache().clear();
        for (at, chunk) in all.iter().zip(&chunks) {
            if hidden.contains(at) {
                unreadable(world.load(*at));
                unreadable(world.load_many(&[*at, all[0]]).swap_remove(0));
                unreadable(world.transaction(|tx| tx.set_block(at.dimension, at.pos.min_block(), ids.stone)));
            } else {
                assert_eq!(world.load(*at).expect("is sound").as_deref(), Some(&**chunk), "{at}");
            }
        }
    };
    check(&world);
    // The others are folded and are demoted; these stay as they are, and it is told.
    let mut met = ticks(&world, 1, 50);
    met.extend(ticks(&world, DAY, 1000));
    assert_told(&met, Family::ChunkDelta);
    assert_eq!(
        world.metrics().chunks_with_deltas,
        world.metrics().chunks_with_deltas.min(hidden.len() as u64)
    );
    check(&world);
    assert_at_rest(&world, DAY + 2000);
    drop(world);
    let world = open(&disk, deltas());
    check(&world);
    // Walks show each of them as damage, and go on.
    let (mut sound, mut damaged) = (0, 0);
    let walked = world.read_view(|view| {
        view.for_each_chunk(cg_store::view::Area::World, |stored| {
            *(if stored.is_ok() { &mut sound } else { &mut damaged }) += 1;
            std::ops::ControlFlow::<()>::Continue(())
        })
    });
    walked.expect("goes on after damage");
    assert_eq!((sound, damaged), (all.len() - hidden.len(), hidden.len()));
    for at in &hidden {
        assert!(world.quarantine().chunk(*at).expect("quarantines"), "{at}");
        assert_eq!(world.load(*at).expect("is absent"), None);
        save(&world, [(*at, marked(&world, &ids, 9))]);
        set(&world, at, 5);
        world.cache().clear();
        assert!(world.load(*at).expect("loads").is_some());
    }
    assert!(!world.quarantine().list().expect("lists").is_empty(), "their rows are kept");
}

/// Where the parts of a large commit were, nothing is left but that they were deleted. That this cannot be read says
/// nothing of a commit that is to be rolled forward.
#[test]
fn a_damaged_block_where_parts_were_keeps_no_world_closed() {
    let disk = Disk::new();
    let limits = cg_store::StoreLimits { batch_bytes: 6000, ..cg_store::StoreLimits::default() };
    let world = create(&disk, WorldOptions { limits, ..options() });
    let ids = Ids::register(&world);
    let all: Vec<_> = (0..600).map(|n| ids.at(16 * n, 0, 0)).collect();
    save(&world, all.iter().map(|at| (*at, filled(&world, ids.stone))));
    assert_eq!(world.metrics().stats.commits_staged, 1);
    save(&world, [(all[7], filled(&world, ids.glass))]);
    drop(world);
    hide_last(&disk, Family::Index);
    let read = |world: &World| {
        let chunk = |at: ChunkAt| world.load(at).expect("loads").map(|chunk| (*chunk).clone());
        let [stone, glass] = [ids.stone, ids.glass].map(|block| Some(filled(world, block)));
        assert_eq!([6, 7, 8].map(|n: usize| chunk(all[n])), [stone.clone(), glass, stone]);
    };
    let reading = alone(options());
    read(&World::builder().options(&reading).open_read_only(disk.path()).expect("opens for reading"));
    let world = open(&disk, options());
    read(&world);
    save(&world, [(all[8], filled(&world, ids.glass))]);
    save(&world, all.iter().map(|at| (*at, filled(&world, ids.air))));
    assert_eq!(world.metrics().stats.commits_staged, 1, "large commits go on too");
}
