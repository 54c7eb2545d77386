//! Component columns: the data of all instances of a component, one after the other.
//!
//! A column stores neither the number of its instances nor their width. The blocks of the chunk and the schema
//! determine both. So an instance is found by its number, without separators, and blocks without the component take no
//! space.

use alloc::vec::Vec;
use core::ops::Range;

use super::blocks::LocalIds;
use super::header::out_of_range;
use super::instances::{CellLayer, Instances};
use super::layers::LayersView;
use super::palette::{self, PaletteView};
use crate::wire::Reader;
use crate::{BlockId, ComponentId, ComponentShape, DecodeError, LocalPos, Problem, SchemaView, Section};

/// One column, read in place.
#[derive(Debug, Clone)]
pub(super) struct ColumnView<'a> {
    pub(super) component: ComponentId,
    pub(super) instances: Instances,
    pub(super) data: DataView<'a>,
}

/// The data of a column.
#[derive(Debug, Clone, Copy)]
pub(super) enum DataView<'a> {
    Fixed { width_bytes: usize, bytes: &'a [u8] },
    Variable { offset_width: OffsetWidth, offsets: &'a [u8], bytes: &'a [u8] },
}

/// The part of a component section that the schema does not explain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnreadView<'a> {
    /// The unread part contains the columns from this component on.
    pub(super) from: ComponentId,
    pub(super) bytes: &'a [u8],
    /// The kinds in the chunk that may own a part of it.
    pub(super) owners: Vec<BlockId>,
}

impl<'a> ColumnView<'a> {
    #[inline]
    pub(super) fn get(&self, at: CellLayer) -> Option<&'a [u8]> {
        self.data.get(self.instances.rank(at)?)
    }

    fn read(
        reader: &mut Reader<'a>,
        component: ComponentId,
        shape: ComponentShape,
        instances: Instances,
    ) -> Result<Self, DecodeError> {
        let count = instances.count();
        let data = match shape {
            ComponentShape::Fixed { width_bytes } => DataView::Fixed {
                width_bytes: width_bytes as usize,
                bytes: reader.take_long("fixed data", count as u64 * u64::from(width_bytes))?,
            },
            ComponentShape::Variable => DataView::read_variable(reader, count)?,
        };
        Ok(Self { component, instances, data })
    }
}

impl<'a> DataView<'a> {
    fn read_variable(reader: &mut Reader<'a>, count: usize) -> Result<Self, DecodeError> {
        let at_width = reader.clone();
        let found = reader.u8("offset width")?;
        let Some(offset_width) = OffsetWidth::from_byte(found) else {
            return Err(at_width.error(out_of_range("offset width", found.into(), "1, 2, 4 or 8")));
        };
        let at_offsets = reader.clone();
        let offsets = reader.take_items("offsets", count as u64 + 1, offset_width.bytes())?;
        let at = |index: usize, problem| {
            let offset_bytes = at_offsets.offset_bytes() + index as u64 * offset_width.bytes();
            DecodeError::new(Section::Components, offset_bytes, problem)
        };
        let mut last = 0;
        for index in 0..=count {
            let offset = offset_width.get(offsets, index);
            if index == 0 && offset != 0 {
                return Err(at(0, Problem::NotZero { field: "first of offsets", found: offset }));
            }
            if offset < last {
                return Err(at(index, out_of_range("offsets", offset, "the offset before it or more")));
            }
            last = offset;
        }
        let smallest = OffsetWidth::for_len(last);
        if smallest != offset_width {
            let (field, expected) = ("offset width", smallest.bytes());
            return Err(at_width.error(Problem::Disagrees { field, found: found.into(), expected }));
        }
        let bytes = reader.take_long("variable data", last)?;
        Ok(Self::Variable { offset_width, offsets, bytes })
    }

    #[inline]
    fn get(&self, rank: usize) -> Option<&'a [u8]> {
        match *self {
            Self::Fixed { width_bytes, bytes } => bytes.get(rank * width_bytes..(rank + 1) * width_bytes),
            Self::Variable { offset_width, offsets, bytes } => {
                let start = offset_width.get(offsets, rank) as usize;
                let end = offset_width.get(offsets, rank + 1) as usize;
                bytes.get(start..end)
            }
        }
    }
}

