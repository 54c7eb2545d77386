//! A restore that is larger than any batch is there whole or not at all, wherever the power goes: in a world and in an
//! overlay, in memory and on disk.

use std::sync::Arc;

use cg_format::{ChunkSource, Editor, EntitySource};
use cg_layers::{Arenas, Base, Overlay};
use cg_snapshot::{CaptureOptions, Region, RestoreJob, RestoreOptions, Snapshot, capture};
use cg_store::StoreLimits;
use cg_store::engine::{Budget, Engine, RocksEngine, RocksOptions};
use cg_store::prelude::*;
use cg_store::verify::VerifyDepth;
use cg_tiering::GameTick;
use tempfile::TempDir;
use uuid::Uuid;

use crate::surviving::{Fuse, Surviving};

/// Chunks in a row, of which a batch takes a few.
const CHUNKS: i64 = 60;
const SHEEP: EntityId = EntityId::new(Uuid::from_u128(0x5ee9));

type Failed = Box<dyn std::error::Error + Send + Sync>;

fn options() -> WorldOptions {
    let limits = StoreLimits { batch_bytes: 6000, ..StoreLimits::default() };
    WorldOptions { limits, cache_bytes: 0, engine_bytes: 16 << 20, ..WorldOptions::process() }
}

/// A world with the names that are used below.
fn world_over<E: Engine>(engine: E) -> Result<World, Error> {
    let world = World::builder().options(&options()).over(engine)?;
    if world.catalog().dimension("game:arena").is_none() {
        world.registry().register_dimension("game:arena")?;
        world.registry().register_blocks([":air", "game:stone", "game:glass"])?;
        world.registry().register_entity("game:sheep")?;
        world.registry().register_side("game:light")?;
    }
    Ok(world)
}

fn region() -> Region {
    let far = BlockPos::new(16 * CHUNKS - 1, 15, 15);
    Region::new(Dimension::new(0), BlockBox::new(BlockPos::new(0, 0, 0), far))
}

fn at(x: i64) -> ChunkAt {
    ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0))
}

/// Change that is made to a world or an overlay in one transaction.
trait Edit {
    fn edit<T: Editor<Error = Error>>(&mut self, tx: &mut T) -> Result<(), Failed>;
}

/// Stone with light, but for one place, and a sheep.
struct Build;

impl Edit for Build {
    fn edit<T: Editor<Error = Error>>(&mut self, tx: &mut T) -> Result<(), Failed> {
        for x in (0..CHUNKS).filter(|x| *x != 7) {
            let mut chunk = Chunk::filled(BlockId::new(1), &*tx.schema())?;
            chunk.set_side(SideKind::new(0), noise(x));
            tx.save(at(x), chunk.into())?;
        }
        let position = EntityPos::new(Dimension::new(0), BlockPos::new(40, 3, 3), [0.5; 3])?;
        Ok(tx.put_entity(SHEEP, Entity::new(EntityTypeId::new(0), Owner::Chunk(at(2)), position))?)
    }
}

/// Bytes that do not compress, so that a batch has room for a few chunks.
fn noise(seed: i64) -> Vec<u8> {
    let mut state = seed as u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(300).collect()
}

/// Breaks all of it: blocks, chunks that go and come, and the sheep.
struct Break;

impl Edit for Break {
    fn edit<T: Editor<Error = Error>>(&mut self, tx: &mut T) -> Result<(), Failed> {
        for x in 0..CHUNKS {
            if x % 10 == 4 {
                tx.delete(at(x))?;
            } else {
                tx.save(at(x), Chunk::filled(BlockId::new(2), &*tx.schema())?.into())?;
            }
        }
        Ok(tx.delete_entity(SHEEP)?)
    }
}

struct Restore(RestoreJob);

impl Edit for Restore {
    fn edit<T: Editor<Error = Error>>(&mut self, tx: &mut T) -> Result<(), Failed> {
        self.0.run(tx, &mut |_| {})?;
        Ok(())
    }
}

/// Target of a restore.
trait Target: ChunkSource<Error = Error> + EntitySource<Error = Error> + Sync + Sized {
    fn names(&self) -> Arc<Catalog>;
    fn change(&self, edit: impl Edit) -> Result<(), Failed>;
    /// Asserts that nothing is wrong, if that can be asked.
    fn check(&self) {}

    fn state(&self) -> Snapshot {
        capture(self, &self.names(), region(), &CaptureOptions::named("arena")).expect("reads")
    }
}

impl Target for World {
    fn names(&self) -> Arc<Catalog> {
        self.catalog()
    }

    fn change(&self, mut edit: impl Edit) -> Result<(), Failed> {
        self.transaction(|tx| edit.edit(tx)).map(drop)
    }

    fn check(&self) {
        let report = self.verify(VerifyDepth::Full, |_| {}).expect("readable");
        assert!(report.is_ok(), "{report:?}");
    }
}

impl<S: Base> Target for Overlay<S> {
    fn names(&self) -> Arc<Catalog> {
        self.catalog().expect("over its base")
    }

    fn change(&self, mut edit: impl Edit) -> Result<(), Failed> {
        self.transaction(|tx| edit.edit(tx))
    }
}

/// The first numbers, and then some.
fn few() -> impl Iterator<Item = i64> {
    (0..8).chain((8..).step_by(5))
}

