//! The report of a tick.

use std::ops::AddAssign;

use cg_tiering::GameTick;

use crate::maintain::tiering::{DamageReport, MoveCounts};

/// The result of a tick.
///
/// Over a network it is the report of the last job that ended, from the one tick that collects it. That job may have begun
/// at an earlier time. While a job runs, ticks report only the time and that [work is left](Self::work_left).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TickReport {
    /// The world's time: the argument of this tick, or a later time from an earlier tick.
    pub now: GameTick,
    /// Chunks moved between tiers. Promotions and cold clusters are written in the background. The tick that finds them
    /// finished counts them.
    pub moves: MoveCounts,
    /// Opacity tiles into which patches were folded.
    pub tiles_folded: usize,
    /// Chunks whose deltas were folded into their rows.
    pub deltas_folded: usize,
    /// Whether known work was left when the budget ended. Over a network also while a job runs. Work that waits for
    /// [disk space](Self::skipped_low_disk) is not included.
    pub work_left: bool,
    /// Whether less disk space is free than [`WorldOptions::min_free_bytes`](crate::WorldOptions::min_free_bytes)
    /// requires. Then nothing is moved, folded or rewritten, and all of that work waits. Purging of old tombstones
    /// continues.
    pub skipped_low_disk: bool,
    /// Damage that blocks maintenance of something, and that no tick has reported before. A load of it returns an
    /// error; [`Quarantine::chunk`](crate::quarantine::Quarantine::chunk) or a checkpoint helps.
    pub damaged: Vec<DamageReport>,
    /// Whether the tick did nothing because a staged commit was being written.
    pub skipped_large_commit: bool,
}

impl TickReport {
    /// The report of a tick that has done nothing.
    pub(crate) fn at(now: GameTick) -> Self {
        Self {
            now,
            moves: MoveCounts::default(),
            tiles_folded: 0,
            deltas_folded: 0,
            work_left: true,
            skipped_low_disk: false,
            skipped_large_commit: false,
            damaged: Vec::new(),
        }
    }
}

impl AddAssign for TickReport {
    /// Adds what a tick of another part of a world did. The time of both is that of the first.
    fn add_assign(&mut self, other: Self) {
        let Self {
            now: _,
            moves,
            tiles_folded,
            deltas_folded,
            work_left,
            skipped_low_disk,
            damaged,
            skipped_large_commit,
        } = other;
        self.moves += moves;
        self.tiles_folded += tiles_folded;
        self.deltas_folded += deltas_folded;
        self.work_left |= work_left;
        self.skipped_low_disk |= skipped_low_disk;
        self.damaged.extend(damaged);
        self.skipped_large_commit |= skipped_large_commit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Place;

    #[test]
    fn the_sum_of_two_reports_has_what_both_did() {
        let moves = |each| MoveCounts {
            promoted: each,
            warmed: 2 * each,
            cooled: 3 * each,
            shadows_dropped: 4 * each,
            tombstones_purged: 5 * each,
            bytes_read: 6 * each,
            bytes_written: 7 * each,
            conflicts: 8 * each,
            refused: 9 * each,
        };
        let damage = |message: &str| DamageReport {
            place: Place::Family(cg_format::key::Family::ChunkL0),
            message: message.into(),
        };
        let report = |now, each: usize, is_said, message| TickReport {
            now: GameTick::new(now),
            moves: moves(each as u64),
            tiles_folded: each,
            deltas_folded: 10 * each,
            work_left: is_said,
            skipped_low_disk: is_said,
            damaged: vec![damage(message)],
            skipped_large_commit: is_said,
        };
        let mut sum = report(5, 1, false, "one");
        sum += report(9, 2, true, "other");
        let mut expected = report(5, 3, true, "one");
        expected.damaged.push(damage("other"));
        assert_eq!(sum, expected);
        sum += report(1, 0, false, "third");
        assert!(sum.work_left && sum.skipped_low_disk && sum.skipped_large_commit);
    }
}
