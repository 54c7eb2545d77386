//! Worlds that follow a writer over shared rows.

mod history;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::tier::noisy;
use super::*;
use cg_engine::conformance::remote::{Network, Remote, Server};
use cg_engine::conformance::shared::Link as _;
use cg_engine::conformance::{Call, Counting};
use cg_format::ChunkSource as _;
use cg_store::engine::EngineError;
use cg_store::view::Area;
use cg_store::{Peek, StoreLimits};
use cg_tiering::{GameTick, TierPolicy};

/// A server, and the network of its readers.
struct Rows {
    server: Arc<Server>,
    writes: Arc<Network>,
    reads: Arc<Network>,
}

impl Rows {
    fn new() -> Self {
        let [writes, reads] = [(); 2].map(|()| Arc::new(Network::new(Duration::ZERO, 0)));
        Self { server: Server::new(), writes, reads }
    }

    fn writer(&self, options: &WorldOptions) -> World {
        let engine = Remote::take(&self.server, &self.writes).expect("it answers");
        World::builder().options(options).over(engine).expect("opens")
    }

    fn reader(&self) -> Remote {
        Remote::read(&self.server, &self.reads).expect("it answers")
    }

    fn follower(&self) -> World {
        follow(self.reader())
    }
}

fn follow(engine: impl Engine) -> World {
    World::builder().options(&with_deltas()).open_read_only_over(engine).expect("opens")
}

fn with_deltas() -> WorldOptions {
    WorldOptions { cache_bytes: 64 << 20, deltas: true, tiers: TierPolicy::network(), ..options() }
}

fn in_a_box(ids: &Ids) -> Vec<ChunkAt> {
    let mut places = Vec::new();
    for x in [-20, -1, 0, 3, 4, 40] {
        for y in [0, 1, 17] {
            places.extend([0, 5, 300].map(|z| ids.at(x, y, z)));
        }
    }
    places
}

/// Checks that two worlds show the same, through memory and past it.
fn assert_same(follower: &World, writer: &World, places: &[ChunkAt], step: &str) {
    let loaded = |world: &World| {
        let found = world.load_many(places).into_iter();
        found.map(|chunk| chunk.expect(step)).collect::<Vec<_>>()
    };
    assert!(loaded(follower) == loaded(writer), "loads of {places:?} after: {step}");
    for at in places {
        assert_eq!(follower.load(*at).expect(step), writer.load(*at).expect(step), "{at} after: {step}");
    }
    let hash = |world: &World| world.content_hash(Area::World).expect(step);
    assert_eq!(hash(follower), hash(writer), "after: {step}");
    let names = |world: &World| world.catalog().encode_full();
    assert_eq!(names(follower), names(writer), "after: {step}");
    assert_eq!(follower.limits(), writer.limits(), "after: {step}");
    assert_eq!(follower.last_commit(), writer.last_commit(), "after: {step}");
}

