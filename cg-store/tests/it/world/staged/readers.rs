//! Readers while a commit is rolled forward.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::Instant;

use super::*;
use cg_format::{Space, key};
use cg_tiering::GameTick;

/// A world whose engine writes a batch only when it is let, once the latch is shut.
struct Stepped {
    world: World,
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
            World::builder().options(&limited(SMALL.batch_bytes)).over(engine).expect("a world in memory");
        let ids = begin(&world);
        Self { world, ids, steps }
    }

    /// From now on each batch waits for a word. When the sender is gone, all go through.
    fn shut(&self) -> SyncSender<()> {
        // No word is kept for later: a thread that was not woken for a while goes one step after, and not many.
        let (step, steps) = sync_channel(0);
        *self.steps.lock().expect("no panic") = Some(steps);
        step
    }

    /// Lets batches through until the rows of a commit begin to change.
    fn until_half_is_there(&self, step: &SyncSender<()>) {
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
    assert!(
        report.skipped_large_commit && report.work_left && begun.elapsed() < Duration::from_secs(4),
        "{report:?}"
    );
    let walks: [Box<dyn Fn() -> u64 + Send + Sync + '_>; 4] = [
        Box::new(|| {
            let mut count = 0;
            let walked = world.read_view(|view| {
                view.for_each_chunk(Area::World, |_| {
                    count += 1;
                    ControlFlow::<()>::Continue(())
                })
            });
            assert_eq!(walked.expect("walks"), None);
            count
        }),
        Box::new(|| world.verify(VerifyDepth::Full, |_| {}).expect("verifies").checked["chunks"]),
        Box::new(|| world.objects().list("object/", None, 1000).expect("lists").entries.len() as u64 + 9),
        Box::new(|| world.tiers().census().expect("counts").records + 8),
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
    assert!(!report.skipped_large_commit, "{report:?}");
    assert_nothing_is_left(world);
    assert_sound(world);
}

/// One writer changes all chunks again and again, in many batches each time; readers never see two tokens at once.
fn nobody_sees_half(world: &World) {
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
                            let walked = world.read_view(|view| {
                                view.for_each_decoded(Area::World, |stored| {
                                    see(&stored.expect("is sound").1, &mut tokens);
                                    ControlFlow::<()>::Continue(())
                                })
                            });
                            walked.expect("walks");
                        }
                        1 => {
                            let read = world.read_view(|still| {
                                use cg_format::ChunkSource as _;
                                let all: Vec<_> = (0..CHUNKS).map(|x| ids.at(x, 0, 0)).collect();
                                for found in still.lookup_many(&all) {
                                    if let Some(chunk) = found.expect("loads").here() {
                                        see(&chunk, &mut tokens);
                                    }
                                }
                                Ok::<_, Error>(())
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
    assert!(world.metrics().stats.commits_staged >= 39);
    assert_sound(world);
}

#[test]
fn nobody_sees_half_of_it_in_memory() {
    nobody_sees_half(
        &World::builder().options(&limited(SMALL.batch_bytes)).in_memory().expect("a world in memory"),
    );
}

#[test]
fn nobody_sees_half_of_it_on_disk() {
    let disk = Disk::new();
    nobody_sees_half(
        &World::builder().options(&limited(SMALL.batch_bytes)).create(disk.path()).expect("is created"),
    );
}

#[test]
fn a_checkpoint_beside_it_has_all_of_it_or_nothing() {
    let disk = Disk::new();
    let world =
        World::builder().options(&limited(SMALL.batch_bytes)).create(disk.path()).expect("is created");
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
            world.checkpoint(&copy, cg_store::CheckpointFiles::Linked).expect("copies");
            let copy = World::builder()
                .options(&options())
                .open_read_only(&copy)
                .expect("there is nothing to be rolled forward");
            let listed = copy.objects().list("object/", None, 999).expect("lists").entries.len();
            assert!(listed == 0 || listed == CHUNKS as usize - 11, "{listed} of {CHUNKS}");
            number += 1;
        }
        assert!(number > 0);
    });
}
