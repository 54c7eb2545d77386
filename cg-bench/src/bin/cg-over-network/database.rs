//! The database, and the network between it and the worlds that are measured.

use std::sync::Arc;
use std::time::Duration;

use cg_engine::conformance::{Counter, Counting};
use cg_postgres::{Address, Options, PostgresEngine};

use crate::failure::Failure;
use crate::proxy::{Proxy, Trips, own_time};

/// The port of a host that names none.
const PORT: u16 = 5432;

/// The database that an address names.
#[derive(Debug)]
pub(crate) struct Database {
    /// All before the hosts, the hosts, and all after them.
    parts: [String; 3],
}

/// The database over a network of one delay.
#[derive(Debug)]
pub(crate) struct Network<'d> {
    database: &'d Database,
    pub(crate) delay: Duration,
    hosts: String,
    /// None without a delay: then connections are direct.
    trips: Option<Arc<Trips>>,
    _proxies: Vec<Proxy>,
}

/// Begins the names of all worlds of this process.
pub(crate) fn prefix() -> String {
    format!("bench {}", std::process::id())
}

impl Database {
    /// The database of an address.
    ///
    /// # Errors
    /// It is no address, or one of a socket.
    pub(crate) fn new(url: &str) -> Result<Self, Failure> {
        let _: Address = url.parse()?;
        let (scheme, rest) = url.split_once("://").ok_or("an address has `://`")?;
        let (authority, path) = rest.split_once('/').ok_or("an address has a database")?;
        let (user, hosts) = authority.rsplit_once('@').ok_or("the address has no user")?;
        let parts = [format!("{scheme}://{user}@"), hosts.to_owned(), format!("/{path}")];
        Ok(Self { parts })
    }

    /// The database over a network whose round trips take the delay longer: what the proxies take by themselves is part
    /// of it.
    ///
    /// # Errors
    /// No port is free.
    pub(crate) fn over(&self, delay: Duration) -> Result<Network<'_>, Failure> {
        let [_, hosts, _] = &self.parts;
        if delay.is_zero() {
            return Ok(Network {
                database: self,
                delay,
                hosts: hosts.clone(),
                trips: None,
                _proxies: Vec::new(),
            });
        }
        let trips = Arc::new(Trips::default());
        let added = delay.saturating_sub(own_time(delay)?);
        let proxies = hosts.split(',').map(|host| Proxy::new(&with_port(host), added, &trips));
        let proxies = proxies.collect::<Result<Vec<_>, _>>()?;
        let hosts = proxies.iter().map(Proxy::host).collect::<Vec<_>>().join(",");
        Ok(Network { database: self, delay, hosts, trips: Some(trips), _proxies: proxies })
    }
}

impl Network<'_> {
    /// The address of a world of this process.
    ///
    /// # Errors
    /// The name is too long.
    pub(crate) fn address(&self, world: &str) -> Result<Address, Failure> {
        let [before, _, after] = &self.database.parts;
        let address: Address = format!("{before}{}{after}", self.hosts).parse()?;
        Ok(address.with_world(&format!("{} {world}", prefix()))?)
    }

    /// An engine of a new world.
    ///
    /// # Errors
    /// As [`PostgresEngine::create`].
    pub(crate) fn create(&self, world: &str) -> Result<(Counting, Counter), Failure> {
        Ok(Counting::over(PostgresEngine::create(&self.address(world)?, &Options::default())?))
    }

    /// An engine of a world that is there.
    ///
    /// # Errors
    /// As [`PostgresEngine::open`].
    pub(crate) fn open(&self, world: &str) -> Result<(Counting, Counter), Failure> {
        Ok(Counting::over(PostgresEngine::open(&self.address(world)?, &Options::default())?))
    }

    /// The round trips so far; `None` without a delay.
    pub(crate) fn trips(&self) -> Option<u64> {
        self.trips.as_ref().map(|trips| trips.count())
    }
}

fn with_port(host: &str) -> String {
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if has_port { host.to_owned() } else { format!("{host}:{PORT}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_of_an_address_are_replaced_and_nothing_else() {
        let database = Database::new("postgres://u:p%40q@a:1,b/games?sslmode=disable").expect("an address");
        let direct = database.over(Duration::ZERO).expect("no port is needed");
        let world = format!("world=bench%20{}%20w", std::process::id());
        assert_eq!(
            direct.address("w").expect("short").to_string(),
            format!("postgres://u@a:1,b/games?{world}&sslmode=disable")
        );
        let delayed = database.over(Duration::from_millis(1)).expect("ports");
        let text = delayed.address("w").expect("short").to_string();
        let hosts = text.strip_prefix("postgres://u@").and_then(|text| text.split_once('/'));
        let (hosts, rest) = hosts.expect("has hosts");
        assert_eq!(rest, format!("games?{world}&sslmode=disable"));
        assert!(
            hosts.split(',').all(|host| host.starts_with("127.0.0.1:")) && hosts.matches(',').count() == 1
        );
        assert_eq!(["a", "a:7", "[::1]:7"].map(with_port), ["a:5432", "a:7", "[::1]:7"]);
    }
}
