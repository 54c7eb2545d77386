//! Transactions that are too large for one batch.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::surviving::{Fuse, Surviving};
use cg_format::entity::EntityPos;
use cg_format::record::Record;
use cg_format::staged::{Intent, PartWriter, StagedOp};
use cg_format::{RecordId, Space, key};
use cg_store::engine::{EngineError, ReadView as _};
use cg_store::{Area, ContentHash, StoreLimits};
use cg_tiering::GameTick;
use expect_test::{Expect, expect};

/// Chunks that the transactions below write.
const CHUNKS: i64 = 60;
/// A batch takes this much, and a transaction below about ten times as much.
const SMALL: StoreLimits = StoreLimits {
    chunk_bytes: 1 << 20,
    entity_bytes: 1 << 20,
    property_bytes: 1 << 20,
    object_bytes: 1 << 20,
    record_bytes: 1 << 20,
    batch_bytes: 6000,
};

fn limited(batch_bytes: u64) -> WorldOptions {
    let limits = StoreLimits { batch_bytes, ..SMALL };
    WorldOptions { limits, deltas: true, cache_bytes: 0, ..options() }
}

/// What is there before a large transaction: chunks that will be changed in every way, one with a delta.
fn begin<E: Engine>(world: &World<E>) -> Ids {
    let ids = Ids::register(world);
    save(world, (0..CHUNKS / 2).map(|x| (ids.at(x, 0, 0), marked(world, &ids, x as u16))));
    for x in [3, 9] {
        let pos = ids.at(x, 0, 0).pos.block(LocalPos::new(1, 2, 3));
        world.transaction(|tx| tx.set_block(ids.overworld, pos, ids.glass)).expect("sets");
    }
    let begun = world.transaction(|tx| {
        tx.put_entity(uuid(1), ids.cow_in(ids.at(0, 0, 0)));
        tx.put_object(b"gone", vec![1])?;
        tx.put_record(record(1).0, record_at(&ids, 5));
        Ok::<_, Error>(())
    });
    begun.expect("commits");
    ids
}

fn record(n: u128) -> (RecordId, u128) {
    (RecordId::new(uuid::Uuid::from_u128(n)), n)
}

fn record_at(ids: &Ids, x: i64) -> Record {
    let position = EntityPos::new(ids.overworld, BlockPos::new(x, 0, 0), [0.0; 3]).expect("inside");
    Record::new(position, "game:mark", 0, vec![x as u8; 40]).expect("is short")
}

/// Changes everything that a transaction can change, much of it.
fn change<E: Engine>(
    world: &World<E>,
    ids: &Ids,
    token: u8,
    durability: Durability,
) -> Result<cg_store::Committed<(), E>, Error> {
    world.transaction_at(durability, |tx| {
        let schema = tx.catalog().current_schema();
        for x in 0..CHUNKS {
            match x {
                1 | 9 => tx.delete(ids.at(x, 0, 0)),
                // Small enough for a delta.
                4 | 5 => drop(tx.set_block(ids.overworld, BlockPos::new(16 * x, 1, 1), ids.stone)?),
                _ => {
                    let mut chunk = Chunk::filled(ids.glass, &schema)?;
                    chunk.set_side(ids.light, vec![token; 300]);
                    tx.save(ids.at(x, 0, 0), chunk);
                }
            }
            if x > 10 {
                tx.put_entity(uuid(x as u128), ids.cow_in(ids.at(x, 0, 0)));
                tx.put_object(format!("object/{x}"), vec![token; 50])?;
                tx.put_record(record(x as u128).0, record_at(ids, x));
                tx.set_property(Property::Named(name(&format!("game:p{x}"))), Some(vec![token; 30]));
            }
        }
        tx.delete_entity(uuid(1));
        tx.delete_object(b"gone")?;
        // From one leaf into another.
        tx.put_record(record(1).0, record_at(ids, 5000));
        Ok(())
    })
}

/// The rows of a world but for its limits.
fn contents<E: Engine>(world: &World<E>) -> BTreeMap<(Family, Vec<u8>), Vec<u8>> {
    let mut rows = rows(world);
    rows.remove(&(Family::WorldMeta, b"limits".to_vec()));
    rows
}

#[track_caller]
fn assert_nothing_is_left<E: Engine>(world: &World<E>) {
    let left =
        rows(world).into_keys().filter(|(family, key)| *family == Family::Index && key.first() == Some(&4));
    assert_eq!(left.count(), 0, "parts or intents are left");
}

