//! Moves beside everything else that happens, against a model that has no tiers.

use super::*;

/// An event in a world that is played.
#[derive(Debug, Clone)]
enum Happening {
    Save { chunk: usize, cell: u16 },
    Delete { chunk: usize },
    Ticks { ticks: u64, at: Option<usize>, micros: u64 },
    Settle { after_ticks: u64 },
    Forget,
    Reopen,
}

fn event() -> impl Strategy<Value = Happening> {
    let ticks = prop::sample::select(vec![1, 20, 600, 2 * MINUTE, 5 * MINUTE, 31 * MINUTE]);
    prop_oneof![
        4 => (0..PLACES, 0..500_u16).prop_map(|(chunk, cell)| Happening::Save { chunk, cell }),
        1 => (0..PLACES).prop_map(|chunk| Happening::Delete { chunk }),
        6 => (ticks, prop::option::of(0..PLACES), prop::sample::select(vec![0, 100, 1_000_000]))
            .prop_map(|(ticks, at, micros)| Happening::Ticks { ticks, at, micros }),
        1 => prop::sample::select(vec![6 * MINUTE, DAY]).prop_map(|after_ticks| Happening::Settle { after_ticks }),
        1 => Just(Happening::Forget),
        1 => Just(Happening::Reopen),
    ]
}

const PLACES: usize = 60;

/// Places in few cubes near each other and at the ends of the world, so that they share clusters or do not.
fn place(ids: &Ids, n: usize) -> ChunkAt {
    let n = n as i64;
    match n % 4 {
        0 => ids.at(n / 4 % 4, n / 16, 0),
        1 => ids.at(4 + n / 4, 0, n / 4 % 3),
        2 => ids.at(ChunkPos::MIN + n / 4, ChunkPos::MAX, 0),
        _ => ChunkAt::new(ids.nether, ChunkPos::constant(n / 4 * 7, -n, 3)),
    }
}

/// Runs events against a model; `reopen` closes the world and opens it again where that is possible.
fn against_the_model(mut world: World, events: &[Happening], mut reopen: impl FnMut(World) -> World) {
    let ids = Ids::register(&world);
    let (mut model, mut now) = (BTreeMap::new(), 0);
    for event in events {
        match *event {
            Happening::Save { chunk, cell } => {
                save(&world, [(place(&ids, chunk), marked(&world, &ids, cell))]);
                model.insert(place(&ids, chunk), cell);
            }
            Happening::Delete { chunk } => {
                let deleted = world.transaction(|tx| {
                    tx.delete(place(&ids, chunk));
                    Ok::<_, Error>(())
                });
                drop(deleted.expect("deletes"));
                model.remove(&place(&ids, chunk));
            }
            Happening::Ticks { ticks, at, micros } => {
                now += ticks;
                let players: Vec<_> = at
                    .map(|at| place(&ids, at))
                    .map(|at| PlayerAt { id: uuid(1), dimension: at.dimension, block: at.pos.min_block() })
                    .into_iter()
                    .collect();
                for _ in 0..3 {
                    let report = world.tick(GameTick::new(now), &players, Duration::from_micros(micros));
                    assert_eq!(report.expect("ticks").moves.refused, 0);
                }
            }
            Happening::Settle { after_ticks } => {
                world.tiers().demote_all(after_ticks, |_| {}).expect("settles");
            }
            Happening::Forget => {
                let before =
                    world.tiers().purge_tombstones_before(CommitSeq::new(u64::MAX)).expect("is noted");
                assert_eq!(before, world.tiers().tombstone_horizon());
            }
            Happening::Reopen => world = reopen(world),
        }
        let live: BTreeSet<_> = model.keys().copied().collect();
        let mut seen = BTreeSet::new();
        for chunk in (0..PLACES).map(|n| place(&ids, n)) {
            let stored = world.load(chunk).expect("loads");
            let expected = model.get(&chunk).map(|cell| marked(&world, &ids, *cell));
            assert_eq!(stored.as_deref(), expected.as_ref(), "{chunk} after {event:?}");
            seen.extend(stored.map(|_| chunk));
        }
        assert_eq!(seen, live);
        assert_eq!(tiers(&world).iter().sum::<u64>(), live.len() as u64, "each chunk has one live copy");
    }
    assert_sound(&world);
    let flat = in_memory();
    let ids = Ids::register(&flat);
    save(&flat, model.into_iter().map(|(at, cell)| (at, marked(&flat, &ids, cell))));
    assert_eq!(
        world.content_hash(cg_store::view::Area::World).expect("hashes"),
        flat.content_hash(cg_store::view::Area::World).expect("hashes")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_played_world_in_memory_is_the_model(events in prop::collection::vec(event(), 1..40)) {
        against_the_model(in_memory(), &events, |world| world);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn a_played_world_on_disk_is_the_model(events in prop::collection::vec(event(), 1..40)) {
        let disk = Disk::new();
        against_the_model(disk.create(&[]), &events, |world| {
            drop(world);
            disk.open(&[])
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    /// Ticks fold deltas here, and moves carry rows on which there are some.
    #[test]
    fn a_played_world_with_deltas_is_the_model(events in prop::collection::vec(event(), 1..40)) {
        let deltas = WorldOptions { deltas: true, ..options() };
        against_the_model(World::builder().options(&deltas).in_memory().expect("a world in memory"), &events, |world| world);
        let disk = Disk::new();
        let world = World::builder().options(&deltas).create(disk.path()).expect("is created");
        against_the_model(world, events.get(..8).unwrap_or(&events), |world| {
            drop(world);
            World::builder().options(&deltas).open(disk.path()).expect("opens")
        });
    }
}
