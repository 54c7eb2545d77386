//! Commits that write what they change of a chunk instead of the chunk: nobody may notice but the disk.

use std::ops::ControlFlow;
use std::time::Duration;

use super::damage::corrupt;
use super::*;
use cg_format::{CellOrder, ClusterTier, Space, Tier, key};
use cg_store::view::Area;
use cg_tiering::GameTick;

fn deltas() -> WorldOptions {
    WorldOptions { deltas: true, ..options() }
}

/// The same changes to a world with deltas and to one without.
fn twins() -> [World; 2] {
    [deltas(), options()]
        .map(|options| World::builder().options(&options).in_memory().expect("a world in memory"))
}

/// How many deltas of a chunk are stored.
fn stored(world: &World, at: ChunkAt) -> usize {
    let (first, last) = (key::delta(at, 0), key::delta(at, u64::MAX));
    let range = (std::ops::Bound::Included(&first[..]), std::ops::Bound::Included(&last[..]));
    let mut count = 0;
    let scanned = world.engine().scan(Family::ChunkDelta, range, |_, _| {
        count += 1;
        ControlFlow::<()>::Continue(())
    });
    scanned.expect("scans");
    count
}

fn set(world: &World, ids: &Ids, x: i64, block: BlockId) -> CommitSeq {
    let set = world.transaction(|tx| tx.set_block(ids.overworld, BlockPos::new(x, 3, 5), block));
    set.expect("sets").seq
}

/// Terrain: a chunk that is worth a delta.
fn hills(world: &World, ids: &Ids) -> Chunk {
    let mut chunk = filled(world, ids.stone);
    let schema = world.catalog().current_schema();
    for cell in LocalPos::all().filter(|cell| (cell.x() ^ cell.y() ^ cell.z()) % 4 == 0) {
        chunk.set_block(cell, ids.glass, &schema).expect("is registered");
    }
    chunk
}

#[test]
fn a_small_change_writes_a_small_row_and_every_reader_sees_it() {
    let [with, without] = twins();
    for (world, is_delta) in [(&with, true), (&without, false)] {
        let ids = Ids::register(world);
        let (a, b) = (ids.at(0, 0, 0), ids.at(1, 0, 0));
        save(world, [(a, hills(world, &ids)), (b, hills(world, &ids))]);
        let base =
            world.engine().get(Space::ChunkL0, &key::chunk(a)).expect("reads").expect("is hot").to_vec();
        set(world, &ids, 4, ids.air);
        let last = set(world, &ids, 5, ids.air);
        let cow = world.transaction(|tx| {
            tx.put_entity(uuid(1), ids.cow_in(a));
            Ok::<_, Error>(())
        });
        cow.expect("is put");
        // It walks over the border.
        let moved = world.transaction(|tx| tx.move_entity(uuid(1), Owner::Chunk(b)));
        let moved = moved.expect("moves").seq;
        let now =
            world.engine().get(Space::ChunkL0, &key::chunk(a)).expect("reads").expect("is hot").to_vec();
        assert_eq!(now == base, is_delta, "the chunk itself is not written again");
        assert_eq!((stored(world, a), stored(world, b)), if is_delta { (4, 1) } else { (0, 0) });
        assert_eq!(world.metrics().stats.deltas_written, if is_delta { 5 } else { 0 });
        for _ in 0..2 {
            let (chunk, version) = world.load_versioned(a).expect("loads").expect("is there");
            assert_eq!((version, chunk.entities()), (moved, &[][..]));
            assert_eq!(chunk.block(LocalPos::new(4, 3, 5)), ids.air);
            assert_eq!(chunk.block(LocalPos::new(5, 3, 5)), ids.air);
            assert_eq!(
                world.load_many(&[b, a])[0].as_ref().expect("loads").as_ref().expect("is there").entities(),
                [uuid(1)]
            );
            world.cache().clear();
        }
        assert!(last < moved);
    }
    let ids = Ids::of(&with);
    let a = ids.at(0, 0, 0);
    // What the twins answer to everybody who does not go through the cache.
    let view = |world: &World| {
        world
            .tiers()
            .with_stored_bytes(a, |stored| Ok((stored.value.to_vec(), stored.version)))
            .expect("reads")
            .expect("is there")
    };
    assert_eq!(view(&with), view(&without));
    let walked = |world: &World| {
        let mut all = Vec::new();
        let walked = world.read_view(|view| {
            view.for_each_chunk(Area::World, |stored| {
                let stored = stored.expect("is sound");
                all.push((stored.at, stored.version, stored.value.to_vec()));
                ControlFlow::<()>::Continue(())
            })
        });
        walked.expect("walks");
        all
    };
    assert_eq!(walked(&with), walked(&without));
    let boxed = |world: &World| {
        let area = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(31, 15, 15));
        let mut out = vec![BlockId::new(0); 32 * 16 * 16];
        world.cache().clear();
        world
            .read_view(|view| view.read_box(ids.overworld, area, CellOrder::Yzx, &mut out, |block| block))
            .expect("reads");
        out
    };
    assert_eq!(boxed(&with), boxed(&without));
    assert_eq!(
        with.content_hash(cg_store::view::Area::World).expect("hashes"),
        without.content_hash(cg_store::view::Area::World).expect("hashes")
    );
    for world in [&with, &without] {
        world.opacity().rebuild().expect("draws");
        assert_eq!(
            world.opacity().column(ids.overworld, 4, 5).expect("reads"),
            with.opacity().column(ids.overworld, 4, 5).expect("reads")
        );
        assert_sound(world);
    }
}

