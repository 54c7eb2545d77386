//! A schematic that was read, and access to its content.

use std::collections::BTreeMap;
use std::io::Read;

use super::cells::{Cells, Counted};
use super::things::Things;
use super::{BlockEntity, SchemEntity, SchemError, SchemLimits};

/// A schematic whose bytes were all read and checked once; its blocks are still in the file.
///
/// ```
/// use cg_snapshot::schem::{Schematic, SchemHead, SchemLimits, SchemWriter};
///
/// // Two blocks of stone beside one of air.
/// let mut writer = SchemWriter::new(Vec::new(), &SchemHead { data_version: 3955, ..SchemHead::sized([3, 1, 1]) })?;
/// writer.blocks(&["minecraft:stone", "minecraft:air"], &[2, 1])?;
/// writer.cells(&[0, 1, 0])?;
/// writer.block_entities(&[])?;
/// let file = writer.finish(&[])?;
///
/// let schematic = Schematic::read(&file[..], &SchemLimits::default())?;
/// assert_eq!(schematic.size(), [3, 1, 1]);
/// let blocks = schematic.blocks().expect("it has blocks");
/// assert_eq!(blocks.states().collect::<Vec<_>>(), [(0, "minecraft:stone", 2), (1, "minecraft:air", 1)]);
/// let mut cells = [0; 3];
/// blocks.open(&file[..])?.read(&mut cells)?;
/// assert_eq!(cells, [0, 1, 0]);
/// # Ok::<(), cg_snapshot::schem::SchemError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Schematic {
    pub(super) version: u8,
    pub(super) data_version: i32,
    pub(super) size: [u16; 3],
    pub(super) offset: [i32; 3],
    pub(super) metadata: Vec<u8>,
    pub(super) blocks: Option<Grid>,
    pub(super) biomes: Option<Grid>,
    pub(super) block_entities: Things,
    pub(super) entities: Things,
    pub(super) unknown: BTreeMap<String, u64>,
}

/// A palette and an array of indices into it: the blocks, or the biomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid {
    pub(super) field: &'static str,
    pub(super) shape: GridShape,
    pub(super) palette: Vec<Option<Box<str>>>,
    pub(super) counted: Counted,
    pub(super) limits: SchemLimits,
}

/// The meaning of an array entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GridShape {
    /// One block: x + z × width + y × width × length.
    Cells,
    /// A column of blocks: x + z × width. Biomes of version 2.
    Columns,
}

impl Schematic {
    /// The format's version: 2 or 3.
    pub const fn version(&self) -> u8 {
        self.version
    }

    /// The data version of the game that the states, block entities and entities belong to.
    pub const fn data_version(&self) -> i32 {
        self.data_version
    }

    /// Blocks along x, y and z: width, height, length. None is zero.
    pub const fn size(&self) -> [u16; 3] {
        self.size
    }

    /// `Offset` as stored. In version 3 it leads from the pasting player to the lowest corner. In version 2 it depends
    /// on the tool; most store the lowest corner's place in the world.
    pub const fn offset(&self) -> [i32; 3] {
        self.offset
    }

    /// `Metadata`: an NBT compound's bytes, fields and end tag.
    pub fn metadata(&self) -> &[u8] {
        &self.metadata
    }

    /// The blocks; a schematic of version 3 may have none.
    pub const fn blocks(&self) -> Option<&Grid> {
        self.blocks.as_ref()
    }

    /// The biomes, if it has any.
    pub const fn biomes(&self) -> Option<&Grid> {
        self.biomes.as_ref()
    }

    /// The number of block entities.
    pub fn block_entity_count(&self) -> usize {
        self.block_entities.len()
    }

    /// The block entities in stored order.
    pub fn block_entities(&self) -> impl Iterator<Item = BlockEntity> {
        self.block_entities.block_entities(self.version)
    }

    /// The number of entities, without riders.
    pub fn entity_count(&self) -> usize {
        self.entities.len()
    }

    /// The entities in stored order.
    ///
    /// Version 2 does not define the origin of positions, and its tools write positions in a world. If a position minus
    /// `Offset` is inside, that is the result. Otherwise a position that is inside as stored stays as stored.
    pub fn entities(&self) -> impl Iterator<Item = SchemEntity> {
        self.entities.entities(self.version).map(|entity| match self.version {
            2 => SchemEntity { pos: self.counted_from_corner(entity.pos), ..entity },
            _ => entity,
        })
    }

    /// Unknown fields and how often each occurs, by name. A field in a part is `Blocks.NAME`. In version 3 a field of
    /// block entities or entities beside `Id`, `Pos` and `Data` is `Entities.NAME`. Only the names are read. A hundred
    /// names are stored; the others are counted together.
    pub const fn unknown_fields(&self) -> &BTreeMap<String, u64> {
        &self.unknown
    }

    fn counted_from_corner(&self, pos: [f64; 3]) -> [f64; 3] {
        let mut moved = pos;
        for (number, offset) in moved.iter_mut().zip(self.offset) {
            *number -= f64::from(offset);
        }
        let is_inside = |pos: [f64; 3]| {
            // An entity at the border may be slightly outside.
            pos.iter().zip(self.size).all(|(number, side)| (-1.0..=f64::from(side) + 1.0).contains(number))
        };
        if !is_inside(moved) && is_inside(pos) { pos } else { moved }
    }
}

impl Grid {
    /// The states that cells have, ascending by index, and the number of cells with each.
    pub fn states(&self) -> impl Iterator<Item = (u16, &str, u64)> {
        (0..=u16::MAX).zip(&self.counted.kinds).filter(|(_, (count, _))| *count > 0).map(
            |(index, (count, _))| {
                let state = self.palette.get(usize::from(index)).and_then(Option::as_deref);
                (index, state.unwrap_or_default(), *count)
            },
        )
    }

    /// The number of palette entries, including those that no cell uses.
    pub fn palette_len(&self) -> usize {
        self.palette.iter().flatten().count()
    }

    /// The meaning of an array entry.
    pub const fn shape(&self) -> GridShape {
        self.shape
    }

    /// The number of array entries.
    pub const fn cells(&self) -> u64 {
        self.counted.cells
    }

    /// Seeks to the array in the same file, opened again: decompresses and skips everything before it.
    ///
    /// # Errors
    /// An I/O error, or the error of a file that changed in between.
    pub fn open<R: Read>(&self, file: R) -> Result<Cells<R>, SchemError> {
        Cells::open(file, &self.counted, self.field, &self.limits)
    }
}
