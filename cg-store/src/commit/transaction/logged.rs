//! What a commit adds to the log of changes.

use cg_format::Space;
use cg_format::frame::{LEN_BYTES, version_of};

use super::changes::{Changeable, Changed, Changes};
use crate::each_kind;
use crate::engine::RowSlice;
use crate::kinds::kind;
use crate::read::state::{Newest, ReadState};
use crate::storage::change_log::Logged;
use crate::storage::error::Error;

/// The values that a commit changes, as the log names them, with the commits that last changed them: those after the
/// `beginning` of the log. Costs one read of frames for all that are not queued.
pub(super) fn logged(read: &ReadState, changes: &Changes, beginning: u64) -> Result<Vec<Logged>, Error> {
    let mut logged = changes.unlogged();
    let queued = pending_commits(read, changes);
    let rows: Vec<_> = changes.stored_rows();
    let asked = rows.iter().zip(&queued).filter(|(_, queued)| queued.is_none());
    let slices = asked.filter_map(|(row, _)| row.as_ref());
    let slices = slices.map(|(space, key)| RowSlice { space: *space, key, bytes: 0..LEN_BYTES });
    let slices: Vec<_> = slices.collect();
    let engine = read.shared.engine()?;
    let mut frames = if slices.is_empty() { Vec::new() } else { engine.get_slices(&slices) }.into_iter();
    for ((logged, queued), row) in logged.iter_mut().zip(queued).zip(&rows) {
        let stored = || {
            // What is damaged has an unknown commit. Its row in the log stays, out of date.
            let frame = row.as_ref().and_then(|_| frames.next()?.ok()?);
            frame.and_then(|frame| version_of(&frame))
        };
        logged.old = queued.or_else(stored).filter(|commit| *commit > beginning);
    }
    Ok(logged)
}

/// The queued commits that last changed what a commit changes, in the order of [`Changes::unlogged`].
fn pending_commits(read: &ReadState, changes: &Changes) -> Vec<Option<u64>> {
    fn of<K: Changeable>(newest: &Newest<K>, changes: &Changed<K>, out: &mut Vec<Option<u64>>) {
        let logged = changes.iter().filter(|(key, _)| K::logged(key).is_some());
        out.extend(logged.map(|(key, _)| newest.get(key).map(|(commit, _)| *commit)));
    }
    if read.pending.is_empty() {
        return vec![None; changes.unlogged().len()];
    }
    let mut all = Vec::new();
    read.pending.look(&mut |pending| {
        all.clear();
        each_kind!(pending, changes, |newest, changes: K| of::<K>(newest, changes, &mut all));
    });
    all
}

impl Changes {
    /// The values that it changes, as the log of changes names them.
    pub(super) fn unlogged(&self) -> Vec<Logged> {
        let mut all = Vec::new();
        each_kind!(self, |changes: K| {
            let logged = changes.iter().filter_map(|(key, _)| K::logged(key));
            all.extend(logged.map(|(space, key)| Logged { space, key, old: None }));
        });
        all
    }

    /// The rows of those values, in the same order; `None` for a value that has none.
    fn stored_rows(&self) -> Vec<Option<(Space, Vec<u8>)>> {
        let mut all = Vec::new();
        each_kind!(self, |changes: K| {
            let logged = changes.iter().filter(|(key, _)| K::logged(key).is_some());
            all.extend(logged.map(|(key, change)| K::stored_row(key, change)));
        });
        all
    }
}
