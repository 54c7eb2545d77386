//! The connections of an engine: some that reads share, and one for each view.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cg_engine::EngineError;
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::address::{Address, Replication};
use crate::connect::{Connector, Unreached};
use crate::error::{Failed, refused};
use crate::options::Options;
use crate::runtime::Runtime;
use crate::schema::{self, Sql};
use crate::session::Session;

/// The largest number of connections that reads share.
const READERS: usize = 4;
/// The time after which a call without an answer begins a look at all hosts.
const STALLED: Duration = Duration::from_secs(5);
/// The pause before a failed call is sent again.
const PAUSE: Duration = Duration::from_millis(50);

/// Connections, and the thread that serves them.
#[derive(Debug)]
pub(crate) struct Pool {
    runtime: Runtime,
    pub(crate) connector: Arc<Connector>,
    pub(crate) sql: Sql,
    pub(crate) options: Options,
    readers: Mutex<Readers>,
    /// Wakes reads that wait for their first connection.
    opened: Notify,
    idle: Mutex<Vec<Arc<Session>>>,
    views: Arc<Semaphore>,
    scans: Arc<Semaphore>,
}

/// Connections that reads share.
#[derive(Debug, Default)]
struct Readers {
    sessions: Vec<Arc<Session>>,
    /// The number of those that are being opened.
    opening: usize,
}

/// How a read gets a connection.
enum Reader<'p> {
    Shared(Arc<Session>),
    Opens(Opening<'p>),
    /// Others open as many as there may be, and none is ready.
    Waits,
}

/// A connection for reads that is being opened.
struct Opening<'p>(&'p Pool);

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.readers.lock().opening -= 1;
        self.0.opened.notify_waiters();
    }
}

/// What has a connection of its own, and a limit on how many there are at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Snapshot,
    /// It ends by itself.
    Scan,
}

impl Pool {
    /// Starts the thread. Connects to no host.
    pub(crate) fn new(address: &Address, options: &Options) -> Result<Arc<Self>, EngineError> {
        let connector = Connector::new(address.clone());
        let connector = connector.map_err(|refusal| refused("read certificates", refusal))?;
        let what = || "a thread for connections".into();
        let runtime =
            Runtime::start().map_err(|source| EngineError::ProcessLimit { what: what(), source })?;
        Ok(Arc::new(Self {
            runtime,
            connector: Arc::new(connector),
            sql: Sql::new(address.schema()),
            options: options.clone(),
            readers: Mutex::default(),
            opened: Notify::new(),
            idle: Mutex::default(),
            views: Arc::new(Semaphore::new(options.max_views)),
            scans: Arc::new(Semaphore::new(options.max_scans)),
        }))
    }

    /// The address as text, without a password.
    pub(crate) fn place(&self) -> String {
        self.connector.address().to_string()
    }

