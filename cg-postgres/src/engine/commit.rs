//! Commits: one call of the server each, sent until it is known whether it is stored.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_postgres::Client;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::again::{Head, Unknown, again, lock, lock_if_due, still_waits};
use super::read::SEGMENT;
use crate::error::{Failed, Refusal, ServerError};
use crate::fold::{Folded, Rows};
use crate::pool::Pool;
use crate::records::{Columns, TablePart};
use crate::session::{Session, Writing, in_one_flight};

/// The number of times that it is asked again after a head of another owner or session, which turns out to be this one's.
const MAX_STRAYS: u32 = 3;
/// A call gets a second more for each of these bytes.
const SLOWEST_BYTES_PER_S: u64 = 1 << 20;
/// A call gets this for each of its tables, which may be new.
const SLOWEST_TABLE: Duration = Duration::from_millis(100);
/// The most tables that are made in one transaction.
const TABLES_AT_ONCE: usize = 50;

/// The right to write, and the connection for it.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    /// The owner's number, which no other one has.
    pub(crate) epoch: i64,
    /// Changes with each doubt.
    pub(crate) session: i64,
    /// The number of batches that are stored, and the newest commit.
    pub(crate) batches: i64,
    pub(crate) seq: i64,
    /// `None` if it was lost.
    pub(crate) connection: Option<Arc<Session>>,
}

/// The commit of some batches.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) folded: Folded,
    /// The newest commit after it.
    pub(crate) seq: i64,
    /// The number of its batches.
    pub(crate) count: i64,
    /// Identifies it.
    pub(crate) token: Uuid,
    pub(crate) len_bytes: u64,
}

impl Owner {
    pub(crate) fn of(head: &Head, connection: Arc<Session>) -> Self {
        let Head { epoch, session, batches, seq, .. } = *head;
        Self { epoch, session, batches, seq, connection: Some(connection) }
    }
}

/// How a commit ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// It is stored and replicated.
    Stored,
    /// A guard does not hold: its index, and the length and the version of the row that was found, in hexadecimal
    /// digits. Nothing is stored.
    Conflict { guard: usize, len_bytes: i64, version: String },
    /// Another owner took the rows.
    Fenced {
        who: String,
        /// Whether the commit may have been stored before.
        in_doubt: bool,
    },
    /// The server refused it. Nothing is stored.
    Refused(ServerError),
    /// It was not sent, or is known not to have been applied.
    NotStored(Failed),
    /// It is unknown whether it is stored.
    InDoubt(Failed),
    /// Acknowledged commits are gone, and it is not stored.
    WentBack(Refusal),
}

/// The answer to one call.
enum Answer {
    Stored,
    Stray,
    Doubt(Failed),
    Again(ServerError),
    /// It is rolled back: a row that was copied is there already.
    Exists,
    Ended(Ended),
}

/// Commits. Returns the owner as it is after that.
pub(crate) async fn commit(pool: Arc<Pool>, mut owner: Owner, call: Arc<Call>) -> (Owner, Ended) {
    let bytes = Duration::from_secs(call.len_bytes / SLOWEST_BYTES_PER_S);
    let tables = SLOWEST_TABLE * u32::try_from(call.folded.records.len()).unwrap_or(u32::MAX);
    let deadline = pool.deadline() + bytes + tables;
    // Whether a call that was sent may have been applied.
    let (mut in_doubt, mut strays) = (false, 0);
    let mut copies = !call.folded.loads.is_empty();
    let unknown = |in_doubt, failed| if in_doubt { Ended::InDoubt(failed) } else { Ended::NotStored(failed) };
    loop {
        let connection =
            match owner.connection.clone().filter(|connection| pool.connector.is_current(connection)) {
                Some(connection) => connection,
                // No call is in doubt, so any new connection will do.
                None => match connect(&pool, deadline).await {
                    Ok(connection) => Arc::clone(owner.connection.insert(connection)),
                    Err(failed) => return (owner, unknown(in_doubt, failed)),
                },
            };
        owner.connection = None;
        let answer = send(&pool, &connection, &owner, &call, copies, deadline).await;
        // A copy that fails leaves a transaction open, and perhaps answers that belong to no call.
        let is_usable = !copies || matches!(answer, Answer::Stored);
        if !is_usable {
            connection.abandon();
        }
        let kept = Some(Arc::clone(&connection)).filter(|_| is_usable);
        let (failed, answered) = match answer {
            Answer::Stored => {
                (owner.batches, owner.seq) = (owner.batches + call.count, call.seq);
                owner.connection = kept;
                return (owner, Ended::Stored);
            }
            Answer::Ended(ended) => {
                owner.connection = kept;
                return (owner, ended);
            }
            Answer::Exists => {
                copies = false;
                continue;
            }
            Answer::Again(refused) => {
                owner.connection = kept;
                // Rolled back: the same call is sent again.
                match pool.pause(Failed::Refused(refused.clone()), deadline).await {
                    Ok(()) => continue,
                    Err(_) => return (owner, Ended::Refused(refused)),
                }
            }
            Answer::Stray if strays < MAX_STRAYS => {
                strays += 1;
                (Failed::Lost("the head is of another owner or session".into()), kept)
            }
            Answer::Stray => {
                let message = "the head changes its owner or session again and again".into();
                return (owner, Ended::NotStored(Failed::Lost(message)));
            }
            Answer::Doubt(failed) => {
                in_doubt = true;
                connection.abandon();
                (failed, None)
            }
        };
        tracing::info!(%failed, "it is unknown whether a commit is stored: asking again");
        if Instant::now() >= deadline {
            return (owner, unknown(in_doubt, failed));
        }
        match again(&pool, answered, owner.epoch, deadline).await {
            Ok((connection, head)) => {
                owner.connection = Some(connection);
                owner.session = head.session;
                if head.token == Some(call.token) {
                    (owner.batches, owner.seq) = (head.batches, head.seq);
                    return (owner, Ended::Stored);
                }
                if let Some(went_back) = went_back(&head, owner.batches, owner.seq) {
                    return (owner, Ended::WentBack(went_back));
                }
                // A copy that arrives later is of an earlier session.
                in_doubt = false;
            }
            Err(Unknown::Fenced { who }) => return (owner, Ended::Fenced { who, in_doubt }),
            Err(Unknown::Failed(failed)) => return (owner, unknown(in_doubt, failed)),
        }
    }
}

