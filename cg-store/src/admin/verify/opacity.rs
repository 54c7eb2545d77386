//! Verification of the opacity map: every column of every tile is compared with the chunks.

use std::ops::RangeInclusive;

use cg_format::opacity::{ColumnView, TileView, transparent};
use cg_format::{ClusterTier, Space};
use cg_registry::Catalog;

use super::Verifier;
use crate::admin::Admin;
use crate::engine::{ErrorKind, Readable};
use crate::kinds::opacity::{TileKey, folded};
use crate::maintain::opacity::{Column, Drawing, Part, each_part};
use crate::storage::error::Error;

/// The maximum number of runs of a column that a finding lists.
const LISTED_RUNS: usize = 3;

impl Verifier<'_> {
    /// Compares every tile with its chunks. Damaged rows of the map were already reported, and unreadable chunks are
    /// not compared. For a world that keeps a map: what is stored of another one means nothing.
    pub(super) fn opacity(
        &mut self,
        view: &dyn Readable,
        world: &Admin<'_>,
        catalog: &Catalog,
    ) -> Result<(), Error> {
        match self.parts(view, world, catalog) {
            // The engine could not read a family, which was reported with its rows.
            Err(error) if error.kind() == ErrorKind::Damaged => Ok(()),
            compared => compared,
        }
    }

    fn parts(&mut self, view: &dyn Readable, world: &Admin<'_>, catalog: &Catalog) -> Result<(), Error> {
        each_part(view, &world.shared.counters, |part| {
            let (column, tiles) = match part {
                Part::Column(column) => (column, column.tiles().collect()),
                Part::Stray(tile) => {
                    let Some(column) = Column::of_tile(&tile) else {
                        self.find_tile(&tile, "the opacity map has a tile over which no chunk can lie");
                        return Ok(());
                    };
                    (column, vec![tile])
                }
            };
            let drawing = Drawing::of(world.read, view, catalog, column)?;
            tiles.iter().try_for_each(|tile| self.tile(view, column, &drawing, tile))
        })
    }

    fn tile(
        &mut self,
        view: &dyn Readable,
        column: Column,
        drawing: &Drawing,
        tile: &TileKey,
    ) -> Result<(), Error> {
        let stored = match folded(view, *tile) {
            Ok(stored) => stored,
            Err(Error::Corrupt(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        let drawn = drawing.tile(tile)?;
        if stored.is_none() && drawn.is_none() {
            return Ok(());
        }
        self.count("opacity tiles");
        let readable = |bytes: Option<Vec<u8>>| {
            drawing.without_unread(column, bytes.unwrap_or_else(|| transparent(ClusterTier::L1)))
        };
        let (stored, drawn) = (readable(stored)?, readable(drawn)?);
        let view = |bytes| TileView::new(bytes).expect("folding writes sound tiles");
        if let Some(what) = difference(tile, &view(&stored), &view(&drawn)) {
            self.find_tile(tile, &what);
        }
        Ok(())
    }

    fn find_tile(&mut self, tile: &TileKey, what: &str) {
        let remedy = "it is a cache and no chunk is at fault: run `cg opacity rebuild`";
        self.find(Space::OpacityTile, tile, format!("{what}; {remedy}"));
    }
}

/// A sentence about where a tile of the map and one drawn from the chunks differ.
fn difference(tile: &TileKey, stored: &TileView<'_>, drawn: &TileView<'_>) -> Option<String> {
    let column = Column::of_tile(tile)?;
    let corner = column.area().min().min_block();
    let side = i64::from(ClusterTier::L1.tier().side_blocks());
    let all = (0..side).flat_map(|x| (0..side).map(move |z| (corner.x + x, corner.z + z)));
    let mut wrong =
        all.filter(|(x, z)| !stored.column(*x, *z).boundaries().eq(drawn.column(*x, *z).boundaries()));
    let (x, z) = wrong.next()?;
    let count = 1 + wrong.count();
    let columns = if count == 1 { "column" } else { "columns" };
    let dimension = column.dimension().get();
    let (told, found) = (runs(stored.column(x, z)), runs(drawn.column(x, z)));
    Some(format!(
        "the opacity map is wrong in {count} {columns} of the tile, first at x {x}, z {z} of dimension {dimension}: it says opaque {told}, and by the chunks it is {found}"
    ))
}

/// The opaque runs of a column in words.
fn runs(column: ColumnView<'_>) -> String {
    let all: Vec<RangeInclusive<i64>> = column.runs().collect();
    let mut words: Vec<_> =
        all.iter().take(LISTED_RUNS).map(|run| format!("{} to {}", run.start(), run.end())).collect();
    if all.len() > LISTED_RUNS {
        words.push(format!("{} more", all.len() - LISTED_RUNS));
    }
    if words.is_empty() { "nowhere".into() } else { format!("at y {}", words.join(", ")) }
}
