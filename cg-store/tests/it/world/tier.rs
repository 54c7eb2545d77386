//! Chunks in warm and cold clusters, put there by hand: the world finds them whatever moves them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use super::load::by_field;
use super::*;
use cg_format::{ClusterTier, Space, Tier, key};
use proptest::prelude::*;

over_both_engines! {
    the_hottest_copy_is_the_live_one
    a_deletion_hides_all_colder_copies
    a_move_is_no_change
    a_lookup_reads_no_more_than_it_needs
    many_chunks_are_loaded_across_tiers
    chunks_of_several_parts_are_loaded_across_tiers
    a_rewritten_cluster_never_hides_a_chunk_from_a_reader
    cold_chunks_at_the_ends_of_the_world
    a_box_is_listed_without_decompressing
    a_box_is_found_without_passing_over_its_neighbours
}

/// Where the live copy of a chunk lies, and its content.
#[track_caller]
fn live(world: &World, at: ChunkAt) -> Option<(Tier, CommitSeq, Chunk)> {
    let schema = world.catalog().current_schema();
    let shown = world.tiers().with_stored_bytes(at, |stored| {
        assert_eq!(stored.at, at);
        Ok((stored.tier, stored.version, Chunk::decode(stored.value, &schema).expect("is sound")))
    });
    shown.expect("is sound")
}

fn the_hottest_copy_is_the_live_one(world: &World) {
    let ids = Ids::register(world);
    let a = ids.at(-1, 16, 5);
    let mut versions = Vec::new();
    for (cell, tier) in [(1, Some(ClusterTier::L2)), (2, Some(ClusterTier::L1)), (3, None)] {
        versions.push(save(world, [(a, marked(world, &ids, cell))]));
        if let Some(tier) = tier {
            demote(world, tier, &[a], true);
        }
        assert_sound(world);
    }
    let [cold, warm, hot] = [1, 2, 3].map(|cell| marked(world, &ids, cell));
    assert_eq!(live(world, a), Some((Tier::L0, versions[2], hot)));
    plant(world, [(Space::ChunkL0, key::chunk(a).to_vec(), None)]);
    assert_eq!(live(world, a), Some((Tier::L1, versions[1], warm)));
    let row = key::cluster(a.dimension, a.pos.cluster(ClusterTier::L1)).to_vec();
    plant(world, [(Space::ClusterL1, row, None)]);
    assert_eq!(live(world, a), Some((Tier::L2, versions[0], cold)));
    assert_eq!(live(world, ids.at(-1, 16, 6)), None, "the neighbour's slot is empty");
    // No commit has told the map.
    assert_eq!((findings(world).len(), world.opacity().rebuild().expect("draws")), (1, 1));
    assert_sound(world);
}

fn a_deletion_hides_all_colder_copies(world: &World) {
    let ids = Ids::register(world);
    let (a, b) = (ids.at(3, 3, 3), ids.at(3, 3, 2));
    save(world, [a, b].map(|at| (at, marked(world, &ids, 1))));
    demote(world, ClusterTier::L2, &[a, b], false);
    save(world, [(a, marked(world, &ids, 2))]);
    demote(world, ClusterTier::L1, &[a], false);
    world
        .transaction(|tx| {
            assert!(tx.load(a)?.is_some());
            tx.delete(a);
            Ok::<_, Error>(())
        })
        .expect("deletes");
    assert_eq!((live(world, a), world.load(a).expect("loads")), (None, None));
    assert!(live(world, b).is_some());
    let whole = ChunkBox::new(ChunkPos::constant(-20, -20, -20), ChunkPos::constant(20, 20, 20));
    let hash = world.content_hash(cg_store::view::Area::Box(ids.overworld, whole)).expect("hashes");
    assert_eq!(
        hash,
        world
            .content_hash(cg_store::view::Area::Box(ids.overworld, ChunkBox::new(b.pos, b.pos)))
            .expect("hashes")
    );
    save(world, [(a, marked(world, &ids, 3))]);
    assert_eq!(
        live(world, a).map(|(tier, _, chunk)| (tier, chunk)),
        Some((Tier::L0, marked(world, &ids, 3)))
    );
    assert_sound(world);
}

