//! Damaged chunks of an arena, given up.

use cg_format::key::Family;
use cg_format::{ChunkBox, Space, key};
use cg_layers::{CHUNK_RESET, ResetChunks};
use cg_store::verify::VerifyDepth;

use super::*;
use crate::surviving::{Fuse, Surviving};

/// The lease of the first arena, as the first that is ever given.
const LEASE: u64 = 1;

/// An arena over a template, both in engines that can be damaged.
struct Scene {
    ids: Ids,
    below: Surviving,
    above: Surviving,
}

impl Scene {
    /// With what the template has and `write` changes in the arena.
    fn new(write: impl FnOnce(&mut cg_layers::OverlayTransaction<'_, World>, &Ids, &World)) -> Self {
        let (below, above) = (Surviving::new(&Fuse::new()), Surviving::new(&Fuse::new()));
        let base = World::builder().options(&options()).over(below.clone()).expect("a new world");
        let ids = Ids::register(&base);
        save(&base, (0..4).map(|x| (ids.at(x, 0, 0), marked(&base, &ids, x as u16))));
        put_cow(&base, ids.cow_in(ids.at(0, 0, 0)));
        let with_deltas = WorldOptions { deltas: true, ..options() };
        let arenas = Arenas::over(above.clone(), base.clone(), &with_deltas).expect("a base");
        let arena = arenas.lease("ada", GameTick::new(1)).expect("leases");
        let written = arena.transaction(|tx| {
            write(tx, &ids, &base);
            Ok::<_, Error>(())
        });
        written.expect("writes");
        drop((arena, arenas));
        base.close().expect("closes");
        Self { ids, below, above }
    }

    fn at(&self, x: i64) -> ChunkAt {
        self.ids.at(x, 0, 0)
    }

    /// Both, opened again.
    fn open(&self) -> Overlay<World> {
        let base = World::builder().options(&options()).over(self.below.clone()).expect("opens");
        Arenas::over(self.above.clone(), base, &options()).expect("opens").resume(0).expect("is leased")
    }

    fn damage(&self, x: i64) {
        self.above.overwrite(Space::ChunkL0, key::overlay_chunk(LEASE, self.at(x)));
    }

    fn reset(&self, arena: &Overlay<World>) -> Result<ResetChunks, Error> {
        arena.reset_damaged(self.ids.overworld, ChunkBox::new(self.at(-1).pos, self.at(9).pos))
    }
}

/// Chunks given up, entities detached, ancestors deleted, chunks left.
fn counts(done: ResetChunks) -> [u64; 4] {
    [done.chunks, done.detached_entities, done.ancestors, done.left]
}

fn findings(arena: &Overlay<World>) -> Vec<String> {
    let report = arena.arenas().verify(VerifyDepth::Full, |_| {}).expect("the engine works");
    report.findings.into_iter().map(|finding| finding.what).collect()
}

#[test]
fn a_damaged_chunk_shows_the_base_with_the_entities_of_the_arena() {
    let scene = Scene::new(|tx, ids, base| {
        let at = |x| ids.at(x, 0, 0);
        for x in [0, 1] {
            tx.set_block(ids.overworld, at(x).pos.min_block(), ids.glass).expect("it is there");
        }
        tx.save(at(5), filled(base, ids.glass));
        // The base's cow leaves chunk 0; another one comes.
        tx.put_entity(uuid(1), ids.cow_in(at(3)));
        tx.put_entity(uuid(7), ids.cow_in(at(0)));
    });
    for x in [0, 1] {
        scene.damage(x);
    }
    let arena = scene.open();
    let at = |x| scene.at(x);
    let error = arena.load(at(0)).expect_err("damaged");
    assert_eq!(error.kind(), cg_store::ErrorKind::Damaged);
    assert_eq!(counts(scene.reset(&arena).expect("resets")), [2, 0, 0, 0]);
    for _ in 0..2 {
        let arena = scene.open();
        let mut expected = marked(arena.base(), &scene.ids, 0);
        expected.add_entity(uuid(7));
        assert_eq!(arena.load(at(0)).expect("loads").as_deref(), Some(&expected));
        assert_eq!(arena.load(at(1)).expect("loads"), arena.base().load(at(1)).expect("loads"));
        assert_eq!(arena.load(at(3)).expect("loads").expect("is there").entities(), [uuid(1)]);
        assert_eq!(
            arena.load(at(5)).expect("loads").as_deref(),
            Some(&filled(arena.base(), scene.ids.glass))
        );
        assert_eq!(findings(&arena), [""; 0]);
        let diff = arena.diff().expect("compares");
        let changed = [0, 3].map(|x| (at(x), Difference::Changed));
        assert_eq!(diff.chunks, [changed[0], changed[1], (at(5), Difference::Added)]);
        assert_eq!(counts(scene.reset(&arena).expect("resets")), [0; 4], "nothing is damaged any more");
    }
}

#[test]
fn entities_of_a_damaged_chunk_that_the_base_does_not_have_are_detached() {
    let scene = Scene::new(|tx, ids, base| {
        tx.save(ids.at(5, 0, 0), filled(base, ids.glass));
        tx.save(ids.at(6, 0, 0), filled(base, ids.glass));
        tx.put_entity(uuid(7), ids.cow_in(ids.at(5, 0, 0)));
    });
    scene.damage(5);
    scene.damage(6);
    let arena = scene.open();
    assert_eq!(counts(scene.reset(&arena).expect("resets")), [2, 1, 0, 0]);
    let arena = scene.open();
    assert_eq!([5, 6].map(|x| arena.load(scene.at(x)).expect("loads")), [None, None]);
    let cow = arena.entity(uuid(7)).expect("reads").expect("is there");
    assert!(matches!(&cow.owner, Owner::Detached(reason) if reason.as_str() == CHUNK_RESET), "{cow:?}");
    assert_eq!(findings(&arena), [""; 0]);
    assert_eq!(arena.diff().expect("compares").chunks, []);
}

#[test]
fn a_deletion_that_is_damaged_shows_the_base_without_the_entities_that_went_with_it() {
    let scene = Scene::new(|tx, ids, _| tx.delete(ids.at(0, 0, 0)));
    scene.damage(0);
    let arena = scene.open();
    assert_eq!(counts(scene.reset(&arena).expect("resets")), [1, 0, 0, 0]);
    let arena = scene.open();
    assert_eq!(arena.entity(uuid(1)).expect("reads"), None);
    assert_eq!(
        arena.load(scene.at(0)).expect("loads").as_deref(),
        Some(&marked(arena.base(), &scene.ids, 0))
    );
    assert_eq!(findings(&arena), [""; 0]);
}

#[test]
fn a_chunk_stays_damaged_where_the_base_is_damaged_too() {
    let scene = Scene::new(|tx, ids, base| {
        for x in [1, 2] {
            tx.save(ids.at(x, 0, 0), filled(base, ids.glass));
        }
    });
    scene.damage(1);
    scene.damage(2);
    scene.below.overwrite(Space::ChunkL0, key::chunk(scene.at(1)));
    let arena = scene.open();
    let found = findings(&arena);
    let at = scene.at(1);
    assert_eq!(found.len(), 2, "{found:#?}");
    let is_at = |found: &str, x, end: &str| {
        let begin = format!("arena 0: {} is damaged (ChunkL0 row ", scene.at(x));
        assert!(found.starts_with(&begin) && found.ends_with(end), "{found}");
    };
    let none = "; the base's chunk cannot be read; mend the base, or reset or release the arena";
    is_at(&found[0], 1, none);
    let there =
        "; the base has the chunk, and `Overlay::reset_damaged` shows it; or reset or release the arena";
    is_at(&found[1], 2, there);
    assert_eq!(counts(scene.reset(&arena).expect("resets")), [1, 0, 0, 1]);
    let error = arena.load(at).expect_err("damaged");
    assert_eq!(error.kind(), cg_store::ErrorKind::Damaged);
    assert_eq!(findings(&arena), found[..1]);

    arena.base().quarantine().chunk(at).expect("sets aside");
    assert_eq!(counts(scene.reset(&arena).expect("resets")), [1, 0, 0, 0]);
    assert_eq!(arena.load(at).expect("loads"), None);
}

#[test]
fn a_damaged_copy_of_the_bases_chunk_goes_alone() {
    let scene = Scene::new(|tx, ids, _| {
        tx.set_block(ids.overworld, ids.at(1, 0, 0).pos.min_block(), ids.glass).expect("it is there");
    });
    let row_key = key::overlay_chunk(LEASE, scene.at(1));
    // Its frame is that of another row.
    scene.above.overwrite(Space::ChunkDelta, row_key);
    let arena = scene.open();
    let before = arena.load(scene.at(1)).expect("loads");
    assert_eq!(counts(scene.reset(&arena).expect("resets")), [0, 0, 1, 0]);
    let arena = scene.open();
    assert_eq!(arena.load(scene.at(1)).expect("loads"), before);
    assert_eq!(counts(scene.reset(&arena).expect("resets")), [0; 4]);
}

#[test]
fn nothing_is_given_up_where_entities_cannot_be_listed() {
    let scene = Scene::new(|tx, ids, _| {
        tx.set_block(ids.overworld, ids.at(0, 0, 0).pos.min_block(), ids.glass).expect("it is there");
        tx.put_entity(uuid(7), ids.cow_in(ids.at(0, 0, 0)));
    });
    scene.damage(0);
    let arena = scene.open();
    scene.above.spoil(Family::Entity, key::overlay_entity(LEASE, uuid(7)));
    let error = scene.reset(&arena).expect_err("the block is damaged");
    assert!(error.to_string().contains("a damaged block by request"), "{error}");
    let error = arena.load(scene.at(0)).expect_err("it is as it was");
    assert_eq!(error.kind(), cg_store::ErrorKind::Damaged);
    let nested = arena.transaction(|_| scene.reset(&arena));
    assert!(matches!(nested, Err(Error::Nested)), "{nested:?}");
}

/// The row of a change is sound, whatever became of the chunk below: it is a conflict of a merge, or damage of the base.
#[test]
fn a_sound_change_over_a_chunk_that_is_gone_or_damaged_is_left_alone() {
    let scene = Scene::new(|tx, ids, base| {
        for x in [1, 2] {
            tx.set_block(ids.overworld, ids.at(x, 0, 0).pos.min_block(), ids.glass).expect("it is there");
        }
        tx.save(ids.at(3, 0, 0), filled(base, ids.glass));
    });
    scene.damage(3);
    let base = World::builder().options(&options()).over(scene.below.clone()).expect("opens");
    base.transaction(|tx| {
        tx.delete(scene.at(1));
        Ok::<_, Error>(())
    })
    .expect("deletes");
    base.close().expect("closes");
    drop(base);
    scene.below.overwrite(Space::ChunkL0, key::chunk(scene.at(2)));
    let arena = scene.open();
    let found = arena.arenas().verify(VerifyDepth::Full, |_| {}).expect("the engine works").findings;
    let lost: Vec<_> = found.iter().map(|finding| finding.lost.map(|lost| lost.bounds.min().x())).collect();
    assert_eq!(lost, [None, None, Some(3)], "{found:#?}");
    assert!(found[0].what.contains("base") && found[0].what.ends_with("; reset or release the arena"));
    assert_eq!(counts(scene.reset(&arena).expect("resets")), [1, 0, 0, 0]);
    let arena = scene.open();
    assert_eq!(arena.load(scene.at(3)).expect("loads"), arena.base().load(scene.at(3)).expect("loads"));
    let gone = arena.load(scene.at(1)).expect_err("the base has no such chunk");
    assert!(
        matches!(gone.layer(), Some(cg_layers::OverlayError::BaseChanged { .. })),
        "the change is still there: {gone}"
    );
}
