//! The connections of an engine: some that reads share, and one for each view.

mod view;

pub(crate) use view::{Purpose, View};

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use cg_engine::EngineError;
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use crate::address::{Address, Replication};
use crate::connect::{Connector, Place, Unreached};
use crate::error::{Failed, refused};
use crate::options::Options;
use crate::runtime::Runtime;
use crate::schema::Sql;
use crate::session::Session;

/// The largest number of connections that reads share.
const READERS: usize = 4;
/// The time after which a call without an answer begins a look at all hosts.
const STALLED: Duration = Duration::from_secs(5);
/// The pause before a failed call is sent again.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest wait for a connection that was begun ahead, before another one is opened.
const AHEAD: Duration = Duration::from_secs(1);

/// Connections, and the thread that serves them.
#[derive(Debug)]
pub(crate) struct Pool {
    runtime: Runtime,
    pub(crate) connector: Arc<Connector>,
    pub(crate) sql: Arc<Sql>,
    pub(crate) options: Options,
    readers: Mutex<Readers>,
    /// Wakes reads that wait for their first connection.
    opened: Notify,
    idle: Mutex<Vec<Arc<Session>>>,
    /// The connection that the opening of the world began for its reads.
    ahead: Mutex<JoinSet<Result<Session, Failed>>>,
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
enum Reader {
    Shared(Arc<Session>),
    /// All have calls, and another one is to be opened meanwhile.
    Busy(Arc<Session>, Opening),
    Opens(Opening),
    /// Others open as many as there may be, and none is ready.
    Waits,
}

/// A connection for reads that is being opened.
struct Opening(Weak<Pool>);

impl Opening {
    /// Opens it in the background. After a failure there is a pause until another one is opened.
    fn in_background(self, connector: Arc<Connector>) {
        tokio::spawn(async move {
            match connector.last().await {
                Ok(session) => self.add(Arc::new(session)),
                Err(Unreached { failed, .. }) => {
                    tracing::debug!(%failed, "reads share fewer connections");
                    sleep(STALLED).await;
                }
            }
        });
    }

    fn add(self, session: Arc<Session>) {
        if let Some(pool) = self.0.upgrade() {
            pool.readers.lock().sessions.push(session);
        }
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(pool) = self.0.upgrade() {
            pool.readers.lock().opening -= 1;
            pool.opened.notify_waiters();
        }
    }
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
            sql: Arc::new(Sql::new(address.schema())),
            options: options.clone(),
            readers: Mutex::default(),
            opened: Notify::new(),
            idle: Mutex::default(),
            ahead: Mutex::default(),
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
    async fn reader(self: &Arc<Self>, deadline: Instant) -> Result<Arc<Session>, Failed> {
        loop {
            let mut opened = std::pin::pin!(self.opened.notified());
            // What is opened from here on wakes it.
            opened.as_mut().enable();
            match self.choose_reader() {
                Reader::Shared(session) => return Ok(session),
                Reader::Busy(session, opening) => {
                    opening.in_background(Arc::clone(&self.connector));
                    return Ok(session);
                }
                Reader::Opens(opening) => {
                    let session = self.own(deadline).await?;
                    opening.add(Arc::clone(&session));
                    return Ok(session);
                }
                Reader::Waits => {
                    let late = |_| Failed::Lost("no connection for reads is ready".into());
                    timeout_at(deadline, opened).await.map_err(late)?;
                }
            }
        }
    }

    fn choose_reader(self: &Arc<Self>) -> Reader {
        let mut readers = self.readers.lock();
        readers.sessions.retain(|session| self.connector.is_current(session));
        let is_full = readers.sessions.len() + readers.opening >= READERS;
        let calls = |session: &&Arc<Session>| session.in_flight.load(Ordering::Relaxed);
        let chosen = readers.sessions.iter().min_by_key(calls).cloned();
        let mut opening = || {
            readers.opening += 1;
            Opening(Arc::downgrade(self))
        };
        match chosen {
            Some(session) if is_full || calls(&&session) == 0 => Reader::Shared(session),
            Some(session) => Reader::Busy(session, opening()),
            None if is_full => Reader::Waits,
            None => Reader::Opens(opening()),
        }
    }

    /// Reads over a shared connection, and over a new one if that is lost.
    pub(crate) async fn read<T, F>(self: &Arc<Self>, call: impl Fn(Arc<Session>) -> F) -> Result<T, Failed>
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

    /// Calls over a connection that no read shares. A scan may have to wait for it.
    pub(crate) async fn aside<F>(&self, call: impl FnOnce(Arc<Session>) -> F) -> Result<(), Failed>
    where
        F: Future<Output = Result<(), Failed>>,
    {
        let deadline = self.deadline();
        let _permit = self.permit(Purpose::Scan, deadline).await?;
        let session = self.own(deadline).await?;
        self.answer(&session, call(Arc::clone(&session)), deadline).await?;
        self.idle.lock().push(session);
        Ok(())
    }

    /// Looks for the server that takes writes, to open a world. A connection for its first read is begun meanwhile. That it
    /// fails does not matter: the read opens another one.
    pub(crate) async fn look_first(&self) -> Result<Session, Failed> {
        let begun = |place: Place| {
            let (connector, sql) = (Arc::clone(&self.connector), Arc::clone(&self.sql));
            let mut ahead = self.ahead.lock();
            if ahead.is_empty() {
                ahead.spawn(async move { connector.prepared(place, &sql).await });
            }
        };
        Ok(self.connector.look_and(begun).await?)
    }

    /// The connection that was begun ahead, if no call has it and it is ready soon.
    async fn ahead(&self) -> Option<Arc<Session>> {
        let mut ahead = std::mem::take(&mut *self.ahead.lock());
        let session = timeout(AHEAD, ahead.join_next()).await.ok()??.ok()?.ok()?;
        self.connector.is_current(&session).then(|| Arc::new(session))
    }

    /// A connection that no read shares: an idle one, or a new one.
    async fn own(&self, deadline: Instant) -> Result<Arc<Session>, Failed> {
        let idle = {
            let mut idle = self.idle.lock();
            idle.retain(|session| self.connector.is_current(session));
            idle.pop()
        };
        if let Some(session) = idle {
            return Ok(session);
        }
        match self.ahead().await {
            Some(session) => Ok(session),
            None => self.connect_until(deadline, || self.connector.last()).await,
        }
    }
}
