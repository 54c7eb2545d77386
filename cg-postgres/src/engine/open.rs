//! Making and opening the schema of a world.

use std::sync::Arc;
use std::time::Duration;

use cg_engine::{EngineError, Family, Place};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::PostgresEngine;
use super::again::{self, Head};
use super::commit::Owner;
use super::inspect::{Release, Schema};
use super::read::SEGMENT;
use crate::address::Address;
use crate::error::{Failed, Refusal, ServerError, refused};
use crate::options::Options;
use crate::pool::Pool;
use crate::schema::{self, RECORDS};
use crate::session::Session;

/// The time that the lock of a process that just ended gets to be free.
const UNLOCKING: Duration = Duration::from_secs(1);

/// Why a world cannot be opened.
enum NotOpened {
    Failed(Failed),
    Damaged(String),
    Absent(&'static str),
    Exists,
    InUse { owner: String },
}

impl<E: Into<Failed>> From<E> for NotOpened {
    fn from(failed: E) -> Self {
        Self::Failed(failed.into())
    }
}

impl NotOpened {
    fn engine_error(self, place: String, operation: &'static str) -> EngineError {
        match self {
            Self::Failed(Failed::Lost(message)) => {
                EngineError::Unavailable { message: format!("{place}: {message}") }
            }
            Self::Failed(Failed::Refused(error)) if error.code() != "CG004" => {
                refused(operation, Refusal::At { place, error })
            }
            Self::Failed(failed) => failed.into_engine_error(operation),
            Self::Damaged(message) => EngineError::Corrupt { place: Place::Family(Family::Record), message },
            Self::Absent(reason) => EngineError::NotAnEngineDir { dir: place.into(), reason: reason.into() },
            Self::Exists => EngineError::AlreadyExists { dir: place.into() },
            Self::InUse { owner } => EngineError::InUse { place, owner },
        }
    }
}

impl PostgresEngine {
    /// Makes the schema of a new world, and opens it for writing. A schema that is there and empty is used.
    ///
    /// # Errors
    /// [`EngineError::AlreadyExists`] if the schema has a world. [`EngineError::Unavailable`] if no server takes writes.
    /// [`EngineError::Other`] with a [`Refusal`]: nothing was made.
    pub fn create(address: &Address, options: &Options) -> Result<Self, EngineError> {
        Self::opened(address, options, "make the world", async |pool| {
            let session = pool.look_first().await?;
            let (found, has_lock) =
                tokio::join!(biased; Schema::inspect(&pool.sql, &session), again::lock(&pool, &session));
            make(&pool, &session, &found?).await?;
            own(&pool, session, has_lock?).await
        })
    }

    /// Opens a world for writing. Makes nothing. Every earlier owner is fenced.
    ///
    /// # Errors
    /// [`EngineError::NotAnEngineDir`] if the world is not there. [`EngineError::InUse`] if another process has it open
    /// for writing, unless the address [takes](Address::takes) it. [`EngineError::Unavailable`] if no server takes
    /// writes. [`EngineError::Other`] with a [`Refusal`]: nothing was changed.
    pub fn open(address: &Address, options: &Options) -> Result<Self, EngineError> {
        Self::opened(address, options, "open the world", async |pool| {
            let session = pool.look_first().await?;
            let (present, has_lock) = tokio::join!(
                biased;
                present(&pool, &session, schema::Access::Write),
                again::lock(&pool, &session),
            );
            present?;
            own(&pool, session, has_lock?).await
        })
    }

    /// Opens a world for reading only, beside the process that writes it. Takes no lock and writes nothing.
    ///
    /// [`last_commit`](cg_engine::Engine::last_commit) is that of the newest snapshot that this engine took.
    ///
    /// # Errors
    /// As [`open`](Self::open), without [`EngineError::InUse`].
    pub fn open_read_only(address: &Address, options: &Options) -> Result<Self, EngineError> {
        Self::opened(address, options, "open the world for reading", async |pool| {
            let session = pool.look_first().await?;
            let (present, head) = tokio::join!(
                biased;
                present(&pool, &session, schema::Access::Read),
                again::head(&pool, &session),
            );
            present?;
            Ok((head?.ok_or(NotOpened::Absent(NO_HEAD))?, None))
        })
    }

