//! Chunks by themselves, in numbers of the world.

mod parts;

use std::ffi::c_int;
use std::sync::Arc;

use cg_format::chunk::{CellLayer, Chunk as Blocks};
use cg_format::{BlockId, LocalPos, SideKind};
use cg_registry::Schema;
use parking_lot::MutexGuard;

use crate::call::call;
use crate::error::{CG_ABSENT, CG_OK, Fault};
use crate::handle::{self, Exclusive, Held, Kind, Object};
use crate::memory::{Out, OutSlice, Values};
use crate::place;
use crate::types::{cg_cell, cg_component, cg_error, cg_handle, cg_pos};
use crate::world::World;

pub use parts::{
    cg_chunk_component, cg_chunk_components, cg_chunk_set_component, cg_chunk_set_side, cg_chunk_side,
};

/// A copy of a chunk, or a new one.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) world: Arc<World>,
    /// The schema of its blocks when it was loaded or made, for the time after the world was closed.
    schema: Schema,
    state: Exclusive<State>,
}

#[derive(Debug)]
struct State {
    blocks: Blocks,
    /// What was lent last; the pointers point into the chunk.
    lent: Vec<cg_component>,
}

// SAFETY: the pointers point into what the state owns, and are not used after it was changed.
unsafe impl Send for State {}

impl Object for Chunk {}

impl Held for Chunk {
    const KIND: Kind = Kind::Chunk;
}

impl Chunk {
    fn new(world: Arc<World>, schema: Schema, blocks: Blocks) -> Self {
        Self { world, schema, state: Exclusive::new(State { blocks, lent: Vec::new() }) }
    }

    fn state(&self) -> Result<MutexGuard<'_, State>, Fault> {
        self.state.enter("chunk")
    }

    /// The schema, with what was registered since.
    fn schema(&self) -> Schema {
        let newest = |world: &World| Some(world.host().ok()?.world().catalog().current_schema());
        newest(&self.world).unwrap_or_else(|| self.schema.clone())
    }

    /// A copy of the chunk.
    pub(crate) fn copy(&self) -> Result<Blocks, Fault> {
        Ok(self.state()?.blocks.clone())
    }
}

fn cell(at: cg_cell) -> Result<CellLayer, Fault> {
    let cg_cell { x, y, z, layer } = at;
    if [x, y, z].iter().any(|axis| *axis > 15) {
        return Err(Fault::invalid(format!("cell ({x}, {y}, {z}) is in no chunk; each is at most 15")));
    }
    Ok(CellLayer::new(LocalPos::new(x, y, z), layer))
}

/// A kind of side data.
pub(crate) fn side(number: u64) -> Result<SideKind, Fault> {
    let side = u16::try_from(number).map(SideKind::new);
    side.map_err(|_| Fault::invalid(format!("side {number} is none; there are at most 65,536")))
}

/// Copies a stored chunk. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_chunk_load(
    world: cg_handle,
    dimension: u32,
    chunk_at: cg_pos,
    chunk: *mut cg_handle,
    version: *mut u64,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_chunk_load", error, || {
            let (out, version) = (Out::new(chunk, "chunk")?, Out::optional(version));
            out.put(0);
            let world = handle::find::<World>(world)?;
            let at = place::chunk(dimension, chunk_at)?;
            let host = world.committed()?;
            let store = host.world();
            let loaded = store.load_versioned(at).map_err(|error| Fault::from(error).at(Some(at)))?;
            if let Some(version) = version {
                version.put(loaded.as_ref().map_or(0, |(_, version)| version.get()));
            }
            let Some((blocks, _)) = loaded else { return Ok(CG_ABSENT) };
            let schema = store.catalog().current_schema();
            out.put(handle::give(Chunk::new(world, schema, Arc::unwrap_or_clone(blocks)))?);
            Ok(CG_OK)
        })
    }
}

/// Makes a chunk. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_chunk_new(
    world: cg_handle,
    block: u64,
    chunk: *mut cg_handle,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_chunk_new", error, || {
            let out = Out::new(chunk, "chunk")?;
            out.put(0);
            let world = handle::find::<World>(world)?;
            let schema = world.host()?.world().catalog().current_schema();
            let blocks = Blocks::filled(BlockId::new(block), &schema)?;
            out.put(handle::give(Chunk::new(world, schema, blocks))?);
            Ok(CG_OK)
        })
    }
}