#[test]
fn many_deltas_end_in_a_whole_chunk() {
    let [world, _] = twins();
    let ids = Ids::register(&world);
    let a = ids.at(0, 0, 0);
    save(&world, [(a, hills(&world, &ids))]);
    let mut most = 0;
    for n in 0..100 {
        set(&world, &ids, n % 16, if n % 32 < 16 { ids.air } else { ids.stone });
        most = most.max(stored(&world, a));
    }
    assert_eq!(most, 16);
    assert!(stored(&world, a) < 16 && world.metrics().stats.deltas_written > 80);
    world.cache().clear();
    let before = world.metrics().stats;
    assert_eq!(world.load(a).expect("loads").expect("is there").block(LocalPos::new(3, 3, 5)), ids.air);
    assert_eq!((world.metrics().stats - before).chunks_decoded, 1);
    assert_sound(&world);
}

#[test]
fn what_a_delta_cannot_say_is_saved_as_a_whole() {
    let [world, _] = twins();
    let ids = Ids::register(&world);
    let a = ids.at(0, 0, 0);
    save(&world, [(a, hills(&world, &ids))]);
    let whole = |what: &str| {
        assert_eq!(stored(&world, a), 0, "{what}");
        let now = world.load(a).expect("loads").expect("is there").block(LocalPos::new(7, 3, 5));
        set(&world, &ids, 7, if now == ids.air { ids.stone } else { ids.air });
        assert_eq!(stored(&world, a), 1, "a delta, to be ended");
    };
    set(&world, &ids, 1, ids.machine);
    whole("a block with components");
    set(&world, &ids, 1, ids.stone);
    whole("in place of one");
    let lit = world.transaction(|tx| tx.set_side(a, ids.light, Some(vec![1])));
    lit.expect("sets");
    whole("side data");
    save(&world, [(a, marked(&world, &ids, 9))]);
    whole("most of the chunk");
    let deleted = world.transaction(|tx| {
        tx.delete(a);
        Ok::<_, Error>(())
    });
    deleted.expect("deletes");
    assert_eq!((stored(&world, a), world.load(a).expect("loads")), (0, None));
    assert_sound(&world);
}

