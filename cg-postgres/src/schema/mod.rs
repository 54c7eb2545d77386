//! The tables and functions of a world, and the statements of its sessions.

#[cfg(test)]
mod plans;

use std::fmt;

/// The version of the schema that this release makes.
pub(crate) const VERSION: i32 = 1;
/// The tables of version 1. Any other one in the schema is of other software, apart from [`RECORDS`] and its partitions.
pub(crate) const TABLES: [&str; 4] = ["cg_head", "cg_row", "cg_schema", "cg_table"];
/// The table whose partitions are the tables of records.
pub(crate) const RECORDS: &str = "records";

/// What a schema is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

const V1: &str = concat!(include_str!("v1.sql"), include_str!("records_v1.sql"));

/// The texts of statements for one schema.
#[derive(Debug)]
pub(crate) struct Sql {
    /// The name of the schema, not quoted.
    pub(crate) schema: String,
    quoted: String,
}

impl Sql {
    /// The texts for a schema.
    pub(crate) fn new(schema: String) -> Self {
        let quoted = Quoted(&schema).to_string();
        Self { schema, quoted }
    }

    /// Replaces `{schema}` by the quoted name, and `{name}` by the name as a literal.
    pub(crate) fn text(&self, template: &str) -> String {
        // The quotes of function bodies must not be in the name.
        // A name of 63 bytes has room for 8 of them.
        let quote = (0..64).map(|n| format!("$body{n}$")).find(|quote| !self.quoted.contains(quote.as_str()));
        let template = template.replace("$body$", &quote.unwrap_or_default());
        let literal = format!("'{}'", self.schema.replace('\'', "''"));
        // One after the other, a name could have the other placeholder in it.
        let mut parts = template.split("{schema}").map(|part| part.replace("{name}", &literal));
        let first = parts.next().unwrap_or_default();
        parts.fold(first, |text, part| text + &self.quoted + &part)
    }

    /// The statements that make all tables and functions in a schema that is there.
    pub(crate) fn tables(&self) -> String {
        let version = format!(
            "INSERT INTO {{schema}}.cg_schema VALUES ({VERSION}, {VERSION}, {VERSION}, 'cg-postgres {}');",
            env!("CARGO_PKG_VERSION")
        );
        self.text(&format!("{V1}{version}"))
    }
}

/// An identifier in double quotes.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.replace('"', "\"\""))
    }
}

