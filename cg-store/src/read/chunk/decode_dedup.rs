//! Chunks that are alike, of which one is decoded for all.
//!
//! Most chunks of a world are of one kind, air above the ground and stone below it, and their bytes are the same: they lie
//! beside each other, and whoever asks for many of them gets one value that they share.

use std::sync::Arc;

use cg_format::chunk::Chunk;

use super::StoredChunk;
use crate::read::cache::Stored;
use crate::storage::error::Error;

/// Fewer bytes than any chunk of two kinds has: what is longer is seldom met again, and not worth comparing.
const MAX_BYTES: usize = 512;

/// The last short chunk that was read.
#[derive(Debug, Default)]
pub(super) struct DecodeDedup {
    bytes: Vec<u8>,
    schema_generation: u32,
    read: Option<(Arc<Chunk>, bool)>,
}

impl DecodeDedup {
    /// A chunk as it was read before, if it has the same bytes, or else read now. Its version is its own.
    pub(super) fn or_read(
        &mut self,
        stored: StoredChunk<'_>,
        read: impl FnOnce() -> Result<Stored, Error>,
    ) -> Result<Stored, Error> {
        if stored.value.len() > MAX_BYTES {
            return read();
        }
        if let Some((chunk, is_current)) = &self.read
            && self.bytes == stored.value
            && self.schema_generation == stored.schema_generation
        {
            let (chunk, is_current) = (Arc::clone(chunk), *is_current);
            return Ok(Stored { chunk, version: stored.version, is_current });
        }
        let found = read()?;
        self.bytes.clear();
        self.bytes.extend_from_slice(stored.value);
        self.schema_generation = stored.schema_generation;
        self.read = Some((Arc::clone(&found.chunk), found.is_current));
        Ok(found)
    }
}
