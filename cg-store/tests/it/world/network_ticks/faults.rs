//! Jobs of ticks that fail, are cut off, meet a save or are closed: nothing is lost, and what is left is done later.

use super::*;
use cg_engine::conformance::shared::Loss;

#[test]
fn the_error_of_a_job_comes_from_the_next_tick() {
    let (world, _, gate, ids) = over_network(&network_options());
    let all = in_each_cube(&ids, 1);
    save(&world, all.iter().map(|at| (*at, marked(&world, &ids, 7))));
    run_until_idle(&world, 1, &[]);
    gate.set(|| Some(EngineError::NoSpace { message: "by request".into() }));
    let tick = |now| world.tick(GameTick::new(now), &[], ENOUGH);
    let first = tick(HOUR + 2).expect("the job has not ended");
    assert!(first.work_left);
    let begun = Instant::now();
    let error = loop {
        match tick(HOUR + 2) {
            Err(error) => break error,
            Ok(report) => assert!(report.work_left && begun.elapsed() < PATIENCE, "{report:?}"),
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let Error::Engine(EngineError::NoSpace { message }) = &error else { panic!("{error}") };
    assert_eq!(message, "by request");
    gate.set(|| None);
    run_until_idle(&world, HOUR + 4, &[]);
    assert_eq!(tiers(&world), [0, all.len() as u64, 0], "the moves are tried again");
    assert_sound(&world);
}

/// A world over a simulated server.
fn remote() -> (World, Arc<Server>, Arc<Network>, Ids, Vec<ChunkAt>) {
    let (server, network) = (Server::new(), Arc::new(Network::new(Duration::ZERO, 0)));
    let remote = Remote::take(&server, &network).expect("it answers");
    let world = World::builder().options(&network_options()).over(remote).expect("begins");
    let ids = Ids::register(&world);
    let all = in_each_cube(&ids, 1);
    save(&world, all.iter().zip(0..).map(|(at, seed)| (*at, noisy(&world, &ids, seed))));
    run_until_idle(&world, 1, &[]);
    (world, server, network, ids, all)
}

#[test]
fn what_cannot_be_reached_is_tried_later_and_no_tick_fails() {
    let (world, _, network, _, all) = remote();
    network.cut(true);
    for tick in 0..100 {
        let report = world.tick(GameTick::new(HOUR + 2 + tick), &[], ENOUGH).expect("a later try");
        assert_eq!((report.work_left, report.moves), (true, MoveCounts::default()));
        std::thread::sleep(Duration::from_millis(1));
    }
    network.cut(false);
    let [_, warmed, ..] = run_until_idle(&world, HOUR + 200, &[]);
    assert_eq!((warmed, tiers(&world)), (all.len() as u64, [0, all.len() as u64, 0]));
    assert_sound(&world);
}

#[test]
fn a_cut_in_the_middle_leaves_each_chunk_once() {
    let last = [HOUR + 2, 2 * DAY];
    for (loss, now) in
        [Loss::Request, Loss::Answer, Loss::Connection].map(|loss| last.map(|now| (loss, now))).concat()
    {
        let (world, server, network, ids, all) = remote();
        network.lose_next(loss);
        let begun = Instant::now();
        let mut is_cut = false;
        let mut has_moved = false;
        while !is_cut && !has_moved {
            match world.tick(GameTick::new(now), &[], ENOUGH) {
                Ok(report) => has_moved = report.moves != MoveCounts::default(),
                Err(error) => {
                    assert!(matches!(error, Error::Engine(EngineError::WriteFailed { .. })), "{error}");
                    is_cut = true;
                }
            }
            assert!(begun.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(is_cut, loss == Loss::Connection, "others are sent again");
        // As after a kill: nothing of this world is closed, and another one takes the rows.
        network.cut(true);
        let again = Arc::new(Network::new(Duration::ZERO, 0));
        let taken = Remote::take(&server, &again).expect("it answers");
        let other = World::builder().options(&network_options()).over(taken).expect("opens");
        assert_sound(&other);
        assert_eq!(tiers(&other).iter().sum::<u64>(), all.len() as u64, "each is live once");
        for (at, seed) in all.iter().zip(0..) {
            assert_eq!(other.load(*at).expect("loads").as_deref(), Some(&noisy(&other, &ids, seed)), "{at}");
        }
        run_until_idle(&other, 4 * DAY, &[]);
        run_until_idle(&other, 6 * DAY, &[]);
        assert_eq!(tiers(&other), [0, 0, all.len() as u64]);
        assert_sound(&other);
    }
}

#[test]
fn closing_waits_for_a_job_and_none_writes_afterwards() {
    let (world, counter, gate, ids) = over_network(&network_options());
    let all = in_each_cube(&ids, 2);
    save(&world, all.iter().map(|at| (*at, marked(&world, &ids, 7))));
    run_until_idle(&world, 1, &[]);
    let ((begun, begins), (go_on, goes_on)) = (channel(), channel::<()>());
    gate.set(move || {
        let _ = begun.send(());
        let _ = goes_on.recv();
        None
    });
    tick_until(&world, HOUR + 2, &begins);
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        let world = &world;
        scope.spawn(move || sender.send(world.close()).expect("is awaited"));
        assert!(receiver.recv_timeout(Duration::from_millis(50)).is_err(), "it waits");
        drop(go_on);
        receiver.recv().expect("closes").expect("nothing failed");
    });
    let before = counter.calls();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!((counter.calls() - before).all(), 0);
    let refused = world.tick(GameTick::new(HOUR + 3), &[], ENOUGH).expect_err("it is closed");
    assert!(matches!(refused, Error::Closed), "{refused}");
}

/// Saves a chunk before a batch of moves is written, and says what became of it and of the others.
#[test]
fn a_save_between_the_reads_and_the_batch_of_a_job_keeps_only_its_cube_back() {
    for (now, warms) in [(HOUR + 2, true), (2 * DAY, false)] {
        let (world, _, gate, ids) = over_network(&network_options());
        let all = in_each_cube(&ids, 1);
        save(&world, all.iter().zip(0..).map(|(at, seed)| (*at, noisy(&world, &ids, seed))));
        run_until_idle(&world, 1, &[]);
        let (other, at, mut is_saved) = (world.clone(), all[100], false);
        gate.set(move || {
            if !std::mem::replace(&mut is_saved, true) {
                save(&other, [(at, filled(&other, ids.glass))]);
            }
            None
        });
        let (count, left, begun) = (all.len() as u64, 6, Instant::now());
        let moves = loop {
            let report = world.tick(GameTick::new(now), &[], ENOUGH).expect("ticks");
            if report.moves.conflicts > 0 {
                break report.moves;
            }
            assert!(begun.elapsed() < PATIENCE, "no batch meets the save");
            std::thread::sleep(Duration::from_millis(1));
        };
        let chunks = if warms { moves.warmed } else { moves.cooled };
        assert_eq!((chunks, moves.conflicts), (count - left, 1), "the same job moves all others");
        world.cache().clear();
        assert_eq!(
            world.load(at).expect("loads").as_deref(),
            Some(&filled(&world, ids.glass)),
            "it is not lost"
        );
        assert_sound(&world);
        gate.set(|| None);
        run_until_idle(&world, now + 2 * DAY, &[]);
        run_until_idle(&world, now + 4 * DAY, &[]);
        assert_eq!(tiers(&world), [0, 0, count], "and it moves later");
        assert_eq!(world.load(at).expect("loads").as_deref(), Some(&filled(&world, ids.glass)));
        assert_sound(&world);
    }
}
