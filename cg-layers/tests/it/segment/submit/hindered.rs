//! Batches whose disk is full, whose functions panic, and whose tickets are waited for where nothing can come of it.

use std::sync::atomic::AtomicU64;

use cg_registry::UpgradeFunctions;
use cg_store::engine::{EngineError, MemEngine};
use cg_tiering::PlayerAt;

use super::super::transfer::Crashing;
use super::*;

/// Segments on a disk with so much room. At least 1 MiB is to stay free.
fn on_disk_with(free_bytes: &Arc<AtomicU64>) -> (Gated, SegmentOptions) {
    let free = Arc::clone(free_bytes);
    let engine = move || {
        let free = Arc::clone(&free);
        MemEngine::new().with_free_bytes(move || free.load(Ordering::Relaxed))
    };
    let world = WorldOptions { min_free_bytes: Some(1 << 20), ..options() };
    (Gated::over(Crashing::of(engine)), SegmentOptions { world, ..segments() })
}

/// The disk gets full, and all who asked it before ask again.
fn fill(free_bytes: &AtomicU64) {
    free_bytes.store(1 << 10, Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(600));
}

#[test]
fn a_batch_is_refused_before_it_is_taken_where_the_disk_is_full() {
    let free_bytes = Arc::new(AtomicU64::new(1 << 40));
    let (home, options) = on_disk_with(&free_bytes);
    let world = home.open_with(true, &options);
    let ids = register(&world);
    let (open, closed, new) = (ids.at(1632, 0, 0), ids.at(0, 0, 0), ids.at(64, 0, 0));
    for at in [closed, open] {
        save(&world, at, filled(world.root(), ids.stone));
    }
    close_all(&world, &ids);
    fill(&free_bytes);
    for at in [open, closed, new] {
        for batch in [saving(&world, at, ids.glass), putting(1, ids.cow_in(at))] {
            let refused = world.submit(at, batch).expect_err("the disk is full");
            let Error::LowDiskSpace { min_free_bytes: 0x10_0000, .. } = refused.error else {
                panic!("{refused}")
            };
            free_bytes.store(1 << 40, Ordering::Relaxed);
            let ticket = world.submit(at, refused.batch).expect("it was given back");
            free_bytes.store(1 << 10, Ordering::Relaxed);
            drop(ticket);
            world.flush().expect("what is taken is written");
            fill(&free_bytes);
            let mut gone = WriteBatch::new();
            gone.delete_entity(uuid(1));
            world.submit(at, gone).expect("needs no room").wait().expect("is accepted");
        }
    }
    let mut refused = world.transaction(ids.at(160, 0, 0), |tx| {
        tx.save(ids.at(160, 0, 0), filled(world.root(), ids.stone));
        Ok::<_, Error>(())
    });
    assert!(matches!(refused, Err(Error::LowDiskSpace { .. })), "{refused:?}");
    assert!(!world.segments().list().contains(&world.segment_of(ids.at(160, 0, 0))), "it was not created");
    refused = world.segments().delete(world.segment_of(closed));
    refused.expect("makes room");
}

#[test]
fn what_was_taken_is_accepted_though_the_disk_is_full_now() {
    let free_bytes = Arc::new(AtomicU64::new(1 << 40));
    let (home, options) = on_disk_with(&free_bytes);
    let world = home.open_with(true, &options);
    let ids = register(&world);
    let (at, new, others) = (ids.at(0, 0, 0), ids.at(64, 0, 0), [ids.at(1600, 0, 0), ids.at(1632, 0, 0)]);
    save(&world, at, filled(world.root(), ids.stone));
    close_all(&world, &ids);
    put(&world, 9, ids.cow_in(others[0]));
    home.set(Opening::Waits);
    let mut tickets = Vec::new();
    for (n, at) in [(1, at), (2, new)] {
        let mut batch = saving(&world, at, ids.glass);
        batch.put_entity(uuid(n), ids.cow_in(at));
        tickets.push(world.submit(at, batch).expect("has room"));
        let beside = ids.at(at.pos.x(), 1, 0);
        tickets.push(world.submit(at, saving(&world, beside, ids.glass)).expect("has room"));
    }
    fill(&free_bytes);
    home.set(Opening::Opens);
    for at in [at, new] {
        assert_eq!(block(&world, at), Some(ids.glass));
        assert_eq!(block(&world, ids.at(at.pos.x(), 1, 0)), Some(ids.glass));
    }
    for ticket in tickets {
        ticket.wait().expect("was taken");
    }
    assert!(
        world.entity(uuid(1)).expect("reads").is_some() && world.entity(uuid(2)).expect("reads").is_some()
    );
    world.flush().expect("is written");
    drop(world);
    free_bytes.store(1 << 40, Ordering::Relaxed);
    let world = home.open_with(false, &options);
    assert_eq!([at, new].map(|at| block(&world, at)), [Some(ids.glass); 2]);
}

