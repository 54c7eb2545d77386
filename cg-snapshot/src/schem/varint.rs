//! Variable-length numbers: seven bits a byte, lowest first. The top bit is set if more bytes follow.

/// Why bytes are not an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VarintProblem {
    /// More than five bytes, or bits beyond the 32nd.
    #[error("a number of more than 32 bits")]
    TooLong,
    /// The array ends before the number does.
    #[error("a number that the array's end cuts off")]
    CutOff,
    /// A number above the largest palette index.
    #[error("index {0}, above the 65,535 that a palette can have,")]
    TooLarge(u32),
}

/// A number that is being read, byte by byte.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Varint {
    value: u32,
    shift_bits: u32,
}

impl Varint {
    /// Whether no number has begun.
    pub(super) const fn is_idle(self) -> bool {
        self.shift_bits == 0
    }

    /// Adds the next byte. Returns the index if it is complete.
    pub(super) fn push(&mut self, byte: u8) -> Result<Option<u16>, VarintProblem> {
        let bits = u32::from(byte & 0x7F);
        if self.shift_bits == 28 && bits > 0x0F || self.shift_bits > 28 {
            return Err(VarintProblem::TooLong);
        }
        self.value |= bits << self.shift_bits;
        self.shift_bits += 7;
        if byte & 0x80 != 0 {
            return if self.shift_bits > 28 { Err(VarintProblem::TooLong) } else { Ok(None) };
        }
        let Self { value, .. } = std::mem::take(self);
        u16::try_from(value).map(Some).map_err(|_| VarintProblem::TooLarge(value))
    }
}

/// The encoded length of an index.
pub(super) const fn len_bytes(index: u16) -> u64 {
    match index {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        _ => 3,
    }
}

/// Writes an index.
pub(super) fn put(out: &mut Vec<u8>, index: u16) {
    let mut rest = index;
    while rest >= 0x80 {
        out.push((rest & 0x7F) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Option<u16>, VarintProblem> {
        let mut varint = Varint::default();
        let mut last = None;
        for byte in bytes {
            last = varint.push(*byte)?;
        }
        Ok(last)
    }

    #[test]
    fn every_index_comes_back_in_its_length() {
        for index in 0..=u16::MAX {
            let mut bytes = Vec::new();
            put(&mut bytes, index);
            assert_eq!(bytes.len() as u64, len_bytes(index));
            assert_eq!(read(&bytes), Ok(Some(index)));
        }
    }

    #[test]
    fn what_is_no_index_says_so() {
        assert_eq!(read(&[0x80, 0x80]), Ok(None));
        assert_eq!(read(&[0x80, 0x00]), Ok(Some(0)));
        assert_eq!(read(&[0xFF, 0xFF, 0xFF, 0xFF, 0x0F]), Err(VarintProblem::TooLarge(u32::MAX)));
        assert_eq!(read(&[0x80, 0x80, 0x04]), Err(VarintProblem::TooLarge(65_536)));
        assert_eq!(read(&[0x80, 0x80, 0x80, 0x80, 0x10]), Err(VarintProblem::TooLong));
        assert_eq!(read(&[0x80, 0x80, 0x80, 0x80, 0x80]), Err(VarintProblem::TooLong));
    }
}