#[test]
fn a_follower_shows_each_commit_at_its_next_refresh_and_nothing_before() {
    let rows = Rows::new();
    let writer = rows.writer(&with_deltas());
    let ids = Ids::register(&writer);
    let places = in_a_box(&ids);
    save(&writer, places.iter().step_by(2).map(|at| (*at, noisy(&writer, &ids, 1))));
    let follower = rows.follower();
    assert_same(&follower, &writer, &places, "the open");

    let new_block = || {
        let [block] = writer.registry().register_blocks(["game:new"]).expect("registers");
        save(&writer, [(places[1], filled(&writer, block))]);
    };
    let raise = || {
        let limits = writer.limits();
        let raised = StoreLimits { chunk_bytes: limits.chunk_bytes + 1, ..limits };
        writer.raise_limits(raised).expect("raises");
    };
    let put = |at, chunk| {
        save(&writer, [(at, chunk)]);
    };
    let set = |x: i64, block| {
        let pos = BlockPos::new(16 * x + 3, 3, 5);
        writer.transaction(|tx| tx.set_block(ids.overworld, pos, block)).expect("sets");
    };
    let demote = |after| {
        writer.tiers().demote_all(after, |_| {}).expect("moves");
    };
    let steps: [(&str, &dyn Fn()); 12] = [
        ("a chunk is saved where none was", &|| put(places[3], noisy(&writer, &ids, 2))),
        ("a chunk is replaced", &|| put(places[0], noisy(&writer, &ids, 3))),
        ("a block is set", &|| set(-20, ids.stone)),
        ("a name is registered, and a chunk uses it", &new_block),
        ("a chunk is deleted", &|| {
            let deleted = writer.transaction(|tx| {
                tx.delete(places[2]);
                Ok::<_, Error>(())
            });
            deleted.expect("deletes");
        }),
        ("chunks become cold", &|| demote(u64::MAX / 2)),
        ("a block of a cold chunk is set", &|| set(0, ids.glass)),
        ("another block of it is set", &|| set(0, ids.stone)),
        ("a limit is raised", &raise),
        ("deltas are folded and chunks move", &|| demote(u64::MAX / 2)),
        ("tombstones are purged", &|| {
            let horizon = writer.tiers().purge_tombstones_before(writer.last_commit()).expect("purges");
            assert!(horizon > CommitSeq::NONE);
        }),
        ("a chunk is saved in an empty cube", &|| put(places[53], noisy(&writer, &ids, 4))),
    ];
    for (step, act) in steps {
        let before = (follower.content_hash(Area::World).expect("reads"), follower.last_commit());
        act();
        let unchanged = (follower.content_hash(Area::World).expect("reads"), follower.last_commit());
        assert_eq!(unchanged, before, "before the refresh, after: {step}");
        follower
            .load_many(&places)
            .into_iter()
            .for_each(|chunk| drop(chunk.expect("the old state is there")));
        assert_eq!(follower.refresh().expect("refreshes"), writer.last_commit(), "{step}");
        assert_same(&follower, &writer, &places, step);
        assert_eq!(follower.tiers().tombstone_horizon(), writer.tiers().tombstone_horizon(), "{step}");
        assert_eq!(follower.refresh().expect("refreshes"), writer.last_commit(), "nothing new: {step}");
        assert_same(&follower, &writer, &places, step);
    }
    let report = follower.verify(VerifyDepth::Full, |_| {}).expect("reads");
    assert!(report.is_ok(), "{report:?}");
}

#[test]
fn chunks_of_cubes_that_did_not_change_stay_in_memory() {
    let rows = Rows::new();
    let writer = rows.writer(&with_deltas());
    let ids = Ids::register(&writer);
    let (near, far) = (ids.at(0, 0, 0), ids.at(40, 0, 0));
    save(&writer, [near, far].map(|at| (at, filled(&writer, ids.stone))));
    let (engine, counter) = Counting::over(rows.reader());
    let follower = follow(engine);
    for at in [near, far] {
        follower.load(at).expect("reads");
    }
    let (refreshed, calls) = counter.during(|| follower.refresh());
    assert_eq!(refreshed.expect("refreshes"), writer.last_commit());
    assert_eq!((calls.of(Call::Snapshot), calls.of(Call::Get), calls.all()), (1, 1, 2), "nothing new");

    save(&writer, [(near, filled(&writer, ids.glass))]);
    let (refreshed, calls) = counter.during(|| follower.refresh());
    refreshed.expect("refreshes");
    assert!(calls.all() <= 6, "{calls:?}");
    let is_known = [near, far].map(|at| matches!(follower.peek(at), Peek::Here(_)));
    assert_eq!(is_known, [false, true], "what changed is forgotten, and nothing else");
}

#[test]
fn a_cube_that_was_known_to_be_empty_is_looked_up_again() {
    let rows = Rows::new();
    let writer = rows.writer(&with_deltas());
    let ids = Ids::register(&writer);
    save(&writer, [(ids.at(0, 0, 0), filled(&writer, ids.stone))]);
    let follower = rows.follower();
    let empty: Vec<_> = (0..4096).map(|n| ids.at(64 + (n >> 8), n >> 4 & 15, n & 15)).collect();
    let absent = || follower.load_many(&empty).into_iter().filter(|chunk| matches!(chunk, Ok(None))).count();
    assert_eq!(absent(), empty.len());
    let calls = rows.reads.calls();
    assert_eq!((absent(), rows.reads.calls()), (empty.len(), calls), "it is known to be empty");
    save(&writer, [(empty[7], filled(&writer, ids.glass))]);
    follower.refresh().expect("refreshes");
    assert_same(&follower, &writer, &empty[..10], "a chunk in it");
    assert_eq!(absent(), empty.len() - 1);
}

