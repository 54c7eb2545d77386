//! A damaged object: its row is kept, and its key is free.

use cg_format::Space;

use super::Damaged;
use crate::api::world::{Inner, World};
use crate::engine::{Batch, EngineError};
use crate::kinds::object::{ObjectKey, decode};
use crate::storage::error::{ConflictKey, Error};

impl World {
    /// Sets a damaged object aside: its row is kept in quarantine, and the world has no such object from then on.
    ///
    /// How often it was changed went with it: written anew it counts from 0, so caches that hold a copy must drop theirs,
    /// or its version is set with [`put_object_at_version`](crate::Transaction::put_object_at_version). One commit, which
    /// is synced. `Ok(false)` if the object is not damaged or not there; nothing was written then.
    ///
    /// # Errors
    /// [`Error::ObjectKey`] for a key that no object can have. [`Error::TooLarge`] if it is too much for one transaction;
    /// nothing was written, and [`raise_limits`](Self::raise_limits) helps. Otherwise what the engine says.
    pub fn set_aside_object(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let key = ObjectKey::new(key)?;
        let inner = self.settled()?;
        inner.check_open()?;
        let committing = inner.commit_alone()?;
        let Some(damaged) = inner.damaged_object(&key)? else { return Ok(false) };
        let mut batch = Batch::new();
        inner.put_copy(&mut batch, &damaged, &committing)?;
        batch.delete(Space::Object, key.as_bytes());
        let what = || format!("setting object `{key}` aside");
        inner.commit_aside(committing, batch, what, vec![ConflictKey::Object(key.clone())], |_| {})?;
        Ok(true)
    }
}

impl Inner {
    /// An object's row, if it is damaged.
    fn damaged_object(&self, key: &ObjectKey) -> Result<Option<Damaged>, Error> {
        match self.engine()?.get(Space::Object, key.as_bytes()) {
            Ok(None) => return Ok(None),
            Ok(Some(row)) if decode(key.as_bytes(), &row).is_ok() => return Ok(None),
            Ok(Some(_)) | Err(EngineError::Corrupt { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.damaged_row(Space::Object, key.as_bytes()).map(Some)
    }
}
