//! Connecting to the server that takes writes, among the hosts of an address.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::config::SslMode as Encryption;
use tokio_postgres::{Config, Connection, NoTls, SimpleQueryMessage};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::address::{Address, Host, SslMode};
use crate::error::{Failed, Refusal};
use crate::schema::{self, Sql};
use crate::session::Session;
use crate::tls;

/// The longest time until a connection is ready.
const CONNECTING: Duration = Duration::from_secs(10);
/// The time that other hosts get after one host was found that takes writes: it may be an old primary.
const OTHER_HOSTS: Duration = Duration::from_millis(500);
/// The time that the host of the last connection gets before all are looked at.
const LAST_HOST: Duration = Duration::from_secs(1);
/// The time for which the result of a look holds for other calls without an answer.
const LOOK_AGAIN: Duration = Duration::from_secs(4);
/// The most addresses of a name that are tried.
const MAX_ADDRESSES: usize = 16;
/// The oldest server, as PostgreSQL numbers its major versions.
const MIN_SERVER: u32 = 15;

/// Makes connections.
#[derive(Debug)]
pub(crate) struct Connector {
    address: Address,
    targets: Vec<Target>,
    /// The addresses of a host's name.
    resolve: Resolve,
    /// Where the last connection is that takes writes, if there are several places.
    last: Mutex<Option<Place>>,
    /// When calls without an answer last had a look at all hosts.
    looked: tokio::sync::Mutex<Option<Instant>>,
    /// The newest timeline that was seen.
    timeline: AtomicI64,
}

/// One address of a host, by the number of the host. A socket has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    host: usize,
    address: Option<IpAddr>,
}

type Resolve = fn(String, u16) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// A step of a look at all hosts.
enum Step {
    Resolved(usize, Result<Vec<Option<IpAddr>>, Failed>),
    Begun(Place, Result<Box<Session>, Failed>),
    Connected(Place, Result<Box<Session>, Failed>),
}

/// Why no host takes writes.
#[derive(Debug)]
pub(crate) struct Unreached {
    pub(crate) failed: Failed,
    /// Whether a later look may find a host: one of them gave no answer, or one that may change.
    pub(crate) may_pass: bool,
}

impl From<Unreached> for Failed {
    fn from(unreached: Unreached) -> Self {
        unreached.failed
    }
}

/// A host, and how it is reached.
#[derive(Debug, Clone)]
struct Target {
    host: Host,
    tls: Option<Tls>,
}

#[derive(Clone)]
struct Tls(MakeRustlsConnect);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Connector {
    /// Reads the certificates. Connects to no host.
    pub(crate) fn new(address: Address) -> Result<Self, Refusal> {
        let target = |host: &Host| {
            let tls = tls::connect(address.tls(), address.tls().mode_for(host))?.map(Tls);
            Ok(Target { host: host.clone(), tls })
        };
        let targets = address.hosts().iter().map(target).collect::<Result<_, _>>()?;
        let (last, looked, timeline) = (Mutex::default(), tokio::sync::Mutex::default(), AtomicI64::new(0));
        Ok(Self { address, targets, resolve: of_system, last, looked, timeline })
    }

    pub(crate) const fn address(&self) -> &Address {
        &self.address
    }

    /// Connects to where the last connection is that takes writes, and looks at all hosts if it does not answer soon.
    pub(crate) async fn last(self: &Arc<Self>) -> Result<Session, Unreached> {
        let last = *self.last.lock();
        if let Some(last) = last
            && let Ok(Ok(session)) = timeout(LAST_HOST, self.connect(last)).await
        {
            return Ok(session);
        }
        self.look().await
    }

    /// Whether a session can be used: it is open, and no later timeline was seen. A server of an earlier one does not
    /// have the newest commits.
    pub(crate) fn is_current(&self, session: &Session) -> bool {
        session.is_open() && session.timeline >= self.timeline.load(Ordering::Acquire)
    }

    /// Connects to all addresses of all hosts, and returns the session of the one that takes writes and has the latest
    /// timeline.
    pub(crate) async fn look(self: &Arc<Self>) -> Result<Session, Unreached> {
        self.look_and(|_| ()).await
    }

