//! Which cubes of a box changed: from the commits that memory holds, or from change marks.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use cg_format::frame::FrameView;
use cg_format::key::{self, Family};
use cg_format::{ChunkAt, ChunkBox, ClusterPos, ClusterTier, Dimension, Space};

use super::{Changed, Changes};
use crate::engine::ReadableExt as _;
use crate::read::chunk::{Area, Cubes};
use crate::rt::stats::Counters;
use crate::storage::error::{Damage, Error};

/// A 4³ cube in which something changed, and what, if memory holds that.
type ChangedIn = (ClusterPos, Option<Vec<Changed>>);

impl Changes<'_> {
    /// The 4³ cubes of a box in which something changed after a commit, in the order of their keys. Each with the chunks that
    /// changed and the commits that changed them, if memory holds those.
    pub(super) fn changed_cubes(
        &self,
        dimension: Dimension,
        area: &ChunkBox,
        since: u64,
    ) -> Result<Vec<ChangedIn>, Error> {
        let log = self.log;
        let wants = |at: ChunkAt| at.dimension == dimension && area.contains(at.pos);
        let Some(recent) = log.changed_since(since, self.commit, wants) else {
            let mut cubes = Vec::new();
            for large in self.changed_16(dimension, area, since)? {
                let found = self.changed_in(dimension, large, area, since)?;
                cubes.extend(found.into_iter().map(|cube| (cube, None)));
            }
            return Ok(cubes);
        };
        let mut cubes: BTreeMap<_, (ClusterPos, Vec<Changed>)> = BTreeMap::new();
        for (at, commit) in recent {
            let cube = at.pos.cluster(ClusterTier::L1);
            let entry = cubes.entry(key::cluster(dimension, cube)).or_insert((cube, Vec::new()));
            entry.1.push((at, commit));
        }
        Ok(cubes.into_values().map(|(cube, changed)| (cube, Some(changed))).collect())
    }

    /// The 16³ cubes of a box in which something changed. The marks of a small box are read one by one, those of a large
    /// one are scanned.
    fn changed_16(
        &self,
        dimension: Dimension,
        area: &ChunkBox,
        since: u64,
    ) -> Result<Vec<ClusterPos>, Error> {
        let Cubes::Named(cubes) = Cubes::of(Area::Box(dimension, *area)) else {
            let ends = [area.min(), area.max()].map(|corner| corner.cluster(ClusterTier::L2));
            return self.marked(dimension, ends, area, since);
        };
        let mut found = Vec::new();
        for (_, cube) in cubes {
            match self.mark(dimension, cube) {
                Ok(mark) if mark.is_none_or(|mark| mark <= since) => {}
                Ok(_) | Err(Error::Corrupt(_)) => found.push(cube),
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// The 4³ cubes of a 16³ cube and a box in which something changed.
    fn changed_in(
        &self,
        dimension: Dimension,
        large: ClusterPos,
        area: &ChunkBox,
        since: u64,
    ) -> Result<Vec<ClusterPos>, Error> {
        let ends = [large.min_chunk(), large.max_chunk()].map(|chunk| chunk.cluster(ClusterTier::L1));
        self.marked(dimension, ends, area, since)
    }

    /// The cubes between two in the order of keys whose marks are newer than a commit, or damaged, and that meet a box.
    fn marked(
        &self,
        dimension: Dimension,
        [first, last]: [ClusterPos; 2],
        area: &ChunkBox,
        since: u64,
    ) -> Result<Vec<ClusterPos>, Error> {
        let (first, last) = (key::change_mark(dimension, first), key::change_mark(dimension, last));
        let range = (Bound::Included(&first[..]), Bound::Included(&last[..]));
        let mut found = Vec::new();
        self.view.scan(Family::Index, range, |row_key, row| {
            Counters::add(&self.counters.keys_scanned, 1);
            let is_newer = FrameView::open(Space::ChangeMark, row_key, row)
                .map_or(true, |frame| frame.header().version > since);
            if is_newer
                && let Ok((_, cube)) = key::decode_change_mark(row_key)
                && meets(area, cube)
            {
                found.push(cube);
            }
            ControlFlow::<()>::Continue(())
        })?;
        Ok(found)
    }

    /// The commit that last changed something in a cube; `None` if nothing ever did.
    pub(crate) fn mark(&self, dimension: Dimension, cube: ClusterPos) -> Result<Option<u64>, Error> {
        let row_key = key::change_mark(dimension, cube);
        Counters::add(&self.counters.engine_reads, 1);
        let Some(row) = self.view.get(Space::ChangeMark, &row_key)? else { return Ok(None) };
        let frame = FrameView::open(Space::ChangeMark, &row_key, &row);
        let damage = |problem| Damage::of_row(Space::ChangeMark, &row_key, cube.to_string(), problem);
        Ok(Some(frame.map_err(damage)?.header().version))
    }
}

/// Whether a cube has a chunk in a box.
fn meets(area: &ChunkBox, cube: ClusterPos) -> bool {
    area.intersects(&ChunkBox::new(cube.min_chunk(), cube.max_chunk()))
}
