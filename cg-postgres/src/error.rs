//! Why a database cannot hold a world, and what a failed call means.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::sync::Arc;

use cg_engine::{CommitSeq, EngineError, Place};
use tokio_postgres::error::DbError;

/// Why a database does not hold a world that this release can open, or refused a call. It is the source of an
/// [`EngineError::Other`], also below [`EngineError::ReadOnly`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A commit would not wait for another node.
    #[error(
        "{0}: a commit would be lost with its server. Set synchronous_standby_names and synchronous_commit on the server, or put replication=storage into the address if the disk below it is replicated, or replication=none for development"
    )]
    NotReplicated(ServerError),
    /// The schema has tables that no release makes.
    #[error("the schema {schema} has tables of other software: {}; name another world", tables.join(", "))]
    ForeignTables {
        /// The schema.
        schema: String,
        /// The tables.
        tables: Vec<String>,
    },
    /// The database stores another encoding than UTF-8.
    #[error("the database stores text as {0}; make one with ENCODING UTF8")]
    Encoding(String),
    /// The server is too old.
    #[error("the server is PostgreSQL {0}; it must be 15 or newer")]
    Server(String),
    /// The role lacks rights.
    #[error("the role {role} lacks {}", missing.join(", "))]
    Rights {
        /// The role.
        role: String,
        /// The absent rights.
        missing: Vec<String>,
    },
    /// A release with another schema made or upgraded the world.
    #[error(
        "the schema has version {version}, made by {made_by}; {access} needs a release for version {needed}, this one is for {own}"
    )]
    Release {
        /// The stored version.
        version: i32,
        /// The release that made it.
        made_by: String,
        /// What was asked: reading or writing.
        access: &'static str,
        /// The oldest version whose releases may do that.
        needed: i32,
        /// The version of this release.
        own: i32,
    },
    /// The server has fewer commits than it acknowledged.
    #[error(
        "the server acknowledged {acknowledged} batches up to commit {floor}, and has {found} up to commit {seq}: it went back in time; do not go on before it is known why"
    )]
    WentBack {
        /// The acknowledged batches.
        acknowledged: i64,
        /// The newest acknowledged commit.
        floor: u64,
        /// The stored batches.
        found: i64,
        /// The newest stored commit.
        seq: u64,
    },
    /// A file of certificates or keys cannot be used.
    #[error("{path}: {message}")]
    Certificate {
        /// The file.
        path: String,
        /// What is wrong.
        message: String,
    },
    /// The certificate of the server cannot be trusted, or the server does not trust that of the client.
    #[error("{0}; set sslrootcert to the certificate of the authority, and see sslmode")]
    Tls(String),
    /// The server refused a call.
    #[error("{0}")]
    Refused(ServerError),
    /// The server refused to open a world: for example a wrong password, or a database that is not there.
    #[error("{place}: {error}")]
    At {
        /// The address, without a password.
        place: String,
        /// The server's message.
        error: ServerError,
    },
}

/// An error message of the server, whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerError {
    code: String,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
}

impl ServerError {
    /// The SQLSTATE: five characters.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Its detail, if it has one.
    pub(crate) fn detail(&self) -> &str {
        self.detail.as_deref().unwrap_or_default()
    }

    /// The error of a server that waits for no other node, before it says so.
    pub(crate) fn not_replicated() -> Self {
        Self {
            code: "CG004".into(),
            message: "a commit would not wait for another node".into(),
            detail: Some("synchronous_standby_names is ''".into()),
            hint: None,
        }
    }

    fn of(error: &DbError) -> Self {
        Self {
            code: error.code().code().into(),
            message: error.message().into(),
            detail: error.detail().map(Into::into),
            hint: error.hint().map(Into::into),
        }
    }

    /// Whether a page of the database is damaged.
    pub(crate) fn is_of_damage(&self) -> bool {
        matches!(&*self.code, "XX001" | "XX002")
    }

