//! Reads that fail: once, or from some moment on. Whoever asked is told, nothing is taken for absent, nothing is lost, and
//! the world goes on.

use std::io::Read as _;

use super::super::tier::noisy;
use super::*;
use crate::surviving::{Fuse, Surviving};
use cg_format::Tier;
use cg_store::verify::ContentHash;
use cg_store::view::Area;
use cg_tiering::GameTick;

/// A call of a host.
type Call = fn(&Failing) -> Result<(), Error>;

const CALLS: [(&str, Call); 10] = [
    ("loading", load),
    ("looking at all", look),
    ("a transaction over cold chunks", replace),
    ("one that sets blocks", set_blocks),
    ("one that deletes a box", delete_box),
    ("ticks", tick),
    ("settling", settle),
    ("folding and drawing the opacity map", draw),
    ("keeping a snapshot", keep),
    ("reading a snapshot", read_kept),
];

const LATER: u64 = 1 << 30;
/// One part, and one that is short.
const KEPT_BYTES: usize = (1 << 20) + 1;

fn far(ids: &Ids, n: i64) -> ChunkAt {
    ids.at(20 * n, 0, 0)
}

/// Chunks that are cold, hot and deleted, with deltas, an object, entities and a snapshot.
fn filled_world() -> Failing {
    let plan = Arc::new(Plan::default());
    let options = WorldOptions { cache_bytes: 0, durability: Durability::Process, deltas: true, ..options() };
    let engine = Faulty::new(MemEngine::new(), Arc::clone(&plan));
    let world = World::builder().options(&options).over(engine).expect("begins");
    let ids = Ids::register(&world);
    save(&world, (0..6).map(|n| (far(&ids, n), noisy(&world, &ids, n as u32))));
    world.tiers().demote_all(LATER, |_| {}).expect("settles");
    save(&world, (2..4).map(|n| (far(&ids, n), filled(&world, ids.stone))));
    let filled = world.transaction(|tx| {
        tx.put_entity(uuid(1), ids.cow_in(far(&ids, 0)));
        tx.set_block(ids.overworld, BlockPos::new(20 * 16, 1, 1), ids.stone)?;
        tx.delete(far(&ids, 5));
        tx.put_object("game:thing", &b"of value"[..])?;
        tx.set_property(Property::Time, Some(vec![7]));
        Ok::<_, Error>(())
    });
    filled.expect("commits");
    world.snapshots().save("kept", &[7].repeat(KEPT_BYTES)).expect("keeps");
    Failing { world, plan, ids }
}

fn load(failing: &Failing) -> Result<(), Error> {
    let Failing { world, ids, .. } = failing;
    let all: Vec<_> = (0..7).map(|n| far(ids, n)).collect();
    let is_there = |n: usize| n < 5;
    for (n, at) in all.iter().enumerate() {
        assert_eq!(world.load(*at)?.is_some(), is_there(n), "{at}");
        assert_eq!(world.tiers().with_stored_bytes(*at, |_| Ok(()))?.is_some(), is_there(n), "{at}");
    }
    for (n, loaded) in world.load_many(&all).into_iter().enumerate() {
        assert_eq!(loaded?.is_some(), is_there(n), "{n}");
    }
    assert_eq!(world.property(&Property::Time)?, Some(vec![7]));
    assert!(world.entity(uuid(1))?.is_some() && world.entity(uuid(2))?.is_none());
    assert_eq!(
        world.objects().get("game:thing")?.as_ref().map(|thing| &*thing.bytes),
        Some(&b"of value"[..])
    );
    Ok(())
}

fn look(failing: &Failing) -> Result<(), Error> {
    let Failing { world, ids, .. } = failing;
    let mut count = 0;
    let walked = world.read_view(|view| {
        view.for_each_chunk(Area::World, |chunk| match chunk {
            Ok(_) => {
                count += 1;
                std::ops::ControlFlow::Continue(())
            }
            Err(error) => std::ops::ControlFlow::Break(error),
        })
    })?;
    if let Some(error) = walked {
        return Err(error);
    }
    let census = world.tiers().census()?;
    assert_eq!((count, Tier::ALL.map(|tier| census.tier(tier).chunks).iter().sum()), (5, 5));
    assert_eq!(world.opacity().column(ids.overworld, 40 * 16, 0)?.runs(), [0..=15]);
    world.content_hash(cg_store::view::Area::World)?;
    assert_eq!(world.verify(VerifyDepth::Full, |_| {})?.findings, []);
    Ok(())
}

fn replace(failing: &Failing) -> Result<(), Error> {
    let Failing { world, ids, .. } = failing;
    let committed = world.transaction(|tx| {
        assert!(tx.load(far(ids, 4))?.is_some() && tx.load(far(ids, 6))?.is_none());
        tx.save(far(ids, 0), filled(world, ids.glass));
        assert!(tx.move_entity(uuid(1), Owner::Chunk(far(ids, 4)))?);
        tx.put_object("game:thing", &b"of more value"[..])?;
        tx.set_property(Property::Time, None);
        Ok::<_, Error>(())
    });
    committed.map(drop)
}

fn set_blocks(failing: &Failing) -> Result<(), Error> {
    let Failing { world, ids, .. } = failing;
    let committed = world.transaction(|tx| {
        for n in 0..5 {
            tx.set_block(ids.overworld, BlockPos::new(n * 20 * 16, 2, 2), ids.stone)?;
        }
        Ok::<_, Error>(())
    });
    committed.map(drop)
}