#[test]
fn deltas_go_on_whatever_tier_the_chunk_lies_in() {
    let disk = Disk::new();
    let mut world = World::builder().options(&deltas()).create(disk.path()).expect("is created");
    let ids = Ids::register(&world);
    let places: Vec<_> = (0..3).map(|x| ids.at(x, 0, 0)).collect();
    save(&world, places.iter().map(|at| (*at, hills(&world, &ids))));
    for x in [2, 18, 34] {
        set(&world, &ids, x, ids.air);
    }
    let hash = world.content_hash(cg_store::view::Area::World).expect("hashes");
    demote(&world, ClusterTier::L1, &places[1..2], false);
    demote(&world, ClusterTier::L2, &places[2..], false);
    world.cache().clear();
    assert_eq!(world.content_hash(cg_store::view::Area::World).expect("hashes"), hash, "a move is no change");
    for x in [3, 19, 35] {
        set(&world, &ids, x, ids.air);
    }
    for reopened in [false, true] {
        if reopened {
            drop(world);
            // Without the option deltas are read all the same.
            world = disk.open(&[]);
        }
        world.cache().clear();
        for (at, x) in places.iter().zip(0..) {
            let chunk = world.load(*at).expect("loads").expect("is there");
            let blocks = [2, 3].map(|cell| chunk.block(LocalPos::new(cell, 3, 5)));
            assert_eq!(blocks, [ids.air; 2], "chunk {x}");
            assert_eq!(stored(&world, *at), 2);
        }
        assert_sound(&world);
    }
    let tiers = world.tiers().census().expect("counts");
    assert_eq!([Tier::L0, Tier::L1, Tier::L2].map(|tier| tiers.tier(tier).chunks), [1, 1, 1]);
    set(&world, &ids, 20, ids.air);
    assert_eq!((stored(&world, places[1]), stored(&world, places[0])), (0, 2), "without the option they end");
    assert_sound(&world);
}

#[test]
fn a_damaged_delta_is_damage_and_can_be_set_aside_alone() {
    let disk = Disk::new();
    let world = World::builder().options(&deltas()).create(disk.path()).expect("is created");
    let ids = Ids::register(&world);
    let a = ids.at(0, 0, 0);
    save(&world, [(a, hills(&world, &ids))]);
    let [first, second, third] = [1, 2, 3].map(|x| set(&world, &ids, x, ids.air).get());
    drop(world);
    let row = key::delta(a, second);
    disk.raw().flip(Family::ChunkDelta, row, cg_format::frame::LEN_BYTES + 6);
    let world = World::builder().options(&deltas()).open(disk.path()).expect("opens");
    let damage = corrupt(world.load(a));
    assert_eq!((damage.space, &*damage.key), (Space::ChunkDelta, &row[..]));
    let error = world.transaction(|tx| {
        tx.save(a, filled(&world, ids.air));
        Ok::<_, Error>(())
    });
    assert!(matches!(error, Err(Error::Corrupt(_))), "damage is not overwritten blindly");
    assert!(world.content_hash(cg_store::view::Area::World).is_err());
    let found = findings(&world);
    let remedy = "; its chunk is there without this change: set the change aside with `cg quarantine`, or restore it from a checkpoint";
    assert!(found.iter().any(|what| what.ends_with(remedy)), "{found:?}");
    assert!(world.quarantine().chunk(a).expect("sets the delta aside"));
    let chunk = world.load(a).expect("loads").expect("the chunk is still there");
    let blocks = [1, 2, 3].map(|x| chunk.block(LocalPos::new(x, 3, 5)));
    assert_eq!(blocks, [ids.air, hills(&world, &ids).block(LocalPos::new(2, 3, 5)), ids.air]);
    assert_eq!(world.quarantine().list().expect("lists")[0].key, row);
    assert!(first < third && stored(&world, a) == 2);
}

/// Rows written past the world, which takes no commit of its own for them.
fn rearrange(world: &World, rows: impl IntoIterator<Item = ([u8; key::DELTA_LEN_BYTES], Option<u64>)>) {
    let mut batch = Batch::new();
    for (row, nonsense_of) in rows {
        match nonsense_of {
            None => batch.delete(Space::ChunkDelta, row),
            Some(seq) => {
                let nonsense = Draft::deltas(Codec::None, 0, |out| out.push(9));
                batch.put(Space::ChunkDelta, row, nonsense, Stamp::Keep(seq));
            }
        }
    }
    world.engine().commit(batch.maintenance(), &[], Level::Process).expect("commits");
}

