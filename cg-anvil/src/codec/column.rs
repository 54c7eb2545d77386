//! Chunks of a column as the sections of a save.

use std::collections::HashMap;
use std::sync::Arc;

use cg_format::chunk::{CellLayer, Chunk};
use cg_format::{BlockId, CellOrder, Dimension, LocalPos};
use cg_minecraft::{name, water};
use cg_registry::{Catalog, ListKind};
use cg_store::objects::ObjectKey;
use cg_store::prelude::Property;
use cg_store::{Error, ErrorKind, World};

use super::missed::Missed;
use crate::column::{self, BlockEntity, CELLS, Column, NAMED_STATES, Section};
use crate::mapping::block_entities::listed_block_entities;
use crate::mapping::defaults::DATA_VERSION;
use crate::mapping::kept::{Folder, slot_key};
use crate::mapping::leftovers::{Back, Blocks};
use crate::mapping::{EntitySlot, Ids, KeptSlot, Leftovers, Points, key, place};
use crate::{ColumnPos, Decoder, Payload, nbt};

/// A column of a world as one of a save.
pub(crate) struct Built {
    pub(crate) column: Column,
    /// Whether its blocks are those that it was imported with.
    pub(crate) back: Back,
    /// Whether something was kept of it that belongs to other blocks.
    pub(crate) is_changed: bool,
    /// Whether a part of it could not be read when it was imported.
    pub(crate) is_torn: bool,
    /// Whether it came from a save, and not with its lowest chunk: its version is not known.
    pub(crate) is_part: bool,
    /// Heights at which chunks cannot be read, ascending, and why.
    pub(crate) lost: Vec<(i32, Error)>,
}

/// Builds the columns of one dimension.
pub(crate) struct ColumnBuilder<'a> {
    world: &'a World,
    catalog: &'a Catalog,
    dimension: Dimension,
    dimension_name: &'a str,
    ids: Ids,
}

impl<'a> ColumnBuilder<'a> {
    pub(crate) fn new(
        world: &'a World,
        catalog: &'a Catalog,
        dimension: Dimension,
        dimension_name: &'a str,
    ) -> Self {
        Self { world, catalog, dimension, dimension_name, ids: Ids::find(catalog) }
    }

    /// The column of the chunks at these heights, which ascend, and of what was kept beside them.
    pub(crate) fn build(
        &self,
        at: ColumnPos,
        heights: &[i32],
        missed: &mut Missed<'_>,
    ) -> Result<Built, Error> {
        let mut rest = None;
        let mut sections = Vec::with_capacity(heights.len());
        let mut block_entities = Vec::new();
        let (mut status, mut data_version) = (None, None);
        let mut lost = Vec::new();
        for &y in heights {
            let chunk = match self.world.load(at.chunk_at(self.dimension, y)) {
                Ok(Some(chunk)) => chunk,
                Ok(None) => continue,
                Err(error)
                    if error.kind() == ErrorKind::Damaged || matches!(error, Error::NotUpgraded { .. }) =>
                {
                    lost.push((y, error));
                    continue;
                }
                Err(error) => return Err(error),
            };
            let side = |kind: Option<_>| kind.and_then(|kind| chunk.side(kind));
            if let (None, Some(bytes)) = (&rest, side(self.ids.column)) {
                rest = read_rest(bytes, missed);
            }
            status = status.or_else(|| side(self.ids.status).map(<[u8]>::to_vec));
            data_version = data_version.max(side(self.ids.data_version).and_then(place::data_version));
            sections.push(Section {
                y,
                blocks: Some(self.blocks(&chunk, missed)),
                met: None,
                biomes: side(self.ids.biomes).map(<[u8]>::to_vec),
                block_light: side(self.ids.block_light).map(<[u8]>::to_vec),
                sky_light: side(self.ids.sky_light).map(<[u8]>::to_vec),
                left: None,
            });
            self.block_entities(&chunk, &mut block_entities, missed);
            self.count_unknown_sides(&chunk, missed);
        }
        if let (None, Ok(property)) = (&rest, name::column_property(self.dimension_name, at.x, at.z)) {
            rest = match self.world.property(&Property::Named(property)) {
                Ok(bytes) => bytes.and_then(|bytes| read_rest(&bytes, missed)),
                // It was counted when the columns were listed.
                Err(error) if error.kind() == ErrorKind::Damaged => None,
                Err(error) => return Err(error),
            };
        }
        let left = self.leftovers(at, missed)?;
        // Of a version before, nothing that is written here could be read.
        let of_left = left.as_ref().map(|left| left.data_version).filter(|version| *version >= NAMED_STATES);
        let data_version = data_version.or(of_left);
        // What tells of the column is with its lowest chunk, and each chunk that came from a save says its status.
        let is_part = rest.is_none() && status.is_some() && data_version.is_none();
        let mut column =
            rest.unwrap_or_else(|| new_column(at, data_version.unwrap_or(DATA_VERSION), status.as_deref()));
        let Column { sections: beside, block_entities: unplaced, .. } = &mut column;
        beside.retain(|beside| sections.binary_search_by_key(&beside.y, |section| section.y).is_err());
        beside.append(&mut sections);
        beside.sort_by_key(|section| section.y);
        block_entities.append(unplaced);
        *unplaced = block_entities;
        let (mut is_changed, mut is_torn) = (false, false);
        let back = left.map_or(Back::NOTHING, |left| {
            is_torn = left.is_torn();
            let back = left.put_back(&mut column);
            is_changed = back.blocks == Blocks::Changed;
            back
        });
        Ok(Built { column, back, is_changed, is_torn, is_part, lost })
    }