fn delete_box(failing: &Failing) -> Result<(), Error> {
    let Failing { world, ids, .. } = failing;
    let area = ChunkBox::new(far(ids, 0).pos, far(ids, 3).pos);
    let deleted = world.transaction(|tx| tx.delete_box(ids.overworld, area))?;
    assert!(matches!(deleted.value, 0 | 4), "{}", deleted.value);
    Ok(())
}

fn tick(failing: &Failing) -> Result<(), Error> {
    failing.world.tiers().purge_tombstones_before(CommitSeq::new(u64::MAX))?;
    for n in 0..8 {
        failing.world.tick(GameTick::new(LATER + 1000 * n), &[], std::time::Duration::from_secs(600))?;
    }
    Ok(())
}

fn settle(failing: &Failing) -> Result<(), Error> {
    failing.world.tiers().demote_all(LATER, |_| {}).map(drop)
}

fn draw(failing: &Failing) -> Result<(), Error> {
    failing.world.opacity().fold(1)?;
    failing.world.opacity().rebuild().map(drop)
}

fn keep(failing: &Failing) -> Result<(), Error> {
    // One that failed after this is still there.
    failing.world.snapshots().delete("new")?;
    failing.world.snapshots().save("new", &[1].repeat(KEPT_BYTES))?;
    let kept = failing.world.snapshots().list()?;
    assert_eq!(kept.iter().filter(|kept| kept.is_ok()).count(), 2, "{kept:?}");
    assert!(failing.world.snapshots().delete("new")?);
    Ok(())
}

fn read_kept(failing: &Failing) -> Result<(), Error> {
    let mut reader = failing.world.snapshots().open("kept")?.expect("it is kept");
    let mut bytes = Vec::new();
    match reader.read_to_end(&mut bytes) {
        Ok(_) => assert!(bytes == [7].repeat(KEPT_BYTES)),
        Err(error) => return Err(*error.into_inner().expect("carries it").downcast().expect("a store's")),
    }
    Ok(())
}

#[track_caller]
fn by_request(error: &Error) {
    let Error::Engine(EngineError::Io { source, .. }) = error else { panic!("{error:?}") };
    assert_eq!(source.to_string(), "read failed by request");
}

/// The hash of a world's content, apart from deletions that may be forgotten.
fn hash(failing: &Failing) -> ContentHash {
    failing.world.content_hash(cg_store::view::Area::World).expect("reads")
}

#[test]
fn whichever_read_fails_the_caller_is_told_and_the_world_goes_on() {
    let before = hash(&filled_world());
    for (what, call) in CALLS {
        let clean = filled_world();
        call(&clean).unwrap_or_else(|error| panic!("{what}: {error}"));
        let after = hash(&clean);
        for stays in [false, true] {
            let (mut nth, mut failures) = (1, 0);
            loop {
                let context = format!("{what}, read {nth}, stays {stays}");
                let failing = filled_world();
                failing.plan.fail_read(nth, stays);
                let ended = call(&failing);
                let has_failed = failing.plan.read_again();
                if let Err(error) = &ended {
                    assert!(has_failed, "{context}: {error}");
                    by_request(error);
                    failures += 1;
                }
                let Failing { world, ids, .. } = &failing;
                assert!(world.engine().failure().is_none(), "{context}");
                let found = hash(&failing);
                let is_right = found == if ended.is_ok() { after } else { before };
                assert!(is_right, "{context}: {ended:?}");
                if found == before {
                    load(&failing).unwrap_or_else(|error| panic!("{context}: {error}"));
                }
                assert_sound(world);
                // The same again does what it always does.
                call(&failing).unwrap_or_else(|error| panic!("{context}, again: {error}"));
                assert_eq!(hash(&failing), after, "{context}, again");
                save(world, [(far(ids, 9), filled(world, ids.stone))]);
                if !has_failed {
                    break;
                }
                nth += 1 + nth / 3;
            }
            assert!(failures > 0, "{what} fails on no read");
        }
    }
}

#[test]
fn whichever_read_fails_while_a_world_is_opened_it_opens_afterwards() {
    let fuse = Fuse::new();
    let below = Surviving::new(&fuse);
    let plan = Arc::new(Plan::default());
    let open = || {
        let engine = Faulty::new(below.clone(), Arc::clone(&plan));
        World::builder().options(&options()).over(engine)
    };
    let world = open().expect("opens");
    let ids = Ids::register(&world);
    save(&world, (0..6).map(|n| (far(&ids, n), noisy(&world, &ids, n as u32))));
    let hash = world.content_hash(cg_store::view::Area::World).expect("reads");
    drop(world);
    for stays in [false, true] {
        let mut failures = 0;
        for nth in 1.. {
            plan.fail_read(nth, stays);
            let opened = open();
            let has_failed = plan.read_again();
            match &opened {
                Ok(world) => {
                    assert_eq!(
                        world.content_hash(cg_store::view::Area::World).expect("reads"),
                        hash,
                        "read {nth}"
                    );
                }
                Err(error) => {
                    assert!(has_failed);
                    by_request(error);
                    failures += 1;
                }
            }
            drop(opened);
            assert_eq!(
                open().expect("opens").content_hash(cg_store::view::Area::World).expect("reads"),
                hash,
                "after read {nth}"
            );
            if !has_failed {
                break;
            }
        }
        assert!(failures > 2, "{failures}");
    }
}