fn a_move_is_no_change(world: &World) {
    let ids = Ids::register(world);
    let all = [ids.at(0, 0, 0), ids.at(5, 0, 0), ids.at(16, 0, 0), ids.at(-1, -1, -1)];
    let version = save(world, all.map(|at| (at, marked(world, &ids, at.pos.x() as u16 & 31))));
    let hash = world.content_hash(cg_store::view::Area::World).expect("hashes");
    let stats = world.metrics().stats;
    let ok = world.transaction(|tx| {
        assert!(tx.load(all[0])?.is_some());
        demote(world, ClusterTier::L1, &all, false);
        demote_up(world, &all);
        tx.edit(all[0], |chunk| chunk.remove_entity(uuid(1)))
    });
    ok.expect("a move is no write that conflicts");
    assert_eq!((world.metrics().stats - stats).commits, 0, "and what was not edited is not saved");
    for at in all {
        assert_eq!(live(world, at).map(|(tier, version, _)| (tier, version)), Some((Tier::L2, version)));
    }
    assert_eq!(world.content_hash(cg_store::view::Area::World).expect("hashes"), hash);
    assert_sound(world);
}

/// Moves chunks from warm clusters to cold ones.
fn demote_up(world: &World, all: &[ChunkAt]) {
    let back = all.iter().map(|at| {
        let (_, version, chunk) = live(world, *at).expect("is there");
        let draft = Draft::plain(Codec::None, 0, |out| chunk.encode(out));
        (*at, version, draft)
    });
    let mut batch = Batch::new();
    for (at, version, draft) in back.collect::<Vec<_>>() {
        batch.put(Space::ChunkL0, key::chunk(at), draft, Stamp::Keep(version.get()));
        batch.delete(Space::ClusterL1, key::cluster(at.dimension, at.pos.cluster(ClusterTier::L1)));
    }
    world.engine().commit(batch, &[], Level::Process).expect("commits");
    demote(world, ClusterTier::L2, all, false);
}

/// A chunk that takes some kilobytes, so that it matters whether it is decompressed.
pub(super) fn noisy(world: &World, ids: &Ids, seed: u32) -> Chunk {
    let mut chunk = filled(world, ids.air);
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let bytes = (0..6000).map(|index| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // Half of it repeats, so that it compresses at all.
        if index % 2 == 0 { 0 } else { (state >> 24) as u8 }
    });
    chunk.set_side(ids.light, bytes.collect());
    chunk
}

fn a_lookup_reads_no_more_than_it_needs(world: &World) {
    let ids = Ids::register(world);
    // One in each of the four 4³ groups along x of a cold cluster.
    let cold: Vec<_> = (0..4).map(|x| ids.at(4 * x, 0, 0)).collect();
    let (warm, hot, absent) = (ids.at(0, 20, 0), ids.at(0, 40, 0), ids.at(0, 60, 0));
    save(world, cold.iter().chain([&warm, &hot]).zip(0..).map(|(at, seed)| (*at, noisy(world, &ids, seed))));
    demote(world, ClusterTier::L2, &cold, false);
    demote(world, ClusterTier::L1, &[warm], false);
    let chunk_bytes = noisy(world, &ids, 0).to_bytes().len() as u64;
    let (seed_form, by_field) = (521 + chunk_bytes, by_field(1, chunk_bytes));
    for (at, reads, decompressed_bytes) in
        [(hot, 1, 0), (warm, 2, seed_form), (cold[2], 3, by_field), (absent, 3, 0)]
    {
        let before = world.metrics().stats;
        world.tiers().with_stored_bytes(at, |_| Ok(())).expect("is sound");
        let work = world.metrics().stats - before;
        assert_eq!((work.engine_reads, work.chunks_decoded), (reads, 0), "{at}");
        assert_eq!(work.bytes_decompressed, decompressed_bytes, "{at}");
    }
    // A box inside one group looks into no other.
    let before = world.metrics().stats;
    let one = ChunkBox::new(cold[1].pos, cold[1].pos);
    world.content_hash(cg_store::view::Area::Box(ids.overworld, one)).expect("hashes");
    let work = world.metrics().stats - before;
    assert_eq!(work.chunks_decoded, 1);
    assert!(work.bytes_decompressed < 2 * chunk_bytes, "{} bytes", work.bytes_decompressed);
}

