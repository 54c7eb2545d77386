//! Commits of lists of writes.

use cg_store::prelude::CommitSeq;
use cg_store::{Durability, ErrorKind, Transaction};
use std::collections::HashMap;

use super::state::Inner;
use super::writes::{SavedColumn, Write, Writes};
use crate::codec::Save;
use crate::error::Error;

/// What a commit of writes did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) seq: CommitSeq,
    /// Whether a column differed from what was stored, or anything else was written.
    pub(super) changed: bool,
}

impl Inner {
    /// Refuses what the world would refuse for its size, as far as that is known without encoding it.
    pub(super) fn check_sizes(&self, writes: &Writes) -> Result<(), Error> {
        let limits = self.world.limits();
        for write in &writes.all {
            let Write::Column(saved) = write else { continue };
            let column = &saved.column;
            let mut sections = HashMap::<i64, u64>::new();
            for one in &column.block_entities {
                *sections.entry(one.at.chunk().y()).or_default() += one.nbt.len() as u64;
            }
            for (y, len_bytes) in sections {
                if len_bytes > limits.chunk_bytes {
                    let at = i32::try_from(y).ok().and_then(|y| column.at.chunk(y).ok());
                    let what = format!("the block entities of section {y} of {}", column.at);
                    return Err(Error::TooLarge { at, what, len_bytes, max_bytes: limits.chunk_bytes });
                }
            }
            for entity in &column.entities {
                let len_bytes = entity.nbt.len() as u64;
                if len_bytes > limits.entity_bytes {
                    let at = column.at.chunk(column.at.min_y).ok();
                    let what = format!("entity {} in {}", entity.id.get(), column.at);
                    return Err(Error::TooLarge { at, what, len_bytes, max_bytes: limits.entity_bytes });
                }
            }
        }
        Ok(())
    }

    /// As [`run`](Self::run), at a durability of its own.
    pub(super) fn run_at(&self, lists: &[Writes], durability: Durability) -> Result<Done, Error> {
        /// As often as `World::transact` runs a transaction.
        const TRIES: usize = 100;
        for _ in 1..TRIES {
            match self.world.transaction_at(durability, |tx| self.write(tx, lists)) {
                Err(Error::Store { source, .. }) if source.kind() == ErrorKind::Conflict => {}
                Err(Error::Store { source, .. }) if source.kind() == ErrorKind::Busy => {
                    self.world.wait_for_room()?;
                }
                done => return done.map(|done| Done { seq: done.seq, changed: done.value }),
            }
        }
        let done = self.world.transaction_at(durability, |tx| self.write(tx, lists))?;
        Ok(Done { seq: done.seq, changed: done.value })
    }

    /// Commits lists of writes in one transaction.
    pub(super) fn run(&self, lists: &[Writes]) -> Result<Done, Error> {
        let committed = self.world.transact(|tx| self.write(tx, lists))?;
        Ok(Done { seq: committed.seq, changed: committed.value })
    }

    /// Writes lists into a transaction. Returns whether anything changes.
    pub(super) fn write(&self, tx: &mut Transaction<'_>, lists: &[Writes]) -> Result<bool, Error> {
        self.expect(tx, lists)?;
        let mut changed = false;
        let max_bytes = self.world.limits().chunk_bytes;
        for write in lists.iter().flat_map(|list| &list.all) {
            if let Write::Column(saved) = write {
                changed |= saved.as_save(max_bytes).put(tx)?;
            } else {
                write.run(tx)?;
                changed = true;
            }
        }
        // An entity that went from one column to another was put there before it is missed here.
        for write in lists.iter().flat_map(|list| &list.all) {
            if let Write::Column(saved) = write {
                changed |= saved.as_save(max_bytes).delete_gone(tx)?;
            }
        }
        Ok(changed)
    }

    fn expect(&self, tx: &mut Transaction<'_>, lists: &[Writes]) -> Result<(), Error> {
        for (at, expected) in lists.iter().flat_map(|list| &list.chunks) {
            // The load guards the chunk until the commit.
            tx.load(*at).map_err(|error| Error::of_chunk(*at, error))?;
            let found = self.world.load_versioned(*at).map_err(|error| Error::of_chunk(*at, error))?;
            let found = found.map_or(0, |(_, version)| version.get());
            if found != *expected {
                return Err(Error::Expected {
                    at: Some(*at),
                    what: at.to_string(),
                    expected: *expected,
                    found,
                });
            }
        }
        for (id, expected) in lists.iter().flat_map(|list| &list.entities) {
            tx.entity(*id)?;
            let found = self.world.entity_version(*id)?.map_or(0, CommitSeq::get);
            if found != *expected {
                let what = format!("entity {}", id.get());
                return Err(Error::Expected { at: None, what, expected: *expected, found });
            }
        }
        Ok(())
    }
}

impl SavedColumn {
    fn as_save(&self, max_bytes: u64) -> Save<'_> {
        let Self { binding, column, is_part, shown, damaged } = self;
        Save { binding, column, is_part: *is_part, shown, damaged, max_bytes }
    }
}
