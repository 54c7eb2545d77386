//! Batches that are submitted to segments: their order, what a tick thread waits for, crashes and refusals.

pub(super) mod gated;
mod hindered;
mod power;
mod refused;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cg_store::engine::Level;
use cg_store::error::ConflictKey;
use cg_store::{ErrorKind, Refused, WriteTicket};
use cg_tiering::GameTick;

use super::*;
use gated::{Gated, Opening};

fn saving(world: &SegmentedWorld<impl SegmentHome>, at: ChunkAt, block: BlockId) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.save(at, filled(world.root(), block));
    batch
}

fn putting(id: u128, cow: Entity) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put_entity(uuid(id), cow);
    batch
}

/// Closes every segment but that of a chunk elsewhere.
fn close_all(world: &SegmentedWorld<impl SegmentHome>, ids: &Ids) {
    for x in [1600, 1632] {
        save(world, ids.at(x, 0, 0), filled(world.root(), ids.stone));
    }
}

#[test]
fn a_tick_thread_does_not_wait_for_a_segment_that_must_be_opened() {
    let home = Gated::new();
    let world = home.open(true);
    let ids = register(&world);
    let (at, beside) = (ids.at(0, 0, 0), ids.at(1, 0, 0));
    save(&world, at, filled(world.root(), ids.stone));
    close_all(&world, &ids);
    let opened = home.opened();
    home.set(Opening::Waits);
    assert!(matches!(world.peek(at), Peek::NotLoaded));
    assert!(matches!(world.peek(ids.at(64, 0, 0)), Peek::NotLoaded), "nobody has looked");
    assert!(world.load(ids.at(64, 0, 0)).expect("looks").is_none());
    assert!(matches!(world.peek(ids.at(64, 0, 0)), Peek::Absent), "its segment is not stored");
    let first = world.submit(at, saving(&world, at, ids.glass)).expect("is taken");
    let cow = world.submit(at, putting(1, ids.cow_in(at))).expect("is taken");
    let created = world.submit(ids.at(64, 0, 0), saving(&world, ids.at(64, 0, 0), ids.glass));
    let loading = world.load_in_background(&[at, beside]);
    assert!(!first.is_finished() && !cow.is_finished() && loading.poll().is_none());
    assert!(matches!(world.peek(at), Peek::NotLoaded), "a batch waits");
    assert!(home.opened() <= opened + 1, "only the background opens, and it waits");
    home.set(Opening::Opens);
    let loaded = loading.wait().expect("is open");
    assert_eq!(loaded.len(), 2);
    assert_eq!(loaded[0].as_ref().expect("loads").as_ref().expect("is stored").entities(), [uuid(1)]);
    assert!(loaded[1].as_ref().expect("loads").is_none());
    let [first, cow] = [first, cow].map(|ticket| ticket.wait().expect("is accepted").seq);
    assert!(first < cow, "in the order of submission");
    created.expect("is taken").wait().expect("is accepted");
    assert_eq!(block(&world, ids.at(64, 0, 0)), Some(ids.glass));
    // The new segment was opened last, and both are open.
    let glass =
        |peeked| matches!(peeked, Peek::Here(chunk) if chunk.block(LocalPos::new(0, 0, 0)) == ids.glass);
    assert!(glass(world.peek(ids.at(64, 0, 0))) && glass(world.peek(at)));
    assert_eq!(world.entity(uuid(1)).expect("reads").map(|cow| cow.owner), Some(Owner::Chunk(at)));
}

