//! Chunks and the side data after them, by definition.

use std::collections::BTreeMap;

use super::{Cursor, Dice, Refused, Schema, ascends, bits_at, bits_for, put, put_bits};

pub(crate) const CELLS: usize = 4096;

/// A cell as x·256 + y·16 + z, a layer counted from the bottom, a component id.
pub(crate) type Instance = (u16, u8, u64);

/// A chunk as lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Chunk {
    /// The block kinds of each cell, the lowest layer first; 4096 cells in the order x·256 + y·16 + z.
    pub(crate) cells: Vec<Vec<u64>>,
    /// The bytes of every component instance that was understood.
    pub(crate) components: BTreeMap<Instance, Vec<u8>>,
    /// The end of the component section, from the first thing on that the schema does not know.
    pub(crate) unread: Vec<u8>,
    /// References to entities, in the order stored.
    pub(crate) entities: Vec<[u8; 16]>,
    /// Side data by kind.
    pub(crate) sides: BTreeMap<u16, Vec<u8>>,
}

impl Chunk {
    pub(crate) fn filled(block: u64) -> Self {
        Self { cells: vec![vec![block]; CELLS], ..Self::default() }
    }

    /// The same chunk with its references in canonical order.
    pub(crate) fn sorted(mut self) -> Self {
        self.entities.sort_unstable();
        self
    }
}

/// Every place that has a component, by component, in the stored order: by cell, then by layer.
///
/// `None` if a block kind is unknown: any component could have an instance more.
pub(crate) fn places(cells: &[Vec<u64>], schema: &Schema) -> Option<BTreeMap<u64, Vec<(u16, u8)>>> {
    let mut places: BTreeMap<u64, Vec<(u16, u8)>> = BTreeMap::new();
    for (cell, layers) in cells.iter().enumerate() {
        for (layer, block) in layers.iter().enumerate() {
            for component in schema.blocks.get(block)? {
                places.entry(*component).or_default().push((cell as u16, layer as u8));
            }
        }
    }
    Some(places)
}

/// A chunk value taken apart, each part in the order in which it is written.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    pub(crate) palette: Vec<u64>,
    /// The local id of each cell's lowest layer.
    pub(crate) ids: Vec<u64>,
    /// Cell and local id of everything above.
    pub(crate) layered: Vec<(u64, u64)>,
    /// The component section.
    pub(crate) section: Vec<u8>,
    pub(crate) entities: Vec<[u8; 16]>,
    pub(crate) sides: Vec<(u16, Vec<u8>)>,
}

impl Parts {
    /// The parts in their one canonical order.
    pub(crate) fn of(chunk: &Chunk, schema: &Schema) -> Result<Self, Refused> {
        let mut palette: Vec<u64> = Vec::new();
        let mut known: BTreeMap<u64, u64> = BTreeMap::new();
        for block in chunk.cells.iter().flatten() {
            known.entry(*block).or_insert_with(|| {
                palette.push(*block);
                palette.len() as u64 - 1
            });
        }
        let ids = chunk.cells.iter().map(|layers| known[&layers[0]]).collect();
        let mut layered = Vec::new();
        for (cell, layers) in chunk.cells.iter().enumerate() {
            for block in &layers[1..] {
                layered.push((cell as u64, known[block]));
            }
        }
        let section = encode_components(chunk, schema)?;
        let entities = chunk.clone().sorted().entities;
        let sides = chunk.sides.clone().into_iter().collect();
        Ok(Self { palette, ids, layered, section, entities, sides })
    }

    /// The parts one after another, after a header that fits them.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let bits = bits_for(self.palette.len());
        let mut ids = Vec::new();
        put_bits(&mut ids, self.ids.iter().map(|id| (*id, bits)));
        let mut layered = Vec::new();
        put_bits(&mut layered, self.layered.iter().flat_map(|(cell, id)| [(*cell, 12), (*id, bits)]));

        let component_offset = 40 + 8 * self.palette.len() + ids.len() + layered.len();
        let entity_offset = component_offset + self.section.len();
        let mut out = Vec::new();
        put(&mut out, 1, 8);
        put(&mut out, component_offset as u64, 8);
        put(&mut out, entity_offset as u64, 8);
        put(&mut out, self.layered.len() as u64, 8);
        put(&mut out, self.palette.len() as u64, 8);
        for block in &self.palette {
            put(&mut out, *block, 8);
        }
        out.extend(ids);
        out.extend(layered);
        out.extend(&self.section);
        put(&mut out, self.entities.len() as u64, 8);
        for entity in &self.entities {
            out.extend(entity);
        }
        for (kind, bytes) in &self.sides {
            put(&mut out, u64::from(*kind), 2);
            put(&mut out, bytes.len() as u64, 4);
            out.extend(bytes);
        }
        out
    }
}

/// The bytes of a chunk value: one form for each chunk.
pub(crate) fn encode(chunk: &Chunk, schema: &Schema) -> Result<Vec<u8>, Refused> {
    Ok(Parts::of(chunk, schema)?.bytes())
}

