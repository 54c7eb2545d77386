//! Contents of slots on their way into a world, with numbers of their own for block states.

use cg_format::chunk::Chunk;
use cg_registry::Name;

use crate::EntityRecord;
use crate::mapping::KeptSlot;
use crate::mapping::kept::Mask;
use crate::mapping::origin::ListedIn;
use crate::region::ColumnPos;

/// Bytes of an entity besides its NBT; an upper bound.
const ENTITY_BYTES: usize = 512;

/// A block state that a job met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocalState {
    pub(crate) name: Name,
    pub(crate) is_opaque: bool,
    /// Whether the job took it to own block entities.
    pub(crate) owns: bool,
}

/// A column on its way into the world.
#[derive(Debug)]
pub(crate) struct PreparedColumn {
    pub(crate) pos: ColumnPos,
    /// Ascending by y; blocks by the job's own numbers.
    pub(crate) chunks: Vec<(i32, Chunk)>,
    /// Record of the column, beside its chunks.
    pub(crate) rest: Vec<u8>,
    /// The object of what has no place anywhere else.
    pub(crate) left: Vec<u8>,
    pub(crate) entities: PreparedEntities,
    /// Losses, in words.
    pub(crate) problems: Vec<String>,
    /// Whether blocks are among that.
    pub(crate) is_torn: bool,
    /// Parts of that which were read and make no part of a world.
    pub(crate) mask: Mask,
    /// The slot as it was, if anything is lost.
    pub(crate) kept: Option<KeptSlot>,
    /// About how many bytes all this takes.
    pub(crate) len_bytes: usize,
}

/// The entities of a column.
#[derive(Debug)]
pub(crate) struct PreparedEntities {
    pub(crate) place: ListedIn,
    pub(crate) column: ColumnPos,
    pub(crate) data_version: i32,
    /// Each with its riders, vehicles first.
    pub(crate) groups: Vec<Vec<EntityRecord>>,
    /// The object of what in a slot of `entities/` is no entity.
    pub(crate) left: Option<Vec<u8>>,
}

impl PreparedEntities {
    /// About how many bytes the entities take, and what is kept beside them.
    pub(crate) fn len_bytes(&self) -> usize {
        let entities = self.groups.iter().flatten().map(|record| record.nbt.len() + ENTITY_BYTES);
        entities.sum::<usize>() + self.left.as_ref().map_or(0, Vec::len)
    }
}