/// The blocks of layer 0. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_chunk_cells(
    chunk: cg_handle,
    order: u32,
    ids: *mut u64,
    count: usize,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_chunk_cells", error, || {
            let ids = OutSlice::new(ids, count, "ids")?;
            all_cells(count)?;
            let order = place::order(order)?;
            let chunk = handle::find::<Chunk>(chunk)?;
            let mut blocks = cells();
            chunk.state()?.blocks.unpack(order, &mut blocks);
            ids.put(blocks.iter().map(|block| block.get()));
            Ok(CG_OK)
        })
    }
}

/// Room for the blocks of all cells.
fn cells() -> Box<[BlockId; LocalPos::COUNT]> {
    let cells = vec![BlockId::default(); LocalPos::COUNT].into_boxed_slice();
    cells.try_into().expect("it has this many cells")
}

fn all_cells(count: usize) -> Result<(), Fault> {
    if count == LocalPos::COUNT {
        return Ok(());
    }
    Err(Fault::invalid(format!("count is {count}, and a chunk has {} cells", LocalPos::COUNT)))
}

/// Replaces the blocks of layer 0. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_chunk_set_cells(
    chunk: cg_handle,
    order: u32,
    ids: *const u64,
    count: usize,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_chunk_set_cells", error, || {
            let ids = Values::new(ids, count, "ids")?;
            all_cells(count)?;
            let order = place::order(order)?;
            let chunk = handle::find::<Chunk>(chunk)?;
            let mut blocks = cells();
            for (place, id) in blocks.iter_mut().zip(ids.iter()) {
                *place = BlockId::new(id);
            }
            let schema = chunk.schema();
            let mut state = chunk.state()?;
            let new = with_cells(&state.blocks, Blocks::from_blocks(&blocks, order, &schema)?)?;
            *state = State { blocks: new, lent: Vec::new() };
            Ok(CG_OK)
        })
    }
}

/// A new chunk with what stays of an old one: components of equal blocks, side data, and entities.
fn with_cells(old: &Blocks, mut new: Blocks) -> Result<Blocks, Fault> {
    if old.has_unread_components() {
        let block = old.kinds().first().copied().unwrap_or_default();
        return Err(cg_format::chunk::EditError::UnreadComponents { block }.into());
    }
    for (component, at, bytes) in old.components() {
        if at.layer == 0 && old.block(at.cell) == new.block(at.cell) {
            new.set_component(at, component, bytes)?;
        }
    }
    for (kind, bytes) in old.sides() {
        new.set_side(kind, bytes.to_vec());
    }
    for id in old.entities() {
        new.add_entity(*id);
    }
    Ok(new)
}

/// The block of a cell. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_chunk_block(
    chunk: cg_handle,
    at: cg_cell,
    id: *mut u64,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_chunk_block", error, || {
            let out = Out::new(id, "id")?;
            let at = cell(at)?;
            let chunk = handle::find::<Chunk>(chunk)?;
            let block = chunk.state()?.blocks.layer(at.cell, at.layer);
            Ok(block.map_or(CG_ABSENT, |block| {
                out.put(block.get());
                CG_OK
            }))
        })
    }
}

/// Replaces the block of a cell. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_chunk_set_block(
    chunk: cg_handle,
    at: cg_cell,
    id: u64,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_chunk_set_block", error, || {
            let at = cell(at)?;
            let chunk = handle::find::<Chunk>(chunk)?;
            let (block, schema) = (BlockId::new(id), chunk.schema());
            let mut state = chunk.state()?;
            state.lent.clear();
            let layers = state.blocks.layer_count(at.cell);
            if usize::from(at.layer) > layers {
                let message = format!("the cell has {layers} layers, and layer {} is not the next", at.layer);
                return Err(Fault::invalid(message));
            }
            if usize::from(at.layer) == layers {
                state.blocks.push_layer(at.cell, block, &schema)?;
            } else {
                state.blocks.set_layer(at, block, &schema)?;
            }
            Ok(CG_OK)
        })
    }
}
