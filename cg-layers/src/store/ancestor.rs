//! The base's chunk over which a chunk's row was first written.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::delta::Delta;
use cg_format::frame::FrameView;
use cg_format::overlay::{Origin, OverlayRow, OverlayValue};
use cg_format::{ChunkAt, Space, key};
use cg_store::Error;
use cg_store::engine::EngineError;
use cg_store::error::{ConflictKey, Damage};
use cg_store::layer::Base;

use super::row::Row;
use super::state::Store;

impl<S: Base> Store<S> {
    /// The base's chunk over which a chunk's row was first written, in the cells that the row changes: elsewhere it is
    /// the row's. `None` if it is not stored, as in drafts of earlier versions, or if the row may be merged already.
    pub(crate) fn ancestor(
        &self,
        lease: u64,
        at: ChunkAt,
        row: &Row<Arc<Chunk>>,
    ) -> Result<Option<Arc<Chunk>>, Error> {
        let key = &key::overlay_chunk(lease, at);
        let (Some(here), Some(bytes)) = (row.here(), self.rows.engine().get(Space::ChunkDelta, key)?) else {
            return Ok(None);
        };
        let damaged =
            |problem| Damage::of_row(Space::ChunkDelta, key, ConflictKey::Chunk(at).to_string(), problem);
        let frame = FrameView::open(Space::ChunkDelta, key, &bytes).map_err(damaged)?;
        let stored = OverlayRow::decode(frame.payload()).map_err(damaged)?;
        if stored.origin != row.origin || row.version <= self.rows.merged_until(lease)? {
            return Ok(None);
        }
        Ok(match stored.value {
            OverlayValue::Here(value) => {
                Some(Arc::new(self.decode_value(at, &frame.header(), value, key)?))
            }
            OverlayValue::Changed(value) => {
                let back = Delta::decode(value).map_err(damaged)?;
                let mut chunk = Arc::clone(here);
                let is_applied = back.apply(Arc::make_mut(&mut chunk), &self.catalog()?.current_schema());
                is_applied.is_ok().then_some(chunk)
            }
            OverlayValue::Deleted => None,
        })
    }

    /// Whether the whole ancestor of this origin is stored.
    pub(super) fn has_whole_ancestor(&self, key: &[u8], origin: Origin) -> Result<bool, Error> {
        let bytes = match self.rows.engine().get(Space::ChunkDelta, key) {
            Ok(Some(bytes)) => bytes,
            // It is written anew.
            Ok(None) | Err(EngineError::Corrupt { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let Ok(frame) = FrameView::open(Space::ChunkDelta, key, &bytes) else { return Ok(false) };
        let stored = OverlayRow::decode(frame.payload());
        Ok(stored.is_ok_and(|row| row.origin == origin && matches!(row.value, OverlayValue::Here(_))))
    }
}
