//! The key of an object.

use std::fmt;
use std::sync::Arc;

use cg_format::key;

use crate::storage::error::Error;

/// The key of an object: 1 to 512 bytes of any content; most hosts use text. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey(Arc<[u8]>);

impl ObjectKey {
    /// The prefix of keys that the store itself uses. Objects under it are valid in one world only, such as what a
    /// cache stores about its server.
    pub const STORES_OWN: &[u8] = b"\0";

    /// Creates a key of these bytes.
    ///
    /// # Errors
    /// [`Error::ObjectKey`] if it is empty or longer than 512 bytes.
    pub fn new(key: impl AsRef<[u8]>) -> Result<Self, Error> {
        let key = key.as_ref();
        match key::check_object(key) {
            Ok(()) => Ok(Self(key.into())),
            Err(_) => Err(Error::ObjectKey { len_bytes: key.len() }),
        }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for ObjectKey {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// As text, with escapes for bytes that are not ASCII.
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.escape_ascii().fmt(f)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectKey({self})")
    }
}