async fn connect(pool: &Arc<Pool>, deadline: Instant) -> Result<Arc<Session>, Failed> {
    let connection = pool.look_until(deadline).await?;
    // The lock only tells other processes of this one, so it does not matter whether it is free.
    let _lock = pool.answer(&connection, lock(pool, &connection), deadline).await;
    Ok(connection)
}

/// Whether a head has fewer batches than were acknowledged, or other ones.
pub(crate) fn went_back(head: &Head, acknowledged: i64, floor: i64) -> Option<Refusal> {
    (head.batches != acknowledged).then_some(Refusal::WentBack {
        acknowledged,
        floor: floor as u64,
        found: head.batches,
        seq: head.seq as u64,
    })
}

/// Sends a commit once. Rows that are most likely new are copied, or put as the others.
async fn send(
    pool: &Pool,
    connection: &Session,
    owner: &Owner,
    call: &Call,
    copies: bool,
    deadline: Instant,
) -> Answer {
    let warnings = connection.warnings();
    let calls = async {
        let statements = connection.writing(&pool.sql).await?;
        if call.folded.records.len() > TABLES_AT_ONCE {
            make_tables(pool, connection, owner, &call.folded.records).await?;
        }
        if copies {
            copy(&connection.client, statements, owner, call).await?;
        }
        let (applied, waits, ()) = tokio::join!(
            biased;
            apply(pool, &connection.client, statements, owner, (call, copies)),
            still_waits(pool, connection.client.query(&statements.standbys, &[])),
            lock_if_due(pool, connection),
        );
        applied?;
        waits
    };
    match pool.answer(connection, calls, deadline).await {
        Ok(()) if connection.warnings() > warnings => {
            Answer::Doubt(Failed::Lost("the wait for another node was cancelled".into()))
        }
        Ok(()) => Answer::Stored,
        Err(Failed::Refused(refused)) if copies && refused.code() == "23505" => Answer::Exists,
        Err(Failed::Refused(refused)) => rolled_back(refused),
        Err(failed) => Answer::Doubt(failed),
    }
}

/// The end of a call that the server rolled back.
fn rolled_back(refused: ServerError) -> Answer {
    match refused.code() {
        // What it saw may be on no other node.
        "CG001" => Answer::Stray,
        "CG003" => {
            let mut details = refused.detail().splitn(3, ' ');
            let mut number = || details.next().and_then(|number| number.parse::<i64>().ok());
            let (Some(guard), Some(len_bytes)) = (number(), number()) else {
                return Answer::Ended(Ended::Refused(refused));
            };
            let version = details.next().unwrap_or_default().to_owned();
            Answer::Ended(Ended::Conflict { guard: guard as usize - 1, len_bytes, version })
        }
        // For want of locks, connections or memory too: they come back.
        "40001" | "40P01" | "53200" | "53300" | "53400" => Answer::Again(refused),
        // The server takes no writes any more.
        "25006" => Answer::Doubt(Failed::Refused(refused)),
        _ => Answer::Ended(Ended::Refused(refused)),
    }
}

/// A call of the transaction of a large commit.
type Part<'a> = Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send + 'a>>;

/// The parameters of a part of a table of records.
fn of_table<'a>(part: &'a TablePart, max_tables: &'a i64) -> [&'a (dyn ToSql + Sync); 17] {
    let Columns { payload_at, kind, at, block: [block_x, block_y, block_z], point: [x, y, z] } =
        &part.columns;
    [
        &SEGMENT,
        &part.from,
        &part.to,
        &part.key_len_bytes,
        &part.name,
        max_tables,
        &part.keys,
        &part.values,
        payload_at,
        kind,
        at,
        block_x,
        block_y,
        block_z,
        x,
        y,
        z,
    ]
}

