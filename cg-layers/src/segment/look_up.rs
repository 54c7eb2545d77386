//! Looks chunks up in their segments.

use std::ops::Range;

use cg_format::{ChunkAt, Lookup};
use cg_store::{Error, World};

use super::home::SegmentHome;
use super::open::OpenSegments;
use super::pos::SegmentPos;

/// A segment, and the indexes of adjacent chunks of it.
type Run = (SegmentPos, Range<usize>);

impl<H: SegmentHome> OpenSegments<H> {
    /// Looks a chunk up in its segment.
    pub(super) fn look_up<T>(
        &self,
        at: ChunkAt,
        find: impl FnOnce(&World) -> Result<Lookup<T>, Error>,
    ) -> Result<Lookup<T>, Error> {
        Ok(self.with_stored(self.root().segment_of(at), find)?.unwrap_or(Lookup::NotFound))
    }

    /// Looks many chunks up, those of one segment in one call of `find`.
    pub(super) fn look_up_many<T>(
        &self,
        at: &[ChunkAt],
        find: impl Fn(&World, &[ChunkAt]) -> Vec<Result<Lookup<T>, Error>>,
    ) -> Vec<Result<Lookup<T>, Error>> {
        let mut runs = self.runs(at);
        if let [(segment, _)] = runs[..] {
            return self.find_in(segment, at, &find);
        }
        runs.sort_by_key(|(segment, _)| *segment);
        let mut found: Vec<_> = at.iter().map(|_| Ok(Lookup::NotFound)).collect();
        for runs in runs.chunk_by(|(one, _), (next, _)| one == next) {
            let joined: Vec<_>;
            let (segment, places) = match runs {
                [(segment, run)] => (*segment, &at[run.clone()]),
                [(segment, _), ..] => {
                    joined = runs.iter().flat_map(|(_, run)| &at[run.clone()]).copied().collect();
                    (*segment, &joined[..])
                }
                [] => continue,
            };
            let indexes = runs.iter().flat_map(|(_, run)| run.clone());
            for (index, one) in indexes.zip(self.find_in(segment, places, &find)) {
                found[index] = one;
            }
        }
        found
    }

    /// The runs of adjacent chunks that are in one segment.
    fn runs(&self, at: &[ChunkAt]) -> Vec<Run> {
        let mut runs = Vec::new();
        let mut begin = 0;
        while let Some(first) = at.get(begin) {
            let segment = self.root().segment_of(*first);
            let is_other = |at: &ChunkAt| !segment.has(*at, self.root().side_chunks());
            let end = at[begin..].iter().position(is_other).map_or(at.len(), |len| begin + len);
            runs.push((segment, begin..end));
            begin = end;
        }
        runs
    }

    /// Looks chunks of one segment up. If it cannot be opened, each gets an error of its own.
    fn find_in<T>(
        &self,
        segment: SegmentPos,
        at: &[ChunkAt],
        find: impl Fn(&World, &[ChunkAt]) -> Vec<Result<Lookup<T>, Error>>,
    ) -> Vec<Result<Lookup<T>, Error>> {
        match self.with_stored(segment, |world| Ok(find(world, at))) {
            Ok(Some(found)) => found,
            Ok(None) => at.iter().map(|_| Ok(Lookup::NotFound)).collect(),
            Err(_) => {
                let alone = |at: &ChunkAt| {
                    let found = self.with_stored(segment, |world| Ok(find(world, &[*at]).pop()))?;
                    found.flatten().unwrap_or(Ok(Lookup::NotFound))
                };
                at.iter().map(alone).collect()
            }
        }
    }
}
