//! Rows of the hottest tier: compressed from a length on, or as earlier drafts wrote them; and rows that lie about it.

use std::ops::ControlFlow;

use super::damage::corrupt;
use super::*;
use cg_format::cluster::{Slot, StoredCluster};
use cg_format::frame::{self, Codec, FrameView};
use cg_format::{ClusterTier, DecodeError, Limits, Problem, Section, Space, Tier, key};
use cg_store::error::DamageCause;
use cg_store::view::Area;

/// A chunk of two kinds of block, whose ids alone take 512 bytes.
fn terrain(world: &World, ids: &Ids, seed: u16) -> Chunk {
    let mut chunk = filled(world, ids.air);
    for cell in (0..4096).filter(|cell| (cell * 7 + seed) % 48 < 16) {
        let cell = LocalPos::from_index(cell).expect("a cell");
        chunk.set_block(cell, ids.stone, &world.catalog().current_schema()).expect("is registered");
    }
    chunk
}

fn row(world: &World, at: ChunkAt) -> Vec<u8> {
    world.engine().get(Space::ChunkL0, &key::chunk(at)).expect("reads").expect("is hot").to_vec()
}

fn codec(world: &World, at: ChunkAt) -> Codec {
    FrameView::open(Space::ChunkL0, &key::chunk(at), &row(world, at)).expect("is sound").header().codec
}

#[test]
fn the_rows_of_long_chunks_are_compressed() {
    let world = in_memory();
    let ids = Ids::register(&world);
    let [short, long] = [0, 1].map(|x| ids.at(x, 0, 0));
    save(&world, [(short, filled(&world, ids.stone)), (long, terrain(&world, &ids, 0))]);
    assert_eq!([short, long].map(|at| codec(&world, at)), [Codec::None, Codec::Lz4]);
    assert!(row(&world, long).len() * 2 < terrain(&world, &ids, 0).to_bytes().len());
    // What a host looks at without decoding is the chunk's own bytes all the same.
    let value = world.tiers().with_stored_bytes(long, |stored| Ok(stored.value.to_vec())).expect("is sound");
    assert_eq!(value, Some(terrain(&world, &ids, 0).to_bytes()));
}

#[test]
fn a_world_may_compress_no_hot_row_and_reads_both_kinds() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let [compressed, plain] = [0, 1].map(|x| ids.at(x, 0, 0));
    save(&world, [(compressed, terrain(&world, &ids, 0))]);
    world.close().expect("closes");
    drop(world);
    let options = WorldOptions { compress_hot_rows: false, ..options() };
    let world = World::builder().options(&options).open(disk.path()).expect("opens");
    save(&world, [(plain, terrain(&world, &ids, 1))]);
    assert_eq!([compressed, plain].map(|at| codec(&world, at)), [Codec::Lz4, Codec::None]);
    world.cache().clear();
    for (at, seed) in [(compressed, 0), (plain, 1)] {
        assert_eq!(world.load(at).expect("loads").as_deref(), Some(&terrain(&world, &ids, seed)));
    }
}

/// Puts a chunk's row as earlier drafts wrote it.
fn put_plain(world: &World, at: ChunkAt) {
    let old = row(world, at);
    let frame = FrameView::open(Space::ChunkL0, &key::chunk(at), &old).expect("is sound");
    let value = frame.raw_payload(&mut Limits::default()).expect("is sound");
    let generation = frame.header().schema_generation;
    let draft = Draft::plain(Codec::None, generation, |out| out.extend_from_slice(&value));
    plant(world, [(Space::ChunkL0, key::chunk(at).to_vec(), Some(draft))]);
    world.cache().clear();
}

#[test]
fn a_world_has_rows_of_both_kinds() {
    let world = in_memory();
    let ids = Ids::register(&world);
    let all: Vec<_> = (0..8).map(|x| ids.at(x, 0, 0)).collect();
    save(&world, all.iter().zip(0..).map(|(at, seed)| (*at, terrain(&world, &ids, seed))));
    let before = world.content_hash(Area::World).expect("is sound");
    for at in all.iter().step_by(2) {
        put_plain(&world, *at);
    }
    let kinds: Vec<_> = all.iter().map(|at| codec(&world, *at) == Codec::Lz4).collect();
    assert_eq!(kinds, [false, true].repeat(4));
    let is_whole = || {
        world.cache().clear();
        assert_eq!(world.content_hash(Area::World).expect("is sound"), before);
        for ((at, found), seed) in all.iter().zip(world.load_many(&all)).zip(0..) {
            assert_eq!(found.expect("is sound").as_deref(), Some(&terrain(&world, &ids, seed)), "{at}");
        }
        assert_sound(&world);
    };
    is_whole();
    world.tiers().demote_all(u64::MAX, |_| {}).expect("moves");
    is_whole();
    let stored = world.tiers().with_stored_bytes(all[0], |stored| Ok(stored.tier)).expect("is sound");
    assert!(stored > Some(Tier::L0), "{stored:?}");
}

