//! Long random histories: alone against a naive model over reopening, moving and folding; together against the
//! commits that were acknowledged.

use std::collections::BTreeSet;
use std::sync::{Barrier, Mutex};
use std::thread;

use super::*;
use cg_format::{ClusterTier, Space, key};
use proptest::prelude::*;

over_both_engines! {
    every_read_is_of_an_acknowledged_commit_and_none_goes_back
    calls_of_the_world_inside_a_transaction_do_not_wait_for_it
}

/// Numbers from a seed, the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn every_read_is_of_an_acknowledged_commit_and_none_goes_back(world: &World) {
    const THREADS: u64 = 4;
    const STEPS: u64 = 150;
    const KEYS: u64 = 8;
    let ids = Ids::register(world);
    let place = |n: u64| ids.at(n as i64 * 5, 0, 0);
    // The token is the content: which save it was.
    let token_of =
        |chunk: &Chunk| chunk.side(ids.light).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("8")));
    let written: Mutex<BTreeMap<(u64, CommitSeq), Option<u64>>> = Mutex::default();
    let read: Mutex<Vec<(u64, CommitSeq, Option<u64>)>> = Mutex::default();
    // For each key the last commit that returned before now.
    let acknowledged: Mutex<[CommitSeq; KEYS as usize]> = Mutex::default();
    let start = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (written, read, acknowledged, start, ids) = (&written, &read, &acknowledged, &start, &ids);
            scope.spawn(move || {
                let mut dice = Dice(thread + 1);
                start.wait();
                for step in 0..STEPS {
                    let (a, b) = (dice.below(KEYS), dice.below(KEYS));
                    let token = thread * STEPS + step + 1;
                    let with_token = || {
                        let mut chunk = filled(world, ids.air);
                        chunk.set_side(ids.light, token.to_le_bytes().to_vec());
                        chunk
                    };
                    let known = *acknowledged.lock().expect("no panic");
                    match dice.below(4) {
                        // Two keys at once, blindly.
                        0 => {
                            let done = world.transaction(|tx| {
                                tx.save(place(a), with_token());
                                tx.save(place(b), with_token());
                                Ok::<_, Error>(())
                            });
                            let seq = done.expect("blind writes do not conflict").seq;
                            let mut written = written.lock().expect("no panic");
                            written.insert((a, seq), Some(token));
                            written.insert((b, seq), Some(token));
                            let mut acknowledged = acknowledged.lock().expect("no panic");
                            for key in [a, b] {
                                let last = &mut acknowledged[key as usize];
                                *last = seq.max(*last);
                            }
                        }
                        // A copy from one key to another, which must be of one moment.
                        1 => {
                            let done = world.transaction(|tx| {
                                let from = tx.load(place(a))?;
                                let copied = from.as_deref().and_then(token_of);
                                if let Some(chunk) = from {
                                    tx.save(place(b), Chunk::clone(&chunk));
                                }
                                Ok::<_, Error>(copied)
                            });
                            match done {
                                // A copy over an equal one is no commit of its own, but true at the one it names.
                                Ok(done) if done.value.is_some() => {
                                    written.lock().expect("no panic").insert((b, done.seq), done.value);
                                }
                                Ok(_) | Err(Error::Conflict { .. }) => {}
                                Err(error) => panic!("{error}"),
                            }
                        }
                        _ => {
                            let found = world.load_versioned(place(a)).expect("loads");
                            let version = found.as_ref().map_or(CommitSeq::NONE, |found| found.1);
                            let token = found.and_then(|(chunk, _)| token_of(&chunk));
                            assert!(version >= known[a as usize], "key {a} went back to {version}");
                            read.lock().expect("no panic").push((a, version, token));
                        }
                    }
                }
            });
        }
    });
    let (written, read) = (written.into_inner().expect("no panic"), read.into_inner().expect("no panic"));
    assert!(read.len() > 100 && read.iter().any(|(_, version, _)| *version > CommitSeq::NONE));
    for (key, version, token) in read {
        let expected =
            if version == CommitSeq::NONE { Some(None) } else { written.get(&(key, version)).copied() };
        assert_eq!(expected, Some(token), "key {key} at version {version}");
    }
    assert_sound(world);
}

#[test]
fn every_read_is_of_an_acknowledged_commit_when_commits_are_queued() {
    // So small a cache that readers meet the queue.
    let options = WorldOptions { durability: Durability::Balanced, cache_bytes: 0, ..options() };
    every_read_is_of_an_acknowledged_commit_and_none_goes_back(
        &World::builder().options(&options).in_memory().expect("a world in memory"),
    );
    let disk = Disk::new();
    let world = World::builder().options(&options).create(disk.path()).expect("is created");
    every_read_is_of_an_acknowledged_commit_and_none_goes_back(&world);
}

fn calls_of_the_world_inside_a_transaction_do_not_wait_for_it(world: &World) {
    let ids = Ids::register(world);
    let (a, b) = (ids.at(0, 0, 0), ids.at(1, 0, 0));
    save(world, [(a, filled(world, ids.stone))]);
    let done = world.transaction(|tx| {
        tx.save(b, filled(world, ids.stone));
        assert!(world.load(a)?.is_some());
        assert!(world.load_in_background(&[a, b]).wait()?.iter().all(Result::is_ok));
        world.registry().register_dimension("game:end")?;
        world.opacity().fold(usize::MAX)?;
        world.opacity().rebuild()?;
        assert!(!world.quarantine().chunk(a)?);
        assert!(!world.quarantine().entity(uuid(1))?);
        assert!(!world.quarantine().delete(Space::ChunkL0, b"nothing", CommitSeq::new(1))?);
        world.content_hash(cg_store::view::Area::World)?;
        assert!(world.verify(VerifyDepth::Full, |_| {})?.is_ok());
        world.flush()?;
        Ok::<_, Error>(())
    });
    done.expect("none of it changed what was read");
    assert!(world.load(b).expect("loads").is_some());
    assert_sound(world);
    // Even closing does not wait; the transaction finds it closed.
    let error = world.transaction(|tx| {
        tx.delete(b);
        world.close()
    });
    assert!(matches!(error, Err(Error::Closed)), "{error:?}");
}