fn encode_components(chunk: &Chunk, schema: &Schema) -> Result<Vec<u8>, Refused> {
    let mut out = Vec::new();
    let mut written = 0;
    for (component, places) in places(&chunk.cells, schema).unwrap_or_default() {
        let Some(shape) = schema.components.get(&component) else { break };
        // The unread rest begins where nothing is known any more: this component and all after it lie in there.
        if !chunk.unread.is_empty() && !chunk.components.keys().any(|(_, _, id)| *id == component) {
            break;
        }
        let mut instances = Vec::new();
        for (cell, layer) in places {
            let bytes = chunk.components.get(&(cell, layer, component));
            instances.push(bytes.ok_or(format!("no component {component:x} at cell {cell} layer {layer}"))?);
        }
        written += instances.len();
        put(&mut out, component, 8);
        if let Some(width) = shape {
            for bytes in instances {
                if bytes.len() != *width as usize {
                    return Err(format!("component {component:x} has {} bytes, not {width}", bytes.len()));
                }
                out.extend(bytes);
            }
        } else {
            let total: usize = instances.iter().map(|bytes| bytes.len()).sum();
            let width = smallest_width(total as u64);
            out.push(width as u8);
            let mut offset = 0;
            put(&mut out, 0, width);
            for bytes in &instances {
                offset += bytes.len() as u64;
                put(&mut out, offset, width);
            }
            for bytes in instances {
                out.extend(bytes);
            }
        }
    }
    if written != chunk.components.len() {
        return Err("a component lies where no block has it".into());
    }
    out.extend(&chunk.unread);
    Ok(out)
}

