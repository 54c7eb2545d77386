//! One section: a host's cells become a chunk, and a chunk becomes a host's cells.

use cg_format::chunk::{CellLayer, Chunk};
use cg_format::{BlockId, CellOrder, ChunkAt, LocalPos};
use cg_registry::Schema;

use super::ticks::Ticks;
use super::{biomes, strays};
use crate::binding::{Binding, STRAYS, TICKS};
use crate::column::{BlockEntity, Cells, Column, Section, Unpacked};
use crate::error::Error;
use crate::place::ColumnAt;
use crate::problem::ColumnProblem;

/// A section that is saved, with what belongs to it.
pub(crate) struct Saving<'s> {
    pub(crate) binding: &'s Binding,
    pub(crate) schema: &'s Schema,
    pub(crate) column: &'s ColumnAt,
    pub(crate) at: ChunkAt,
    pub(crate) section: &'s Section,
    /// What is stored there.
    pub(crate) old: Option<&'s Chunk>,
    /// The host's block entities in the section, by cell.
    pub(crate) block_entities: Vec<(LocalPos, &'s [u8])>,
    /// What the host has scheduled in the section.
    pub(crate) ticks: Ticks,
}

/// Numbers of blocks, with the world's id of each.
struct Layer {
    ids: Vec<BlockId>,
    cells: Unpacked,
    order: CellOrder,
}

