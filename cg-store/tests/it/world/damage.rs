//! Damaged rows on disk: told from absence, never overwritten blindly.

use super::*;
use cg_format::frame;
use cg_format::{ClusterTier, Space, key};
use cg_store::Peek;
use cg_store::engine::EngineError;

/// A closed world with a chunk, its neighbour, and a cow in the chunk.
pub(super) fn farm() -> (Disk, Ids, ChunkAt, ChunkAt) {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let (a, b) = (ids.at(0, 0, 0), ids.at(0, 0, 1));
    save(&world, [(a, marked(&world, &ids, 7)), (b, filled(&world, ids.stone))]);
    let put = world.transaction(|tx| {
        tx.put_entity(uuid(1), ids.cow_in(a));
        Ok::<_, Error>(())
    });
    drop(put.expect("puts"));
    drop(world);
    (disk, ids, a, b)
}

#[track_caller]
pub(super) fn corrupt<T: std::fmt::Debug>(result: Result<T, Error>) -> cg_store::error::Damage {
    match result {
        Err(Error::Corrupt(damage)) => *damage,
        other => panic!("not seen as damage: {other:?}"),
    }
}

#[test]
fn damage_is_neither_absence_nor_overwritten() {
    let (disk, ids, a, b) = farm();
    let row = key::chunk(a);
    disk.raw().flip(Family::ChunkL0, row, frame::LEN_BYTES + 20);
    let before = disk.raw().get(Family::ChunkL0, row);
    let world = disk.open(&[]);
    let damage = corrupt(world.load(a));
    assert_eq!((damage.space, damage.key.as_slice()), (Space::ChunkL0, &row[..]));
    corrupt(world.load_versioned(a));
    corrupt(world.tiers().with_stored_bytes(a, |_| Ok(())));
    assert!(matches!(world.peek(a), Peek::NotLoaded), "memory holds no damage");
    assert!(world.load(b).expect("the neighbour is sound").is_some());
    // One damaged chunk fails alone.
    let many = world.load_many(&[b, a, b]);
    assert!(matches!(many[..], [Ok(Some(_)), Err(Error::Corrupt(_)), Ok(Some(_))]), "{many:?}");
    // Nothing that a host does by accident replaces it.
    corrupt(world.transaction(|tx| {
        tx.save(a, filled(&world, ids.air));
        Ok::<_, Error>(())
    }));
    corrupt(world.transaction(|tx| {
        tx.delete(a);
        Ok::<_, Error>(())
    }));
    corrupt(world.transaction(|tx| tx.set_block(ids.overworld, BlockPos::new(0, 0, 0), ids.air)));
    corrupt(world.transaction(|tx| tx.delete_box(ids.overworld, ChunkBox::EVERYTHING)));
    corrupt(world.transaction(|tx| {
        tx.put_entity(uuid(2), ids.cow_in(a));
        Ok::<_, Error>(())
    }));
    corrupt(world.content_hash(cg_store::view::Area::World));
    assert_eq!(
        findings(&world).len(),
        2,
        "the row, and the cow whose chunk nobody can read: {:?}",
        findings(&world)
    );
    drop(world);
    assert!(disk.raw().get(Family::ChunkL0, row) == before);
}

#[test]
fn every_flipped_bit_of_a_chunk_row_is_seen() {
    let (disk, _, a, b) = farm();
    let (row, sound) = (key::chunk(a), disk.raw().get(Family::ChunkL0, key::chunk(a)));
    // The same row at another place is damage too.
    for step in 0..=24 {
        let mut bytes = sound.clone();
        match step {
            24 => bytes = disk.raw().get(Family::ChunkL0, key::chunk(b)),
            23 => bytes.truncate(frame::LEN_BYTES - 1),
            22 => bytes.clear(),
            _ => {
                let at = step * (bytes.len() - 1) / 21;
                bytes[at] ^= 1 << (step % 8);
            }
        }
        disk.raw().put(Family::ChunkL0, row, &bytes);
        let world = disk.open(&[]);
        corrupt(world.load(a));
        assert!(!findings(&world).is_empty(), "step {step}");
    }
}