fn many_chunks_are_loaded_across_tiers(world: &World) {
    are_loaded_across_tiers(world, &(0..40).map(|n| (n % 7, n / 7, n % 3)).collect::<Vec<_>>());
}

/// So many that they are read in parts: eight columns, in sixteen 16³ cubes.
fn chunks_of_several_parts_are_loaded_across_tiers(world: &World) {
    let places = (0..400).map(|n| (14 + n % 4, n / 8, 15 + n / 4 % 2));
    are_loaded_across_tiers(world, &places.collect::<Vec<_>>());
}

/// Half of the places become cold, a quarter warm, and one of each of both others is deleted.
fn are_loaded_across_tiers(world: &World, places: &[(i64, i64, i64)]) {
    let ids = Ids::register(world);
    let all: Vec<_> = places.iter().map(|(x, y, z)| ids.at(*x, *y, *z)).collect();
    save(world, all.iter().zip(0..).map(|(at, n)| (*at, marked(world, &ids, n))));
    let (half, deleted) = (all.len() / 2, [3, all.len() - 7]);
    demote(world, ClusterTier::L2, &all[..half], false);
    demote(world, ClusterTier::L1, &all[half..half + half / 2], false);
    world
        .transaction(|tx| {
            for n in deleted {
                tx.delete(all[n]);
            }
            Ok::<_, Error>(())
        })
        .expect("deletes");
    let mut asked = all.clone();
    asked.reverse();
    asked.push(ids.at(500, 0, 0));
    asked.push(all[7]);
    world.cache().clear();
    let found = world.load_many(&asked);
    world.cache().clear();
    let waited = world.load_in_background(&asked).wait().expect("loads");
    assert_eq!(found.len(), asked.len());
    for (found, (waited, at)) in found.into_iter().zip(waited.into_iter().zip(&asked)) {
        let chunk = found.expect("is sound");
        assert_eq!(chunk, waited.expect("is sound"));
        let n = all.iter().position(|other| other == at);
        let expected = n.filter(|n| !deleted.contains(n)).map(|n| marked(world, &ids, n as u16));
        assert_eq!(chunk.as_deref(), expected.as_ref(), "{at}");
    }
}

fn a_rewritten_cluster_never_hides_a_chunk_from_a_reader(world: &World) {
    let ids = Ids::register(world);
    let a = ids.at(0, 0, 0);
    save(world, [(a, filled(world, ids.stone))]);
    demote(world, ClusterTier::L1, &[a], false);
    let (hot, warm) = (key::chunk(a), key::cluster(a.dimension, a.pos.cluster(ClusterTier::L1)));
    let rounds = 3000;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let done = &done;
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(move || {
                    let mut missed = 0;
                    while !done.load(Ordering::Acquire) {
                        missed += u64::from(
                            world.tiers().with_stored_bytes(a, |_| Ok(())).expect("is sound").is_none(),
                        );
                    }
                    missed
                })
            })
            .collect();
        for round in 0..rounds {
            // Promoted by a save, dropped from its cluster because the slot is shadowed, and demoted again.
            save(world, [(a, marked(world, &ids, round))]);
            plant(world, [(Space::ClusterL1, warm.to_vec(), None)]);
            assert!(world.engine().get(Space::ChunkL0, &hot).expect("reads").is_some());
            demote(world, ClusterTier::L1, &[a], false);
        }
        done.store(true, Ordering::Release);
        let missed: u64 = readers.into_iter().map(|reader| reader.join().expect("no panic")).sum();
        assert_eq!(missed, 0, "a stored chunk was taken for absent");
    });
}