fn ends_as_what_takes_one_batch<E: Engine>(world_of: impl Fn(&WorldOptions) -> World<E>) {
    for durability in
        [Durability::Process, Durability::Safe, Durability::SafeBatch, Durability::Fast, Durability::Balanced]
    {
        let worlds = [1 << 20, SMALL.batch_bytes].map(|batch_bytes| {
            let world = world_of(&limited(batch_bytes));
            let ids = begin(&world);
            let committed = change(&world, &ids, 7, durability).expect("commits");
            committed.durable().wait().expect("is synced");
            world.flush().expect("is written");
            assert_eq!(committed.seq, world.last_commit());
            world
        });
        let [one, many] = &worlds;
        assert!(contents(one) == contents(many), "{durability:?}");
        assert_nothing_is_left(many);
        assert_eq!([one, many].map(|world| world.stats().commits_staged), [0, 2]);
        assert_eq!(one.content_hash().expect("hashes"), many.content_hash().expect("hashes"));
        assert_sound(many);
        // What memory knows of deltas and opacity is right too.
        let ids = Ids::of(many);
        for world in &worlds {
            change(world, &ids, 8, durability).expect("commits");
            world.flush().expect("is written");
            while world.fold_opacity(10).expect("folds") > 0 {}
        }
        assert!(contents(one) == contents(many), "{durability:?}, again");
    }
}

#[test]
fn what_takes_many_batches_ends_as_what_takes_one() {
    ends_as_what_takes_one_batch(|options| World::temporary(&[], options).expect("a world in memory"));
}

#[test]
fn what_takes_many_batches_ends_as_what_takes_one_on_disk() {
    let disk = Disk::new();
    let number = AtomicU64::new(0);
    ends_as_what_takes_one_batch(|options| {
        let dir = disk.root().join(format!("world{}", number.fetch_add(1, Ordering::Relaxed)));
        World::create(dir, &[], options).expect("is created")
    });
}

/// The first numbers, and then some.
fn few() -> impl Iterator<Item = i64> {
    (0..8).chain((8..).step_by(5))
}

/// The power goes at one commit after the other; the world that is opened again is as before or as after.
#[test]
fn whichever_commit_is_the_last_the_world_opens_as_before_or_as_after() {
    let hash = |world: &World<Surviving>| -> ContentHash { world.content_hash().expect("hashes") };
    let whole = World::temporary(&[], &limited(1 << 20)).expect("a world in memory");
    change(&whole, &begin(&whole), 7, Durability::Process).expect("commits");
    let after = whole.content_hash().expect("hashes");
    let (mut seen_before, mut seen_after) = (0, 0);
    for commits in few() {
        let fuse = Fuse::new();
        let below = Surviving::new(&fuse);
        let open =
            || World::over(below.clone(), uuid::Uuid::from_u128(5), |_| Ok(()), &limited(SMALL.batch_bytes));
        let world = open().expect("a world");
        let ids = begin(&world);
        let before = hash(&world);
        fuse.set(commits);
        let changed = change(&world, &ids, 7, Durability::Process);
        let is_burnt = fuse.is_burnt();
        assert_eq!(changed.is_ok(), !is_burnt, "{changed:?}");
        drop((changed, world));

        // It goes once more while the world is opened.
        fuse.set(2);
        drop(open());
        fuse.set(i64::MAX);
        let world = open().expect("opens");
        let now = hash(&world);
        assert_nothing_is_left(&world);
        assert_sound(&world);
        if now == before {
            seen_before += 1;
            change(&world, &ids, 7, Durability::Process).expect("commits");
        } else {
            seen_after += 1;
        }
        assert!(seen_after == 0 || now != before, "what was committed is gone again");
        assert_eq!(hash(&world), after, "{commits} commits");
        if !is_burnt {
            break;
        }
    }
    assert!(seen_before > 5 && seen_after > 5, "{seen_before} and {seen_after}");
}