/// The power goes at one commit after the other; what is opened again is as before the restore or as after it.
fn check<T: Target, O: Fn() -> Result<T, Error>>(place: impl Fn(&Fuse) -> O) {
    let (mut seen_before, mut seen_after) = (0, 0);
    for commits in few() {
        let fuse = Fuse::new();
        let open = place(&fuse);
        let target = open().expect("nothing is there");
        target.change(Build).expect("builds");
        let template = Arc::new(target.state());
        target.change(Break).expect("breaks");
        let broken = target.state();
        assert!(broken != *template && broken.info().present_count == CHUNKS as u64 - 6);
        let restore = || {
            let job = RestoreJob::new(Arc::clone(&template), &target.names(), RestoreOptions::default());
            Restore(job.expect("one registry"))
        };
        fuse.set(commits);
        let restored = target.change(restore());
        let is_burnt = fuse.is_burnt();
        assert_eq!(restored.is_ok(), !is_burnt, "{restored:?}");
        let again = restore();
        drop(target);

        // It goes once more while it is opened.
        fuse.set(2);
        drop(open());
        fuse.set(i64::MAX);
        let target = open().expect("opens");
        target.check();
        let now = target.state();
        if now == broken {
            seen_before += 1;
            assert_eq!(seen_after, 0, "what was committed is gone again");
            target.change(again).expect("the power is back");
            assert!(target.state() == *template);
        } else {
            seen_after += 1;
            assert!(now == *template, "{commits} commits: neither before nor after");
        }
        target.check();
        if !is_burnt {
            break;
        }
    }
    assert!(seen_before > 4 && seen_after > 4, "{seen_before} and {seen_after}");
}

/// An engine in memory that is opened again and again.
fn in_memory(fuse: &Fuse) -> impl Fn() -> Surviving + use<> {
    let engine = Surviving::new(fuse);
    move || engine.clone()
}

/// One on disk.
fn on_disk(fuse: &Fuse) -> impl Fn() -> Surviving + use<> {
    let (dir, fuse) = (TempDir::new().expect("a temporary directory"), fuse.clone());
    let options = RocksOptions::new(Budget::new(16 << 20, 1));
    move || {
        let path = dir.path().join("db");
        let engine = if path.exists() {
            RocksEngine::open(&path, &options)
        } else {
            RocksEngine::create(&path, &options)
        };
        Surviving::over(engine.expect("the disk is sound"), &fuse)
    }
}

fn arena<E: Engine>(engine: E, base: &World) -> Result<impl Target + use<E>, Error> {
    let arenas = Arenas::over(engine, base.clone(), &options())?;
    if arenas.list().is_empty() { arenas.lease("a match", GameTick::new(1)) } else { arenas.resume(0) }
}

/// A restore in steps, in a world that somebody edits: steps that meet a conflict write nothing and are done again.
#[test]
fn a_step_that_met_a_conflict_is_not_lost() {
    let world = world_over(cg_store::engine::MemEngine::new()).expect("a world in memory");
    world.change(Build).expect("builds");
    let template = Arc::new(world.state());
    world.change(Break).expect("breaks");
    let mut job = RestoreJob::new(Arc::clone(&template), &world.catalog(), RestoreOptions::default())
        .expect("one registry");
    let (mut conflicts, mut steps) = (0, 0);
    loop {
        // Every other step meets somebody who breaks what it has read.
        let meets = steps > conflicts;
        let stepped = world.transaction(|tx| {
            let is_more = job.run_some(tx, &mut |_| {}, 10)?;
            if is_more && meets {
                let breaks = || {
                    world.transaction(|tx| {
                        let air = Chunk::filled(BlockId::new(0), &tx.catalog().current_schema())?;
                        tx.save(at(10 * steps + 3), air);
                        Ok::<_, Failed>(())
                    })
                };
                std::thread::scope(|scope| scope.spawn(breaks).join().expect("no panic"))
                    .map_err(|_| "refused")?;
            }
            Ok::<_, Failed>(is_more)
        });
        match stepped.map(|stepped| stepped.value) {
            Ok(true) => steps += 1,
            Ok(false) => break,
            Err(error) => {
                let error: &Error = error.downcast_ref().expect("the world's");
                assert!(matches!(error, Error::Conflict { .. }), "{error}");
                conflicts += 1;
                job.take_back();
            }
        }
    }
    assert_eq!((steps, conflicts), (6, 5));
    assert!(world.state() == *template);
    world.check();
}

#[test]
fn a_restore_into_a_world_is_whole_or_not_there() {
    check(|fuse| {
        let engine = in_memory(fuse);
        move || world_over(engine())
    });
}

#[test]
fn a_restore_into_a_world_on_disk_is_whole_or_not_there() {
    check(|fuse| {
        let engine = on_disk(fuse);
        move || world_over(engine())
    });
}

#[test]
fn a_restore_into_an_overlay_is_whole_or_not_there() {
    let base = world_over(cg_store::engine::MemEngine::new()).expect("a world in memory");
    check(|fuse| {
        let (engine, base) = (in_memory(fuse), base.clone());
        move || arena(engine(), &base)
    });
}

#[test]
fn a_restore_into_an_overlay_on_disk_is_whole_or_not_there() {
    let base = world_over(cg_store::engine::MemEngine::new()).expect("a world in memory");
    check(|fuse| {
        let (engine, base) = (on_disk(fuse), base.clone());
        move || arena(engine(), &base)
    });
}
