//! A component's column in an owned chunk.

use alloc::vec::Vec;
use core::ops::Range;

use super::components::{ColumnView, DataView, OffsetWidth};
use super::instances::CellLayer;
use crate::wire::Writer;
use crate::{ComponentId, ComponentShape};

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

    /// Replaces the bytes of an instance. The new bytes of a fixed-size component must have its width.
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

    /// Adds an instance after all others.
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

    /// Adds an instance; an existing one stays unchanged.
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

    /// Moves the instances above a layer of a cell down by one, after the block at that layer was removed.
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

    /// The length of what [`write`](Self::write) appends.
    pub(super) const fn len_bytes(&self) -> usize {
        let data = match &self.data {
            Data::Fixed { bytes, .. } => bytes.len(),
            Data::Variable { ends, bytes } => {
                let width = OffsetWidth::for_len(bytes.len() as u64).bytes() as usize;
                1 + (ends.len() + 1) * width + bytes.len()
            }
        };
        size_of::<u64>() + data
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
