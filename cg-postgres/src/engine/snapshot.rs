//! Snapshots: transactions that see one state.

use std::ops::Range;
use std::sync::Arc;

use cg_engine::{
    ColumnsVisitor, CommitSeq, EngineError, Family, Readable, RowSlice, RowVisitor, Scan, Space, Value,
};

use super::read::{At, SEGMENT, Source};
use super::scan::ranges_at_once;
use crate::error::Failed;
use crate::pool::{Pool, Purpose};
use crate::session::Session;

/// A state of the rows.
#[derive(Debug)]
pub(crate) struct Kept {
    source: Source,
    pub(crate) at: At,
}

impl Kept {
    /// The state after the newest commit. Its transaction ends with the engine.
    pub(crate) fn new(source: &Source) -> Result<Self, EngineError> {
        let (kept, ()) = Self::with(source, Purpose::Snapshot, |_, _| std::future::ready(Ok(())))?;
        let mut snapshots = source.snapshots.lock();
        snapshots.retain(|view| view.strong_count() > 0);
        snapshots.push(Arc::downgrade(&kept.at.view));
        drop(snapshots);
        source.check_open()?;
        Ok(kept)
    }

    /// The state after the newest commit, and the first read of it, in one flight.
    pub(crate) fn with<T, F>(
        source: &Source,
        purpose: Purpose,
        first: impl Fn(Arc<Pool>, Arc<Session>) -> F + Send + Sync + 'static,
    ) -> Result<(Self, T), EngineError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failed>> + Send + 'static,
    {
        source.check_open()?;
        let pool = Arc::clone(&source.pool);
        let begin = async move {
            // The first statement fixes the state.
            let first = |session: Arc<Session>| {
                let first = first(Arc::clone(&pool), Arc::clone(&session));
                let pool = Arc::clone(&pool);
                async move {
                    let head = async {
                        let statement = &session.reading(&pool.sql).await?.head;
                        Ok::<_, Failed>(session.client.query_opt(statement, &[&SEGMENT]).await?)
                    };
                    let (head, first) = tokio::join!(biased; head, first);
                    let seq = head?.map(|head| head.try_get::<_, i64>(2)).transpose()?;
                    Ok((CommitSeq::new(seq.unwrap_or_default() as u64), first?))
                }
            };
            pool.view(purpose, first).await
        };
        let (view, (seq, first)) =
            source.pool.wait(begin).map_err(|failed| failed.into_engine_error("take a snapshot"))?;
        Ok((Self { source: source.clone(), at: At { view: Arc::new(view), seq } }, first))
    }
}

impl Readable for Kept {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value<'_>>, EngineError> {
        self.source.get(Some(&self.at), space, key)
    }

    fn get_many(&self, keys: &[(Space, &[u8])]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
        self.source.get_many(Some(&self.at), keys)
    }

    fn get_slices(&self, slices: &[RowSlice<'_>]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
        self.source.get_slices(Some(&self.at), slices)
    }

    fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        self.source.scan(Some(&self.at), scan, visit)
    }

    fn scan_ranges(
        &self,
        family: Family,
        ranges: &[Range<Vec<u8>>],
        visit: &mut RowVisitor<'_>,
    ) -> Result<(), EngineError> {
        self.source.scan_ranges(Some(&self.at), family, ranges, visit)
    }

    fn ranges_at_once(&self, family: Family) -> usize {
        ranges_at_once(family)
    }

    fn is_empty(&self) -> Result<bool, EngineError> {
        self.source.is_empty(Some(&self.at))
    }

    fn check_columns(&self, visit: &mut ColumnsVisitor<'_>) -> Result<(), EngineError> {
        self.source.check_columns(Some(&self.at), visit)
    }
}
