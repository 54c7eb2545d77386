//! Blocks that a host sets one by one: the rows are those of a world that compares the chunks.

use super::*;
use cg_store::WriteBatch;
use cg_store::error::ConflictKey;

fn deltas() -> WorldOptions {
    WorldOptions { deltas: true, ..options() }
}

/// How a block of a chunk is set.
#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    /// By its name, so that the commit compares this cell.
    Named,
    /// By a function, so that the commit compares all.
    Compared,
}

/// A cell in the row of chunks along x.
fn pos(x: i64) -> BlockPos {
    BlockPos::new(x, 3, 5)
}

/// Sets a block in a batch.
type Set<'s> = dyn Fn(&mut WriteBatch, i64, BlockId) + 's;

/// Two worlds with the same content that get the same commits, in either way.
struct Twins {
    worlds: [(How, World); 2],
    ids: Ids,
}

/// A transaction of a twin.
struct Step<'s, 'w> {
    tx: &'s mut Transaction<'w>,
    world: &'s World,
    ids: Ids,
    how: How,
}

impl Step<'_, '_> {
    fn set(&mut self, x: i64, block: BlockId) -> Result<(), Error> {
        match self.how {
            How::Named => self.tx.set_block(self.ids.overworld, pos(x), block).map(drop),
            How::Compared => self.set_by_edit(x, block),
        }
    }

    fn set_by_edit(&mut self, x: i64, block: BlockId) -> Result<(), Error> {
        let schema = self.tx.current_catalog().current_schema();
        let (at, cell) = (ChunkAt::new(self.ids.overworld, pos(x).chunk()), pos(x).local());
        self.tx.edit(at, |chunk| chunk.set_block(cell, block, &schema))??;
        Ok(())
    }

    /// The chunk that the host would save.
    fn loaded(&mut self, x: i64) -> Chunk {
        let at = ChunkAt::new(self.ids.overworld, pos(x).chunk());
        Chunk::clone(&self.tx.load(at).expect("loads").expect("is there"))
    }
}

impl Twins {
    fn new(mut world: impl FnMut(How) -> World) -> Self {
        let worlds = [How::Named, How::Compared].map(|how| (how, world(how)));
        let ids = worlds.each_ref().map(|(_, world)| Ids::register(world))[0];
        let twins = Self { worlds, ids };
        for (_, world) in &twins.worlds {
            let mut hills = filled(world, ids.stone);
            let schema = world.catalog().current_schema();
            for cell in LocalPos::all().filter(|cell| (cell.x() ^ cell.y() ^ cell.z()) % 4 == 0) {
                hills.set_block(cell, ids.glass, &schema).expect("is registered");
            }
            save(world, (0..3).map(|x| (ids.at(x, 0, 0), hills.clone())));
        }
        twins
    }

    fn in_memory() -> Self {
        Self::new(|_| World::builder().options(&deltas()).in_memory().expect("a world in memory"))
    }

    /// Runs a transaction in both worlds. It writes this many deltas and leaves this many chunks as they are.
    #[track_caller]
    fn check(
        &self,
        what: &str,
        (written, unchanged): (u64, u64),
        body: impl Fn(&mut Step<'_, '_>) -> Result<(), Error>,
    ) {
        for (how, world) in &self.worlds {
            let before = world.metrics().stats;
            let committed = world.transaction(|tx| body(&mut Step { tx, world, ids: self.ids, how: *how }));
            committed.unwrap_or_else(|error| panic!("{what}: {error}"));
            let since = world.metrics().stats - before;
            let found = (since.deltas_written, since.saves_elided);
            assert_eq!(found, (written, unchanged), "{what}, {how:?}");
        }
        self.check_equal(what);
    }

