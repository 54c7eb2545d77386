//! Iteration over every live chunk of an area, or every entity, in one state of the world.

use std::ops::ControlFlow;

use cg_format::entity::Entity;
use cg_format::key::{self, Family};
use cg_format::{ChunkAt, ClusterPos, Dimension, EntityId, Space, Tier};
use rayon::prelude::*;

use crate::engine::{ALL_KEYS, CommitSeq, Met, Readable, scan_skipping_damage};
use crate::kinds::entity;
use crate::read::chunk::{Area, Cubes, StoredChunk, show, walk, walk_cube, walk_live};
use crate::read::delta::DeltasInView;
use crate::read::reader::Reader;
use crate::read::state::ReadState;
use crate::storage::error::{Damage, Error};

/// The place of a live chunk, and the commit that last changed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StoredPlace {
    /// Which chunk.
    pub at: ChunkAt,
    /// The commit that last changed its content.
    pub version: CommitSeq,
    /// The tier of its row.
    pub tier: Tier,
}

impl ReadState {
    /// Visits every live chunk of an area of a view with its deltas folded in, until `visit` breaks. Reads the
    /// keys of all deltas of the view first.
    ///
    /// A walk does not ask for places as a load does: it follows the keys, and visits damage that hides unknown places.
    ///
    /// # Errors
    /// If the engine fails.
    pub(crate) fn walk<B>(
        &self,
        view: &dyn Readable,
        area: Area<'_>,
        mut visit: impl FnMut(Result<StoredChunk<'_>, Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        let (catalog, deltas) = (self.shared.registry.catalog(), DeltasInView::read(view)?);
        let reader = Reader::of_view(self, view, &catalog, Some(&deltas));
        walk(view, &self.shared.counters, area, |stored| reader.visit(stored, &mut visit))
    }

    /// See [`ReadView::for_each_place`](crate::view::ReadView::for_each_place).
    pub(crate) fn for_each_place<B>(
        &self,
        view: &dyn Readable,
        area: Area<'_>,
        mut visit: impl FnMut(Result<StoredPlace, Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        let deltas = DeltasInView::read(view)?;
        walk_live(view, &self.shared.counters, area, |live| {
            visit(live.map(|live| {
                let (at, of_row, tier) = live.place();
                StoredPlace { at, version: CommitSeq::new(deltas.version(at, of_row)), tier }
            }))
        })
    }

    /// See [`ReadView::par_for_each_chunk`](crate::view::ReadView::par_for_each_chunk).
    pub(crate) fn par_for_each_chunk<B: Send>(
        &self,
        view: &dyn Readable,
        area: Area<'_>,
        visit: impl Fn(Result<StoredChunk<'_>, Error>) -> ControlFlow<B> + Sync,
    ) -> Result<Option<B>, Error> {
        let (catalog, deltas) = (self.shared.registry.catalog(), DeltasInView::read(view)?);
        let reader = Reader::of_view(self, view, &catalog, Some(&deltas));
        let (mut cubes, mut damaged, mut next) = (Vec::new(), Vec::new(), Cubes::of(area));
        while let Some(cube) = next.next_past_damage(view, &self.shared.counters, &mut damaged)? {
            cubes.push(cube);
        }
        if let Some(value) = damaged.into_iter().find_map(|error| visit(Err(error)).break_value()) {
            return Ok(Some(value));
        }
        let walk = |cube: &(Dimension, ClusterPos)| {
            let walked = walk_cube(view, &self.shared.counters, area, *cube, |live| {
                show(live, &mut |stored: Result<_, _>| reader.visit(stored, &visit))
            });
            walked.map(ControlFlow::break_value).transpose()
        };
        self.shared.pool.install(|| cubes.par_iter().find_map_any(walk)).transpose()
    }
}

/// Visits every entity of a view.
pub(crate) fn entities<B>(
    view: &dyn Readable,
    mut visit: impl FnMut(Result<(EntityId, Entity), Error>) -> ControlFlow<B>,
) -> Result<Option<B>, Error> {
    let stopped = scan_skipping_damage(view, Family::Entity, ALL_KEYS, |met| {
        let (row_key, row) = match met {
            Met::Row(key, row) => (key, row),
            Met::Gap { error, .. } => return visit(Err(error.into())),
        };
        let id = key::decode_entity(row_key)
            .map_err(|problem| Damage::of_row(Space::Entity, row_key, "an entity", problem));
        visit(id.and_then(|id| Ok((id, entity::decode(id, row)?))))
    })?;
    Ok(stopped)
}