    fn opened<F>(
        address: &Address,
        options: &Options,
        operation: &'static str,
        open: impl FnOnce(Arc<Pool>) -> F,
    ) -> Result<Self, EngineError>
    where
        F: Future<Output = Result<(Head, Option<Owner>), NotOpened>> + Send + 'static,
    {
        let pool = Pool::new(address, options)?;
        let opening = open(Arc::clone(&pool));
        let (deadline, patience) = (pool.deadline(), pool.options.patience);
        let opened = pool.wait(async move {
            let late = |_| Err(Failed::Lost(format!("no answer within {patience:?}")).into());
            Ok(timeout_at(deadline, opening).await.unwrap_or_else(late))
        });
        let opened = opened.map_err(NotOpened::Failed).and_then(|opened| opened);
        let (head, owner) = opened.map_err(|error| error.engine_error(pool.place(), operation))?;
        Ok(Self::new(pool, &head, owner))
    }
}

const NO_HEAD: &str = "its schema has no head";

/// Makes the tables and functions of a new world.
async fn make(pool: &Pool, session: &Session, found: &Schema) -> Result<(), NotOpened> {
    check_replication(pool, found)?;
    found.check_foreign(&pool.sql)?;
    if !found.tables.is_empty() {
        return Err(NotOpened::Exists);
    }
    found.check_rights_to_make(&pool.sql)?;
    let new = if found.is_there { "" } else { "CREATE SCHEMA {schema};" };
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended('cg-postgres schema', 0));";
    let tables = pool.sql.tables();
    let text = format!("BEGIN; {lock} {} {tables} COMMIT;", pool.sql.text(new));
    match session.client.batch_execute(&text).await.map_err(Failed::from) {
        // Another process made it meanwhile.
        Err(Failed::Refused(error)) if matches!(error.code(), "42P06" | "42P07" | "23505") => {
            Err(NotOpened::Exists)
        }
        made => Ok(made?),
    }
}

/// Checks that the world is there, and that this release and this role may open it.
async fn present(pool: &Pool, session: &Session, access: schema::Access) -> Result<(), NotOpened> {
    let (found, release) = tokio::join!(
        biased;
        Schema::inspect(&pool.sql, session),
        Release::inspect(&pool.sql, session),
    );
    let found = found?;
    if !found.is_there {
        return Err(NotOpened::Absent("the database has no schema for it"));
    }
    // Before the tables of other software, which one that was detached would be.
    if let Ok(release) = &release
        && let Ok(gone) = release.check(&pool.sql, access)
        && !gone.is_empty()
    {
        return Err(NotOpened::Damaged(format!(
            "of the table {RECORDS} these partitions are gone: {}; attach those that were detached, or restore the schema {} from a backup",
            gone.join(", "),
            pool.sql.schema
        )));
    }
    found.check_foreign(&pool.sql)?;
    if found.tables.is_empty() {
        return Err(NotOpened::Absent("its schema is empty"));
    }
    found.check_rights(&pool.sql, access)?;
    release?.check(&pool.sql, access)?;
    if access == schema::Access::Write {
        check_replication(pool, &found)?;
    }
    Ok(())
}

fn check_replication(pool: &Pool, found: &Schema) -> Result<(), NotOpened> {
    if pool.needs_quorum() && found.standby_names.is_empty() {
        let error = ServerError::not_replicated();
        return Err(NotOpened::Failed(Failed::Unfit(Refusal::NotReplicated(error))));
    }
    Ok(())
}

/// Becomes the owner of a world that is there, for writing.
async fn own(
    pool: &Arc<Pool>,
    session: Session,
    mut has_lock: bool,
) -> Result<(Head, Option<Owner>), NotOpened> {
    let address = pool.connector.address();
    let until = Instant::now() + UNLOCKING;
    while !has_lock && !address.takes() {
        if Instant::now() >= until {
            let head = again::head(pool, &session).await?;
            let owner = head.map_or_else(|| "a process that is about to open it".into(), |head| head.owner);
            return Err(NotOpened::InUse { owner });
        }
        sleep(Duration::from_millis(50)).await;
        has_lock = again::lock(pool, &session).await?;
    }
    let quorum = pool.needs_quorum();
    let (epoch, own) = (new_epoch(), name_of_this_process());
    let parameters: [(&(dyn ToSql + Sync), Type); 4] =
        [(&SEGMENT, Type::INT8), (&epoch, Type::INT8), (&quorum, Type::BOOL), (&own, Type::TEXT)];
    let deadline = pool.deadline();
    let (text, standbys) = (pool.sql.text(schema::OPEN), pool.sql.text(schema::STANDBYS));
    let head = loop {
        let warnings = session.warnings();
        let calls = async {
            // The first commit prepares its statements if that fails.
            let (rows, waits, _prepared) = tokio::join!(
                biased;
                session.client.query_typed(&text, &parameters),
                again::still_waits(pool, session.client.query_typed(&standbys, &[])),
                Box::pin(session.writing(&pool.sql)),
            );
            Ok::<_, Failed>((rows?, waits))
        };
        let (rows, waits) = pool.answer(&session, calls, deadline).await?;
        let failed = match waits {
            Ok(()) if session.warnings() == warnings => {
                break rows.first().map(Head::of).transpose()?.ok_or(NotOpened::Absent(NO_HEAD))?;
            }
            Ok(()) => Failed::Lost("the wait for another node was cancelled".into()),
            Err(failed) => failed,
        };
        pool.pause(failed, deadline).await?;
    };
    let owner = Owner::of(&head, Arc::new(session));
    Ok((head, Some(owner)))
}

/// A number that no other owner has: 62 random bits.
fn new_epoch() -> i64 {
    (Uuid::new_v4().as_u64_pair().1 & ((1 << 62) - 1)) as i64
}

/// The name of this process for people: its machine and its number.
fn name_of_this_process() -> String {
    #[cfg(unix)]
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let host = std::env::var("COMPUTERNAME").unwrap_or_else(|_| "a machine without a name".into());
    format!("process {} on {host}", std::process::id())
}
