//! The head of a segment, and the call that finds out whether a commit is stored.

use std::sync::Arc;

use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::read::SEGMENT;
use crate::error::Failed;
use crate::pool::Pool;
use crate::schema;
use crate::session::Session;

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

/// Finds out what an owner has stored, on a new connection.
///
/// The call waits for the lock of the head's row, so a commit that runs has ended. It begins another session, so a
/// commit that arrives later is refused. It is itself a commit that waits for the other nodes, so what it finds is
/// replicated.
pub(crate) async fn again(
    pool: &Arc<Pool>,
    epoch: i64,
    deadline: Instant,
) -> Result<(Arc<Session>, Head), Unknown> {
    loop {
        let session = pool.look_until(deadline).await?;
        let failed = match again_over(pool, &session, epoch, deadline).await {
            Ok(Some(head)) => return Ok((session, head)),
            Ok(None) => {
                let who = owner(pool, &session, deadline).await?;
                return Err(Unknown::Fenced { who });
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

async fn again_over(
    pool: &Pool,
    session: &Session,
    epoch: i64,
    deadline: Instant,
) -> Result<Option<Head>, Failed> {
    let text = pool.sql.text(schema::AGAIN);
    let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(&SEGMENT, Type::INT8), (&epoch, Type::INT8)];
    let calls = async {
        // The lock only tells other processes of this one, so it does not matter whether it is free.
        let (_lock, rows) = tokio::join!(
            biased;
            lock(pool, session),
            session.client.query_typed(&text, &parameters),
        );
        Ok::<_, Failed>(rows?)
    };
    // The server may have warned of other things when the connection began.
    let warnings = session.warnings();
    let rows = pool.answer(session, calls, deadline).await?;
    if session.warnings() > warnings {
        return Err(Failed::Lost("the wait for another node was cancelled".into()));
    }
    rows.first().map(Head::of).transpose()
}

/// Takes the lock that tells other processes that this one writes. Returns whether it was free.
pub(crate) async fn lock(pool: &Pool, session: &Session) -> Result<bool, Failed> {
    let parameters: [(&(dyn ToSql + Sync), Type); 2] =
        [(&pool.sql.schema, Type::TEXT), (&SEGMENT, Type::INT8)];
    let rows = session.client.query_typed(schema::LOCK, &parameters).await?;
    Ok(rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or(false))
}

/// The head as it is now, which may not be replicated.
pub(crate) async fn head(pool: &Pool, session: &Session) -> Result<Option<Head>, Failed> {
    let text = pool.sql.text(schema::HEAD);
    let rows = session.client.query_typed(&text, &[(&SEGMENT, Type::INT8)]).await?;
    rows.first().map(Head::of).transpose()
}

/// The name of the owner, for messages.
async fn owner(pool: &Pool, session: &Session, deadline: Instant) -> Result<String, Failed> {
    let head = pool.answer(session, head(pool, session), deadline).await?;
    Ok(head.map_or_else(|| "no process: the head is gone".into(), |head| head.owner))
}
