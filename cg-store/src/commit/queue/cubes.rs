//! Which 16³ cubes the queued commits change, so that the others can be known to be empty.

use std::collections::hash_map::Entry;

use cg_format::{ChunkAt, ClusterPos, Dimension};
use foldhash::HashMap;

use crate::read::cache::cube;

/// The number of queued changes in each 16³ cube that has any.
#[derive(Debug, Default)]
pub(super) struct QueuedCubes(HashMap<(Dimension, ClusterPos), usize>);

impl QueuedCubes {
    /// Counts the chunks that a commit changes. Costs a look for each run of chunks in one cube.
    pub(super) fn add<T>(&mut self, changed: &[(ChunkAt, T)]) {
        for run in runs(changed) {
            *self.0.entry(cube(run[0].0)).or_default() += run.len();
        }
    }

    /// Takes back the count of a commit.
    pub(super) fn remove<T>(&mut self, changed: &[(ChunkAt, T)]) {
        for run in runs(changed) {
            let Entry::Occupied(mut count) = self.0.entry(cube(run[0].0)) else {
                debug_assert!(false, "it was counted");
                continue;
            };
            *count.get_mut() -= run.len();
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// Whether a commit changes a chunk of a cube.
    pub(super) fn has(&self, dimension: Dimension, cube: ClusterPos) -> bool {
        self.0.contains_key(&(dimension, cube))
    }
}

fn runs<T>(changed: &[(ChunkAt, T)]) -> impl Iterator<Item = &[(ChunkAt, T)]> {
    changed.chunk_by(|(one, _), (next, _)| cube(*one) == cube(*next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::{ChunkPos, ClusterTier};

    #[test]
    fn a_cube_counts_until_the_last_commit_leaves() {
        let at = |x| (ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0)), ());
        let mut cubes = QueuedCubes::default();
        let mut check = |expected: [bool; 3], step: &dyn Fn(&mut QueuedCubes)| {
            step(&mut cubes);
            let cube = |x| ClusterPos::new(ClusterTier::L2, x, 0, 0).expect("in the world");
            assert_eq!([0, 1, 2].map(|x| cubes.has(Dimension::new(0), cube(x))), expected);
            assert!(!cubes.has(Dimension::new(1), cube(0)), "another dimension");
        };
        let (first, second) = ([at(0), at(15), at(16), at(3)], [at(1), at(40)]);
        check([true, true, false], &|cubes| cubes.add(&first));
        check([true, true, true], &|cubes| cubes.add(&second));
        check([true, false, true], &|cubes| cubes.remove(&first));
        check([false, false, false], &|cubes| cubes.remove(&second));
        assert!(cubes.0.is_empty(), "no count stays");
    }
}
