//! Random histories of several threads, checked to be linearizable: every call takes effect at one moment between its
//! beginning and its end.
//!
//! Commits tell their place in the world's order, so nobody has to search for an order as the checker of Wing and Gong
//! does ("Testing and verifying concurrent objects", 1993): it is enough to check that
//! 1. commits are in the order of real time: one that had returned before another began has the smaller number;
//! 2. a transaction read what the commits before its own had left, and nothing newer;
//! 3. a walk over all keys saw the state after one commit, no older than those that had returned before it began;
//! 4. of each key, a load saw what was there at a moment of its own: never older than what was acknowledged or seen
//!    before it began, never from a commit that began after it had ended.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::long::size;
use cg_store::view::Area;
use cg_store::{WriteBatch, WriteTicket};
use cg_tiering::GameTick;

const KEYS: u64 = 64;
const THREADS: u64 = 4;

/// The value of a key: the transaction that wrote it; `None` if it is absent.
type Value = Option<u64>;

/// A call, with the moments of its beginning and its end.
#[derive(Debug, Clone)]
struct Call {
    begun: u64,
    ended: u64,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    Commit { seq: u64, read: Vec<(u64, Value)>, written: Vec<(u64, Value)> },
    Walk(Vec<Value>),
    Load(u64, Value),
}

/// A broken promise, in words.
type Broken = String;

/// Each key's values by the commits that wrote them; the first is that of the empty world.
struct Versions(Vec<BTreeMap<u64, Value>>);

impl Versions {
    fn of(history: &[Call]) -> Result<Self, Broken> {
        let mut keys = vec![BTreeMap::from([(0, None)]); KEYS as usize];
        for call in history {
            let What::Commit { seq, written, .. } = &call.what else { continue };
            for (key, value) in written {
                if keys[*key as usize].insert(*seq, *value).is_some() {
                    return Err(format!("two commits are number {seq}"));
                }
            }
        }
        Ok(Self(keys))
    }

    /// The value of a key after a commit.
    fn at(&self, key: u64, seq: u64) -> Value {
        *self.0[key as usize].range(..=seq).next_back().expect("the empty world is there").1
    }

    /// The first commit from one on after which a key holds a value.
    fn next(&self, key: u64, value: Value, from: u64) -> Option<u64> {
        if self.at(key, from) == value {
            return Some(from);
        }
        self.0[key as usize].range(from..).find(|(_, found)| **found == value).map(|(seq, _)| *seq)
    }
}

/// Checks a whole history.
fn check(history: &[Call]) -> Result<(), Broken> {
    let versions = Versions::of(history)?;
    check_order(history)?;
    for call in history {
        let What::Commit { seq, read, .. } = &call.what else { continue };
        for (key, value) in read {
            let before = versions.at(*key, seq - 1);
            if before != *value {
                return Err(format!("commit {seq} read {value:?} of key {key}, where {before:?} was"));
            }
        }
    }
    let walks = check_walks(history, &versions)?;
    (0..KEYS).try_for_each(|key| check_loads(key, history, &walks, &versions))
}

/// The commits with the moments of their beginnings and ends, by number.
fn commits(history: &[Call]) -> Vec<(u64, u64, u64)> {
    let numbers = history.iter().filter_map(|call| match call.what {
        What::Commit { seq, .. } => Some((seq, call.begun, call.ended)),
        What::Walk(_) | What::Load(..) => None,
    });
    let mut commits: Vec<_> = numbers.collect();
    commits.sort_unstable();
    commits
}

fn check_order(history: &[Call]) -> Result<(), Broken> {
    let mut ended_first = u64::MAX;
    for (seq, begun, ended) in commits(history).into_iter().rev() {
        if ended_first < begun {
            return Err(format!("a commit had returned before number {seq} began, and has a greater number"));
        }
        ended_first = ended_first.min(ended);
    }
    Ok(())
}

