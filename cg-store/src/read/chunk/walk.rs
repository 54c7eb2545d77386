//! Walks all live chunks of a view in the order of their keys, each once whatever its tier.
//!
//! Keys are in Morton order, and so are the walks: dimension by dimension, cube by cube, and inside a 16³ cube
//! one 4³ cube after the other. See `walk_cube.rs` for how the tiers of one cube are merged.

use std::ops::ControlFlow;

use cg_format::cluster::SlotInfo;
use cg_format::{ChunkAt, ChunkBox, Dimension, Tier};

use super::StoredChunk;
use super::cubes::{Area, Cubes};
use super::hot::HotChunk;
use super::walk_cube::{OpenCluster, walk_cube};
use crate::engine::{CommitSeq, Readable};
use crate::rt::stats::Counters;
use crate::storage::error::Error;

/// A live chunk that a walk has reached. It is not decompressed yet.
pub(crate) enum Live<'l, 'r> {
    /// A chunk in a row of its own, and where to decompress it.
    Hot(HotChunk<'l>, &'l mut Vec<u8>),
    /// A chunk in a cluster.
    Slot { at: ChunkAt, info: SlotInfo, cluster: &'l mut OpenCluster<'r>, counters: &'l Counters },
}

impl Live<'_, '_> {
    /// The chunk's position, the commit that last changed its row, and the tier of that row.
    pub(crate) fn place(&self) -> (ChunkAt, u64, Tier) {
        match self {
            Self::Hot(chunk, _) => {
                let (at, version) = chunk.place();
                (at, version, Tier::L0)
            }
            Self::Slot { at, info, cluster, .. } => (*at, info.version, cluster.tier().tier()),
        }
    }
}

/// The stored chunks of a box.
///
/// Reads only rows and the directories of clusters: no chunk is decoded and nothing decompressed.
pub(crate) fn positions_in(
    view: &dyn Readable,
    counters: &Counters,
    dimension: Dimension,
    area: ChunkBox,
) -> Result<Vec<ChunkAt>, Error> {
    let mut found = Vec::new();
    let failed = walk_live(view, counters, Area::Box(dimension, area), |live| match live {
        Ok(live) => {
            found.push(live.place().0);
            ControlFlow::Continue(())
        }
        Err(error) => ControlFlow::Break(error),
    })?;
    failed.map_or(Ok(found), Err)
}

/// Visits every live chunk of an area as its row has it, until `visit` breaks.
///
/// Damage that may hold chunks of the area is visited as an error, once for each cube that it overlaps, and the walk
/// continues. Rows outside the area are not opened.
///
/// # Errors
/// If the engine fails.
pub(crate) fn walk<B>(
    view: &dyn Readable,
    counters: &Counters,
    area: Area<'_>,
    mut visit: impl FnMut(Result<StoredChunk<'_>, Error>) -> ControlFlow<B>,
) -> Result<Option<B>, Error> {
    walk_live(view, counters, area, |live| show(live, &mut visit))
}

/// Visits the bytes of a live chunk. Does nothing if they are in a damaged group that was already reported.
pub(crate) fn show<B>(
    live: Result<Live<'_, '_>, Error>,
    visit: &mut impl FnMut(Result<StoredChunk<'_>, Error>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let (at, info, cluster, counters) = match live {
        Ok(Live::Slot { at, info, cluster, counters }) => (at, info, cluster, counters),
        Ok(Live::Hot(chunk, buffer)) => return visit(chunk.stored(buffer)),
        Err(error) => return visit(Err(error)),
    };
    let (tier, SlotInfo { version, schema_generation }) = (cluster.tier().tier(), info);
    let version = CommitSeq::new(version);
    match cluster.read(at.pos, counters) {
        Ok(Some(value)) => visit(Ok(StoredChunk { at, version, schema_generation, tier, value: &value })),
        Ok(None) => ControlFlow::Continue(()),
        Err(error) => visit(Err(error)),
    }
}

/// As [`walk`], without reading the chunks.
pub(crate) fn walk_live<B>(
    view: &dyn Readable,
    counters: &Counters,
    area: Area<'_>,
    mut visit: impl FnMut(Result<Live<'_, '_>, Error>) -> ControlFlow<B>,
) -> Result<Option<B>, Error> {
    let (mut cubes, mut damaged) = (Cubes::of(area), Vec::new());
    loop {
        let cube = cubes.next_past_damage(view, counters, &mut damaged)?;
        for error in damaged.drain(..) {
            if let ControlFlow::Break(value) = visit(Err(error)) {
                return Ok(Some(value));
            }
        }
        let Some(cube) = cube else { return Ok(None) };
        if let ControlFlow::Break(value) = walk_cube(view, counters, area, cube, &mut visit)? {
            return Ok(Some(value));
        }
    }
}