fn cold_chunks_at_the_ends_of_the_world(world: &World) {
    let ids = Ids::register(world);
    let ends = [ChunkPos::MIN, ChunkPos::MIN + 1, -1, 0, ChunkPos::MAX - 1, ChunkPos::MAX];
    let mut all = Vec::new();
    for x in ends {
        for y in ends {
            for z in ends {
                all.push(ids.at(x, y, z));
            }
        }
    }
    save(world, all.iter().zip(0..).map(|(at, n)| (*at, marked(world, &ids, n))));
    let hash = world.content_hash(cg_store::view::Area::World).expect("hashes");
    let (cold, rest): (Vec<_>, Vec<_>) = all.iter().partition(|at| at.pos.x() < 0);
    demote(world, ClusterTier::L2, &cold, false);
    demote(world, ClusterTier::L1, &rest[..20], false);
    for (n, at) in all.iter().enumerate() {
        let (_, _, chunk) = live(world, *at).expect("is there");
        assert_eq!(chunk, marked(world, &ids, n as u16), "{at}");
    }
    assert_eq!(world.content_hash(cg_store::view::Area::World).expect("hashes"), hash);
    // Boxes over the ends, by name where they are small and by key where they are not.
    for (from, to) in [
        ([ChunkPos::MIN; 3], [ChunkPos::MAX; 3]),
        ([ChunkPos::MIN; 3], [ChunkPos::MIN + 1; 3]),
        ([ChunkPos::MAX - 1; 3], [ChunkPos::MAX; 3]),
        ([ChunkPos::MIN, -1, ChunkPos::MAX - 1], [-1, ChunkPos::MAX, ChunkPos::MAX]),
        ([-1, -1, -1], [0, 0, ChunkPos::MAX]),
        ([0, ChunkPos::MIN, 0], [0, 0, 0]),
    ] {
        let corner = |[x, y, z]: [i64; 3]| ChunkPos::constant(x, y, z);
        let area = ChunkBox::new(corner(from), corner(to));
        let expected: BTreeSet<_> = all.iter().copied().filter(|at| area.contains(at.pos)).collect();
        let counted = world.transaction(|tx| match tx.delete_box(ids.overworld, area)? {
            count if count == expected.len() as u64 => Err::<(), _>(Error::Nested),
            count => panic!("{count} chunks in {area:?}, not {}", expected.len()),
        });
        assert!(matches!(counted, Err(Error::Nested)), "{counted:?}");
    }
    assert_sound(world);
}

fn a_box_is_listed_without_decompressing(world: &World) {
    let ids = Ids::register(world);
    let all: Vec<_> = (0..24).map(|n| ids.at(n, n / 3, -n)).collect();
    save(world, all.iter().zip(0..).map(|(at, seed)| (*at, noisy(world, &ids, seed))));
    demote(world, ClusterTier::L2, &all[..12], false);
    demote(world, ClusterTier::L1, &all[12..18], false);
    world
        .transaction(|tx| {
            tx.delete(all[3]);
            tx.delete(all[13]);
            Ok::<_, Error>(())
        })
        .expect("deletes");
    let committed = world.transaction(|tx| {
        let before = world.metrics().stats;
        let count = tx.delete_box(ids.overworld, ChunkBox::EVERYTHING)?;
        let work = world.metrics().stats - before;
        assert_eq!((work.bytes_decompressed, work.chunks_decoded, work.engine_reads), (0, 0, 0));
        Ok::<_, Error>(count)
    });
    assert_eq!(committed.expect("commits").value, 22);
    for at in &all {
        assert_eq!(live(world, *at), None, "{at}");
    }
    assert_sound(world);
}