    /// As [`look`](Self::look). Calls `begun` with each place whose server says that it is no standby, a round trip before
    /// its timeline is known.
    pub(crate) async fn look_and(
        self: &Arc<Self>,
        mut begun: impl FnMut(Place) + Send,
    ) -> Result<Session, Unreached> {
        let mut steps = JoinSet::new();
        for n in 0..self.targets.len() {
            let connector = Arc::clone(self);
            steps.spawn(async move { Step::Resolved(n, connector.addresses(n).await) });
        }
        let mut until = Instant::now() + CONNECTING;
        let mut best: Option<(Place, Box<Session>)> = None;
        let (mut failures, mut places) = (Vec::new(), 0);
        while let Ok(Some(step)) = timeout_at(until, steps.join_next()).await {
            match step {
                Ok(Step::Resolved(host, Ok(addresses))) => {
                    places += addresses.len();
                    for address in addresses {
                        let (connector, place) = (Arc::clone(self), Place { host, address });
                        steps.spawn(
                            async move { Step::Begun(place, connector.begin(place).await.map(Box::new)) },
                        );
                    }
                }
                Ok(Step::Begun(place, Ok(session))) => {
                    if !session.began_on_standby {
                        begun(place);
                    }
                    let connector = Arc::clone(self);
                    steps.spawn(async move {
                        Step::Connected(place, connector.checked(place, *session).await.map(Box::new))
                    });
                }
                Ok(Step::Connected(place, Ok(session))) => {
                    until = until.min(Instant::now() + OTHER_HOSTS);
                    if best.as_ref().is_none_or(|(_, best)| best.timeline < session.timeline) {
                        best = Some((place, session));
                    }
                }
                Ok(
                    Step::Resolved(_, Err(failed))
                    | Step::Begun(_, Err(failed))
                    | Step::Connected(_, Err(failed)),
                ) => failures.push(failed),
                Err(error) => failures.push(Failed::Lost(error.to_string())),
            }
        }
        if let Some((place, session)) = best {
            *self.last.lock() = (places > 1).then_some(place);
            return Ok(*session);
        }
        let may_pass = failures.is_empty() || failures.iter().any(Failed::may_pass);
        Err(Unreached { failed: Self::reason(failures), may_pass })
    }

    /// The failures of all hosts as one.
    fn reason(mut failures: Vec<Failed>) -> Failed {
        if failures.is_empty() {
            return Failed::Lost(format!("no host answers within {CONNECTING:?}"));
        }
        // An answer of a server says more than the silence of another one.
        let decisive = failures.iter().position(|failed| !failed.may_pass());
        if let Some(decisive) = decisive.or(if failures.len() == 1 { Some(0) } else { None }) {
            return failures.swap_remove(decisive);
        }
        let failures: Vec<_> = failures.iter().map(ToString::to_string).collect();
        Failed::Lost(format!("no host takes writes: {}", failures.join("; ")))
    }

    /// The addresses of a host.
    async fn addresses(&self, n: usize) -> Result<Vec<Option<IpAddr>>, Failed> {
        let Some(Target { host, .. }) = self.targets.get(n) else { return Ok(Vec::new()) };
        if host.is_socket() {
            return Ok(vec![None]);
        }
        let Host { name, port } = host;
        let found = (self.resolve)(name.clone(), *port).await;
        let found = found.map_err(|error| Failed::Lost(format!("{name}:{port}: {error}")))?;
        let found: BTreeSet<_> = found.into_iter().take(MAX_ADDRESSES).collect();
        if found.is_empty() {
            return Err(Failed::Lost(format!("{name}:{port}: the name has no address")));
        }
        Ok(found.into_iter().map(Some).collect())
    }

    /// Whether another server has taken over since a session began. Calls that wait at the same time share a look.
    pub(crate) async fn is_moved(self: &Arc<Self>, session: &Session) -> bool {
        let mut looked = self.looked.lock().await;
        let is_moved = || self.timeline.load(Ordering::Acquire) > session.timeline;
        if !is_moved() && looked.is_none_or(|looked| looked.elapsed() >= LOOK_AGAIN) {
            let _newest = self.look().await;
            *looked = Some(Instant::now());
        }
        is_moved()
    }

    async fn connect(&self, place: Place) -> Result<Session, Failed> {
        let session = self.begin(place).await?;
        self.checked(place, session).await
    }

    /// Connects to a place that takes writes, and prepares the statements of reads in the flight that finds it out. They
    /// are prepared at their first use if that fails.
    pub(crate) async fn prepared(&self, place: Place, sql: &Sql) -> Result<Session, Failed> {
        let mut session = self.begin(place).await?;
        let (timeline, _prepared) = tokio::join!(biased; self.timeline_of(&session), session.reading(sql));
        session.timeline = timeline?;
        Ok(session)
    }

    /// Begins a session, whose server may be a standby.
    async fn begin(&self, place: Place) -> Result<Session, Failed> {
        let Some(target) = self.targets.get(place.host) else {
            return Err(Failed::Lost("no such host".into()));
        };
        self.named(place, self.begin_at(target, place.address)).await
    }

    /// The session, if its server takes writes and has the newest timeline that was seen.
    async fn checked(&self, place: Place, mut session: Session) -> Result<Session, Failed> {
        session.timeline = self.named(place, self.timeline_of(&session)).await?;
        Ok(session)
    }