#[test]
fn a_follower_moves_nothing_in_its_ticks_and_an_engine_that_takes_no_commits_is_followed() {
    let rows = Rows::new();
    let writer = rows.writer(&with_deltas());
    let ids = Ids::register(&writer);
    save(&writer, [(ids.at(0, 0, 0), noisy(&writer, &ids, 1))]);
    let follower = World::builder().options(&with_deltas()).over(rows.reader()).expect("opens");
    for minute in 1..200_u64 {
        let now = GameTick::new(minute * 60 * GameTick::PER_SECOND);
        let report = follower.tick(now, &[], Duration::from_millis(5)).expect("ticks");
        assert!(!report.work_left, "{report:?}");
    }
    save(&writer, [(ids.at(0, 0, 0), noisy(&writer, &ids, 2))]);
    assert_eq!(follower.refresh().expect("refreshes"), writer.last_commit());
    assert_same(&follower, &writer, &[ids.at(0, 0, 0)], "ticks");
}

#[test]
fn a_view_keeps_its_state_and_delays_no_refresh() {
    let rows = Rows::new();
    let writer = rows.writer(&with_deltas());
    let ids = Ids::register(&writer);
    let at = ids.at(0, 0, 0);
    save(&writer, [(at, filled(&writer, ids.stone))]);
    let follower = rows.follower();
    let block_in = |view: &cg_store::view::ReadView<'_>| {
        let mut found = None;
        let walked = view.for_each_decoded(Area::World, |chunk| {
            found = chunk.ok().map(|(_, chunk)| chunk.block(LocalPos::new(0, 0, 0)));
            ControlFlow::<()>::Continue(())
        });
        walked.expect("reads");
        found
    };
    let shown = follower.read_view(|view| {
        save(&writer, [(at, filled(&writer, ids.glass))]);
        follower.refresh()?;
        let now = follower.read_view(|now| Ok::<_, Error>((block_in(now), now.commit())))?;
        let old = (block_in(view), view.commit());
        // What the old view reads is not cached for the new state.
        let old_many = view.read_many(&[at], |_, chunk| Ok(chunk.block(LocalPos::new(0, 0, 0))));
        assert_eq!(old_many.into_iter().next().expect("one").expect("reads").here(), Some(ids.stone));
        let loaded = follower.load(at)?.expect("is stored").block(LocalPos::new(0, 0, 0));
        Ok::<_, Error>((old, now, loaded))
    });
    let newest = writer.last_commit();
    let before = CommitSeq::new(newest.get() - 1);
    assert_eq!(shown.expect("reads"), ((Some(ids.stone), before), (Some(ids.glass), newest), ids.glass));
}

