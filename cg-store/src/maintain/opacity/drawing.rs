//! Drawing: computes the opacity of the chunks over some tiles, without the map.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use cg_format::chunk::Chunk;
use cg_format::opacity::{Patch, TileView, fold};
use cg_format::{ChunkAt, ChunkBox, ChunkPos, ClusterTier, Space, key};
use cg_registry::Catalog;

use super::Column;
use crate::engine::Readable;
use crate::kinds::opacity::TileKey;
use crate::read::chunk::{Area, StoredChunk};
use crate::read::state::ReadState;
use crate::rt::stats::Counters;
use crate::storage::error::{Damage, Error};

/// The outlines of a column's chunks: about half a KiB for each that hides anything.
#[derive(Debug, Default)]
pub(crate) struct Drawing {
    tiles: BTreeMap<TileKey, Vec<(ChunkPos, Patch)>>,
    /// The places of chunks that could not be read.
    unread: Vec<ChunkBox>,
}

impl Drawing {
    /// Reads and decodes every chunk of a column. A damaged chunk counts as transparent.
    ///
    /// # Errors
    /// If the engine fails.
    pub(crate) fn of(
        read: &ReadState,
        view: &dyn Readable,
        catalog: &Catalog,
        column: Column,
    ) -> Result<Self, Error> {
        let mut drawing = Self::default();
        let area = Area::Box(column.dimension(), column.area());
        let failed = read.walk(view, area, |stored| {
            match stored {
                Err(Error::Corrupt(damage)) => drawing.unread.extend(place_of(&damage)),
                // The engine cannot report which chunks are in damaged files.
                Err(error @ Error::Engine(_)) => return ControlFlow::Break(error),
                Err(_) => {}
                Ok(stored) => {
                    Counters::add(&read.shared.counters.chunks_decoded, 1);
                    match outline(catalog, stored) {
                        Some(outline) => drawing.add(stored.at, &outline),
                        None => drawing.unread.push(ChunkBox::new(stored.at.pos, stored.at.pos)),
                    }
                }
            }
            ControlFlow::Continue(())
        })?;
        failed.map_or(Ok(drawing), Err)
    }

    fn add(&mut self, at: ChunkAt, outline: &Patch) {
        if outline.as_uniform() != Some(false) {
            self.tiles.entry(key::opacity_tile(at)).or_default().push((at.pos, *outline));
        }
    }

    /// The tile as the map should hold it; `None` if nothing in it is opaque.
    ///
    /// # Errors
    /// [`Error::OpacityTile`] if it would be too large.
    pub(crate) fn tile(&self, tile: &TileKey) -> Result<Option<Vec<u8>>, Error> {
        self.tiles.get(tile).map(|outlines| Ok(fold(None, outlines)?)).transpose()
    }

    /// Removes from a tile the parts over chunks that could not be read. Whether these are right is unknown.
    ///
    /// # Errors
    /// As [`tile`](Self::tile).
    pub(crate) fn without_unread(&self, column: Column, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
        let (from, to) = (column.area().min(), column.area().max());
        let inside =
            |pos: &ChunkPos| (from.x()..=to.x()).contains(&pos.x()) && (from.z()..=to.z()).contains(&pos.z());
        let unread = self.unread.iter().flat_map(ChunkBox::iter).filter(inside);
        let hidden: Vec<_> = unread.map(|pos| (pos, Patch::uniform(false))).collect();
        if hidden.is_empty() {
            return Ok(bytes);
        }
        let view = TileView::new(&bytes).expect("folding writes sound tiles");
        Ok(fold(Some(&view), &hidden)?)
    }
}

/// The outline of a chunk with its current blocks; `None` if it does not decode.
///
/// Its components stay in their stored schema generation: they do not affect opacity, and converting them may need the
/// host.
fn outline(catalog: &Catalog, stored: StoredChunk<'_>) -> Option<Patch> {
    let chunk = Chunk::decode(stored.value, &catalog.schema(stored.schema_generation)?).ok()?;
    Some(Patch::of_chunk(&chunk, &catalog.current_schema()))
}

/// The chunks that a damaged row may hold.
fn place_of(damage: &Damage) -> Option<ChunkBox> {
    let cluster = |tier| {
        let (_, pos) = key::decode_cluster(tier, &damage.key).ok()?;
        Some(ChunkBox::new(pos.min_chunk(), pos.max_chunk()))
    };
    match damage.space {
        Space::ClusterL1 => cluster(ClusterTier::L1),
        Space::ClusterL2 => cluster(ClusterTier::L2),
        _ => key::decode_chunk(&damage.key).ok().map(|at| ChunkBox::new(at.pos, at.pos)),
    }
}