/// Chunks of a cold cluster: two in one group, one in another; their row; and the same world's ids.
fn frozen() -> (Disk, Ids, [ChunkAt; 3], Vec<u8>) {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let all = [ids.at(0, 0, 0), ids.at(0, 0, 1), ids.at(8, 8, 8)];
    save(&world, all.iter().zip(1..).map(|(at, n)| (*at, marked(&world, &ids, n))));
    demote(&world, ClusterTier::L2, &all, false);
    drop(world);
    let row = key::cluster(ids.overworld, all[0].pos.cluster(ClusterTier::L2)).to_vec();
    (disk, ids, all, row)
}

#[test]
fn a_damaged_group_costs_its_own_chunks_only() {
    let (disk, ids, [a, b, far], row) = frozen();
    // The first group is the first after the directory: 20 bytes and the entries, whose length is at byte 8.
    let stored = disk.raw().get(Family::ChunkL2, &row);
    let entries = u32::from_le_bytes(stored[frame::LEN_BYTES + 8..][..4].try_into().expect("four bytes"));
    disk.raw().flip(Family::ChunkL2, &row, frame::LEN_BYTES + 20 + entries as usize + 5);
    let world = disk.open(&[]);
    for at in [a, b] {
        assert_eq!(corrupt(world.load(at)).space, Space::ClusterL2);
        corrupt(world.transaction(|tx| {
            tx.save(at, filled(&world, ids.air));
            Ok::<_, Error>(())
        }));
    }
    let sound = world.load(far).expect("another group").expect("is there");
    assert_eq!(*sound, marked(&world, &ids, 3));
    // A place of the damaged group that holds nothing is absent.
    assert_eq!(world.load(ids.at(1, 1, 1)).expect("the directory says so"), None);
    // Damage outside a box is not the box's.
    let around = |at: ChunkAt| ChunkBox::new(at.pos, at.pos);
    world.content_hash(cg_store::view::Area::Box(ids.overworld, around(far))).expect("hashes");
    corrupt(world.content_hash(cg_store::view::Area::Box(ids.overworld, around(a))));
    let deleted = world.transaction(|tx| tx.delete_box(ids.overworld, around(far))).expect("deletes");
    assert_eq!(deleted.value, 1);
    save(&world, [(far, marked(&world, &ids, 3))]);

    assert!(world.quarantine().chunk(a).expect("quarantines"));
    assert_eq!(world.load(a).expect("is absent"), None);
    corrupt(world.load(b));
    assert!(world.quarantine().chunk(b).expect("quarantines"));
    save(&world, [(b, filled(&world, ids.air))]);
    let quarantined = world.quarantine().list().expect("lists");
    assert_eq!(
        quarantined.iter().map(|entry| (entry.space, &entry.key)).collect::<Vec<_>>(),
        [(Space::ClusterL2, &row)]
    );
    assert_eq!(*world.load(far).expect("is sound").expect("is there"), marked(&world, &ids, 3));
}

#[test]
fn a_damaged_directory_hides_no_hotter_copy() {
    let (disk, ids, [a, b, far], row) = frozen();
    let world = disk.open(&[]);
    save(&world, [(a, marked(&world, &ids, 9))]);
    drop(world);
    disk.raw().flip(Family::ChunkL2, &row, frame::LEN_BYTES + 9);
    let world = disk.open(&[]);
    assert_eq!(*world.load(a).expect("is hot").expect("is there"), marked(&world, &ids, 9));
    corrupt(world.load(b));
    corrupt(world.load(far));
    // Even a place that may have been empty: nobody can tell.
    corrupt(world.load(ids.at(1, 1, 1)));
    assert_eq!(findings(&world).len(), 1, "{:?}", findings(&world));
}

