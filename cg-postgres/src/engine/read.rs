//! Reads of rows, of the newest state or of a view.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cg_engine::{CommitSeq, EngineError, RowSlice, Space, Value};
use tokio_postgres::Row;

use crate::error::{Failed, ReadError};
use crate::fold::number;
use crate::pool::{Pool, View};
use crate::session::Session;

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
        let (family, key) = (number(space.family()), Arc::<[u8]>::from(key));
        let row = self.ask(at, move |pool, session| {
            let key = Arc::clone(&key);
            async move {
                let statement = &session.reading(&pool.sql).await?.get;
                Ok(session.client.query_opt(statement, &[&SEGMENT, &family, &&*key]).await?)
            }
        });
        let row = row.map_err(|error| error.engine_error())?;
        row.map(|row| row.try_get::<_, Vec<u8>>(0).map(Value::from)).transpose().map_err(unexpected)
    }

    pub(crate) fn has(&self, space: Space, key: &[u8]) -> Result<bool, ReadError> {
        let (family, key) = (number(space.family()), Arc::<[u8]>::from(key));
        let row = self.ask(None, move |pool, session| {
            let key = Arc::clone(&key);
            async move {
                let statement = &session.reading(&pool.sql).await?.has;
                Ok(session.client.query_opt(statement, &[&SEGMENT, &family, &&*key]).await?)
            }
        });
        Ok(row?.is_some())
    }

    pub(crate) fn get_many(&self, at: Option<&At>, keys: &[(Space, &[u8])]) -> Vec<Found> {
        if keys.is_empty() {
            return Vec::new();
        }
        let families: Vec<_> = keys.iter().map(|(space, _)| number(space.family())).collect();
        let asked: Vec<_> = keys.iter().map(|(_, key)| key.to_vec()).collect();
        let asked = Arc::new((families, asked));
        let rows = self.ask(at, move |pool, session| {
            let asked = Arc::clone(&asked);
            async move {
                let statement = &session.reading(&pool.sql).await?.get_many;
                Ok(session.client.query(statement, &[&SEGMENT, &asked.0, &asked.1]).await?)
            }
        });
        let is_damaged = |failed: &Failed| matches!(failed, Failed::Refused(error) if error.is_of_damage());
        match rows {
            // A damaged block fails the statement, and shall fail only its own rows.
            Err(ReadError::Failed(failed)) if keys.len() > 1 && is_damaged(&failed) => {
                keys.iter().map(|(space, key)| self.get(at, *space, key)).collect()
            }
            rows => each(rows, keys.len()),
        }
    }

    pub(crate) fn get_slices(&self, at: Option<&At>, slices: &[RowSlice<'_>]) -> Vec<Found> {
        if slices.is_empty() {
            return Vec::new();
        }
        let families: Vec<_> = slices.iter().map(|slice| number(slice.space.family())).collect();
        let keys: Vec<_> = slices.iter().map(|slice| slice.key.to_vec()).collect();
        // No row has 1 GiB. The server adds both numbers.
        let at_most = |bytes: usize| i32::try_from(bytes).unwrap_or(i32::MAX).min(1 << 30);
        let starts: Vec<_> = slices.iter().map(|slice| at_most(slice.bytes.start) + 1).collect();
        let lens: Vec<_> =
            slices.iter().map(|slice| at_most(slice.bytes.end.saturating_sub(slice.bytes.start))).collect();
        let asked = Arc::new((families, keys, starts, lens));
        let rows = self.ask(at, move |pool, session| {
            let asked = Arc::clone(&asked);
            async move {
                let statement = &session.reading(&pool.sql).await?.slices;
                let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
                    [&SEGMENT, &asked.0, &asked.1, &asked.2, &asked.3];
                Ok(session.client.query(statement, &parameters).await?)
            }
        });
        each(rows, slices.len())
    }
}

/// One result for each key. An error of the call is that of each key.
fn each(rows: Result<Vec<Row>, ReadError>, count: usize) -> Vec<Found> {
    match rows {
        Ok(rows) => {
            let one = |row: Row| row.try_get::<_, Option<Vec<u8>>>(0).map_err(unexpected);
            rows.into_iter().map(|row| Ok(one(row)?.map(Value::from))).collect()
        }
        Err(error) => (0..count).map(|_| Err(error.engine_error())).collect(),
    }
}

/// The error of a column of another type than its table declares.
pub(crate) fn unexpected(error: tokio_postgres::Error) -> EngineError {
    Failed::from(error).into_engine_error("read rows")
}