/// Every call that begins after a submission sees it, with segments that are opened and closed all the time.
#[test]
fn what_is_submitted_is_seen_in_order_by_every_call() {
    let home = Gated::new();
    let mut segments = segments();
    segments.max_open = 1;
    let world = home.open_with(true, &segments);
    let ids = register(&world);
    let places: Vec<_> = (0..12).map(|n| ids.at(n % 4 * 16, n / 4, 0)).collect();
    for at in &places {
        save(&world, *at, filled(world.root(), ids.stone));
    }
    // A sequence without a pattern that repeats.
    let mut state = 7_u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut blocks = vec![ids.stone; 12];
    let mut cows: std::collections::BTreeMap<u128, usize> = std::collections::BTreeMap::new();
    let mut tickets = Vec::new();
    for _ in 0..600 {
        let place = random(12) as usize;
        let at = places[place];
        match random(6) {
            0 | 1 => {
                let block = if random(2) == 0 { ids.glass } else { ids.stone };
                let mut batch = WriteBatch::new();
                batch.save_blocks(at, filled(world.root(), block));
                tickets.push(world.submit(at, batch).expect("is taken"));
                blocks[place] = block;
            }
            2 => {
                let cow = 1 + u128::from(random(4)) + 10 * (place % 4) as u128;
                tickets.push(world.submit(at, putting(cow, ids.cow_in(at))).expect("is taken"));
                cows.insert(cow, place);
            }
            3 => {
                if let Some((cow, place)) = cows.pop_first() {
                    let mut batch = WriteBatch::new();
                    batch.delete_entity(uuid(cow));
                    tickets.push(world.submit(places[place], batch).expect("is taken"));
                }
            }
            4 => {
                let found = world.load(at).expect("loads").expect("is stored");
                assert_eq!(found.block(LocalPos::new(0, 0, 0)), blocks[place]);
                let here = cows.iter().filter(|(_, here)| **here == place).count();
                assert_eq!(found.entities().len(), here);
            }
            _ => {
                let cow = 1 + u128::from(random(4)) + 10 * u128::from(random(4));
                let owner = world.entity(uuid(cow)).expect("reads").map(|cow| cow.owner);
                assert_eq!(owner, cows.get(&cow).map(|place| Owner::Chunk(places[*place])));
            }
        }
    }
    for ticket in tickets {
        ticket.wait().expect("is accepted");
    }
    world.flush().expect("nothing is refused");
    for (at, block) in places.iter().zip(&blocks) {
        assert_eq!(self::block(&world, *at), Some(*block));
    }
}

#[test]
fn a_batch_that_touches_two_segments_is_given_back() {
    let (world, ids) = in_memory();
    let (here, there) = (ids.at(15, 0, 0), ids.at(16, 0, 0));
    let (first, second) = (world.segment_of(here), world.segment_of(there));
    let two = |refused: &Refused| {
        assert_eq!(refused.error.layer(), Some(&SegmentError::TwoSegments { first, second }));
    };
    let mut batch = saving(&world, here, ids.stone);
    batch.save(there, filled(world.root(), ids.stone));
    let refused = world.submit(here, batch).expect_err("two segments");
    two(&refused);
    assert!(refused.batch.touches(here) && refused.batch.touches(there), "it is given back");
    two(&world.submit(here, putting(1, ids.cow_in(there))).expect_err("its owner is elsewhere"));
    let mut column = WriteBatch::new();
    let chunk = Arc::new(filled(world.root(), ids.stone));
    let tall = cg_store::cache::Column::new(14, [None, Some(Arc::clone(&chunk)), Some(chunk)]);
    column.save_column(ids.overworld, 0, 0, tall).expect("inside the world");
    let refused = world.submit(ids.at(0, 15, 0), column).expect_err("two segments");
    let above = world.segment_of(ids.at(0, 16, 0));
    let first = world.segment_of(ids.at(0, 15, 0));
    assert_eq!(refused.error.layer(), Some(&SegmentError::TwoSegments { first, second: above }));
    assert!(world.segments().list().is_empty(), "nothing was taken");
    // What only its acceptance shows is reported by its ticket.
    save(&world, here, filled(world.root(), ids.stone));
    put(&world, 1, ids.cow_in(here));
    let mut batch = WriteBatch::new();
    batch.move_entity(uuid(1), Owner::Chunk(there));
    let error = world.submit(here, batch).expect("is taken").wait().expect_err("two segments");
    let (first, second) = (world.segment_of(here), world.segment_of(there));
    assert_eq!(error.layer(), Some(&SegmentError::TwoSegments { first, second }));
}

#[test]
fn properties_objects_and_records_are_submitted_with_their_chunk_and_seen_by_their_keys() {
    let (world, ids) = in_memory();
    let (here, there) = (ids.at(0, 0, 0), ids.at(16, 0, 0));
    let rain = || values::property("game:rain");
    let batch = |at: ChunkAt, x: i64| {
        let mut batch = saving(&world, at, ids.stone);
        batch.put_object("bricks", *b"1").expect("a key");
        batch.put_record(values::id(1), values::record(&ids, x, 1));
        batch.set_property(rain(), Some(b"on".to_vec()));
        batch
    };
    let ticket = world.submit(here, batch(here, 3)).expect("is taken");
    // Each of these reads sees it, whether or not a background thread has begun.
    assert_eq!(world.property(&rain()).expect("reads").as_deref(), Some(&b"on"[..]));
    ticket.wait().expect("is accepted");
    assert_eq!(values::object(&world, "bricks"), Some((0, b'1')));
    assert!(world.records().get(values::id(1)).expect("reads").is_some());
    assert!(world.root().objects().get("bricks").expect("reads").is_none(), "it is in the segment");
    // What another segment has is refused, and the batch with it.
    let ticket = world.submit(there, batch(there, 16 * 16 + 3)).expect("is taken");
    let refused = ticket.wait().expect_err("is elsewhere");
    assert!(matches!(refused.layer(), Some(SegmentError::Elsewhere { .. })), "{refused}");
    assert!(world.load(there).expect("reads").is_none(), "nothing of it is stored");
    let mut gone = WriteBatch::new();
    gone.delete_object("bricks").expect("a key");
    gone.delete_record(values::id(1));
    world.submit(here, gone).expect("is taken");
    assert_eq!(values::object(&world, "bricks"), None);
    assert!(world.records().get(values::id(1)).expect("reads").is_none());
}