#[test]
fn behind_a_damaged_directory_no_older_copy_passes_for_the_live_one() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let (a, b, beside) = (ids.at(0, 0, 0), ids.at(0, 0, 1), ids.at(0, 0, 4));
    // Old copies of all three below; above them, newer ones of two in one warm cluster.
    save(&world, [a, b, beside].map(|at| (at, marked(&world, &ids, 1))));
    demote(&world, ClusterTier::L2, &[a, b, beside], false);
    save(&world, [a, b].map(|at| (at, marked(&world, &ids, 2))));
    demote(&world, ClusterTier::L1, &[a, b], false);
    drop(world);
    let warm = key::cluster(a.dimension, a.pos.cluster(ClusterTier::L1));
    disk.raw().flip(Family::ChunkL1, warm, frame::LEN_BYTES + 9);
    let world = disk.open(&[]);
    let (mut shown, mut damaged) = (Vec::new(), 0);
    let walked = world.read_view(|view| {
        view.for_each_chunk(cg_store::view::Area::World, |stored| {
            match stored {
                Ok(stored) => shown.push(stored.at),
                Err(error) => {
                    assert_eq!(corrupt::<()>(Err(error)).key, warm);
                    damaged += 1;
                }
            }
            std::ops::ControlFlow::<()>::Continue(())
        })
    });
    walked.expect("goes on after damage");
    assert_eq!((shown, damaged), (vec![beside], 1));
    for at in [a, b] {
        corrupt(world.load(at));
    }
}

#[test]
fn a_damaged_entity_is_not_absent() {
    let (disk, ids, a, b) = farm();
    let row = key::entity(uuid(1));
    disk.raw().flip(Family::Entity, row, frame::LEN_BYTES + 3);
    let world = disk.open(&[]);
    assert_eq!(corrupt(world.entity(uuid(1))).space, Space::Entity);
    corrupt(world.transaction(|tx| {
        tx.put_entity(uuid(1), ids.cow_in(b));
        Ok::<_, Error>(())
    }));
    // Its chunk lives on, but cannot be deleted: what would become of the entity?
    world.transaction(|tx| tx.set_block(ids.overworld, BlockPos::new(9, 9, 9), ids.stone)).expect("commits");
    assert!(world.load(a).expect("loads").expect("is there").entities().contains(&uuid(1)));
    corrupt(world.transaction(|tx| {
        tx.delete(a);
        Ok::<_, Error>(())
    }));
    assert_eq!(findings(&world).len(), 2, "the row, and the reference to it: {:?}", findings(&world));
}

#[test]
fn a_damaged_property_is_not_absent() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let set = world.transaction(|tx| {
        tx.set_property(Property::Seed, Some(vec![1; 8]));
        Ok::<_, Error>(())
    });
    drop(set.expect("sets"));
    drop(world);
    disk.raw().flip(Family::WorldMeta, b"seed", frame::LEN_BYTES + 2);
    let world = disk.open(&[]);
    assert_eq!(corrupt(world.property(&Property::Seed)).place, "property `seed`");
    corrupt(world.transaction(|tx| tx.property(&Property::Seed)));
    assert_eq!(findings(&world).len(), 1);
    assert!(world.engine().last_commit().get() > 0);
}

#[test]
fn a_damaged_map_of_opacity_is_drawn_again() {
    let (disk, ids, a, _) = farm();
    disk.raw().flip(Family::OpacityMap, key::opacity_patch(a), frame::LEN_BYTES + 1);
    let world = disk.open(&[]);
    let cell = LocalPos::from_index(7).expect("below 4096");
    let (x, z) = (cell.x().into(), cell.z().into());
    corrupt(world.opacity().column(ids.overworld, x, z));
    corrupt(world.opacity().fold(10));
    world.opacity().rebuild().expect("the chunks are sound");
    let y = i64::from(cell.y());
    assert_eq!(world.opacity().column(ids.overworld, x, z).expect("reads").runs(), [y..=y]);
    assert_sound(&world);
}