/// The smallest of 1, 2, 4 and 8 bytes that holds a data length.
fn smallest_width(data_len: u64) -> u32 {
    match data_len {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}

/// Reads a chunk value to its end.
///
/// Left free by the layout, strict here: a palette that names a kind twice, a component that the schema knows but no
/// block of the chunk has, an offset width larger than needed, and an entity named twice are refused. More than 256
/// layers in a cell have no name and are refused.
pub(crate) fn decode(value: &[u8], schema: &Schema) -> Result<Chunk, Refused> {
    let mut at = Cursor::new(value);
    let version = at.u64("format version")?;
    if version != 1 {
        return Err(format!("format version {version}"));
    }
    let component_offset = at.u64("component offset")?;
    let entity_offset = at.u64("entity offset")?;
    let layered_count = at.u64("layered block count")?;
    let palette_count = at.u64("palette count")?;
    if palette_count == 0 {
        return Err("an empty palette".into());
    }
    // In 128 bits no count can overflow.
    if u128::from(palette_count) > 4096 + u128::from(layered_count) {
        return Err(format!("{palette_count} kinds for {layered_count} layered blocks and 4096 cells"));
    }
    if u128::from(palette_count) * 8 > at.left() as u128 {
        return Err(format!("{palette_count} kinds do not fit"));
    }
    let mut palette = Vec::new();
    for _ in 0..palette_count {
        palette.push(at.u64("palette")?);
    }
    let mut sorted = palette.clone();
    sorted.sort_unstable();
    if !ascends(&sorted) {
        return Err("a kind is twice in the palette".into());
    }

    let bits = bits_for(palette.len());
    let kind =
        |id: u64| palette.get(id as usize).copied().ok_or(format!("local id {id} of {}", palette.len()));
    let ids = at.take("layer 0", 512 * bits as u64)?;
    let mut cells = Vec::new();
    for cell in 0..CELLS {
        cells.push(vec![kind(bits_at(ids, cell * bits, bits))?]);
    }

    let layered_bits = u128::from(layered_count) * (12 + bits as u128);
    let layered_len = layered_bits.div_ceil(8);
    if layered_len > at.left() as u128 {
        return Err(format!("{layered_count} layered blocks do not fit"));
    }
    let layered = at.take("layered blocks", layered_len as u64)?;
    for entry in 0..layered_count as usize {
        let first = entry * (12 + bits);
        let cell = bits_at(layered, first, 12) as usize;
        cells[cell].push(kind(bits_at(layered, first + 12, bits))?);
        if cells[cell].len() > 256 {
            return Err(format!("more than 256 layers in cell {cell}"));
        }
    }
    let used = layered_bits as usize;
    if bits_at(layered, used, layered.len() * 8 - used) != 0 {
        return Err("padding after the layered blocks is not zero".into());
    }

    if component_offset != at.at as u64 {
        return Err(format!("component offset {component_offset}, but the blocks end at {}", at.at));
    }
    if entity_offset < component_offset {
        return Err(format!("entity offset {entity_offset} before component offset {component_offset}"));
    }
    let section = at.take("component section", entity_offset - component_offset)?;
    let (components, unread) = decode_components(section, &cells, schema)?;

    let entity_count = at.u64("entity count")?;
    if u128::from(entity_count) * 16 > at.left() as u128 {
        return Err(format!("{entity_count} entities do not fit"));
    }
    let mut entities = Vec::new();
    for _ in 0..entity_count {
        entities.push(at.uuid("entity")?);
    }
    let mut sorted = entities.clone();
    sorted.sort_unstable();
    if !ascends(&sorted) {
        return Err("an entity is named twice".into());
    }

    let mut sides: BTreeMap<u16, Vec<u8>> = BTreeMap::new();
    while at.left() > 0 {
        let kind = at.u16("side kind")?;
        let len = at.u32("side length")?;
        let bytes = at.take("side bytes", u64::from(len))?;
        if sides.keys().next_back().is_some_and(|last| *last >= kind) {
            return Err(format!("side kind {kind} out of order"));
        }
        sides.insert(kind, bytes.to_vec());
    }
    Ok(Chunk { cells, components, unread, entities, sides })
}

type Components = (BTreeMap<Instance, Vec<u8>>, Vec<u8>);

fn decode_components(section: &[u8], cells: &[Vec<u64>], schema: &Schema) -> Result<Components, Refused> {
    let mut found = BTreeMap::new();
    let Some(places) = places(cells, schema) else {
        return Ok((found, section.to_vec()));
    };
    let mut at = Cursor::new(section);
    let mut wanted = places.into_iter();
    while at.left() > 0 {
        let start = at.at;
        let component = at.u64("component id")?;
        let Some(shape) = schema.components.get(&component) else {
            return Ok((found, section[start..].to_vec()));
        };
        let places = match wanted.next() {
            Some((id, places)) if id == component => places,
            Some((id, _)) => return Err(format!("component {component:x} where {id:x} is due")),
            None => return Err(format!("component {component:x} where the section should end")),
        };
        if let Some(width) = shape {
            for (cell, layer) in places {
                let bytes = at.take("component data", u64::from(*width))?;
                found.insert((cell, layer, component), bytes.to_vec());
            }
            continue;
        }
        let width = u64::from(at.u8("offset width")?);
        if ![1, 2, 4, 8].contains(&width) {
            return Err(format!("offset width {width}"));
        }
        let mut offsets = Vec::new();
        for _ in 0..=places.len() {
            offsets.push(at.number("component data offset", width)?);
        }
        if offsets[0] != 0 || offsets.windows(2).any(|pair| pair[0] > pair[1]) {
            return Err(format!("offsets of component {component:x} do not rise from 0"));
        }
        let total = offsets[places.len()];
        if u64::from(smallest_width(total)) != width {
            return Err(format!("offset width {width} for {total} bytes"));
        }
        let data = at.take("component data", total)?;
        for (pair, (cell, layer)) in offsets.windows(2).zip(places) {
            let bytes = &data[pair[0] as usize..pair[1] as usize];
            found.insert((cell, layer, component), bytes.to_vec());
        }
    }
    match wanted.next() {
        Some((id, _)) => Err(format!("component {id:x} is missing")),
        None => Ok((found, Vec::new())),
    }
}

/// A chunk in which exactly so many block kinds occur, and a schema that knows all of them.
pub(crate) fn random(dice: &mut Dice, kinds: usize) -> (Chunk, Schema) {
    let mut schema = Schema::default();
    let variable = 1 << 63;
    schema.components = [(1, Some(2)), (4, Some(9)), (variable, None), (variable | 4, None)].into();
    let choices: [&[u64]; 5] = [&[1], &[4], &[variable], &[1, variable], &[1, 4, variable, variable | 4]];
    let rare = if kinds > 16 { 12 } else { 3 };
    while schema.blocks.len() < kinds {
        let id = if dice.below(4) == 0 { dice.next() } else { dice.below(8 * kinds as u64) };
        let components =
            if dice.below(rare) == 0 { choices[dice.below(5) as usize].to_vec() } else { Vec::new() };
        schema.blocks.insert(id, components);
    }
    let blocks: Vec<u64> = schema.blocks.keys().copied().collect();

    let mut cells: Vec<Vec<u64>> = Vec::new();
    for cell in 0..CELLS {
        let kind = if cell < kinds { cell } else { dice.below(kinds as u64) as usize };
        cells.push(vec![blocks[kind]]);
    }
    for cell in (1..CELLS).rev() {
        cells.swap(cell, dice.below(cell as u64 + 1) as usize);
    }
    let layered = [0, 1, 20, 700][dice.below(4) as usize];
    for _ in 0..layered {
        let cell = dice.below(CELLS as u64) as usize;
        cells[cell].push(blocks[dice.below(kinds as u64) as usize]);
    }

    let mut chunk = Chunk { cells, ..Chunk::default() };
    let longest = [1, 7, 300][dice.below(3) as usize];
    for (component, places) in places(&chunk.cells, &schema).expect("every block is known") {
        for (cell, layer) in places {
            let len = schema.components[&component].unwrap_or_else(|| dice.below(longest) as u32);
            chunk.components.insert((cell, layer, component), dice.bytes(len as usize));
        }
    }
    for _ in 0..dice.below(5) {
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&dice.bytes(16));
        chunk.entities.push(uuid);
    }
    for _ in 0..dice.below(4) {
        let len = dice.below(40) as usize;
        chunk.sides.insert(dice.below(300) as u16, dice.bytes(len));
    }
    (chunk, schema)
}

mod tests;
