//! The place of a world: a directory, or an address of rows in a database.

mod parser;
#[cfg(feature = "postgres")]
mod postgres;
mod secret;
#[cfg(not(feature = "postgres"))]
mod without;

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use cg_anvil::import;
use cg_registry::Plan;
use cg_store::engine::{CommitSeq, Engine as _};
use cg_store::quarantine::SalvagedCommit;
use cg_store::{Error, World, WorldBuilder, WorldOptions};

pub(crate) use self::parser::{DirectoryParser, PlaceParser};
#[cfg(feature = "postgres")]
pub(crate) use self::postgres::Address;
pub(crate) use self::secret::without_passwords;
#[cfg(not(feature = "postgres"))]
pub(crate) use self::without::Address;
use crate::output::Failure;

/// The beginnings of an address.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// The place of a world. As text, it has no password.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// A directory.
    Directory(PathBuf),
    /// Rows in a database.
    Address(Address),
}

impl Place {
    /// A directory, or an address if it begins like one.
    fn parse(text: &OsStr) -> Result<Self, String> {
        if !is_address(text) {
            return Ok(Self::Directory(text.into()));
        }
        let text = text.to_str().ok_or("an address is UTF-8")?;
        Address::parse(text).map(Self::Address)
    }

    /// The directory; of an address a refusal, with `instead`.
    pub(crate) fn directory(&self, instead: &str) -> Result<&Path, Failure> {
        match self {
            Self::Directory(path) => Ok(path),
            Self::Address(address) => Err(Failure::usage(format!(
                "{address} is no directory, and this command is for worlds in directories: {instead}"
            ))),
        }
    }

    /// The directory, if it holds a segmented world or what is left of one.
    pub(crate) fn segmented(&self) -> Option<&Path> {
        let Self::Directory(path) = self else { return None };
        let has_parts = path.join("root").join("world.cg").exists() || path.join("segments").is_dir();
        (has_parts && !path.join("world.cg").exists()).then_some(path)
    }

    /// Refuses a segmented world, for a command of one world.
    pub(crate) fn refuse_segmented(&self) -> Result<(), Failure> {
        let Some(path) = self.segmented() else { return Ok(()) };
        let path = path.display();
        Err(Failure::usage(format!(
            "{path} is a segmented world, and this command is of one world: name {path}/root, or one in {path}/segments; \
             archive, checkpoint, compact, hash, info, registry check, restore, segments and verify are of all of them"
        )))
    }

    /// Whether both are one place.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Directory(one), Self::Directory(other)) => {
                let [one, other] = [one, other].map(|path| path.canonicalize().ok());
                one.is_some() && one == other
            }
            (Self::Address(one), Self::Address(other)) => one.is_same(other),
            _ => false,
        }
    }

    /// Opens the world for writing.
    pub(crate) fn open(&self, builder: WorldBuilder<'_>) -> Result<World, Error> {
        match self {
            Self::Directory(path) => builder.open(path),
            Self::Address(address) => builder.open_over(address.writer()?),
        }
    }

    /// Opens the world for reading: no byte of it is changed. A database is read beside the process that writes it.
    pub(crate) fn open_read_only(&self, builder: WorldBuilder<'_>) -> Result<World, Error> {
        match self {
            Self::Directory(path) => builder.open_read_only(path),
            Self::Address(address) => builder.open_read_only_over(address.reader()?),
        }
    }

    /// Says what an open with the packs of `builder` would change.
    pub(crate) fn plan(&self, builder: WorldBuilder<'_>) -> Result<Plan, Error> {
        match self {
            Self::Directory(path) => builder.plan(path),
            Self::Address(address) => builder.plan_over(address.reader()?),
        }
    }

    /// Quarantines the damaged parts of a commit with which the world does not open.
    pub(crate) fn salvage_commit(&self, builder: WorldBuilder<'_>) -> Result<Option<SalvagedCommit>, Error> {
        match self {
            Self::Directory(path) => builder.salvage_commit(path),
            Self::Address(address) => builder.salvage_over(address.writer()?),
        }
    }

    /// Opens the world for writing, or makes one where there is none.
    pub(crate) fn open_or_create(&self, options: &WorldOptions) -> Result<World, Error> {
        match self {
            Self::Directory(path) => import::open_or_create(path, options),
            Self::Address(address) => {
                let engine = match address.writer() {
                    Err(error) if Address::is_absence(&error) => address.created()?,
                    engine => engine?,
                };
                let is_new = engine.last_commit() == CommitSeq::NONE;
                let options = if is_new { import::of_new_world(options) } else { options.clone() };
                World::builder().options(&options).over(engine)
            }
        }
    }

    /// Whether [`open_or_create`](Self::open_or_create) makes a world rather than open one.
    pub(crate) fn makes_world(&self) -> Result<bool, Error> {
        match self {
            Self::Directory(path) => import::makes_world(path),
            Self::Address(address) => match address.reader() {
                Err(error) if Address::is_absence(&error) => Ok(true),
                engine => engine.map(|_| false),
            },
        }
    }
}

/// Whether a text is meant as an address: it is never taken for a directory.
fn is_address(text: &OsStr) -> bool {
    SCHEMES.iter().any(|scheme| text.as_encoded_bytes().starts_with(scheme.as_bytes()))
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => path.display().fmt(f),
            Self::Address(address) => address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_like_an_address_is_never_a_directory() {
        for text in
            ["w", "./postgres://h/db", "postgres:/h/db", "postgres", "POSTGRES://u@h/db", "mysql://u@h/db"]
        {
            let place = Place::parse(OsStr::new(text));
            assert!(
                matches!(&place, Ok(Place::Directory(path)) if path == Path::new(text)),
                "{text}: {place:?}"
            );
        }
        for text in ["postgres://", "postgresql://", "postgres://h/db", "postgres://u@h/db?wrold=w"] {
            let place = Place::parse(OsStr::new(text));
            assert!(place.is_err(), "{text}: {place:?}");
        }
    }

    #[cfg(not(feature = "postgres"))]
    #[test]
    fn without_the_feature_an_address_is_refused_by_name() {
        for text in ["postgres://u@h/db", "postgresql://u:secret@h:1/db?world=w"] {
            let refused = Place::parse(OsStr::new(text)).expect_err("there is no PostgreSQL in it");
            assert_eq!(refused, "this cg was built without PostgreSQL: build it with --features postgres");
        }
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn an_address_is_shown_without_its_password() {
        let of = |text: &str| Place::parse(OsStr::new(text)).map(|place| place.to_string());
        let shown = "postgres://u@h:1/db?world=w";
        assert_eq!(of("postgresql://u:secret@h:1/db?world=w").as_deref(), Ok(shown));
        assert_eq!(of("postgres://u@h/db").as_deref(), Ok("postgres://u@h/db?world=world"));
        let wrong = of("postgres://u:secret@h/db?wrold=w").expect_err("no such parameter");
        assert!(wrong.starts_with("the address has no parameter \"wrold\"; there are world, "), "{wrong}");
        let place = Place::parse(OsStr::new("postgres://u:secret@h/db")).expect("is one");
        let refused = place.directory("copy it").expect_err("no directory").to_string();
        assert_eq!(
            refused,
            "postgres://u@h/db?world=world is no directory, and this command is for worlds in directories: copy it"
        );
    }
}
