//! What a host knows: its blocks, biomes and kinds of entity, and how it holds cells.

use std::collections::HashMap;

use cg_registry::Name;

use crate::column::Form;
use crate::error::Error;
use crate::problem::BindingProblem;

/// A state of a block that a host knows. Its number is its index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownBlock {
    /// Such as `minecraft:oak_log[axis=y]`.
    pub name: Name,
    /// Whether it hides the blocks behind it. Used if the world does not have the block yet.
    pub is_opaque: bool,
    /// Whether it has a block entity. A block that the world has keeps what it was registered with.
    pub owns_block_entity: bool,
}

/// A biome that a host knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownBiome {
    /// Such as `minecraft:plains`.
    pub name: Name,
    /// The host's number of it.
    pub number: u32,
}

/// What a host knows, for a [binding](crate::Binding).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// By number.
    pub blocks: Vec<KnownBlock>,
    /// In any order.
    pub biomes: Vec<KnownBiome>,
    /// By number.
    pub entities: Vec<Name>,
    /// The number of the block that is shown for one that the host does not know.
    pub placeholder: u32,
    /// The number of the block of an empty cell.
    pub air: u32,
    /// The number of the biome that is shown for one that the host does not know.
    pub biome_placeholder: u32,
    /// Layers of a cell that are the host's: 1 or 2. Layers above are kept.
    pub layer_count: u8,
    /// The form of cells that a load gives.
    pub form: Form,
    /// 4: a biome for each block. 2: for each 4×4×4 blocks.
    pub biome_side_log2: u8,
}

impl Known {
    /// The same without names that a host may not use, two of one name and numbers that are not there.
    pub(super) fn checked(self) -> Result<Self, Error> {
        let count = self.blocks.len();
        for (what, number) in [("the placeholder", self.placeholder), ("air", self.air)] {
            if number as usize >= count {
                return Err(BindingProblem::Number { what, number, count }.into());
            }
        }
        let is_biome = |biome: &KnownBiome| biome.number == self.biome_placeholder;
        if !self.biomes.is_empty() && !self.biomes.iter().any(is_biome) {
            let (what, count) = ("the placeholder of biomes", self.biomes.len());
            return Err(BindingProblem::Number { what, number: self.biome_placeholder, count }.into());
        }
        let forms = [
            ("layer_count", u32::from(self.layer_count), [1, 2, 2], "1 and 2"),
            ("word_bits", self.form.word_bits.into(), [16, 32, 64], "16, 32 and 64"),
            ("biome_side_log2", self.biome_side_log2.into(), [2, 4, 4], "2 and 4"),
        ];
        for (what, found, values, allowed) in forms {
            if !values.contains(&found) {
                return Err(BindingProblem::Form { what, found, allowed }.into());
            }
        }
        let (widths, word_bits) = (self.form.widths, u32::from(self.form.word_bits));
        // Twelve bits number each cell of a section.
        let (wide, allowed) = (widths >> 12 & 0b1_1111, "0, or bits of 12 to 16 among 0 to word_bits");
        if widths != 0 && (wide == 0 || widths >> 17 != 0 || word_bits < 31 && widths >> (word_bits + 1) != 0)
        {
            return Err(BindingProblem::Form { what: "widths", found: widths, allowed }.into());
        }
        let blocks = (0..).zip(self.blocks.iter().map(|block| &block.name));
        twice("block", blocks)?;
        twice("entity", (0..).zip(&self.entities))?;
        twice("biome", self.biomes.iter().map(|biome| (biome.number, &biome.name)))?;
        let mut numbers: Vec<u32> = self.biomes.iter().map(|biome| biome.number).collect();
        numbers.sort_unstable();
        if let Some((number, _)) = numbers.iter().zip(numbers.iter().skip(1)).find(|(one, next)| one == next)
        {
            return Err(BindingProblem::BiomeTwice { number: *number }.into());
        }
        Ok(self)
    }
}

fn twice<'n>(list: &'static str, names: impl Iterator<Item = (u32, &'n Name)>) -> Result<(), BindingProblem> {
    let mut seen = HashMap::new();
    for (second, name) in names {
        if let Some(first) = seen.insert(name, second) {
            return Err(BindingProblem::Twice { list, first, second, name: name.as_str().into() });
        }
    }
    Ok(())
}
