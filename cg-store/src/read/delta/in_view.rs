//! Which chunks of a view have deltas.

use cg_format::ChunkAt;
use foldhash::HashMap;

use super::Deltas;
use super::gaps::{Gaps, each_delta};
use crate::engine::Readable;
use crate::storage::error::Error;

/// The last commit of the deltas of each chunk in a view. Reads keys only, and takes no lock.
pub(crate) struct DeltasInView {
    last: HashMap<ChunkAt, u64>,
    gaps: Gaps,
}

impl DeltasInView {
    /// Scans the keys of all deltas.
    pub(crate) fn read(view: &dyn Readable) -> Result<Self, Error> {
        let mut last = HashMap::default();
        let gaps = each_delta(view, |at, seq, _| {
            last.insert(at, seq);
        })?;
        Ok(Self { last, gaps })
    }

    /// The deltas of a chunk.
    pub(crate) fn of(&self, at: ChunkAt) -> Deltas {
        let has_any = self.last.contains_key(&at) || (!self.gaps.is_empty() && self.gaps.may_hide(at));
        if has_any { Deltas::Stored } else { Deltas::None }
    }

    /// The version of a chunk, given the version of its row.
    pub(crate) fn version(&self, at: ChunkAt, of_row: u64) -> u64 {
        self.last.get(&at).map_or(of_row, |last| of_row.max(*last))
    }
}
