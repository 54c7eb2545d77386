//! Whether all nodes hold the same rows.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::connection::Connection;
use super::lsn::Lsn;
use super::node::Node;

/// Every database that can hold tables of tests.
const DATABASES: &str = "SELECT datname FROM pg_database WHERE datallowconn AND NOT datistemplate ORDER BY 1";

/// Every table that is replicated, as it has to be written in a statement.
const TABLES: &str = "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c \
    JOIN pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND n.nspname NOT IN ('pg_catalog', 'information_schema') \
    ORDER BY 1";

/// How often the tables are locked anew where a transaction is in the way.
const TRIES: usize = 5;

/// How long a standby may take to replay what it has received.
const REPLAYED_WITHIN: Duration = Duration::from_secs(60);

/// Compares the number of rows and the sum of their hashes, table by table, and returns how many tables there are. Writers
/// wait meanwhile: every table is locked against them, so that all nodes can replay the same log to its end.
///
/// # Errors
/// A node has other rows, or does not replay in time, or a transaction keeps a table locked.
pub(super) fn compare(nodes: &[Node], primary: usize) -> Result<usize> {
    let databases = nodes[primary].ask()?.query(DATABASES)?;
    let databases: Vec<_> = databases.into_iter().flatten().flatten().collect();
    databases.iter().map(|database| compare_in(nodes, primary, database)).sum()
}

fn compare_in(nodes: &[Node], primary: usize, database: &str) -> Result<usize> {
    let (mut lock, tables) = locked(&nodes[primary], database)?;
    if tables.is_empty() {
        return Ok(0);
    }
    commit(&nodes[primary])?;
    let end: Lsn = lock.value("SELECT pg_current_wal_flush_lsn()")?.parse()?;
    let expected = digests(&mut lock, &tables)?;
    for node in nodes.iter().filter(|node| node.name != nodes[primary].name) {
        let mut connection = node.connect(database)?;
        wait_for(&mut connection, end).with_context(|| format!("{} does not follow", node.name))?;
        let found = digests(&mut connection, &tables)?;
        let difference = difference(&expected, &found);
        if let Some((table, expected, found)) = difference {
            bail!(
                "{} differs from {}: table {table} of {database} has {found} and there {expected}",
                node.name,
                nodes[primary].name
            );
        }
    }
    lock.query("ROLLBACK")?;
    Ok(tables.len())
}

/// Commits something on a primary, which waits for the quorum, and with it everything that was written before.
///
/// # Errors
/// The quorum does not answer in time.
pub(super) fn commit(primary: &Node) -> Result<()> {
    primary.ask()?.query("SELECT pg_logical_emit_message(true, 'xtask', '')").map(|_| ())
}

/// A transaction that locks every table of the database against writers, and the tables.
fn locked(primary: &Node, database: &str) -> Result<(Connection, Vec<String>)> {
    let mut tried = 0;
    loop {
        let mut connection = primary.connect(database)?;
        connection.query("SET lock_timeout = '5s'")?;
        let tables: Vec<_> = connection.query(TABLES)?.into_iter().flatten().flatten().collect();
        if tables.is_empty() {
            return Ok((connection, tables));
        }
        connection.query("BEGIN")?;
        tried += 1;
        match connection.query(&format!("LOCK TABLE {} IN SHARE MODE", tables.join(", "))) {
            Ok(_) => return Ok((connection, tables)),
            // A table was dropped, or a transaction had it for long: all are listed anew.
            Err(_) if tried < TRIES => {}
            Err(error) => return Err(error).with_context(|| format!("cannot lock the tables of {database}")),
        }
    }
}

/// Waits until a standby shows all that was written before a place in the log.
fn wait_for(connection: &mut Connection, end: Lsn) -> Result<()> {
    let started = Instant::now();
    loop {
        let replayed: Lsn = connection.value("SELECT pg_last_wal_replay_lsn()")?.parse()?;
        if replayed >= end {
            return Ok(());
        }
        if started.elapsed() > REPLAYED_WITHIN {
            bail!("it replayed up to {replayed} of {end} within {} s", REPLAYED_WITHIN.as_secs());
        }
        sleep(Duration::from_millis(10));
    }
}

/// What a table holds: the number of its rows and the sum of their hashes, which does not depend on their order.
fn digests(connection: &mut Connection, tables: &[String]) -> Result<BTreeMap<String, String>> {
    let digest = |table: &String| {
        let rows = format!(
            "SELECT count(*) || ' rows of hash ' || coalesce(sum(hashtextextended(t::text, 0)::numeric), 0) \
             FROM {table} t"
        );
        Ok((table.clone(), connection.value(&rows)?))
    };
    tables.iter().map(digest).collect()
}

/// The first table that differs, and what it holds here and there.
fn difference<'a>(
    expected: &'a BTreeMap<String, String>,
    found: &'a BTreeMap<String, String>,
) -> Option<(&'a str, &'a str, &'a str)> {
    expected.iter().find_map(|(table, digest)| {
        let other = found.get(table).map_or("nothing", String::as_str);
        (other != digest).then_some((table.as_str(), digest.as_str(), other))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::difference;

    #[test]
    fn the_first_table_that_differs_is_named_with_both_digests() {
        let tables = |rows: &[(&str, &str)]| -> BTreeMap<String, String> {
            rows.iter().map(|(table, digest)| ((*table).to_owned(), (*digest).to_owned())).collect()
        };
        let all = tables(&[("a", "1"), ("b", "2")]);
        assert_eq!(difference(&all, &all), None);
        assert_eq!(difference(&all, &tables(&[("a", "1"), ("b", "3")])), Some(("b", "2", "3")));
        assert_eq!(difference(&all, &tables(&[("b", "2")])), Some(("a", "1", "nothing")));
    }
}
