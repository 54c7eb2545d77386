//! The side data that lists block entities which no block owns.

use crate::nbt;

/// The side data that lists block entities which no block owns.
pub(crate) fn list_block_entities<'a>(entities: impl ExactSizeIterator<Item = &'a [u8]>) -> Vec<u8> {
    nbt::payload(|out| out.raw_compounds("block_entities", entities))
}

/// The block entities of the side data that lists those without an owner; `None` when it is no such list.
pub(crate) fn listed_block_entities(side: &[u8]) -> Option<Vec<&[u8]>> {
    let list = nbt::Compound::parse(side, &nbt::Limits::default()).ok()?.list("block_entities")?;
    Some(list.compounds().map(nbt::Compound::raw).collect())
}