/// The width of the offsets in a column of variable size: the smallest that can represent the length of all data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OffsetWidth {
    One,
    Two,
    Four,
    Eight,
}

impl OffsetWidth {
    const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::One),
            2 => Some(Self::Two),
            4 => Some(Self::Four),
            8 => Some(Self::Eight),
            _ => None,
        }
    }

    pub(super) const fn for_len(len_bytes: u64) -> Self {
        match len_bytes {
            0..=0xff => Self::One,
            0x100..=0xffff => Self::Two,
            0x1_0000..=0xffff_ffff => Self::Four,
            _ => Self::Eight,
        }
    }

    pub(super) const fn bytes(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }

    /// The offset at a checked index.
    #[inline]
    pub(super) fn get(self, offsets: &[u8], index: usize) -> u64 {
        fn at<const N: usize>(offsets: &[u8], index: usize) -> [u8; N] {
            offsets.get(index * N..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; N])
        }
        match self {
            Self::One => u8::from_le_bytes(at(offsets, index)).into(),
            Self::Two => u16::from_le_bytes(at(offsets, index)).into(),
            Self::Four => u32::from_le_bytes(at(offsets, index)).into(),
            Self::Eight => u64::from_le_bytes(at(offsets, index)),
        }
    }
}

/// The shape of a component, if the schema knows it and agrees with the id about variable size.
pub(super) fn known_shape(
    schema: &(impl SchemaView + ?Sized),
    component: ComponentId,
) -> Option<ComponentShape> {
    let shape = schema.shape(component)?;
    (component.is_variable() == matches!(shape, ComponentShape::Variable)).then_some(shape)
}

/// Reads a component section to its end.
pub(super) fn read_section<'a>(
    mut reader: Reader<'a>,
    expected: Option<Vec<(ComponentId, Vec<CellLayer>)>>,
    palette: &PaletteView<'_>,
    ids: &LocalIds,
    layers: &LayersView<'_>,
    schema: &(impl SchemaView + ?Sized),
) -> Result<(Vec<ColumnView<'a>>, Option<UnreadView<'a>>), DecodeError> {
    reader.enter(Section::Components);
    let unread = |reader: &mut Reader<'a>, from| {
        let bytes = match reader.left_bytes() {
            0 => &[],
            left_bytes => reader.take("unread components", left_bytes)?,
        };
        let counts = palette::count(palette.count(), ids, layers.iter().map(|entry| entry.local));
        let may_own = |block: &BlockId| {
            schema.components_of(*block).is_none_or(|has| has.iter().any(|component| *component >= from))
        };
        let occurring = palette.iter().zip(counts).filter(|(_, count)| *count > 0).map(|(block, _)| block);
        Ok(Some(UnreadView { from, bytes, owners: occurring.filter(may_own).collect() }))
    };
    let Some(expected) = expected else {
        // The kind of some block is unknown, so it may own instances of any component.
        let unread = unread(&mut reader, ComponentId::new(0))?;
        return Ok((Vec::new(), unread));
    };
    let mut columns = Vec::with_capacity(expected.len());
    let mut last = None;
    let mut expected = expected.into_iter().peekable();
    loop {
        if reader.left_bytes() == 0 && expected.peek().is_none() {
            return Ok((columns, None));
        }
        let mut ahead = reader.clone().traced(None);
        let found = ComponentId::new(ahead.u64("component id")?);
        let next = expected.peek().map(|(component, _)| *component);
        let is_above_last = last.is_none_or(|last| last < found);
        match known_shape(schema, found) {
            None if is_above_last => {
                let unread = unread(&mut reader, next.map_or(found, |next| next.min(found)))?;
                return Ok((columns, unread));
            }
            Some(shape) if next == Some(found) => {
                let (component, instances) = expected.next().expect("peeked just above");
                reader.u64("component id")?;
                columns.push(ColumnView::read(&mut reader, component, shape, Instances::new(instances))?);
                last = Some(component);
            }
            _ => {
                let (field, found) = ("component id", found.get());
                return Err(reader.error(match next {
                    Some(next) => Problem::Disagrees { field, found, expected: next.get() },
                    None => out_of_range(field, found, "none: no block has a further component"),
                }));
            }
        }
    }
}