/// A damaged block that no scan gets past lies where the intent does, and hides it from nobody who asks for it by its key.
#[test]
fn damage_before_an_intent_hides_no_commit() {
    let whole = World::temporary(&[], &limited(1 << 20)).expect("a world in memory");
    change(&whole, &begin(&whole), 7, Durability::Process).expect("commits");
    for commits in few() {
        let fuse = Fuse::new();
        let below = Surviving::new(&fuse);
        let open =
            || World::over(below.clone(), uuid::Uuid::from_u128(5), |_| Ok(()), &limited(SMALL.batch_bytes));
        let world = open().expect("a world");
        let ids = begin(&world);
        fuse.set(commits);
        let changed = change(&world, &ids, 7, Durability::Process);
        assert!(changed.is_err(), "no commit is cut off behind its intent");
        drop((changed, world));
        fuse.set(i64::MAX);
        let intent = key::intent(below.last_commit().get());
        if below.get(Space::Intent, &intent).expect("reads").is_some() {
            below.spoil(Family::Index, intent);
            let world = open().expect("opens");
            assert_eq!(world.content_hash().expect("hashes"), whole.content_hash().expect("hashes"));
            assert_sound(&world);
            return;
        }
    }
}

/// A world whose engine writes a batch only when it is let, once the gate is shut.
struct Stepped {
    world: World<MemEngine>,
    ids: Ids,
    steps: Arc<Mutex<Option<Receiver<()>>>>,
}

impl Stepped {
    fn new() -> Self {
        let steps: Arc<Mutex<Option<Receiver<()>>>> = Arc::default();
        let engine = MemEngine::new().with_fault({
            let steps = Arc::clone(&steps);
            move |_| {
                let _next = steps.lock().expect("no panic").as_ref().map(Receiver::recv);
                None
            }
        });
        let world =
            World::temporary_over(engine, &[], &limited(SMALL.batch_bytes)).expect("a world in memory");
        let ids = begin(&world);
        Self { world, ids, steps }
    }

    /// From now on each batch waits for a word. When the sender is gone, all go through.
    fn shut(&self) -> Sender<()> {
        let (step, steps) = channel();
        *self.steps.lock().expect("no panic") = Some(steps);
        step
    }

    /// Lets batches through until the rows of a commit begin to change.
    fn until_half_is_there(&self, step: &Sender<()>) {
        let is_there =
            |at| self.world.engine().get(Space::ChunkL0, &key::chunk(at)).expect("reads").is_some();
        // Neither was stored before.
        while !is_there(self.ids.at(CHUNKS / 2, 0, 0)) {
            step.send(()).expect("somebody waits");
            thread::sleep(Duration::from_millis(2));
        }
        assert!(!is_there(self.ids.at(CHUNKS - 1, 0, 0)), "all of it is there");
    }
}

#[test]
fn readers_see_all_of_it_while_half_is_in_the_rows_and_a_tick_makes_way() {
    let stepped = Stepped::new();
    let Stepped { world, ids, .. } = &stepped;
    let step = stepped.shut();
    let committed = change(world, ids, 7, Durability::Fast).expect("is accepted");
    stepped.until_half_is_there(&step);
    // Single reads: memory has all of it.
    let all: Vec<_> = (0..CHUNKS).map(|x| ids.at(x, 0, 0)).collect();
    let sides = |found: Vec<Result<Option<Arc<Chunk>>, Error>>| {
        let side = |found: Result<Option<Arc<Chunk>>, Error>| {
            Some(found.expect("loads")?.side(ids.light).map(<[u8]>::to_vec))
        };
        found.into_iter().filter_map(side).flatten().filter(|side| side == &[7; 300]).count()
    };
    assert_eq!(sides(world.load_many(&all)), CHUNKS as usize - 4);
    assert_eq!(sides(all.iter().map(|at| world.load(*at)).collect()), CHUNKS as usize - 4);
    assert_eq!(world.entity(uuid(1)).expect("reads"), None);
    assert!(world.entity(uuid(CHUNKS as u128 - 1)).expect("reads").is_some());
    assert_eq!(world.records().get(record(1).0).expect("reads"), Some(record_at(ids, 5000)));
    // It survives the process already, though walks wait for it.
    assert!(committed.durable().has_reached(Level::Process));
    let begun = Instant::now();
    let report = world.tick(GameTick::new(1), &[], Duration::from_secs(5)).expect("ticks");
    assert!(report.made_way && report.work_left && begun.elapsed() < Duration::from_secs(4), "{report:?}");
    let walks: [Box<dyn Fn() -> u64 + Send + Sync + '_>; 4] = [
        Box::new(|| {
            let mut count = 0;
            let walked = world.for_each_chunk(Area::World, |_| {
                count += 1;
                ControlFlow::<()>::Continue(())
            });
            assert_eq!(walked.expect("walks"), None);
            count
        }),
        Box::new(|| world.verify(VerifyDepth::Full, |_| {}).expect("verifies").checked["chunks"]),
        Box::new(|| world.objects().list("object/", None, 1000).expect("lists").entries.len() as u64 + 9),
        Box::new(|| world.census().expect("counts").records + 8),
    ];
    thread::scope(|scope| {
        let (sender, ended) = channel();
        for walk in &walks {
            let sender = sender.clone();
            scope.spawn(move || sender.send(walk()));
        }
        assert!(ended.recv_timeout(Duration::from_millis(100)).is_err(), "who wants one state waits");
        drop(step);
        for _ in &walks {
            assert_eq!(ended.recv_timeout(Duration::from_secs(60)).expect("ends"), CHUNKS as u64 - 2);
        }
    });
    let report = world.tick(GameTick::new(2), &[], Duration::from_secs(5)).expect("ticks");
    assert!(!report.made_way, "{report:?}");
    assert_nothing_is_left(world);
    assert_sound(world);
}