fn a_box_is_found_without_passing_over_its_neighbours(world: &World) {
    let ids = Ids::register(world);
    // 20×20 columns of cubes, each with a cube at three heights.
    let places = (0..20).flat_map(|x| (0..20).flat_map(move |z| [-9, 0, 33].map(|y| [x, y, z])));
    let all: Vec<_> = places.map(|[x, y, z]| ids.at(16 * (x - 10), 16 * y, 16 * (z - 10))).collect();
    save(world, all.iter().map(|at| (*at, marked(world, &ids, 1))));
    demote(world, ClusterTier::L1, &all[..300], false);
    let end = |x, y, z| ChunkPos::constant(x, y, z);
    for (area, inside, most) in [
        // One column, a row of columns, and a slice through all at one height.
        (ChunkBox::new(end(16, ChunkPos::MIN, 16), end(31, ChunkPos::MAX, 31)), 3, 30),
        (
            ChunkBox::new(end(16, ChunkPos::MIN, ChunkPos::MIN), end(31, ChunkPos::MAX, ChunkPos::MAX)),
            60,
            260,
        ),
        (
            ChunkBox::new(end(ChunkPos::MIN, 0, ChunkPos::MIN), end(ChunkPos::MAX, 15, ChunkPos::MAX)),
            400,
            1400,
        ),
    ] {
        let before = world.metrics().stats;
        let mut shown = 0;
        let walked = world.read_view(|view| {
            view.for_each_chunk(cg_store::view::Area::Box(ids.overworld, area), |stored| {
                assert!(area.contains(stored.expect("is sound").at.pos));
                shown += 1;
                std::ops::ControlFlow::<()>::Continue(())
            })
        });
        walked.expect("walks");
        let scanned = (world.metrics().stats - before).keys_scanned;
        assert_eq!(shown, inside, "{area:?}");
        assert!(scanned <= most, "{scanned} keys for {area:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever lies in which tiers, each live chunk is shown once and the content is the same.
    #[test]
    fn a_walk_shows_each_chunk_once(
        steps in prop::collection::vec((0..3_u8, -2..18_i64, -5..5_i64, 0..4_u16), 1..60),
        corner in (-3..19_i64, -6..6_i64),
        size in (0..20_i64, 0..8_i64),
    ) {
        let (tiered, flat) = (in_memory(), in_memory());
        let ids = Ids::register(&tiered);
        Ids::register(&flat);
        let mut stored = BTreeSet::new();
        for (what, x, y, cell) in &steps {
            let at = ids.at(*x, *y, 0);
            if *what == 2 && *cell == 0 {
                for world in [&tiered, &flat] {
                    let deleted = world.transaction(|tx| { tx.delete(at); Ok::<_, Error>(()) });
                    deleted.expect("deletes");
                }
                stored.remove(&at);
                continue;
            }
            for world in [&tiered, &flat] {
                save(world, [(at, marked(world, &ids, *cell))]);
            }
            stored.insert(at);
            let is_hot = tiered.engine().get(Space::ChunkL0, &key::chunk(at)).expect("reads").is_some();
            // A cold copy may only be made where no warm one would hide it.
            let warm = key::cluster(at.dimension, at.pos.cluster(ClusterTier::L1));
            let has_warm = tiered.engine().get(Space::ClusterL1, &warm).expect("reads").is_some();
            match what {
                0 if is_hot => demote(&tiered, ClusterTier::L1, &[at], *cell % 2 == 0),
                1 if is_hot && !has_warm => demote(&tiered, ClusterTier::L2, &[at], *cell % 2 == 0),
                _ => {}
            }
        }
        prop_assert_eq!(tiered.content_hash(cg_store::view::Area::World).expect("hashes"), flat.content_hash(cg_store::view::Area::World).expect("hashes"));
        let report = tiered.verify(VerifyDepth::Full, |_| {}).expect("verifies");
        prop_assert_eq!(report.checked.get("chunks").copied().unwrap_or(0), stored.len() as u64);
        prop_assert!(report.is_ok(), "{:?}", report.findings);
        let max = ChunkPos::constant(corner.0 + size.0, corner.1 + size.1, 1);
        let area = ChunkBox::new(ChunkPos::constant(corner.0, corner.1, -1), max);
        prop_assert_eq!(
            tiered.content_hash(cg_store::view::Area::Box(ids.overworld, area)).expect("hashes"),
            flat.content_hash(cg_store::view::Area::Box(ids.overworld, area)).expect("hashes")
        );
        let deleted = tiered.transaction(|tx| tx.delete_box(ids.overworld, area)).expect("deletes");
        prop_assert_eq!(deleted.value, stored.iter().filter(|at| area.contains(at.pos)).count() as u64);
        for at in stored {
            prop_assert_eq!(tiered.load(at).expect("loads").is_some(), !area.contains(at.pos));
        }
    }
}
