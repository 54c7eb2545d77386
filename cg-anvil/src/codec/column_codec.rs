//! [`ColumnCodec`]: one column at a time, in and out of a world.

use cg_format::Dimension;
use cg_store::prelude::Transaction;
use cg_store::{Error, World};

use super::decode;
use super::encode;
use super::entities::ColumnEntities;
use super::parts::{ColumnParts, ColumnReport, DecodedColumn, EncodedColumn};
use super::save::Save;
use crate::column::ColumnError;
use crate::mapping::Ids;
use crate::region::ColumnPos;

/// One column at a time, in and out of a world, as exports write it and imports read it.
///
/// It is a handle of its world, and keeps it open.
///
/// ```
/// use cg_anvil::column::{Blocks, Section};
/// use cg_anvil::{Column, ColumnCodec, ColumnEntities, ColumnParts, ColumnPos, SlotContent, write};
/// use cg_store::prelude::*;
///
/// let at = ColumnPos::new(-3, 7);
/// let mut column = Column::new(at, 3955);
/// column.sections.push(Section { blocks: Some(Blocks::uniform("minecraft:stone")), ..Section::new(4) });
/// let slot = SlotContent::Nbt(write::column(&column)?, 1_700_000_000);
///
/// let world = World::builder().in_memory()?;
/// let overworld = world.registry().register_dimension("minecraft:overworld")?;
/// let codec = ColumnCodec::new(&world)?;
/// let mut entities = ColumnEntities::read(&world)?;
/// let decoded = codec.decode(at, &ColumnParts { column: Some(slot.clone()), ..ColumnParts::default() })?;
/// let saved = world.transaction(|tx| codec.save(tx, &mut entities, overworld, decoded))?;
/// assert_eq!(saved.value.chunks, 1);
///
/// let encoded = codec.encode(&entities, overworld, at)?.expect("it was saved");
/// assert_eq!(encoded.parts.column, Some(slot));
/// assert_eq!(codec.encode(&entities, overworld, ColumnPos::new(0, 0))?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ColumnCodec {
    world: World,
    ids: Ids,
}

impl ColumnCodec {
    /// Registers the names that every import uses, where the world has them not yet.
    ///
    /// # Errors
    /// As [`Ids::register`].
    pub fn new(world: &World) -> Result<Self, Error> {
        Ok(Self { world: world.clone(), ids: Ids::register(world)? })
    }

    /// The slots of a column as an export writes them; `None` where the world has nothing of it.
    ///
    /// Reads the newest state in several calls. A slot that an import kept as bytes comes as it was while the world has
    /// what was read of it.
    ///
    /// # Errors
    /// If a chunk of the column or an entity of one is damaged: what is damaged is never left out as if it were not there.
    /// If the engine fails.
    pub fn encode(
        &self,
        entities: &ColumnEntities,
        dimension: Dimension,
        at: ColumnPos,
    ) -> Result<Option<EncodedColumn>, Error> {
        encode::encode(&self.world, entities, (dimension, at))
    }

    /// Reads the slots of a column. Pure: it asks no world and registers nothing. The result is for this codec's world, whose
    /// kinds of side data it uses.
    ///
    /// A column with an unreadable part keeps its slot as bytes too, as one that an import meets. A slot that cannot be
    /// read at all is kept as it is, and so is a column of before 1.13.
    ///
    /// # Errors
    /// [`ColumnError`] of NBT that is no slot of this column.
    pub fn decode(&self, at: ColumnPos, parts: &ColumnParts) -> Result<DecodedColumn, ColumnError> {
        decode::decode(&self.ids, at, parts)
    }

    /// Replaces a column with its entities, its points of interest and what is kept beside them; one without a slot is
    /// removed. Registers the names of block states and entities that the world has not yet, also if the transaction
    /// does not commit.
    ///
    /// An entity moves here if one of another column has its UUID.
    ///
    /// # Errors
    /// If a chunk or an entity that the world has of the column is damaged, and if the dimension's name is too long for the
    /// keys of objects. The transaction is not to be committed then. What is too large for the world is refused with the
    /// commit.
    pub fn save(
        &self,
        tx: &mut Transaction<'_>,
        entities: &mut ColumnEntities,
        dimension: Dimension,
        column: DecodedColumn,
    ) -> Result<ColumnReport, Error> {
        let (world, ids, place) = (&self.world, &self.ids, (dimension, column.pos()));
        Save { world, ids, tx, entities, place }.save(column)
    }
}
