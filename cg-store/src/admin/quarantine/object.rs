//! Quarantine of damaged objects: the row is kept, and the key is free.

use cg_format::Space;

use super::Damaged;
use crate::admin::Admin;
use crate::engine::{Batch, EngineError};
use crate::kinds::object::decode;
use crate::storage::error::{ConflictKey, Error};
use crate::storage::object_key::ObjectKey;

impl Admin<'_> {
    /// An object's row, if it is damaged.
    fn damaged_object(&self, key: &ObjectKey) -> Result<Option<Damaged>, Error> {
        match self.shared.engine()?.get(Space::Object, key.as_bytes()) {
            Ok(None) => return Ok(None),
            Ok(Some(row)) if decode(key.as_bytes(), &row).is_ok() => return Ok(None),
            Ok(Some(_)) | Err(EngineError::Corrupt { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.damaged_row(Space::Object, key.as_bytes()).map(Some)
    }
}

impl Admin<'_> {
    /// See [`Quarantine::object`](crate::quarantine::Quarantine::object).
    pub(crate) fn quarantine_object(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let key = ObjectKey::new(key)?;
        self.shared.check_open()?;
        let committing = self.commit.commit_alone()?;
        let Some(damaged) = self.damaged_object(&key)? else { return Ok(false) };
        let mut batch = Batch::new();
        self.put_copy(&mut batch, &damaged, &committing)?;
        batch.delete(Space::Object, key.as_bytes());
        let what = || format!("setting object `{key}` aside");
        self.commit_quarantine(committing, batch, what, vec![ConflictKey::Object(key.clone())], |_| {})?;
        Ok(true)
    }
}
