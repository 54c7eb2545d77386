//! Walks over the columns of a dimension.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::ops::ControlFlow;
use std::sync::Arc;

use cg_format::{ChunkBox, ChunkPos, Dimension};
use cg_store::view::Area;

use crate::call::call;
use crate::error::{CG_OK, Fault};
use crate::handle::{self, Exclusive, Held, Kind, Object};
use crate::memory::{Out, OutSlice};
use crate::types::{cg_column_place, cg_error, cg_handle};
use crate::world::World;

/// The columns that are left.
#[derive(Debug)]
struct Walk {
    world: Arc<World>,
    left: Exclusive<std::vec::IntoIter<cg_column_place>>,
}

impl Object for Walk {}

impl Held for Walk {
    const KIND: Kind = Kind::Walk;
}

/// Begins a walk. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_columns_walk(
    world: cg_handle,
    dimension: u32,
    cursor: *mut cg_handle,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_columns_walk", error, || {
            let out = Out::new(cursor, "cursor")?;
            out.put(0);
            let world = handle::find::<World>(world)?;
            let columns = columns(&world, dimension)?;
            let left = Exclusive::new(columns.into_iter());
            out.put(handle::give(Walk { world, left })?);
            Ok(CG_OK)
        })
    }
}

/// The columns of a dimension, ascending. No chunk is decoded.
fn columns(world: &World, dimension: u32) -> Result<Vec<cg_column_place>, Fault> {
    let mut heights: BTreeMap<(i64, i64), (i32, i32)> = BTreeMap::new();
    let [min, max] = [ChunkPos::MIN, ChunkPos::MAX].map(|at| ChunkPos::constant(at, at, at));
    let area = Area::Box(Dimension::new(dimension.into()), ChunkBox::new(min, max));
    let failed = world.committed()?.world().read_view(|view| {
        view.for_each_place(area, |place| {
            let pos = match place {
                Ok(place) => place.at.pos,
                Err(error) => return ControlFlow::Break(error),
            };
            if let Ok(y) = i32::try_from(pos.y()) {
                let column = heights.entry((pos.x(), pos.z())).or_insert((y, y));
                *column = (column.0.min(y), column.1.max(y));
            }
            ControlFlow::Continue(())
        })
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    let place = |((x, z), (min_y, max_y))| cg_column_place { dimension, reserved: 0, x, z, min_y, max_y };
    Ok(heights.into_iter().map(place).collect())
}

/// The next columns of a walk. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_columns_next(
    cursor: cg_handle,
    out: *mut cg_column_place,
    cap: usize,
    n: *mut usize,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_columns_next", error, || {
            let count = Out::new(n, "n")?;
            count.put(0);
            let out = OutSlice::new(out, cap, "out")?;
            let walk = handle::find::<Walk>(cursor)?;
            walk.world.host()?;
            let mut left = walk.left.enter("walk")?;
            let taken = left.len().min(cap);
            out.put(left.by_ref().take(taken));
            count.put(taken);
            Ok(CG_OK)
        })
    }
}
