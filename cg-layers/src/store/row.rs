//! A decoded row of a lease.

use cg_format::Lookup;
use cg_format::overlay::Origin;

/// A decoded row of a lease.
#[derive(Debug, Clone)]
pub(crate) struct Row<T> {
    /// Found or deleted.
    pub(crate) value: Lookup<T>,
    /// The commit of the store that wrote it.
    pub(crate) version: u64,
    pub(crate) origin: Origin,
    /// If the row is a delta, the origin of the base's chunk over which the value is.
    pub(crate) over: Option<Origin>,
}

impl<T> Row<T> {
    /// The value, unless it is deleted.
    pub(crate) const fn here(&self) -> Option<&T> {
        if let Lookup::Found(value) = &self.value { Some(value) } else { None }
    }
}
