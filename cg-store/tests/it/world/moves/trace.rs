//! Requests to a world, recorded for policies to be tried on.

use super::*;

#[test]
fn what_a_world_is_asked_is_recorded_and_replayed() {
    let world = in_memory();
    let ids = Ids::register(&world);
    let (a, absent) = (ids.at(0, 0, 0), ids.at(9, 9, 9));
    save(&world, [(a, marked(&world, &ids, 1))]);
    assert_eq!(world.tiers().take_trace(), TracePart::default(), "nothing is recorded unasked");
    let here = player(1, ids.overworld, 5, 5, 5);
    let pinned = world.tiers().pin(ids.overworld, ChunkBox::new(a.pos, a.pos));
    let before = pinned.id();
    world.tiers().record_trace(1 << 20);
    world.tick(GameTick::new(7), &[here], ENOUGH).expect("ticks");
    world.cache().clear();
    for _ in 0..2 {
        assert!(world.load(a).expect("loads").is_some() && world.load(absent).expect("loads").is_none());
    }
    let kept =
        world.tiers().keep_loaded(ids.overworld, &ChunkBox::new(absent.pos, absent.pos)).expect("is small");
    let held = kept.id();
    let huge = world.tiers().keep_loaded(ids.overworld, &ChunkBox::EVERYTHING);
    assert!(huge.is_err(), "what is refused is not recorded");
    drop(pinned);
    let part = world.tiers().take_trace();
    assert_eq!(part.lost_events, 0);
    let mut bytes = part.bytes;
    save(&world, [(a, marked(&world, &ids, 2))]);
    let len_bytes = marked(&world, &ids, 2).to_bytes().len() as u32;
    let deleted = world.transaction(|tx| {
        tx.delete(a);
        Ok::<_, Error>(())
    });
    drop(deleted.expect("deletes"));
    drop(kept);
    let pin = world.tiers().pin(ids.nether, ChunkBox::EVERYTHING);
    bytes.extend(world.tiers().end_trace().bytes);
    save(&world, [(a, marked(&world, &ids, 3))]);
    assert_eq!(world.tiers().end_trace(), TracePart::default(), "it was ended before");
    let reader = cg_tiering::trace::TraceReader::new(&bytes).expect("is a trace");
    let events = reader.collect::<Result<Vec<_>, _>>().expect("is sound");
    let first = marked(&world, &ids, 1).to_bytes().len() as u32;
    assert_eq!(
        events,
        [
            Event::Pin { pin: before.get(), dimension: ids.overworld, place: ChunkBox::new(a.pos, a.pos) },
            Event::Tick(GameTick::new(7)),
            Event::Player(here),
            Event::Load { chunk: a, len_bytes: first },
            Event::Load { chunk: absent, len_bytes: 0 },
            Event::Hold {
                hold: held.get(),
                dimension: ids.overworld,
                place: ChunkBox::new(absent.pos, absent.pos)
            },
            Event::Unpin(before.get()),
            Event::Save { chunk: a, len_bytes },
            Event::Save { chunk: a, len_bytes: 0 },
            Event::Release(held.get()),
            Event::Pin { pin: pin.id().get(), dimension: ids.nether, place: ChunkBox::EVERYTHING },
        ]
    );
    let model = cg_tiering::simulate::StoreModel::default();
    let replayed = cg_tiering::simulate::simulate(events, TierPolicy::default(), model);
    assert_eq!(replayed.expect("the default policy").found_loads(), 1);
}

#[test]
fn a_trace_that_nobody_takes_ends_and_says_what_it_lost() {
    let world = in_memory();
    let ids = Ids::register(&world);
    let all: Vec<_> = (0..20).map(|n| ids.at(n, 0, 0)).collect();
    let save_all = |n| save(&world, all.iter().map(|at| (*at, marked(&world, &ids, n))));
    // What memory knows to be absent is not asked of the engine by those who save it.
    assert!(world.load_many(&all).into_iter().all(|found| matches!(found, Ok(None))));
    world.tiers().record_trace(100);
    save_all(1);
    let part = world.tiers().take_trace();
    // The first line takes 20 bytes, the first place 37 in full, then each save takes 8.
    assert_eq!((part.bytes.len(), part.lost_events), (20 + 37 + 5 * 8, 20 - 6));
    let events = cg_tiering::trace::TraceReader::new(&part.bytes).expect("is a trace");
    let saved = events.map(|event| match event.expect("is whole") {
        Event::Save { chunk, .. } => chunk,
        other => panic!("{other:?} did not happen"),
    });
    assert!(saved.eq(all[..6].iter().copied()), "the first of what happened, without a hole");
    // Room again is no reason to go on: what was lost would be missing in the middle.
    world.tick(GameTick::new(3), &[], ENOUGH).expect("ticks");
    let _pinned = world.tiers().pin(ids.overworld, ChunkBox::EVERYTHING);
    assert_eq!(world.tiers().take_trace(), TracePart { bytes: Vec::new(), lost_events: 16 });
    assert_eq!(world.tiers().end_trace().lost_events, 16);
    world.tiers().record_trace(1000);
    save_all(2);
    let part = world.tiers().end_trace();
    assert_eq!(part.lost_events, 0, "a new one begins anew");
    let events = cg_tiering::trace::TraceReader::new(&part.bytes).expect("is a trace");
    let events = events.take(2).collect::<Result<Vec<_>, _>>().expect("is sound");
    assert!(matches!(events[..], [Event::Tick(now), Event::Pin { .. }] if now.get() == 3), "{events:?}");
}
