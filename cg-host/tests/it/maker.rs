//! A host with a few blocks, and columns of it.

use std::sync::Arc;

use cg_format::CellOrder;
use cg_format::entity::EntityPos;
use cg_format::{BlockPos, Dimension, EntityId};
use cg_host::{
    Binding, Cells, Column, ColumnAt, ColumnEntity, Form, Host, HostOptions, Known, KnownBiome, KnownBlock,
    Section,
};
use cg_store::prelude::{Name, World};

/// Of 32-bit words, as Bedrock Edition packs them.
pub(crate) const FORM: Form = Form { order: CellOrder::Xzy, word_bits: 32, widths: 0b1_0001_0001_0111_1111 };

pub(crate) const AIR: u32 = 0;
pub(crate) const STONE: u32 = 1;
pub(crate) const CHEST: u32 = 2;
pub(crate) const WATER: u32 = 3;
pub(crate) const UNKNOWN: u32 = 4;

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

/// The blocks above, and more of them.
pub(crate) fn known(more: usize) -> Known {
    let block =
        |text: &str, owns_block_entity| KnownBlock { name: name(text), is_opaque: true, owns_block_entity };
    let mut blocks = vec![
        block("game:air", false),
        block("game:stone", false),
        block("game:chest", true),
        block("game:water", false),
        block("game:unknown", false),
    ];
    blocks.extend((0..more).map(|number| block(&format!("game:block[n={number}]"), false)));
    Known {
        blocks,
        biomes: [("game:plains", 7), ("game:sea", 9), ("game:nowhere", 0)]
            .map(|(text, number)| KnownBiome { name: name(text), number })
            .into(),
        entities: vec![name("game:cow"), name("game:player")],
        placeholder: UNKNOWN,
        air: AIR,
        biome_placeholder: 0,
        layer_count: 2,
        form: FORM,
        biome_side_log2: 4,
    }
}

pub(crate) struct Made {
    pub(crate) host: Arc<Host>,
    pub(crate) binding: Arc<Binding>,
    pub(crate) at: ColumnAt,
}

pub(crate) fn over(world: World, options: HostOptions, known: Known) -> Made {
    let dimension = world.registry().register_dimension("game:overworld").expect("a name");
    let host = Arc::new(Host::new(world, options).expect("of no other game"));
    let binding = host.bind(known).expect("it fits");
    Made { host, binding, at: at(dimension, 3, -5) }
}

pub(crate) fn made() -> Made {
    over(World::builder().in_memory().expect("memory"), HostOptions::default(), known(0))
}

pub(crate) fn at(dimension: Dimension, x: i64, z: i64) -> ColumnAt {
    ColumnAt { dimension, x, z, min_y: -4, max_y: 19 }
}

impl Made {
    pub(crate) fn load(&self) -> Option<Column> {
        self.host.load(&self.binding, self.at).expect("sound")
    }

    pub(crate) fn save(&self, column: &Column) -> cg_host::Saved {
        self.host.save(&self.binding, column.clone(), false).expect("it fits")
    }

    pub(crate) fn submit(&self, column: &Column) -> cg_host::Saved {
        self.host.submit(&self.binding, column.clone(), false).expect("it fits")
    }

    /// A block of the column, from its lowest section's corner.
    pub(crate) fn block(&self, x: i64, y: i64, z: i64) -> BlockPos {
        BlockPos::new(self.at.x * 16 + x, i64::from(self.at.min_y) * 16 + y, self.at.z * 16 + z)
    }

    pub(crate) fn cow(&self, id: u8) -> ColumnEntity {
        let position = EntityPos::new(self.at.dimension, self.block(1, 20, 2), [0.5, 0.0, 0.25]);
        ColumnEntity {
            id: EntityId::from_bytes([id; 16]),
            kind: 0,
            position: position.expect("fractions"),
            nbt: vec![id, 1, 2],
        }
    }
}

/// Sections of one block each.
pub(crate) fn uniform(at: ColumnAt, blocks: &[u32]) -> Column {
    let mut column = Column::new(at);
    for (y, block) in (at.min_y..).zip(blocks) {
        column.sections.push(section(y, vec![Cells::uniform(*block, FORM, 4)]));
    }
    column
}

pub(crate) fn section(y: i32, layers: Vec<Cells>) -> Section {
    Section { y, layers, biomes: None, block_light: None, sky_light: None }
}

/// Cells whose numbers a function gives by cell in the order of the form.
pub(crate) fn cells(form: Form, width: u8, number: impl Fn(usize) -> u32) -> Cells {
    let mut palette: Vec<u32> = Vec::new();
    let per_word = usize::from(form.word_bits / width);
    let mut words = Vec::new();
    for group in (0..4096).collect::<Vec<usize>>().chunks(per_word) {
        let mut word = 0_u64;
        for (place, cell) in group.iter().enumerate() {
            let number = number(*cell);
            let index = palette.iter().position(|known| *known == number).unwrap_or_else(|| {
                palette.push(number);
                palette.len() - 1
            });
            word |= (index as u64) << (place * usize::from(width));
        }
        words.extend(&word.to_le_bytes()[..usize::from(form.word_bits / 8)]);
    }
    let (word_bits, order) = (form.word_bits, form.order);
    Cells { words, palette: Some(palette), bits: width, word_bits, order, side_log2: 4 }
}

/// The number of a cell, as an independent reader of the layout finds it.
pub(crate) fn number(cells: &Cells, [x, y, z]: [usize; 3]) -> u32 {
    let palette = cells.palette.as_ref().expect("a palette");
    if cells.bits == 0 {
        return palette[0];
    }
    let place = match cells.order {
        CellOrder::Xzy => x * 256 + z * 16 + y,
        CellOrder::Yzx => y * 256 + z * 16 + x,
        _ => x * 256 + y * 16 + z,
    };
    let (bits, word_bits) = (usize::from(cells.bits), usize::from(cells.word_bits));
    let (per_word, word_bytes) = (word_bits / bits, word_bits / 8);
    let mut word = [0; 8];
    let from = place / per_word * word_bytes;
    word[..word_bytes].copy_from_slice(&cells.words[from..from + word_bytes]);
    let index = u64::from_le_bytes(word) >> (place % per_word * bits) & ((1 << bits) - 1);
    palette[index as usize]
}
