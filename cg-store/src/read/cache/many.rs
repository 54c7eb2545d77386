//! Caching of several chunks together: the chunks of a load, and absence by cubes.

use cg_format::{ChunkAt, ClusterPos, Dimension, Lookup};

use super::epoch::Epoch;
use super::{Absence, ChunkCache, Stored, Ticket, column_slot, cube_slot, miss};

/// The maximum number of chunks that are cached under one lock.
const LONGEST_RUN: usize = 64;

/// The state of a 16³ cube before the queue and the engine were asked about it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CubeTicket(Epoch);

impl CubeTicket {
    /// Whether no commit into the cube was in progress.
    pub(crate) const fn is_calm(self) -> bool {
        self.0.is_calm()
    }
}

impl ChunkCache {
    /// Caches the results of a load of many chunks, as [`fill`](Self::fill), with one lock for each run of chunks in one
    /// column. Replaces the results that the load must not return. Chunks in cubes that are known to be empty get no entry.
    pub(crate) fn fill_all<E>(
        &self,
        at: &[ChunkAt],
        tickets: &[Ticket],
        found: &mut [Result<Lookup<Stored>, E>],
    ) {
        let mut places = at.iter().copied().zip(tickets.iter().map(|ticket| ticket.0)).zip(found).peekable();
        while let Some(((first, since), first_found)) = places.next() {
            let slot = column_slot(first);
            let is_in_run = |at: ChunkAt, then| then == since && column_slot(at) == slot;
            let mut run = vec![(first, first_found)];
            while let Some(((at, _), found)) =
                places.next_if(|((at, then), _)| run.len() < LONGEST_RUN && is_in_run(*at, *then))
            {
                run.push((at, found));
            }
            let keep = || {
                for (at, found) in &run {
                    match found {
                        Ok(Lookup::NotFound) if self.absent.has(*at) => {}
                        Ok(found) => self.insert(*at, found.clone()),
                        Err(_) => {}
                    }
                }
            };
            if !self.epochs.keep_if_unchanged(slot, since, keep) {
                for (at, found) in run {
                    if let (Ok(found), Some(entry)) = (found, self.entries.get(&at)) {
                        *found = entry.found;
                    }
                }
            }
        }
    }

    /// A ticket with which the absence in a 16³ cube may be cached.
    pub(crate) fn cube_ticket(&self, dimension: Dimension, cube: ClusterPos) -> CubeTicket {
        CubeTicket(self.epochs.now(cube_slot((dimension, cube))))
    }

    /// The 16³ cubes after the one of a chunk, in the order of their keys and within the same 64³ cube. None if the memory
    /// for cubes is too small.
    pub(crate) fn cubes_after(&self, at: ChunkAt) -> Vec<ClusterPos> {
        if self.absent.has_room_for_regions() { miss::cubes_after(at).collect() } else { Vec::new() }
    }

    /// Records that a chunk is absent. Returns whether its cubes should be looked up now.
    pub(crate) fn is_cube_to_be_asked(&self, at: ChunkAt) -> bool {
        self.max_bytes() > 0 && self.absent.is_to_be_asked(at)
    }

    /// Caches the absence in the cubes of a chunk, unless a commit into the 16³ cube has begun since the ticket was
    /// taken. Returns whether the chunk is now known to be absent.
    pub(crate) fn learn_absence(&self, at: ChunkAt, ticket: CubeTicket, absence: Absence) -> bool {
        let learn = || self.absent.learn(at, absence);
        self.epochs.keep_if_unchanged(cube_slot(miss::cube(at)), ticket.0, learn)
            && matches!(absence, Absence::WholeCube | Absence::Group)
    }
}
