//! A key-value store below a host that keeps one chunk a key: what all stores that are not ours have in common.
//!
//! The host encodes, compresses where the store does not, and decodes what it loads. It keeps nothing decoded.

use cg_format::{BlockId, Chunk, ChunkAt, Dimension, LocalPos};
use cg_registry::Schema;

use super::{Loaded, Setting, Subject, Until, lz4};
use crate::columns::Column;
use crate::failure::Failure;
use crate::place::{HEIGHT, Place};

/// A place with the bytes of its chunk.
pub(super) type Row = (ChunkAt, Vec<u8>);

/// A store of rows. Sorted ones take the key of L0, so that neighbours are close to each other.
pub(super) trait Rows {
    /// Puts rows together, over what is there.
    fn put(&mut self, rows: &[Row], synced: bool) -> Result<(), Failure>;

    /// Gets rows, in the order of their places; `take` is called once for each, with `None` where there is none.
    fn get(&mut self, places: &[ChunkAt], take: &mut Take<'_>) -> Result<(), Failure>;

    /// Every row.
    fn scan(&mut self, take: &mut Take<'_>) -> Result<(), Failure>;

    /// Waits until the disk has everything that was put.
    fn sync(&mut self) -> Result<(), Failure>;

    /// The same store for another thread.
    fn share(&self) -> Option<Box<dyn Rows + Send>> {
        None
    }

    /// Closes it.
    fn close(self: Box<Self>) -> Result<(), Failure>;
}

/// A function that takes the bytes of a row.
pub(super) type Take<'t> = dyn FnMut(Option<&[u8]>) -> Result<(), Failure> + 't;

/// Compression of bytes by the host, before they are stored.
#[cfg_attr(
    not(feature = "rivals"),
    allow(dead_code, reason = "stores that need the others may not be compiled")
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    /// Nothing: the store compresses its blocks.
    ByTheStore,
    /// Each chunk alone, with LZ4.
    Lz4,
    /// Each chunk alone, with Zstandard at its usual level.
    Zstd,
}

/// The host.
pub(super) struct Host<R: Rows + ?Sized> {
    rows: Box<R>,
    schema: Schema,
    dimension: Dimension,
    compression: Compression,
    /// Columns that are put together when nothing is waited for.
    together: usize,
    /// Rows that wait for that.
    waiting: Vec<Row>,
}

impl<R: Rows + ?Sized> Host<R> {
    /// A host over a store. Columns that nothing waits for are put `together`, as they are in one transaction.
    pub(super) fn new(
        rows: Box<R>,
        compression: Compression,
        together: usize,
        setting: &Setting<'_>,
    ) -> Self {
        let (schema, dimension) = (setting.schema.clone(), setting.dimension);
        Self { rows, schema, dimension, compression, together, waiting: Vec::new() }
    }

    fn chunks(&self, at: Place) -> Result<Vec<ChunkAt>, Failure> {
        (0..HEIGHT).map(|index| at.chunk(self.dimension, index)).collect()
    }

    fn put(&mut self, rows: Vec<Row>, until: Until) -> Result<(), Failure> {
        self.waiting.extend(rows);
        let waits = matches!(until, Until::Submitted | Until::Accepted);
        // With one column together nothing waits, not even a single chunk.
        if waits && self.waiting.len() <= (self.together - 1) * HEIGHT {
            return Ok(());
        }
        self.put_waiting(until == Until::Synced)
    }

    fn put_waiting(&mut self, synced: bool) -> Result<(), Failure> {
        if !self.waiting.is_empty() {
            self.rows.put(&self.waiting, synced)?;
            self.waiting.clear();
        }
        Ok(())
    }

