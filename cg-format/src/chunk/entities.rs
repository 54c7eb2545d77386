//! The entities of a chunk: only references. Each entity is stored under its own key.

use alloc::vec::Vec;

use crate::wire::Reader;
use crate::{DecodeError, EntityId, Problem, Section};

/// Stored references, read in place.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntitiesView<'a> {
    ids: &'a [[u8; EntityId::LEN_BYTES]],
}

impl<'a> EntitiesView<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.enter(Section::Entities);
        let count = reader.u64("entity count")?;
        let offset_bytes = reader.offset_bytes();
        let (ids, _) = reader.take_items("entities", count, EntityId::LEN_BYTES as u64)?.as_chunks();
        if !ids.iter().zip(ids.iter().skip(1)).all(|(a, b)| a < b) {
            let mut sorted: Vec<(&[u8; 16], usize)> = ids.iter().zip(0..).collect();
            sorted.sort_unstable();
            let repeated =
                sorted.iter().zip(sorted.iter().skip(1)).filter(|(a, b)| a.0 == b.0).map(|(_, b)| b.1).min();
            if let Some(index) = repeated {
                let problem = Problem::Duplicate { field: "entity number", found: index as u64 };
                return Err(DecodeError::new(Section::Entities, offset_bytes + 16 * index as u64, problem));
            }
        }
        Ok(Self { ids })
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = EntityId> + use<'a> {
        self.ids.iter().map(|id| EntityId::from_bytes(*id))
    }
}