    /// Waits for an answer of a place, and names it in the error.
    async fn named<T>(
        &self,
        Place { host, address }: Place,
        answer: impl Future<Output = Result<T, Failed>>,
    ) -> Result<T, Failed> {
        let answer = timeout(CONNECTING, answer).await;
        let answer = answer.unwrap_or_else(|_| Err(Failed::Lost("it does not answer".into())));
        let Some(Target { host: Host { name, port }, .. }) = self.targets.get(host) else { return answer };
        let at = address.map(|address| address.to_string()).filter(|address| address != name);
        let at = at.map(|address| format!(" at {address}")).unwrap_or_default();
        answer.map_err(|failed| match failed {
            Failed::Lost(message) => Failed::Lost(format!("{name}:{port}{at}: {message}")),
            Failed::Unfit(Refusal::Tls(message)) => {
                Failed::Unfit(Refusal::Tls(format!("{name}:{port}{at}: {message}")))
            }
            failed => failed,
        })
    }

    async fn begin_at(&self, target: &Target, address: Option<IpAddr>) -> Result<Session, Failed> {
        let mut config = self.config(target);
        if let Some(address) = address {
            config.hostaddr(address);
        }
        let (mut session, [server, encoding, standby]) = if let Some(Tls(tls)) = &target.tls {
            let (client, connection) = config.connect(tls.clone()).await?;
            let facts = facts(&connection);
            (Session::start(client, connection), facts)
        } else {
            let (client, connection) = config.connect(NoTls).await?;
            let facts = facts(&connection);
            (Session::start(client, connection), facts)
        };
        let digits = server.find(|char: char| !char.is_ascii_digit()).unwrap_or(server.len());
        let major: u32 = server.get(..digits).and_then(|digits| digits.parse().ok()).unwrap_or(0);
        if major < MIN_SERVER {
            return Err(Failed::Unfit(Refusal::Server(server)));
        }
        if encoding != "UTF8" {
            return Err(Failed::Unfit(Refusal::Encoding(encoding)));
        }
        session.major = major;
        session.began_on_standby = standby != "off";
        Ok(session)
    }

    /// The timeline of a server that takes writes.
    async fn timeline_of(&self, session: &Session) -> Result<i64, Failed> {
        let node = if session.major >= 17 {
            format!("{}; {}", schema::NO_TRANSACTION_TIMEOUT, schema::NODE)
        } else {
            schema::NODE.to_owned()
        };
        let answers = session.client.simple_query(&node).await?;
        let row = answers.into_iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let timeline = row.as_ref().and_then(|row| row.get(1)?.parse::<i64>().ok());
        let Some(timeline) = timeline else {
            return Err(Failed::Lost("it is a standby, which takes no writes".into()));
        };
        let newest = self.timeline.fetch_max(timeline, Ordering::AcqRel);
        if timeline < newest {
            let message =
                format!("its timeline is {timeline}, and {newest} was seen: another node took over");
            return Err(Failed::Lost(message));
        }
        Ok(timeline)
    }

    fn config(&self, target: &Target) -> Config {
        let Host { name, port } = &target.host;
        let options: Vec<_> =
            schema::SESSION.iter().map(|(name, value)| format!("-c {name}={value}")).collect();
        let mut config = Config::new();
        config
            .user(self.address.user())
            .dbname(self.address.database())
            .port(*port)
            .options(options.join(" "))
            .application_name("cg-postgres")
            .connect_timeout(CONNECTING)
            // As the server does, see the options of the session.
            .keepalives(true)
            .keepalives_idle(Duration::from_secs(5))
            .keepalives_interval(Duration::from_secs(2))
            .keepalives_retries(3)
            .tcp_user_timeout(Duration::from_secs(11))
            .ssl_mode(match self.address.tls().mode_for(&target.host) {
                SslMode::Disable => Encryption::Disable,
                SslMode::Prefer => Encryption::Prefer,
                SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => Encryption::Require,
            });
        #[cfg(unix)]
        if target.host.is_socket() {
            config.host_path(name);
        }
        if !target.host.is_socket() {
            config.host(name);
        }
        if let Some(password) = self.address.password(&target.host) {
            config.password(password);
        }
        config
    }
}

/// The addresses that the system finds.
fn of_system(name: String, port: u16) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
    Box::pin(async move {
        let found = tokio::net::lookup_host((name.as_str(), port)).await?;
        Ok(found.map(|address| address.ip()).collect())
    })
}

/// The version of a server, the encoding of its database, and whether it is a standby.
fn facts<S, T>(connection: &Connection<S, T>) -> [String; 3]
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    ["server_version", "server_encoding", "in_hot_standby"]
        .map(|name| connection.parameter(name).unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests;