/// Makes the tables of a commit that has many.
async fn make_tables(
    pool: &Pool,
    connection: &Session,
    owner: &Owner,
    records: &[TablePart],
) -> Result<(), Failed> {
    let make = &connection.writing(&pool.sql).await?.make_tables;
    let max_tables = i64::from(pool.options.max_record_tables);
    for parts in records.chunks(TABLES_AT_ONCE) {
        let from: Vec<_> = parts.iter().map(|part| &part.from).collect();
        let to: Vec<_> = parts.iter().map(|part| &part.to).collect();
        let key_len_bytes: Vec<_> = parts.iter().map(|part| part.key_len_bytes).collect();
        let name: Vec<_> = parts.iter().map(|part| &part.name).collect();
        let parameters: [&(dyn ToSql + Sync); 7] =
            [&SEGMENT, &owner.epoch, &from, &to, &key_len_bytes, &name, &max_tables];
        connection.client.execute(make, &parameters).await?;
    }
    Ok(())
}

/// The parameters of a commit, with the first part of the rows that are put.
fn of_head<'a>(owner: &'a Owner, call: &'a Call, first: &'a Rows) -> [&'a (dyn ToSql + Sync); 19] {
    let Folded { guards, ranges, deletes, newest, .. } = &call.folded;
    [
        &SEGMENT,
        &owner.epoch,
        &owner.session,
        &owner.batches,
        &call.seq,
        &call.count,
        &call.token,
        &guards.families,
        &guards.keys,
        &guards.values,
        &ranges.families,
        &ranges.keys,
        &ranges.values,
        &deletes.families,
        &deletes.keys,
        newest,
        &first.families,
        &first.keys,
        &first.values,
    ]
}

/// Begins the transaction of a commit, and copies the rows that are most likely new. Rows are sent after the server took
/// the commit: then no answer to them is that of an ended transaction.
async fn copy(
    client: &Client,
    statements: &Writing,
    owner: &Owner,
    call: &Call,
) -> Result<(), tokio_postgres::Error> {
    let none = Rows::default();
    let head = of_head(owner, call, call.folded.puts.first().unwrap_or(&none));
    let calls: Vec<Part<'_>> = vec![
        Box::pin(client.batch_execute("BEGIN")),
        Box::pin(async { client.execute(&statements.commit, &head).await.map(drop) }),
    ];
    in_one_flight(calls).await.into_iter().collect::<Result<(), _>>()?;
    let sink = client.copy_in(&statements.copy).await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &[Type::INT8, Type::INT2, Type::BYTEA, Type::BYTEA]));
    for Rows { families, keys, values } in &call.folded.loads {
        for ((family, key), value) in families.iter().zip(keys).zip(values) {
            writer.as_mut().write(&[&SEGMENT, family, key, value]).await?;
        }
    }
    writer.finish().await.map(drop)
}

/// Applies a commit: one call, or a transaction in parts if it is large or has records. One that copies is begun.
async fn apply(
    pool: &Pool,
    client: &Client,
    statements: &Writing,
    owner: &Owner,
    (call, is_begun): (&Call, bool),
) -> Result<(), tokio_postgres::Error> {
    let Folded { puts, loads, records, .. } = &call.folded;
    let none = Rows::default();
    let (first, rest) = puts.split_first().unwrap_or((&none, &[]));
    let loads = if is_begun { &[] } else { &loads[..] };
    let head = of_head(owner, call, first);
    if !is_begun && rest.is_empty() && loads.is_empty() && records.is_empty() {
        client.execute(&statements.commit, &head).await?;
        return Ok(());
    }
    let parts: Vec<[&(dyn ToSql + Sync); 4]> = rest
        .iter()
        .chain(loads)
        .map(|part| [&SEGMENT as _, &part.families as _, &part.keys as _, &part.values as _])
        .collect();
    let max_tables = i64::from(pool.options.max_record_tables);
    let tables: Vec<_> = records.iter().map(|part| of_table(part, &max_tables)).collect();
    let mut calls: Vec<Part<'_>> = Vec::new();
    if !is_begun {
        calls.push(Box::pin(client.batch_execute("BEGIN")));
        calls.push(Box::pin(async { client.execute(&statements.commit, &head).await.map(drop) }));
    }
    for part in &parts {
        calls.push(Box::pin(async { client.execute(&statements.put, part).await.map(drop) }));
    }
    for table in &tables {
        calls.push(Box::pin(async { client.execute(&statements.put_records, table).await.map(drop) }));
    }
    calls.push(Box::pin(client.batch_execute("COMMIT")));
    // After the first refusal the server refuses the rest, and rolls back instead of committing.
    in_one_flight(calls).await.into_iter().collect()
}
