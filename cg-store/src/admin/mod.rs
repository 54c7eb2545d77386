//! Checking, counting, hashing and quarantine.

pub(crate) mod census;
pub(crate) mod hash;
pub(crate) mod quarantine;
pub(crate) mod verify;
