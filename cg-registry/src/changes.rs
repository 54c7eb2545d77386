//! The entries that were added to a catalog after a mark.

use crate::block::BlockRow;
use crate::catalog::Catalog;
use crate::codec::{self, Row};
use crate::component::ComponentRow;
use crate::kind::ListKind;
use crate::pack::{PackRow, RenameRow};
use crate::types::TypeRow;
use crate::{Name, RegistryError};

/// The length of each row of a catalog at one moment. A catalog only grows, so the lengths identify its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark([u64; Row::ALL.len()]);

/// Entries added to a catalog. A store writes them as tail rows in the batch that makes them valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    first: Mark,
    names: [Vec<Name>; 6],
    component_rows: Vec<ComponentRow>,
    block_rows: Vec<BlockRow>,
    renames: Vec<RenameRow>,
    packs: Vec<PackRow>,
    types: Vec<TypeRow>,
}

impl Changes {
    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.names.iter().all(Vec::is_empty)
            && self.component_rows.is_empty()
            && self.block_rows.is_empty()
            && self.renames.is_empty()
            && self.packs.is_empty()
            && self.types.is_empty()
    }

    /// The first new id of a list, and the new names.
    pub fn names(&self, list: ListKind) -> (u64, &[Name]) {
        (self.first.of(list.into()), &self.names[list.place()])
    }

    /// The records about blocks: first ones and changes.
    pub fn block_rows(&self) -> &[BlockRow] {
        &self.block_rows
    }

    /// The records about components: first ones, replacements, new defaults.
    pub fn component_rows(&self) -> &[ComponentRow] {
        &self.component_rows
    }

    /// The new aliases.
    pub fn renames(&self) -> &[RenameRow] {
        &self.renames
    }

    /// The new records about packs.
    pub fn packs(&self) -> &[PackRow] {
        &self.packs
    }

    /// The new records about types of components.
    pub fn types(&self) -> &[TypeRow] {
        &self.types
    }

    /// The tail rows as (property name, bytes): only the new entries, one row for each list that grew.
    ///
    /// With these rows added to the stored ones, [`Catalog::decode`] returns the grown catalog. A store replaces them
    /// with [`Catalog::encode_full`] when it opens and closes a world.
    pub fn encode_tail(&self) -> Vec<(String, Vec<u8>)> {
        let mut out = Vec::new();
        for row in Row::ALL {
            let bytes = match row {
                Row::List(list) => encode_some(&self.names[list.place()], codec::encode_names),
                Row::ComponentSchemas => {
                    encode_some(&self.component_rows, |rows| codec::encode_records(rows))
                }
                Row::BlockSchemas => encode_some(&self.block_rows, |rows| codec::encode_records(rows)),
                Row::Renames => encode_some(&self.renames, |rows| codec::encode_records(rows)),
                Row::PackRecords => encode_some(&self.packs, |rows| codec::encode_records(rows)),
                Row::ComponentTypes => encode_some(&self.types, |rows| codec::encode_records(rows)),
            };
            out.extend(bytes.map(|bytes| (row.tail_name(self.first.of(row)), bytes)));
        }
        out
    }
}

fn encode_some<T>(entries: &[T], encode: impl FnOnce(&[T]) -> Vec<u8>) -> Option<Vec<u8>> {
    (!entries.is_empty()).then(|| encode(entries))
}

impl Mark {
    pub(crate) const fn of(&self, row: Row) -> u64 {
        self.0[row.place()]
    }
}

impl Catalog {
    /// The present lengths of all rows.
    pub(crate) fn mark(&self) -> Mark {
        Mark(Row::ALL.map(|row| self.row_len(row)))
    }

    /// The number of entries of a row.
    pub(crate) fn row_len(&self, row: Row) -> u64 {
        let len = match row {
            Row::List(list) => self.list(list).len(),
            Row::ComponentSchemas => self.component_rows.len(),
            Row::BlockSchemas => self.block_rows.len(),
            Row::Renames => self.renames.len(),
            Row::PackRecords => self.packs.len(),
            Row::ComponentTypes => self.type_rows.len(),
        };
        len as u64
    }

    /// The entries that were added after a mark of this catalog.
    pub(crate) fn since(&self, first: Mark) -> Changes {
        let skip = |row| first.of(row) as usize;
        Changes {
            first,
            names: ListKind::ALL.map(|list| {
                self.list(list).names().get(skip(Row::List(list))..).unwrap_or_default().to_vec()
            }),
            component_rows: self.component_rows.iter().skip(skip(Row::ComponentSchemas)).cloned().collect(),
            block_rows: self.block_rows.iter().skip(skip(Row::BlockSchemas)).cloned().collect(),
            renames: self.renames.iter().skip(skip(Row::Renames)).cloned().collect(),
            packs: self.packs.iter().skip(skip(Row::PackRecords)).cloned().collect(),
            types: self.type_rows.iter().skip(skip(Row::ComponentTypes)).cloned().collect(),
        }
    }

    /// Adds changes that another copy of this catalog already contains.
    ///
    /// Copies the catalog, so that an error leaves it unchanged.
    ///
    /// # Errors
    /// [`RegistryError::Stale`] if the changes were made for another state.
    pub fn apply(&mut self, changes: &Changes) -> Result<(), RegistryError> {
        for row in Row::ALL {
            let (expected, found) = (changes.first.of(row), self.row_len(row));
            if expected != found {
                return Err(RegistryError::Stale { row: row.name(), expected, found });
            }
        }
        let mut grown = self.clone();
        for (list, names) in ListKind::ALL.into_iter().zip(&changes.names) {
            names.iter().try_for_each(|name| grown.add_name(list, name.clone()).map(drop))?;
        }
        changes.component_rows.iter().try_for_each(|row| grown.add_component_row(row.clone()))?;
        changes.block_rows.iter().try_for_each(|row| grown.add_block_row(row.clone()))?;
        changes.renames.iter().try_for_each(|row| grown.add_rename(row.clone()))?;
        changes.packs.iter().for_each(|row| grown.add_pack(row.clone()));
        changes.types.iter().try_for_each(|row| grown.add_type_row(row.clone()))?;
        *self = grown;
        Ok(())
    }
}