#[test]
fn a_damaged_block_of_a_file_hides_its_keys_and_no_others() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let all: Vec<_> = (0..1024_i64).map(|n| ids.at(n % 16, n / 256, n / 16 % 16)).collect();
    // An old copy of one chunk lies below each of them; a gap in the hot rows must not bring it to light.
    save(&world, all.iter().map(|at| (*at, marked(&world, &ids, 1))));
    demote(&world, ClusterTier::L2, &all, false);
    let noisy = |n: usize| {
        let mut chunk = marked(&world, &ids, 2);
        let mut state = n as u64 + 1;
        let bytes = (0..700).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        });
        chunk.set_side(ids.light, bytes.collect());
        chunk
    };
    save(&world, all.iter().enumerate().map(|(n, at)| (*at, noisy(n))));
    drop(world);
    let files = disk.files();
    let largest = files.iter().filter(|(path, _)| path.extension().is_some_and(|it| it == "sst"));
    let (path, bytes) = largest.max_by_key(|(_, bytes)| bytes.len()).expect("there are files");
    assert!(bytes.len() > 700 * 1024, "the hot rows are in one file of {} bytes", bytes.len());
    let mut bytes = bytes.clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(path, bytes).expect("writes");

    let world = disk.open(&[]);
    let (mut shown, mut told) = (Vec::new(), 0);
    let walked = world.read_view(|view| {
        view.for_each_place(cg_store::view::Area::World, |place| {
            match place {
                Ok(place) => shown.push((place.at, place.tier)),
                Err(Error::Engine(EngineError::Corrupt { .. })) => told += 1,
                Err(other) => panic!("{other}"),
            }
            std::ops::ControlFlow::<()>::Continue(())
        })
    });
    assert_eq!(walked.expect("goes on after it"), None);
    assert_eq!(told, 1);
    assert!(
        shown.iter().all(|(_, tier)| *tier == cg_format::Tier::L0),
        "no old copy passes for the live one"
    );
    let shown: std::collections::BTreeSet<_> = shown.into_iter().map(|(at, _)| at).collect();
    let hidden: Vec<_> = all.iter().filter(|at| !shown.contains(at)).collect();
    assert!((1..64).contains(&hidden.len()), "{} chunks of {} hidden", hidden.len(), all.len());
    for at in &all {
        let loaded = world.load(*at);
        if hidden.contains(&at) {
            let damage = corrupt(loaded);
            assert_eq!((damage.space, damage.place), (Space::ChunkL0, at.to_string()));
        } else {
            assert!(loaded.expect("lies in another block").is_some());
        }
    }
    let found = world.verify(cg_store::verify::VerifyDepth::Quick, |_| {}).expect("goes on").findings;
    let lost: Vec<_> = found.iter().filter(|found| found.key.is_empty()).collect();
    let [lost] = lost[..] else { panic!("{found:?}") };
    let bounds = hidden.iter().fold(ChunkBox::new(hidden[0].pos, hidden[0].pos), |bounds, at| {
        let [low, high] = [bounds.min(), bounds.max()].map(|corner| ChunkBox::new(corner, at.pos));
        ChunkBox::new(low.min(), high.max())
    });
    assert_eq!(lost.lost.map(|lost| (lost.dimension, lost.bounds)), Some((ids.overworld, bounds)));
    let count = format!(
        "{} chunks in the box of chunks {} to {} of dimension 0 cannot be read",
        hidden.len(),
        bounds.min(),
        bounds.max()
    );
    assert!(lost.what.starts_with(&count), "{}", lost.what);
    assert!(world.tiers().census().expect("counts").damaged > 0);
}

#[test]
fn a_check_names_the_chunks_of_a_damaged_group() {
    let slab = ChunkBox::new(ChunkPos::constant(3, 0, 0), ChunkPos::constant(3, 3, 3));
    let half = ChunkBox::new(ChunkPos::constant(2, 0, 0), ChunkPos::constant(3, 3, 3));
    for (tier, expected) in [(ClusterTier::L1, slab), (ClusterTier::L2, half)] {
        let disk = Disk::new();
        let world = disk.create(&[]);
        let ids = Ids::register(&world);
        let all = [ids.at(0, 0, 0), ids.at(3, 1, 2)];
        save(&world, all.iter().map(|at| (*at, marked(&world, &ids, 1))));
        demote(&world, tier, &all, false);
        drop(world);
        let family = Space::of_cluster(tier).family();
        let row = key::cluster(ids.overworld, all[0].pos.cluster(tier));
        let len_bytes = disk.raw().get(family, row).len();
        disk.raw().flip(family, row, len_bytes - 1);
        let world = disk.open(&[]);
        let found = world.verify(cg_store::verify::VerifyDepth::Full, |_| {}).expect("goes on").findings;
        let lost: Vec<_> = found.iter().filter_map(|found| found.lost).map(|lost| lost.bounds).collect();
        assert_eq!(lost, [expected], "{found:?}");
    }
}
