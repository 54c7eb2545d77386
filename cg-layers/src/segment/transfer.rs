//! The transfer of one entity, and the record of transfers in the root.
//!
//! The root's property `:crossing` stores u8 version 1, u32 count, then for each entity its UUID, the segment that it
//! leaves (dimension u64, x, y, z i64), and u32 length and bytes of the entity as it arrives.

use cg_format::entity::{Entity, Owner};
use cg_format::wire::{Reader, Writer};
use cg_format::{ChunkAt, DecodeError, EntityId};

use super::pos::SegmentPos;

const VERSION: u8 = 1;

/// The transfer of one entity.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Transfer {
    pub(super) id: EntityId,
    pub(super) from: SegmentPos,
    pub(super) entity: Entity,
    /// The chunk that it goes to.
    pub(super) to: ChunkAt,
}

impl Transfer {
    /// Its size in the root's record.
    pub(super) fn len_bytes(&self) -> u64 {
        encode(std::slice::from_ref(self)).len() as u64
    }
}

pub(super) fn encode(transfers: &[Transfer]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    writer.u8(VERSION);
    writer.u32(u32::try_from(transfers.len()).unwrap_or(u32::MAX));
    for transfer in transfers {
        bytes.extend(transfer.id.to_bytes());
        transfer.from.encode(&mut bytes);
        let mut entity = Vec::new();
        transfer.entity.encode(&mut entity);
        let mut writer = Writer::new(&mut bytes);
        writer.u32(u32::try_from(entity.len()).unwrap_or(u32::MAX));
        writer.bytes(&entity);
    }
    bytes
}

pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Vec<Transfer>, DecodeError> {
    reader.version_u8("crossing version", VERSION)?;
    let count = reader.u32("entity count")?;
    let mut transfers = Vec::new();
    for _ in 0..count {
        let id = reader.array("entity uuid").map(EntityId::from_bytes)?;
        let from = SegmentPos::read(reader)?;
        let len_bytes = reader.u32("entity length")?;
        let here = reader.clone();
        let entity = Entity::decode(reader.take("entity", len_bytes as usize)?)?;
        let Owner::Chunk(to) = entity.owner else {
            let (field, found, allowed) = ("entity owner", 1, "a chunk");
            return Err(here.error(cg_format::Problem::OutOfRange { field, found, allowed }));
        };
        transfers.push(Transfer { id, from, entity, to });
    }
    Ok(transfers)
}
