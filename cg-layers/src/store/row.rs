//! A decoded row of a lease.

use cg_format::Lookup;
use cg_format::overlay::Origin;

/// A decoded row of a lease.
#[derive(Debug, Clone)]
pub(crate) struct Row<T> {
    /// Found or deleted; in memory also not found, where there is no row.
    pub(crate) value: Lookup<T>,
    /// The commit of the store that wrote it.
    pub(crate) version: u64,
    pub(crate) origin: Origin,
    /// If the row is a delta, the origin of the base's chunk over which the value is.
    pub(crate) over: Option<Origin>,
}

impl<T> Row<T> {
    /// That there is no row.
    pub(super) const fn absent() -> Self {
        Self { value: Lookup::NotFound, version: 0, origin: Origin::ABSENT, over: None }
    }

    /// Whether there is no row.
    pub(crate) const fn is_absent(&self) -> bool {
        matches!(self.value, Lookup::NotFound)
    }

    /// The value, unless it is deleted.
    pub(crate) const fn here(&self) -> Option<&T> {
        if let Lookup::Found(value) = &self.value { Some(value) } else { None }
    }
}
