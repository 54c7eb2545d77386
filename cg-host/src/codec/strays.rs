//! Block entities whose block cannot own one, as side data `host:block_entities` of their chunk.
//!
//! A kind of block has the same components for ever, so a block that was registered without a block entity cannot own one
//! later. `docs/format/host.md` has the layout.

use cg_format::wire::{Reader, Writer};
use cg_format::{DecodeError, LocalPos, Section};

const VERSION: u8 = 1;

/// The side data of some block entities; `None` if there are none.
pub(crate) fn encode(strays: &[(LocalPos, &[u8])]) -> Option<Vec<u8>> {
    if strays.is_empty() {
        return None;
    }
    let mut bytes = vec![VERSION];
    let mut writer = Writer::new(&mut bytes);
    for (cell, nbt) in strays {
        writer.u16(cell.index());
        writer.u32(u32::try_from(nbt.len()).ok()?);
        writer.bytes(nbt);
    }
    Some(bytes)
}

/// The block entities of side data; `None` if it is none.
pub(crate) fn decode(side: &[u8]) -> Option<Vec<(LocalPos, &[u8])>> {
    let read = || -> Result<Vec<(u16, &[u8])>, DecodeError> {
        let mut reader = Reader::new(side, Section::SideData);
        reader.expect_u8("format version", VERSION)?;
        let mut strays = Vec::new();
        while reader.left_bytes() > 0 {
            let cell = reader.u16("cell")?;
            let len_bytes = reader.u32("length")?;
            strays.push((cell, reader.take("block entity", len_bytes as usize)?));
        }
        Ok(strays)
    };
    let strays = read().ok()?;
    strays.into_iter().map(|(cell, nbt)| Some((LocalPos::from_index(cell)?, nbt))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_page() {
        let strays = [(LocalPos::new(0, 1, 2), &[7, 8][..]), (LocalPos::new(15, 15, 15), &[])];
        let bytes = encode(&strays).expect("two");
        assert_eq!(bytes, [1, 0x12, 0, 2, 0, 0, 0, 7, 8, 0xff, 0x0f, 0, 0, 0, 0]);
        assert_eq!(decode(&bytes), Some(strays.to_vec()));
        assert_eq!(encode(&[]), None);
        assert_eq!(decode(&bytes[..14]), None);
        assert_eq!(decode(&[1, 0, 0x10, 0, 0, 0, 0]), None, "no cell has number 4096");
        assert_eq!(decode(&[2]), None);
    }
}
