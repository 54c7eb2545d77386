//! The schema of a world as it is in the database, and what a role may do with it.

use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::error::{Failed, Refusal};
use crate::schema::{Access, RECORDS, Sql, TABLES, VERSION};
use crate::session::Session;

/// A row about a schema, also about one that is not there.
const INSPECT: &str = "SELECT current_user::text, current_setting('synchronous_standby_names'), n.oid IS NOT NULL, \
     coalesce((SELECT array_agg(c.relname::text ORDER BY c.relname) FROM pg_class c \
         WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND NOT (c.relkind = 'p' AND c.relname = $4 \
             AND EXISTS (SELECT FROM pg_class t WHERE t.relnamespace = n.oid AND t.relname = 'cg_table')) \
         AND NOT EXISTS (SELECT FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent \
             WHERE i.inhrelid = c.oid AND p.relnamespace = n.oid AND p.relname = $4)), '{}'), \
     coalesce((SELECT array_agg(p || ' on ' || c.relname ORDER BY c.relname, p) FROM pg_class c, unnest($2::text[]) p \
         WHERE c.relnamespace = n.oid AND (c.relname = ANY ($3) OR c.relispartition AND c.relkind = 'r') AND NOT has_table_privilege(c.oid, p)), '{}'), \
     coalesce((SELECT array_agg(p.proname::text ORDER BY p.proname) FROM pg_proc p \
         WHERE p.pronamespace = n.oid AND NOT has_function_privilege(p.oid, 'EXECUTE')), '{}'), \
     coalesce((SELECT array_agg(c.relname::text ORDER BY c.relname) FROM pg_class c \
         WHERE c.relnamespace = n.oid AND (c.relname = $4 OR c.relispartition AND c.relkind = 'r') \
         AND NOT pg_has_role(c.relowner, 'USAGE')), '{}'), \
     coalesce(pg_has_role(n.nspowner, 'USAGE'), false), \
     coalesce(has_schema_privilege(n.oid, 'USAGE'), false), \
     has_database_privilege(current_database(), 'CREATE') \
     FROM (VALUES (1)) one(n) LEFT JOIN pg_namespace n ON n.nspname = $1";
/// Also the partitions of `records` that the engine did not make, and `records` itself if it did not; then those that it
/// made and that are gone.
const RELEASE: &str = "SELECT version, min_reader, min_writer, made_by, \
     ARRAY(SELECT c.relname::text FROM pg_class p JOIN pg_namespace n ON n.oid = p.relnamespace \
         JOIN pg_inherits i ON i.inhparent = p.oid JOIN pg_class c ON c.oid = i.inhrelid \
         WHERE n.nspname = {name} AND p.relname = $1 AND NOT EXISTS (SELECT FROM {schema}.cg_table t WHERE t.name = c.relname) \
         UNION ALL SELECT p.relname FROM pg_class p JOIN pg_namespace n ON n.oid = p.relnamespace \
         WHERE n.nspname = {name} AND p.relname = $1 AND NOT EXISTS (SELECT FROM {schema}.cg_table t WHERE t.name IS NOT NULL) \
         ORDER BY 1), \
     ARRAY(SELECT t.name FROM {schema}.cg_table t WHERE t.name IS NOT NULL AND NOT EXISTS (SELECT FROM pg_namespace n \
         JOIN pg_class c ON c.relnamespace = n.oid JOIN pg_inherits i ON i.inhrelid = c.oid JOIN pg_class p ON p.oid = i.inhparent \
         WHERE n.nspname = {name} AND c.relname = t.name AND p.relname = $1) ORDER BY 1) FROM {schema}.cg_schema";
/// The rights on the tables.
const READING: [&str; 1] = ["SELECT"];
/// The functions that reads call.
const READ_FUNCTIONS: [&str; 3] = ["cg_columns_1", "cg_records_1", "cg_records_between_1"];

/// A schema, which may not be there.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an answer of the server")]
pub(crate) struct Schema {
    role: String,
    /// The nodes that the server waits for; empty if it waits for none.
    pub(crate) standby_names: String,
    pub(crate) is_there: bool,
    /// The names of its tables and views, without `records` and its partitions, sorted.
    pub(crate) tables: Vec<String>,
    /// Rights on the tables that the role lacks for reading.
    missing: Vec<String>,
    /// Functions that the role may not call.
    barred: Vec<String>,
    /// Tables of records that the role does not own.
    not_owned: Vec<String>,
    is_owned: bool,
    is_usable: bool,
    may_make: bool,
}