/// One writer changes all chunks again and again, in many batches each time; readers never see two tokens at once.
fn nobody_sees_half<E: Engine>(world: &World<E>) {
    let ids = begin(world);
    change(world, &ids, 0, Durability::Fast).expect("commits");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for reader in 0..3 {
            let (world, ids, is_over) = (world, &ids, &is_over);
            scope.spawn(move || {
                let mut last = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let mut tokens = Vec::new();
                    let see = |chunk: &Chunk, tokens: &mut Vec<u8>| {
                        tokens.extend(chunk.side(ids.light).and_then(|side| side.first().copied()));
                    };
                    match reader {
                        0 => {
                            let walked = world.for_each_decoded(Area::World, |stored| {
                                see(&stored.expect("is sound").1, &mut tokens);
                                ControlFlow::<()>::Continue(())
                            });
                            walked.expect("walks");
                        }
                        1 => {
                            let read = world.still(|still| {
                                use cg_format::ChunkSource as _;
                                let all: Vec<_> = (0..CHUNKS).map(|x| ids.at(x, 0, 0)).collect();
                                for found in still.lookup_many(&all) {
                                    if let Some(chunk) = found.expect("loads").here() {
                                        see(&chunk, &mut tokens);
                                    }
                                }
                            });
                            read.expect("reads");
                        }
                        _ => {
                            let listed = world.objects().for_each("object/", |object| {
                                tokens.push(object.expect("is sound").2[0]);
                                ControlFlow::<()>::Continue(())
                            });
                            listed.expect("lists");
                        }
                    }
                    assert!(tokens.len() > 40, "reader {reader} sees {tokens:?}");
                    assert!(
                        tokens.iter().all(|token| *token == tokens[0]),
                        "reader {reader} sees {tokens:?}"
                    );
                    assert!(tokens[0] >= last, "what was seen is gone");
                    last = tokens[0];
                }
            });
        }
        for token in 1..40 {
            loop {
                match change(world, &ids, token, Durability::Fast) {
                    Err(Error::Busy { .. }) => world.wait_for_room().expect("is written"),
                    changed => break drop(changed.expect("commits")),
                }
            }
        }
        world.flush().expect("is written");
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(world.stats().commits_staged >= 39);
    assert_sound(world);
}

#[test]
fn nobody_sees_half_of_it_in_memory() {
    nobody_sees_half(&World::temporary(&[], &limited(SMALL.batch_bytes)).expect("a world in memory"));
}

#[test]
fn nobody_sees_half_of_it_on_disk() {
    let disk = Disk::new();
    nobody_sees_half(&World::create(disk.path(), &[], &limited(SMALL.batch_bytes)).expect("is created"));
}

/// A closed world that holds the intent of a commit and its two parts, and the rows of the object that they put.
fn with_intent(disk: &Disk) -> u64 {
    let world = disk.create(&[]);
    let seq = world.last_commit();
    drop(world);
    let seal = |row: &[u8], bytes: Vec<u8>| {
        Draft::plain(Codec::None, 0, move |out| out.extend(bytes)).seal(Space::Intent, row, seq)
    };
    let raw = disk.raw();
    let mut intent = Intent::default();
    for part in 0..2 {
        let mut writer = PartWriter::new();
        let object = cg_format::object::ObjectView { version: 0, bytes: Some(b"staged") };
        let name = format!("object/{part}");
        let row =
            Draft::plain(Codec::None, 0, |out| object.encode(out)).seal(Space::Object, name.as_bytes(), seq);
        writer.add(&StagedOp::Put { space: Space::Object, key: name.as_bytes(), row: &row });
        let bytes = writer.into_bytes();
        intent.add(&bytes);
        raw.put(Family::Index, key::staged(seq, part), &seal(&key::staged(seq, part), bytes));
    }
    let mut bytes = Vec::new();
    intent.encode(&mut bytes);
    raw.put(Family::Index, key::intent(seq), &seal(&key::intent(seq), bytes));
    seq
}

