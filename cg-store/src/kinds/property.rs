//! Properties: named values of the world itself and of mods, committed together with everything else.

use std::fmt;
use std::ops::{Bound, ControlFlow};

use cg_format::Space;
use cg_format::frame::{Codec, Draft};
use cg_format::key::Family;
use cg_registry::Name;

use crate::engine::{Batch, Readable, ReadableExt as _, Stamp};
use crate::storage::error::Error;
use crate::storage::meta::open_row;

/// The name of a property.
///
/// The world's own properties (family `worldMeta`) have names of the engine's. All others belong to the
/// namespace of a mod (family `worldProperties`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Property {
    /// The seed of the world's generator: 8 bytes, little-endian, if the host is CherryGrove.
    Seed,
    /// The world's salt for hashing: a UUID's 16 bytes.
    Key,
    /// The world's time: 8 bytes, little-endian.
    Time,
    /// The name that people see, as text.
    Name,
    /// When the world was made, by the clock of its host: milliseconds since 1970, 8 bytes, little-endian.
    Created,
    /// When the world was changed last, likewise.
    Changed,
    /// The program that wrote the world last, with its version, as text.
    Engine,
    /// A picture of the world: a PNG file.
    Thumbnail,
    /// A mod's property, `namespace:name`.
    Named(Name),
}

impl Property {
    /// The properties that are no mod's, with the keys of their rows.
    const OWN: [(Self, &'static str); 8] = [
        (Self::Seed, "seed"),
        (Self::Key, "key"),
        (Self::Time, "time"),
        (Self::Name, "name"),
        (Self::Created, "created_ms"),
        (Self::Changed, "changed_ms"),
        (Self::Engine, "engine"),
        (Self::Thumbnail, "thumbnail"),
    ];

    /// The row that holds it.
    pub fn row(&self) -> (Space, &[u8]) {
        let space = if let Self::Named(_) = self { Space::WorldProperty } else { Space::WorldMeta };
        (space, self.name().as_bytes())
    }

    /// The property of a row's key, in either family; `None` if the key is not of a property.
    pub fn of_key(key: &[u8]) -> Option<Self> {
        let key = str::from_utf8(key).ok()?;
        let own = Self::OWN.into_iter().find(|(_, name)| *name == key);
        own.map(|(property, _)| property).or_else(|| Name::new(key).ok().map(Self::Named))
    }

    /// Whether a key of `worldMeta` is of a property.
    pub(crate) fn is_own(key: &[u8]) -> bool {
        Self::OWN.iter().any(|(_, name)| name.as_bytes() == key)
    }

    fn name(&self) -> &str {
        if let Self::Named(name) = self {
            return name.as_str();
        }
        Self::OWN.iter().find(|(own, _)| own == self).map_or("", |(_, name)| name)
    }

    /// The bytes that its row has.
    pub(crate) fn open(&self, row: &[u8]) -> Result<Vec<u8>, Error> {
        let (space, key) = self.row();
        open_row(space, key, row, || format!("property `{self}`"), |frame| Ok(frame.payload().to_vec()))
    }

    /// Adds its row to a batch; `None` removes it.
    pub(crate) fn put_row(&self, batch: &mut Batch, bytes: Option<&[u8]>) {
        let (space, row) = self.row();
        match bytes {
            Some(bytes) => {
                let draft = Draft::plain(Codec::None, 0, |out| out.extend(bytes));
                batch.put(space, row, draft, Stamp::Commit);
            }
            None => batch.delete(space, row),
        }
    }

    /// Whether it holds one of the [settings](crate::settings::WorldSettings).
    pub(crate) fn is_setting(&self) -> bool {
        match self {
            Self::Key => false,
            Self::Named(name) => name.as_str().starts_with("cg:"),
            _ => true,
        }
    }

    /// Whether it is in the engine's own, nameless namespace.
    pub fn is_engines(&self) -> bool {
        matches!(self, Self::Named(name) if name.as_str().starts_with(':'))
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Visits the named properties of a view that begin with a prefix, ascending by name, after a name. A damaged one is visited
/// as an error.
pub(crate) fn for_each<B>(
    view: &dyn Readable,
    prefix: &str,
    behind: Option<&str>,
    mut visit: impl FnMut(Result<(&str, &[u8]), Error>) -> ControlFlow<B>,
) -> Result<Option<B>, Error> {
    let from = match behind {
        Some(name) if name >= prefix => Bound::Excluded(name.as_bytes()),
        _ => Bound::Included(prefix.as_bytes()),
    };
    let ended = view.scan(Family::WorldProperties, (from, Bound::Unbounded), |key, row| {
        if !key.starts_with(prefix.as_bytes()) {
            return ControlFlow::Break(None);
        }
        let name = String::from_utf8_lossy(key);
        let what = || format!("property `{name}`");
        let bytes = open_row(Space::WorldProperty, key, row, what, |frame| Ok(frame.payload()));
        visit(bytes.map(|bytes| (&*name, bytes))).map_break(Some)
    })?;
    Ok(ended.flatten())
}
