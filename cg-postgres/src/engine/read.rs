//! Reads of rows, of the newest state or of a view.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use cg_engine::{CommitSeq, EngineError, RowSlice, Space, Value};
use cg_format::key;
use parking_lot::Mutex;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::error::{Failed, ReadError};
use crate::fold::{AFTER_EACH_KEY, number};
use crate::pool::{Pool, View};
use crate::records::is_record;
use crate::schema::IS_EMPTY;
use crate::session::{Reading, Session};

/// The segment whose rows a world has. There is one until worlds in segments share a schema.
pub(crate) const SEGMENT: i64 = 0;

/// The rows of an engine.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) pool: Arc<Pool>,
    pub(crate) closed: Arc<AtomicBool>,
    /// The snapshots, some of which may be gone.
    pub(crate) snapshots: Arc<Mutex<Vec<Weak<View>>>>,
}

/// A view, and its newest commit.
#[derive(Debug, Clone)]
pub(crate) struct At {
    pub(crate) view: Arc<View>,
    pub(crate) seq: CommitSeq,
}

impl At {
    /// The error of a read in this view.
    pub(crate) fn error(&self, failed: Failed) -> ReadError {
        match &failed {
            Failed::Lost(_) => ReadError::Gone(self.seq),
            // Ended by the server: idle for too long, in conflict with a standby's recovery, or after another error.
            Failed::Refused(error) if matches!(error.code(), "25P02" | "25P03" | "25P04" | "40001") => {
                ReadError::Gone(self.seq)
            }
            _ => failed.into(),
        }
    }
}

type Found = Result<Option<Value<'static>>, EngineError>;

impl Source {
    pub(crate) fn new(pool: Arc<Pool>) -> Self {
        Self { pool, closed: Arc::default(), snapshots: Arc::default() }
    }

    /// Refuses later reads, and ends the transactions of the snapshots. Returns whether it was open.
    pub(crate) fn close(&self) -> bool {
        let was_open = !self.closed.swap(true, Ordering::AcqRel);
        let snapshots = std::mem::take(&mut *self.snapshots.lock());
        for view in snapshots.iter().filter_map(Weak::upgrade) {
            view.end();
        }
        was_open
    }

    pub(crate) fn check_open(&self) -> Result<(), EngineError> {
        if self.closed.load(Ordering::Acquire) { Err(EngineError::Closed) } else { Ok(()) }
    }

    /// Asks in a view, or over a shared connection, where the call is repeated if its answer is lost.
    pub(crate) fn ask<T, F>(
        &self,
        at: Option<&At>,
        call: impl Fn(Arc<Pool>, Arc<Session>) -> F + Send + Sync + 'static,
    ) -> Result<T, ReadError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failed>> + Send + 'static,
    {
        if self.check_open().is_err() {
            return Err(ReadError::Closed);
        }
        let pool = Arc::clone(&self.pool);
        let Some(at) = at else {
            let read = async move { pool.read(|session| call(Arc::clone(&pool), session)).await };
            return self.pool.wait(read).map_err(ReadError::from);
        };
        let view = Arc::clone(&at.view);
        let read = async move { view.read(|session| call(pool, session)).await };
        self.pool.wait(read).map_err(|failed| at.error(failed))
    }

    pub(crate) fn get(&self, at: Option<&At>, space: Space, key: &[u8]) -> Found {
        let is_record = is_record(space.family(), key);
        let (family, key) = (number(space.family()), Arc::<[u8]>::from(key));
        let row = self.ask(at, move |pool, session| {
            let key = Arc::clone(&key);
            async move {
                let statements = session.reading(&pool.sql).await?;
                if is_record {
                    return record(&session, statements, &key, None).await;
                }
                let row = session.client.query_opt(&statements.get, &[&SEGMENT, &family, &&*key]).await?;
                Ok(row.map(|row| row.try_get(0)).transpose()?)
            }
        });
        Ok(row.map_err(|error| error.engine_error())?.map(Value::from))
    }

    pub(crate) fn has(&self, space: Space, key: &[u8]) -> Result<bool, ReadError> {
        let is_record = is_record(space.family(), key);
        let (family, key) = (number(space.family()), Arc::<[u8]>::from(key));
        self.ask(None, move |pool, session| {
            let key = Arc::clone(&key);
            async move {
                let statements = session.reading(&pool.sql).await?;
                if is_record {
                    return Ok(record(&session, statements, &key, Some((1, 0))).await?.is_some());
                }
                let row = session.client.query_opt(&statements.has, &[&SEGMENT, &family, &&*key]).await?;
                Ok(row.is_some())
            }
        })
    }

