//! Addresses in a tool without PostgreSQL: there are none.

use std::fmt;

use cg_store::Error;
use cg_store::engine::MemEngine;

/// The address of a world in a database, of which there is none.
#[derive(Debug, Clone)]
pub(crate) enum Address {}

impl Address {
    pub(super) fn parse(_: &str) -> Result<Self, String> {
        Err("this cg was built without PostgreSQL: build it with --features postgres".into())
    }

    pub(crate) fn reader(&self) -> Result<MemEngine, Error> {
        match *self {}
    }

    pub(crate) fn writer(&self) -> Result<MemEngine, Error> {
        match *self {}
    }

    pub(crate) fn created(&self) -> Result<MemEngine, Error> {
        match *self {}
    }

    pub(crate) const fn is_absence(_: &Error) -> bool {
        false
    }

    pub(super) const fn is_same(&self, _: &Self) -> bool {
        match *self {}
    }

    pub(crate) fn replication(&self) -> String {
        match *self {}
    }

    pub(crate) fn removal(&self) -> String {
        match *self {}
    }
}

impl fmt::Display for Address {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}
