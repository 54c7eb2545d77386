//! Tombstones: forgotten once nobody needs them.

use super::*;

over_both_engines! {
    marks_of_deletions_go_when_nobody_needs_them
}

/// The tombstones.
fn marks(world: &World) -> Vec<ChunkAt> {
    let mut marks = Vec::new();
    let shown = world.engine().scan(Family::ChunkL0, engine::ALL_KEYS, |row_key, row| {
        if frame::kind_of(row) == Some(frame::FrameKind::Tombstone) {
            marks.push(key::decode_chunk(row_key).expect("is a chunk's"));
        }
        std::ops::ControlFlow::<()>::Continue(())
    });
    shown.expect("scans");
    marks
}

fn marks_of_deletions_go_when_nobody_needs_them(world: &World) {
    let ids = Ids::register(world);
    let (a, b, c, d) = (ids.at(1, 1, 1), ids.at(1, 1, 2), ids.at(40, 1, 1), ids.at(-40, 1, 1));
    let delete = |at: ChunkAt| {
        let deleted = world.transaction(|tx| {
            tx.delete(at);
            Ok::<_, Error>(())
        });
        deleted.expect("deletes").seq
    };
    save(world, [a, b, c].map(|at| (at, marked(world, &ids, 1))));
    let hash = world
        .content_hash(cg_store::view::Area::Box(ids.overworld, ChunkBox::new(b.pos, b.pos)))
        .expect("hashes");
    world.tiers().demote_all(DAY, |_| {}).expect("settles");
    // What is marked hides a cold copy beside another, a cold cluster of its own, and nothing at all.
    save(world, [(d, marked(world, &ids, 1))]);
    let [first, _, last] = [a, c, d].map(delete);
    let tick = |now: u64| {
        // The count above a cluster is closed by the cube after it, and what it has lost is seen in the next round.
        for _ in 0..6 {
            world.tick(GameTick::new(now), &[], ENOUGH).expect("ticks");
        }
        marks(world)
    };
    assert_eq!(tick(1), [d, a, c], "somebody may ask what was deleted");
    assert_eq!(world.tiers().tombstone_horizon(), CommitSeq::NONE);
    let before = |commit| world.tiers().count_tombstones_before(commit).expect("counts");
    assert_eq!([first, last, last.next(), CommitSeq::new(u64::MAX)].map(before), [0, 2, 3, 3]);
    assert_eq!(world.tiers().purge_tombstones_before(last).expect("is noted"), last);
    assert_eq!(tick(2), [d, a], "a cluster of which all is shadowed is dropped, and then the mark");
    let next = world.last_commit().next();
    assert_eq!(
        world.tiers().purge_tombstones_before(CommitSeq::new(u64::MAX)).expect("is noted"),
        next,
        "what is yet to come is not promised"
    );
    assert_eq!(tick(3), [a], "what hides nothing is gone");
    assert_eq!(
        world.tiers().purge_tombstones_before(CommitSeq::new(5)).expect("is known"),
        world.tiers().tombstone_horizon(),
        "it never goes back"
    );
    let wait = TierPolicy::default().rewrite_after_ticks;
    assert_eq!(tick(wait), [a], "it hides the copy in the cluster");
    assert_eq!(tick(3 + 2 * wait), [], "the cluster was written without it");
    for at in [a, c, d] {
        assert_eq!(world.load(at).expect("loads"), None);
        world.cache().clear();
        assert_eq!(world.load(at).expect("loads"), None);
    }
    let whole = ChunkBox::new(ids.at(-50, -50, -50).pos, ids.at(50, 50, 50).pos);
    assert_eq!(world.content_hash(cg_store::view::Area::Box(ids.overworld, whole)).expect("hashes"), hash);
    delete(b);
    assert_eq!(tick(4 + 4 * wait), [b], "what is deleted later is kept");
    assert_sound(world);
}

#[test]
fn what_is_forgotten_is_known_after_reopening() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let a = ids.at(0, 0, 0);
    save(&world, [(a, marked(&world, &ids, 1))]);
    let forgotten = world.tiers().purge_tombstones_before(CommitSeq::new(3)).expect("is noted");
    assert_eq!(forgotten, CommitSeq::new(3));
    drop(world);
    let world = disk.open(&[]);
    assert_eq!(world.tiers().tombstone_horizon(), CommitSeq::new(3));
    drop(world);
    disk.raw().flip(Family::WorldMeta, b"forgottenBefore", 24);
    let refused = World::builder().options(&options()).open(disk.path()).expect_err("is refused");
    let Error::Corrupt(damage) = refused else { panic!("{refused}") };
    assert_eq!((damage.space, &damage.key[..]), (Space::WorldMeta, &b"forgottenBefore"[..]));
}
