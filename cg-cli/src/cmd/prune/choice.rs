//! Which chunks go.

use std::collections::HashMap;
use std::ops::ControlFlow;

use cg_anvil::ColumnPos;
use cg_anvil::mapping::Visits;
use cg_format::{BlockArea, BlockBox, ChunkAt, ChunkPos, ClusterPos, ClusterTier, Dimension};
use cg_store::World;
use cg_store::view::Area;
use cg_tiering::GameTick;

use super::Args;
use crate::output::Failure;

/// Which chunks go.
pub(super) struct Choice<'a> {
    args: &'a Args,
    world: &'a World,
    dimension: Dimension,
    /// Where chunks go: everywhere, where other conditions are given and no box is.
    area: BlockArea,
    /// When a 4³ cube was accessed last; `None` where that is unknown.
    accessed: HashMap<ClusterPos, Option<GameTick>>,
    /// Visits of the columns, as the save had them; read when they are first asked for.
    imported: Option<Visits>,
    pub(super) unknown: u64,
}

impl<'a> Choice<'a> {
    pub(super) fn new(args: &'a Args, world: &'a World, dimension: Dimension) -> Result<Self, Failure> {
        let area = args.area.get()?.unwrap_or_else(BlockArea::everywhere);
        Ok(Self { args, world, dimension, area, accessed: HashMap::new(), imported: None, unknown: 0 })
    }

    pub(super) fn chosen(&mut self) -> Result<Vec<ChunkAt>, Failure> {
        let (mut lying, mut failed) = (Vec::new(), None);
        self.world.read_view(|view| {
            view.for_each_place(Area::Blocks(self.dimension, &self.area), |stored| match stored {
                Ok(stored) => {
                    if self.lies_there(stored.at.pos) {
                        lying.push(stored.at);
                    }
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            })
        })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        let mut chosen = Vec::with_capacity(lying.len());
        for at in lying {
            match self.was_visited(at)? {
                Some(false) => chosen.push(at),
                Some(true) => {}
                None => self.unknown += 1,
            }
        }
        Ok(chosen)
    }

    /// Whether entities go that stand in a place without a chunk. When a place without a chunk was visited is not known.
    pub(super) fn goes_empty(&self, pos: ChunkPos) -> bool {
        self.args.not_visited_for.is_none() && self.lies_there(pos)
    }

    /// Whether a column without a chunk goes: from the lowest section of a save to the highest, and not by its visits, which
    /// are not known.
    pub(super) fn takes_column(&self, column: ColumnPos) -> bool {
        let at = |y| ChunkPos::new(column.x.into(), y, column.z.into()).is_ok_and(|pos| self.goes_empty(pos));
        at(-128) && at(127)
    }

    /// Whether a chunk as a whole lies where chunks go.
    fn lies_there(&self, pos: ChunkPos) -> bool {
        let (first, last) =
            (pos.block(cg_format::LocalPos::new(0, 0, 0)), pos.block(cg_format::LocalPos::new(15, 15, 15)));
        let inside = self.area.covers(&BlockBox::new(first, last));
        let outside = self.args.outside_radius.is_none_or(|radius| {
            let [x, z] = [(self.args.around[0], first.x, last.x), (self.args.around[1], first.z, last.z)]
                .map(|(centre, first, last)| u128::from(centre.clamp(first, last).abs_diff(centre)));
            x * x + z * z > u128::from(radius) * u128::from(radius)
        });
        inside && outside
    }

    /// Whether a player was in a chunk's cube lately, if that is asked and known.
    fn was_visited(&mut self, at: ChunkAt) -> Result<Option<bool>, Failure> {
        let Some(span) = self.args.not_visited_for else { return Ok(Some(false)) };
        let now = self.world.tiers().clock().now();
        let accessed = self.last_access(at)?;
        if let Some(last) = accessed.filter(|last| last.get() > 0) {
            return Ok(Some(now.since(last) < span));
        }
        // An import writes before the world's first tick, so no player was there since; and none was anywhere in a world
        // without a tick.
        if accessed.is_none() && now.get() > 0 {
            return Ok(None);
        }
        let before = self.imported()?.unvisited_ticks(at.pos.x(), at.pos.z());
        let unvisited = match (before, accessed) {
            (Some(before), _) => before.saturating_add(now.get()),
            (None, Some(_)) => now.get(),
            (None, None) => return Ok(None),
        };
        Ok(Some(unvisited < span))
    }

    fn last_access(&mut self, at: ChunkAt) -> Result<Option<GameTick>, Failure> {
        let cube = at.pos.cluster(ClusterTier::L1);
        if let Some(known) = self.accessed.get(&cube) {
            return Ok(*known);
        }
        let report = self.world.tiers().explain(at)?;
        let accessed = report.and_then(|report| report.last_access);
        self.accessed.insert(cube, accessed);
        Ok(accessed)
    }

    fn imported(&mut self) -> Result<&Visits, Failure> {
        let imported = match self.imported.take() {
            Some(imported) => imported,
            None => Visits::read(self.world, self.dimension)?,
        };
        Ok(self.imported.insert(imported))
    }
}
