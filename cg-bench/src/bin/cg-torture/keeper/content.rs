//! What is in the worlds of a keeper, whatever is done to their files.

use std::io::Read as _;
use std::path::Path;

use cg_layers::SegmentedWorld;
use cg_store::verify::{ContentHash, VerifyDepth};
use cg_store::view::Area;

use super::place::{LARGE, open, open_segmented, segmented_in, snapshot};
use crate::failure::Failure;
use crate::subject;

/// What is in the worlds, whatever is done to their files.
#[derive(Debug)]
pub(crate) struct Content {
    pub(super) plain: OfWorld,
    pub(super) segmented: Vec<ContentHash>,
}

impl Content {
    /// That of the world alone.
    pub(super) fn of_world(hash: String, seed: u64) -> Self {
        Self { plain: OfWorld { hash, snapshot: snapshot(seed) }, segmented: Vec::new() }
    }
}

/// What is in a plain world.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OfWorld {
    /// The hash of its content.
    pub(crate) hash: String,
    /// The bytes of its snapshot.
    snapshot: Vec<u8>,
}

impl OfWorld {
    /// Reads it from a world, whose rows must be sound.
    pub(super) fn read(dir: &Path) -> Result<Self, Failure> {
        let world = open(dir)?;
        if let Some(finding) = world.verify(VerifyDepth::Full, |_| {})?.findings.first() {
            return Err(format!("the world is not sound: {}", finding.what).into());
        }
        let hash = world.content_hash(Area::World)?.to_string();
        let mut snapshot = Vec::new();
        world.snapshots().open("torture")?.ok_or("the snapshot is gone")?.read_to_end(&mut snapshot)?;
        world.close()?;
        Ok(Self { hash, snapshot })
    }
}

/// The hashes of the root and all segments, in their order.
pub(super) fn hashes_of(dir: &Path) -> Result<Vec<ContentHash>, Failure> {
    let world = open_segmented(dir)?;
    let mut hashes = vec![world.root().content_hash(Area::World)?];
    for segment in world.segments().list() {
        hashes.push(world.segments().with(segment, |world| world.content_hash(Area::World))?);
    }
    let found = world.objects().list("", None, usize::MAX)?.entries.len() as u64;
    world.close()?;
    drop(world);
    let report =
        SegmentedWorld::verify(segmented_in(dir), VerifyDepth::Full, &subject::options(), &[], |_| {})?;
    match (report.is_ok(), found) {
        (true, LARGE) => Ok(hashes),
        _ => Err(format!("{found} objects are found; {:?}", report.findings).into()),
    }
}