/// The options of each session. The planner uses no other plan than nested loops over the primary key, whatever it
/// believes about the length of an array.
pub(crate) const SESSION: [(&str, &str); 18] = [
    ("search_path", "pg_catalog"),
    ("default_transaction_isolation", r"read\ committed"),
    ("default_transaction_read_only", "off"),
    ("synchronous_commit", "on"),
    // A warning is the only sign that a commit does not wait for another node any more.
    ("client_min_messages", "warning"),
    ("statement_timeout", "0"),
    ("lock_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
    ("jit", "off"),
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("enable_bitmapscan", "off"),
    // The server notices a dead host, and frees its lock, after 11 s.
    ("tcp_keepalives_idle", "5"),
    ("tcp_keepalives_interval", "2"),
    ("tcp_keepalives_count", "3"),
    ("tcp_user_timeout", "11000"),
];

/// The statement that each connection begins with: whether the server takes writes, and its timeline.
pub(crate) const NODE: &str = "SELECT pg_is_in_recovery(), CASE WHEN NOT pg_is_in_recovery() \
     THEN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int8 END";
/// An option that only newer servers know.
pub(crate) const NO_TRANSACTION_TIMEOUT: &str = "SET transaction_timeout = 0";

pub(crate) const GET: &str = "SELECT v FROM {schema}.cg_row WHERE seg = $1 AND fam = $2 AND k = $3";
/// Slices of rows, in groups of keys that differ in their last byte alone: the number of the group, that byte, and the bytes
/// of each row that is there. A group is one short scan of the index, also where it has no row. The scan stays one whatever
/// the statistics say: `OFFSET` keeps it from becoming a join, and every bound is one of the index.
macro_rules! slices {
    () => {
        "SELECT g.n, r.b, r.v \
         FROM unnest($2::int2[], $3::bytea[], $4::bytea[], $5::bytea[], $6::int4[], $7::int4[]) WITH ORDINALITY g(f, a, z, m, s, l, n), \
         LATERAL (SELECT get_byte('\\x00'::bytea || k, octet_length(k)) AS b, substring(v FROM g.s FOR g.l) AS v \
             FROM {schema}.cg_row WHERE seg = $1 AND fam = g.f AND k >= g.a AND k <= g.z AND octet_length(k) = octet_length(g.a) \
             AND get_bit(g.m, get_byte('\\x00'::bytea || k, octet_length(k))) = 1 OFFSET 0) r"
    };
}
pub(crate) const SLICES: &str = slices!();
/// Also rows of the family of records, with their place in the array and no byte. One statement sees one state.
pub(crate) const SLICES_MIXED: &str = concat!(
    slices!(),
    " UNION ALL SELECT n, NULL, v FROM {schema}.cg_records_1($1, $8::bytea[], $9::int4[], $10::int4[])"
);
pub(crate) const HAS: &str = "SELECT 1 FROM {schema}.cg_row WHERE seg = $1 AND fam = $2 AND k = $3";
/// At most `$4` rows, and none that begins after `$5` bytes of the page. A page of a range that is not empty has a row.
pub(crate) const PAGE: &str = "SELECT k, v FROM (SELECT k, v, sum(octet_length(v)) OVER (ORDER BY k) - octet_length(v) AS b \
     FROM (SELECT k, v FROM {schema}.cg_row WHERE seg = $1 AND fam = $2 AND k >= $3 ORDER BY k LIMIT $4) p) q \
     WHERE b < $5 ORDER BY k";
pub(crate) const PAGE_TO: &str = "SELECT k, v FROM (SELECT k, v, sum(octet_length(v)) OVER (ORDER BY k) - octet_length(v) AS b \
     FROM (SELECT k, v FROM {schema}.cg_row WHERE seg = $1 AND fam = $2 AND k >= $3 AND k < $6 ORDER BY k LIMIT $4) p) q \
     WHERE b < $5 ORDER BY k";
/// Rows of the family of records: the place of each in the array, and what it has.
pub(crate) const RECORDS_OF: &str =
    "SELECT n, v FROM {schema}.cg_records_1($1, $2::bytea[], $3::int4[], $4::int4[])";
/// As [`PAGE_TO`], of ranges of the family of records.
pub(crate) const RECORDS_PAGE: &str =
    "SELECT k, v FROM {schema}.cg_records_between_1($1, $2::bytea[], $3::bytea[], $4, $5)";
/// Whether there is no row, also not among those of the family of records in their tables.
pub(crate) const IS_EMPTY: &str = "SELECT NOT EXISTS (SELECT FROM {schema}.cg_row WHERE seg = $1) \
     AND NOT EXISTS (SELECT FROM {schema}.cg_records_between_1($1, ARRAY[''::bytea], ARRAY[$2::bytea], 1, 1))";
pub(crate) const COLUMNS: &str = "SELECT k, v, p, is_there, kind, at, block_x, block_y, block_z, x, y, z FROM {schema}.cg_columns_1($1, $2, $3, $4)";
pub(crate) const HEAD: &str =
    "SELECT epoch, session, seq, batches, token, owner FROM {schema}.cg_head WHERE seg = $1";
pub(crate) const COMMIT: &str = "SELECT {schema}.cg_commit_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)";
pub(crate) const PUT: &str = "SELECT {schema}.cg_put_1($1, $2, $3, $4)";
/// Costs the server a third of what [`PUT`] costs, and fails if a row is there.
pub(crate) const COPY: &str = "COPY {schema}.cg_row (seg, fam, k, v) FROM STDIN (FORMAT binary)";
pub(crate) const PUT_RECORDS: &str = "SELECT {schema}.cg_put_records_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";
pub(crate) const MAKE_TABLES: &str = "SELECT {schema}.cg_make_tables_1($1, $2, $3, $4, $5, $6, $7)";
pub(crate) const OPEN: &str =
    "SELECT epoch, session, seq, batches, token, owner FROM {schema}.cg_open_1($1, $2, $3, $4)";
pub(crate) const AGAIN: &str =
    "SELECT epoch, session, seq, batches, token, owner FROM {schema}.cg_again_1($1, $2)";
/// Sent behind a commit: a server whose answer is empty may have stopped waiting for another node before it. The
/// comment names the world of an idle session in `pg_stat_activity`.
pub(crate) const STANDBYS: &str = "SHOW synchronous_standby_names -- {schema}";
pub(crate) const LOCK: &str = "SELECT pg_try_advisory_lock(hashtextextended($1, $2))";
pub(crate) const UNLOCK: &str = "SELECT pg_advisory_unlock_all()";
/// The transaction of a scan or a snapshot.
pub(crate) const BEGIN_VIEW: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SAVEPOINT cg_sound";
/// Goes on with the transaction after a statement that failed, in the same state.
pub(crate) const GO_ON: &str = "ROLLBACK TO SAVEPOINT cg_sound";

#[cfg(test)]
mod tests {
    use super::Sql;

    #[test]
    fn names_are_quoted_wherever_they_are() {
        let sql = Sql::new("cg_a\"b$body0$'".into());
        let text = sql.text("CREATE FUNCTION {schema}.f() AS $body$ {schema} $body$");
        assert_eq!(
            text,
            "CREATE FUNCTION \"cg_a\"\"b$body0$'\".f() AS $body1$ \"cg_a\"\"b$body0$'\" $body1$"
        );
    }
}
