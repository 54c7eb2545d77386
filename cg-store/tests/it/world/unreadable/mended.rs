//! Worlds that are whole again after what was damaged was quarantined.

use std::ops::ControlFlow;

use super::*;
use cg_store::quarantine::QuarantinedChunks;
use cg_store::verify::VerifyDepth;
use cg_store::view::Area;

/// The chunks that a walk over the world shows; nothing may be damaged.
fn walked(world: &World) -> BTreeSet<ChunkAt> {
    let mut shown = BTreeSet::new();
    let ended = world.read_view(|view| {
        view.for_each_chunk(Area::World, |stored| {
            shown.insert(stored.expect("nothing is damaged").at);
            ControlFlow::<()>::Continue(())
        })
    });
    assert_eq!(ended.expect("reads"), None);
    shown
}

/// The area that verification reports as lost, which is one box.
#[track_caller]
fn lost(world: &World) -> ChunkBox {
    let found = world.verify(VerifyDepth::Full, |_| {}).expect("goes on").findings;
    let lost: BTreeSet<_> =
        found.iter().filter_map(|found| found.lost).map(|lost| format!("{lost:?}")).collect();
    assert_eq!(lost.len(), 1, "{found:?}");
    found.iter().find_map(|found| found.lost).expect("is one").bounds
}

#[test]
fn what_lies_in_a_damaged_block_is_set_aside_at_once_and_everything_else_is_listed_again() {
    for part in [0.0005, 0.4, 0.93] {
        let disk = Disk::new();
        let world = create(&disk, options());
        let ids = Ids::register(&world);
        let all = noisy_line(&world, &ids, 600);
        drop(world);
        let hidden = hide(&disk, Family::ChunkL0, part);
        let hidden: Vec<_> = all.iter().copied().filter(|at| hidden.contains(&key::chunk(*at)[..])).collect();
        // A newer row of one of them can be read, but is listed by nobody.
        let newer = hidden[0];
        let world = open(&disk, options());
        assert!(world.quarantine().chunk(newer).expect("quarantines"));
        save(&world, [(newer, marked(&world, &ids, 77))]);
        drop(world);
        let world = open(&disk, options());
        let bounds = lost(&world);
        assert!(hidden[1..].iter().all(|at| bounds.contains(at.pos)), "{bounds:?}");
        let done = world.quarantine().chunks_in(ids.overworld, bounds).expect("quarantines");
        // A filter may send a place where nothing is to the damaged block, too.
        assert!(done.is_clear && done.chunks >= hidden.len() as u64 - 1, "{part}: {done:?}");
        let sound: BTreeSet<_> =
            all.iter().copied().filter(|at| *at == newer || !hidden.contains(at)).collect();
        assert_eq!(walked(&world), sound);
        assert_sound(&world);
        // What is written there from now on is listed too, and all of it survives.
        save(&world, [(hidden[1], marked(&world, &ids, 78))]);
        world.engine().flush().expect("flushes");
        world.tiers().demote_all(DAY, |_| {}).expect("settles");
        drop(world);
        let world = open(&disk, options());
        let with = sound.iter().copied().chain([hidden[1]]).collect();
        assert_eq!(walked(&world), with);
        assert_sound(&world);
        for (at, n) in all.iter().zip(0..).filter(|(at, _)| !hidden.contains(at)) {
            let loaded = world.load(*at).expect("is sound");
            assert_eq!(loaded.as_deref(), Some(&super::super::tier::noisy(&world, &ids, n)), "{at}");
        }
        assert_eq!(world.load(newer).expect("is sound").as_deref(), Some(&marked(&world, &ids, 77)));
        assert_eq!(world.quarantine().chunks_in(ids.overworld, bounds).expect("finds nothing").chunks, 0);
    }
}

/// After the last row nothing bounds what may be hidden but the file.
#[test]
fn the_last_block_of_a_file_is_cleared_too() {
    let disk = Disk::new();
    let world = create(&disk, options());
    let ids = Ids::register(&world);
    let all = noisy_line(&world, &ids, 600);
    drop(world);
    hide_last(&disk, Family::ChunkL0);
    let world = open(&disk, options());
    let bounds = lost(&world);
    let sound: BTreeSet<_> = all.iter().copied().filter(|at| world.load(*at).is_ok()).collect();
    assert!((590..600).contains(&sound.len()));
    assert!(world.quarantine().chunks_in(ids.overworld, bounds).expect("quarantines").is_clear);
    assert_eq!(walked(&world), sound);
    assert_sound(&world);
}

#[test]
fn set_aside_one_by_one_the_last_one_clears_the_block() {
    let disk = Disk::new();
    let world = create(&disk, options());
    let ids = Ids::register(&world);
    let all = noisy_line(&world, &ids, 600);
    drop(world);
    let hidden = hide(&disk, Family::ChunkL0, 0.4);
    let world = open(&disk, options());
    let (hidden, sound): (BTreeSet<_>, BTreeSet<_>) =
        all.iter().copied().partition(|at| hidden.contains(&key::chunk(*at)[..]));
    let bounds = lost(&world);
    let damaged: Vec<_> =
        bounds.iter().map(|pos| ChunkAt { pos, ..all[0] }).filter(|at| world.load(*at).is_err()).collect();
    assert!(hidden.iter().all(|at| damaged.contains(at)));
    for (at, left) in damaged.iter().zip((0..damaged.len()).rev()) {
        let done =
            world.quarantine().chunks_in(at.dimension, ChunkBox::new(at.pos, at.pos)).expect("quarantines");
        assert_eq!(done, QuarantinedChunks { chunks: 1, without_deltas: 0, is_clear: left == 0 }, "{at}");
    }
    assert_eq!(walked(&world), sound);
    assert_sound(&world);
}

