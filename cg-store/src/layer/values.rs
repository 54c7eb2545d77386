//! Values other than chunks, all kinds alike, with the commits that last changed them: what a cache is told of a world.
//!
//! A world that keeps a log of changes finds what changed since a commit by one scan of the log from there. Any world lists
//! its values in the order of their keys, each with its commit.

use std::ops::{Bound, ControlFlow};

use cg_format::frame::FrameView;
use cg_format::key::{self, Family};
use cg_format::{RecordId, Space};

use crate::api::read_view::ReadView;
use crate::api::world::World;
use crate::engine::{CommitSeq, Met, Readable, ReadableExt as _, scan_skipping_damage};
use crate::kinds::object::behind_all;
use crate::read::values::read_records;
use crate::rt::stats::Counters;
use crate::storage::change_log::BEGINNING;
use crate::storage::error::{Damage, Error};

/// A kind of values other than chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueKind {
    /// Properties of mods. A key is a name.
    Properties,
    /// Entities. A key is a UUID.
    Entities,
    /// Versioned objects, also deleted ones. A key is the host's.
    Objects,
    /// Spatial records. A key is a UUID.
    Records,
}

/// A value: the commit that last wrote it, and its stored form.
pub type StoredValue = (CommitSeq, Vec<u8>);

impl ValueKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Properties, Self::Entities, Self::Objects, Self::Records];

    /// The space whose keys name the values.
    const fn space(self) -> Space {
        match self {
            Self::Properties => Space::WorldProperty,
            Self::Entities => Space::Entity,
            Self::Objects => Space::Object,
            Self::Records => Space::RecordPlace,
        }
    }

    /// The key of a row that names a value.
    fn row_key(self, key: &[u8]) -> Vec<u8> {
        match self {
            Self::Records => [&RECORD_PLACES[..], key].concat(),
            Self::Properties | Self::Entities | Self::Objects => key.to_vec(),
        }
    }

    /// The inverse of [`row_key`](Self::row_key).
    fn key_of(self, row_key: &[u8]) -> &[u8] {
        match self {
            Self::Records => row_key.strip_prefix(&RECORD_PLACES).unwrap_or(row_key),
            Self::Properties | Self::Entities | Self::Objects => row_key,
        }
    }
}

/// The first byte of the keys of [`Space::RecordPlace`].
const RECORD_PLACES: [u8; 1] = [2];

/// Has a world log from now on which values change: one more row for each change, and the read of a frame before.
///
/// # Errors
/// If the engine fails, and if the world is only read.
pub fn keep_change_log(world: &World) -> Result<(), Error> {
    world.applied()?.commit.keep_change_log()
}

/// Ends the log of a world, and deletes it.
///
/// # Errors
/// As [`keep_change_log`].
pub fn drop_change_log(world: &World) -> Result<(), Error> {
    world.applied()?.commit.drop_change_log()
}

