//! A connection, its prepared statements, and what the server says beside its answers.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OnceCell;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_postgres::error::Severity;
use tokio_postgres::{AsyncMessage, Client, Connection, Statement};

use crate::error::Failed;
use crate::schema::{self, Sql};

/// A session of a server that takes writes.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client: Client,
    /// The major version of the server.
    pub(crate) major: u32,
    /// Whether the server was a standby when the session began.
    pub(crate) began_on_standby: bool,
    /// Begins with 1, and is higher after each failover.
    pub(crate) timeline: i64,
    /// The number of warnings that a commit may not be replicated.
    warnings: Arc<AtomicU64>,
    /// Calls that wait for an answer.
    pub(crate) in_flight: AtomicUsize,
    /// Whether it has the lock that tells other processes of its owner.
    pub(crate) has_lock: AtomicBool,
    /// When it last tried to take the lock.
    pub(crate) lock_asked: Mutex<Option<Instant>>,
    task: AbortHandle,
    reading: OnceCell<Reading>,
    writing: OnceCell<Writing>,
}

/// The statements of reads.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) get: Statement,
    pub(crate) has: Statement,
    pub(crate) slices: Statement,
    pub(crate) page: Statement,
    pub(crate) page_to: Statement,
    pub(crate) records: Statement,
    pub(crate) slices_mixed: Statement,
    pub(crate) records_page: Statement,
    pub(crate) head: Statement,
}

/// The statements of commits.
#[derive(Debug)]
pub(crate) struct Writing {
    pub(crate) commit: Statement,
    pub(crate) put: Statement,
    pub(crate) copy: Statement,
    pub(crate) standbys: Statement,
    pub(crate) put_records: Statement,
    pub(crate) make_tables: Statement,
}

impl Session {
    /// Starts the task that moves the messages of a connection.
    pub(crate) fn start<S, T>(client: Client, mut connection: Connection<S, T>) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let warnings = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&warnings);
        let task = tokio::spawn(async move {
            // The counter is raised before the answer that follows the warning is delivered.
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if is_warning_of_replication(&message) {
                    counted.fetch_add(1, Ordering::Release);
                }
            }
        });
        Self {
            client,
            major: 0,
            began_on_standby: false,
            timeline: 0,
            warnings,
            in_flight: AtomicUsize::new(0),
            has_lock: AtomicBool::new(false),
            lock_asked: Mutex::new(None),
            task: task.abort_handle(),
            reading: OnceCell::new(),
            writing: OnceCell::new(),
        }
    }

    /// The number of warnings so far that a commit may not be replicated.
    pub(crate) fn warnings(&self) -> u64 {
        self.warnings.load(Ordering::Acquire)
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.client.is_closed()
    }

    /// Closes the connection, and waits for no answer. What was sent may still arrive.
    pub(crate) fn abandon(&self) {
        self.task.abort();
    }

    /// The statements of reads, which the first call prepares in one flight.
    pub(crate) async fn reading(&self, sql: &Sql) -> Result<&Reading, Failed> {
        let prepare = || async {
            let prepare = async |template| self.client.prepare(&sql.text(template)).await;
            let (get, has, slices, page, page_to, head, records, slices_mixed, records_page) = tokio::try_join!(
                prepare(schema::GET),
                prepare(schema::HAS),
                prepare(schema::SLICES),
                prepare(schema::PAGE),
                prepare(schema::PAGE_TO),
                prepare(schema::HEAD),
                prepare(schema::RECORDS_OF),
                prepare(schema::SLICES_MIXED),
                prepare(schema::RECORDS_PAGE),
            )?;
            Ok(Reading { get, has, slices, page, page_to, records, slices_mixed, records_page, head })
        };
        self.reading.get_or_try_init(prepare).await
    }

    /// The statements of commits, which the first call prepares in one flight.
    pub(crate) async fn writing(&self, sql: &Sql) -> Result<&Writing, Failed> {
        let prepare = || async {
            let prepare = async |template| self.client.prepare(&sql.text(template)).await;
            let (commit, put, copy, put_records, make_tables, standbys) = tokio::try_join!(
                prepare(schema::COMMIT),
                prepare(schema::PUT),
                prepare(schema::COPY),
                prepare(schema::PUT_RECORDS),
                prepare(schema::MAKE_TABLES),
                prepare(schema::STANDBYS),
            )?;
            Ok(Writing { commit, put, copy, standbys, put_records, make_tables })
        };
        self.writing.get_or_try_init(prepare).await
    }

    /// Sends a statement, and does not wait for its answer.
    pub(crate) fn send(&self, statement: &str) {
        // The first poll sends it.
        let _sent = pin!(self.client.batch_execute(statement)).poll(&mut Context::from_waker(Waker::noop()));
    }
}

/// Whether the server says that it does not wait for other nodes any more.
fn is_warning_of_replication(message: &AsyncMessage) -> bool {
    let AsyncMessage::Notice(notice) = message else { return false };
    // 57P01 if the server is shut down meanwhile.
    let code = notice.code().code();
    notice.parsed_severity() == Some(Severity::Warning) && (code == "01000" || code.starts_with("57"))
}

/// Calls that are sent one after the other before the first answer.
pub(crate) async fn in_one_flight<T>(mut calls: Vec<Pin<Box<dyn Future<Output = T> + Send + '_>>>) -> Vec<T> {
    let mut answers: Vec<Option<T>> = calls.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut all = Poll::Ready(());
        for (call, answer) in calls.iter_mut().zip(&mut answers) {
            if answer.is_none() {
                match call.as_mut().poll(context) {
                    Poll::Ready(ready) => *answer = Some(ready),
                    Poll::Pending => all = Poll::Pending,
                }
            }
        }
        all
    })
    .await;
    answers.into_iter().flatten().collect()
}
