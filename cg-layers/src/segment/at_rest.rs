//! Reads that see no transfer half done, if it can be finished.

use cg_format::{ChunkAt, Lookup};
use cg_store::error::ConflictKey;
use cg_store::{Error, World};

use super::home::SegmentHome;
use super::transfers::Transfers;

impl<H: SegmentHome> Transfers<H> {
    /// Looks a chunk up in its segment.
    ///
    /// Finishing an interrupted transfer changes chunks. So it is finished before the reads, not between two of them.
    pub(super) fn look_up<T>(
        &self,
        at: ChunkAt,
        find: impl FnOnce(&World) -> Result<Lookup<T>, Error>,
    ) -> Result<Lookup<T>, Error> {
        self.try_to_resolve();
        self.open().look_up(at, find)
    }

    /// Looks many chunks up, those of one segment in one call of `find`.
    pub(super) fn look_up_many<T>(
        &self,
        at: &[ChunkAt],
        find: impl Fn(&World, &[ChunkAt]) -> Vec<Result<Lookup<T>, Error>>,
    ) -> Vec<Result<Lookup<T>, Error>> {
        self.try_to_resolve();
        self.open().look_up_many(at, find)
    }

    /// Calls a function with the segment of a key, if it has one. An entity is not transferred meanwhile.
    pub(super) fn at_rest<T>(
        &self,
        key: &ConflictKey,
        show: impl FnOnce(&World) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.try_to_resolve();
        let _none_crosses = self.borders().shared();
        if let ConflictKey::Entity(id) = key {
            self.borders().refuse_in_transit(*id)?;
        }
        let Some(segment) = self.root().segment_with(key)? else { return Ok(None) };
        self.open().with_stored(segment, show)
    }
}
