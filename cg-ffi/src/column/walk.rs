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

/// Columns by x and z, with their lowest and highest chunks.
type Columns = BTreeMap<(i64, i64), (i32, i32)>;

/// The columns that are left.
#[derive(Debug)]
struct Walk {
    world: Arc<World>,
    dimension: u32,
    left: Exclusive<<Columns as IntoIterator>::IntoIter>,
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
            let left = Exclusive::new(columns(&world, dimension)?.into_iter());
            out.put(handle::give(Walk { world, dimension, left })?);
            Ok(CG_OK)
        })
    }
}

/// The columns of a dimension. No chunk is decoded.
fn columns(world: &World, dimension: u32) -> Result<Columns, Fault> {
    let mut columns = Columns::new();
    let [min, max] = [ChunkPos::MIN, ChunkPos::MAX].map(|at| ChunkPos::constant(at, at, at));
    let area = Area::Box(Dimension::new(dimension.into()), ChunkBox::new(min, max));
    let failed = world.committed()?.world().read_view(|view| {
        view.for_each_place(area, |place| {
            let pos = match place {
                Ok(place) => place.at.pos,
                Err(error) => return ControlFlow::Break(error),
            };
            if let Ok(y) = i32::try_from(pos.y()) {
                let heights = columns.entry((pos.x(), pos.z())).or_insert((y, y));
                *heights = (heights.0.min(y), heights.1.max(y));
            }
            ControlFlow::Continue(())
        })
    })?;
    failed.map_or(Ok(columns), |error| Err(error.into()))
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
            let dimension = walk.dimension;
            out.put(left.by_ref().take(taken).map(|((x, z), (min_y, max_y))| cg_column_place {
                dimension,
                reserved: 0,
                x,
                z,
                min_y,
                max_y,
            }));
            count.put(taken);
            Ok(CG_OK)
        })
    }
}
