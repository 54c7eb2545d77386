//! The head of a segment, and the call that finds out whether a commit is stored.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::read::SEGMENT;
use crate::error::Failed;
use crate::pool::Pool;
use crate::schema;
use crate::session::Session;

/// An owner without its lock tries to take it again after this time.
const LOCK_AGAIN: Duration = Duration::from_secs(2);

/// The head of a segment: its owner and its newest commit.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub(crate) epoch: i64,
    pub(crate) session: i64,
    pub(crate) seq: i64,
    pub(crate) batches: i64,
    /// The token of the newest call that committed.
    pub(crate) token: Option<Uuid>,
    pub(crate) owner: String,
}

impl Head {
    pub(crate) fn of(row: &Row) -> Result<Self, Failed> {
        Ok(Self {
            epoch: row.try_get(0)?,
            session: row.try_get(1)?,
            seq: row.try_get(2)?,
            batches: row.try_get(3)?,
            token: row.try_get(4)?,
            owner: row.try_get(5)?,
        })
    }
}

/// Why an owner does not know what is stored.
#[derive(Debug)]
pub(crate) enum Unknown {
    /// Another owner took the rows.
    Fenced {
        who: String,
    },
    Failed(Failed),
}

impl From<Failed> for Unknown {
    fn from(failed: Failed) -> Self {
        Self::Failed(failed)
    }
}

/// Finds out what an owner has stored, over a connection whose calls are all answered, or a new one.
///
/// The call waits for the lock of the head's row, so a commit that runs has ended. It begins another session, so a
/// commit that arrives later is refused. It is itself a commit that waits for the other nodes, so what it finds is
/// replicated: also that there is another owner.
pub(crate) async fn again(
    pool: &Arc<Pool>,
    mut answered: Option<Arc<Session>>,
    epoch: i64,
    deadline: Instant,
) -> Result<(Arc<Session>, Head), Unknown> {
    loop {
        let session = match answered.take() {
            Some(session) => session,
            None => pool.look_until(deadline).await?,
        };
        let failed = match again_over(pool, &session, epoch, deadline).await {
            Ok(Some(head)) if head.epoch == epoch => return Ok((session, head)),
            Ok(head) => {
                let gone = || "no process: the head is gone".into();
                return Err(Unknown::Fenced { who: head.map_or_else(gone, |head| head.owner) });
            }
            Err(failed) => failed,
        };
        session.abandon();
        if !failed.may_pass() {
            return Err(failed.into());
        }
        pool.pause(failed, deadline).await?;
    }
}

/// Finds out whether an owner still is the owner, over its connection. Returns the connection and the head of its next
/// session if it had to ask [`again`], because another owner was seen that may be on one node alone.
pub(crate) async fn look(
    pool: &Arc<Pool>,
    connection: Arc<Session>,
    epoch: i64,
) -> Result<Option<(Arc<Session>, Head)>, Unknown> {
    let deadline = pool.deadline();
    let calls = async {
        let (head, ()) = tokio::join!(biased; head(pool, &connection), lock_if_due(pool, &connection));
        head
    };
    match pool.answer(&connection, calls, deadline).await? {
        Some(head) if head.epoch != epoch => again(pool, Some(connection), epoch, deadline).await.map(Some),
        _ => Ok(None),
    }
}

/// Finds out, behind a commit and in its flight, whether the server still waits for other nodes. A reload of its settings
/// releases the commits that wait when it empties that of the nodes, and says so to none of them; the server reads its
/// settings before it answers this.
///
/// # Errors
/// [`Failed::Lost`] if it waits for none: the commit before this may be on no other node.
pub(crate) async fn still_waits(
    pool: &Pool,
    rows: impl Future<Output = Result<Vec<Row>, tokio_postgres::Error>>,
) -> Result<(), Failed> {
    if !pool.needs_quorum() {
        return Ok(());
    }
    let rows = rows.await?;
    let names: &str = rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
    if names.is_empty() {
        let message = "synchronous_standby_names is empty since the commit began to wait";
        return Err(Failed::Lost(message.into()));
    }
    Ok(())
}

async fn again_over(
    pool: &Pool,
    session: &Session,
    epoch: i64,
    deadline: Instant,
) -> Result<Option<Head>, Failed> {
    let (text, standbys) = (pool.sql.text(schema::AGAIN), pool.sql.text(schema::STANDBYS));
    let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(&SEGMENT, Type::INT8), (&epoch, Type::INT8)];
    let calls = async {
        // The lock only tells other processes of this one, so it does not matter whether it is free.
        let (_lock, rows, waits) = tokio::join!(
            biased;
            lock(pool, session),
            session.client.query_typed(&text, &parameters),
            still_waits(pool, session.client.query_typed(&standbys, &[])),
        );
        let rows = rows?;
        waits?;
        Ok::<_, Failed>(rows)
    };
    // The server may have warned of other things when the connection began.
    let warnings = session.warnings();
    let rows = pool.answer(session, calls, deadline).await?;
    if session.warnings() > warnings {
        return Err(Failed::Lost("the wait for another node was cancelled".into()));
    }
    rows.first().map(Head::of).transpose()
}

/// Takes the lock that tells other processes that this one writes, unless the session has it. Returns whether it has it
/// then.
pub(crate) async fn lock(pool: &Pool, session: &Session) -> Result<bool, Failed> {
    if session.has_lock.load(Ordering::Acquire) {
        return Ok(true);
    }
    *session.lock_asked.lock() = Some(Instant::now());
    let parameters: [(&(dyn ToSql + Sync), Type); 2] =
        [(&pool.sql.schema, Type::TEXT), (&SEGMENT, Type::INT8)];
    let rows = session.client.query_typed(schema::LOCK, &parameters).await?;
    let is_free = rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or(false);
    session.has_lock.store(is_free, Ordering::Release);
    Ok(is_free)
}

/// Takes the lock if it was not free some time ago. Costs nothing otherwise.
pub(crate) async fn lock_if_due(pool: &Pool, session: &Session) {
    let asked = *session.lock_asked.lock();
    if asked.is_none_or(|asked| asked.elapsed() >= LOCK_AGAIN)
        && let Err(failed) = lock(pool, session).await
    {
        tracing::debug!(%failed, "the lock is not taken");
    }
}

/// The head as it is now, which may not be replicated.
pub(crate) async fn head(pool: &Pool, session: &Session) -> Result<Option<Head>, Failed> {
    let text = pool.sql.text(schema::HEAD);
    let rows = session.client.query_typed(&text, &[(&SEGMENT, Type::INT8)]).await?;
    rows.first().map(Head::of).transpose()
}
