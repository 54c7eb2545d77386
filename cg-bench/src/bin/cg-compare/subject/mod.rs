//! The stores that are compared, behind one trait: the same workloads call all of them.

mod append;
mod blobs;
#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "leveldb")]
mod leveldb;
mod linear;
#[cfg(feature = "lmdb")]
mod lmdb;
mod lz4;
mod ours;
#[cfg(feature = "redb")]
mod redb;
mod region;
mod rocks;
mod rows;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use cg_format::{BlockId, Chunk, Dimension, LocalPos};
use cg_registry::{Catalog, Schema};
use cg_store::cache;

use crate::columns::Column;
use crate::failure::Failure;
use crate::place::Place;
use crate::workload::Workload;

/// The state that a save waits for. A store that cannot wait for less waits for more, and says so in
/// [`About::durability`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// The store has the column, and nothing more.
    Submitted,
    /// Every reader sees it, and it can no longer be refused.
    Accepted,
    /// The system has the bytes: a killed process loses nothing.
    Process,
    /// The disk has the bytes.
    Synced,
}

/// Decoded chunks of a column, from the bottom upwards.
#[derive(Debug)]
pub(crate) enum Loaded {
    /// Shared with the store's own cache.
    Column(cache::Column),
    /// The same, chunk by chunk.
    Shared(Vec<Arc<Chunk>>),
    /// Decoded for this caller.
    Own(Vec<Chunk>),
}

impl Loaded {
    /// Its chunks.
    pub(crate) fn chunks(&self) -> Vec<&Chunk> {
        match self {
            Self::Column(column) => column.chunks().map(|(_, chunk)| chunk.as_ref()).collect(),
            Self::Shared(chunks) => chunks.iter().map(AsRef::as_ref).collect(),
            Self::Own(chunks) => chunks.iter().collect(),
        }
    }
}

/// An open store.
pub(crate) trait Subject {
    /// Saves a column over what is there.
    fn save(&mut self, at: Place, column: &Column, until: Until) -> Result<(), Failure>;

    /// Loads and decodes a column; `None` if no chunk of it is stored.
    fn load(&mut self, at: Place) -> Result<Option<Loaded>, Failure>;

    /// Loads and decodes columns together, in the order of the places.
    fn load_area(&mut self, places: &[Place]) -> Result<Vec<Option<Loaded>>, Failure> {
        places.iter().map(|at| self.load(*at)).collect()
    }

    /// Changes one cell of a stored chunk, the `index`th of its column.
    fn set_block(
        &mut self,
        at: Place,
        index: usize,
        cell: LocalPos,
        block: BlockId,
        until: Until,
    ) -> Result<(), Failure>;

    /// Waits until the disk has everything that was saved.
    fn sync(&mut self) -> Result<(), Failure>;

    /// Decodes every stored chunk, and counts them.
    fn scan(&mut self) -> Result<u64, Failure>;

    /// The same store for another thread; `None` if its users have one thread at it.
    fn share(&self) -> Option<Box<dyn Subject + Send>> {
        None
    }

    /// Closes it; everything that was saved survives.
    fn close(self: Box<Self>) -> Result<(), Failure>;
}

/// Memory that a store may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// For decoded chunks, of stores that keep any.
    pub(crate) cache_bytes: u64,
    /// For the rows below; stores without decoded chunks get the sum.
    pub(crate) engine_bytes: usize,
}

impl Memory {
    /// The memory that a server gives its world.
    pub(crate) const SERVER: Self = Self { cache_bytes: 128 << 20, engine_bytes: 256 << 20 };
    /// Less than any working set: a column is read again from the system.
    pub(crate) const TINY: Self = Self { cache_bytes: 64 << 10, engine_bytes: 16 << 20 };

    /// The block cache of a store that has no other: as much as RocksDB's caches in a world of ours, and its chunks.
    pub(crate) fn blocks(self) -> usize {
        self.cache_bytes as usize + self.engine_bytes / 4 * 3
    }
}

/// How a store is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) catalog: &'a Catalog,
    pub(crate) schema: &'a Schema,
    pub(crate) dimension: Dimension,
    pub(crate) memory: Memory,
}

/// The role of a subject in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Role {
    /// A store of this workspace.
    Ours,
    /// Another store.
    Rival,
    /// No store, but the least that one can do for the same bytes.
    Limit,
}

/// The configuration of ours that is compared in every row: `balanced` as it comes, its chunks where a save puts them. The
/// best of ours is another one in each row, which no host has at once.
pub(crate) const FIXED: &str = "ours, L0";

/// Facts of a subject that a reader has to know.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct About {
    /// The name in tables.
    pub(crate) name: String,
    pub(crate) role: Role,
    /// Name and version of the software.
    pub(crate) version: String,
    /// The failures that its saves survive.
    pub(crate) durability: String,
    /// How it is tuned, and what it stores.
    pub(crate) options: String,
}

/// A sort of store.
pub(crate) trait Kind: Sync {
    fn about(&self) -> About;

    /// Makes a new store in an absent folder.
    fn create(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure>;

    /// Opens a closed store.
    fn open(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure>;

    /// Brings a closed store into the state in which it is read.
    fn compact(&self, _setting: &Setting<'_>) -> Result<(), Failure> {
        Ok(())
    }

    /// Why it takes no part in a workload.
    fn cannot(&self, _workload: Workload) -> Option<&'static str> {
        None
    }
}

/// Every subject that was compiled, ours first.
pub(crate) fn all() -> Vec<Box<dyn Kind>> {
    let mut kinds: Vec<Box<dyn Kind>> = Vec::new();
    kinds.extend(ours::all());
    kinds.push(Box::new(rocks::Rocks));
    #[cfg(feature = "leveldb")]
    kinds.push(Box::new(leveldb::LevelDb));
    #[cfg(feature = "sqlite")]
    kinds.push(Box::new(sqlite::Sqlite));
    #[cfg(feature = "lmdb")]
    kinds.push(Box::new(lmdb::Lmdb));
    #[cfg(feature = "redb")]
    kinds.push(Box::new(redb::Redb));
    #[cfg(feature = "fjall")]
    kinds.push(Box::new(fjall::Fjall));
    kinds.push(Box::new(region::Regions));
    kinds.push(Box::new(linear::Streams));
    kinds.push(Box::new(append::Append));
    kinds
}

/// The subject of a name.
///
/// # Errors
/// There is none.
pub(crate) fn named(name: &str) -> Result<Box<dyn Kind>, Failure> {
    let found = all().into_iter().find(|kind| kind.about().name == name);
    found.ok_or_else(|| format!("no subject is called {name:?}").into())
}