impl Schema {
    /// Asks the server. Needs no right.
    pub(crate) async fn inspect(sql: &Sql, session: &Session) -> Result<Self, Failed> {
        let (reading, tables) = (&READING[..], &TABLES[..]);
        let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
            (&sql.schema, Type::TEXT),
            (&reading, Type::TEXT_ARRAY),
            (&tables, Type::TEXT_ARRAY),
            (&RECORDS, Type::TEXT),
        ];
        let rows = session.client.query_typed(INSPECT, &parameters).await?;
        let Some(row) = rows.first() else { return Err(Failed::Lost("the server has no catalog".into())) };
        Ok(Self {
            role: row.try_get(0)?,
            standby_names: row.try_get(1)?,
            is_there: row.try_get(2)?,
            tables: row.try_get(3)?,
            missing: row.try_get(4)?,
            barred: row.try_get(5)?,
            not_owned: row.try_get(6)?,
            is_owned: row.try_get(7)?,
            is_usable: row.try_get(8)?,
            may_make: row.try_get(9)?,
        })
    }

    /// Refuses tables that no release makes, and a part of the tables of a release.
    pub(crate) fn check_foreign(&self, sql: &Sql) -> Result<(), Failed> {
        let is_ours = |table: &&String| TABLES.contains(&table.as_str());
        let foreign: Vec<_> = self.tables.iter().filter(|table| !is_ours(table)).cloned().collect();
        let own = self.tables.len() - foreign.len();
        if foreign.is_empty() && (own == 0 || own == TABLES.len()) {
            return Ok(());
        }
        let tables = if foreign.is_empty() { self.tables.clone() } else { foreign };
        Err(Failed::Unfit(Refusal::ForeignTables { schema: sql.schema.clone(), tables }))
    }

    /// Refuses a role that may not make the schema and its tables.
    pub(crate) fn check_rights_to_make(&self, sql: &Sql) -> Result<(), Failed> {
        if self.is_there {
            let own = format!("the ownership of the schema {}", sql.schema);
            self.lacks(if self.is_owned { Vec::new() } else { vec![own] })
        } else {
            let make = "CREATE on the database".to_owned();
            self.lacks(if self.may_make { Vec::new() } else { vec![make] })
        }
    }

    /// Refuses a role that may not read, or is not the owner that may write.
    pub(crate) fn check_rights(&self, sql: &Sql, access: Access) -> Result<(), Failed> {
        let mut missing = Vec::new();
        if access == Access::Write && !self.is_owned {
            missing.push(format!("the ownership of the schema {}", sql.schema));
        }
        if !self.is_usable {
            missing.push(format!("USAGE on the schema {}", sql.schema));
        }
        missing.extend(self.missing.iter().cloned());
        let is_called = |name: &&String| access == Access::Write || READ_FUNCTIONS.contains(&name.as_str());
        let barred = self.barred.iter().filter(is_called);
        missing.extend(barred.map(|name| format!("EXECUTE on the function {name}")));
        if access == Access::Write {
            let not_owned = self.not_owned.iter();
            missing.extend(not_owned.map(|name| format!("the ownership of the table {name}")));
        }
        self.lacks(missing)
    }

    fn lacks(&self, missing: Vec<String>) -> Result<(), Failed> {
        let role = self.role.clone();
        if missing.is_empty() { Ok(()) } else { Err(Failed::Unfit(Refusal::Rights { role, missing })) }
    }
}

/// What the schema of a world says of the releases that understand it, and of its tables of records.
#[derive(Debug)]
pub(crate) struct Release(Vec<Row>);

impl Release {
    /// Asks the server, which refuses it if the schema is of other software.
    pub(crate) async fn inspect(sql: &Sql, session: &Session) -> Result<Self, Failed> {
        Ok(Self(session.client.query_typed(&sql.text(RELEASE), &[(&RECORDS, Type::TEXT)]).await?))
    }

    /// Refuses a schema that only other releases understand. Returns the tables of records that are gone.
    pub(crate) fn check(&self, sql: &Sql, access: Access) -> Result<Vec<String>, Failed> {
        let foreign = |tables| Failed::Unfit(Refusal::ForeignTables { schema: sql.schema.clone(), tables });
        let [row] = &self.0[..] else {
            return Err(foreign(vec![format!("cg_schema with {} rows", self.0.len())]));
        };
        let (version, made_by) = (row.try_get::<_, i32>(0)?, row.try_get::<_, String>(3)?);
        let (access, needed) = match access {
            Access::Read => ("reading", row.try_get::<_, i32>(1)?),
            Access::Write => ("writing", row.try_get::<_, i32>(2)?),
        };
        if VERSION < needed || version < 1 {
            return Err(Failed::Unfit(Refusal::Release { version, made_by, access, needed, own: VERSION }));
        }
        let tables: Vec<String> = row.try_get(4)?;
        if !tables.is_empty() {
            return Err(foreign(tables));
        }
        Ok(row.try_get(5)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_owns_the_tables_of_records() {
        let found = Schema {
            role: "second".into(),
            standby_names: String::new(),
            is_there: true,
            tables: Vec::new(),
            missing: Vec::new(),
            barred: Vec::new(),
            not_owned: vec!["records".into(), "records_0_0_0_0".into()],
            is_owned: true,
            is_usable: true,
            may_make: false,
        };
        let sql = Sql::new("cg_world".into());
        assert!(found.check_rights(&sql, Access::Read).is_ok());
        let refused = found.check_rights(&sql, Access::Write).expect_err("it cannot make a table of records");
        assert_eq!(
            refused.to_string(),
            "the role second lacks the ownership of the table records, the ownership of the table records_0_0_0_0"
        );
    }
}