    #[track_caller]
    fn check_equal(&self, what: &str) {
        let [named, compared] = self.worlds.each_ref().map(|(_, world)| rows_of_any_opening(world));
        assert!(named == compared, "{what}: the rows differ");
        let chunks = |world: &World| [0, 1, 2].map(|x| world.load(self.ids.at(x, 0, 0)).expect("loads"));
        for _ in 0..2 {
            let [named, compared] = self.worlds.each_ref().map(|(_, world)| chunks(world));
            assert_eq!(named, compared, "{what}");
            self.worlds.iter().for_each(|(_, world)| world.cache().clear());
        }
    }
}

#[test]
fn named_cells_give_the_rows_of_a_comparison() {
    let twins = Twins::in_memory();
    let Ids { air, stone, glass, .. } = twins.ids;
    twins.check("one block", (1, 0), |step| step.set(1, air));
    twins.check("several blocks", (1, 0), |step| [9, 2, 7, 3].iter().try_for_each(|x| step.set(*x, air)));
    twins.check("one block twice", (1, 0), |step| {
        [stone, glass].iter().try_for_each(|kind| step.set(1, *kind))
    });
    twins.check("and back", (0, 1), |step| [stone, glass].iter().try_for_each(|kind| step.set(1, *kind)));
    twins.check("one of two back", (1, 0), |step| {
        step.set(2, stone)?;
        step.set(4, air)?;
        step.set(2, air)
    });
    twins.check("as it is", (0, 1), |step| step.set(2, air));
    twins.check("two chunks", (2, 0), |step| [5, 17].iter().try_for_each(|x| step.set(*x, air)));
    twins.check("a chunk that was read again", (1, 0), |step| {
        step.set(18, air)?;
        step.world.cache().clear();
        step.set(19, air)
    });
    twins.check("more than a delta sets", (0, 0), |step| {
        for z in 0..16 {
            for y in 0..5 {
                let at = BlockPos::new(33, y, z);
                let schema = step.tx.current_catalog().current_schema();
                match step.how {
                    How::Named => drop(step.tx.set_block(step.ids.overworld, at, air)?),
                    How::Compared => {
                        let chunk = ChunkAt::new(step.ids.overworld, at.chunk());
                        step.tx.edit(chunk, |chunk| chunk.set_block(at.local(), air, &schema))??;
                    }
                }
            }
        }
        Ok(())
    });
    twins.worlds.iter().for_each(|(_, world)| assert_sound(world));
}

#[test]
fn what_else_changes_the_chunk_is_not_lost() {
    let twins = Twins::in_memory();
    let Ids { air, stone, glass, light, .. } = twins.ids;
    let a = twins.ids.at(0, 0, 0);
    twins.check("an edit before", (1, 0), |step| {
        step.set_by_edit(1, air)?;
        step.set(2, air)
    });
    twins.check("an edit behind", (1, 0), |step| {
        step.set(3, air)?;
        step.set_by_edit(4, air)
    });
    twins.check("an edit between", (1, 0), |step| {
        step.set(1, stone)?;
        step.set_by_edit(2, glass)?;
        step.set(3, stone)
    });
    twins.check("a save before", (1, 0), |step| {
        let mut chunk = step.loaded(0);
        chunk.set_block(pos(5).local(), air, &step.world.catalog().current_schema())?;
        step.tx.save(a, chunk);
        step.set(6, air)
    });
    twins.check("a save behind", (1, 0), |step| {
        let mut chunk = step.loaded(0);
        chunk.set_block(pos(7).local(), air, &step.world.catalog().current_schema())?;
        step.set(8, air)?;
        step.tx.save(a, chunk);
        Ok(())
    });
    twins.check("a save of other blocks behind", (1, 0), |step| {
        let mut chunk = step.loaded(0);
        chunk.set_block(pos(9).local(), air, &step.world.catalog().current_schema())?;
        step.set(10, air)?;
        step.tx.save_blocks(a, chunk)
    });
    twins.check("a box", (1, 0), |step| {
        step.set(11, air)?;
        let area = BlockBox::new(pos(12), pos(13));
        step.tx.write_box(step.ids.overworld, area, cg_format::CellOrder::Xyz, &[air; 2], stone, |kind| {
            Some(*kind)
        })
    });
    twins.check("side data", (0, 0), |step| {
        step.set(14, air)?;
        step.tx.set_side(a, light, Some(vec![1, 2, 3]))
    });
    twins.check("a deletion, and a save", (1, 0), |step| {
        step.set(15, air)?;
        let chunk = step.loaded(0);
        step.tx.delete(a);
        assert!(matches!(step.set(1, air), Err(Error::ChunkAbsent { at }) if at == a));
        step.tx.save(a, chunk);
        step.set(0, air)
    });
    twins.worlds.iter().for_each(|(_, world)| assert_sound(world));
}