    /// The points of interest of a column, as the slot of a save held them.
    pub(crate) fn points_of_interest(
        &self,
        at: ColumnPos,
        missed: &mut Missed<'_>,
    ) -> Result<Option<Points>, Error> {
        let column = key::column_key(self.dimension_name, at);
        let has_column = match self.object(column, |_| Some(()))? {
            Kept::Nothing => false,
            Kept::Here(()) | Kept::Damaged | Kept::Strange => true,
        };
        let decode = |bytes: &[u8]| Points::decode(bytes, has_column);
        let kept = self.object(key::poi_key(self.dimension_name, at), decode)?;
        Ok(kept.told_once("objects of points of interest", missed))
    }

    /// The slot of a folder that is kept as it was, and the bytes of its object.
    pub(crate) fn kept_slot(
        &self,
        folder: Folder,
        at: ColumnPos,
        missed: &mut Missed<'_>,
    ) -> Result<Option<(KeptSlot, u64)>, Error> {
        let decode = |bytes: &[u8]| Some((KeptSlot::decode(bytes, folder, at)?, bytes.len() as u64));
        let kept = self.object(slot_key(folder, self.dimension_name, at), decode)?;
        Ok(kept.told_once("objects of kept slots", missed))
    }

    /// Leftovers of a slot of `entities/`, beside its entities.
    pub(crate) fn entity_slot(
        &self,
        at: ColumnPos,
        missed: &mut Missed<'_>,
    ) -> Result<Option<EntitySlot>, Error> {
        let kept = self.object(key::entities_key(self.dimension_name, at), EntitySlot::decode)?;
        Ok(kept.told_once("objects of slots of entities/", missed))
    }

    fn leftovers(&self, at: ColumnPos, missed: &mut Missed<'_>) -> Result<Option<Leftovers>, Error> {
        let kept = self.object(key::column_key(self.dimension_name, at), Leftovers::decode)?;
        Ok(kept.told("objects of columns", missed))
    }

