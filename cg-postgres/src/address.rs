//! The address of a world in a database.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

mod password;
mod shown;

/// The port of a server that names none.
const DEFAULT_PORT: u16 = 5432;
/// The world of an address that names none.
const DEFAULT_WORLD: &str = "world";
/// The longest identifier of PostgreSQL, in bytes.
const MAX_IDENTIFIER_BYTES: usize = 63;
/// The beginning of the name of each schema.
const PREFIX: &str = "cg_";

/// The address of a world: servers, a database, and the world's name.
///
/// ```text
/// postgres://USER[:PASSWORD]@HOST[:PORT][,HOST[:PORT]..]/DATABASE[?PARAMETER=VALUE[&..]]
/// ```
///
/// | parameter | value |
/// |---|---|
/// | `world` | the name of the world, at most 60 bytes; by default `world` |
/// | `sslmode` | as libpq, without `allow`: `disable`, `prefer`, `require`, `verify-ca`, `verify-full`; by default `verify-full`, for a loopback address and a socket `disable` |
/// | `sslrootcert` | a file of root certificates in PEM; by default those of the system |
/// | `sslcert`, `sslkey` | files of the client's certificates and its key in PEM |
/// | `replication` | see [`Replication`]; by default `quorum` |
/// | `take` | `yes`: take the world from the process that has it open for writing |
///
/// A host that begins with `%2F` is the directory of a socket. Characters that have a meaning in the address are written
/// as `%` and two hexadecimal digits. Without a password, the variable `PGPASSWORD` is used, and then the password file
/// as by libpq. [`Display`](fmt::Display) and [`Debug`](fmt::Debug) never show the password.
///
/// ```
/// use cg_postgres::Address;
/// let address: Address = "postgres://game:secret@db1,db2:5433/worlds?world=Alpha".parse()?;
/// assert_eq!(address.to_string(), "postgres://game@db1,db2:5433/worlds?world=Alpha");
/// assert_eq!(address.world(), "Alpha");
/// # Ok::<(), cg_postgres::AddressError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    user: String,
    password: Option<String>,
    hosts: Vec<Host>,
    database: String,
    world: String,
    tls: Tls,
    replication: Replication,
    takes: bool,
}

/// A host of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) port: u16,
}

/// How connections are encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Tls {
    /// `None`: by the host.
    pub(crate) mode: Option<SslMode>,
    pub(crate) root: Option<PathBuf>,
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

/// The modes of libpq.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SslMode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// How an acknowledged commit survives the loss of the server that stored it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Replication {
    /// The server waits for another node. A server that does not wait is refused.
    #[default]
    Quorum,
    /// The disk below the server is replicated; the operator says so.
    Storage,
    /// It does not. For development.
    None,
}

/// Why a text is not the address of a world. No message contains the password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// It does not begin like one.
    #[error("an address begins with postgres:// or postgresql://")]
    Scheme,
    /// A part is absent.
    #[error("the address has no {0}; it is postgres://USER@HOST/DATABASE?world=NAME")]
    Missing(&'static str),
    /// A port is not a number from 1 to 65535.
    #[error("port {0:?} is not a number from 1 to 65535")]
    Port(String),
    /// A `%` without two hexadecimal digits, bytes that are not UTF-8, or an `@` after the first `/` or `?`.
    #[error(
        "the {0} of the address is not UTF-8 with % and two hexadecimal digits for special characters such as / ? @"
    )]
    Escape(&'static str),
    /// A parameter that does not exist.
    #[error(
        "the address has no parameter {0:?}; there are world, sslmode, sslrootcert, sslcert, sslkey, replication and take"
    )]
    UnknownParameter(String),
    /// A parameter that is given twice.
    #[error("the address has the parameter {0} twice")]
    DoubledParameter(String),
    /// A value that the parameter does not take.
    #[error("{parameter} is {value:?}; it must be {must}")]
    Value {
        /// The parameter.
        parameter: &'static str,
        /// Its value.
        value: String,
        /// The values that it takes.
        must: &'static str,
    },
    /// A client's certificate without its key, or the reverse.
    #[error("sslcert and sslkey must be given together")]
    HalfCertificate,
    /// The name of the world cannot be the name of a schema.
    #[error(
        "the name of a world has 1 to {max} bytes without control characters; this one has {len_bytes}",
        max = MAX_IDENTIFIER_BYTES - PREFIX.len()
    )]
    World {
        /// Its length.
        len_bytes: usize,
    },
}

impl Address {
    /// The name of the world.
    pub fn world(&self) -> &str {
        &self.world
    }

    /// How an acknowledged commit survives the loss of the server that stored it.
    pub const fn replication(&self) -> Replication {
        self.replication
    }

    /// Whether the world is taken from the process that has it open for writing.
    pub const fn takes(&self) -> bool {
        self.takes
    }

    /// The same address for another world of the database.
    ///
    /// # Errors
    /// [`AddressError::World`] if the name cannot be the name of a schema.
    pub fn with_world(mut self, world: &str) -> Result<Self, AddressError> {
        self.world = checked_world(world.to_owned())?;
        Ok(self)
    }

    /// The same address, which takes the world from the process that has it open for writing, or does not.
    #[must_use]
    pub fn with_take(self, takes: bool) -> Self {
        Self { takes, ..self }
    }

    /// The name of the world's schema, not quoted.
    pub(crate) fn schema(&self) -> String {
        format!("{PREFIX}{}", self.world)
    }

    pub(crate) fn user(&self) -> &str {
        &self.user
    }

    pub(crate) fn database(&self) -> &str {
        &self.database
    }

    pub(crate) fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    pub(crate) const fn tls(&self) -> &Tls {
        &self.tls
    }