#[test]
fn components_of_named_blocks_are_saved_with_the_chunk() {
    let twins = Twins::in_memory();
    let Ids { stone, machine, power, .. } = twins.ids;
    let (a, place) = (twins.ids.at(0, 0, 0), CellLayer::base(pos(1).local()));
    twins.check("a block with components", (0, 0), |step| step.set(1, machine));
    twins.check("its data", (0, 0), |step| {
        step.set(2, stone)?;
        step.tx.set_component(a, place, power, &[7; 4])
    });
    twins.check("a block beside it", (1, 0), |step| step.set(3, twins.ids.air));
    twins.check("gone and back, without its data", (0, 0), |step| {
        step.set(1, stone)?;
        step.set(1, machine)
    });
    for (_, world) in &twins.worlds {
        let chunk = world.load(a).expect("loads").expect("is there");
        assert_eq!(chunk.component(place, power), Some(&[0; 4][..]));
    }
    twins.check("another block in its place", (0, 0), |step| step.set(1, stone));
    twins.worlds.iter().for_each(|(_, world)| assert_sound(world));
}

#[test]
fn references_that_change_with_named_cells_are_in_the_delta() {
    let twins = Twins::in_memory();
    let Ids { air, stone, .. } = twins.ids;
    let (a, b) = (twins.ids.at(0, 0, 0), twins.ids.at(1, 0, 0));
    let cow = uuid(1);
    twins.check("an entity is put", (1, 0), |step| {
        step.set(1, air)?;
        step.tx.put_entity(cow, step.ids.cow_in(a));
        Ok(())
    });
    twins.check("and moves", (2, 0), |step| {
        step.set(2, air)?;
        step.tx.move_entity(cow, Owner::Chunk(b)).map(drop)
    });
    twins.check("into a chunk whose block is set back", (2, 0), |step| {
        step.set(1, stone)?;
        step.set(1, air)?;
        step.tx.move_entity(cow, Owner::Chunk(a)).map(drop)
    });
    twins.check("the host moves the reference", (2, 0), |step| {
        step.set(3, air)?;
        step.tx.edit(a, |chunk| chunk.remove_entity(cow))?;
        step.set(17, air)?;
        step.tx.edit(b, |chunk| chunk.add_entity(cow)).map(drop)
    });
    twins.check("it is deleted", (1, 0), |step| {
        step.set(18, air)?;
        step.tx.delete_entity(cow);
        Ok(())
    });
    twins.worlds.iter().for_each(|(_, world)| assert_sound(world));
}

