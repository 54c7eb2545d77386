//! Packed cells of a section in the form in which a host holds them.

use cg_format::CellOrder;
use cg_format::wire::bits;

use crate::problem::CellsProblem;

/// Cells of a section, packed into words.
///
/// Words are little-endian. Each holds ⌊`word_bits` / `bits`⌋ values, lowest bits first; no value crosses words. Java
/// Edition packs into 64-bit words, Bedrock Edition into 32-bit ones.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cells {
    /// The words' bytes; empty if `bits` is 0.
    pub words: Vec<u8>,
    /// The host's number of each index. `None`: values are numbers themselves.
    pub palette: Option<Vec<u32>>,
    /// Bits of a value, at most 32. 0: each cell is the palette's first number.
    pub bits: u8,
    /// 16, 32 or 64.
    pub word_bits: u8,
    /// The order of the cells.
    pub order: CellOrder,
    /// 4: 4,096 cells. 2: 64 cells of 4×4×4 blocks.
    pub side_log2: u8,
}

/// The numbers of cells, and for each cell an index of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unpacked {
    /// At least one.
    pub(crate) numbers: Vec<u32>,
    /// One for each cell, each below the length of `numbers`. Empty if each cell shows the first one.
    pub(crate) indices: Vec<u16>,
}

/// The form in which a host wants cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Form {
    /// The order of the cells.
    pub order: CellOrder,
    /// 16, 32 or 64.
    pub word_bits: u8,
    /// Bit n: cells may have n bits. 0 allows each width.
    pub widths: u32,
}

impl Form {
    /// The smallest allowed width for this many numbers; `None` if none is wide enough.
    fn width_for(self, count: usize) -> Option<u8> {
        let needed = usize::BITS - count.saturating_sub(1).leading_zeros();
        let may = |bits: &u32| self.widths == 0 || self.widths >> bits & 1 == 1;
        (needed..=16).find(may).map(|bits| bits as u8)
    }
}

impl Cells {
    /// The same number in each of 4,096 or 64 cells.
    pub fn uniform(number: u32, form: Form, side_log2: u8) -> Self {
        let palette = Some(vec![number]);
        Self { words: Vec::new(), palette, bits: 0, word_bits: form.word_bits, order: form.order, side_log2 }
    }

    /// The number of cells: 4,096 or 64.
    pub const fn count(&self) -> usize {
        if self.side_log2 == 2 { 64 } else { 4096 }
    }

    /// Packs indices of numbers, which are in the order of the form.
    ///
    /// A form without a width for that many numbers gets the next one up to 16 bits.
    pub(crate) fn pack(unpacked: Unpacked, form: Form, side_log2: u8) -> Self {
        let Unpacked { numbers, indices } = unpacked;
        if indices.is_empty() {
            return Self::pack_uniform(numbers, form, side_log2);
        }
        Self::pack_by(numbers, form, side_log2, |bits| {
            let count = if side_log2 == 2 { 64 } else { 4096 };
            packed(&indices, count, bits, form.word_bits)
        })
    }

    /// As [`pack`](Self::pack), of 4,096 indices that are bytes.
    pub(crate) fn pack_bytes(numbers: Vec<u32>, indices: &[u8; 4096], form: Form) -> Self {
        Self::pack_by(numbers, form, 4, |bits| {
            if bits > 8 || !form.word_bits.is_multiple_of(bits) {
                return packed(indices, indices.len(), bits, form.word_bits);
            }
            // No bit of a word is unused, so the words are one stream of bits.
            let mut words = Vec::with_capacity(indices.len() / 8 * usize::from(bits));
            bits::pack_bytes(indices, bits.into(), &mut words);
            words
        })
    }

    /// Packs cells that show the first number.
    pub(crate) fn pack_uniform(mut numbers: Vec<u32>, form: Form, side_log2: u8) -> Self {
        numbers.truncate(1);
        let first = numbers.first().copied().unwrap_or_default();
        if form.width_for(1) == Some(0) {
            return Self::uniform(first, form, side_log2);
        }
        let count = if side_log2 == 2 { 64 } else { 4096 };
        Self::pack_by(vec![first], form, side_log2, |bits| packed::<u16>(&[], count, bits, form.word_bits))
    }

