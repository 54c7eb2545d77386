//! The worlds that a keeper works on.

use std::fs::File;
use std::path::Path;

use cg_layers::SegmentedWorld;
use cg_store::prelude::*;
use cg_store::view::DamagedRows;

use super::content::{Content, OfWorld, hashes_of};
use super::place::{
    LARGE, ROUNDS, SOURCE, chunk_in, large, open, open_segmented, segment_options, segmented_in, snapshot,
    world_in,
};
use crate::failure::Failure;
use crate::step::Step;
use crate::subject;

/// Steps in the world.
const STEPS: u64 = 24;
/// Segments that have the objects.
const SEGMENTS: u64 = 3;

/// Makes a world and a segmented one, with much that was overwritten, and an archive of the first.
pub(crate) fn make(dir: &Path, seed: u64) -> Result<Content, Failure> {
    let plain = make_world(dir, seed)?;
    make_segmented(dir, seed)?;
    Ok(Content { plain, segmented: hashes_of(dir)? })
}

/// Makes a world, with much that was overwritten, and an archive of it.
pub(crate) fn make_world(dir: &Path, seed: u64) -> Result<OfWorld, Failure> {
    subject::create(&world_in(dir), seed)?;
    for round in 0..ROUNDS {
        let world = open(&world_in(dir))?;
        for index in 0..STEPS / ROUNDS {
            subject::take(&world, &Step::new(seed, round * STEPS / ROUNDS + index), None)?;
        }
        for number in 0..LARGE {
            world.objects().put(format!("large/{number}"), large(seed, round, number))?;
        }
        if round == 0 {
            world.snapshots().save("torture", &snapshot(seed))?;
        }
        world.close()?;
    }
    let world = open(&world_in(dir))?;
    let file = File::create_new(dir.join(SOURCE))?;
    World::builder().archive(&world, file, DamagedRows::Refuse, |_| {})?;
    world.close()?;
    drop(world);
    OfWorld::read(&world_in(dir))
}

fn make_segmented(dir: &Path, seed: u64) -> Result<(), Failure> {
    SegmentedWorld::create(segmented_in(dir), &[], &segment_options())?.close()?;
    for round in 0..ROUNDS {
        let segmented = open_segmented(dir)?;
        if round == 0 {
            let dimensions = vec![cg_registry::Name::new("torture:first")?];
            segmented.register(&Registration { dimensions, ..Registration::default() })?;
        }
        segmented.transaction(chunk_in(&segmented, 0)?, |tx| {
            tx.set_property(subject::named(subject::STEPS)?, Some(vec![1]));
            Ok::<_, Failure>(())
        })?;
        for number in 0..LARGE {
            let at = chunk_in(&segmented, number % SEGMENTS)?;
            segmented
                .transaction(at, |tx| tx.put_object(format!("large/{number}"), large(seed, round, number)))?;
        }
        segmented.close()?;
    }
    Ok(())
}