/// Commits that are applied in parts too.
#[test]
fn readers_beside_refreshes_see_whole_commits_in_order_and_no_damage() {
    let rows = Rows::new();
    let limits = StoreLimits { batch_bytes: 4096, ..StoreLimits::default() };
    let writer = rows.writer(&WorldOptions { limits, ..with_deltas() });
    let ids = Ids::register(&writer);
    let pair = [ids.at(0, 0, 0), ids.at(40, 0, 40)];
    let names: Vec<_> = (0..40_u8).map(|n| Name::new(format!("game:{n}")).expect("a name")).collect();
    let commit = |n: u16| {
        let [block] = writer.registry().register_blocks([format!("game:b{n}").as_str()]).expect("registers");
        let chunk = filled(&writer, block);
        let committed = writer.transaction(|tx| {
            for at in pair {
                tx.save(at, chunk.clone());
            }
            for name in &names {
                let value = [&n.to_le_bytes()[..], &[0; 200]].concat();
                tx.set_property(Property::Named(name.clone()), Some(value));
            }
            Ok::<_, Error>(())
        });
        committed.expect("commits");
        // One of the pair becomes a delta.
        if n.is_multiple_of(3) {
            let set = writer.transaction(|tx| {
                for at in pair {
                    tx.set_block(ids.overworld, at.pos.min_block(), ids.stone)?;
                }
                Ok::<_, Error>(())
            });
            set.expect("sets");
        }
        if n.is_multiple_of(7) {
            writer.tiers().demote_all(u64::MAX / 2, |_| {}).expect("moves");
        }
    };
    commit(0);
    let follower = rows.follower();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let refreshes = threads.spawn(|| {
            let mut last = CommitSeq::NONE;
            while !is_done.load(Ordering::Acquire) {
                let shown = follower.refresh().expect("refreshes");
                assert!(shown >= last, "{shown} after {last}");
                last = shown;
            }
        });
        let readers: Vec<_> = (0..2)
            .map(|_| {
                threads.spawn(|| {
                    let mut views = 0;
                    while !is_done.load(Ordering::Acquire) {
                        follower.load(pair[0]).expect("reads").expect("is stored");
                        let seen = follower.read_view(|view| {
                            let chunks = view.read_many(&pair, |_, chunk| Ok(chunk));
                            let chunks: Vec<_> =
                                chunks.into_iter().map(|chunk| chunk.expect("reads").here()).collect();
                            let mut values = Vec::new();
                            view.for_each_property("game:", |property| {
                                values.push(property.expect("reads").1.to_vec());
                                ControlFlow::<()>::Continue(())
                            })?;
                            let known = view.lookup(pair[1])?.here();
                            Ok::<_, Error>((chunks, values, known))
                        });
                        let (chunks, values, known) = seen.expect("reads");
                        assert!(chunks[0].is_some() && chunks[0] == chunks[1], "the pair is of one commit");
                        assert_eq!(known.as_deref(), chunks[1].as_ref(), "memory and rows agree");
                        assert_eq!(values.len(), names.len());
                        assert!(
                            values.iter().all(|value| *value == values[0]),
                            "the properties are of one commit"
                        );
                        views += 1;
                    }
                    views
                })
            })
            .collect();
        (1..60).for_each(&commit);
        is_done.store(true, Ordering::Release);
        refreshes.join().expect("refreshes");
        let views: Vec<i32> = readers.into_iter().map(|reader| reader.join().expect("reads")).collect();
        assert!(views.iter().all(|views| *views > 0), "{views:?}");
    });
    assert!(writer.metrics().stats.commits_staged > 0, "commits are applied in parts");
    follower.refresh().expect("refreshes");
    assert_same(&follower, &writer, &pair, "the last commit");
}

#[test]
fn what_is_not_followed_says_so_and_an_outage_leaves_what_is_shown() {
    let refused = World::builder().in_memory().expect("opens").refresh().expect_err("it is not shared");
    assert!(matches!(refused, Error::Engine(EngineError::Unsupported { what: "be followed" })), "{refused}");

    let rows = Rows::new();
    let writer = rows.writer(&with_deltas());
    let refused = writer.refresh().expect_err("it is the writer");
    assert!(matches!(refused, Error::Engine(EngineError::Unsupported { what: "be followed" })), "{refused}");
    let ids = Ids::register(&writer);
    let at = ids.at(0, 0, 0);
    save(&writer, [(at, filled(&writer, ids.stone))]);
    let follower = rows.follower();
    let shown = follower.last_commit();
    let known = follower.load(at).expect("reads");
    save(&writer, [(at, filled(&writer, ids.glass))]);
    rows.reads.cut(true);
    let refused = follower.refresh().expect_err("no answer comes");
    assert!(matches!(refused, Error::Engine(EngineError::Unavailable { .. })), "{refused}");
    assert_eq!((follower.last_commit(), follower.load(at).expect("is in memory")), (shown, known));
    rows.reads.cut(false);
    assert_eq!(follower.refresh().expect("refreshes"), writer.last_commit());
    assert_same(&follower, &writer, &[at], "the outage");

    follower.close().expect("closes");
    assert!(matches!(follower.refresh(), Err(Error::Closed)));
}