/// The state that each walk saw, by its place in the history.
fn check_walks(history: &[Call], versions: &Versions) -> Result<BTreeMap<usize, u64>, Broken> {
    let mut walks: Vec<_> = history
        .iter()
        .enumerate()
        .filter_map(|(index, call)| match &call.what {
            What::Walk(found) => Some((index, call, found)),
            What::Commit { .. } | What::Load(..) => None,
        })
        .collect();
    walks.sort_by_key(|(_, call, _)| call.begun);
    let commits = commits(history);
    let mut states: BTreeMap<usize, u64> = BTreeMap::new();
    for (index, call, found) in walks {
        let acknowledged = commits.iter().filter(|(.., ended)| *ended < call.begun).map(|(seq, ..)| *seq);
        let seen = states.iter().filter(|(other, _)| history[**other].ended < call.begun).map(|(_, s)| *s);
        let mut state = acknowledged.chain(seen).max().unwrap_or(0);
        let oldest = state;
        // The first state from there on in which all keys are as found.
        loop {
            let next =
                (0..KEYS).zip(found).try_fold(state, |state, (key, value)| versions.next(key, *value, state));
            match next {
                Some(next) if next == state => break,
                Some(next) => state = next,
                None => return Err(format!("a walk saw no state after commit {oldest}: {found:?}")),
            }
        }
        if let Some((seq, ..)) = commits.iter().find(|(seq, begun, _)| *seq <= state && *begun > call.ended) {
            return Err(format!("a walk saw commit {seq} before that began"));
        }
        states.insert(index, state);
    }
    Ok(states)
}

fn check_loads(
    key: u64,
    history: &[Call],
    walks: &BTreeMap<usize, u64>,
    versions: &Versions,
) -> Result<(), Broken> {
    let writes: Vec<_> = history
        .iter()
        .filter_map(|call| match &call.what {
            What::Commit { seq, written, .. } if written.iter().any(|(other, _)| *other == key) => {
                Some((*seq, call.begun, call.ended))
            }
            _ => None,
        })
        .collect();
    let begun: BTreeMap<u64, u64> = writes.iter().map(|(seq, begun, _)| (*seq, *begun)).collect();
    // What is known to have been there by a moment: it ends, or was acknowledged, at the first of each pair.
    let mut known: Vec<(u64, u64)> = writes.iter().map(|(seq, _, ended)| (*ended, *seq)).collect();
    known.extend(walks.iter().map(|(index, state)| {
        (history[*index].ended, *versions.0[key as usize].range(..=state).next_back().expect("the first").0)
    }));
    let mut loads: Vec<_> = history
        .iter()
        .filter_map(|call| match call.what {
            What::Load(of, value) if of == key => Some((call, value)),
            _ => None,
        })
        .collect();
    loads.sort_by_key(|(call, _)| call.begun);
    for (call, value) in loads {
        let oldest =
            known.iter().filter(|(ended, _)| *ended < call.begun).map(|(_, seq)| *seq).max().unwrap_or(0);
        let Some(seen) = versions.next(key, value, oldest) else {
            return Err(format!("a load of key {key} saw {value:?}, which was gone since commit {oldest}"));
        };
        if begun.get(&seen).is_some_and(|begun| *begun > call.ended) {
            return Err(format!("a load of key {key} saw commit {seen} before that began"));
        }
        known.push((call.ended, seen));
    }
    Ok(())
}

