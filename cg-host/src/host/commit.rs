//! Commits of lists of writes.

use std::collections::{BTreeSet, HashMap};

use cg_format::EntityId;
use cg_store::prelude::CommitSeq;
use cg_store::{Durability, ErrorKind, Transaction};

use super::state::Inner;
use super::writes::{SavedColumn, Write, Writes};
use crate::codec::Save;
use crate::error::Error;
use crate::place::ColumnAt;

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
        let check = |at, len_bytes: usize, max_bytes, what: &dyn Fn() -> String| match len_bytes as u64 {
            len_bytes if len_bytes > max_bytes => {
                Err(Error::TooLarge { at, what: what(), len_bytes, max_bytes })
            }
            _ => Ok(()),
        };
        for write in &writes.all {
            match write {
                Write::Column(saved) => {
                    let column = &saved.column;
                    let mut sections = HashMap::<i64, usize>::new();
                    for one in &column.block_entities {
                        *sections.entry(one.at.chunk().y()).or_default() += one.nbt.len();
                    }
                    for (y, len_bytes) in sections {
                        let at = i32::try_from(y).ok().and_then(|y| column.at.chunk(y).ok());
                        let what = || format!("the block entities of section {y} of {}", column.at);
                        check(at, len_bytes, limits.chunk_bytes, &what)?;
                    }
                    for entity in &column.entities {
                        let at = column.at.chunk(column.at.min_y).ok();
                        let what = || format!("entity {} in {}", entity.id.get(), column.at);
                        check(at, entity.nbt.len(), limits.entity_bytes, &what)?;
                    }
                }
                Write::Entity(id, entity) => {
                    let len_bytes = entity.components().map(|(_, bytes)| bytes.len()).sum();
                    check(None, len_bytes, limits.entity_bytes, &|| format!("entity {}", id.get()))?;
                }
                Write::Property(property, Some(bytes)) => {
                    check(None, bytes.len(), limits.property_bytes, &|| format!("property `{property}`"))?;
                }
                Write::Object(_, Some(bytes)) => {
                    check(None, bytes.len(), limits.object_bytes, &|| "an object".to_owned())?;
                }
                Write::Record(id, Some(record)) => {
                    let what = || format!("record {}", id.get());
                    check(None, record.payload.len(), limits.record_bytes, &what)?;
                }
                _ => {}
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
        // An entity that went from one column to another was put there before it is missed here. If a column is saved
        // twice, the later one says what is gone.
        let mut columns: HashMap<ColumnAt, (&SavedColumn, BTreeSet<EntityId>)> = HashMap::new();
        for write in lists.iter().flat_map(|list| &list.all) {
            if let Write::Column(saved) = write {
                let known = columns.entry(saved.column.at).or_insert_with(|| (saved, BTreeSet::new()));
                known.0 = saved;
                known.1.extend(&saved.shown.entities);
                known.1.extend(saved.column.entities.iter().map(|entity| entity.id));
            }
        }
        for (saved, shown) in columns.into_values() {
            let shown: Vec<EntityId> = shown.into_iter().collect();
            changed |= saved.as_save(max_bytes).delete_gone(tx, &shown)?;
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
        let Self { binding, column, is_part, shown } = self;
        let (shown, damaged) = (&shown.entities, &shown.damaged);
        Save { binding, column, is_part: *is_part, shown, damaged, max_bytes }
    }
}
