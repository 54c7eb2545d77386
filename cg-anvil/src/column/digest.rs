//! Digest of the blocks of a column: equal for equal blocks, however they are stored.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use super::{Blocks, CELLS, Column};

/// The first 16 bytes of SHA-256 over the blocks of a column.
///
/// Of each section with blocks, ascending: its y as i32, the count of its states as u32, each state's text after its
/// length as u32, in the order in which the cells first show them, and for each cell in the game's order its state's
/// place in that list as u16; all little-endian. So neither the ids of a world nor the order of a palette matter.
pub(crate) type BlocksDigest = [u8; 16];

impl Column {
    /// Digest of the blocks. Costs the hash of about 8 KiB for each section with blocks.
    pub(crate) fn blocks_digest(&self) -> BlocksDigest {
        let mut hash = Sha256::new();
        for section in &self.sections {
            if let Some(blocks) = &section.blocks {
                hash.update(section.y.to_le_bytes());
                hash_blocks(blocks, &mut hash);
            }
        }
        let whole: [u8; 32] = hash.finalize().into();
        std::array::from_fn(|at| whole[at])
    }
}

fn hash_blocks(blocks: &Blocks, hash: &mut Sha256) {
    let mut numbers = HashMap::<&str, u16>::new();
    let mut shown: Vec<&str> = Vec::new();
    // By palette entry; a palette may hold a state twice.
    let mut of_entry: Vec<Option<u16>> = vec![None; blocks.palette.len()];
    let mut cells = Vec::with_capacity(CELLS * 2);
    for cell in 0..CELLS as u16 {
        let entry = usize::from(blocks.index(cell));
        let number = if let Some(number) = of_entry.get(entry).copied().flatten() {
            number
        } else {
            let state = blocks.palette.get(entry).map_or("", |state| state);
            let next = shown.len() as u16;
            let number = *numbers.entry(state).or_insert_with(|| {
                shown.push(state);
                next
            });
            if let Some(known) = of_entry.get_mut(entry) {
                *known = Some(number);
            }
            number
        };
        cells.extend(number.to_le_bytes());
    }
    hash.update((shown.len() as u32).to_le_bytes());
    for state in shown {
        hash.update((state.len() as u32).to_le_bytes());
        hash.update(state);
    }
    hash.update(cells);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Section;
    use crate::region::ColumnPos;

    fn column(sections: Vec<(i32, Blocks)>) -> Column {
        let mut column = Column::new(ColumnPos::new(0, 0), 3955);
        let section = |(y, blocks)| Section { blocks: Some(blocks), ..Section::new(y) };
        column.sections = sections.into_iter().map(section).collect();
        column
    }

    fn blocks(palette: &[&str], at: &[(usize, u16)]) -> Blocks {
        let mut indices = Box::new([0; CELLS]);
        for (cell, index) in at {
            indices[*cell] = *index;
        }
        Blocks { palette: palette.iter().map(|state| (*state).into()).collect(), indices: Some(indices) }
    }

    #[test]
    fn only_what_the_cells_show_counts() {
        let digest = |blocks| column(vec![(0, blocks)]).blocks_digest();
        let stone = digest(Blocks::uniform("a:stone"));
        assert_eq!(digest(blocks(&["a:stone", "a:unused"], &[])), stone);
        assert_eq!(digest(blocks(&["a:stone", "a:stone"], &[(9, 1)])), stone);
        let two = digest(blocks(&["a:stone", "a:dirt"], &[(9, 1)]));
        let mut turned = blocks(&["a:dirt", "a:stone"], &[(9, 1)]);
        turned.indices.iter_mut().flat_map(|indices| indices.iter_mut()).for_each(|index| *index ^= 1);
        assert_eq!(digest(turned), two);
        let others = [
            digest(Blocks::uniform("a:dirt")),
            two,
            digest(blocks(&["a:stone", "a:dirt"], &[(10, 1)])),
            digest(blocks(&["a:dirt", "a:stone"], &[(9, 1)])),
            column(vec![(1, Blocks::uniform("a:stone"))]).blocks_digest(),
            column(vec![(0, Blocks::uniform("a:stone")), (1, Blocks::uniform("a:stone"))]).blocks_digest(),
            column(vec![]).blocks_digest(),
        ];
        for (at, other) in others.iter().enumerate() {
            assert_ne!(*other, stone);
            assert!(!others[..at].contains(other), "{at}");
        }
    }

    #[test]
    fn light_and_whatever_else_a_section_has_does_not_count() {
        let mut lit = column(vec![(0, Blocks::uniform("a:stone"))]);
        let before = lit.blocks_digest();
        lit.sections[0].sky_light = Some(vec![7; 2048]);
        lit.sections.push(Section { block_light: Some(vec![0; 2048]), ..Section::new(3) });
        lit.carried = b"\x04\x00\x01a\0\0\0\0\0\0\0\x09\0".to_vec();
        assert_eq!(lit.blocks_digest(), before);
    }
}
