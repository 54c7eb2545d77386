//! Chunks with numbers of their own for block states as chunks of a world.

use std::borrow::Cow;
use std::collections::BTreeMap;

use cg_format::chunk::{Chunk, EditError};
use cg_format::{BlockId, ChunkAt, Dimension, SchemaView};

use crate::mapping::Ids;
use crate::mapping::block_entities::{list_block_entities, listed_block_entities};
use crate::region::ColumnPos;

/// The chunks of a column by their places, with the ids of a world for block states.
pub(crate) fn placed(
    chunks: Vec<(i32, Chunk)>,
    (dimension, column): (Dimension, ColumnPos),
    blocks: &[BlockId],
    schema: &impl SchemaView,
    ids: &Ids,
) -> Result<BTreeMap<ChunkAt, Chunk>, EditError> {
    let mut placed = BTreeMap::new();
    for (y, mut chunk) in chunks {
        chunk.remap_blocks(|block| *blocks.get(block.get() as usize).expect("the job numbered it"));
        placed.insert(column.chunk_at(dimension, y), conform(chunk, schema, ids)?);
    }
    Ok(placed)
}

/// Makes a chunk fit the world's schema, where the world registered a kind otherwise than the job took it to be.
///
/// Block entities whose block cannot own them any more go beside it.
fn conform(chunk: Chunk, schema: &impl SchemaView, ids: &Ids) -> Result<Chunk, EditError> {
    if chunk.conforms_to(schema).is_ok() {
        return Ok(chunk);
    }
    let mut beside: Vec<Vec<u8>> = Vec::new();
    for (component, at, bytes) in chunk.components() {
        let block = chunk.layer(at.cell, at.layer).unwrap_or_default();
        let owns = schema.components_of(block).is_some_and(|owned| owned.contains(&component));
        if !owns && !bytes.is_empty() {
            beside.push(bytes.to_vec());
        }
    }
    let mut fitting = chunk
        .with_components(schema, |at, _, component| chunk.component(at, component).map(Cow::Borrowed))?;
    if let Some(side) = ids.block_entities.filter(|_| !beside.is_empty()) {
        let before = fitting.remove_side(side).unwrap_or_default();
        beside.extend(listed_block_entities(&before).unwrap_or_default().into_iter().map(<[u8]>::to_vec));
        fitting.set_side(side, list_block_entities(beside.iter().map(Vec::as_slice)));
    }
    Ok(fitting)
}
