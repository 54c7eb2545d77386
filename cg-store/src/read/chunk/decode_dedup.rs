//! Decodes identical chunks once.
//!
//! Most chunks of a world have one kind of block, air above the ground and stone below it, and identical bytes. They
//! are adjacent, so a load of many chunks returns one shared value for them.

use std::sync::Arc;

use cg_format::chunk::Chunk;

use super::StoredChunk;
use crate::read::cache::Stored;
use crate::storage::error::Error;

/// The maximum size of a compared chunk. No chunk with two kinds of blocks is as short, and longer ones are rarely
/// identical.
const MAX_BYTES: usize = 512;

/// The last short chunk that was decoded.
#[derive(Debug, Default)]
pub(super) struct DecodeDedup {
    bytes: Vec<u8>,
    schema_generation: u32,
    read: Option<(Arc<Chunk>, bool)>,
}

impl DecodeDedup {
    /// Returns the last chunk if it has the same bytes, otherwise decodes this one. The version is that of this chunk.
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
            return Ok(Stored { chunk, version: stored.version.get(), is_current });
        }
        let found = read()?;
        self.bytes.clear();
        self.bytes.extend_from_slice(stored.value);
        self.schema_generation = stored.schema_generation;
        self.read = Some((Arc::clone(&found.chunk), found.is_current));
        Ok(found)
    }
}
