//! Scans: pages of one state.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use cg_engine::{EngineError, RowVisitor, Scan};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::read::{At, SEGMENT, Source, unexpected};
use super::snapshot::Kept;
use crate::error::Failed;
use crate::fold::number;
use crate::pool::{Pool, Purpose};
use crate::session::Session;

/// The rows of the first page.
const FIRST_ROWS: usize = 128;
/// The most rows of a page.
const MAX_ROWS: usize = 4096;
/// A page ends with the row that exceeds this.
const PAGE_BYTES: usize = 1 << 20;

/// The rest of a scan.
#[derive(Debug, Clone)]
struct Rest {
    family: i16,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    /// The rows that the scan may still visit.
    rows: usize,
    page_rows: usize,
}

impl Source {
    /// Visits the rows of a view, or of the newest state. A range that fits into the first page costs one flight.
    pub(crate) fn scan(
        &self,
        at: Option<&At>,
        scan: Scan<'_>,
        visit: &mut RowVisitor<'_>,
    ) -> Result<(), EngineError> {
        self.check_open()?;
        let mut rest = Rest::of(scan);
        if !rest.is_any() {
            return Ok(());
        }
        // A page ends after some bytes too, so only one row is certainly one page.
        if at.is_some() || rest.rows == 1 {
            return self.pages(at, rest, visit);
        }
        // More than one page must be of one state.
        let first = rest.clone();
        let (kept, page) = Kept::with(self, Purpose::Scan, move |pool, session| {
            let rest = first.clone();
            async move { rest.page(&pool, &session).await }
        })?;
        // Its connection is free for another scan while the last page is visited.
        let mut kept = Some(kept);
        if rest.ends_with(&page)? {
            kept = None;
        }
        match (rest.show(&page, visit)?, kept) {
            (ControlFlow::Continue(()), Some(kept)) => self.pages(Some(&kept.at), rest, visit),
            _ => Ok(()),
        }
    }

    fn pages(&self, at: Option<&At>, mut rest: Rest, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        while rest.is_any() {
            let asked = rest.clone();
            let page = self.ask(at, move |pool, session| {
                let rest = asked.clone();
                async move { rest.page(&pool, &session).await }
            });
            let page = page.map_err(|error| error.engine_error())?;
            if rest.show(&page, visit)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// The first key after another one.
fn successor(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

impl Rest {
    fn of(scan: Scan<'_>) -> Self {
        let from = match scan.range.0 {
            Bound::Included(key) => key.to_vec(),
            Bound::Excluded(key) => successor(key),
            Bound::Unbounded => Vec::new(),
        };
        let to = match scan.range.1 {
            Bound::Included(key) => Some(successor(key)),
            Bound::Excluded(key) => Some(key.to_vec()),
            Bound::Unbounded => None,
        };
        Self { family: number(scan.family), from, to, rows: scan.max_rows, page_rows: FIRST_ROWS }
    }

    fn is_any(&self) -> bool {
        self.rows > 0 && self.to.as_ref().is_none_or(|to| self.from < *to)
    }

    fn limit(&self) -> usize {
        self.rows.min(self.page_rows)
    }

    async fn page(&self, pool: &Arc<Pool>, session: &Session) -> Result<Vec<Row>, Failed> {
        let statements = session.reading(&pool.sql).await?;
        let (limit, bytes) = (self.limit() as i64, PAGE_BYTES as i64);
        let mut parameters: Vec<&(dyn ToSql + Sync)> =
            vec![&SEGMENT, &self.family, &self.from, &limit, &bytes];
        let statement = match &self.to {
            Some(to) => {
                parameters.push(to);
                &statements.page_to
            }
            None => &statements.page,
        };
        Ok(session.client.query(statement, &parameters).await?)
    }

    /// Whether no page follows.
    fn ends_with(&self, page: &[Row]) -> Result<bool, EngineError> {
        let mut bytes = 0;
        for row in page {
            bytes += row.try_get::<_, &[u8]>(1).map_err(unexpected)?.len();
        }
        Ok(page.len() == self.rows || page.len() < self.limit() && bytes < PAGE_BYTES)
    }

    /// Visits the rows of a page. Breaks if `visit` breaks, and after the last page.
    fn show(&mut self, page: &[Row], visit: &mut RowVisitor<'_>) -> Result<ControlFlow<()>, EngineError> {
        let mut bytes = 0;
        for row in page {
            let key: &[u8] = row.try_get(0).map_err(unexpected)?;
            let value: &[u8] = row.try_get(1).map_err(unexpected)?;
            bytes += value.len();
            if visit(key, value).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        let Some(last) = page.last() else { return Ok(ControlFlow::Break(())) };
        if page.len() < self.limit() && bytes < PAGE_BYTES {
            return Ok(ControlFlow::Break(()));
        }
        self.from = successor(last.try_get(0).map_err(unexpected)?);
        self.rows -= page.len();
        // The next page has about the wanted bytes if its rows are like these.
        let of_bytes = PAGE_BYTES * page.len() / bytes.max(1) + 1;
        self.page_rows = of_bytes.clamp(1, MAX_ROWS);
        Ok(ControlFlow::Continue(()))
    }
}