#[track_caller]
fn refused(disk: &Disk, open: impl FnOnce() -> Result<World<RocksEngine>, Error>, expected: Expect) {
    let before = disk.files();
    let error = open().expect_err("is refused");
    assert!(matches!(error, Error::Open(_)), "{error:?}");
    expected.assert_eq(&error.to_string());
    // An open leaves a line in RocksDB's own log.
    let data = |files: BTreeMap<PathBuf, Vec<u8>>| -> BTreeMap<_, _> {
        files
            .into_iter()
            .filter(|(path, _)| {
                !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("LOG"))
            })
            .collect()
    };
    assert!(data(before) == data(disk.files()), "what is refused changes nothing");
}

#[test]
fn a_world_with_an_intent_is_carried_out_by_who_may_write_and_refused_to_who_may_not() {
    let disk = Disk::new();
    let seq = with_intent(&disk);
    refused(
        &disk,
        || World::open_read_only(disk.path(), &options()),
        expect![
            "commit 2 is not carried out to its end, and nothing may be written; open the world for writing once"
        ],
    );
    let world = disk.open(&[]);
    assert_eq!(world.last_commit(), seq);
    let listed = world.objects().list("object/", None, 9).expect("lists");
    assert_eq!(listed.entries.len(), 2);
    assert_nothing_is_left(&world);
    assert_sound(&world);
}

#[test]
fn damage_behind_an_intent_is_told_by_its_row() {
    let disk = Disk::new();
    let seq = with_intent(&disk);
    let part = key::staged(seq, 1);
    let row = disk.raw().get(Family::Index, part);
    disk.raw().flip(Family::Index, part, 60);
    refused(
        &disk,
        || World::open(disk.path(), &[], &options()),
        expect![
            "a commit is to be carried out, and row 04000000000000000200000001 of index is damaged: frame: checksum is 0x11bacab1, the bytes give 0xd5c4fff0: damaged, or stored under a wrong key (at byte 4); restore a checkpoint"
        ],
    );
    disk.raw().delete(Family::Index, part);
    refused(
        &disk,
        || World::open(disk.path(), &[], &options()),
        expect![
            "a commit is to be carried out, and row 04000000000000000200000001 of index is damaged: part 1 of 2 of commit 2 is missing; restore a checkpoint"
        ],
    );
    disk.raw().put(Family::Index, part, &row);
    disk.raw().flip(Family::Index, key::intent(seq), 30);
    refused(
        &disk,
        || World::open_read_only(disk.path(), &options()),
        expect![
            "a commit is to be carried out, and row 040000000000000002 of index is damaged: frame: checksum is 0x2ba6e2e1, the bytes give 0xdecd9fd7: damaged, or stored under a wrong key (at byte 4); restore a checkpoint"
        ],
    );
    disk.raw().flip(Family::Index, key::intent(seq), 30);
    assert_sound(&disk.open(&[]));
}

#[test]
fn parts_without_an_intent_are_no_damage_and_are_gone_when_the_world_was_open_for_writing() {
    let disk = Disk::new();
    let seq = with_intent(&disk);
    disk.raw().delete(Family::Index, key::intent(seq));
    disk.raw().flip(Family::Index, key::staged(seq, 1), 60);
    let world = World::open_read_only(disk.path(), &options()).expect("nothing is to be done");
    assert_sound(&world);
    drop(world);
    let world = disk.open(&[]);
    assert_nothing_is_left(&world);
    assert!(world.objects().list("object/", None, 9).expect("lists").entries.is_empty());
}

#[test]
fn an_intent_in_an_open_world_is_a_finding() {
    let world = in_memory();
    let mut bytes = Vec::new();
    Intent::default().encode(&mut bytes);
    plant(&world, [(Space::Intent, key::intent(9).to_vec(), Some(plain(&bytes)))]);
    assert_eq!(
        findings(&world),
        ["index: commit 9 is not carried out to its end; close the world and open it for writing"]
    );
}

