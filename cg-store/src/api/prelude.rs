//! Everything that a host needs, in one import.

pub use cg_format::chunk::{CellLayer, Chunk};
pub use cg_format::entity::{Entity, EntityPos, Owner};
pub use cg_format::{
    BlockBox, BlockId, BlockPos, ChunkAt, ChunkBox, ChunkPos, ComponentId, Dimension, EntityId, EntityTypeId,
    LocalPos, RecordId, SideKind,
};
pub use cg_registry::{BlockOffer, Catalog, ComponentOffer, Name, PackManifest, Registration};
pub use cg_tiering::{GameTick, PlayerAt};

pub use crate::engine::CommitSeq;
pub use crate::{
    Binding, BlockKind, Committed, Durability, Error, ErrorKind, OpenError, Peek, Property, Transaction,
    World, WorldOptions, WriteBatch,
};
