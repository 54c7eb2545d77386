//! Rows of warm clusters: four groups each, or one, as earlier drafts wrote them.

use std::ops::ControlFlow;

use super::*;
use cg_format::cluster::{SlotInfo, StoredCluster};
use cg_format::codec::{Effort, compress};
use cg_format::frame::{self, Codec};
use cg_format::{ClusterTier, Limits, Problem, Space, key};
use cg_store::error::DamageCause;
use cg_store::verify::VerifyDepth;
use cg_store::view::Area;

const TIER: ClusterTier = ClusterTier::L1;

/// A closed world with a warm cluster of different chunks, from an x on.
fn warm_cube(first_x: i64) -> (Disk, Ids, Vec<(ChunkAt, Chunk)>) {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let cube = ChunkBox::new(ids.at(first_x, 0, 0).pos, ids.at(3, 3, 3).pos);
    let at: Vec<_> = cube.iter().map(|pos| ids.at(pos.x(), pos.y(), pos.z())).collect();
    let all: Vec<_> = at.iter().zip(0..).map(|(at, token)| (*at, marked(&world, &ids, token))).collect();
    save(&world, all.clone());
    demote(&world, TIER, &at, false);
    drop(world);
    (disk, ids, all)
}

fn row_key(ids: &Ids) -> [u8; key::CHUNK_LEN_BYTES] {
    key::cluster(ids.overworld, ChunkPos::constant(0, 0, 0).cluster(TIER))
}

/// The row of the cube as earlier drafts wrote it: a directory of version 1 with one group.
fn in_one_group(key: &[u8], row: &[u8]) -> Vec<u8> {
    let cluster = StoredCluster::open(TIER, key, row).expect("is sound");
    let raw = cluster.to_seed_bytes(&mut Limits::default()).expect("is sound");
    let mut stored = Vec::new();
    compress(Codec::Lz4, Effort::Fast, &raw, &mut stored);
    let mut slots: Vec<_> = cluster.slots().collect();
    slots.sort_unstable_by_key(|(slot, _)| slot.index());
    let mut directory = vec![1, 1, 0, 0];
    directory.extend((slots.len() as u32).to_le_bytes());
    let presence = slots.iter().fold(0_u64, |presence, (slot, _)| presence | 1 << slot.index());
    directory.extend(presence.to_le_bytes());
    let lengths = [0, stored.len() as u32, raw.len() as u32, crc32c::crc32c(&stored)];
    directory.extend(lengths.map(u32::to_le_bytes).concat());
    for (_, SlotInfo { version, schema_generation }) in slots {
        directory.extend(version.to_le_bytes());
        directory.extend(schema_generation.to_le_bytes());
    }
    let mut header = row[..frame::LEN_BYTES].to_vec();
    header[4..8].fill(0);
    let sum = crc32c::crc32c(&directory);
    let sum = crc32c::crc32c_append(sum, &[Space::of_cluster(TIER).byte()]);
    let sum = crc32c::crc32c_append(crc32c::crc32c_append(sum, key), &header);
    header[4..8].copy_from_slice(&sum.to_le_bytes());
    [header, directory, stored].concat()
}

/// Rewrites the row of a closed world's cube.
fn age(disk: &Disk, ids: &Ids) {
    let (raw, key) = (disk.raw(), row_key(ids));
    let family = Space::of_cluster(TIER).family();
    let old = in_one_group(&key, &raw.get(family, key));
    raw.put(family, key, &old);
}

fn row(world: &World, ids: &Ids) -> Option<Vec<u8>> {
    let engine = world.engine();
    engine.get(Space::of_cluster(TIER), &row_key(ids)).expect("reads").map(|row| row.to_vec())
}

fn directory_version(world: &World, ids: &Ids) -> u8 {
    row(world, ids).expect("is warm")[frame::LEN_BYTES]
}

/// The bytes that all groups of the row take decompressed.
fn group_bytes(world: &World, ids: &Ids) -> u64 {
    let (key, row) = (row_key(ids), row(world, ids).expect("is warm"));
    let cluster = StoredCluster::open(TIER, &key, &row).expect("is sound");
    let bytes = |group| cluster.group(group, &mut Limits::default()).expect("is sound").expect("has chunks");
    cluster.groups().map(|group| bytes(group).decompressed_bytes() as u64).sum()
}

