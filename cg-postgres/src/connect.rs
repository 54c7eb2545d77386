//! Connecting to the server that takes writes, among the hosts of an address.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::config::SslMode as Encryption;
use tokio_postgres::{Config, Connection, NoTls, SimpleQueryMessage};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::address::{Address, Host, SslMode};
use crate::error::{Failed, Refusal};
use crate::schema;
use crate::session::Session;
use crate::tls;

/// The longest time until a connection is ready.
const CONNECTING: Duration = Duration::from_secs(10);
/// The time that other hosts get after one host was found that takes writes: it may be an old primary.
const OTHER_HOSTS: Duration = Duration::from_millis(500);
/// The time that the host of the last connection gets before all are looked at.
const LAST_HOST: Duration = Duration::from_secs(1);
/// The oldest server, as PostgreSQL numbers its major versions.
const MIN_SERVER: u32 = 15;

/// Makes connections.
#[derive(Debug)]
pub(crate) struct Connector {
    address: Address,
    targets: Vec<Target>,
    /// The host of the last connection that takes writes.
    last: AtomicUsize,
    /// The newest timeline that was seen.
    timeline: AtomicI64,
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
        Ok(Self { address, targets, last: AtomicUsize::new(usize::MAX), timeline: AtomicI64::new(0) })
    }

    pub(crate) const fn address(&self) -> &Address {
        &self.address
    }

    /// Connects to the host of the last connection that takes writes, and looks at all if it does not answer soon.
    pub(crate) async fn last(self: &Arc<Self>) -> Result<Session, Failed> {
        let last = self.last.load(Ordering::Relaxed);
        if self.targets.len() > 1
            && last < self.targets.len()
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

    /// Connects to all hosts, and returns the session of the one that takes writes and has the latest timeline.
    pub(crate) async fn look(self: &Arc<Self>) -> Result<Session, Failed> {
        let mut attempts = JoinSet::new();
        for n in 0..self.targets.len() {
            let connector = Arc::clone(self);
            attempts.spawn(async move { (n, connector.connect(n).await) });
        }
        let mut until = Instant::now() + CONNECTING;
        let mut best: Option<(usize, Session)> = None;
        let mut failures = Vec::new();
        while let Ok(Some(attempt)) = timeout_at(until, attempts.join_next()).await {
            match attempt {
                Ok((n, Ok(session))) => {
                    until = until.min(Instant::now() + OTHER_HOSTS);
                    if best.as_ref().is_none_or(|(_, best)| best.timeline < session.timeline) {
                        best = Some((n, session));
                    }
                }
                Ok((_, Err(failed))) => failures.push(failed),
                Err(error) => failures.push(Failed::Lost(error.to_string())),
            }
        }
        if let Some((n, session)) = best {
            self.last.store(n, Ordering::Relaxed);
            return Ok(session);
        }
        // An answer of a server says more than the silence of another one.
        let decisive = failures.iter().position(|failed| !failed.may_pass());
        if let Some(decisive) = decisive.or(if failures.len() == 1 { Some(0) } else { None }) {
            return Err(failures.swap_remove(decisive));
        }
        let failures: Vec<_> = failures.iter().map(ToString::to_string).collect();
        Err(Failed::Lost(format!("no host takes writes: {}", failures.join("; "))))
    }

    /// Whether another server has taken over since a session began.
    pub(crate) async fn is_moved(self: &Arc<Self>, session: &Session) -> bool {
        matches!(self.look().await, Ok(found) if found.timeline > session.timeline)
    }

    async fn connect(&self, n: usize) -> Result<Session, Failed> {
        let Some(target) = self.targets.get(n) else { return Err(Failed::Lost("no such host".into())) };
        let connected = timeout(CONNECTING, self.connect_to(target)).await;
        let connected = connected.unwrap_or_else(|_| Err(Failed::Lost("it does not answer".into())));
        let Host { name, port } = &target.host;
        connected.map_err(|failed| match failed {
            Failed::Lost(message) => Failed::Lost(format!("{name}:{port}: {message}")),
            Failed::Unfit(Refusal::Tls(message)) => {
                Failed::Unfit(Refusal::Tls(format!("{name}:{port}: {message}")))
            }
            failed => failed,
        })
    }

    async fn connect_to(&self, target: &Target) -> Result<Session, Failed> {
        let config = self.config(target);
        let (mut session, [server, encoding]) = if let Some(Tls(tls)) = &target.tls {
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
        let node = if major >= 17 {
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
        session.timeline = timeline;
        Ok(session)
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

/// The version of a server, and the encoding of its database.
fn facts<S, T>(connection: &Connection<S, T>) -> [String; 2]
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    ["server_version", "server_encoding"]
        .map(|name| connection.parameter(name).unwrap_or_default().to_owned())
}
