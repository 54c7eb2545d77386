//! Transactions of many threads at once.

use super::*;

over_both_engines! {
    counters_are_never_lost_between_threads
    readers_never_see_half_a_transaction
    blind_saves_of_many_threads_keep_the_map_of_opacity_right
}

fn counters_are_never_lost_between_threads(world: &World) {
    const THREADS: u64 = 4;
    const EACH: u64 = 60;
    const COUNTERS: u64 = 3;
    let ids = Ids::register(world);
    let place = |n: u64| ids.at(n as i64, 0, 0);
    let cell = LocalPos::new(0, 0, 0);
    save(world, (0..COUNTERS).map(|n| (place(n), filled(world, ids.machine))));
    let start = Barrier::new(THREADS as usize);
    // For every counter: which commit gave it which value.
    let history: Mutex<Vec<(u64, CommitSeq, u64)>> = Mutex::default();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (start, history, ids) = (&start, &history, &ids);
            scope.spawn(move || {
                start.wait();
                for round in 0..EACH {
                    let counter = (thread * 31 + round * 17) % COUNTERS;
                    let committed = world.transact(|tx| {
                        let at = place(counter);
                        let chunk = tx.load(at)?.expect("was saved");
                        let bytes = chunk.component(cell.into(), ids.power).expect("a machine has power");
                        let value = u32::from_le_bytes(bytes.try_into().expect("four bytes")) + 1;
                        tx.set_component(at, cell.into(), ids.power, &value.to_le_bytes())?;
                        Ok::<_, Error>(value)
                    });
                    let committed = committed.expect("nothing but conflicts");
                    let step = (counter, committed.seq, committed.value.into());
                    history.lock().expect("no panic").push(step);
                    // A read that begins after the commit returned sees it or a later one.
                    let (chunk, version) =
                        world.load_versioned(place(counter)).expect("loads").expect("is there");
                    let bytes = chunk.component(cell.into(), ids.power).expect("a machine has power");
                    let seen = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
                    assert!(version >= committed.seq && seen >= committed.value);
                }
            });
        }
    });
    // The values of a counter grow by one in the order of the commits: each saw the one before it.
    let mut history = history.into_inner().expect("no panic");
    history.sort_unstable();
    let mut expected = BTreeMap::new();
    for (counter, _, value) in history {
        let next = expected.entry(counter).or_insert(0);
        *next += 1;
        assert_eq!(value, *next, "counter {counter}");
    }
    assert_eq!(expected.values().sum::<u64>(), THREADS * EACH);
    assert_sound(world);
}

fn readers_never_see_half_a_transaction(world: &World) {
    let ids = Ids::register(world);
    // The pair lies in two shards, two cubes and two rows.
    let pair = [ids.at(0, 0, 0), ids.at(100, -3, 7)];
    let write = |value: u16| save(world, pair.map(|at| (at, marked(world, &ids, value))));
    write(0);
    let done = AtomicU64::new(0);
    thread::scope(|scope| {
        let (done, ids) = (&done, &ids);
        for _ in 0..2 {
            scope.spawn(move || {
                let mut seen = CommitSeq::NONE;
                while done.load(Ordering::Acquire) == 0 {
                    let read = world.transaction(|tx| {
                        let [a, b] = pair.map(|at| tx.load(at));
                        Ok::<_, Error>((a?.expect("is there"), b?.expect("is there")))
                    });
                    match read {
                        Ok(read) => assert_eq!(read.value.0, read.value.1, "half of a transaction"),
                        Err(Error::Conflict { .. }) => continue,
                        Err(error) => panic!("{error}"),
                    }
                    // What one thread reads never goes back.
                    let (_, version) = world.load_versioned(pair[0]).expect("loads").expect("is there");
                    assert!(version >= seen);
                    seen = version;
                    let sum = world.content_hash(cg_store::view::Area::Box(
                        ids.overworld,
                        ChunkBox::new(pair[0].pos, pair[0].pos),
                    ));
                    sum.expect("a scan beside commits");
                }
            });
        }
        for value in 1..200 {
            write(value);
        }
        done.store(1, Ordering::Release);
    });
    assert_sound(world);
}

fn blind_saves_of_many_threads_keep_the_map_of_opacity_right(world: &World) {
    let ids = Ids::register(world);
    let a = ids.at(0, 0, 0);
    let repeated = || world.metrics().stats.preparations_repeated;
    // Usually the first time is enough.
    for _ in (0..100).take_while(|_| repeated() == 0) {
        save_blindly(world, &ids, a);
        let chunk = world.load(a).expect("loads").expect("is there");
        for x in 0..16 {
            for z in 0..16 {
                let column = world.opacity().column(ids.overworld, x, z).expect("reads");
                for y in 0..16 {
                    let cell = LocalPos::new(x as u8, y as u8, z as u8);
                    assert_eq!(column.is_opaque(y), chunk.block(cell) == ids.stone, "{x} {y} {z}");
                }
            }
        }
    }
    assert!(repeated() > 0, "no commit met another one: the test shows nothing");
    assert_sound(world);
}

/// Four threads save a chunk without having read it. Some saves are equal to what another thread has just saved.
fn save_blindly(world: &World, ids: &Ids, at: ChunkAt) {
    let start = Barrier::new(4);
    thread::scope(|scope| {
        for thread in 0..4_u16 {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                for round in 0..50 {
                    save(world, [(at, marked(world, ids, (round % 3) * 256 + thread % 2))]);
                }
            });
        }
    });
}
