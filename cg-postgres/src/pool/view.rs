//! Transactions that see one state.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use super::Pool;
use crate::error::Failed;
use crate::schema;
use crate::session::Session;

/// What has a connection of its own, and a limit on how many there are at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Snapshot,
    /// It ends by itself.
    Scan,
}

impl Pool {
    /// Begins a view with its first read, in one flight.
    pub(crate) async fn view<T, F>(
        self: &Arc<Self>,
        purpose: Purpose,
        first: impl Fn(Arc<Session>) -> F,
    ) -> Result<(View, T), Failed>
    where
        F: Future<Output = Result<T, Failed>>,
    {
        let deadline = self.deadline();
        let permit = self.permit(purpose, deadline).await?;
        loop {
            let session = self.own(deadline).await?;
            let begin = async {
                session.reading(&self.sql).await?;
                let begin = session.client.batch_execute(schema::BEGIN_VIEW);
                let (opened, rows) = tokio::join!(biased; begin, first(Arc::clone(&session)));
                opened?;
                rows
            };
            match self.answer(&session, begin, deadline).await {
                Ok(first) => {
                    let (pool, session) = (Arc::clone(self), Mutex::new(Some(session)));
                    return Ok((View { pool, session, _permit: permit }, first));
                }
                Err(failed) => {
                    session.abandon();
                    if !failed.may_pass() {
                        return Err(failed);
                    }
                    self.pause(failed, deadline).await?;
                }
            }
        }
    }

    /// Waits until another snapshot or scan may begin.
    pub(super) async fn permit(
        &self,
        purpose: Purpose,
        deadline: Instant,
    ) -> Result<OwnedSemaphorePermit, Failed> {
        let (limit, max, what) = match purpose {
            Purpose::Snapshot => {
                (&self.views, self.options.max_views, "views are open, which is the limit `max_views`")
            }
            Purpose::Scan => {
                (&self.scans, self.options.max_scans, "scans run, which is the limit `max_scans`")
            }
        };
        match timeout_at(deadline, Arc::clone(limit).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Failed::Lost(format!("{max} {what}"))),
        }
    }
}

/// A transaction that sees one state, on a connection of its own.
#[derive(Debug)]
pub(crate) struct View {
    pool: Arc<Pool>,
    /// `None` before it has begun, and after it has ended.
    session: Mutex<Option<Arc<Session>>>,
    _permit: OwnedSemaphorePermit,
}

impl View {
    /// Reads in the transaction. A read that the server refuses, as one of a damaged page, fails alone.
    pub(crate) async fn read<T, F>(self: &Arc<Self>, call: impl Fn(Arc<Session>) -> F) -> Result<T, Failed>
    where
        F: Future<Output = Result<T, Failed>>,
    {
        let session = self.session.lock().clone();
        let Some(session) = session else { return Err(ended()) };
        let deadline = self.pool.deadline();
        let mut answer = self.pool.answer(&session, call(Arc::clone(&session)), deadline).await;
        if matches!(&answer, Err(Failed::Refused(error)) if error.code() == "25P02") {
            // An earlier read failed. Nothing is sent between these two.
            let again = async {
                let go_on = session.client.batch_execute(schema::GO_ON);
                let (gone_on, answer) = tokio::join!(biased; go_on, call(Arc::clone(&session)));
                gone_on?;
                answer
            };
            answer = self.pool.answer(&session, again, deadline).await;
        }
        // The connection may be another view's by now.
        if self.session.lock().is_none() {
            return Err(ended());
        }
        if matches!(answer, Err(Failed::Lost(_))) {
            session.abandon();
        }
        answer
    }
}

fn ended() -> Failed {
    Failed::Lost("the view has ended".into())
}

impl View {
    /// Ends the transaction. Reads that wait for an answer get it.
    pub(crate) fn end(&self) {
        if let Some(session) = self.session.lock().take().filter(|session| session.is_open()) {
            // The next view of the connection begins after that.
            session.send("COMMIT");
            self.pool.idle.lock().push(session);
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.end();
    }
}
