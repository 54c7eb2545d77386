//! Commits of lists of writes.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};

use cg_format::EntityId;
use cg_store::prelude::CommitSeq;
use cg_store::{Durability, ErrorKind, StoreLimits, Transaction};

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

/// Why lists were not committed, and which of them is at fault, if that is known.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) list: Option<usize>,
    pub(super) error: Error,
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

    /// Commits lists of writes in one transaction, and again after a conflict.
    ///
    /// Entities of `spared` columns stay where they are: their lists were refused, so a column that lost one to them keeps it.
    pub(super) fn run(
        &self,
        lists: &[&Writes],
        spared: &BTreeSet<EntityId>,
        durability: Option<Durability>,
    ) -> Result<Done, Refusal> {
        /// As often as `World::transact` runs a transaction.
        const TRIES: usize = 100;
        let mut tries = 0;
        loop {
            tries += 1;
            let list = Cell::new(None);
            let write = |tx: &mut Transaction<'_>| self.write(tx, lists, spared, &list);
            let committed = match durability {
                // It waits for room, and longer after each conflict.
                None => self.world.transact(write),
                Some(durability) => self.world.transaction_at(durability, write),
            };
            match committed {
                Err(Error::Store { source, .. })
                    if durability.is_some() && source.kind() == ErrorKind::Conflict && tries < TRIES => {}
                Err(Error::Store { source, .. })
                    if durability.is_some() && source.kind() == ErrorKind::Busy && tries < TRIES =>
                {
                    self.world
                        .wait_for_room()
                        .map_err(|error| Refusal { list: None, error: error.into() })?;
                }
                Err(error) => return Err(Refusal { list: list.get(), error }),
                Ok(committed) => return Ok(Done { seq: committed.seq, changed: committed.value }),
            }
        }
    }

    /// Writes lists into a transaction. Returns whether anything changes. `failed` is the list that an error is of.
    fn write(
        &self,
        tx: &mut Transaction<'_>,
        lists: &[&Writes],
        spared: &BTreeSet<EntityId>,
        failed: &Cell<Option<usize>>,
    ) -> Result<bool, Error> {
        let mut changed = false;
        let limits = self.world.limits();
        for (number, list) in lists.iter().enumerate() {
            failed.set(Some(number));
            self.expect(tx, list)?;
            for write in &list.all {
                if let Write::Column(saved) = write {
                    changed |= saved.as_save(limits).put(tx)?;
                } else {
                    write.run(tx)?;
                    changed = true;
                }
            }
        }
        failed.set(None);
        for (saved, gone) in gone(lists, spared) {
            changed |= saved.as_save(limits).delete_gone(tx, gone)?;
        }
        Ok(changed)
    }

    fn expect(&self, tx: &mut Transaction<'_>, list: &Writes) -> Result<(), Error> {
        for (at, expected) in &list.chunks {
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
        for (id, expected) in &list.entities {
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

/// The columns of lists, in their last form, and the entities that each may have lost.
///
/// An entity that went from one column to another was put there before it is missed. If a column is saved twice, the later
/// one says what is gone. An entity that was put alone after its column stays as it was put.
fn gone<'l>(lists: &[&'l Writes], spared: &BTreeSet<EntityId>) -> Vec<(&'l SavedColumn, BTreeSet<EntityId>)> {
    let mut columns: HashMap<ColumnAt, (usize, &SavedColumn, BTreeSet<EntityId>)> = HashMap::new();
    let mut puts: HashMap<EntityId, usize> = HashMap::new();
    for (number, write) in lists.iter().flat_map(|list| &list.all).enumerate() {
        match write {
            Write::Column(saved) => {
                let known =
                    columns.entry(saved.column.at).or_insert_with(|| (number, saved, BTreeSet::new()));
                (known.0, known.1) = (number, saved);
                known.2.extend(&saved.shown.entities);
                known.2.extend(saved.column.entities.iter().map(|entity| entity.id));
            }
            Write::Entity(id, _) => drop(puts.insert(*id, number)),
            _ => {}
        }
    }
    let gone = |(number, saved, mut shown): (usize, &'l SavedColumn, BTreeSet<EntityId>)| {
        let is_later = |id: &EntityId| puts.get(id).is_some_and(|put| *put > number);
        shown.retain(|id| !spared.contains(id) && !is_later(id));
        (saved, shown)
    };
    columns.into_values().map(gone).collect()
}

impl SavedColumn {
    fn as_save(&self, limits: StoreLimits) -> Save<'_> {
        let Self { binding, column, is_part, shown, .. } = self;
        let (shown, damaged) = (&shown.entities, &shown.damaged);
        Save { binding, column, is_part: *is_part, shown, damaged, limits }
    }
}