#[test]
fn a_load_behind_deltas_reads_the_row_alone() {
    let world = World::builder().options(&deltas()).in_memory().expect("a world in memory");
    let ids = Ids::register(&world);
    let (a, b, c) = (ids.at(0, 0, 0), ids.at(1, 0, 0), ids.at(2, 0, 0));
    save(&world, [a, b, c].map(|at| (at, hills(&world, &ids))));
    let seqs = [1, 2, 17].map(|x| set(&world, &ids, x, ids.air));
    let loaded = || [a, b, c].map(|at| world.load_versioned(at).expect("loads").expect("is there"));
    let shown = || {
        [a, b].map(|at| {
            world.tiers().with_stored_bytes(at, |row| Ok((row.value.to_vec(), row.version))).expect("reads")
        })
    };
    let (before, view) = (loaded(), shown());
    // Whoever looks for the rows of the deltas finds none.
    let rows = [(a, seqs[0]), (a, seqs[1]), (b, seqs[2])].map(|(at, seq)| key::delta(at, seq.get()));
    rearrange(&world, rows.map(|row| (row, None)));
    assert_eq!((stored(&world, a), stored(&world, b)), (0, 0));
    for _ in 0..2 {
        world.cache().clear();
        assert_eq!(loaded(), before);
        world.cache().clear();
        let many =
            world.load_many(&[c, b, a]).into_iter().map(|chunk| chunk.expect("loads").expect("is there"));
        assert!(many.eq([2, 1, 0].map(|n: usize| before[n].0.clone())));
        assert_eq!(shown(), view);
    }
    // A chunk that is saved as a whole has none of them.
    save(&world, [(a, filled(&world, ids.glass))]);
    world.cache().clear();
    assert_eq!(*world.load(a).expect("loads").expect("is there"), filled(&world, ids.glass));
}

#[test]
fn damage_that_memory_hides_is_set_aside() {
    let world = World::builder().options(&deltas()).in_memory().expect("a world in memory");
    let ids = Ids::register(&world);
    let a = ids.at(0, 0, 0);
    save(&world, [(a, hills(&world, &ids))]);
    let [first, second] = [1, 2].map(|x| set(&world, &ids, x, ids.air).get());
    let blocks = || {
        world.cache().clear();
        let chunk = world.load(a).expect("loads").expect("is there");
        [1, 2].map(|x| chunk.block(LocalPos::new(x, 3, 5)))
    };
    rearrange(&world, [(key::delta(a, second), Some(second))]);
    assert_eq!(blocks(), [ids.air, ids.air], "it was read before");
    assert!(!findings(&world).is_empty());
    assert!(world.quarantine().chunk(a).expect("sets the delta aside"));
    let was = hills(&world, &ids).block(LocalPos::new(2, 3, 5));
    assert_eq!((blocks(), stored(&world, a)), ([ids.air, was], 1));
    assert_eq!(world.quarantine().list().expect("lists")[0].key, key::delta(a, second));
    assert!(first < second && !world.quarantine().chunk(a).expect("nothing is damaged"));
}

#[test]
fn a_chunk_whose_damaged_delta_was_set_aside_is_folded() {
    let disk = Disk::new();
    let world = World::builder().options(&deltas()).create(disk.path()).expect("is created");
    let ids = Ids::register(&world);
    let a = ids.at(0, 0, 0);
    save(&world, [(a, hills(&world, &ids))]);
    let [_, second, _] = [1, 2, 3].map(|x| set(&world, &ids, x, ids.air).get());
    drop(world);
    disk.raw().flip(Family::ChunkDelta, key::delta(a, second), cg_format::frame::LEN_BYTES + 6);
    let world = World::builder().options(&deltas()).open(disk.path()).expect("opens");
    let report = world.tick(GameTick::new(2 * MINUTE), &[], Duration::from_secs(60)).expect("ticks");
    assert_eq!((report.deltas_folded, report.damaged.len()), (0, 1));
    let around = cg_format::ChunkBox::around(a.pos, 1).expect("it is inside");
    let done = world.quarantine().chunks_in(a.dimension, around).expect("sets the delta aside");
    let expected = cg_store::quarantine::QuarantinedChunks { chunks: 0, without_deltas: 1, is_clear: true };
    assert_eq!(done, expected);
    let chunk = world.load(a).expect("loads");
    assert_eq!((tick(&world, 4 * MINUTE), stored(&world, a)), (1, 0));
    world.cache().clear();
    assert_eq!(world.load(a).expect("loads"), chunk);
}

/// A pack whose stone has a component, or none yet.
fn mill(components: &str) -> PackManifest {
    let text = format!(
        r#"{{ "pack": "mill", "version": "1", "namespaces": ["mill"],
            "components": [{{ "name": "mill:grain", "size": 4 }}],
            "blocks": [{{ "name": "mill:stone", "components": [{components}] }}, {{ "name": "mill:dust" }}] }}"#
    );
    PackManifest::from_json(&text).expect("a manifest")
}