    fn pack_by(numbers: Vec<u32>, form: Form, side_log2: u8, words: impl FnOnce(u8) -> Vec<u8>) -> Self {
        let any = Form { widths: 0, ..form };
        // Sixteen bits hold each index.
        let bits = form.width_for(numbers.len()).or_else(|| any.width_for(numbers.len())).unwrap_or(16);
        if bits == 0 {
            return Self::pack_uniform(numbers, form, side_log2);
        }
        let (word_bits, order) = (form.word_bits, form.order);
        Self { words: words(bits), palette: Some(numbers), bits, word_bits, order, side_log2 }
    }

    /// Whether a host that wants this form can take the cells as they are.
    pub(crate) fn has_form(&self, form: Form) -> bool {
        let is_allowed = form.widths == 0 || form.widths >> u32::from(self.bits) & 1 == 1;
        let is_direct = self.palette.is_none();
        self.order == form.order && self.word_bits == form.word_bits && is_allowed && !is_direct
    }

    /// Checks the cells and unpacks them, in their own order.
    pub(crate) fn unpack(&self) -> Result<Unpacked, CellsProblem> {
        self.check()?;
        if self.bits == 0 {
            let palette = self.palette.as_ref().and_then(|palette| palette.first().copied());
            let numbers = vec![palette.ok_or(CellsProblem::NoPalette)?];
            return Ok(Unpacked { numbers, indices: Vec::new() });
        }
        let Some(palette) = &self.palette else {
            let mut values = Vec::with_capacity(self.count() + 64);
            self.for_each_word(|word, bits, count| {
                let mask = (1_u64 << bits) - 1;
                values.extend((0..count).map(|place| (word >> (place * bits) & mask) as u32));
            });
            values.truncate(self.count());
            return Ok(Unpacked::of_numbers(values.into_iter()));
        };
        let mut indices = Vec::with_capacity(self.count() + 64);
        // A palette's index has at most 16 bits.
        self.for_each_word(|word, bits, count| {
            let mask = (1_u64 << bits) - 1;
            indices.extend((0..count).map(|place| (word >> (place * bits) & mask) as u16));
        });
        indices.truncate(self.count());
        check_indices(&indices, palette.len())?;
        if palette.len() > self.count() {
            // At most one number for each cell, so that there is room for what is kept.
            let numbers = indices.iter().map(|index| palette.get(usize::from(*index)).copied());
            return Ok(Unpacked::of_numbers(numbers.map(Option::unwrap_or_default)));
        }
        Ok(Unpacked { numbers: palette.clone(), indices })
    }

    /// Visits the words, with the bits and the count of the values in each.
    fn for_each_word(&self, mut visit: impl FnMut(u64, u32, u32)) {
        let bits = u32::from(self.bits);
        let count = u32::from(self.word_bits) / bits;
        match self.word_bits {
            64 => {
                for word in self.words.as_chunks::<8>().0 {
                    visit(u64::from_le_bytes(*word), bits, count);
                }
            }
            32 => {
                for word in self.words.as_chunks::<4>().0 {
                    visit(u32::from_le_bytes(*word).into(), bits, count);
                }
            }
            _ => {
                for word in self.words.as_chunks::<2>().0 {
                    visit(u16::from_le_bytes(*word).into(), bits, count);
                }
            }
        }
    }

    fn check(&self) -> Result<(), CellsProblem> {
        let Self { bits, word_bits, side_log2, .. } = *self;
        if bits > 0 && !matches!(word_bits, 16 | 32 | 64) {
            return Err(CellsProblem::WordBits { found: word_bits });
        }
        if !matches!(side_log2, 2 | 4) {
            return Err(CellsProblem::Side { found: side_log2 });
        }
        let most = if self.palette.is_some() { 16 } else { 32 };
        if bits > 0 && (bits > most || bits > word_bits) {
            return Err(CellsProblem::Bits { found: bits, most: most.min(word_bits) });
        }
        if self.palette.as_ref().is_some_and(|palette| palette.is_empty() || palette.len() > 1 << 16) {
            return Err(CellsProblem::PaletteLength { found: self.palette.as_ref().map_or(0, Vec::len) });
        }
        let expected = match bits {
            0 => 0,
            bits => self.count().div_ceil(usize::from(word_bits / bits)) * usize::from(word_bits / 8),
        };
        if self.words.len() != expected {
            return Err(CellsProblem::Length { found: self.words.len(), expected });
        }
        Ok(())
    }
}

