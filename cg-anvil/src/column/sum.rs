//! Checksum of a slot's contents beside blocks: equal for equal contents, whatever their order.

use super::Column;

impl Column {
    /// CRC-32C over the biomes and light of every section, what is carried, block entities and entities. What is left over
    /// does not count.
    pub(crate) fn sum_beside_blocks(&self) -> u32 {
        self.sum_of_parts(3)
    }

    /// As [`Column::sum_beside_blocks`], without light.
    pub(crate) fn sum_beside_light(&self) -> u32 {
        self.sum_of_parts(1)
    }

    /// The checksum of the first `count` parts of every section, and of what no section holds.
    fn sum_of_parts(&self, count: usize) -> u32 {
        let mut sum = crc32c::crc32c(&self.carried);
        for section in &self.sections {
            let parts = [&section.biomes, &section.block_light, &section.sky_light];
            for (part, bytes) in parts.into_iter().take(count).enumerate() {
                if let Some(bytes) = bytes {
                    sum = crc32c::crc32c_append(sum, &section.y.to_le_bytes());
                    sum = crc32c::crc32c_append(sum, &[part as u8]);
                    sum = crc32c::crc32c_append(sum, bytes);
                }
            }
        }
        let block_entities = sum_of_all(self.block_entities.iter().map(|entity| entity.nbt.as_slice()));
        let entities = sum_of_all(self.entities.iter().map(Vec::as_slice));
        [block_entities, entities]
            .iter()
            .fold(sum, |sum, part| crc32c::crc32c_append(sum, &part.to_le_bytes()))
    }

    /// How many arrays of light the sections have.
    pub(crate) fn light_count(&self) -> usize {
        let lights = self.sections.iter().flat_map(|section| [&section.block_light, &section.sky_light]);
        lights.flatten().count()
    }
}

/// CRC-32C over these, in the order of their bytes.
pub(crate) fn sum_of_all<'a>(all: impl Iterator<Item = &'a [u8]>) -> u32 {
    let mut all: Vec<_> = all.collect();
    all.sort_unstable();
    all.into_iter().fold(0, |sum, bytes| {
        let sum = crc32c::crc32c_append(sum, &(bytes.len() as u64).to_le_bytes());
        crc32c::crc32c_append(sum, bytes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::{BlockEntity, Blocks, Section};
    use crate::region::ColumnPos;

    #[test]
    fn what_a_slot_holds_counts_and_its_order_does_not() {
        let block_entity = |byte| BlockEntity { pos: None, kind: String::new(), nbt: vec![byte] };
        let mut column = Column::new(ColumnPos::new(0, 0), 3955);
        column.sections = vec![Section::new(1), Section::new(2)];
        column.block_entities = [1, 2].map(block_entity).into();
        column.entities = vec![vec![3], vec![4]];
        let sum = column.sum_beside_blocks();
        let changed = |change: fn(&mut Column)| {
            let mut changed = column.clone();
            change(&mut changed);
            (changed.sum_beside_blocks(), changed.light_count())
        };
        assert_eq!(changed(|column| column.block_entities.reverse()), (sum, 0));
        assert_eq!(changed(|column| column.entities.reverse()), (sum, 0));
        assert_eq!(changed(|column| column.sections[0].blocks = Some(Blocks::uniform("a:b"))), (sum, 0));
        assert_eq!(changed(|column| column.left = Some(vec![0])), (sum, 0));
        let others = [
            changed(|column| column.block_entities[0].nbt = vec![7]),
            changed(|column| column.entities[0] = vec![7]),
            changed(|column| column.entities.truncate(1)),
            changed(|column| std::mem::swap(&mut column.entities[0], &mut column.block_entities[0].nbt)),
            changed(|column| column.carried = vec![7]),
            changed(|column| column.sections[0].biomes = Some(vec![7])),
            changed(|column| column.sections[0].block_light = Some(vec![7])),
            changed(|column| column.sections[0].sky_light = Some(vec![7])),
            changed(|column| column.sections[1].sky_light = Some(vec![7])),
        ];
        for (at, (other, _)) in others.iter().enumerate() {
            assert_ne!(*other, sum, "{at}");
            assert!(!others[..at].iter().any(|(before, _)| before == other), "{at}");
        }
        assert_eq!(others.map(|(_, lights)| lights), [0, 0, 0, 0, 0, 0, 1, 1, 1]);
        let unlit = column.sum_beside_light();
        column.sections[0].block_light = Some(vec![7]);
        column.sections[1].sky_light = Some(vec![7]);
        assert_eq!(column.sum_beside_light(), unlit);
        column.sections[1].biomes = Some(vec![7]);
        assert_ne!(column.sum_beside_light(), unlit);
    }
}
