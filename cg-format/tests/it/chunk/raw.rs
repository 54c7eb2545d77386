//! A chunk's bytes put together field by field, right or wrong: an encoder that shares nothing with the crate.

use super::model::{BYTE, LIST, TEXT, WIDE};

/// The fields of a value, before anything is derived from them.
#[derive(Debug, Clone)]
pub(super) struct Raw {
    pub(super) version: u64,
    pub(super) palette: Vec<u64>,
    pub(super) ids: Vec<u64>,
    pub(super) layered: Vec<(u64, u64)>,
    pub(super) components: Vec<u8>,
    pub(super) entities: Vec<[u8; 16]>,
    pub(super) sides: Vec<u8>,
}

impl Raw {
    /// One block everywhere.
    pub(super) fn uniform(block: u64) -> Self {
        Self {
            version: 1,
            palette: vec![block],
            ids: vec![0; 4096],
            layered: vec![],
            components: vec![],
            entities: vec![],
            sides: vec![],
        }
    }

    /// Air with a block 1 (a byte) under a block 2 (a byte and a wide one), and a block 3 (a text) under a block 1;
    /// two entities, two kinds of side data. Canonical.
    pub(super) fn rich() -> Self {
        let mut raw = Self::uniform(0);
        raw.palette = vec![1, 2, 0, 3];
        raw.ids.fill(2);
        raw.ids[0] = 0;
        raw.ids[7] = 3;
        raw.layered = vec![(0, 1), (7, 0)];
        raw.components =
            [fixed(WIDE.get(), b"wide!"), fixed(BYTE.get(), b"abc"), variable(TEXT.get(), &[b"hello"])]
                .concat();
        raw.entities = vec![[1; 16], [2; 16]];
        raw.sides = [side(1, b"light"), side(9, b"")].concat();
        raw
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let width = (0..64).find(|width| 1 << width >= self.palette.len()).unwrap();
        let ids = pack(&self.ids, width);
        let layered: Vec<u64> = self.layered.iter().map(|(cell, local)| cell | local << 12).collect();
        let layered = pack(&layered, 12 + width);
        let component_offset = 40 + 8 * self.palette.len() + ids.len() + layered.len();
        let entity_offset = component_offset + self.components.len();
        let mut out = Vec::new();
        for field in
            [self.version as usize, component_offset, entity_offset, self.layered.len(), self.palette.len()]
        {
            out.extend((field as u64).to_le_bytes());
        }
        out.extend(self.palette.iter().flat_map(|id| id.to_le_bytes()));
        out.extend(ids);
        out.extend(layered);
        out.extend(&self.components);
        out.extend((self.entities.len() as u64).to_le_bytes());
        out.extend(self.entities.iter().flatten());
        out.extend(&self.sides);
        out
    }
}

/// A column of fixed size.
pub(super) fn fixed(id: u64, data: &[u8]) -> Vec<u8> {
    [&id.to_le_bytes()[..], data].concat()
}

/// A column of variable size, its data shorter than 256 bytes.
pub(super) fn variable(id: u64, data: &[&[u8]]) -> Vec<u8> {
    let mut out = id.to_le_bytes().to_vec();
    out.extend([1, 0]);
    let mut end = 0;
    for bytes in data {
        end += bytes.len() as u8;
        out.push(end);
    }
    out.extend(data.concat());
    out
}

/// An entry of side data.
pub(super) fn side(kind: u16, data: &[u8]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &(data.len() as u32).to_le_bytes(), data].concat()
}

/// The id of a component that the tests' schema knows and that no block of [`Raw::rich`] has.
pub(super) const UNEXPECTED: u64 = LIST.get();

fn pack(values: &[u64], width: usize) -> Vec<u8> {
    let mut out = vec![0; (values.len() * width).div_ceil(8)];
    for (index, value) in values.iter().enumerate() {
        for bit in (0..width).filter(|bit| value >> bit & 1 == 1) {
            let at = index * width + bit;
            out[at / 8] |= 1 << (at % 8);
        }
    }
    out
}