    fn get(&mut self, places: &[ChunkAt]) -> Result<Vec<Option<Chunk>>, Failure> {
        self.put_waiting(false)?;
        let mut chunks = Vec::with_capacity(places.len());
        let (schema, compression) = (&self.schema, self.compression);
        self.rows.get(places, &mut |row| {
            chunks.push(row.map(|row| compression.decode(row, schema)).transpose()?);
            Ok(())
        })?;
        Ok(chunks)
    }
}

impl Compression {
    fn encode(self, chunk: &Chunk) -> Result<Vec<u8>, Failure> {
        let bytes = chunk.to_bytes();
        Ok(match self {
            Self::ByTheStore => bytes,
            Self::Lz4 => lz4::compress(&bytes)?,
            Self::Zstd => {
                let len = u32::try_from(bytes.len())?.to_le_bytes();
                [len.to_vec(), zstd::bulk::compress(&bytes, zstd::DEFAULT_COMPRESSION_LEVEL)?].concat()
            }
        })
    }

    fn decode(self, row: &[u8], schema: &Schema) -> Result<Chunk, Failure> {
        match self {
            Self::ByTheStore => Ok(Chunk::decode(row, schema)?),
            Self::Lz4 => Ok(Chunk::decode(&lz4::decompress(row)?, schema)?),
            Self::Zstd => {
                let (len, rest) = row.split_first_chunk::<4>().ok_or("a row of less than four bytes")?;
                let bytes = zstd::bulk::decompress(rest, u32::from_le_bytes(*len) as usize)?;
                Ok(Chunk::decode(&bytes, schema)?)
            }
        }
    }
}

impl<R: Rows + ?Sized> Subject for Host<R> {
    fn save(&mut self, at: Place, column: &Column, until: Until) -> Result<(), Failure> {
        let together = self.chunks(at)?.into_iter().zip(column.chunks());
        let rows = together.map(|(at, chunk)| Ok((at, self.compression.encode(chunk)?)));
        self.put(rows.collect::<Result<_, Failure>>()?, until)
    }

    fn load(&mut self, at: Place) -> Result<Option<Loaded>, Failure> {
        let chunks: Vec<_> = self.get(&self.chunks(at)?)?.into_iter().flatten().collect();
        Ok((!chunks.is_empty()).then_some(Loaded::Own(chunks)))
    }

    fn load_area(&mut self, places: &[Place]) -> Result<Vec<Option<Loaded>>, Failure> {
        let mut chunks = Vec::with_capacity(places.len() * HEIGHT);
        for at in places {
            chunks.extend(self.chunks(*at)?);
        }
        let mut found = self.get(&chunks)?.into_iter();
        let columns = places.iter().map(|_| {
            let chunks: Vec<_> = found.by_ref().take(HEIGHT).flatten().collect();
            (!chunks.is_empty()).then_some(Loaded::Own(chunks))
        });
        Ok(columns.collect())
    }

    fn set_block(
        &mut self,
        at: Place,
        index: usize,
        cell: LocalPos,
        block: BlockId,
        until: Until,
    ) -> Result<(), Failure> {
        let at = at.chunk(self.dimension, index)?;
        let there = self.get(&[at])?.pop().flatten();
        let mut chunk = there.ok_or_else(|| format!("no chunk is stored at {at}"))?;
        chunk.set_block(cell, block, &self.schema)?;
        let bytes = self.compression.encode(&chunk)?;
        self.put(vec![(at, bytes)], until)
    }

    fn sync(&mut self) -> Result<(), Failure> {
        self.put_waiting(true)?;
        self.rows.sync()
    }

    fn scan(&mut self) -> Result<u64, Failure> {
        self.put_waiting(false)?;
        let mut count = 0;
        let (schema, compression) = (&self.schema, self.compression);
        self.rows.scan(&mut |row| {
            if let Some(row) = row {
                std::hint::black_box(compression.decode(row, schema)?);
                count += 1;
            }
            Ok(())
        })?;
        Ok(count)
    }

    fn share(&self) -> Option<Box<dyn Subject + Send>> {
        let Self { dimension, compression, together, .. } = *self;
        let (rows, schema, waiting) = (self.rows.share()?, self.schema.clone(), Vec::new());
        Some(Box::new(Host::<dyn Rows + Send> { rows, schema, dimension, compression, together, waiting }))
    }

    fn close(mut self: Box<Self>) -> Result<(), Failure> {
        self.put_waiting(true)?;
        self.rows.close()
    }
}
