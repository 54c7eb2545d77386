//! Moves of several cubes in one batch: over a network a commit costs more than a row.
//!
//! **Invariant**: a move whose guarded row was changed keeps no other one back. It ends as a conflict, and the others are
//! committed without it.

use super::{MoveWrites, Outcome};
use crate::engine::Engine;
use crate::rt::stats::Counters;
use crate::storage::error::Error;

/// A batch has at most this many bytes, unless one move has more.
const BYTES_TOGETHER: u64 = 4 << 20;
/// A batch compares at most this many rows, unless one move has more. A save waits meanwhile.
const GUARDS_TOGETHER: usize = 1 << 12;

/// Commits moves of different cubes in as few batches as their bytes allow. Returns the outcomes in their order.
///
/// # Errors
/// Those of the engine. Earlier batches were committed then.
pub(crate) fn commit_together(
    engine: &dyn Engine,
    counters: &Counters,
    moves: Vec<MoveWrites>,
) -> Result<Vec<Outcome>, Error> {
    let mut outcomes: Vec<Outcome> = moves.iter().map(|_| Outcome::Nothing).collect();
    let mut waiting: Vec<_> =
        moves.into_iter().enumerate().filter(|(_, writes)| !writes.batch.is_empty()).collect();
    while !waiting.is_empty() {
        let later = waiting.split_off(fitting(&waiting));
        let mut all = MoveWrites::default();
        for (_, writes) in &waiting {
            all.append(writes.clone());
        }
        let mut again = Vec::new();
        match all.try_commit(engine, counters)? {
            Ok(_) => {
                for (index, writes) in waiting {
                    let bytes_written = writes.batch.len_bytes();
                    outcomes[index] = Outcome::Done(super::Moved { bytes_written, ..writes.moved });
                }
            }
            Err(row) => {
                let guards_it = |(_, writes): &(usize, MoveWrites)| writes.has_guard(&row);
                let is_known = waiting.iter().any(guards_it);
                let (changed, rest): (Vec<_>, Vec<_>) =
                    waiting.into_iter().partition(|writes| !is_known || guards_it(writes));
                for (index, _) in changed {
                    outcomes[index] = Outcome::Conflict;
                }
                again = rest;
            }
        }
        again.extend(later);
        waiting = again;
    }
    Ok(outcomes)
}

/// The number of the first moves that fit into one batch, at least one.
fn fitting(moves: &[(usize, MoveWrites)]) -> usize {
    let (mut bytes, mut guards) = (0, 0);
    let fits = |(_, writes): &&(usize, MoveWrites)| {
        bytes += writes.batch.len_bytes();
        guards += writes.guards.len();
        bytes <= BYTES_TOGETHER && guards <= GUARDS_TOGETHER
    };
    moves.iter().take_while(fits).count().max(1)
}