/// Packs indices into words. Cells without an index have the index 0.
fn packed<T: Copy + Into<u64>>(indices: &[T], count: usize, bits: u8, word_bits: u8) -> Vec<u8> {
    /// Packs words of `BYTES` bytes, with `PER_WORD` indices in each.
    fn pack<const BITS: usize, const PER_WORD: usize, const BYTES: usize, T: Copy + Into<u64>>(
        indices: &[T],
        words: &mut [u8],
    ) {
        let word = |group: &[T]| {
            let places = group.iter().enumerate();
            places.fold(0_u64, |word, (place, index)| word | (*index).into() << (place * BITS))
        };
        let (groups, rest) = indices.as_chunks::<PER_WORD>();
        let all = groups.iter().map(|group| word(group)).chain([word(rest)]);
        for (out, word) in words.as_chunks_mut::<BYTES>().0.iter_mut().zip(all) {
            for (out, byte) in out.iter_mut().zip(word.to_le_bytes()) {
                *out = byte;
            }
        }
    }
    let per_word = usize::from(word_bits / bits.max(1)).max(1);
    let mut words = vec![0; count.div_ceil(per_word) * usize::from(word_bits / 8)];
    macro_rules! of_widths {
        ($($bits:literal)*) => {
            match (word_bits, bits) {
                $((64, $bits) => pack::<$bits, { 64 / $bits }, 8, T>(indices, &mut words),)*
                $((32, $bits) => pack::<$bits, { 32 / $bits }, 4, T>(indices, &mut words),)*
                $((16, $bits) => pack::<$bits, { 16 / $bits }, 2, T>(indices, &mut words),)*
                _ => debug_assert!(false, "a binding has no words of {word_bits} bits for {bits}"),
            }
        };
    }
    of_widths!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
    words
}

/// Checks that each index is one of the palette.
fn check_indices(indices: &[u16], palette: usize) -> Result<(), CellsProblem> {
    let largest = indices.iter().copied().fold(0, u16::max);
    if usize::from(largest) < palette {
        return Ok(());
    }
    let is_past = |index: &u16| usize::from(*index) >= palette;
    let cell = indices.iter().position(is_past).unwrap_or(0);
    let index = indices.get(cell).copied().unwrap_or(largest).into();
    Err(CellsProblem::PastPalette { cell, index, palette })
}

impl Unpacked {
    /// The same number in each cell.
    pub(crate) fn uniform(number: u32) -> Self {
        Self { numbers: vec![number], indices: Vec::new() }
    }

    /// The numbers of the cells, each once, in the order of first appearance.
    pub(crate) fn of_numbers(cells: impl Iterator<Item = u32>) -> Self {
        let mut numbers: Vec<u32> = Vec::new();
        let mut known = std::collections::HashMap::new();
        let mut last = None;
        let mut indices = Vec::with_capacity(4096);
        for number in cells {
            let index = match last {
                // Neighbours are usually equal.
                Some((before, index)) if before == number => index,
                _ => *known.entry(number).or_insert_with(|| {
                    numbers.push(number);
                    (numbers.len() - 1) as u16
                }),
            };
            last = Some((number, index));
            indices.push(index);
        }
        Self { numbers, indices }
    }

    /// The index of a cell.
    pub(crate) fn index(&self, cell: u16) -> u16 {
        self.indices.get(usize::from(cell)).copied().unwrap_or(0)
    }

    /// The number of a cell.
    pub(crate) fn number(&self, cell: u16) -> u32 {
        self.numbers.get(usize::from(self.index(cell))).copied().unwrap_or(0)
    }