/// Walks the world: the chunks, the errors, and the bytes that were decompressed.
fn walk(world: &World) -> (Vec<ChunkAt>, Vec<Error>, u64) {
    let (mut chunks, mut errors) = (Vec::new(), Vec::new());
    let before = world.metrics().stats;
    let walked = world.read_view(|view| {
        view.for_each_chunk(Area::World, |stored| {
            match stored {
                Ok(stored) => chunks.push(stored.at),
                Err(error) => errors.push(error),
            }
            ControlFlow::<()>::Continue(())
        })
    });
    assert_eq!(walked.expect("walks"), None);
    (chunks, errors, (world.metrics().stats - before).bytes_decompressed)
}

#[track_caller]
fn assert_holds(world: &World, all: &[(ChunkAt, Chunk)]) {
    let at: Vec<_> = all.iter().map(|(at, _)| *at).collect();
    for ((at, chunk), found) in all.iter().zip(world.load_many(&at)) {
        assert_eq!(found.expect("is sound").as_deref(), Some(chunk), "{at}");
    }
    let found = world.verify(VerifyDepth::Full, |_| {}).expect("verifies").findings;
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_walk_decompresses_each_group_once_and_tells_of_a_damaged_one_once() {
    let (disk, ids, all) = warm_cube(0);
    let world = disk.open(&[]);
    assert_eq!(directory_version(&world, &ids), 3);
    let (chunks, errors, bytes) = walk(&world);
    assert_eq!((chunks.len(), errors.len(), bytes), (64, 0, group_bytes(&world, &ids)));
    drop(world);

    let family = Space::of_cluster(TIER).family();
    let len_bytes = disk.raw().get(family, row_key(&ids)).len();
    disk.raw().flip(family, row_key(&ids), len_bytes - 1);
    let world = disk.open(&[]);
    let (chunks, errors, _) = walk(&world);
    let sound: Vec<_> = all.iter().map(|(at, _)| *at).filter(|at| at.pos.x() != 3).collect();
    assert_eq!(chunks.len(), sound.len());
    assert!(sound.iter().all(|at| chunks.contains(at)), "{chunks:?}");
    let [Error::Corrupt(damage)] = &errors[..] else { panic!("{errors:?}") };
    let DamageCause::Bytes(problem) = &damage.problem else { panic!("{damage}") };
    assert!(matches!(problem.problem, Problem::Checksum { .. }), "{damage}");
}

#[test]
fn a_row_of_one_group_is_read_and_gets_four_when_its_cube_moves() {
    let (disk, ids, mut all) = warm_cube(0);
    age(&disk, &ids);
    let world = disk.open(&[]);
    assert_eq!(directory_version(&world, &ids), 1);
    assert_holds(&world, &all);
    let (chunks, errors, bytes) = walk(&world);
    assert_eq!((chunks.len(), errors.len(), bytes), (64, 0, group_bytes(&world, &ids)));

    all[37].1 = marked(&world, &ids, 99);
    save(&world, [all[37].clone()]);
    demote(&world, TIER, &[all[37].0], false);
    assert_eq!(directory_version(&world, &ids), 3);
    assert_holds(&world, &all);
}

#[test]
fn a_row_of_one_group_moves_to_its_cold_cluster() {
    // Its first slab would be empty.
    let (disk, ids, all) = warm_cube(1);
    age(&disk, &ids);
    let world = disk.open(&[]);
    let year = 365 * 24 * 3600 * GameTick::PER_SECOND;
    world.tiers().demote_all(year, |_| {}).expect("settles");
    assert_eq!(row(&world, &ids), None, "is cold");
    assert_holds(&world, &all);
}

#[test]
fn damage_in_a_row_of_one_group_costs_the_cube() {
    let (disk, ids, all) = warm_cube(0);
    age(&disk, &ids);
    let family = Space::of_cluster(TIER).family();
    let len_bytes = disk.raw().get(family, row_key(&ids)).len();
    disk.raw().flip(family, row_key(&ids), len_bytes - 1);
    let world = disk.open(&[]);
    for (at, _) in &all {
        assert!(matches!(world.load(*at), Err(Error::Corrupt(_))), "{at}");
    }
    let found = world.verify(VerifyDepth::Full, |_| {}).expect("goes on").findings;
    let cube = ChunkBox::new(ChunkPos::constant(0, 0, 0), ChunkPos::constant(3, 3, 3));
    let lost: Vec<_> = found.iter().filter_map(|found| found.lost).map(|lost| lost.bounds).collect();
    assert_eq!(lost, [cube], "{found:?}");
    let (chunks, errors, _) = walk(&world);
    assert_eq!((chunks.len(), errors.len()), (0, 1), "{errors:?}");
}
