//! Properties: named values of the world itself and of mods, committed together with everything else.

use std::fmt;
use std::ops::{Bound, ControlFlow};

use cg_format::Space;
use cg_format::frame::FrameView;
use cg_format::key::Family;
use cg_registry::Name;

use crate::api::world::{Inner, World};
use crate::engine::ReadableExt as _;
use crate::storage::error::{ConflictKey, Damage, Error};

/// The name of a property.
///
/// The world's own properties (family `worldMeta`) are the three that every world has; all others belong to a mod's
/// namespace (family `worldProperties`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Property {
    /// The seed of the world's generator: 8 bytes, little-endian, where the host is CherryGrove.
    Seed,
    /// The world's salt for hashing: a UUID's 16 bytes.
    Key,
    /// The world's time: 8 bytes, little-endian.
    Time,
    /// A mod's property, `namespace:name`.
    Named(Name),
}

impl Property {
    pub(crate) fn row(&self) -> (Space, &[u8]) {
        match self {
            Self::Seed => (Space::WorldMeta, b"seed"),
            Self::Key => (Space::WorldMeta, b"key"),
            Self::Time => (Space::WorldMeta, b"time"),
            Self::Named(name) => (Space::WorldProperty, name.as_str().as_bytes()),
        }
    }

    /// The property of a row's key, in whichever of both families; `None` if it is none.
    pub(crate) fn of_key(key: &[u8]) -> Option<Self> {
        Some(match key {
            b"seed" => Self::Seed,
            b"key" => Self::Key,
            b"time" => Self::Time,
            name => Self::Named(Name::new(str::from_utf8(name).ok()?).ok()?),
        })
    }

    /// Whether it is in the engine's own, nameless namespace.
    pub(crate) fn is_engines(&self) -> bool {
        matches!(self, Self::Named(name) if name.as_str().starts_with(':'))
    }

    pub(crate) fn conflict_key(&self) -> ConflictKey {
        ConflictKey::Property(self.to_string())
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Seed => "seed",
            Self::Key => "key",
            Self::Time => "time",
            Self::Named(name) => name.as_str(),
        })
    }
}

impl World {
    /// A property as last committed, or `None` if it was never set. One key read.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged.
    pub fn property(&self, property: &Property) -> Result<Option<Vec<u8>>, Error> {
        self.settled()?.property(property)
    }

    /// Shows the named properties that begin with a text, ascending by name, until `visit` breaks. A damaged one is
    /// shown as an error. Reads their rows once.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use cg_store::prelude::*;
    /// let world = World::temporary(&[], &WorldOptions::default())?;
    /// world.transaction(|tx| {
    ///     for name in ["game:a/1", "game:a/2", "game:b", "other:a/3"] {
    ///         tx.set_property(Property::Named(Name::new(name)?), Some(name.into()));
    ///     }
    ///     Ok::<_, Box<dyn std::error::Error>>(())
    /// })?;
    /// let mut names = Vec::new();
    /// world.for_each_property("game:a/", |property| {
    ///     names.extend(property.map(|(name, _)| name.to_owned()));
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// assert_eq!(names, ["game:a/1", "game:a/2"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the engine fails.
    pub fn for_each_property<B>(
        &self,
        prefix: &str,
        mut visit: impl FnMut(Result<(&str, &[u8]), Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        let from = (Bound::Included(prefix.as_bytes()), Bound::Unbounded);
        let ended = self.settled()?.settled_engine()?.snapshot()?.scan(
            Family::WorldProperties,
            from,
            |key, row| {
                if !key.starts_with(prefix.as_bytes()) {
                    return ControlFlow::Break(None);
                }
                let name = String::from_utf8_lossy(key);
                let frame = FrameView::open(Space::WorldProperty, key, row).map_err(|problem| {
                    Damage::of_row(Space::WorldProperty, key, format!("property `{name}`"), problem)
                });
                match frame {
                    Ok(frame) => visit(Ok((&name, frame.payload()))),
                    Err(damage) => visit(Err(damage)),
                }
                .map_break(Some)
            },
        )?;
        Ok(ended.flatten())
    }
}

impl Inner {
    pub(crate) fn property(&self, property: &Property) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.found_property(property)?.map(|(bytes, _)| bytes))
    }

    /// A property with the commit that wrote it.
    pub(crate) fn found_property(&self, property: &Property) -> Result<Option<(Vec<u8>, u64)>, Error> {
        if let Some((commit, bytes)) = self.queue.property(property) {
            return Ok(bytes.map(|bytes| (bytes, commit)));
        }
        let (space, key) = property.row();
        let engine = self.engine()?;
        let Some(row) = engine.get(space, key)? else { return Ok(None) };
        let frame = FrameView::open(space, key, &row)
            .map_err(|problem| Damage::of_row(space, key, format!("property `{property}`"), problem))?;
        Ok(Some((frame.payload().to_vec(), frame.header().version)))
    }
}