impl Saving<'_> {
    /// The chunk, without references to entities.
    pub(crate) fn chunk(mut self) -> Result<Chunk, Error> {
        let ticks = std::mem::take(&mut self.ticks);
        let known = self.binding.known();
        let y = self.section.y;
        if self.section.layers.len() > usize::from(known.layer_count) {
            let (found, most) = (self.section.layers.len(), known.layer_count);
            return Err(self.column.refuse(ColumnProblem::Layers { y, found, most }));
        }
        let mut layers = Vec::with_capacity(2);
        for cells in &self.section.layers {
            layers.push(self.layer(cells)?);
        }
        if layers.is_empty() {
            let air = self.binding.block_in(self.column, known.air)?;
            layers.push(Layer { ids: vec![air], cells: Unpacked::uniform(known.air), order: CellOrder::Xyz });
        }
        let mut layers = layers.into_iter();
        let mut base = layers.next().expect("one was added if there was none");
        self.keep_unknown(&mut base);
        let mut chunk = self.base(&base)?;
        self.upper(&mut chunk, layers.next())?;
        self.carry(&mut chunk)?;
        self.sides(&mut chunk)?;
        self.block_entities(&mut chunk)?;
        self.schedule(&mut chunk, ticks)?;
        Ok(chunk)
    }

    /// Puts what is scheduled into the chunk. Stored ones of blocks that the host does not know stay.
    fn schedule(&self, chunk: &mut Chunk, mut ticks: Ticks) -> Result<(), Error> {
        let Some(kind) = self.binding.names.ticks else { return Ok(()) };
        if let Some(side) = self.old.and_then(|old| old.side(kind)) {
            let (at, name) = (self.at, TICKS);
            let stored = Ticks::decode(side, at).ok_or(Error::Side { at, name })?;
            ticks.keep_unknown(self.binding, stored);
        }
        match ticks.encode() {
            Some(bytes) => drop(chunk.set_side(kind, bytes)),
            None => drop(chunk.remove_side(kind)),
        }
        Ok(())
    }

    fn edit<T>(&self, edited: Result<T, cg_format::chunk::EditError>) -> Result<T, Error> {
        edited.map_err(|error| Error::of_chunk(self.at, error.into()))
    }

    fn layer(&self, cells: &Cells) -> Result<Layer, Error> {
        let (y, part) = (self.section.y, "blocks");
        let problem = |problem| self.column.refuse(ColumnProblem::Cells { y, part, problem });
        if cells.side_log2 != 4 {
            return Err(problem(crate::problem::CellsProblem::Side { found: cells.side_log2 }));
        }
        let order = cells.order;
        let cells_unpacked = cells.unpack().map_err(problem)?;
        let numbers = cells_unpacked.numbers.iter();
        let ids =
            numbers.map(|number| self.binding.block_in(self.column, *number)).collect::<Result<_, _>>()?;
        Ok(Layer { ids, cells: cells_unpacked, order })
    }

    /// Puts stored blocks that the host does not know back where a cell has the placeholder.
    fn keep_unknown(&self, layer: &mut Layer) {
        let Some(old) = self.old else { return };
        let placeholder = self.binding.known().placeholder;
        let is_unknown = |block: BlockId| self.binding.number(block).is_none();
        let shows = layer.cells.numbers.contains(&placeholder);
        if !shows || !old.kinds().into_iter().any(is_unknown) {
            return;
        }
        let mut indices = Vec::with_capacity(LocalPos::COUNT);
        for cell in layer.order.cells() {
            let index = layer.cells.index(layer.order.index(cell));
            let number = layer.cells.numbers.get(usize::from(index));
            let kept =
                (number == Some(&placeholder)).then(|| old.block(cell)).filter(|block| is_unknown(*block));
            indices.push(kept.map_or(index, |kept| layer.index_of(kept)));
        }
        layer.cells.indices = indices;
    }

    fn base(&self, layer: &Layer) -> Result<Chunk, Error> {
        let Ok(indices) = <&[u16; LocalPos::COUNT]>::try_from(layer.cells.indices.as_slice()) else {
            let only = layer.ids.first().copied().unwrap_or_default();
            return self.edit(Chunk::filled(only, self.schema));
        };
        self.edit(Chunk::from_indices(&layer.ids, indices, layer.order, self.schema))
    }

    /// Adds the layers above the first: the host's second one, and stored ones that are not the host's.
    fn upper(&self, chunk: &mut Chunk, second: Option<Layer>) -> Result<(), Error> {
        let known = self.binding.known();
        let air = self.binding.block_in(self.column, known.air)?;
        let is_unknown = |block: BlockId| self.binding.number(block).is_none();
        let old: Vec<(CellLayer, BlockId)> =
            self.old.map_or_else(Vec::new, |old| old.upper_layers().collect());
        // Stored layers that stay: above the host's, and unknown ones where the host shows the placeholder.
        let mut stays: Vec<(CellLayer, BlockId)> = Vec::new();
        for (at, block) in old {
            let shows_placeholder = || {
                let number = |layer: &Layer| layer.cells.number(layer.order.index(at.cell));
                let shown = second.as_ref().map(number);
                shown == Some(known.placeholder) && is_unknown(block)
            };
            if at.layer >= known.layer_count || shows_placeholder() {
                stays.push((at, block));
            }
        }
        let mut put: Vec<(CellLayer, BlockId)> = Vec::new();
        if let Some(layer) = &second {
            // They ascend, as the stored ones do.
            let is_kept = |cell: LocalPos| {
                stays.binary_search_by_key(&(cell, 1), |(at, _)| (at.cell, at.layer)).is_ok()
            };
            let has_kept = stays.iter().any(|(at, _)| at.layer == 1);
            let empty: Vec<bool> = layer.cells.numbers.iter().map(|number| *number == known.air).collect();
            for cell in LocalPos::all() {
                let index = usize::from(layer.cells.index(layer.order.index(cell)));
                let is_empty = empty.get(index).copied().unwrap_or(true);
                if !(is_empty || has_kept && is_kept(cell)) {
                    put.push((CellLayer::new(cell, 1), layer.ids.get(index).copied().unwrap_or_default()));
                }
            }
        }
        put.append(&mut stays);
        put.sort_unstable_by_key(|(at, _)| (at.cell, at.layer));
        for (at, block) in put {
            while chunk.layer_count(at.cell) < usize::from(at.layer) {
                self.edit(chunk.push_layer(at.cell, air, self.schema))?;
            }
            self.edit(chunk.push_layer(at.cell, block, self.schema))?;
        }
        Ok(())
    }

    /// Carries components of cells whose block is the same.
    fn carry(&self, chunk: &mut Chunk) -> Result<(), Error> {
        let Some(old) = self.old else { return Ok(()) };
        if old.has_unread_components() {
            let block = old.kinds().first().copied().unwrap_or_default();
            return self.edit(Err(cg_format::chunk::EditError::UnreadComponents { block }));
        }
        for (component, at, bytes) in old.components() {
            let block = old.layer(at.cell, at.layer);
            let is_hosts = Some(component) == self.binding.names.block_entity && at.layer == 0;
            let owns = || {
                let number = block.and_then(|block| self.binding.number(block));
                number.is_some_and(|number| self.binding.owns_block_entity(number))
            };
            if block != chunk.layer(at.cell, at.layer) || is_hosts && owns() {
                continue;
            }
            if chunk.component(at, component) != Some(bytes) {
                self.edit(chunk.set_component(at, component, bytes))?;
            }
        }
        Ok(())
    }

    fn sides(&self, chunk: &mut Chunk) -> Result<(), Error> {
        let names = self.binding.names;
        for (kind, bytes) in self.old.into_iter().flat_map(Chunk::sides) {
            if Some(kind) != names.strays {
                chunk.set_side(kind, bytes.to_vec());
            }
        }
        let light =
            [(names.block_light, &self.section.block_light), (names.sky_light, &self.section.sky_light)];
        for (kind, bytes) in light {
            if let (Some(kind), Some(bytes)) = (kind, bytes) {
                chunk.set_side(kind, bytes.to_vec());
            }
        }
        match &self.section.biomes {
            Some(cells) => biomes::save(self.binding, self.column, self.at, cells, self.old, chunk),
            None => Ok(()),
        }
    }

    /// Puts the host's block entities into the components of their blocks, or beside the chunk.
    fn block_entities(&self, chunk: &mut Chunk) -> Result<(), Error> {
        let names = self.binding.names;
        let mut beside = Vec::new();
        if let Some(old) = self.old {
            // Those that the host was not shown stay while their block does.
            let stays = |cell: LocalPos| chunk.block(cell) == old.block(cell);
            let kept = strays_of(self.binding, self.at, old)?.into_iter();
            let kept = kept.filter(|stray| stray.is_kept && stays(stray.cell));
            beside.extend(kept.map(|stray| (stray.cell, stray.nbt)));
        }
        for (cell, nbt) in &self.block_entities {
            let at = CellLayer::base(*cell);
            let owner = names.block_entity.filter(|component| chunk.component(at, *component).is_some());
            match owner {
                Some(component) => self.edit(chunk.set_component(at, component, nbt))?,
                None => beside.push((*cell, *nbt)),
            }
        }
        beside.sort_unstable();
        if let (Some(kind), Some(bytes)) = (names.strays, strays::encode(&beside)) {
            chunk.set_side(kind, bytes);
        }
        Ok(())
    }
}

