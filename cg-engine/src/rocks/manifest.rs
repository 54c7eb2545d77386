//! The files that a manifest names, read from its records without opening anything.
//!
//! A record is an edit: a sequence of tagged fields. Tags from 2¹³ on that this module does not know have a length.
//! Every other unknown tag ends the reading, and then nothing is concluded from what was read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::log_parts::{self, Next};

/// Unknown tags that have this bit are followed by a length.
const IGNORABLE: u64 = 1 << 13;

/// The content of a manifest, as far as it says which files the database uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Named {
    /// No file that the manifest knows of has this number or a higher one.
    pub(super) next_file: u64,
    tables: BTreeSet<u64>,
    blobs: BTreeSet<u64>,
    /// Logs that were closed after all of them was synced.
    logs: BTreeSet<u64>,
    /// For each family by number, the oldest log that may hold rows of it which are in no table.
    oldest_logs: BTreeMap<u64, u64>,
    /// No log before this one is needed.
    oldest_log: u64,
    /// The last sequence number when an opening said so of a family: the rows up to it are in tables.
    sequence_in_tables: u64,
}

impl Named {
    /// Reads the first bytes of a manifest, to the first incomplete record. `None` if a record has a field that this module
    /// does not know. The scan of the logs checks the checksums.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub(super) fn read(path: &Path, len_bytes: u64) -> io::Result<Option<Self>> {
        let mut named = Self::default();
        let mut is_known = true;
        // Edits of a group apply together or not at all.
        let mut group = Vec::new();
        let mut record = Vec::new();
        log_parts::for_each_part(&mut File::open(path)?.take(len_bytes), |part| {
            if matches!(part.kind, 1 | 2) {
                record.clear();
            }
            record.extend_from_slice(part.data);
            if matches!(part.kind, 1 | 4) {
                let Some(edit) = Edit::decode(&record) else {
                    is_known = false;
                    return Next::End;
                };
                let is_last = edit.left_in_group == 0;
                group.push(edit);
                if is_last {
                    group.drain(..).for_each(|edit| named.apply(edit));
                }
            }
            Next::Part
        })?;
        Ok(is_known.then_some(named))
    }

    fn apply(&mut self, edit: Edit) {
        self.next_file = self.next_file.max(edit.next_file);
        self.oldest_log = self.oldest_log.max(edit.oldest_log);
        if edit.log == self.oldest_log {
            self.sequence_in_tables = self.sequence_in_tables.max(edit.last_sequence);
        }
        for table in edit.deleted {
            self.tables.remove(&table);
        }
        self.tables.extend(edit.tables);
        self.blobs.extend(edit.blobs);
        self.logs.extend(edit.logs);
        if edit.is_drop {
            self.oldest_logs.remove(&edit.family);
        } else {
            let oldest = self.oldest_logs.entry(edit.family).or_default();
            *oldest = (*oldest).max(edit.log);
        }
    }

    /// Whether RocksDB has no use for a log, because everything in it is in tables.
    pub(super) fn is_obsolete_log(&self, number: u64) -> bool {
        number < self.oldest_log || self.oldest_logs.values().min().is_some_and(|oldest| number < *oldest)
    }

    /// Whether a log that begins with this sequence number follows what was in tables when an opening had read all logs. The next
    /// log then has a number above that from which on logs are needed.
    pub(super) fn begins_after_opening(&self, number: u64, sequence: u64) -> bool {
        number >= self.oldest_log && sequence <= self.sequence_in_tables + 1
    }

    /// Whether a log was closed and named.
    pub(super) fn names_log(&self, number: u64) -> bool {
        self.logs.contains(&number)
    }

    /// Whether a table of the database has this number.
    pub(super) fn names_table(&self, number: u64) -> bool {
        self.tables.contains(&number)
    }

    /// Whether a blob file of the database has, or had, this number.
    pub(super) fn names_blob(&self, number: u64) -> bool {
        self.blobs.contains(&number)
    }
}

/// One record.
#[derive(Debug, Default)]
struct Edit {
    family: u64,
    is_drop: bool,
    next_file: u64,
    log: u64,
    oldest_log: u64,
    last_sequence: u64,
    left_in_group: u64,
    deleted: Vec<u64>,
    tables: Vec<u64>,
    blobs: Vec<u64>,
    logs: Vec<u64>,
}

impl Edit {
    fn decode(record: &[u8]) -> Option<Self> {
        let mut edit = Self::default();
        let mut fields = Fields(record);
        while !fields.0.is_empty() {
            match fields.number()? {
                2 => edit.log = fields.number()?,
                3 => edit.next_file = fields.number()?,
                10 => edit.oldest_log = fields.number()?,
                4 => edit.last_sequence = fields.number()?,
                // Previous log, highest family.
                9 | 203 => drop(fields.number()?),
                5 => {
                    fields.number()?;
                    fields.bytes()?;
                }
                6 => {
                    fields.number()?;
                    edit.deleted.push(fields.number()?);
                }
                103 => edit.tables.push(fields.table()?),
                200 => edit.family = fields.number()?,
                202 => edit.is_drop = true,
                300 => edit.left_in_group = fields.number()?,
                // Also under the tags that older releases wrote.
                400 | 8194 => {
                    edit.blobs.push(fields.number()?);
                    fields.number()?;
                    fields.number()?;
                    fields.bytes()?;
                    fields.bytes()?;
                    fields.custom(0)?;
                }
                401 | 8195 => {
                    fields.number()?;
                    fields.number()?;
                    fields.number()?;
                    fields.custom(0)?;
                }
                8199 => {
                    let mut log = Fields(fields.bytes()?);
                    edit.logs.push(log.number()?);
                }
                // The same without a length.
                8196 | 8197 => return None,
                tag if tag == 1 || tag == 201 || tag & IGNORABLE != 0 => drop(fields.bytes()?),
                _ => return None,
            }
        }
        Some(edit)
    }
}

/// The rest of a record.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// Seven bits a byte, the lowest first.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Fields of tag and bytes, up to the tag that ends them.
    fn custom(&mut self, end: u64) -> Option<()> {
        while self.number()? != end {
            self.bytes()?;
        }
        Some(())
    }

    /// A table: level, number, size, first and last key, lowest and highest sequence, and further fields.
    fn table(&mut self) -> Option<u64> {
        self.number()?;
        let number = self.number()?;
        self.number()?;
        self.bytes()?;
        self.bytes()?;
        self.number()?;
        self.number()?;
        self.custom(1)?;
        Some(number)
    }
}