    pub(crate) fn get_many(&self, at: Option<&At>, keys: &[(Space, &[u8])]) -> Vec<Found> {
        let whole = keys.iter().map(|(space, key)| RowSlice { space: *space, key, bytes: 0..usize::MAX });
        self.get_slices(at, &whole.collect::<Vec<_>>())
    }

    /// Whether there is no row.
    pub(crate) fn is_empty(&self, at: Option<&At>) -> Result<bool, EngineError> {
        let row = self.ask(at, |pool, session| async move {
            let end = &AFTER_EACH_KEY[..];
            let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(&SEGMENT, Type::INT8), (&end, Type::BYTEA)];
            let text = pool.sql.text(IS_EMPTY);
            Ok(session.client.query_typed(&text, &parameters).await?.into_iter().next())
        });
        let row = row.map_err(|error| error.engine_error())?;
        Ok(row.map(|row| row.try_get(0)).transpose().map_err(unexpected)?.unwrap_or(true))
    }

    pub(crate) fn get_slices(&self, at: Option<&At>, slices: &[RowSlice<'_>]) -> Vec<Found> {
        if slices.is_empty() {
            return Vec::new();
        }
        let asked = Arc::new(Asked::of(slices));
        let places = Arc::clone(&asked);
        let rows = self.ask(at, move |pool, session| {
            let asked = Arc::clone(&asked);
            async move {
                let statements = session.reading(&pool.sql).await?;
                let Asked { groups, records } = &*asked;
                let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![
                    &SEGMENT,
                    &groups.families,
                    &groups.from,
                    &groups.to,
                    &groups.masks,
                    &groups.starts,
                    &groups.lens,
                ];
                if records.keys.is_empty() {
                    return Ok(session.client.query(&statements.slices, &parameters).await?);
                }
                let of_records: [&(dyn ToSql + Sync); 3] = [&records.keys, &records.starts, &records.lens];
                parameters.extend(of_records);
                Ok(session.client.query(&statements.slices_mixed, &parameters).await?)
            }
        });
        let is_damaged = |failed: &Failed| matches!(failed, Failed::Refused(error) if error.is_of_damage());
        match rows {
            // A damaged block fails the statement, and shall fail only its own rows.
            Err(ReadError::Failed(failed)) if slices.len() > 1 && is_damaged(&failed) => {
                slices.chunks(1).flat_map(|slice| self.get_slices(at, slice)).collect()
            }
            Err(error) => slices.iter().map(|_| Err(error.engine_error())).collect(),
            Ok(rows) => places.each(&rows, slices.len()).unwrap_or_else(|error| {
                slices.iter().map(|_| Err(ReadError::from(error.clone()).engine_error())).collect()
            }),
        }
    }
}

/// A record, or a slice of it: its first byte, counted from 1, and its length.
async fn record(
    session: &Session,
    statements: &Reading,
    key: &[u8],
    slice: Option<(i32, i32)>,
) -> Result<Option<Vec<u8>>, Failed> {
    let (start, len) = slice.unzip();
    let (start, len) = (start.map(|start| [start]), len.map(|len| [len]));
    let (start, len) = (start.as_ref().map(|start| &start[..]), len.as_ref().map(|len| &len[..]));
    let parameters: [&(dyn ToSql + Sync); 4] = [&SEGMENT, &&[key][..], &start, &len];
    let row = session.client.query_opt(&statements.records, &parameters).await?;
    Ok(row.map(|row| row.try_get(1)).transpose()?.flatten())
}

/// Slices in groups. All of a group are of the same bytes of rows of one family. A group has one key, or those of chunks that
/// are near each other, which differ in their last byte alone. An area has some tens of groups.
#[derive(Debug, Default)]
struct Groups {
    families: Vec<i16>,
    /// The first key of each.
    from: Vec<Vec<u8>>,
    /// The last key of each.
    to: Vec<Vec<u8>>,
    /// A bit for each last byte that is asked for.
    masks: Vec<Vec<u8>>,
    starts: Vec<i32>,
    lens: Vec<i32>,
    /// The last byte of each key, which ascend, and its place in the call. A key without bytes has 0.
    members: Vec<Vec<(u8, usize)>>,
}