/// The same row with another value of four bytes behind its frame, and the checksum of what it says then.
fn lie(at: ChunkAt, row: &[u8], promised: u32) -> Vec<u8> {
    let mut lied = row.to_vec();
    lied[frame::LEN_BYTES..][..4].copy_from_slice(&promised.to_le_bytes());
    summed(at, lied)
}

fn summed(at: ChunkAt, mut row: Vec<u8>) -> Vec<u8> {
    if let Err(error) = FrameView::open(Space::ChunkL0, &key::chunk(at), &row) {
        let Problem::Checksum { expected, .. } = error.problem else { panic!("another problem: {error}") };
        row[4..8].copy_from_slice(&expected.to_le_bytes());
    }
    row
}

#[test]
fn a_row_that_lies_about_its_length_is_damage_wherever_it_is_read() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let [liar, neighbour] = [0, 1].map(|x| ids.at(x, 0, 0));
    save(&world, [liar, neighbour].map(|at| (at, terrain(&world, &ids, 3))));
    let (sound, value) = (row(&world, liar), terrain(&world, &ids, 3).to_bytes());
    world.close().expect("closes");
    drop(world);
    let block = (sound.len() - frame::LEN_BYTES - 4) as u64;
    let raw = value.len() as u32;
    let decompress = |promised: u32| {
        let problem = Problem::Decompress { codec: "LZ4", stored: block, raw: promised.into() };
        DecodeError::new(Section::Frame, 28, problem)
    };
    let over_the_limit = |promised: u32| {
        let (field, needed, left) = ("raw length", u64::from(promised), 256 << 20);
        DecodeError::new(Section::Frame, 24, Problem::LimitExceeded { field, needed, left })
    };
    let lies = [0, raw - 1, raw + 1, block as u32 * 255 + 254, 256 << 20].map(|lie| (lie, decompress(lie)));
    let huge = [(256 << 20) + 1, u32::MAX].map(|lie| (lie, over_the_limit(lie)));
    for (promised, expected) in lies.into_iter().chain(huge) {
        let disk = Disk::copy_of(&disk);
        disk.raw().put(Family::ChunkL0, key::chunk(liar), &lie(liar, &sound, promised));
        let world = disk.open(&[]);
        let seen = |damage: cg_store::error::Damage| {
            assert_eq!(
                (damage.space, &damage.key[..]),
                (Space::ChunkL0, &key::chunk(liar)[..]),
                "{promised}"
            );
            assert_eq!(damage.problem, DamageCause::Bytes(expected), "{promised}");
        };
        seen(corrupt(world.load(liar)));
        seen(corrupt(world.tiers().with_stored_bytes(liar, |_| Ok(()))));
        let mut many = world.load_many(&[liar, neighbour]).into_iter();
        seen(corrupt(many.next().expect("the first")));
        assert!(many.next().expect("the second").expect("is sound").is_some(), "the neighbour is sound");
        seen(corrupt(world.transaction(|tx| {
            tx.save(liar, filled(&world, ids.air));
            Ok::<_, Error>(())
        })));
        seen(corrupt(world.content_hash(Area::World)));
        let walked = world.read_view(|view| {
            view.for_each_chunk(Area::World, |stored| match stored {
                Ok(_) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(error),
            })
        });
        seen(corrupt(walked.expect("the engine reads").map_or(Ok(()), Err)));
        let remedy = "restore it from a checkpoint or set it aside with `cg quarantine`";
        assert_eq!(findings(&world), [format!("chunkl0: {liar}: {expected}; {remedy}")], "{promised}");
        // It stays where it is, and its neighbour is moved.
        world.tiers().demote_all(u64::MAX, |_| {}).expect("moves what is sound");
        let tier = |at| world.tiers().with_stored_bytes(at, |stored| Ok(stored.tier));
        seen(corrupt(tier(liar)));
        assert!(tier(neighbour).expect("is sound") > Some(Tier::L0), "{promised}");
    }
}

#[test]
fn a_copy_below_a_row_that_does_not_decompress_is_kept() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let at = ids.at(0, 0, 0);
    save(&world, [(at, terrain(&world, &ids, 1))]);
    demote(&world, ClusterTier::L1, &[at], true);
    let sound = row(&world, at);
    drop(world);
    disk.raw().put(Family::ChunkL0, key::chunk(at), &lie(at, &sound, 1));
    let world = disk.open(&[]);
    world.tiers().demote_all(u64::MAX, |_| {}).expect("moves what is sound");
    let engine = world.engine();
    let copies = [ClusterTier::L1, ClusterTier::L2].map(|tier| {
        let row_key = key::cluster(at.dimension, at.pos.cluster(tier));
        let row = engine.get(Space::of_cluster(tier), &row_key).expect("reads");
        row.is_some_and(|row| {
            let cluster = StoredCluster::open(tier, &row_key, &row).expect("is sound");
            cluster.chunk_info(Slot::of(at.pos, tier)).is_some()
        })
    });
    assert!(copies.contains(&true), "the last good copy is kept");
    corrupt(world.load(at));
}
