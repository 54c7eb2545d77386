//! The size of the rows, from the statistics of the server.

use cg_engine::{EngineError, Family, FamilyUsage, Usage};
use tokio_postgres::types::{ToSql, Type};

use super::PostgresEngine;
use super::read::{SEGMENT, Source, unexpected};
use crate::fold::number;
use crate::schema::RECORDS;
use crate::session::Session;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The estimated number of rows of the segment, the bytes of the table with its index, and the shares of the families: those
/// that are frequent, and those that are among the others. Then the rows and bytes of the tables of records; a row of a table
/// without statistics is taken for 400 bytes long. Segments are few, so statistics name each.
const USAGE: &str = "SELECT c.reltuples::float8 * g.share, (pg_total_relation_size(c.oid) * g.share)::int8, \
     s.most_common_vals::text::int2[], s.most_common_freqs::float8[], s.histogram_bounds::text::int2[], \
     t.row_count, t.bytes FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     LEFT JOIN pg_stats s ON s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = 'fam' \
     LEFT JOIN pg_stats a ON a.schemaname = n.nspname AND a.tablename = c.relname AND a.attname = 'seg' \
     CROSS JOIN LATERAL (SELECT CASE WHEN a.most_common_vals IS NULL THEN 1 ELSE coalesce((SELECT u.f FROM \
         unnest(a.most_common_vals::text::int8[], a.most_common_freqs::float8[]) u(v, f) WHERE u.v = $3), 0) END AS share) g \
     CROSS JOIN (SELECT coalesce(sum(h.share * CASE WHEN r.reltuples < 0 THEN pg_relation_size(r.oid) / 400.0 ELSE r.reltuples END), 0)::float8 \
         AS row_count, coalesce(sum(h.share * pg_total_relation_size(r.oid)), 0)::int8 AS bytes \
         FROM pg_class p JOIN pg_namespace m ON m.oid = p.relnamespace JOIN pg_inherits i ON i.inhparent = p.oid \
         JOIN pg_class r ON r.oid = i.inhrelid \
         LEFT JOIN pg_stats b ON b.schemaname = m.nspname AND b.tablename = r.relname AND b.attname = 'seg' \
         CROSS JOIN LATERAL (SELECT CASE WHEN b.most_common_vals IS NULL THEN 1 ELSE coalesce((SELECT u.f FROM \
             unnest(b.most_common_vals::text::int8[], b.most_common_freqs::float8[]) u(v, f) WHERE u.v = $3), 0) END AS share) h \
         WHERE m.nspname = $1 AND p.relname = $2 AND p.relkind = 'p') t \
     WHERE n.nspname = $1 AND c.relname = 'cg_row'";
/// The tables of records without statistics, and those whose rows may have doubled since.
const STALE: &str = "SELECT string_agg(format('%I.%I', n.nspname, c.relname), ', ') \
     FROM pg_class p JOIN pg_namespace n ON n.oid = p.relnamespace JOIN pg_inherits i ON i.inhparent = p.oid \
     JOIN pg_class c ON c.oid = i.inhrelid WHERE n.nspname = $1 AND p.relname = $2 \
     AND (c.reltuples < 0 OR pg_stat_get_mod_since_analyze(c.oid) > c.reltuples)";
/// The rows that may be put before the statistics are made again in a small table.
const FEW_ROWS: i64 = 1000;

impl Source {
    /// The size of the rows. Counts none of them.
    pub(crate) fn usage(&self) -> Result<Usage, EngineError> {
        let row = self.ask(None, |pool, session| async move {
            let parameters: [(&(dyn ToSql + Sync), Type); 3] =
                [(&pool.sql.schema, Type::TEXT), (&RECORDS, Type::TEXT), (&SEGMENT, Type::INT8)];
            Ok(session.client.query_typed(USAGE, &parameters).await?.into_iter().next())
        });
        let row = row.map_err(|error| error.engine_error())?;
        let mut shares = BTreeMap::new();
        let (mut rows, mut bytes) = (0.0_f64, 0_i64);
        let mut in_tables = (0.0_f64, 0_i64);
        if let Some(row) = row {
            rows = row.try_get::<_, f64>(0).map_err(unexpected)?.max(0.0);
            bytes = row.try_get(1).map_err(unexpected)?;
            in_tables = (row.try_get(5).map_err(unexpected)?, row.try_get(6).map_err(unexpected)?);
            let frequent: Option<Vec<i16>> = row.try_get(2).map_err(unexpected)?;
            let frequencies: Option<Vec<f64>> = row.try_get(3).map_err(unexpected)?;
            shares.extend(frequent.unwrap_or_default().into_iter().zip(frequencies.unwrap_or_default()));
            let mut others: Vec<i16> =
                row.try_get::<_, Option<_>>(4).map_err(unexpected)?.unwrap_or_default();
            others.dedup();
            others.retain(|family| !shares.contains_key(family));
            let rest = (1.0 - shares.values().sum::<f64>()).max(0.0) / others.len().max(1) as f64;
            shares.extend(others.into_iter().map(|family| (family, rest)));
        }
        let family = |family: Family| {
            let share = shares.get(&number(family)).copied();
            let mut usage = FamilyUsage::new(family);
            usage.row_count = share.map_or(0, |share| ((rows * share).round() as u64).max(1));
            usage.table_bytes = (bytes as f64 * share.unwrap_or(0.0)) as u64;
            if family == Family::Record {
                usage.row_count += in_tables.0.round() as u64;
                usage.table_bytes += in_tables.1 as u64;
            }
            usage
        };
        let mut usage = Usage::default();
        usage.families = Family::ALL.into_iter().map(family).collect();
        Ok(usage)
    }
}

impl PostgresEngine {
    /// Has the server make its statistics again if the rows may have doubled.
    pub(super) fn analyze(&self) {
        let put = self.rows_put.load(Ordering::Relaxed);
        let known = self
            .source
            .usage()
            .map_or(0, |usage| usage.families.iter().map(|family| family.row_count as i64).sum::<i64>());
        if put == 0 || (known > FEW_ROWS && put < known) {
            return;
        }
        let pool = Arc::clone(&self.source.pool);
        let analyzed = self.source.pool.wait(async move {
            let own = Arc::clone(&pool);
            // Readers would wait for it on a shared connection.
            let analyze = |session: Arc<Session>| async move {
                session.client.batch_execute(&own.sql.text("ANALYZE {schema}.cg_row")).await?;
                let parameters: [(&(dyn ToSql + Sync), Type); 2] =
                    [(&own.sql.schema, Type::TEXT), (&RECORDS, Type::TEXT)];
                let stale = session.client.query_typed(STALE, &parameters).await?;
                let tables: Option<&str> = stale.first().map(|row| row.try_get(0)).transpose()?.flatten();
                match tables {
                    Some(tables) => Ok(session.client.batch_execute(&format!("ANALYZE {tables}")).await?),
                    None => Ok(()),
                }
            };
            pool.aside(analyze).await
        });
        match analyzed {
            Ok(()) => {
                self.rows_put.fetch_sub(put, Ordering::Relaxed);
            }
            // Statistics are estimates anyway.
            Err(failed) => tracing::debug!(%failed, "the statistics are old"),
        }
    }
}