/// The instances of every component of the chunk's blocks, components ascending; `None` if the schema does not know the
/// kind of some block. A kind that is only in the palette has no instances, known or not.
pub(super) fn expected_instances(
    palette: &PaletteView<'_>,
    ids: &LocalIds,
    layers: &LayersView<'_>,
    schema: &(impl SchemaView + ?Sized),
) -> Option<Vec<(ComponentId, Vec<CellLayer>)>> {
    instances_of(
        palette.iter().map(|block| schema.components_of(block)),
        ids,
        layers.iter().map(|e| (e.cell, e.local)),
    )
}

/// The instances of components, from the components of each local id and the blocks in order.
pub(super) fn instances_of<'s>(
    kinds: impl Iterator<Item = Option<&'s [ComponentId]>>,
    ids: &LocalIds,
    upper: impl Iterator<Item = (LocalPos, u32)> + Clone,
) -> Option<Vec<(ComponentId, Vec<CellLayer>)>> {
    let mut pairs: Vec<(u32, ComponentId)> = Vec::new();
    let mut unknown: Vec<u32> = Vec::new();
    for (local, components) in (0..).zip(kinds) {
        match components {
            Some(components) => pairs.extend(components.iter().map(|component| (local, *component))),
            None => unknown.push(local),
        }
    }
    if !unknown.is_empty() {
        let is_unknown = |local: u32| unknown.binary_search(&local).is_ok();
        let mut locals = ids.iter().copied().chain(upper.clone().map(|(_, local)| local));
        if locals.any(is_unknown) {
            return None;
        }
    }
    if pairs.is_empty() {
        return Some(Vec::new());
    }
    pairs.sort_unstable();
    pairs.dedup();
    let mut columns: Vec<(ComponentId, Vec<CellLayer>)> =
        pairs.iter().map(|(_, component)| (*component, Vec::new())).collect();
    columns.sort_unstable_by_key(|(component, _)| *component);
    columns.dedup_by_key(|(component, _)| *component);

    // By local id: the columns with its instances, as a range of `targets`.
    let targets: Vec<usize> = pairs
        .iter()
        .map(|(_, component)| columns.partition_point(|(column, _)| column < component))
        .collect();
    let kinds = pairs.last().map_or(0, |(local, _)| *local + 1);
    let start = |kind: u32| pairs.partition_point(|(local, _)| *local < kind);
    let ranges: Vec<Range<usize>> = (0..kinds).map(|kind| start(kind)..start(kind + 1)).collect();
    let mut note = |at: CellLayer, local: u32| {
        let Some(range) = ranges.get(local as usize) else { return };
        for target in targets.get(range.clone()).unwrap_or(&[]) {
            if let Some((_, instances)) = columns.get_mut(*target) {
                instances.push(at);
            }
        }
    };
    // Most cells have a kind without components. The local ids of most chunks fit a byte, and an index of one byte is
    // always inside a table of 256. Ids with the same entry are distinguished below.
    let mut owners = [false; 256];
    for (local, _) in &pairs {
        if let Some(owner) = owners.get_mut(usize::from(*local as u8)) {
            *owner = true;
        }
    }
    let may_own = |local: u32| owners.get(usize::from(local as u8)).copied().unwrap_or(true);
    let mut upper = upper.peekable();
    let mut next_upper = upper.peek().map_or(LocalPos::COUNT, |(cell, _)| cell.index().into());
    for (index, local) in ids.iter().enumerate() {
        if index != next_upper && !may_own(*local) {
            continue;
        }
        let Some(cell) = LocalPos::from_index(index as u16) else { break };
        note(CellLayer::base(cell), *local);
        if index == next_upper {
            for (layer, (_, local)) in
                (1..=u8::MAX).zip(core::iter::from_fn(|| upper.next_if(|(at, _)| *at == cell)))
            {
                note(CellLayer::new(cell, layer), local);
            }
            next_upper = upper.peek().map_or(LocalPos::COUNT, |(cell, _)| cell.index().into());
        }
    }
    columns.retain(|(_, instances)| !instances.is_empty());
    Some(columns)
}