/// Calls over the whole world that have nothing to do with it are not refused.
#[test]
fn a_segment_that_cannot_be_reached_keeps_no_other_from_anything() {
    let home = Gated::new();
    let mut segments = segments();
    segments.max_open = 3;
    let world = home.open_with(true, &segments);
    let ids = register(&world);
    let (at, others) = (ids.at(0, 0, 0), [ids.at(1600, 0, 0), ids.at(1632, 0, 0)]);
    put_stone(&world, &ids, [at, others[0], others[1], ids.at(1664, 0, 0)]);
    put(&world, 1, ids.cow_in(others[0]));
    home.set(Opening::FailsAt(0));
    let ticket = world.submit(at, putting(2, ids.cow_in(at))).expect("is taken");
    world.transfer_entities([(uuid(1), ids.cow_in(others[1]))]).expect("is elsewhere");
    let not_accepted = |error: &Error| matches!(error.layer(), Some(SegmentError::NotAccepted { segment, .. }) if *segment == world.segment_of(at));
    for (id, to) in [(1, at), (2, others[0])] {
        let error = world.transfer_entities([(uuid(id), ids.cow_in(to))]).expect_err("it waits there");
        assert!(not_accepted(&error), "{error}");
    }
    let (mut cows, mut lost) = (Vec::new(), 0);
    let walked = world.segments().for_each_entity(|met| {
        match met {
            Ok((id, _)) => cows.push(id),
            Err(error) => {
                assert!(not_accepted(&error), "{error}");
                lost += 1;
            }
        }
        std::ops::ControlFlow::<()>::Continue(())
    });
    assert_eq!((walked.expect("walks"), cows, lost), (None, vec![uuid(1)], 1));
    world.tick(GameTick::new(1), &[] as &[PlayerAt], Duration::ZERO).expect("ticks");
    home.set(Opening::Opens);
    assert!(world.entity(uuid(2)).expect("reads").is_none() || ticket.is_finished());
    world.flush().expect("is given");
    ticket.wait().expect("is accepted");
}

fn put_stone(world: &SegmentedWorld<Gated>, ids: &Ids, places: impl IntoIterator<Item = ChunkAt>) {
    for at in places {
        save(world, at, filled(world.root(), ids.stone));
    }
}

/// A pack whose stone has a component of this size.
fn mill(size: &str) -> PackManifest {
    let manifest = format!(
        r#"{{"pack":"mill","version":"1","namespaces":["","mill"],"components":[{{"name":"mill:grain","size":{size}}}],
            "blocks":[{{"name":":air"}},{{"name":"mill:stone","components":["mill:grain"]}}],"dimensions":["mill:valley"]}}"#
    );
    PackManifest::from_json(&manifest).expect("a manifest")
}