    /// The same cells of 4×4×4 blocks in another order; they are 64.
    pub(crate) fn reordered_coarse(self, from: CellOrder, to: CellOrder) -> Self {
        if from == to || self.indices.is_empty() {
            return self;
        }
        let place = |order: CellOrder, cell: [u16; 3]| {
            let [slow, middle, fast] = order.axes().map(|axis| cell.get(axis).copied().unwrap_or(0));
            slow * 16 + middle * 4 + fast
        };
        let mut indices = vec![0; 64];
        for number in 0..64_u16 {
            let cell = [number >> 4, number >> 2 & 3, number & 3];
            if let Some(index) = indices.get_mut(usize::from(place(to, cell))) {
                *index = self.index(place(from, cell));
            }
        }
        Self { indices, ..self }
    }

    /// The same cells in another order; they are 4,096.
    pub(crate) fn reordered(self, from: CellOrder, to: CellOrder) -> Self {
        if from == to || self.indices.is_empty() {
            return self;
        }
        let indices = to.cells().map(|cell| self.index(from.index(cell))).collect();
        Self { indices, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMS: [Form; 3] = [
        Form { order: CellOrder::Xzy, word_bits: 32, widths: 0b1_0000_0001_0111_1111 },
        Form { order: CellOrder::Yzx, word_bits: 64, widths: 0b1_1111_1111_1111_0001 },
        Form { order: CellOrder::Xyz, word_bits: 16, widths: 0 },
    ];

    fn cells(kinds: u16) -> Unpacked {
        let indices = (0..4096_u16).map(|cell| cell.wrapping_mul(7) % kinds).collect();
        Unpacked { numbers: (0..kinds).map(|kind| u32::from(kind) * 3 + 5).collect(), indices }
    }

    #[test]
    fn what_was_packed_is_unpacked_in_each_form() {
        for form in FORMS {
            for kinds in [2, 3, 4, 5, 16, 17, 64, 65, 128, 256, 257, 512, 1025, 2049, 4096] {
                let unpacked = cells(kinds);
                let packed = Cells::pack(unpacked.clone(), form, 4);
                assert!(packed.has_form(form), "{form:?} {kinds} {}", packed.bits);
                assert_eq!(packed.unpack().expect("sound"), unpacked, "{form:?} {kinds}");
                if kinds <= 256 {
                    let bytes: [u8; 4096] = std::array::from_fn(|cell| unpacked.indices[cell] as u8);
                    assert_eq!(Cells::pack_bytes(unpacked.numbers, &bytes, form), packed, "{form:?} {kinds}");
                }
            }
            let one = Cells::pack(Unpacked::uniform(9), form, 4);
            assert_eq!((one.bits, one.unpack().expect("sound").number(77)), (0, 9));
        }
    }

    #[test]
    fn direct_numbers_become_a_palette() {
        let direct = Cells { palette: None, ..Cells::pack(cells(300), FORMS[1], 4) };
        let unpacked = direct.unpack().expect("sound");
        assert_eq!((unpacked.numbers.len(), unpacked.number(1), unpacked.number(43)), (300, 7, 1));
    }

    #[test]
    fn lengths_and_numbers_that_lie_are_refused() {
        let sound = Cells::pack(cells(5), FORMS[0], 4);
        let problem = |cells: Cells| cells.unpack().expect_err("it lies");
        let cases = [
            (Cells { bits: 17, ..sound.clone() }, CellsProblem::Bits { found: 17, most: 16 }),
            (Cells { word_bits: 8, ..sound.clone() }, CellsProblem::WordBits { found: 8 }),
            (Cells { side_log2: 3, ..sound.clone() }, CellsProblem::Side { found: 3 }),
            (Cells { palette: Some(Vec::new()), ..sound.clone() }, CellsProblem::PaletteLength { found: 0 }),
            (Cells { bits: 0, ..sound.clone() }, CellsProblem::Length { found: 1640, expected: 0 }),
            (
                Cells { words: vec![0; 1639], ..sound.clone() },
                CellsProblem::Length { found: 1639, expected: 1640 },
            ),
            (
                Cells { palette: Some(vec![1; 4]), ..sound },
                CellsProblem::PastPalette { cell: 2, index: 4, palette: 4 },
            ),
        ];
        for (cells, expected) in cases {
            assert_eq!(problem(cells), expected);
        }
    }
}
