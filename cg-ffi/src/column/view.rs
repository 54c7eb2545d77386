//! A column that the library lends.

use cg_host::{Cells, Column};

use crate::handle::{Held, Kind, Lent, Object};
use crate::place;
use crate::text::lend;
use crate::types::{cg_block_entity, cg_cells, cg_column, cg_entity, cg_scheduled, cg_section};

/// A section of it cannot be read.
const DAMAGED: u16 = 1;

/// A column, and structs of the header that point into it.
#[derive(Debug)]
pub(crate) struct ColumnView {
    /// The pointers below point into it. It is never changed.
    _column: Column,
    _cells: Vec<cg_cells>,
    _sections: Vec<cg_section>,
    _block_entities: Vec<cg_block_entity>,
    _entities: Vec<cg_entity>,
    _scheduled: Vec<cg_scheduled>,
    view: cg_column,
}

// SAFETY: the pointers point into what the view owns and never changes.
unsafe impl Send for ColumnView {}
// SAFETY: as above.
unsafe impl Sync for ColumnView {}

impl Object for ColumnView {}

impl Held for ColumnView {
    const KIND: Kind = Kind::Column;
}

impl Lent for ColumnView {
    type View = cg_column;

    fn view(&self) -> &cg_column {
        &self.view
    }
}

impl ColumnView {
    pub(crate) fn new(column: Column) -> Self {
        let layers = column.sections.iter().flat_map(|section| &section.layers);
        let cells: Vec<cg_cells> = layers.map(lend_cells).collect();
        let mut sections = Vec::with_capacity(column.sections.len());
        let mut first = 0;
        for section in &column.sections {
            let layers = cells.get(first..first + section.layers.len()).unwrap_or_default();
            first += layers.len();
            let light =
                |light: &Option<Box<[u8]>>| light.as_ref().map_or(std::ptr::null(), |light| light.as_ptr());
            sections.push(cg_section {
                y: section.y,
                layer_count: layers.len() as u16,
                flags: if column.damaged.contains(&section.y) { DAMAGED } else { 0 },
                layers: pointer(layers),
                biomes: section.biomes.as_ref().map_or(cg_cells::NONE, lend_cells),
                block_light: light(&section.block_light),
                sky_light: light(&section.sky_light),
            });
        }
        let block_entities: Vec<cg_block_entity> = column
            .block_entities
            .iter()
            .map(|one| cg_block_entity { at: place::of_block(one.at), nbt: lend(&one.nbt) })
            .collect();
        let entities: Vec<cg_entity> = column.entities.iter().map(lend_entity).collect();
        let scheduled: Vec<cg_scheduled> = column
            .scheduled
            .iter()
            .map(|one| cg_scheduled {
                at: place::of_block(one.at),
                due: one.due,
                block: one.block,
                priority: one.priority,
            })
            .collect();
        let view = cg_column {
            struct_size: size_of::<cg_column>() as u32,
            dimension: place::of_dimension(column.at.dimension),
            x: column.at.x,
            z: column.at.z,
            min_y: column.at.min_y,
            max_y: column.at.max_y,
            tick: column.tick,
            sections: pointer(&sections),
            block_entities: pointer(&block_entities),
            entities: pointer(&entities),
            scheduled: pointer(&scheduled),
            section_count: sections.len(),
            block_entity_count: block_entities.len(),
            entity_count: entities.len(),
            scheduled_count: scheduled.len(),
            kept: column.kept,
            damaged_sections: column.damaged.len() as u64,
        };
        Self {
            _column: column,
            _cells: cells,
            _sections: sections,
            _block_entities: block_entities,
            _entities: entities,
            _scheduled: scheduled,
            view,
        }
    }
}

fn lend_cells(cells: &Cells) -> cg_cells {
    let palette = cells.palette.as_deref().unwrap_or_default();
    cg_cells {
        words: pointer(&cells.words),
        words_len: cells.words.len(),
        palette: pointer(palette),
        palette_len: palette.len() as u32,
        bits: cells.bits,
        word_bits: cells.word_bits,
        order: place::number_of(cells.order),
        side_log2: cells.side_log2,
    }
}

/// An entity of a column, which is lent as long as that is.
fn lend_entity(entity: &cg_host::ColumnEntity) -> cg_entity {
    cg_entity {
        id: entity.id.to_bytes(),
        kind: entity.kind,
        dimension: place::of_dimension(entity.position.dimension()),
        block: place::of_block(entity.position.block()),
        fraction: entity.position.fraction(),
        reserved: 0,
        nbt: lend(&entity.nbt),
    }
}

/// A pointer to the first value; null if there is none.
fn pointer<T>(values: &[T]) -> *const T {
    if values.is_empty() { std::ptr::null() } else { values.as_ptr() }
}