    /// Reads and decodes an object. One that is damaged, or none of its kind, costs nothing else.
    fn object<T>(
        &self,
        key: Result<ObjectKey, Error>,
        decode: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<Kept<T>, Error> {
        // Of a dimension whose name is too long for a key nothing was imported.
        let Ok(key) = key else { return Ok(Kept::Nothing) };
        match self.world.objects().get(&key) {
            Ok(None) => Ok(Kept::Nothing),
            Ok(Some(object)) => Ok(decode(&object.bytes).map_or(Kept::Strange, Kept::Here)),
            Err(error) if error.kind() == ErrorKind::Damaged => Ok(Kept::Damaged),
            Err(error) => Err(error),
        }
    }

    fn blocks(&self, chunk: &Chunk, missed: &mut Missed<'_>) -> column::Blocks {
        if let [only] = chunk.palette().as_slice()
            && chunk.upper_layers().next().is_none()
        {
            return column::Blocks {
                palette: vec![self.state(only.block, None, missed).into()],
                indices: None,
            };
        }
        let mut cells: Box<[BlockId; LocalPos::COUNT]> =
            vec![BlockId::new(0); LocalPos::COUNT].try_into().expect("it was made with this length");
        chunk.unpack(CellOrder::Yzx, &mut cells);
        let mut upper = HashMap::<LocalPos, BlockId>::new();
        let mut too_high = 0;
        for (at, block) in chunk.upper_layers() {
            if at.layer == 1 {
                upper.insert(at.cell, block);
            } else {
                too_high += 1;
            }
        }
        missed.add("blocks in a third layer or above", too_high);
        let mut numbers = HashMap::<(BlockId, Option<BlockId>), u16>::new();
        let mut palette: Vec<Arc<str>> = Vec::new();
        let mut indices = Box::new([0; CELLS]);
        // Neighbours are mostly of one kind.
        let mut last = None;
        for ((index, block), cell) in indices.iter_mut().zip(cells.iter()).zip(CellOrder::Yzx.cells()) {
            let above = if upper.is_empty() { None } else { upper.get(&cell).copied() };
            let kind = (*block, above);
            *index = match last {
                Some((before, number)) if before == kind => number,
                _ => *numbers.entry(kind).or_insert_with(|| {
                    palette.push(self.state(*block, above, missed).into());
                    (palette.len() - 1) as u16
                }),
            };
            last = Some((kind, *index));
        }
        let indices = (palette.len() > 1).then_some(indices);
        column::Blocks { palette, indices }
    }

    /// The state that says both layers of a cell, or layer 0 alone when none does.
    fn state(&self, block: BlockId, above: Option<BlockId>, missed: &mut Missed<'_>) -> String {
        let dry = name::of_block(self.catalog, block);
        let Some(above) = above.map(|above| name::of_block(self.catalog, above)) else { return dry };
        water::join(&dry, &above).unwrap_or_else(|| {
            missed.add(format!("chunks with {above} in the same cell as {dry}"), 1);
            dry
        })
    }

    fn block_entities(&self, chunk: &Chunk, out: &mut Vec<BlockEntity>, missed: &mut Missed<'_>) {
        let mut others = 0;
        for (component, CellLayer { layer, .. }, bytes) in chunk.components() {
            if Some(component) != self.ids.block_entity || layer > 0 {
                others += u64::from(!bytes.is_empty());
            } else if !bytes.is_empty() {
                out.push(block_entity(bytes));
            }
        }
        missed.add("components that are no block entities", others);
        if let Some(side) = self.ids.block_entities.and_then(|kind| chunk.side(kind)) {
            match listed_block_entities(side) {
                Some(listed) => out.extend(listed.into_iter().map(block_entity)),
                None => missed.add("lists of block entities that are none", 1),
            }
        }
    }

    fn count_unknown_sides(&self, chunk: &Chunk, missed: &mut Missed<'_>) {
        let Ids { biomes, block_light, sky_light, status, block_entities, column, .. } = self.ids;
        // A save has no room for biomes finer than `biomes`, which say the same more coarsely.
        let Ids { data_version, block_biomes, .. } = self.ids;
        let known =
            [biomes, block_light, sky_light, status, block_entities, column, data_version, block_biomes];
        for (kind, _) in chunk.sides().filter(|(kind, _)| !known.contains(&Some(*kind))) {
            let name = self.catalog.list(ListKind::Sides).name(kind.get().into());
            missed.add(format!("side data `{}`", name.map_or("", |name| name.as_str())), 1);
        }
    }
}

/// Result of reading an object for an export.
enum Kept<T> {
    Here(T),
    Nothing,
    /// Its row cannot be read.
    Damaged,
    /// It is none of its kind.
    Strange,
}

impl<T> Kept<T> {
    /// Value that was read; an object that is damaged or none of its kind is counted.
    fn told(self, what: &str, missed: &mut Missed<'_>) -> Option<T> {
        match self {
            Self::Here(value) => return Some(value),
            Self::Nothing => {}
            Self::Damaged => missed.add(format!("damaged {what}"), 1),
            Self::Strange => missed.add(format!("{what} that are none"), 1),
        }
        None
    }

    /// As [`Kept::told`], of what was counted as damaged when the world was surveyed.
    fn told_once(self, what: &str, missed: &mut Missed<'_>) -> Option<T> {
        if matches!(self, Self::Damaged) { None } else { self.told(what, missed) }
    }
}

/// Decodes a column's record; the chunks are not in it.
fn read_rest(bytes: &[u8], missed: &mut Missed<'_>) -> Option<Column> {
    if let Ok(Payload::Column(column)) = Decoder::default().decode(bytes) {
        // Nothing says whether what else an earlier release kept here is true of the blocks as they are.
        return Some(Column { left: None, beside: None, stated: None, order: None, ..column });
    }
    missed.add("records of columns that are none", 1);
    None
}

/// A column that no save had: generated to the end, unless its chunks say otherwise.
fn new_column(at: ColumnPos, data_version: i32, status: Option<&[u8]>) -> Column {
    let status = status.and_then(|status| std::str::from_utf8(status).ok()).unwrap_or("minecraft:full");
    let mut column = Column::new(at, data_version);
    column.carried = nbt::payload(|carried| {
        // The default is short, and what came from a save fitted there.
        let _ = carried.string("Status", status);
        carried.int("yPos", -4);
    });
    column
}

fn block_entity(nbt: &[u8]) -> BlockEntity {
    BlockEntity { pos: None, kind: String::new(), nbt: nbt.to_vec() }
}
