//! Reads of rows, of the newest state or of a view.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cg_engine::{CommitSeq, EngineError, RowSlice, Space, Value};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::error::{Failed, ReadError};
use crate::fold::number;
use crate::pool::{Pool, View};
use crate::records::is_record;
use crate::session::{Reading, Session};

/// The segment whose rows a world has. There is one until worlds in segments share a schema.
pub(crate) const SEGMENT: i64 = 0;

/// The rows of an engine.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) pool: Arc<Pool>,
    pub(crate) closed: Arc<AtomicBool>,
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
        if keys.is_empty() {
            return Vec::new();
        }
        let asked = Arc::new(Asked::of(keys.iter().map(|(space, key)| (*space, *key, (0, 0)))));
        let places = Arc::clone(&asked);
        let rows = self.ask(at, move |pool, session| {
            let asked = Arc::clone(&asked);
            async move {
                let statements = session.reading(&pool.sql).await?;
                let Asked { plain, records, .. } = &*asked;
                if records.keys.is_empty() {
                    let parameters: [&(dyn ToSql + Sync); 3] = [&SEGMENT, &plain.families, &plain.keys];
                    return Ok(session.client.query(&statements.get_many, &parameters).await?);
                }
                let parameters: [&(dyn ToSql + Sync); 4] =
                    [&SEGMENT, &plain.families, &plain.keys, &records.keys];
                Ok(session.client.query(&statements.get_many_mixed, &parameters).await?)
            }
        });
        let is_damaged = |failed: &Failed| matches!(failed, Failed::Refused(error) if error.is_of_damage());
        match rows {
            // A damaged block fails the statement, and shall fail only its own rows.
            Err(ReadError::Failed(failed)) if keys.len() > 1 && is_damaged(&failed) => {
                keys.iter().map(|(space, key)| self.get(at, *space, key)).collect()
            }
            rows => places.each(rows),
        }
    }

    pub(crate) fn get_slices(&self, at: Option<&At>, slices: &[RowSlice<'_>]) -> Vec<Found> {
        if slices.is_empty() {
            return Vec::new();
        }
        // No row has 1 GiB. The server adds both numbers.
        let at_most = |bytes: usize| i32::try_from(bytes).unwrap_or(i32::MAX).min(1 << 30);
        let part = |slice: &RowSlice<'_>| {
            let (start, end) = (slice.bytes.start, slice.bytes.end);
            (at_most(start) + 1, at_most(end.saturating_sub(start)))
        };
        let asked = Arc::new(Asked::of(slices.iter().map(|slice| (slice.space, slice.key, part(slice)))));
        let places = Arc::clone(&asked);
        let rows = self.ask(at, move |pool, session| {
            let asked = Arc::clone(&asked);
            async move {
                let statements = session.reading(&pool.sql).await?;
                let Asked { plain, records, .. } = &*asked;
                let mut parameters: Vec<&(dyn ToSql + Sync)> =
                    vec![&SEGMENT, &plain.families, &plain.keys, &plain.starts, &plain.lens];
                if records.keys.is_empty() {
                    return Ok(session.client.query(&statements.slices, &parameters).await?);
                }
                let of_records: [&(dyn ToSql + Sync); 3] = [&records.keys, &records.starts, &records.lens];
                parameters.extend(of_records);
                Ok(session.client.query(&statements.slices_mixed, &parameters).await?)
            }
        });
        places.each(rows)
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

/// Keys, and slices of their rows.
#[derive(Debug, Default)]
struct Slices {
    families: Vec<i16>,
    keys: Vec<Vec<u8>>,
    starts: Vec<i32>,
    lens: Vec<i32>,
}

/// The keys of a call: those that may be in a table of records apart from the others.
#[derive(Debug, Default)]
struct Asked {
    plain: Slices,
    records: Slices,
    /// The place of each key in the call, first of the others, then of the records.
    places: Vec<usize>,
}

impl Asked {
    fn of<'a>(keys: impl Iterator<Item = (Space, &'a [u8], (i32, i32))>) -> Self {
        let (mut asked, mut records) = (Self::default(), Vec::new());
        for (place, (space, key, (start, len))) in keys.enumerate() {
            let (to, places) = if is_record(space.family(), key) {
                (&mut asked.records, &mut records)
            } else {
                (&mut asked.plain, &mut asked.places)
            };
            to.families.push(number(space.family()));
            to.keys.push(key.to_vec());
            to.starts.push(start);
            to.lens.push(len);
            places.push(place);
        }
        asked.places.append(&mut records);
        asked
    }

    /// One result for each key, in the order of the call. An error of the call is that of each key.
    fn each(&self, rows: Result<Vec<Row>, ReadError>) -> Vec<Found> {
        let rows = match rows {
            Ok(rows) => rows,
            Err(error) => return self.places.iter().map(|_| Err(error.engine_error())).collect(),
        };
        let value = |row: &Row, column| {
            Ok(row.try_get::<_, Option<Vec<u8>>>(column).map_err(unexpected)?.map(Value::from))
        };
        if self.records.keys.is_empty() {
            return rows.iter().map(|row| value(row, 0)).collect();
        }
        let mut found: Vec<Found> = self.places.iter().map(|_| Ok(None)).collect();
        for row in &rows {
            match row.try_get::<_, i64>(0) {
                Ok(number) => {
                    let place = self.places.get((number as usize).wrapping_sub(1));
                    if let Some(one) = place.and_then(|place| found.get_mut(*place)) {
                        *one = value(row, 1);
                    }
                }
                Err(error) => return self.each(Err(Failed::from(error).into())),
            }
        }
        found
    }
}

/// The error of a column of another type than its table declares.
pub(crate) fn unexpected(error: tokio_postgres::Error) -> EngineError {
    Failed::from(error).into_engine_error("read rows")
}
