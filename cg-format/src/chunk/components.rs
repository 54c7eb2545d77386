//! Component columns: the data of all instances of a component, one behind the other.
//!
//! A column says neither how many instances it has nor how wide one is: the blocks of the chunk and the schema say so.
//! That is what makes any instance reachable by its number without separators and without room for blocks that do not
//! have the component.

use alloc::vec::Vec;
use core::ops::Range;

use super::blocks::LocalIds;
use super::header::out_of_range;
use super::instances::{CellLayer, Instances};
use super::layers::LayersView;
use super::palette::PaletteView;
use crate::wire::{Reader, Writer};
use crate::{BlockId, ComponentId, ComponentShape, DecodeError, LocalPos, Problem, SchemaView, Section};

/// One column, read in place.
#[derive(Debug, Clone)]
pub(super) struct ColumnView<'a> {
    pub(super) component: ComponentId,
    pub(super) instances: Instances,
    data: DataView<'a>,
}

#[derive(Debug, Clone, Copy)]
enum DataView<'a> {
    Fixed { width_bytes: usize, bytes: &'a [u8] },
    Variable { offset_width: OffsetWidth, offsets: &'a [u8], bytes: &'a [u8] },
}

/// The part of a component section that the schema does not explain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnreadView<'a> {
    /// Columns of this component and of all behind it are in the unread part.
    pub(super) from: ComponentId,
    pub(super) bytes: &'a [u8],
    /// The kinds in the palette that may own some of it.
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
                bytes: reader.take_items("fixed data", count as u64, width_bytes.into())?,
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
        let bytes = reader.take_items("variable data", last, 1)?;
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