/// The commit after which the log of a view has all changes; `None` if there is no log. A damaged row counts as none.
///
/// # Errors
/// If the engine fails.
pub fn change_log_beginning(view: &ReadView<'_>) -> Result<Option<CommitSeq>, Error> {
    match BEGINNING.get(view.rows()) {
        Ok(beginning) => Ok(beginning.map(CommitSeq::new)),
        Err(Error::Corrupt(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Visits the changes in the log of a view after a point, which is a commit and, within it, a key. Ascending by commit, then
/// by key. A value that changed again since has a later row, and [`values`] has its newest commit.
///
/// # Errors
/// If the engine fails; [`Error::Corrupt`] for a row that cannot be read.
pub fn changed_values<B>(
    view: &ReadView<'_>,
    kind: ValueKind,
    (commit, behind): (CommitSeq, Option<&[u8]>),
    mut visit: impl FnMut(CommitSeq, &[u8]) -> ControlFlow<B>,
) -> Result<Option<B>, Error> {
    let row_key = |commit: u64, key: &[u8]| key::change_log(kind.space(), commit, key);
    let first = match behind {
        Some(behind) => Bound::Excluded(row_key(commit.get(), &kind.row_key(behind))),
        None => Bound::Included(row_key(commit.get().saturating_add(1), &[])),
    };
    let last = row_key(u64::MAX, &[0xff]);
    let range = (first.as_ref().map(Vec::as_slice), Bound::Included(&last[..]));
    let counters = view.counters();
    let ended = view.rows().scan(Family::Index, range, |row_key, _| {
        Counters::add(&counters.keys_scanned, 1);
        match key::decode_change_log(row_key) {
            Ok((_, commit, key)) => visit(CommitSeq::new(commit), kind.key_of(key)).map_break(Ok),
            Err(problem) => {
                let damage =
                    Damage::of_row(Space::ChangeLog, row_key, "a row of the log of changes", problem);
                ControlFlow::Break(Err(damage))
            }
        }
    })?;
    ended.transpose()
}

/// Some values of a view, in the order asked; `None` for one that is not stored. A damaged one fails alone.
pub fn values(
    view: &ReadView<'_>,
    kind: ValueKind,
    keys: &[impl AsRef<[u8]>],
) -> Vec<Result<Option<StoredValue>, Error>> {
    Counters::add(&view.counters().engine_reads, keys.len() as u64);
    if kind == ValueKind::Records {
        return records(view.rows(), keys);
    }
    let asked: Vec<_> = keys.iter().map(|key| (kind.space(), key.as_ref())).collect();
    let rows = view.rows().get_many(&asked);
    rows.into_iter()
        .zip(keys)
        .map(|(row, key)| row?.map(|row| open(kind, key.as_ref(), &row)).transpose())
        .collect()
}

/// Visits the values of a view whose keys have a prefix and are after a key, ascending by key.
///
/// # Errors
/// If the engine fails, and [`Error::Corrupt`] where it cannot list keys. A damaged value is visited as an error.
pub fn list_values<B>(
    view: &ReadView<'_>,
    kind: ValueKind,
    prefix: &[u8],
    behind: Option<&[u8]>,
    mut visit: impl FnMut(&[u8], Result<StoredValue, Error>) -> ControlFlow<B>,
) -> Result<Option<B>, Error> {
    let prefix = kind.row_key(prefix);
    let (behind, end) = (behind.map(|behind| kind.row_key(behind)), behind_all(&prefix));
    let range = crate::kinds::object::range(&prefix, behind.as_deref(), end.as_deref());
    let counters = view.counters();
    let ended = scan_skipping_damage(view.rows(), kind.space().family(), range, |met| {
        let (row_key, row) = match met {
            Met::Row(key, row) => (key, row),
            Met::Gap { error, .. } => return ControlFlow::Break(Err(error.into())),
        };
        Counters::add(&counters.keys_scanned, 1);
        let key = kind.key_of(row_key);
        let value = match kind {
            ValueKind::Records => match records(view.rows(), &[key]).pop() {
                Some(found) => found.transpose(),
                None => None,
            },
            ValueKind::Properties | ValueKind::Entities | ValueKind::Objects => Some(open(kind, key, row)),
        };
        value.map_or(ControlFlow::Continue(()), |value| visit(key, value).map_break(Ok))
    })?;
    ended.transpose()
}

fn records(view: &dyn Readable, keys: &[impl AsRef<[u8]>]) -> Vec<Result<Option<StoredValue>, Error>> {
    let ids: Vec<_> = keys
        .iter()
        .map(|key| {
            let id = <[u8; 16]>::try_from(key.as_ref()).unwrap_or_default();
            RecordId::from_bytes(id)
        })
        .collect();
    let encoded = |(record, commit): (std::sync::Arc<cg_format::record::Record>, u64)| {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        (CommitSeq::new(commit), bytes)
    };
    read_records(view, &ids).into_iter().map(|found| Ok(found?.map(encoded))).collect()
}

/// A row's commit and what it holds.
fn open(kind: ValueKind, key: &[u8], row: &[u8]) -> Result<StoredValue, Error> {
    let frame = FrameView::open(kind.space(), key, row)
        .map_err(|problem| Damage::of_row(kind.space(), key, what(kind, key), problem))?;
    Ok((CommitSeq::new(frame.header().version), frame.payload().to_vec()))
}

fn what(kind: ValueKind, key: &[u8]) -> String {
    let noun = match kind {
        ValueKind::Properties => "property",
        ValueKind::Entities => "entity",
        ValueKind::Objects => "object",
        ValueKind::Records => "record",
    };
    format!("{noun} `{}`", key.escape_ascii())
}
