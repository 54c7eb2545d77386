//! The cells of a chunk that contain a kind of a certain set, as bits: the outline of the chunk.

use alloc::vec::Vec;

use super::blocks::Blocks;
use super::layers::Upper;
use super::owned::Chunk;
use crate::BlockId;

/// One bit per cell: column `x·16 + z`, bit y.
pub(crate) type Columns = [u16; 256];
/// The columns of one x.
type PlaneColumns = [u16; 16];

/// Which local ids of a chunk are wanted.
struct Wanted {
    /// 1 for a wanted id below 256, otherwise 0. The local ids of most chunks fit a byte, and an index of one byte is
    /// always inside the table.
    few: [u16; 256],
    /// The same for all ids, if there are more.
    many: Vec<u16>,
    /// Set if all ids are wanted, or none is.
    uniform: Option<bool>,
}

impl Wanted {
    fn of(chunk: &Chunk, is_wanted: impl Fn(BlockId) -> bool) -> Self {
        let ids = chunk.palette.ids();
        let mut wanted = Self { few: [0; 256], many: Vec::new(), uniform: None };
        let mut count = 0;
        for (entry, block) in wanted.few.iter_mut().zip(ids) {
            *entry = is_wanted(*block).into();
            count += usize::from(*entry);
        }
        if ids.len() > wanted.few.len() {
            wanted.many = ids.iter().map(|block| is_wanted(*block).into()).collect();
            count = wanted.many.iter().copied().map(usize::from).sum();
        }
        wanted.uniform = if count == 0 { Some(false) } else { (count == ids.len()).then_some(true) };
        wanted
    }

    #[inline]
    fn of_local(&self, local: u32) -> u16 {
        match self.many.get(local as usize) {
            Some(wanted) => *wanted,
            None => self.few.get(usize::from(local as u8)).copied().unwrap_or(0),
        }
    }
}

impl Chunk {
    /// The cells with a wanted kind in any layer. `is_wanted` is called once or twice for each palette entry.
    pub(crate) fn columns_of(&self, is_wanted: impl Fn(BlockId) -> bool) -> Columns {
        self.columns_with(&Wanted::of(self, is_wanted))
    }

    /// The cells of a later chunk with a wanted kind in any layer; `None` if they are those of this chunk.
    ///
    /// If one chunk is an edit of the other, planes of cells that are equal as bytes are not unpacked until a
    /// difference is found.
    pub(crate) fn columns_changed_in(
        &self,
        later: &Self,
        is_wanted: impl Fn(BlockId) -> bool,
    ) -> Option<Columns> {
        let (old, new) = (Wanted::of(self, &is_wanted), Wanted::of(later, &is_wanted));
        if old.uniform.is_some() && old.uniform == new.uniform {
            return None;
        }
        let shares_ids = self.shares_local_ids(later);
        let is_changed = |x| {
            let is_same = shares_ids
                && self.blocks.has_plane_of(&later.blocks, x)
                && self.upper_plane(x) == later.upper_plane(x);
            !is_same && self.plane_columns(x, &old) != later.plane_columns(x, &new)
        };
        (0..16).any(is_changed).then(|| later.columns_with(&new))
    }

    fn columns_with(&self, wanted: &Wanted) -> Columns {
        let mut columns = [0; 256];
        for (x, columns) in (0..).zip(columns.as_chunks_mut::<16>().0) {
            *columns = self.plane_columns(x, wanted);
        }
        columns
    }

    fn plane_columns(&self, x: u8, wanted: &Wanted) -> PlaneColumns {
        if let Some(is_wanted) = wanted.uniform {
            return [if is_wanted { u16::MAX } else { 0 }; 16];
        }
        let mut plane = [0; Blocks::PLANE_CELLS];
        self.blocks.unpack_plane(x, &mut plane);
        let mut columns = if wanted.many.is_empty() {
            // Without the look at `many` for each cell.
            columns_by(&plane, |local| wanted.few.get(usize::from(local as u8)).copied().unwrap_or(0))
        } else {
            columns_by(&plane, |local| wanted.of_local(local))
        };
        for entry in self.upper_plane(x) {
            if let Some(column) = columns.get_mut(usize::from(entry.cell.z())) {
                *column |= wanted.of_local(entry.local) << entry.cell.y();
            }
        }
        columns
    }

    /// The blocks above layer 0 of one x.
    fn upper_plane(&self, x: u8) -> &[Upper] {
        let start = self.upper.partition_point(|entry| entry.cell.x() < x);
        let rest = self.upper.get(start..).unwrap_or_default();
        rest.get(..rest.partition_point(|entry| entry.cell.x() == x)).unwrap_or_default()
    }
}

/// The columns of one x, with a look-up that returns 1 for a wanted local id and 0 for another.
#[inline]
fn columns_by(plane: &[u32; Blocks::PLANE_CELLS], look_up: impl Fn(u32) -> u16) -> PlaneColumns {
    let mut columns = [0; 16];
    for (y, row) in plane.as_chunks::<16>().0.iter().enumerate() {
        for (column, local) in columns.iter_mut().zip(row) {
            *column |= look_up(*local) << y;
        }
    }
    columns
}