/// The bytes of one offset in a column of variable size: the fewest that hold the length of all data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OffsetWidth {
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

    const fn for_len(len_bytes: u64) -> Self {
        match len_bytes {
            0..=0xff => Self::One,
            0x100..=0xffff => Self::Two,
            0x1_0000..=0xffff_ffff => Self::Four,
            _ => Self::Eight,
        }
    }

    const fn bytes(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }

    /// The offset at an index that was checked.
    #[inline]
    fn get(self, offsets: &[u8], index: usize) -> u64 {
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

/// The shape of a component, if the schema knows it and agrees with the id on whether it is of variable size.
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
    schema: &(impl SchemaView + ?Sized),
) -> Result<(Vec<ColumnView<'a>>, Option<UnreadView<'a>>), DecodeError> {
    reader.enter(Section::Components);
    let unread = |reader: &mut Reader<'a>, from| {
        let bytes = match reader.left_bytes() {
            0 => &[],
            left_bytes => reader.take("unread components", left_bytes)?,
        };
        let may_own = |block: &BlockId| {
            schema.components_of(*block).is_none_or(|has| has.iter().any(|component| *component >= from))
        };
        Ok(Some(UnreadView { from, bytes, owners: palette.iter().filter(may_own).collect() }))
    };
    let Some(expected) = expected else {
        // A kind of block is unknown, so it may own instances of any component.
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

/// The instances of every component that a chunk's blocks have, components ascending; `None` if the schema does not
/// know a kind of block.
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

/// The instances of components, given the components of each local id and the blocks in order.
pub(super) fn instances_of<'s>(
    kinds: impl Iterator<Item = Option<&'s [ComponentId]>>,
    ids: &LocalIds,
    upper: impl Iterator<Item = (LocalPos, u32)>,
) -> Option<Vec<(ComponentId, Vec<CellLayer>)>> {
    let mut pairs: Vec<(u32, ComponentId)> = Vec::new();
    for (local, components) in (0..).zip(kinds) {
        pairs.extend(components?.iter().map(|component| (local, *component)));
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

    // For each local id, which columns it has instances in: from its start in `targets` to the next one's.
    let targets: Vec<usize> = pairs
        .iter()
        .map(|(_, component)| columns.partition_point(|(column, _)| column < component))
        .collect();
    let kinds = pairs.last().map_or(0, |(local, _)| *local as usize + 1);
    let starts: Vec<usize> =
        (0..=kinds as u32).map(|kind| pairs.partition_point(|(local, _)| *local < kind)).collect();
    let mut note = |at: CellLayer, local: u32| {
        let mut ends = starts.iter().skip(local as usize).copied();
        let range = ends.next().unwrap_or(0)..ends.next().unwrap_or(0);
        for target in targets.get(range).unwrap_or(&[]) {
            if let Some((_, instances)) = columns.get_mut(*target) {
                instances.push(at);
            }
        }
    };
    let mut upper = upper.peekable();
    for (cell, local) in LocalPos::all().zip(ids) {
        note(CellLayer::base(cell), *local);
        let mut layer = 0;
        while let Some((_, local)) = upper.next_if(|(upper, _)| *upper == cell) {
            layer += 1;
            note(CellLayer::new(cell, layer), local);
        }
    }
    columns.retain(|(_, instances)| !instances.is_empty());
    Some(columns)
}

/// One column of an owned chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) component: ComponentId,
    /// Ascending.
    pub(super) instances: Vec<CellLayer>,
    data: Data,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Data {
    Fixed {
        width_bytes: usize,
        bytes: Vec<u8>,
    },
    /// The end of each instance's bytes.
    Variable {
        ends: Vec<usize>,
        bytes: Vec<u8>,
    },
}

impl Column {
    pub(super) fn new(component: ComponentId, shape: ComponentShape) -> Self {
        let bytes = Vec::new();
        let data = match shape {
            ComponentShape::Fixed { width_bytes } => Data::Fixed { width_bytes: width_bytes as usize, bytes },
            ComponentShape::Variable => Data::Variable { ends: Vec::new(), bytes },
        };
        Self { component, instances: Vec::new(), data }
    }

    pub(super) fn shape(&self) -> ComponentShape {
        match &self.data {
            Data::Fixed { width_bytes, .. } => ComponentShape::Fixed { width_bytes: *width_bytes as u32 },
            Data::Variable { .. } => ComponentShape::Variable,
        }
    }

    pub(super) fn rank(&self, at: CellLayer) -> Option<usize> {
        self.instances.binary_search(&at).ok()
    }

    pub(super) fn get(&self, rank: usize) -> Option<&[u8]> {
        let range = self.range(rank);
        match &self.data {
            Data::Fixed { bytes, .. } | Data::Variable { bytes, .. } => bytes.get(range),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (CellLayer, &[u8])> {
        self.instances.iter().enumerate().filter_map(|(rank, at)| Some((*at, self.get(rank)?)))
    }

    /// Replaces the bytes of an instance; those of a fixed-size component are of its width.
    pub(super) fn set(&mut self, rank: usize, new: &[u8]) {
        let range = self.range(rank);
        match &mut self.data {
            Data::Fixed { bytes, .. } => {
                if let Some(old) = bytes.get_mut(range) {
                    old.copy_from_slice(new);
                }
            }
            Data::Variable { ends, bytes } => {
                let old_len = range.len();
                bytes.splice(range, new.iter().copied());
                for end in ends.iter_mut().skip(rank) {
                    *end = *end - old_len + new.len();
                }
            }
        }
    }

    /// Adds an instance behind all others.
    pub(super) fn push(&mut self, at: CellLayer, new: &[u8]) {
        self.instances.push(at);
        match &mut self.data {
            Data::Fixed { bytes, .. } => bytes.extend_from_slice(new),
            Data::Variable { ends, bytes } => {
                bytes.extend_from_slice(new);
                ends.push(bytes.len());
            }
        }
    }

    /// Adds an instance; if it is there already, keeps it.
    pub(super) fn insert(&mut self, at: CellLayer, new: &[u8]) {
        let Err(rank) = self.instances.binary_search(&at) else { return };
        self.instances.insert(rank, at);
        match &mut self.data {
            Data::Fixed { width_bytes, bytes } => {
                let start = rank * *width_bytes;
                bytes.splice(start..start, new.iter().copied());
            }
            Data::Variable { ends, bytes } => {
                let start = rank.checked_sub(1).and_then(|before| ends.get(before).copied()).unwrap_or(0);
                bytes.splice(start..start, new.iter().copied());
                ends.insert(rank, start);
                for end in ends.iter_mut().skip(rank) {
                    *end += new.len();
                }
            }
        }
    }

    pub(super) fn remove(&mut self, at: CellLayer) {
        let Some(rank) = self.rank(at) else { return };
        let range = self.range(rank);
        self.instances.remove(rank);
        match &mut self.data {
            Data::Fixed { bytes, .. } => drop(bytes.drain(range)),
            Data::Variable { ends, bytes } => {
                ends.remove(rank);
                for end in ends.iter_mut().skip(rank) {
                    *end -= range.len();
                }
                bytes.drain(range);
            }
        }
    }

    /// Moves the instances above a layer of a cell one layer down, when the block at that layer has gone.
    pub(super) fn close_gap(&mut self, gone: CellLayer) {
        for at in &mut self.instances {
            if at.cell == gone.cell && at.layer > gone.layer {
                at.layer -= 1;
            }
        }
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        writer.u64(self.component.get());
        match &self.data {
            Data::Fixed { bytes, .. } => writer.bytes(bytes),
            Data::Variable { ends, bytes } => {
                let width = OffsetWidth::for_len(bytes.len() as u64);
                writer.u8(width.bytes() as u8);
                for offset in core::iter::once(&0).chain(ends) {
                    match width {
                        OffsetWidth::One => writer.u8(*offset as u8),
                        OffsetWidth::Two => writer.u16(*offset as u16),
                        OffsetWidth::Four => writer.u32(*offset as u32),
                        OffsetWidth::Eight => writer.u64(*offset as u64),
                    }
                }
                writer.bytes(bytes);
            }
        }
    }

    pub(super) const fn memory_bytes(&self) -> usize {
        let data = match &self.data {
            Data::Fixed { bytes, .. } => bytes.capacity(),
            Data::Variable { ends, bytes } => bytes.capacity() + ends.capacity() * size_of::<usize>(),
        };
        size_of::<Self>() + self.instances.capacity() * size_of::<CellLayer>() + data
    }

    fn range(&self, rank: usize) -> Range<usize> {
        match &self.data {
            Data::Fixed { width_bytes, .. } => rank * width_bytes..(rank + 1) * width_bytes,
            Data::Variable { ends, .. } => {
                let start = rank.checked_sub(1).and_then(|before| ends.get(before).copied()).unwrap_or(0);
                start..ends.get(rank).copied().unwrap_or(start)
            }
        }
    }
}

impl From<&ColumnView<'_>> for Column {
    fn from(view: &ColumnView<'_>) -> Self {
        let data = match view.data {
            DataView::Fixed { width_bytes, bytes } => Data::Fixed { width_bytes, bytes: bytes.to_vec() },
            DataView::Variable { offset_width, offsets, bytes } => {
                let ends =
                    (1..=view.instances.count()).map(|index| offset_width.get(offsets, index) as usize);
                Data::Variable { ends: ends.collect(), bytes: bytes.to_vec() }
            }
        };
        Self { component: view.component, instances: view.instances.to_vec(), data }
    }
}
