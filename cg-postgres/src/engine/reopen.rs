//! Opening again: the same owner, in a new session.

use std::sync::Arc;

use cg_engine::{Engine as _, EngineError, Fence, Found, Reopened};
use parking_lot::Mutex;

use super::PostgresEngine;
use super::again::{self, Head, Unknown};
use super::commit::{Owner, went_back};
use crate::error::{Failed, refused};
use crate::pool::Pool;
use crate::schema::UNLOCK;

/// The head, for a reader.
fn newest(pool: &Arc<Pool>) -> Result<Head, EngineError> {
    let asked = Arc::clone(pool);
    let head = pool.wait(async move {
        let read = asked.read(|session| {
            let asked = Arc::clone(&asked);
            async move { again::head(&asked, &session).await }
        });
        read.await?.ok_or_else(|| Failed::Lost("the schema has no head".into()))
    });
    head.map_err(|failed| failed.into_engine_error("open again"))
}

/// Opens the rows of an owner again: finds out what is stored, in a new session of the same owner.
pub(super) fn reopen(
    pool: &Arc<Pool>,
    epoch: i64,
    owner: &Mutex<Owner>,
    expects: &cg_engine::Expects<'_>,
) -> Result<Reopened, EngineError> {
    let mut owner = owner.lock();
    let (asked, old) = (Arc::clone(pool), owner.connection.take());
    let found = pool.wait(async move {
        let deadline = asked.deadline();
        if let Some(old) = old.filter(|old| old.is_open()) {
            // The next connection takes the lock.
            let _unlocked = asked.answer(&old, old.client.batch_execute(UNLOCK), deadline).await;
        }
        Ok(again::again(&asked, None, epoch, deadline).await)
    });
    let (connection, head) = match found {
        Ok(Ok(found)) => found,
        Ok(Err(Unknown::Fenced { who })) => {
            return Err(EngineError::Fenced { why: Fence::Owner { who } });
        }
        // The server does not wait for another node, or it has another reason to take no commits. It may answer reads.
        Ok(Err(Unknown::Failed(failed))) | Err(failed) => {
            let cause = failed.into_engine_error("open again");
            let Ok(head) = newest(pool) else { return Err(cause) };
            let engine = Box::new(PostgresEngine::new(Arc::clone(pool), &head, None));
            return Ok(Reopened::Reader { engine, cause });
        }
    };
    owner.connection = Some(Arc::clone(&connection));
    let reader = PostgresEngine::new(Arc::clone(pool), &head, None);
    if head.batches < owner.batches
        && let Some(refusal) = went_back(&head, owner.batches, owner.seq)
    {
        let cause = refused("open again", refusal);
        return Ok(Reopened::Reader { engine: Box::new(reader), cause });
    }
    if expects(&Found { last_commit: reader.last_commit(), rows: &reader })? {
        let owner = Owner::of(&head, connection);
        let engine = PostgresEngine::new(Arc::clone(pool), &head, Some(owner));
        Ok(Reopened::Writable(Box::new(engine)))
    } else {
        Ok(Reopened::Unexpected(Box::new(reader)))
    }
}