/// Slices of records.
#[derive(Debug, Default)]
struct Records {
    keys: Vec<Vec<u8>>,
    starts: Vec<i32>,
    lens: Vec<i32>,
    /// The place of each in the call.
    places: Vec<usize>,
}

/// The slices of a call: those of rows that may be in a table of records apart from the others.
#[derive(Debug, Default)]
struct Asked {
    groups: Groups,
    records: Records,
}

impl Asked {
    fn of(slices: &[RowSlice<'_>]) -> Self {
        let mut asked = Self::default();
        let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (place, slice) in slices.iter().enumerate() {
            let (start, len) = bytes_of(slice);
            if is_record(slice.space.family(), slice.key) {
                asked.records.keys.push(slice.key.to_vec());
                asked.records.starts.push(start);
                asked.records.lens.push(len);
                asked.records.places.push(place);
            } else {
                let (last, rest) = slice.key.split_last().unzip();
                // The rows of a family of other keys that lie between two that are asked for may be many.
                let alone = if is_of_chunks(slice) { None } else { last };
                let group = (number(slice.space.family()), rest, alone, start, len);
                groups.entry(group).or_default().push((last.copied().unwrap_or_default(), place));
            }
        }
        for ((family, rest, _, start, len), mut members) in groups {
            members.sort_unstable();
            let key = |member: Option<&(u8, usize)>| {
                let last = member.map(|(last, _)| *last);
                rest.into_iter().flatten().copied().chain(last.filter(|_| rest.is_some())).collect()
            };
            let mut mask = vec![0; 32];
            for (last, _) in &members {
                mask[usize::from(last / 8)] |= 1 << (last % 8);
            }
            asked.groups.families.push(family);
            asked.groups.from.push(key(members.first()));
            asked.groups.to.push(key(members.last()));
            asked.groups.masks.push(mask);
            asked.groups.starts.push(start);
            asked.groups.lens.push(len);
            asked.groups.members.push(members);
        }
        asked
    }

    /// The places of the slices of a row that was found, by the number of its group and its last byte. The number of a row
    /// without a byte is that of a record.
    fn places(&self, number: i64, last: Option<i32>) -> impl Iterator<Item = usize> {
        let index = (number as usize).wrapping_sub(1);
        let record = if last.is_none() { self.records.places.get(index).copied() } else { None };
        let members = last.zip(self.groups.members.get(index)).map(|(last, members)| {
            let from = members.partition_point(|(member, _)| i32::from(*member) < last);
            members[from..].iter().take_while(move |(member, _)| i32::from(*member) == last)
        });
        record.into_iter().chain(members.into_iter().flatten().map(|(_, place)| *place))
    }

    /// One result for each of the slices, in the order of the call.
    fn each(&self, rows: &[Row], count: usize) -> Result<Vec<Found>, Failed> {
        let mut found: Vec<Found> = (0..count).map(|_| Ok(None)).collect();
        for row in rows {
            let Some(value) = row.try_get::<_, Option<&[u8]>>(2)? else { continue };
            for place in self.places(row.try_get(0)?, row.try_get(1)?) {
                found[place] = Ok(Some(Value::from(value.to_vec())));
            }
        }
        Ok(found)
    }
}

/// Whether the family of a row has keys of one length, so that few rows have keys that differ in their last byte alone.
fn is_of_chunks(slice: &RowSlice<'_>) -> bool {
    let is_of_chunks = matches!(slice.space, Space::ChunkL0 | Space::ClusterL1 | Space::ClusterL2);
    is_of_chunks && slice.key.len() == key::CHUNK_LEN_BYTES
}

/// The first byte of a slice, counted from 1, and its length. No row has 1 GiB, and the server adds both numbers.
fn bytes_of(slice: &RowSlice<'_>) -> (i32, i32) {
    let at_most = |bytes: usize| i32::try_from(bytes).unwrap_or(i32::MAX).min(1 << 30);
    let (start, end) = (slice.bytes.start, slice.bytes.end);
    (at_most(start) + 1, at_most(end.saturating_sub(start)))
}

/// The error of a column of another type than its table declares.
pub(crate) fn unexpected(error: tokio_postgres::Error) -> EngineError {
    Failed::from(error).into_engine_error("read rows")
}
