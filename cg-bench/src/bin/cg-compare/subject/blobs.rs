//! Files of whole columns below a host: what region files, streams and plain files have in common.
//!
//! A column is one piece: the host encodes its chunks after one another, and decodes all of them to read one.

use cg_format::{BlockId, Chunk, LocalPos};
use cg_registry::Schema;
use std::sync::Arc;

use super::{Loaded, Setting, Subject, Until};
use crate::columns::Column;
use crate::failure::Failure;
use crate::place::{HEIGHT, Place};

/// A store of columns.
pub(super) trait Blobs {
    /// Puts the bytes of a column over what is there.
    fn put(&mut self, at: Place, bytes: Vec<u8>, until: Until) -> Result<(), Failure>;

    /// The bytes of a column.
    fn get(&mut self, at: Place) -> Result<Option<Vec<u8>>, Failure>;

    /// The place of every column.
    fn places(&mut self) -> Result<Vec<Place>, Failure>;

    /// Waits until the disk has everything that was put.
    fn sync(&mut self) -> Result<(), Failure>;
}

/// The host.
pub(super) struct Whole<B> {
    blobs: B,
    schema: Schema,
}

impl<B: Blobs> Whole<B> {
    pub(super) fn new(blobs: B, setting: &Setting<'_>) -> Self {
        Self { blobs, schema: setting.schema.clone() }
    }

    fn get(&mut self, at: Place) -> Result<Option<Vec<Chunk>>, Failure> {
        let Some(bytes) = self.blobs.get(at)? else { return Ok(None) };
        let mut rest = bytes.as_slice();
        let mut chunks = Vec::with_capacity(HEIGHT);
        while let Some((len, after)) = rest.split_first_chunk::<4>() {
            let short = || format!("the column at {}, {} ends within a chunk", at.x, at.z);
            let (chunk, after) =
                after.split_at_checked(u32::from_le_bytes(*len) as usize).ok_or_else(short)?;
            chunks.push(Chunk::decode(chunk, &self.schema)?);
            rest = after;
        }
        Ok(Some(chunks))
    }
}

/// The chunks after one another, each after its length.
fn encode<'c>(chunks: impl IntoIterator<Item = &'c Chunk>) -> Result<Vec<u8>, Failure> {
    let mut out = Vec::new();
    for chunk in chunks {
        let begin = out.len();
        out.extend([0; 4]);
        chunk.encode(&mut out);
        let len = u32::try_from(out.len() - begin - 4)?;
        out[begin..begin + 4].copy_from_slice(&len.to_le_bytes());
    }
    Ok(out)
}

impl<B: Blobs> Subject for Whole<B> {
    fn save(&mut self, at: Place, column: &Column, until: Until) -> Result<(), Failure> {
        self.blobs.put(at, encode(column.chunks().iter().map(Arc::as_ref))?, until)
    }

    fn load(&mut self, at: Place) -> Result<Option<Loaded>, Failure> {
        Ok(self.get(at)?.map(Loaded::Own))
    }

    fn set_block(
        &mut self,
        at: Place,
        index: usize,
        cell: LocalPos,
        block: BlockId,
        until: Until,
    ) -> Result<(), Failure> {
        let mut chunks = self.get(at)?.ok_or_else(|| format!("no column is stored at {}, {}", at.x, at.z))?;
        let chunk = chunks.get_mut(index).ok_or("the column has fewer chunks")?;
        chunk.set_block(cell, block, &self.schema)?;
        self.blobs.put(at, encode(&chunks)?, until)
    }

    fn sync(&mut self) -> Result<(), Failure> {
        self.blobs.sync()
    }

    fn scan(&mut self) -> Result<u64, Failure> {
        let mut count = 0;
        for at in self.blobs.places()? {
            count += std::hint::black_box(self.get(at)?).map_or(0, |chunks| chunks.len() as u64);
        }
        Ok(count)
    }

    fn close(mut self: Box<Self>) -> Result<(), Failure> {
        self.blobs.sync()
    }
}
