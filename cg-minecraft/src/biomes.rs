//! The `biomes` of a section since 1.18: a palette of names, and an index for each 4×4×4 blocks.

use cg_snapshot::nbt::{self, Compound, Value};

/// Cells of a section's biomes.
pub const CELLS: usize = 64;

/// Biomes of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Biomes {
    /// The names, such as `minecraft:plains`.
    pub palette: Vec<String>,
    /// For each cell in the game's order y·16+z·4+x an index below the palette's length.
    pub indices: [u8; CELLS],
}

impl Biomes {
    /// Encodes them as the game does, as a compound's bytes; `None` if the palette is empty, or longer than the cells, or a
    /// name has more bytes than NBT can have.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let (count, mut fits) = (self.palette.len(), true);
        if count == 0 || count > CELLS || self.indices.iter().any(|index| usize::from(*index) >= count) {
            return None;
        }
        let bytes = nbt::payload(|out| {
            if let Some(words) = pack(&self.indices, count) {
                out.long_array("data", &words);
            }
            fits = out.strings("palette", self.palette.iter().map(String::as_str)).is_ok();
        });
        fits.then_some(bytes)
    }

    /// Decodes a compound's bytes; `None` if they are no biomes of a section.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let fields = Compound::parse(bytes, &nbt::Limits::default()).ok()?;
        let name = |value: Value<'_>| Some(value.as_text()?.decode()?.into_owned());
        let palette: Vec<String> = fields.list("palette")?.values().map(name).collect::<Option<_>>()?;
        let mut indices = [0; CELLS];
        let bits = bits_for(palette.len());
        match fields.get("data") {
            None if palette.len() == 1 => {}
            Some(Value::LongArray(words)) if bits <= 6 && !palette.is_empty() => {
                let per_word = (64 / bits.max(1)) as usize;
                if bits == 0 || words.len() != CELLS.div_ceil(per_word) {
                    return (palette.len() == 1).then_some(Self { palette, indices });
                }
                for (word, cells) in words.values().zip(indices.chunks_mut(per_word)) {
                    let mut word = word.cast_unsigned();
                    for cell in cells {
                        *cell = (word & ((1 << bits) - 1)) as u8;
                        word >>= bits;
                    }
                }
            }
            _ => return None,
        }
        let is_sound = indices.iter().all(|index| usize::from(*index) < palette.len());
        is_sound.then_some(Self { palette, indices })
    }
}

const fn bits_for(count: usize) -> u32 {
    usize::BITS - count.saturating_sub(1).leading_zeros()
}

fn pack(indices: &[u8; CELLS], count: usize) -> Option<Vec<i64>> {
    let bits = bits_for(count);
    let per_word = 64_u32.checked_div(bits)? as usize;
    let word = |cells: &[u8]| {
        let place = |word: u64, (place, index): (u32, &u8)| word | u64::from(*index) << (place * bits);
        (0..).zip(cells).fold(0, place).cast_signed()
    };
    Some(indices.chunks(per_word).map(word).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn biomes_come_back_with_any_number_of_names() {
        for count in [1_u8, 2, 3, 4, 5, 16, 17, 33, 64] {
            let palette = (0..count).map(|name| format!("minecraft:b{name}")).collect();
            let indices = std::array::from_fn(|cell| (cell as u8).wrapping_mul(5) % count);
            let biomes = Biomes { palette, indices };
            let bytes = biomes.encode().expect("they fit");
            assert_eq!(Biomes::decode(&bytes), Some(biomes), "{count}");
        }
    }

    #[test]
    fn what_is_no_biomes_is_refused() {
        let none = Biomes { palette: Vec::new(), indices: [0; CELLS] };
        assert_eq!(none.encode(), None);
        let past = Biomes { palette: vec!["a:b".into()], indices: [1; CELLS] };
        assert_eq!(past.encode(), None);
        assert_eq!(Biomes::decode(b"no compound"), None);
        let two = Biomes { palette: vec!["a:b".into(), "a:c".into()], indices: [1; CELLS] };
        let bytes = two.encode().expect("they fit");
        let cut = bytes.get(..bytes.len() - 3).expect("longer");
        assert_eq!(Biomes::decode(cut), None);
    }
}