#[test]
fn warm_clusters_in_a_damaged_block_are_cleared() {
    let disk = Disk::new();
    let world = create(&disk, options());
    let ids = Ids::register(&world);
    let all = noisy_line(&world, &ids, 400);
    demote(&world, ClusterTier::L1, &all, false);
    drop(world);
    let hidden = hide(&disk, Family::ChunkL1, 0.4);
    let world = open(&disk, options());
    let cluster = |at: &ChunkAt| key::cluster(at.dimension, at.pos.cluster(ClusterTier::L1));
    let bounds = lost(&world);
    // Nobody can tell which chunks a cluster had, so each of its places is quarantined.
    let done = world.quarantine().chunks_in(ids.overworld, bounds).expect("quarantines");
    assert_eq!(
        done,
        QuarantinedChunks { chunks: 64 * hidden.len() as u64, without_deltas: 0, is_clear: true }
    );
    let sound = all.iter().copied().filter(|at| !hidden.contains(&cluster(at)[..])).collect();
    assert_eq!(walked(&world), sound);
    assert_sound(&world);
}

/// The largest blob file of a closed world.
fn blob_file(disk: &Disk) -> std::path::PathBuf {
    let blobs = disk.files().into_iter().filter(|(path, _)| path.extension().is_some_and(|it| it == "blob"));
    blobs.max_by_key(|(_, bytes)| bytes.len()).expect("there is one").0
}

/// A closed world with a cold cluster of sixteen groups of chunks that do not compress, in a blob file.
fn frozen() -> (Disk, Ids, Vec<ChunkAt>) {
    let disk = Disk::new();
    let world = create(&disk, options());
    let ids = Ids::register(&world);
    let all: Vec<_> = (0..64).map(|n| ids.at(4 * (n % 4), 4 * (n / 4 % 4), n / 16)).collect();
    save(&world, all.iter().zip(0..).map(|(at, n)| (*at, super::super::tier::noisy(&world, &ids, n))));
    world.tiers().demote_all(DAY, |_| {}).expect("settles");
    assert_eq!(tiers(&world), [0, 0, 64]);
    drop(world);
    (disk, ids, all)
}

#[test]
fn a_flipped_byte_of_a_blob_costs_the_group_that_it_is_in() {
    let (disk, ids, all) = frozen();
    let file = blob_file(&disk);
    let sound = fs::read(&file).expect("reads");
    for part in [0.2, 0.5, 0.8] {
        let mut bytes = sound.clone();
        let at = (bytes.len() as f64 * part) as usize;
        bytes[at] ^= 0x10;
        fs::write(&file, bytes).expect("writes");
        let world = open(&disk, options());
        let read = |at: &ChunkAt| {
            world.cache().clear();
            let alone = world.load(*at);
            let together = world.load_many(&[*at, all[0]]).swap_remove(0);
            assert_eq!(alone.is_ok(), together.is_ok(), "{at}");
            alone
        };
        let damaged: Vec<_> = all.iter().filter(|at| read(at).is_err()).collect();
        assert_eq!(damaged.len(), 4, "the chunks of one group: {damaged:?}");
        let cube = |at: &ChunkAt| at.pos.cluster(ClusterTier::L1);
        assert!(damaged.iter().all(|at| cube(at) == cube(damaged[0])));
        for (at, n) in all.iter().zip(0..).filter(|(at, _)| !damaged.contains(at)) {
            assert_eq!(
                read(at).expect("is sound").as_deref(),
                Some(&super::super::tier::noisy(&world, &ids, n))
            );
        }
        // A walk tells of the group once, and goes on.
        let (mut shown, mut told) = (0, 0);
        let walked = world.read_view(|view| {
            view.for_each_chunk(Area::World, |stored| {
                *(if stored.is_ok() { &mut shown } else { &mut told }) += 1;
                ControlFlow::<()>::Continue(())
            })
        });
        walked.expect("goes on");
        assert_eq!((shown, told), (60, 1));
        let first = cube(damaged[0]).min_chunk();
        let last = first.offset(1, 3, 3).expect("is in the world");
        assert_eq!(lost(&world), ChunkBox::new(first, last), "the first half of its cube");
        drop(world);
    }
}

#[test]
fn one_call_clears_a_damaged_cluster() {
    let (disk, ids, all) = frozen();
    let file = blob_file(&disk);
    let sound = fs::read(&file).expect("reads");
    // In a group; in the directory, which says where all of them are; in the file's header, without which RocksDB reads nothing.
    for (at, chunks) in [(sound.len() / 2, 4), (200, 4096), (6, 4096)] {
        fs::write(&file, &sound).expect("writes");
        let disk = Disk::copy_of(&disk);
        let file = blob_file(&disk);
        let mut bytes = sound.clone();
        bytes[at] ^= 0x10;
        fs::write(&file, bytes).expect("writes");
        let world = open(&disk, options());
        let done = world.quarantine().chunks_in(ids.overworld, lost(&world)).expect("quarantines");
        assert_eq!(done, QuarantinedChunks { chunks, without_deltas: 0, is_clear: true });
        let kept = all.len() - if chunks == 4 { 4 } else { 64 };
        assert_eq!(walked(&world).len(), kept);
        assert_sound(&world);
        // Nothing in its files is damaged any more, so they are rewritten again.
        let families = world.usage().expect("counts").families;
        assert!(families.iter().all(|family| !family.is_held));
        assert!(!disk.path().join("db/DAMAGED").exists());
        save(&world, all.iter().map(|at| (*at, marked(&world, &ids, 5))));
        world.tiers().demote_all(DAY, |_| {}).expect("settles");
        assert_eq!(tiers(&world), [0, 0, 64]);
        assert_sound(&world);
        drop(world);
        assert_sound(&open(&disk, options()));
    }
}
