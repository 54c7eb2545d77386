//! A comparison of the columns of records with their rows.

use std::sync::Arc;

use cg_engine::{ColumnsVisitor, EngineError, Family};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSqlOwned, ToSql, Type};

use super::read::{At, SEGMENT, Source, unexpected};
use crate::records::Columns;
use crate::schema::COLUMNS;

/// The most rows of a page, and the bytes after which it ends.
const PAGE: (i64, i64) = (1024, 1 << 20);

impl Source {
    /// Visits the rows of tables of records whose columns contradict them.
    pub(crate) fn check_columns(
        &self,
        at: Option<&At>,
        visit: &mut ColumnsVisitor<'_>,
    ) -> Result<(), EngineError> {
        let mut from = Arc::new(Vec::new());
        loop {
            let asked = Arc::clone(&from);
            let page = self.ask(at, move |pool, session| {
                let (text, from) = (pool.sql.text(COLUMNS), Arc::clone(&asked));
                async move {
                    let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
                        (&SEGMENT, Type::INT8),
                        (&*from, Type::BYTEA),
                        (&PAGE.0, Type::INT8),
                        (&PAGE.1, Type::INT8),
                    ];
                    Ok(session.client.query_typed(&text, &parameters).await?)
                }
            });
            let page = page.map_err(|error| error.engine_error())?;
            let Some(last) = page.last() else { return Ok(()) };
            let last: &[u8] = last.try_get(0).map_err(unexpected)?;
            from = Arc::new([last, &[0]].concat());
            for row in &page {
                let wrong = contradicting(row).map_err(unexpected)?;
                if !wrong.is_empty() {
                    let wrong = wrong.join(", ");
                    let what = format!(
                        "columns of its table contradict the row, which the world reads: {wrong}; put the record again"
                    );
                    visit(Family::Record, row.try_get(0).map_err(unexpected)?, &what);
                }
            }
        }
    }
}

/// The names of the columns of a row that contradict it.
fn contradicting(row: &Row) -> Result<Vec<&'static str>, tokio_postgres::Error> {
    let mut own = Columns::default();
    own.push(row.try_get(0)?, row.try_get(1)?);
    let Columns { payload_at, kind, at, block: [bx, by, bz], point: [x, y, z] } = own;
    let mut wrong = Vec::new();
    let mut check = |name, is_right: bool| wrong.extend(Some(name).filter(|_| !is_right));
    check("payload", row.try_get::<_, bool>(3)? && is(row, 2, &payload_at)?);
    check("kind", is(row, 4, &kind)?);
    for (name, column, own) in [("at", 5, at), ("block_x", 6, bx), ("block_y", 7, by), ("block_z", 8, bz)] {
        check(name, is(row, column, &own)?);
    }
    for (name, column, own) in [("x", 9, x), ("y", 10, y), ("z", 11, z)] {
        check(name, is(row, column, &own)?);
    }
    Ok(wrong)
}

/// Whether a column has the value that it should have.
fn is<T: FromSqlOwned + PartialEq>(
    row: &Row,
    column: usize,
    own: &[Option<T>],
) -> Result<bool, tokio_postgres::Error> {
    Ok([row.try_get::<_, Option<T>>(column)?] == *own)
}