    /// Runs a future on the thread of the connections, and waits for its value.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T, Failed>> + Send + 'static,
    ) -> Result<T, Failed> {
        let ended = |_| Failed::Lost("the thread of the connections has ended".into());
        self.runtime.wait(future).map_err(ended)?
    }

    /// Whether a commit must wait for another node.
    pub(crate) fn needs_quorum(&self) -> bool {
        self.connector.address().replication() == Replication::Quorum
    }

    /// The time until which a call that begins now is tried.
    pub(crate) fn deadline(&self) -> Instant {
        // A far future if the sum is none, which is 30 years as in tokio.
        let now = Instant::now();
        now.checked_add(self.options.patience).unwrap_or(now + Duration::from_secs(86400 * 365 * 30))
    }

    /// Waits for an answer until a deadline. Gives the session up if none arrives, or if another server took over.
    pub(crate) async fn answer<T, E: Into<Failed>>(
        &self,
        session: &Session,
        call: impl Future<Output = Result<T, E>>,
        deadline: Instant,
    ) -> Result<T, Failed> {
        let mut call = std::pin::pin!(call);
        let mut look_at = Instant::now() + STALLED;
        loop {
            tokio::select! {
                biased;
                answer = &mut call => return answer.map_err(Into::into),
                () = sleep_until(deadline) => {
                    session.abandon();
                    return Err(Failed::Lost(format!("no answer within {:?}", self.options.patience)));
                }
                is_moved = async {
                    sleep_until(look_at).await;
                    self.connector.is_moved(session).await
                } => {
                    if is_moved {
                        session.abandon();
                        return Err(Failed::Lost("another node took over".into()));
                    }
                    look_at = Instant::now() + STALLED;
                }
            }
        }
    }

    /// Looks for the server that takes writes, until a deadline. A refusal that would be the same again is returned at
    /// once.
    pub(crate) async fn look_until(&self, deadline: Instant) -> Result<Arc<Session>, Failed> {
        self.connect_until(deadline, || self.connector.look()).await
    }

    async fn connect_until<F>(
        &self,
        deadline: Instant,
        connect: impl Fn() -> F,
    ) -> Result<Arc<Session>, Failed>
    where
        F: Future<Output = Result<Session, Unreached>>,
    {
        loop {
            let failed = match timeout_at(deadline, connect()).await {
                Ok(Ok(session)) => return Ok(Arc::new(session)),
                Ok(Err(Unreached { failed, may_pass: true })) => failed,
                Ok(Err(unreached)) => return Err(unreached.failed),
                Err(_) => Failed::Lost("the server does not answer".into()),
            };
            self.pause(failed, deadline).await?;
        }
    }

    /// Waits before another attempt.
    ///
    /// # Errors
    /// The failure of the last attempt, if there is no time for another one.
    pub(crate) async fn pause(&self, failed: Failed, deadline: Instant) -> Result<(), Failed> {
        if Instant::now() + PAUSE >= deadline {
            return Err(failed);
        }
        tracing::debug!(%failed, "a call is sent again");
        sleep(PAUSE).await;
        Ok(())
    }

    /// A connection for one read: the one with the fewest calls.
    async fn reader(&self, deadline: Instant) -> Result<Arc<Session>, Failed> {
        loop {
            let mut opened = std::pin::pin!(self.opened.notified());
            // What is opened from here on wakes it.
            opened.as_mut().enable();
            match self.choose_reader() {
                Reader::Shared(session) => return Ok(session),
                Reader::Opens(_opening) => {
                    let session = self.connect_until(deadline, || self.connector.last()).await?;
                    self.readers.lock().sessions.push(Arc::clone(&session));
                    return Ok(session);
                }
                Reader::Waits => {
                    let late = |_| Failed::Lost("no connection for reads is ready".into());
                    timeout_at(deadline, opened).await.map_err(late)?;
                }
            }
        }
    }

    fn choose_reader(&self) -> Reader<'_> {
        let mut readers = self.readers.lock();
        readers.sessions.retain(|session| self.connector.is_current(session));
        let is_full = readers.sessions.len() + readers.opening >= READERS;
        let calls = |session: &&Arc<Session>| session.in_flight.load(Ordering::Relaxed);
        match readers.sessions.iter().min_by_key(calls) {
            Some(session) if is_full || calls(&session) == 0 => Reader::Shared(Arc::clone(session)),
            None if is_full => Reader::Waits,
            _ => {
                readers.opening += 1;
                Reader::Opens(Opening(self))
            }
        }
    }

    /// Reads over a shared connection, and over a new one if that is lost.
    pub(crate) async fn read<T, F>(&self, call: impl Fn(Arc<Session>) -> F) -> Result<T, Failed>
    where
        F: Future<Output = Result<T, Failed>>,
    {
        let deadline = self.deadline();
        loop {
            let session = self.reader(deadline).await?;
            session.in_flight.fetch_add(1, Ordering::Relaxed);
            let answer = self.answer(&session, call(Arc::clone(&session)), deadline).await;
            session.in_flight.fetch_sub(1, Ordering::Relaxed);
            match answer {
                Err(failed) if failed.may_pass() => {
                    if matches!(failed, Failed::Lost(_)) {
                        session.abandon();
                        self.readers.lock().sessions.retain(|one| !Arc::ptr_eq(one, &session));
                    }
                    self.pause(failed, deadline).await?;
                }
                answer => return answer,
            }
        }
    }

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
        let mut view = View { pool: Arc::clone(self), session: None, _permit: permit };
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
                    view.session = Some(session);
                    return Ok((view, first));
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
}

impl Pool {
    /// Runs a statement over a connection that no read shares. A scan may have to wait for it.
    pub(crate) async fn aside(&self, statement: &str) -> Result<(), Failed> {
        let deadline = self.deadline();
        let _permit = self.permit(Purpose::Scan, deadline).await?;
        let session = self.own(deadline).await?;
        self.answer(&session, session.client.batch_execute(statement), deadline).await?;
        self.idle.lock().push(session);
        Ok(())
    }

    /// Waits until another snapshot or scan may begin.
    async fn permit(&self, purpose: Purpose, deadline: Instant) -> Result<OwnedSemaphorePermit, Failed> {
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

    /// A connection that no read shares, which goes back to the idle ones.
    async fn own(&self, deadline: Instant) -> Result<Arc<Session>, Failed> {
        let idle = {
            let mut idle = self.idle.lock();
            idle.retain(|session| self.connector.is_current(session));
            idle.pop()
        };
        match idle {
            Some(session) => Ok(session),
            None => self.connect_until(deadline, || self.connector.last()).await,
        }
    }
}

/// A transaction that sees one state, on a connection of its own.
#[derive(Debug)]
pub(crate) struct View {
    pool: Arc<Pool>,
    session: Option<Arc<Session>>,
    _permit: OwnedSemaphorePermit,
}

impl View {
    /// Reads in the transaction.
    pub(crate) async fn read<T, F>(
        self: &Arc<Self>,
        call: impl FnOnce(Arc<Session>) -> F,
    ) -> Result<T, Failed>
    where
        F: Future<Output = Result<T, Failed>>,
    {
        let Some(session) = &self.session else { return Err(Failed::Lost("the view has ended".into())) };
        let answer = self.pool.answer(session, call(Arc::clone(session)), self.pool.deadline()).await;
        if matches!(answer, Err(Failed::Lost(_))) {
            session.abandon();
        }
        answer
    }
}

impl Drop for View {
    fn drop(&mut self) {
        if let Some(session) = self.session.take().filter(|session| session.is_open()) {
            // The next view of the connection begins after that.
            session.send("COMMIT");
            self.pool.idle.lock().push(session);
        }
    }
}
