//! Addresses of worlds in PostgreSQL.

use std::fmt;

use cg_postgres::{Options, PostgresEngine};
use cg_store::engine::EngineError;
use cg_store::error::Location;
use cg_store::{Error, OpenError};

/// The address of a world in a database.
#[derive(Debug, Clone)]
pub(crate) struct Address(cg_postgres::Address);

impl Address {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|error: cg_postgres::AddressError| error.to_string())
    }

    /// The rows, for reading beside the process that writes them.
    pub(crate) fn reader(&self) -> Result<PostgresEngine, Error> {
        PostgresEngine::open_read_only(&self.0, &Options::default()).map_err(refused)
    }

    /// The rows, for writing.
    pub(crate) fn writer(&self) -> Result<PostgresEngine, Error> {
        PostgresEngine::open(&self.0, &Options::default()).map_err(refused)
    }

    /// The rows of a new world, of which there are none.
    pub(crate) fn created(&self) -> Result<PostgresEngine, Error> {
        PostgresEngine::create(&self.0, &Options::default()).map_err(refused)
    }

    /// Whether the database has no schema for the world, or an empty one.
    pub(crate) const fn is_absence(error: &Error) -> bool {
        matches!(error, Error::Open(OpenError::NotAWorld { at: Location::Address(_), .. }))
    }

    /// Whether both name one world, whatever their passwords.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }

    /// How a commit survives the loss of its server.
    pub(crate) fn replication(&self) -> String {
        self.0.replication().to_string()
    }

    /// SQL that removes the world.
    pub(crate) fn removal(&self) -> String {
        format!("DROP SCHEMA \"cg_{}\" CASCADE", self.0.world().replace('"', "\"\""))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The error of a world, for that of an engine that names a directory.
fn refused(error: EngineError) -> Error {
    let at = |place: std::path::PathBuf| Location::Address(place.to_string_lossy().into_owned());
    match error {
        EngineError::NotAnEngineDir { dir, reason } => {
            OpenError::NotAWorld { at: at(dir), why: reason }.into()
        }
        EngineError::AlreadyExists { dir } => OpenError::NotEmpty { at: at(dir) }.into(),
        error => error.into(),
    }
}