#[test]
fn a_checkpoint_beside_it_has_all_of_it_or_nothing() {
    let disk = Disk::new();
    let world = World::create(disk.path(), &[], &limited(SMALL.batch_bytes)).expect("is created");
    let ids = begin(&world);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for token in 0..20 {
                change(&world, &ids, token, Durability::Process).expect("commits");
            }
        });
        let mut number = 0;
        while !writer.is_finished() {
            let copy = disk.root().join(format!("copy{number}"));
            world.checkpoint(&copy).expect("copies");
            let copy = World::open_read_only(&copy, &options()).expect("there is nothing to be carried out");
            let listed = copy.objects().list("object/", None, 999).expect("lists").entries.len();
            assert!(listed == 0 || listed == CHUNKS as usize - 11, "{listed} of {CHUNKS}");
            number += 1;
        }
        assert!(number > 0);
    });
}

#[test]
fn the_room_on_the_disk_is_counted_twice() {
    const MIN: u64 = 1 << 20;
    let fits = |batch_bytes: u64, free_bytes: u64| {
        let free = Arc::new(AtomicU64::new(u64::MAX));
        let engine = MemEngine::new().with_free_bytes({
            let free = Arc::clone(&free);
            move || free.load(Ordering::Relaxed)
        });
        let options = WorldOptions { min_free_bytes: MIN, ..limited(batch_bytes) };
        let world = World::temporary_over(engine, &[], &options).expect("a world in memory");
        let ids = begin(&world);
        // The system is asked again after half a second.
        thread::sleep(Duration::from_millis(510));
        free.store(free_bytes, Ordering::Relaxed);
        match change(&world, &ids, 7, Durability::Process) {
            Ok(_) => true,
            Err(Error::NoRoom { min_free_bytes: MIN, .. }) => false,
            Err(error) => panic!("{error}"),
        }
    };
    let needs = |batch_bytes: u64| {
        let (mut less, mut enough) = (MIN, MIN + (1 << 19));
        while enough - less > 8192 {
            let half = less.midpoint(enough);
            *(if fits(batch_bytes, half) { &mut enough } else { &mut less }) = half;
        }
        enough - MIN
    };
    let (one, many) = thread::scope(|scope| {
        let one = scope.spawn(|| needs(1 << 20));
        let many = needs(SMALL.batch_bytes);
        (one.join().expect("counts"), many)
    });
    assert!(one.abs_diff(many / 2) < 8192 && one > 65_536, "{one} in one batch, {many} in many");
}

#[test]
fn a_commit_that_cannot_be_written_now_is_written_when_the_world_is_resumed() {
    use cg_store::engine::Fault;
    let whole = World::temporary(&[], &limited(1 << 20)).expect("a world in memory");
    change(&whole, &begin(&whole), 7, Durability::Process).expect("commits");
    for nth in few().skip(1) {
        let left = Arc::new(AtomicU64::new(u64::MAX));
        let engine = MemEngine::new().with_fault({
            let left = Arc::clone(&left);
            move |_| (left.fetch_sub(1, Ordering::Relaxed) == 1).then_some(Fault::NoSpace)
        });
        let world =
            World::temporary_over(engine, &[], &limited(SMALL.batch_bytes)).expect("a world in memory");
        let ids = begin(&world);
        left.store(nth as u64, Ordering::Relaxed);
        let failed = change(&world, &ids, 7, Durability::Process);
        if failed.is_ok() {
            assert!(nth > 10, "it took {nth} batches");
            break;
        }
        assert!(matches!(failed, Err(Error::Engine(EngineError::WriteFailed { .. }))), "{failed:?}");
        // Memory has all of it; who wants one state of the rows hears why not.
        assert!(world.load(ids.at(CHUNKS - 1, 0, 0)).expect("loads").is_some());
        let walked = world.for_each_place(Area::World, |_| ControlFlow::<()>::Continue(()));
        assert!(matches!(walked, Err(Error::Engine(EngineError::ReadOnly { .. }))), "{walked:?}");
        assert!(matches!(world.content_hash(), Err(Error::Engine(EngineError::ReadOnly { .. }))));
        left.store(if nth % 2 == 0 { 2 } else { u64::MAX }, Ordering::Relaxed);
        if world.resume().is_err() {
            left.store(u64::MAX, Ordering::Relaxed);
            world.resume().expect("goes on");
        }
        assert!(contents(&whole) == contents(&world), "batch {nth}");
        assert_sound(&world);
        change(&world, &ids, 8, Durability::Process).expect("commits");
        assert_nothing_is_left(&world);
    }
}
