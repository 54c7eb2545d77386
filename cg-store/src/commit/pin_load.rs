//! Loading the chunks of a pinned area, up to a limit.

use std::ops::ControlFlow;

use cg_format::{ChunkAt, ChunkBox, Dimension};

use crate::commit::state::CommitState;
use crate::engine::ErrorKind;
use crate::read::chunk::Area;
use crate::storage::error::Error;

/// The number of chunks that are loaded together. The limit is compared after each such group.
const TOGETHER: usize = 16;

/// What [`CachePin::load`](crate::cache::CachePin::load) loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PinLoad {
    /// The stored chunks of the area that are in memory now, whether they were before or not.
    pub chunks: u64,
    /// About their size, without absent chunks.
    pub bytes: u64,
    /// Damaged chunks, and ranges of them that cannot be read. They are left out.
    pub damaged: u64,
    /// Whether the limit was reached, so that chunks of the area may be missing.
    pub is_limited: bool,
}

impl CommitState {
    /// Loads the stored chunks of an area in the order of keys, until they take `max_bytes`.
    pub(crate) fn load_area(
        &self,
        dimension: Dimension,
        area: ChunkBox,
        max_bytes: u64,
    ) -> Result<PinLoad, Error> {
        let mut engine = None;
        let view = self.read_view(&mut engine)?;
        let (mut loaded, mut waiting) = (PinLoad::default(), Vec::with_capacity(TOGETHER));
        let failed = self.read.for_each_place(&view.view, Area::Box(dimension, area), |place| {
            match place {
                Ok(place) => waiting.push(place.at),
                Err(_) => loaded.damaged += 1,
            }
            if waiting.len() < TOGETHER {
                return ControlFlow::Continue(());
            }
            self.load_group(&mut waiting, max_bytes, &mut loaded)
        })?;
        match failed {
            Some(ended) => ended.map(|()| loaded),
            None => match self.load_group(&mut waiting, max_bytes, &mut loaded) {
                ControlFlow::Break(Err(error)) => Err(error),
                _ => Ok(loaded),
            },
        }
    }

    /// Loads a group of chunks, as far as the limit allows. Breaks at the limit, and with an error of the engine.
    fn load_group(
        &self,
        waiting: &mut Vec<ChunkAt>,
        max_bytes: u64,
        loaded: &mut PinLoad,
    ) -> ControlFlow<Result<(), Error>> {
        if waiting.is_empty() {
            return ControlFlow::Continue(());
        }
        if loaded.bytes >= max_bytes {
            loaded.is_limited = true;
            return ControlFlow::Break(Ok(()));
        }
        for found in self.read.stored_many(waiting) {
            match found.map(cg_format::Lookup::here) {
                Ok(Some(stored)) => {
                    loaded.chunks += 1;
                    loaded.bytes += stored.chunk.memory_bytes() as u64;
                }
                // It was deleted meanwhile.
                Ok(None) => {}
                Err(error) if error.kind() == ErrorKind::Damaged => loaded.damaged += 1,
                Err(error) => return ControlFlow::Break(Err(error)),
            }
        }
        waiting.clear();
        ControlFlow::Continue(())
    }
}