#[test]
fn cells_that_a_batch_names_give_the_rows_of_a_comparison() {
    let disks = [Disk::new(), Disk::new()];
    let disk = |how| &disks[usize::from(how == How::Compared)];
    let twins =
        Twins::new(|how| World::builder().options(&deltas()).create(disk(how).path()).expect("is created"));
    let Ids { air, stone, glass, light, overworld, .. } = twins.ids;
    let submit = |what: &str, deltas: u64, fill: &dyn Fn(&mut WriteBatch, &Set<'_>)| {
        for (how, world) in &twins.worlds {
            let schema = world.catalog().current_schema();
            let set = |batch: &mut WriteBatch, x, block| match how {
                How::Named => batch.set_block(overworld, pos(x), block),
                How::Compared => {
                    let (schema, cell) = (schema.clone(), pos(x).local());
                    batch.edit(ChunkAt::new(overworld, pos(x).chunk()), move |chunk| {
                        chunk.set_block(cell, block, &schema)?;
                        Ok(())
                    });
                }
            };
            let (mut batch, before) = (WriteBatch::new(), world.metrics().stats);
            fill(&mut batch, &set);
            world.submit(batch).expect("is taken").wait().expect("is accepted");
            world.flush().expect("flushes");
            assert_eq!((world.metrics().stats - before).deltas_written, deltas, "{what}, {how:?}");
        }
        twins.check_equal(what);
    };
    submit("one block", 1, &|batch, set| set(batch, 1, air));
    submit("several blocks", 1, &|batch, set| [9, 2, 9].iter().for_each(|x| set(batch, *x, air)));
    submit("and back", 0, &|batch, set| [glass, air].iter().for_each(|kind| set(batch, 2, *kind)));
    submit("with side data", 0, &|batch, set| {
        set(batch, 3, air);
        batch.set_side(twins.ids.at(0, 0, 0), light, Some(vec![1]));
        set(batch, 4, air);
    });
    submit("two chunks", 2, &|batch, set| [5, 17, 6].iter().for_each(|x| set(batch, *x, air)));
    let loaded = twins.worlds.map(|(how, world)| {
        let loaded = [0, 1].map(|x| world.load(twins.ids.at(x, 0, 0)).expect("loads").expect("is there"));
        drop(world);
        (how, loaded)
    });
    for (how, loaded) in loaded {
        let world = World::builder().options(&deltas()).open(disk(how).path()).expect("opens");
        let found = [0, 1].map(|x| world.load(twins.ids.at(x, 0, 0)).expect("loads").expect("is there"));
        assert_eq!(found, loaded, "{how:?}");
        let blocks = [1, 2, 3, 4, 5, 6, 9].map(|x| found[0].block(pos(x).local()));
        assert_eq!((blocks, found[1].block(pos(17).local())), ([air; 7], air));
        assert_ne!(found[0].block(pos(7).local()), air);
        assert!([stone, glass].contains(&found[0].block(pos(8).local())));
        assert_sound(&world);
    }
}

#[test]
fn a_commit_in_between_is_a_conflict_and_no_block_is_lost() {
    let twins = Twins::in_memory();
    let air = twins.ids.air;
    let a = twins.ids.at(0, 0, 0);
    for (how, world) in &twins.worlds {
        let overtake = |x| {
            std::thread::scope(|scope| {
                let other =
                    scope.spawn(|| world.transaction(|tx| tx.set_block(twins.ids.overworld, pos(x), air)));
                other.join().expect("no panic").expect("commits");
            });
        };
        let body = |tx: &mut Transaction<'_>, overtaken: Option<i64>| {
            match how {
                How::Named => drop(tx.set_block(twins.ids.overworld, pos(1), air)?),
                How::Compared => {
                    let schema = tx.current_catalog().current_schema();
                    tx.edit(a, |chunk| chunk.set_block(pos(1).local(), air, &schema))??;
                }
            }
            overtaken.into_iter().for_each(&overtake);
            Ok::<_, Error>(())
        };
        let before = world.metrics().stats.deltas_written;
        let error = world.transaction(|tx| body(tx, Some(2))).expect_err("it was overtaken");
        assert!(matches!(&error, Error::Conflict { key: ConflictKey::Chunk(at) } if *at == a), "{error}");
        assert_eq!(world.metrics().stats.deltas_written - before, 1, "the other's alone");
        let mut runs = 0;
        let committed = world.transact(|tx| {
            runs += 1;
            body(tx, (runs == 1).then_some(3))
        });
        committed.expect("commits");
        assert_eq!((runs, world.metrics().stats.deltas_written - before), (2, 3));
        let chunk = world.load(a).expect("loads").expect("is there");
        assert_eq!([1, 2, 3].map(|x| chunk.block(pos(x).local())), [air; 3]);
    }
    twins.check_equal("after the conflicts");
    twins.worlds.iter().for_each(|(_, world)| assert_sound(world));
}