#[test]
fn a_panic_of_a_function_that_upgrades_chunks_refuses_the_batch_and_no_other() {
    let disk = Disk::new();
    let world = SegmentedWorld::create(dir(&disk), &[mill("2")], &segments()).expect("an empty directory");
    let names = world.catalog();
    let [air, stone] = [":air", "mill:stone"].map(|text| names.block_id(text).expect("offered"));
    let grain = names.component_id("mill:grain").expect("offered");
    let valley = names.dimension("mill:valley").expect("offered");
    let [at, beside] = [0, 1].map(|x| ChunkAt::new(valley, ChunkPos::constant(x, 0, 0)));
    let made = world.transaction(at, |tx| {
        let chunk = tx.new_chunk(stone)?;
        tx.save(at, chunk);
        tx.set_component(at, CellLayer::base(LocalPos::new(0, 0, 0)), grain, &[2, 1])
    });
    made.expect("is saved");
    world.close().expect("closes");
    drop(world);

    let mut functions = UpgradeFunctions::default();
    functions.converted(name("mill:grain"), |_| panic!("on purpose"));
    let packs = cg_registry::Policy { conversions: functions.conversions(), ..Default::default() };
    let options = WorldOptions { packs, upgrades: Arc::new(functions), ..options() };
    let options = SegmentOptions { world: options, ..segments() };
    let world = SegmentedWorld::open(dir(&disk), &[mill(r#""variable""#)], &options).expect("opens");
    let batch = |at| {
        let mut batch = saving(&world, at, air);
        batch.put_object(format!("{at:?}"), *b"1").expect("a key");
        batch
    };
    let ticket = world.submit(at, batch(at)).expect("is taken");
    let next = world.submit(at, batch(beside)).expect("is taken");
    let message = match ticket.wait() {
        Err(Error::Engine(EngineError::Panicked { message, .. })) => message,
        other => panic!("{other:?}"),
    };
    assert_eq!(message, "on purpose");
    next.wait().expect("is accepted");
    assert_eq!(block(&world, beside), Some(air));
    assert_eq!((world.metrics().submitted(), world.metrics().waiting_bytes), (0, 0));
    drop(world.submit(at, batch(at)).expect("is taken"));
    let Err(Error::DeferredWrite { error, others: 0 }) = world.flush() else { panic!("it was dropped") };
    assert!(matches!(*error, Error::Engine(EngineError::Panicked { .. })), "{error}");
}

#[test]
fn a_ticket_that_waits_for_its_own_thread_says_so() {
    let (world, ids) = in_memory();
    let at = ids.at(0, 0, 0);
    save(&world, at, filled(world.root(), ids.stone));
    let waited = world.transaction(at, |_| {
        let ticket = world.submit(at, putting(1, ids.cow_in(at)))?;
        Ok::<_, Error>(ticket.wait().map(drop))
    });
    let waited = waited.expect("commits");
    assert!(matches!(waited, Err(Error::Nested)), "{waited:?}");
    assert!(world.entity(uuid(1)).expect("reads").is_some(), "it came after the transaction");
    // In a function of a batch.
    let inside = world.clone();
    let mut batch = WriteBatch::new();
    batch.edit_entity(uuid(1), move |_| {
        let waited = inside.submit(at, putting(2, ids.cow_in(at)))?.wait();
        assert!(matches!(waited, Err(Error::Nested)), "{waited:?}");
        Ok(())
    });
    world.submit(at, batch).expect("is taken").wait().expect("is accepted");
    assert!(world.entity(uuid(2)).expect("reads").is_some());
}

/// The root is older than its segments.
#[test]
fn a_segment_that_the_root_does_not_know_is_not_peeked_as_absent() {
    let home = Gated::new();
    let world = home.open(true);
    let ids = register(&world);
    let (at, nowhere) = (ids.at(0, 0, 0), ids.at(64, 0, 0));
    save(&world, at, filled(world.root(), ids.stone));
    world.close().expect("closes");
    drop(world);
    let root = World::builder().options(&options()).in_memory().expect("a root");
    let world = SegmentedWorld::begin(home, root, Some(16), &segments()).expect("begins");
    register(&world);
    assert!(matches!(world.peek(at), Peek::NotLoaded), "no call has looked");
    let error = world.load(at).expect_err("is not known");
    assert!(matches!(error.layer(), Some(SegmentError::NotKnown { .. })), "{error}");
    assert!(matches!(world.peek(at), Peek::NotLoaded));
    assert!(world.load(nowhere).expect("looks").is_none());
    assert!(matches!(world.peek(nowhere), Peek::Absent));
}