#[test]
fn entities_go_through_their_places_in_the_root() {
    let (world, ids) = in_memory();
    let (here, there) = (ids.at(0, 0, 0), ids.at(16, 0, 0));
    for at in [here, there] {
        save(&world, at, filled(world.root(), ids.stone));
    }
    world.submit(here, putting(1, ids.cow_in(here))).expect("is taken").wait().expect("is new");
    let error = world.submit(there, putting(1, ids.cow_in(there))).expect("is taken").wait();
    let elsewhere = SegmentError::EntityElsewhere { id: uuid(1), segment: world.segment_of(here) };
    assert_eq!(error.expect_err("is elsewhere").layer(), Some(&elsewhere));
    // Deleted there first, without a wait in between.
    let mut batch = WriteBatch::new();
    batch.delete_entity(uuid(1));
    let deleted = world.submit(here, batch).expect("is taken");
    world
        .transaction(there, |tx| {
            tx.put_entity(uuid(1), ids.cow_in(there));
            Ok::<_, Error>(())
        })
        .expect("it sees the deletion");
    deleted.wait().expect("is accepted");
    world.submit(here, putting(2, ids.cow_in(here))).expect("is taken");
    world.transfer_entities([(uuid(2), ids.cow_in(there))]).expect("sees what was submitted");
    for id in [1, 2] {
        let owner = world.entity(uuid(id)).expect("reads").map(|cow| cow.owner);
        assert_eq!(owner, Some(Owner::Chunk(there)));
    }
}

#[test]
fn a_batch_with_entities_waits_for_the_transaction_in_which_it_is_submitted() {
    let (world, ids) = in_memory();
    let at = ids.at(0, 0, 0);
    save(&world, at, filled(world.root(), ids.stone));
    let ticket = world
        .transaction(at, |_| {
            let ticket = world.submit(at, putting(1, ids.cow_in(at)))?;
            assert!(world.load(at)?.is_some(), "does not wait for itself");
            Ok::<_, Error>(ticket)
        })
        .expect("commits");
    ticket.wait().expect("is accepted");
    assert_eq!(world.load(at).expect("loads").expect("is stored").entities(), [uuid(1)]);
}

/// The power goes at each commit in turn. What a ticket said is in the system is there afterwards, and no batch is there in
/// part.
#[test]
fn what_a_ticket_promised_is_there_after_a_crash() {
    let mut promised = 0;
    for commits in 0.. {
        let home = Gated::new();
        let world = home.open(true);
        let ids = register(&world);
        let places = [0, 16, 32].map(|x| ids.at(x, 0, 0));
        for at in places {
            save(&world, at, filled(world.root(), ids.stone));
        }
        close_all(&world, &ids);
        home.fuse().set(commits);
        let mut tickets = Vec::new();
        for (n, at) in (0_u128..).zip(places) {
            // A chunk, its owner and its entity in one batch.
            let mut batch = putting(n, ids.cow_in(at));
            batch.save_blocks(at, filled(world.root(), ids.glass));
            let mut next = WriteBatch::new();
            next.save_blocks(ids.at(at.pos.x(), 1, 0), filled(world.root(), ids.glass));
            for batch in [batch, next] {
                tickets.push(world.submit(at, batch));
            }
        }
        let durable = |ticket: Result<WriteTicket, Box<Refused>>| {
            let committed = ticket?.wait()?;
            committed.durable().wait_for(Level::Process)
        };
        let kept: Vec<_> = tickets.into_iter().map(|ticket| durable(ticket).is_ok()).collect();
        let is_over = !home.fuse().is_burnt();
        drop(world);
        let world = home.open(false);
        for ((n, at), kept) in (0_u128..).zip(places).zip(kept.chunks(2)) {
            let has_cow = world.entity(uuid(n)).expect("reads").is_some();
            let is_glass = block(&world, at) == Some(ids.glass);
            let refers = world.load(at).expect("loads").expect("is stored").entities() == [uuid(n)];
            assert_eq!([has_cow, refers], [is_glass; 2], "whole or not at all, after {commits} commits");
            let has_next = block(&world, ids.at(at.pos.x(), 1, 0)).is_some();
            assert!(!has_next || has_cow, "in order");
            assert!(has_cow >= kept[0] && has_next >= kept[1], "promised, after {commits} commits");
            promised += usize::from(kept[0] && !is_over);
        }
        if is_over {
            assert!(kept.iter().all(|kept| *kept));
            break;
        }
    }
    assert!(promised > 0, "some were promised before the power went");
}