/// Numbers from a seed, the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Has threads read and write a world, while chunks are moved between tiers and dropped from memory.
fn record(world: &World, steps: u64) -> Vec<Call> {
    let ids = Ids::register(world);
    // Two cubes of 4³, in two cubes of 16³.
    let place = |n: u64| ids.at(((n >> 4) & 1) as i64 + 15, (n >> 5) as i64, (n & 15) as i64);
    let index: BTreeMap<ChunkAt, u64> = (0..KEYS).map(|n| (place(n), n)).collect();
    let value_of = |chunk: &Chunk| -> Value {
        chunk.side(ids.light).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("8 bytes")))
    };
    let (clock, history) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let (start, is_over) = (Barrier::new(THREADS as usize), AtomicBool::new(false));
    let one_thread = |thread: u64| {
        let (mut dice, mut calls, mut submitted) = (Dice(thread + 1), Vec::new(), Vec::new());
        start.wait();
        for step in 0..steps {
            if step == steps / 2 {
                wait_for_a_move(world);
            }
            let token = thread * steps + step + 1;
            let with_token = || {
                let mut chunk = filled(world, ids.air);
                chunk.set_side(ids.light, token.to_le_bytes().to_vec());
                chunk
            };
            let begun = clock.fetch_add(1, SeqCst);
            let what = match dice.below(10) {
                0..4 => {
                    let key = dice.below(KEYS);
                    let found = world.load(place(key)).expect("loads");
                    Some(What::Load(key, found.as_deref().and_then(value_of)))
                }
                4 => {
                    let mut found = vec![None; KEYS as usize];
                    let walked = world.read_view(|view| {
                        view.for_each_decoded(Area::World, |chunk| {
                            let (at, chunk) = chunk.expect("is sound");
                            found[index[&at] as usize] = value_of(&chunk);
                            ControlFlow::<()>::Continue(())
                        })
                    });
                    assert_eq!(walked.expect("walks"), None);
                    Some(What::Walk(found))
                }
                5 => {
                    let keys = (0..=dice.below(3)).map(|_| dice.below(KEYS));
                    let written: BTreeMap<u64, Value> = keys.map(|key| (key, Some(token))).collect();
                    let ticket = submit(world, written.keys().map(|key| (place(*key), with_token())));
                    submitted.push((begun, clock.fetch_add(1, SeqCst), ticket, written));
                    continue;
                }
                6..8 => {
                    let mut written: BTreeMap<u64, Value> = BTreeMap::new();
                    for _ in 0..=dice.below(3) {
                        written.insert(dice.below(KEYS), Some(token));
                    }
                    commit(world, Vec::new(), written, |tx, key| tx.save(place(key), with_token()))
                }
                kind => {
                    // Reads some keys, and writes or deletes some: the guard of what it read is what is tested.
                    let reads: Vec<_> = (0..=dice.below(2)).map(|_| dice.below(KEYS)).collect();
                    let key = dice.below(KEYS);
                    let value = (kind == 8).then_some(token);
                    let read = |tx: &mut cg_store::Transaction<'_>| {
                        let read =
                            |key: &u64| Ok((*key, tx.load(place(*key))?.as_deref().and_then(value_of)));
                        reads.iter().map(read).collect::<Result<Vec<_>, Error>>()
                    };
                    let done = world.transaction(|tx| {
                        let mut found = read(tx)?;
                        // A deletion of nothing is no commit.
                        found.push((key, tx.load(place(key))?.as_deref().and_then(value_of)));
                        match value {
                            Some(_) => tx.save(place(key), with_token()),
                            None => tx.delete(place(key)),
                        }
                        Ok::<_, Error>(found)
                    });
                    finish(done.map(|done| (done.seq.get(), done.value)), BTreeMap::from([(key, value)]))
                }
            };
            let ended = clock.fetch_add(1, SeqCst);
            calls.extend(what.map(|what| Call { begun, ended, what }));
        }
        let accepted = submitted.into_iter().map(|(begun, ended, ticket, written)| {
            let seq = ticket.wait().expect("is accepted").seq.get();
            let what = What::Commit { seq, read: Vec::new(), written: written.into_iter().collect() };
            Call { begun, ended, what }
        });
        calls.extend(accepted);
        history.lock().expect("no panic").extend(calls);
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || one_thread(thread))).collect();
        let disturb = scope.spawn(|| disturb(world, &is_over));
        let ended: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        is_over.store(true, SeqCst);
        disturb.join().expect("no panic");
        assert!(ended.iter().all(Result::is_ok));
    });
    history.into_inner().expect("no panic")
}

/// Moves chunks between tiers and empties the cache until all is over.
fn disturb(world: &World, is_over: &AtomicBool) {
    let mut now = 0;
    while !is_over.load(SeqCst) {
        now += 40 * 60 * 20;
        world.tick(GameTick::new(now), &[], Duration::from_millis(2)).expect("ticks");
        world.cache().clear();
        thread::sleep(Duration::from_micros(300));
    }
}

/// Where the machine is busy, chunks begin to go to other tiers late.
fn wait_for_a_move(world: &World) {
    let begun = Instant::now();
    while world.metrics().stats.moves == 0 && begun.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(1));
    }
}

fn submit(world: &World, chunks: impl Iterator<Item = (ChunkAt, Chunk)>) -> WriteTicket {
    let mut batch = WriteBatch::new();
    for (at, chunk) in chunks {
        batch.save(at, chunk);
    }
    world.submit(batch).expect("is taken")
}