impl Layer {
    /// The index of a block, which is added if it is new.
    fn index_of(&mut self, block: BlockId) -> u16 {
        let known = self.ids.iter().position(|id| *id == block);
        known.unwrap_or_else(|| {
            self.ids.push(block);
            self.cells.numbers.push(u32::MAX);
            self.ids.len() - 1
        }) as u16
    }
}

/// Adds a chunk to a host's column as a section, with its block entities.
pub(crate) fn load(binding: &Binding, at: ChunkAt, chunk: &Chunk, column: &mut Column) -> Result<(), Error> {
    let known = binding.known();
    let form = known.form;
    let y = i32::try_from(at.pos.y()).unwrap_or_default();
    let mut layers = Vec::with_capacity(2);
    layers.push(base(binding, chunk, column));
    if let Some(second) = second(binding, chunk, column) {
        layers.push(Cells::pack(second, form, 4));
    }
    let side = |kind: Option<_>| kind.and_then(|kind| chunk.side(kind));
    let light = |kind| side(kind).filter(|bytes| bytes.len() == 2048).map(Box::from);
    let biomes = biomes::load(binding, at, chunk)?;
    let (block_light, sky_light) = (light(binding.names.block_light), light(binding.names.sky_light));
    column.sections.push(Section { y, layers, biomes, block_light, sky_light });
    if let Some(ticks) = side(binding.names.ticks) {
        let name = TICKS;
        Ticks::decode(ticks, at).ok_or(Error::Side { at, name })?.add_to(binding, column);
    }
    block_entities(binding, at, chunk, column)
}