#[test]
fn what_waits_has_a_limit_and_is_accepted_when_the_world_is_closed() {
    let home = Gated::new();
    let mut segments = segments();
    segments.world.queue_bytes = 64 << 10;
    let world = home.open_with(true, &segments);
    let ids = register(&world);
    let at = ids.at(0, 0, 0);
    save(&world, at, filled(world.root(), ids.stone));
    close_all(&world, &ids);
    home.set(Opening::Waits);
    let mut large = filled(world.root(), ids.glass);
    large.set_side(ids.light, vec![1; 40 << 10]);
    let mut tickets = Vec::new();
    let refused = loop {
        let mut batch = WriteBatch::new();
        batch.save(at, large.clone());
        match world.submit(at, batch) {
            Ok(ticket) => tickets.push(ticket),
            Err(refused) => break refused,
        }
    };
    let Error::Busy { queued_bytes, limit_bytes: 65_536 } = refused.error else { panic!("{refused}") };
    assert!((40 << 10..64 << 10).contains(&queued_bytes), "{queued_bytes}");
    assert_eq!(tickets.len(), 1);
    home.set(Opening::Opens);
    world.close().expect("gives what waits");
    let late = world.submit(at, refused.batch).expect_err("is closed");
    assert!(matches!(late.error, Error::Closed), "{late}");
    for ticket in tickets {
        ticket.wait().expect("is accepted");
    }
    drop(world);
    let world = home.open_with(false, &segments);
    assert_eq!(block(&world, at), Some(ids.glass));
}

#[test]
fn a_column_over_a_border_is_joined() {
    let (world, ids) = in_memory();
    let column = |ys| world.column(ids.overworld, 3, 3, ys).expect("reads");
    assert!(column(-40..=40).is_absent());
    for (y, block) in [(-17, ids.stone), (-1, ids.glass), (0, ids.stone), (16, ids.glass)] {
        save(&world, ids.at(3, y, 3), filled(world.root(), block));
    }
    world.submit(ids.at(3, 1, 3), saving(&world, ids.at(3, 1, 3), ids.glass)).expect("is taken");
    let blocks = |ys| {
        let column = column(ys);
        column.chunks().map(|(y, chunk)| (y, chunk.block(LocalPos::new(0, 0, 0)))).collect::<Vec<_>>()
    };
    let all = [(-17, ids.stone), (-1, ids.glass), (0, ids.stone), (1, ids.glass), (16, ids.glass)];
    assert_eq!(blocks(-40..=40), all);
    assert_eq!(blocks(-1..=0), all[1..3]);
    assert_eq!(blocks(0..=15), all[2..4]);
    #[expect(clippy::reversed_empty_ranges, reason = "a range of no heights, beyond the world's ends")]
    let none = [i64::MAX..=i64::MIN, 1..=0];
    assert!(none.map(column).iter().all(|column| column.chunks().count() == 0));
    let error = world.column(ids.overworld, 3, 3, 0..=1 << 40).expect_err("is too high");
    assert!(matches!(error, Error::ColumnTooHigh { .. }), "{error}");
}

#[test]
fn a_batch_that_conflicts_with_others_is_accepted_when_they_let_it() {
    let (world, ids) = in_memory();
    let at = ids.at(0, 0, 0);
    save(&world, at, filled(world.root(), ids.stone));
    put(&world, 1, ids.cow_in(at));
    let tries = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&tries);
    let mut batch = WriteBatch::new();
    batch.edit_entity(uuid(1), move |_| match count.fetch_add(1, Ordering::Relaxed) {
        0..150 => Err(Error::Conflict { key: ConflictKey::Entity(uuid(1)) }),
        _ => Ok(()),
    });
    world.submit(at, batch).expect("is taken").wait().expect("is accepted");
    assert_eq!(tries.load(Ordering::Relaxed), 151);
}