fn commit(
    world: &World,
    read: Vec<(u64, Value)>,
    written: BTreeMap<u64, Value>,
    write: impl Fn(&mut cg_store::Transaction<'_>, u64),
) -> Option<What> {
    let done = world.transaction(|tx| {
        for key in written.keys() {
            write(tx, *key);
        }
        Ok::<_, Error>(())
    });
    finish(done.map(|done| (done.seq.get(), read)), written)
}

/// The effect of a transaction; nothing if it lost against another one, or changed nothing.
fn finish(done: Result<(u64, Vec<(u64, Value)>), Error>, written: BTreeMap<u64, Value>) -> Option<What> {
    match done {
        Ok((_, read))
            if written.iter().all(|(key, value)| value.is_none() && read.contains(&(*key, None))) =>
        {
            None
        }
        Ok((seq, read)) => Some(What::Commit { seq, read, written: written.into_iter().collect() }),
        Err(Error::Conflict { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

fn check_world(world: &World, steps: u64) {
    let history = record(world, steps);
    let count = |wanted: fn(&What) -> bool| history.iter().filter(|call| wanted(&call.what)).count() as u64;
    assert!(count(|what| matches!(what, What::Commit { .. })) > steps);
    assert!(count(|what| matches!(what, What::Walk(_))) > steps / 8);
    if let Err(broken) = check(&history) {
        panic!("{broken}");
    }
    let metrics = world.metrics().stats;
    assert!(metrics.moves > 0 && metrics.conflicts > 0, "nothing got in the way: {metrics:?}");
    assert_sound(world);
}

fn modes() -> [WorldOptions; 3] {
    [
        options(),
        // So small a cache that readers meet the queue.
        WorldOptions { durability: Durability::Balanced, cache_bytes: 0, ..options() },
        WorldOptions { durability: Durability::Balanced, deltas: true, ..options() },
    ]
}

#[test]
fn histories_in_memory_are_linearizable() {
    for options in modes() {
        check_world(&World::builder().options(&options).in_memory().expect("in memory"), size(1_500, 30_000));
    }
}

#[test]
fn histories_on_disk_are_linearizable() {
    for options in modes() {
        let disk = Disk::new();
        check_world(
            &World::builder().options(&options).create(disk.path()).expect("is created"),
            size(400, 8_000),
        );
    }
}

/// The checker itself: each of these histories breaks one rule.
#[test]
fn histories_that_are_not_linearizable_are_found() {
    let call = |begun, ended, what| Call { begun, ended, what };
    let put = |seq, key| What::Commit { seq, read: vec![], written: vec![(key, Some(seq))] };
    let walk = |values: &[(usize, u64)]| {
        let mut all = vec![None; KEYS as usize];
        for (key, value) in values {
            all[*key] = Some(*value);
        }
        What::Walk(all)
    };
    let two = [call(0, 1, put(1, 0)), call(2, 3, put(2, 0))];
    let with = |last: Call| [&two[..], &[last]].concat();
    for (history, expected) in [
        (with(call(4, 5, What::Load(0, Some(2)))), None),
        (with(call(0, 5, What::Load(0, None))), None),
        (
            vec![call(0, 1, put(2, 0)), call(2, 3, put(1, 0))],
            Some("a commit had returned before number 1 began, and has a greater number"),
        ),
        (
            with(call(4, 5, What::Load(0, Some(1)))),
            Some("a load of key 0 saw Some(1), which was gone since commit 2"),
        ),
        (with(call(0, 1, What::Load(0, Some(2)))), Some("a load of key 0 saw commit 2 before that began")),
        ([&two[..], &[call(4, 5, walk(&[(0, 1)]))]].concat(), Some("a walk saw no state after commit 2")),
        (
            vec![call(0, 9, put(1, 0)), call(0, 1, put(2, 1)), call(2, 3, walk(&[(1, 2)]))],
            Some("a walk saw no state after commit 2"),
        ),
        (
            vec![
                call(0, 1, put(1, 0)),
                call(2, 3, What::Commit { seq: 2, read: vec![(0, None)], written: vec![(1, Some(2))] }),
            ],
            Some("commit 2 read None of key 0, where Some(1) was"),
        ),
        (
            vec![call(0, 9, put(1, 0)), call(1, 2, What::Load(0, Some(1))), call(3, 4, What::Load(0, None))],
            Some("a load of key 0 saw None, which was gone since commit 1"),
        ),
    ] {
        let found = check(&history).err();
        let as_expected = match (&found, expected) {
            (Some(found), Some(expected)) => found.starts_with(expected),
            (found, expected) => found.is_none() && expected.is_none(),
        };
        assert!(as_expected, "{found:?}, expected {expected:?}");
    }
}
