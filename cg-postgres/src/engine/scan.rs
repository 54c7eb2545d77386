//! Scans: pages of one state.

use std::ops::{Bound, ControlFlow, Range};
use std::sync::Arc;

use cg_engine::{EngineError, Family, RowVisitor, Scan};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::read::{At, SEGMENT, Source, unexpected};
use super::snapshot::Kept;
use crate::error::Failed;
use crate::fold::{AFTER_EACH_KEY, number};
use crate::pool::{Pool, Purpose};
use crate::session::Session;

/// The rows of the first page.
const FIRST_ROWS: usize = 128;
/// The rows of the first page of several ranges: the caller wants most of them.
const RANGES_ROWS: usize = 2048;
/// The most rows of a page.
const MAX_ROWS: usize = 4096;
/// A page ends with the row that exceeds this.
const PAGE_BYTES: usize = 1 << 20;

/// The ranges that one statement may have.
pub(crate) fn ranges_at_once(family: Family) -> usize {
    if family == Family::Record { 512 } else { 1 }
}

/// The rest of a scan.
#[derive(Debug, Clone)]
struct Rest {
    family: i16,
    /// Ranges that ascend: their first keys, and the keys after them. More than one only of the family of records.
    from: Vec<Vec<u8>>,
    to: Vec<Option<Vec<u8>>>,
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
        self.visit(at, Rest::of(scan), visit)
    }

    /// Visits the rows of ranges: of records in one scan.
    pub(crate) fn scan_ranges(
        &self,
        at: Option<&At>,
        family: Family,
        ranges: &[Range<Vec<u8>>],
        visit: &mut RowVisitor<'_>,
    ) -> Result<(), EngineError> {
        let mut is_ended = false;
        for part in ranges.chunks(ranges_at_once(family)) {
            let ranges = part.iter().filter(|range| range.start < range.end);
            let (from, to) = ranges.map(|range| (range.start.clone(), Some(range.end.clone()))).unzip();
            let rest = Rest { family: number(family), from, to, rows: usize::MAX, page_rows: RANGES_ROWS };
            self.visit(at, rest, &mut |key, row| {
                let flow = visit(key, row);
                is_ended = flow.is_break();
                flow
            })?;
            if is_ended {
                break;
            }
        }
        Ok(())
    }

    fn visit(&self, at: Option<&At>, mut rest: Rest, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        self.check_open()?;
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
        let (family, from, to) = (number(scan.family), vec![from], vec![to]);
        Self { family, from, to, rows: scan.max_rows, page_rows: FIRST_ROWS }
    }

    fn is_any(&self) -> bool {
        let is_any = |(from, to): (&Vec<u8>, &Option<Vec<u8>>)| to.as_ref().is_none_or(|to| from < to);
        self.rows > 0 && self.from.iter().zip(&self.to).any(is_any)
    }

    fn limit(&self) -> usize {
        self.rows.min(self.page_rows)
    }

    async fn page(&self, pool: &Arc<Pool>, session: &Session) -> Result<Vec<Row>, Failed> {
        let statements = session.reading(&pool.sql).await?;
        let (limit, bytes) = (self.limit() as i64, PAGE_BYTES as i64);
        if self.family == number(Family::Record) {
            let to: Vec<_> = self.to.iter().map(|to| to.as_deref().unwrap_or(&AFTER_EACH_KEY)).collect();
            let parameters: [&(dyn ToSql + Sync); 5] = [&SEGMENT, &self.from, &to, &limit, &bytes];
            return Ok(session.client.query(&statements.records_page, &parameters).await?);
        }
        let (Some(from), Some(to)) = (self.from.first(), self.to.first()) else { return Ok(Vec::new()) };
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&SEGMENT, &self.family, from, &limit, &bytes];
        let statement = match to {
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

    /// Removes all keys before one from the ranges.
    fn continue_from(&mut self, key: Vec<u8>) {
        let is_over = |to: &&Option<Vec<u8>>| to.as_ref().is_some_and(|to| *to <= key);
        let over = self.to.iter().take_while(is_over).count();
        self.to.drain(..over);
        self.from.drain(..over);
        if let Some(from) = self.from.first_mut().filter(|from| **from < key) {
            *from = key;
        }
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
        self.continue_from(successor(last.try_get(0).map_err(unexpected)?));
        self.rows -= page.len();
        // The next page has about the wanted bytes if its rows are like these.
        let of_bytes = PAGE_BYTES * page.len() / bytes.max(1) + 1;
        self.page_rows = of_bytes.clamp(1, MAX_ROWS);
        Ok(ControlFlow::Continue(()))
    }
}