    /// The password for a host: of the address, of the environment, or of the password file.
    pub(crate) fn password(&self, host: &Host) -> Option<String> {
        let from_environment = || std::env::var("PGPASSWORD").ok().filter(|password| !password.is_empty());
        let own = self.password.clone().or_else(from_environment);
        own.or_else(|| password::of_file(host, &self.database, &self.user))
    }
}

impl Host {
    /// Whether it is the directory of a socket.
    pub(crate) fn is_socket(&self) -> bool {
        self.name.starts_with('/')
    }

    /// Whether it is this machine.
    pub(crate) fn is_local(&self) -> bool {
        let is_loopback = |ip: std::net::IpAddr| ip.is_loopback();
        self.is_socket() || self.name == "localhost" || self.name.parse().is_ok_and(is_loopback)
    }
}

impl Tls {
    /// The mode for a host.
    pub(crate) fn mode_for(&self, host: &Host) -> SslMode {
        let by_default = if host.is_local() { SslMode::Disable } else { SslMode::VerifyFull };
        if host.is_socket() { SslMode::Disable } else { self.mode.unwrap_or(by_default) }
    }
}

impl SslMode {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Disable, "disable"),
        (Self::Prefer, "prefer"),
        (Self::Require, "require"),
        (Self::VerifyCa, "verify-ca"),
        (Self::VerifyFull, "verify-full"),
    ];
}

impl Replication {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Quorum, "quorum"), (Self::Storage, "storage"), (Self::None, "none")];
}

fn name_of<T: Copy + PartialEq>(all: &[(T, &'static str)], value: T) -> &'static str {
    all.iter().find(|(one, _)| *one == value).map_or("", |(_, name)| name)
}

impl fmt::Display for Replication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name_of(&Self::ALL, *self))
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let rest = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://"));
        let rest = rest.ok_or(AddressError::Scheme)?;
        let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (servers, database) = place.split_once('/').unwrap_or((place, ""));
        if database.contains('@') || parameters.contains('@') {
            // It may be a part of a password, so it is not shown.
            return Err(AddressError::Escape("password"));
        }
        // A password may contain an @ that is not escaped.
        let (account, hosts) = servers.rsplit_once('@').ok_or(AddressError::Missing("user"))?;
        let (user, password) = match account.split_once(':') {
            Some((user, password)) => (user, Some(unescaped("password", password)?)),
            None => (account, None),
        };
        let mut address = Self {
            user: not_empty("user", unescaped("user", user)?)?,
            password,
            hosts: hosts.split(',').map(Host::from_str).collect::<Result<_, _>>()?,
            database: not_empty("database", unescaped("database", database)?)?,
            world: DEFAULT_WORLD.into(),
            tls: Tls::default(),
            replication: Replication::default(),
            takes: false,
        };
        let mut seen = Vec::new();
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            if seen.contains(&name) {
                return Err(AddressError::DoubledParameter(name.into()));
            }
            seen.push(name);
            address.set(name, unescaped("parameters", value)?)?;
        }
        if address.tls.certificate.is_some() != address.tls.key.is_some() {
            return Err(AddressError::HalfCertificate);
        }
        Ok(address)
    }
}

impl Address {
    fn set(&mut self, name: &str, value: String) -> Result<(), AddressError> {
        match name {
            "world" => self.world = checked_world(value)?,
            "sslmode" => {
                let must = "disable, prefer, require, verify-ca or verify-full";
                self.tls.mode = Some(chosen("sslmode", &SslMode::ALL, value, must)?);
            }
            "sslrootcert" => self.tls.root = Some(value.into()),
            "sslcert" => self.tls.certificate = Some(value.into()),
            "sslkey" => self.tls.key = Some(value.into()),
            "replication" => {
                self.replication =
                    chosen("replication", &Replication::ALL, value, "quorum, storage or none")?;
            }
            "take" => self.takes = chosen("take", &[(true, "yes"), (false, "no")], value, "yes or no")?,
            _ => return Err(AddressError::UnknownParameter(name.into())),
        }
        Ok(())
    }
}

fn chosen<T: Copy>(
    parameter: &'static str,
    all: &[(T, &'static str)],
    value: String,
    must: &'static str,
) -> Result<T, AddressError> {
    let found = all.iter().find(|(_, name)| *name == value);
    found.map(|(chosen, _)| *chosen).ok_or(AddressError::Value { parameter, value, must })
}

fn checked_world(world: String) -> Result<String, AddressError> {
    let len_bytes = world.len();
    let fits = (1..=MAX_IDENTIFIER_BYTES - PREFIX.len()).contains(&len_bytes);
    if fits && !world.chars().any(char::is_control) {
        Ok(world)
    } else {
        Err(AddressError::World { len_bytes })
    }
}

fn not_empty(part: &'static str, text: String) -> Result<String, AddressError> {
    if text.is_empty() { Err(AddressError::Missing(part)) } else { Ok(text) }
}

impl FromStr for Host {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (name, port) = match text.strip_prefix('[').and_then(|text| text.split_once(']')) {
            Some((name, rest)) => (name, rest.strip_prefix(':')),
            None => text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port))),
        };
        let port = match port {
            Some(port) => match port.parse() {
                Ok(number @ 1..) => number,
                _ => return Err(AddressError::Port(port.into())),
            },
            None => DEFAULT_PORT,
        };
        Ok(Self { name: not_empty("host", unescaped("host", name)?)?, port })
    }
}

/// Replaces `%` and two digits by the byte that they mean.
fn unescaped(part: &'static str, text: &str) -> Result<String, AddressError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        match (digit(), digit()) {
            (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
            _ => return Err(AddressError::Escape(part)),
        }
    }
    String::from_utf8(bytes).map_err(|_| AddressError::Escape(part))
}