    /// Whether it is the error of a session that a pooler shared among several clients.
    fn is_of_pooler(&self) -> bool {
        self.code == "26000" || (self.code == "08P01" && self.message.contains("startup parameter"))
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (SQLSTATE {})", self.message, self.code)?;
        if let Some(detail) = &self.detail {
            write!(f, "; {detail}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "; hint: {hint}")?;
        }
        if self.is_of_pooler() {
            f.write_str("; a pooler in transaction mode loses the session, connect to the server itself")?;
        }
        Ok(())
    }
}

/// Why a call has no result.
#[derive(Debug, Clone)]
pub(crate) enum Failed {
    /// No answer came, or one that leaves open what the server did.
    Lost(String),
    /// The server refused, and did nothing.
    Refused(ServerError),
    /// The database is not one for this call.
    Unfit(Refusal),
}

impl Failed {
    /// Whether a later connection may be more successful.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Lost(_) => true,
            // Serialization failures, and resources that are short for a while; a server that becomes a standby.
            Self::Refused(error) => {
                matches!(error.code.get(..2), Some("40" | "53" | "08" | "57")) || error.code == "25006"
            }
            Self::Unfit(_) => false,
        }
    }
}

impl From<tokio_postgres::Error> for Failed {
    fn from(error: tokio_postgres::Error) -> Self {
        if let Some(message) = of_certificate(&error) {
            return Self::Unfit(Refusal::Tls(message));
        }
        let Some(answer) = error.as_db_error().map(ServerError::of) else {
            let source = error.source().map_or(String::new(), |source| format!(": {source}"));
            return Self::Lost(format!("{error}{source}"));
        };
        match answer.code.get(..2) {
            Some("08" | "57") if !answer.is_of_pooler() => Self::Lost(answer.to_string()),
            _ => Self::Refused(answer),
        }
    }
}

/// The message of an error about a certificate, which is the same at each attempt.
fn of_certificate(error: &tokio_postgres::Error) -> Option<String> {
    let error = error.source()?.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref::<rustls::Error>()?;
    let is_decisive = matches!(error, rustls::Error::InvalidCertificate(_) | rustls::Error::AlertReceived(_));
    is_decisive.then(|| error.to_string())
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(message) => f.write_str(message),
            Self::Refused(error) => error.fmt(f),
            Self::Unfit(refusal) => refusal.fmt(f),
        }
    }
}

impl Failed {
    /// The error of a call that changes nothing.
    pub(crate) fn into_engine_error(self, operation: &'static str) -> EngineError {
        match self {
            Self::Lost(message) => EngineError::Unavailable { message },
            Self::Refused(error) if error.code == "CG004" => {
                refused(operation, Refusal::NotReplicated(error))
            }
            Self::Refused(error) if error.is_of_damage() => {
                EngineError::Corrupt { place: Place::Unknown, message: error.to_string() }
            }
            Self::Refused(error) => refused(operation, Refusal::Refused(error)),
            Self::Unfit(refusal) => refused(operation, refusal),
        }
    }
}

/// The error of an operation that the database refuses.
pub(crate) fn refused(operation: &'static str, refusal: Refusal) -> EngineError {
    EngineError::Other { operation, source: Box::new(refusal) }
}

/// An error of a read, which can be returned for each of its keys.
#[derive(Debug, Clone)]
pub(crate) enum ReadError {
    Closed,
    /// The state of a snapshot is lost.
    Gone(CommitSeq),
    Failed(Arc<Failed>),
}

impl ReadError {
    pub(crate) fn engine_error(&self) -> EngineError {
        match self {
            Self::Closed => EngineError::Closed,
            Self::Gone(seq) => EngineError::SnapshotGone { seq: *seq },
            Self::Failed(failed) => Failed::clone(failed).into_engine_error("read rows"),
        }
    }
}

impl From<Failed> for ReadError {
    fn from(failed: Failed) -> Self {
        Self::Failed(Arc::new(failed))
    }
}
