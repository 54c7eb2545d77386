//! Finds the next cube with rows, with as few seeks over deleted rows as possible.

use std::ops::{Bound, ControlFlow};

use cg_format::key::Family;
use cg_format::{ClusterTier, Space, key};
use cg_tiering::CubeAt;

use super::DamageLog;
use super::heat::{decode_heat_key, heat_key};
use crate::engine::{KeyRange, Met, scan_skipping_damage};
use crate::maintain::move_tier::{hot_keys, row_of};
use crate::maintain::state::MaintainState;
use crate::rt::stats::Counters;
use crate::storage::error::Error;

/// The first cubes with rows after a position that moves forward.
///
/// Moves delete rows, and a seek steps over every deleted row up to the next existing one. So a family is searched only
/// when the position has passed the last result. This misses rows that are put in between meanwhile, like rows that are
/// put before the position. [`Tiering`](super::Tiering) gets reports of both.
#[derive(Debug, Default)]
pub(crate) struct NextCubes {
    hot: Found,
    heat: Found,
    /// The last cube of the search; `None`: the last one of the world.
    last: Option<CubeAt>,
}

impl NextCubes {
    pub(super) fn up_to(last: Option<CubeAt>) -> Self {
        Self { last, ..Self::default() }
    }
}

/// The result of the last seek in a family.
#[derive(Debug, Default)]
enum Found {
    #[default]
    NotSought,
    /// `None`: nothing up to the end.
    First(Option<CubeAt>),
}

impl Found {
    /// The first cube of a range that begins at `from`. Seeks only if the last result is before the range.
    fn first(
        &mut self,
        from: Bound<CubeAt>,
        seek: impl FnOnce() -> Result<Option<CubeAt>, Error>,
    ) -> Result<Option<CubeAt>, Error> {
        let is_passed = |cube: &CubeAt| match &from {
            Bound::Unbounded => false,
            Bound::Included(first) => sort_key(cube) < sort_key(first),
            Bound::Excluded(last) => sort_key(cube) <= sort_key(last),
        };
        if let Self::First(found) = self
            && !found.as_ref().is_some_and(is_passed)
        {
            return Ok(*found);
        }
        let found = seek()?;
        *self = Self::First(found);
        Ok(found)
    }
}

/// The keys of warm clusters sort cubes in the same order as the keys of their chunks.
fn sort_key(cube: &CubeAt) -> [u8; key::CHUNK_LEN_BYTES] {
    row_of(cube.cluster(ClusterTier::L1)).1
}

impl MaintainState {
    /// The first cube from a position on that has a hot row or a heat row. Unreadable rows on the way are reported, and
    /// stay.
    ///
    /// `next_cubes` has the results for earlier positions.
    pub(super) fn next_cube(
        &self,
        from: Bound<CubeAt>,
        next_cubes: &mut NextCubes,
        damage_log: &mut DamageLog,
    ) -> Result<Option<CubeAt>, Error> {
        let hot_ends = |cube: CubeAt| hot_keys(cube.cluster(ClusterTier::L1));
        let hot_first = match from {
            Bound::Included(cube) => Bound::Included(hot_ends(cube)[0]),
            Bound::Excluded(cube) => Bound::Excluded(hot_ends(cube)[1]),
            Bound::Unbounded => Bound::Unbounded,
        };
        let last = next_cubes.last;
        let hot_last = last.map_or(Bound::Unbounded, |cube| Bound::Included(hot_ends(cube)[1]));
        let tag = Space::Heat.index_tag().expect("it is in the index family");
        let (tag, end) = ([tag], [tag + 1]);
        let (heat_first, heat_last) = (from.map(heat_key), last.map(heat_key));
        let heat_keys = (
            match &heat_first {
                Bound::Unbounded => Bound::Included(&tag[..]),
                bound => bound.as_ref().map(|key| &key[..]),
            },
            heat_last.as_ref().map_or(Bound::Excluded(&end[..]), |key| Bound::Included(&key[..])),
        );
        let hot_of = |key: &[u8]| key::decode_chunk(key).ok().map(CubeAt::of);
        let hot_keys = (hot_first.as_ref().map(|key| &key[..]), hot_last.as_ref().map(|key| &key[..]));
        let first_hot =
            next_cubes.hot.first(from, || self.first_cube(Family::ChunkL0, hot_keys, hot_of, damage_log))?;
        let first_heat = next_cubes
            .heat
            .first(from, || self.first_cube(Family::Index, heat_keys, decode_heat_key, damage_log))?;
        Ok(first_hot.into_iter().chain(first_heat).min_by_key(sort_key))
    }

    /// The cube of the first key of a range that names one.
    fn first_cube(
        &self,
        family: Family,
        keys: KeyRange<'_>,
        cube_of: impl Fn(&[u8]) -> Option<CubeAt>,
        damage_log: &mut DamageLog,
    ) -> Result<Option<CubeAt>, Error> {
        // Many cubes may be before a gap, and the search from each of them would read it again.
        let Some(from) = damage_log.gaps.behind(family, keys) else { return Ok(None) };
        let keys = (from.as_ref().map(|key| &key[..]), keys.1);
        let mut behind = match keys.0 {
            Bound::Included(key) | Bound::Excluded(key) => key.to_vec(),
            Bound::Unbounded => Vec::new(),
        };
        Ok(scan_skipping_damage(&*self.shared.engine()?, family, keys, |met| {
            Counters::add(&self.shared.counters.keys_scanned, 1);
            match met {
                Met::Row(key, _) => match cube_of(key) {
                    Some(cube) => return ControlFlow::Break(cube),
                    None => behind = key.to_vec(),
                },
                Met::Gap { until, error } => {
                    damage_log.gaps.remember(family, &behind, until, keys.1);
                    behind = until.unwrap_or_default().to_vec();
                    damage_log.report(&error.into());
                }
            }
            ControlFlow::Continue(())
        })?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::{ChunkAt, ChunkPos, Dimension};

    fn cube(n: i64) -> CubeAt {
        CubeAt::of(ChunkAt::new(Dimension::new(0), ChunkPos::constant(0, 0, 4 * n)))
    }

    #[test]
    fn what_was_found_is_sought_again_only_once_it_was_passed() {
        let (mut found, mut seeks) = (Found::default(), 0);
        let mut first = |from: Bound<CubeAt>, finds: Option<i64>| {
            let mut sought = false;
            let first = found.first(from, || {
                sought = true;
                Ok(finds.map(cube))
            });
            seeks += u32::from(sought);
            (first.expect("no seek fails"), sought)
        };
        let at = |n| Bound::Included(cube(n));
        let after = |n| Bound::Excluded(cube(n));
        assert_eq!(first(Bound::Unbounded, Some(5)), (Some(cube(5)), true));
        assert_eq!(first(after(1), None), (Some(cube(5)), false));
        assert_eq!(first(at(5), None), (Some(cube(5)), false));
        assert_eq!(first(after(5), Some(7)), (Some(cube(7)), true));
        assert_eq!(first(at(8), None), (None, true));
        assert_eq!(first(after(9), Some(10)), (None, false), "up to the end there is nothing");
        assert_eq!(seeks, 3);
    }
}
