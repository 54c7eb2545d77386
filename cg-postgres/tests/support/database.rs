//! The server of the tests, and worlds that are removed after them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cg_engine::EngineError;
use cg_postgres::{Address, Options, PostgresEngine};
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::{Config, NoTls, SimpleQueryMessage};

/// The server that `CG_PG_URL` names.
///
/// `None` when it names none, after saying so loudly; in CI it is set, and empty where another step has a server.
pub(crate) fn database() -> Option<Database> {
    let stated = std::env::var("CG_PG_URL").ok();
    let is_stated = stated.is_some();
    let Some(url) = stated.filter(|url| !url.is_empty()) else {
        let message =
            "no server: set CG_PG_URL to the address of one, postgres://USER:PASSWORD@HOST/DATABASE";
        assert!(is_stated || std::env::var_os("CI").is_none(), "{message}");
        eprintln!("\n*** NOT TESTED: {message} ***\n");
        return None;
    };
    Some(Database { url })
}

#[derive(Debug, Clone)]
pub(crate) struct Database {
    pub(crate) url: String,
}

/// A world of one test. Its schema is removed when the value is dropped.
#[derive(Debug)]
pub(crate) struct TestWorld {
    database: Database,
    pub(crate) address: Address,
}

pub(crate) fn options() -> Options {
    let mut options = Options::default();
    options.patience = Duration::from_secs(20);
    options.max_batch_bytes = 64 << 20;
    options
}

impl Database {
    /// A world that is not there yet.
    pub(crate) fn world(&self) -> TestWorld {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        self.named(&format!("test {} {n}", std::process::id()))
    }

    pub(crate) fn named(&self, name: &str) -> TestWorld {
        let address: Address = self.url.parse().expect("CG_PG_URL is an address");
        TestWorld { database: self.clone(), address: address.with_world(name).expect("fits") }
    }

    /// The address with other parameters.
    pub(crate) fn with(&self, parameters: &str) -> Address {
        let base = self.url.split('?').next().expect("has a first part");
        format!("{base}?{parameters}").parse().expect("is an address")
    }

    /// The password of the role; empty if it has none.
    pub(crate) fn password(&self) -> String {
        let account = self.url.rsplit_once('@').and_then(|(account, _)| account.split_once("://"));
        let password = account.and_then(|(_, account)| account.split_once(':')).map(|(_, password)| password);
        password.map(Into::into).or_else(|| std::env::var("PGPASSWORD").ok()).unwrap_or_default()
    }

    /// The address with another host.
    pub(crate) fn over(&self, host: &str) -> Address {
        let (base, parameters) = self.url.split_once('?').unwrap_or((&self.url, ""));
        let (account, place) = base.rsplit_once('@').expect("has a user");
        let (_, name) = place.split_once('/').expect("has a database");
        format!("{account}@{host}/{name}?{parameters}").parse().expect("is an address")
    }

    /// The address of another database of the server.
    pub(crate) fn in_database(&self, name: &str) -> Address {
        let (base, _) = self.url.split_once('?').unwrap_or((&self.url, ""));
        let (servers, _) = base.rsplit_once('/').expect("has a database");
        format!("{servers}/{}", name.replace(' ', "%20")).parse().expect("is an address")
    }

    /// The host and port of the server that takes writes.
    pub(crate) fn primary(&self) -> String {
        let host = self.run("SELECT host(inet_server_addr()) || ':' || inet_server_port()");
        host.expect("is reached over TCP")
    }

    /// Runs statements in a session of its own. Returns the first column of the last row.
    pub(crate) fn run(&self, statements: &str) -> Option<String> {
        self.try_run(statements).unwrap_or_else(|error| panic!("{statements}: {error:?}"))
    }

    pub(crate) fn try_run(&self, statements: &str) -> Result<Option<String>, tokio_postgres::Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("builds");
        runtime.block_on(async {
            let base = self.url.split('?').next().expect("has a first part");
            let mut config: Config = base.parse().expect("is an address of libpq");
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
            if let Ok(password) = std::env::var("PGPASSWORD") {
                config.password(password);
            }
            let (client, connection) = config.connect(NoTls).await?;
            tokio::spawn(connection);
            let answers = client.simple_query(statements).await?;
            let column = |message| match message {
                SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
                _ => None,
            };
            Ok(answers.into_iter().filter_map(column).last())
        })
    }
}

impl TestWorld {
    pub(crate) fn create(&self) -> PostgresEngine {
        PostgresEngine::create(&self.address, &options()).expect("is made")
    }

    pub(crate) fn open(&self) -> Result<PostgresEngine, EngineError> {
        PostgresEngine::open(&self.address, &options())
    }

    pub(crate) fn read(&self) -> PostgresEngine {
        PostgresEngine::open_read_only(&self.address, &options()).expect("opens")
    }

    /// The name of its schema, quoted.
    pub(crate) fn schema(&self) -> String {
        format!("\"cg_{}\"", self.address.world().replace('"', "\"\""))
    }

    /// Runs statements, in which `{schema}` is the schema of this world.
    pub(crate) fn run(&self, statements: &str) -> Option<String> {
        self.database.run(&statements.replace("{schema}", &self.schema()))
    }

    /// Replaces a text of a function by another. In both, `{schema}` is the schema of this world.
    pub(crate) fn replace(&self, function: &str, text: &str, mutant: &str) {
        let schema = self.schema().replace('\'', "''");
        let definition = self.run(&format!("SELECT pg_get_functiondef('{schema}.{function}'::regproc)"));
        let definition = definition.expect("there is such a function");
        let [text, mutant] = [text, mutant].map(|text| text.replace("{schema}", &self.schema()));
        assert!(definition.contains(&text), "{definition}");
        self.run(&definition.replace(&text, &mutant));
    }
}

impl Drop for TestWorld {
    fn drop(&mut self) {
        let dropped = self.database.try_run(&format!("DROP SCHEMA IF EXISTS {} CASCADE", self.schema()));
        if let Err(error) = dropped
            && !std::thread::panicking()
        {
            panic!("{}: {error}", self.schema());
        }
    }
}