#[test]
fn deltas_of_an_older_schema_are_applied_before_the_chunk_is_upgraded() {
    let disk = Disk::new();
    let world =
        World::builder().packs(&[mill("")]).options(&deltas()).create(disk.path()).expect("is created");
    let block = |world: &World, name| world.catalog().block_id(name).expect("offered");
    let (stone, dust) = (block(&world, "mill:stone"), block(&world, "mill:dust"));
    let ids = Ids::register(&world);
    let a = ids.at(0, 0, 0);
    save(&world, [(a, hills(&world, &ids))]);
    for (x, block) in [(1, stone), (2, stone), (2, dust)] {
        set(&world, &ids, x, block);
    }
    assert_eq!(stored(&world, a), 3);
    drop(world);
    // The stone that a delta put there has a component now.
    let world = World::builder()
        .packs(&[mill(r#""mill:grain""#)])
        .options(&deltas())
        .open(disk.path())
        .expect("opens");
    let chunk = world.load(a).expect("loads").expect("is there");
    let grain = world.catalog().component_id("mill:grain").expect("offered");
    let place = |x| CellLayer::base(LocalPos::new(x, 3, 5));
    assert_eq!((chunk.block(place(1).cell), chunk.block(place(2).cell)), (stone, dust));
    assert_eq!([1, 2].map(|x| chunk.component(place(x), grain)), [Some(&[0; 4][..]), None]);
    set(&world, &ids, 3, ids.air);
    assert_eq!(stored(&world, a), 0, "no delta of another generation than its row's");
    world.cache().clear();
    let chunk = world.load(a).expect("loads").expect("is there");
    assert_eq!([1, 2].map(|x| chunk.component(place(x), grain)), [Some(&[0; 4][..]), None]);
    assert_sound(&world);
}

#[test]
fn a_delta_without_its_chunk_is_found() {
    let [world, _] = twins();
    let ids = Ids::register(&world);
    let a = ids.at(0, 0, 0);
    save(&world, [(a, hills(&world, &ids))]);
    set(&world, &ids, 1, ids.air);
    plant(&world, [(Space::ChunkL0, key::chunk(a).to_vec(), None)]);
    assert!(
        findings(&world)
            .iter()
            .any(|finding| finding
                == "chunkDelta: it changes chunk 0, 0, 0 of dimension 0, which is not stored"),
        "{:?}",
        findings(&world)
    );
}

const MINUTE: u64 = 60 * GameTick::PER_SECOND;

/// A tick with time enough; returns how many chunks' deltas it folded.
fn tick(world: &World, now: u64) -> usize {
    world.tick(GameTick::new(now), &[], Duration::from_secs(60)).expect("ticks").deltas_folded
}

#[test]
fn a_tick_folds_what_is_full_or_left_alone_and_changes_nothing() {
    let world = World::builder().options(&deltas()).in_memory().expect("a world in memory");
    let ids = Ids::register(&world);
    let (a, b) = (ids.at(0, 0, 0), ids.at(9, 0, 0));
    save(&world, [(a, hills(&world, &ids)), (b, hills(&world, &ids))]);
    set(&world, &ids, 9 * 16, ids.air);
    for n in 0..15 {
        set(&world, &ids, n, if n % 2 == 0 { ids.air } else { ids.machine });
    }
    // A block with components is no delta, so the chunk was saved as a whole on the way.
    save(&world, [(a, hills(&world, &ids))]);
    assert_eq!((stored(&world, a), stored(&world, b)), (0, 1));
    for n in 0..16 {
        set(&world, &ids, n, ids.air);
        set(&world, &ids, n, if n % 2 == 0 { ids.glass } else { ids.stone });
        if n == 7 {
            assert_eq!((stored(&world, a), tick(&world, 1)), (16, 1), "it is full");
        }
    }
    assert_eq!((stored(&world, a), stored(&world, b)), (16, 1), "so the next change was small again");
    let all = |world: &World| {
        let mut all = Vec::new();
        let walked = world.read_view(|view| {
            view.for_each_chunk(Area::World, |stored| {
                let stored = stored.expect("is sound");
                all.push((stored.at, stored.version, stored.schema_generation, stored.value.to_vec()));
                ControlFlow::<()>::Continue(())
            })
        });
        walked.expect("walks");
        all
    };
    let (before, hash, last) =
        (all(&world), world.content_hash(cg_store::view::Area::World).expect("hashes"), world.last_commit());
    assert_eq!((tick(&world, 2), tick(&world, MINUTE - 1), tick(&world, MINUTE)), (1, 0, 1));
    assert_eq!((stored(&world, a), stored(&world, b), world.metrics().chunks_with_deltas), (0, 0, 0));
    assert_eq!(
        (all(&world), world.content_hash(cg_store::view::Area::World).expect("hashes"), world.last_commit()),
        (before, hash, last)
    );
    assert_eq!((tick(&world, 2 * MINUTE), world.metrics().stats.chunks_folded), (0, 3));
    assert_sound(&world);
    // In a cluster, it gets a row of its own, which is demoted like any other.
    world.tiers().demote_all(24 * 60 * MINUTE, |_| {}).expect("settles");
    let version = set(&world, &ids, 3, ids.air);
    let found = |world: &World| {
        world
            .tiers()
            .with_stored_bytes(a, |stored| Ok((stored.tier, stored.version)))
            .expect("reads")
            .expect("is there")
    };
    assert_eq!((stored(&world, a), found(&world)), (1, (Tier::L2, version)));
    let hash = world.content_hash(cg_store::view::Area::World).expect("hashes");
    assert_eq!((tick(&world, 3 * MINUTE - 1), found(&world)), (0, (Tier::L2, version)));
    assert_eq!((tick(&world, 3 * MINUTE), found(&world)), (1, (Tier::L0, version)));
    world.tiers().demote_all(24 * 60 * MINUTE, |_| {}).expect("settles");
    assert_eq!(
        (found(&world), world.content_hash(cg_store::view::Area::World).expect("hashes")),
        ((Tier::L2, version), hash)
    );
    set(&world, &ids, 4, ids.air);
    world.tiers().demote_all(24 * 60 * MINUTE, |_| {}).expect("settles");
    assert_eq!((stored(&world, a), found(&world).0), (0, Tier::L2), "settling folds all");
    assert_sound(&world);
}

#[test]
fn commits_beside_folding_are_never_lost() {
    let [with, without] = twins();
    let commits = |world: &World, ids: &Ids| {
        let at = |n: u64| ids.at(n as i64 % 3, 0, 0);
        for n in 0..600_u64 {
            let hash = n.wrapping_mul(6_364_136_223_846_793_005) >> 33;
            match hash % 16 {
                0 => drop(save(world, [(at(n), hills(world, ids))])),
                1 => {
                    let deleted = world.transaction(|tx| {
                        tx.delete(at(n));
                        Ok::<_, Error>(())
                    });
                    drop(deleted.expect("deletes"));
                    save(world, [(at(n), hills(world, ids))]);
                }
                _ => drop(set(world, ids, n as i64 % 3 * 16 + (hash / 16 % 16) as i64, ids.air)),
            }
        }
    };
    let mut all_ids = None;
    for world in [&with, &without] {
        let ids = Ids::register(world);
        save(world, (0..3).map(|x| (ids.at(x, 0, 0), hills(world, &ids))));
        all_ids = Some(ids);
    }
    let ids = all_ids.expect("two worlds");
    commits(&without, &ids);
    let done = std::sync::atomic::AtomicBool::new(false);
    let order = std::sync::atomic::Ordering::SeqCst;
    std::thread::scope(|scope| {
        let ticks = scope.spawn(|| {
            let (mut now, mut folded) = (0, 0);
            while !done.load(order) {
                // Whatever has deltas is folded each time; nothing is old enough to move.
                now += MINUTE;
                folded += tick(&with, now);
            }
            folded
        });
        commits(&with, &ids);
        done.store(true, order);
        ticks.join().expect("no panic")
    });
    for n in 0..2 {
        let [a, b] = [&with, &without].map(|world| {
            world.cache().clear();
            (0..3).map(|x| world.load_versioned(ids.at(x, 0, 0)).expect("loads")).collect::<Vec<_>>()
        });
        assert!(a == b, "in memory and after it, {n}");
        assert_eq!(
            with.content_hash(cg_store::view::Area::World).expect("hashes"),
            without.content_hash(cg_store::view::Area::World).expect("hashes")
        );
        with.tiers().demote_all(MINUTE, |_| {}).expect("settles");
    }
    assert_sound(&with);
}