#[derive(Debug, Clone)]
enum Step {
    Save(usize, u16),
    Delete(usize),
    DeleteBox(usize, usize),
    Load(usize),
    Move(usize, ClusterTier),
    Fold,
    Rebuild,
    Register(u8),
    Reopen,
    Fail(usize),
}

const PLACES: usize = 10;

fn step() -> impl Strategy<Value = Step> {
    let place = 0..PLACES;
    prop_oneof![
        8 => (place.clone(), 0..6_u16).prop_map(|(place, cell)| Step::Save(place, cell)),
        2 => place.clone().prop_map(Step::Delete),
        1 => (place.clone(), place.clone()).prop_map(|(a, b)| Step::DeleteBox(a, b)),
        3 => place.clone().prop_map(Step::Load),
        2 => place.clone().prop_map(|place| Step::Move(place, ClusterTier::L1)),
        2 => place.clone().prop_map(|place| Step::Move(place, ClusterTier::L2)),
        1 => Just(Step::Fold),
        1 => Just(Step::Rebuild),
        1 => any::<u8>().prop_map(Step::Register),
        1 => Just(Step::Reopen),
        1 => place.prop_map(Step::Fail),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_world_on_disk_is_a_map(
        steps in prop::collection::vec(step(), 20..80),
        durability in prop::sample::select(&[Durability::Process, Durability::Balanced][..]),
        deltas in any::<bool>(),
    ) {
        let disk = Disk::new();
        let options = WorldOptions { durability, deltas, ..options() };
        let mut world = World::builder().options(&options).create(disk.path()).expect("is created");
        let ids = Ids::register(&world);
        let places: Vec<_> =
            [-17, -16, -1, 0, 1, 3, 4, 15, 16, 400].map(|x| ids.at(x, x % 3, -x)).into_iter().collect();
        let mut model: BTreeMap<ChunkAt, u16> = BTreeMap::new();
        let mut names: BTreeMap<String, BlockId> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Save(place, cell) => {
                    save(&world, [(places[place], marked(&world, &ids, cell))]);
                    model.insert(places[place], cell);
                }
                Step::Delete(place) => {
                    let deleted = world.transaction(|tx| { tx.delete(places[place]); Ok::<_, Error>(()) });
                    deleted.expect("deletes");
                    model.remove(&places[place]);
                }
                Step::DeleteBox(a, b) => {
                    let area = ChunkBox::new(places[a].pos, places[b].pos);
                    let inside: BTreeSet<_> =
                        model.keys().copied().filter(|at| area.contains(at.pos)).collect();
                    let deleted =
                        world.transaction(|tx| tx.delete_box(ids.overworld, area)).expect("deletes");
                    prop_assert_eq!(deleted.value, inside.len() as u64);
                    model.retain(|at, _| !inside.contains(at));
                }
                Step::Load(place) => {
                    let loaded = world.load(places[place]).expect("loads");
                    let expected = model.get(&places[place]).map(|cell| marked(&world, &ids, *cell));
                    prop_assert_eq!(loaded.as_deref(), expected.as_ref());
                }
                Step::Move(place, tier) => {
                    let at = places[place];
                    world.flush().expect("writes what is queued");
                    let has = |space, key: &[u8]| world.engine().get(space, key).expect("reads").is_some();
                    let is_live = model.contains_key(&at) && has(Space::ChunkL0, &key::chunk(at));
                    // What is cold must not lie below an older warm copy.
                    let warm = key::cluster(at.dimension, at.pos.cluster(ClusterTier::L1));
                    if is_live && (tier == ClusterTier::L1 || !has(Space::ClusterL1, &warm)) {
                        demote(&world, tier, &[at], false);
                    }
                }
                Step::Fold => drop(world.opacity().fold(2).expect("folds")),
                Step::Rebuild => {
                    world.opacity().rebuild().expect("draws");
                }
                Step::Register(n) => {
                    let name = format!("game:block_{}", n % 16);
                    let [block] = world.registry().register_blocks([name.as_str()]).expect("registers");
                    prop_assert_eq!(*names.entry(name).or_insert(block), block);
                }
                Step::Reopen => {
                    drop(world);
                    world = World::builder().options(&options).open(disk.path()).expect("opens");
                }
                Step::Fail(place) => {
                    let failed = world.transaction(|tx| {
                        tx.save(places[place], filled(&world, ids.stone));
                        tx.delete_box(ids.overworld, ChunkBox::EVERYTHING)?;
                        Err::<(), _>(Error::Nested)
                    });
                    prop_assert!(matches!(failed, Err(Error::Nested)));
                }
            }
        }
        for reopened in [false, true] {
            if reopened {
                drop(world);
                world = disk.open(&[]);
            }
            for at in &places {
                let expected = model.get(at).map(|cell| marked(&world, &ids, *cell));
                let loaded = world.load(*at).expect("loads");
                prop_assert_eq!(loaded.as_deref(), expected.as_ref());
            }
            for (name, block) in &names {
                prop_assert_eq!(world.catalog().block_id(name), Some(*block));
            }
            let report = world.verify(VerifyDepth::Full, |_| {}).expect("verifies");
            prop_assert!(report.is_ok(), "{:?}", report.findings);
            prop_assert_eq!(report.checked.get("chunks").copied().unwrap_or(0), model.len() as u64);
        }
    }
}
