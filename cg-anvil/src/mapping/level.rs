//! The `level.dat` that a world holds.

use std::sync::Arc;

use cg_store::{Error, ErrorKind, World};

use super::key::file_key;
use crate::Level;

/// The `level.dat` that a world holds.
#[derive(Debug, Clone)]
pub(crate) struct StoredLevel {
    /// Its bytes; `None` if there is none, or a damaged one.
    pub(crate) bytes: Option<Arc<[u8]>>,
    /// What it says, or `level.dat_old` where it cannot be read.
    pub(crate) level: Option<Level>,
}

impl StoredLevel {
    /// Reads it.
    pub(crate) fn read(world: &World) -> Result<Self, Error> {
        let stored = |name| match world.objects().get(file_key(name)?) {
            Err(error) if error.kind() == ErrorKind::Damaged => Ok(None),
            found => found.map(|found| found.map(|object| object.bytes)),
        };
        let bytes = stored("level.dat")?;
        let mut level = bytes.as_deref().and_then(Level::read);
        if level.is_none() {
            level = stored("level.dat_old")?.as_deref().and_then(Level::read);
        }
        Ok(Self { bytes, level })
    }

    /// The version that it says.
    pub(crate) fn data_version(&self) -> Option<i32> {
        self.level.as_ref()?.data_version
    }
}