/// The host's first layer.
fn base(binding: &Binding, chunk: &Chunk, column: &mut Column) -> Cells {
    let known = binding.known();
    let form = known.form;
    let packed = chunk.packed();
    let mut unknown = false;
    let number = |block: &BlockId| {
        binding.number(*block).unwrap_or_else(|| {
            unknown = true;
            known.placeholder
        })
    };
    let numbers: Vec<u32> = packed.palette.iter().map(number).collect();
    if unknown {
        let palette = chunk.palette();
        let kept = palette.iter().filter(|entry| binding.number(entry.block).is_none());
        column.kept += kept.map(|entry| u64::from(entry.count)).sum::<u64>();
    }
    match packed.width {
        0 => Cells::pack_uniform(numbers, form, 4),
        1..=8 => {
            let mut indices = [0; LocalPos::COUNT];
            packed.unpack_bytes(form.order, &mut indices);
            Cells::pack_bytes(numbers, &indices, form)
        }
        _ => {
            let mut indices = Box::new([0; LocalPos::COUNT]);
            packed.unpack(form.order, &mut indices);
            Cells::pack(Unpacked { numbers, indices: indices.to_vec() }, form, 4)
        }
    }
}

/// The host's second layer; `None` if no cell has one.
fn second(binding: &Binding, chunk: &Chunk, column: &mut Column) -> Option<Unpacked> {
    let known = binding.known();
    let mut cells = Vec::new();
    for (at, block) in chunk.upper_layers() {
        if at.layer != 1 || known.layer_count < 2 {
            column.kept += u64::from(at.layer >= known.layer_count);
            continue;
        }
        if cells.is_empty() {
            cells = vec![known.air; LocalPos::COUNT];
        }
        let number = binding.number(block).unwrap_or(known.placeholder);
        if let Some(cell) = cells.get_mut(usize::from(known.form.order.index(at.cell))) {
            *cell = number;
        }
    }
    (!cells.is_empty()).then(|| Unpacked::of_numbers(cells.into_iter()))
}

fn block_entities(binding: &Binding, at: ChunkAt, chunk: &Chunk, column: &mut Column) -> Result<(), Error> {
    let corner = at.pos.min_block();
    let block = |cell: LocalPos| {
        let [x, y, z] = [cell.x(), cell.y(), cell.z()].map(i64::from);
        cg_format::BlockPos::new(corner.x + x, corner.y + y, corner.z + z)
    };
    for (component, place, nbt) in chunk.components() {
        if Some(component) != binding.names.block_entity || nbt.is_empty() {
            continue;
        }
        let number = chunk.layer(place.cell, place.layer).and_then(|block| binding.number(block));
        let owns = number.is_some_and(|number| binding.owns_block_entity(number));
        if place.layer == 0 && owns {
            column.block_entities.push(BlockEntity { at: block(place.cell), nbt: nbt.to_vec() });
        } else {
            column.kept += 1;
        }
    }
    for Stray { cell, nbt, is_kept } in strays_of(binding, at, chunk)? {
        if is_kept {
            column.kept += 1;
        } else {
            column.block_entities.push(BlockEntity { at: block(cell), nbt: nbt.to_vec() });
        }
    }
    Ok(())
}

/// A block entity beside a chunk.
struct Stray<'c> {
    cell: LocalPos,
    nbt: &'c [u8],
    /// Whether the host is not shown it: its block is one that the host does not know, or has another block entity.
    is_kept: bool,
}

fn strays_of<'c>(binding: &Binding, at: ChunkAt, chunk: &'c Chunk) -> Result<Vec<Stray<'c>>, Error> {
    let Some(side) = binding.names.strays.and_then(|kind| chunk.side(kind)) else { return Ok(Vec::new()) };
    let strays = strays::decode(side).ok_or(Error::Side { at, name: STRAYS })?;
    let own = |cell: LocalPos| chunk.component(CellLayer::base(cell), binding.names.block_entity?);
    let is_kept = |cell: LocalPos| {
        binding.number(chunk.block(cell)).is_none() || own(cell).is_some_and(|nbt| !nbt.is_empty())
    };
    Ok(strays.into_iter().map(|(cell, nbt)| Stray { cell, nbt, is_kept: is_kept(cell) }).collect())
}
