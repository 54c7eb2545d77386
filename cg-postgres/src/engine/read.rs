//! Reads of rows, of the newest state or of a view.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use cg_engine::{CommitSeq, EngineError, Space, Value};
use parking_lot::Mutex;
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
    /// The snapshots. Some may be gone.
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
            // Ended by the server: idle for too long, in conflict with a standby's recovery, or after errors.
            Failed::Refused(error) if matches!(error.code(), "25P02" | "25P03" | "25P04" | "40001") => {
                ReadError::Gone(self.seq)
            }
            _ => failed.into(),
        }
    }
}

pub(super) type Found = Result<Option<Value<'static>>, EngineError>;

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
        let read = async move { view.read(|session| call(Arc::clone(&pool), session)).await };
        // The end of the engine ends its views.
        let is_open = || self.check_open().is_ok();
        self.pool.wait(read).map_err(|failed| if is_open() { at.error(failed) } else { ReadError::Closed })
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

    /// Whether there is no row.
    pub(crate) fn is_empty(&self, at: Option<&At>) -> Result<bool, EngineError> {
        let row = self.ask(at, |pool, session| async move {
            let end = &AFTER_EACH_KEY[..];
            let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(&SEGMENT, Type::INT8), (&end, Type::BYTEA)];
            let text = pool.sql.text(IS_EMPTY);
            Ok(session.client.query_typed(&text, &parameters).await?.into_iter().next())
        });
        let row = row.map_err(|error| error.engine_error())?;
        // A statement without an answer finds nothing out.
        Ok(row.map(|row| row.try_get(0)).transpose().map_err(unexpected)?.unwrap_or(false))
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

/// The error of a column of another type than its table declares.
pub(crate) fn unexpected(error: tokio_postgres::Error) -> EngineError {
    Failed::from(error).into_engine_error("read rows")
}
