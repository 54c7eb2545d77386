//! A second implementation of the stored layouts, written from their description alone, slow and obvious.
//!
//! It imports no crate of ours, so a misreading of the layout has to happen twice before the tests agree on it.
//! Every bit is moved one at a time, every table is searched from the front, every reason is a sentence.
//!
//! Where the description leaves a reader free, this reader is the strict one; each such choice is named beside the
//! code that makes it.

pub(crate) mod chunk;
pub(crate) mod cluster;
pub(crate) mod delta;
pub(crate) mod entity;
pub(crate) mod frame;
pub(crate) mod key;
pub(crate) mod object;
pub(crate) mod opacity;
pub(crate) mod record;

use std::collections::BTreeMap;

/// Why bytes were refused.
pub(crate) type Refused = String;

/// Reads a value from its front.
pub(crate) struct Cursor<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(crate) fn take(&mut self, what: &str, count: u64) -> Result<&'a [u8], Refused> {
        if count > self.left() as u64 {
            return Err(format!("{what}: {count} bytes wanted at {}, {} left", self.at, self.left()));
        }
        let taken = &self.bytes[self.at..self.at + count as usize];
        self.at += count as usize;
        Ok(taken)
    }

    /// A little-endian number of so many bytes.
    pub(crate) fn number(&mut self, what: &str, width_bytes: u64) -> Result<u64, Refused> {
        Ok(little(self.take(what, width_bytes)?))
    }

    pub(crate) fn u8(&mut self, what: &str) -> Result<u8, Refused> {
        Ok(self.number(what, 1)? as u8)
    }

    pub(crate) fn u16(&mut self, what: &str) -> Result<u16, Refused> {
        Ok(self.number(what, 2)? as u16)
    }

    pub(crate) fn u32(&mut self, what: &str) -> Result<u32, Refused> {
        Ok(self.number(what, 4)? as u32)
    }

    pub(crate) fn u64(&mut self, what: &str) -> Result<u64, Refused> {
        self.number(what, 8)
    }

    pub(crate) fn i64(&mut self, what: &str) -> Result<i64, Refused> {
        Ok(self.number(what, 8)? as i64)
    }

    pub(crate) fn uuid(&mut self, what: &str) -> Result<[u8; 16], Refused> {
        let mut uuid = [0; 16];
        uuid.copy_from_slice(self.take(what, 16)?);
        Ok(uuid)
    }

    pub(crate) fn end(&self, what: &str) -> Result<(), Refused> {
        if self.left() == 0 { Ok(()) } else { Err(format!("{} bytes after {what}", self.left())) }
    }
}

/// Bytes as a little-endian number.
pub(crate) fn little(bytes: &[u8]) -> u64 {
    let mut value = 0;
    for (place, byte) in bytes.iter().enumerate() {
        value |= u64::from(*byte) << (8 * place);
    }
    value
}

/// Appends the lowest bytes of a number, the lowest first.
pub(crate) fn put(out: &mut Vec<u8>, value: u64, width_bytes: u32) {
    for place in 0..width_bytes {
        out.push((value >> (8 * place)) as u8);
    }
}

/// The value of some bits of a stream in which bit 0 is the lowest bit of byte 0.
pub(crate) fn bits_at(stream: &[u8], first_bit: usize, count: usize) -> u64 {
    let mut value = 0;
    for bit in 0..count {
        let at = first_bit + bit;
        value |= u64::from(stream[at / 8] >> (at % 8) & 1) << bit;
    }
    value
}

/// Appends values of some bits each to a stream, then fills its last byte with zeros.
pub(crate) fn put_bits(out: &mut Vec<u8>, values: impl IntoIterator<Item = (u64, usize)>) {
    let mut bits = Vec::new();
    for (value, count) in values {
        for bit in 0..count {
            bits.push((value >> bit & 1) as u8);
        }
    }
    for byte in bits.chunks(8) {
        let mut whole = 0;
        for (place, bit) in byte.iter().enumerate() {
            whole |= bit << place;
        }
        out.push(whole);
    }
}

/// How many bits number so many things: the smallest b with 2^b ≥ count.
pub(crate) fn bits_for(count: usize) -> usize {
    let mut bits = 0;
    while 1_usize << bits < count {
        bits += 1;
    }
    bits
}

/// CRC-32C (Castagnoli): polynomial 0x1EDC6F41 reflected, start and end inverted, one bit at a time.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    !crc
}

/// An LZ4 block. Which of the possible blocks is the encoder's choice, so it comes from the library that all use.
pub(crate) fn lz4(raw: &[u8]) -> Vec<u8> {
    let mut out = vec![0; lz4_flex::block::get_maximum_output_size(raw.len())];
    let len = lz4_flex::block::compress_into(raw, &mut out).expect("the buffer has the largest size");
    out.truncate(len);
    out
}

/// The bytes of an LZ4 block, which are exactly so many. One byte of a block stands for 255 bytes at most.
pub(crate) fn unlz4(block: &[u8], raw_len: u32) -> Result<Vec<u8>, Refused> {
    if u64::from(raw_len) > 255 * block.len() as u64 {
        return Err(format!("{} bytes cannot be a block of {raw_len}", block.len()));
    }
    let mut out = vec![0; raw_len as usize];
    let len = lz4_flex::block::decompress_into(block, &mut out).map_err(|error| error.to_string())?;
    if len == out.len() { Ok(out) } else { Err(format!("a block of {len} bytes, not {raw_len}")) }
}

/// Decompresses Zstandard frames to exactly `raw_len` bytes.
pub(crate) fn unzstd(frames: &[u8], raw_len: u32) -> Result<Vec<u8>, Refused> {
    let mut out = vec![0; raw_len as usize];
    let len = ruzstd::decoding::FrameDecoder::new()
        .decode_all(frames, &mut out)
        .map_err(|error| error.to_string())?;
    if len == out.len() { Ok(out) } else { Err(format!("frames of {len} bytes, not {raw_len}")) }
}

/// The blocks and components that a world knows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Schema {
    /// The components of each known block kind, ascending.
    pub(crate) blocks: BTreeMap<u64, Vec<u64>>,
    /// The width of each known component in bytes, or `None` if every instance has its own length.
    pub(crate) components: BTreeMap<u64, Option<u32>>,
}

/// Whether a list is strictly ascending.
pub(crate) fn ascends<T: Ord>(list: &[T]) -> bool {
    list.windows(2).all(|pair| pair[0] < pair[1])
}

/// Bytes written as text: hex digits, then ` | ` and what they are. `xx*n` repeats the byte xx n times.
pub(crate) fn fixture(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for line in text.lines() {
        let hex = line.split('|').next().expect("a split has a first part");
        for word in hex.split_whitespace() {
            let (digits, times) = word.split_once('*').unwrap_or((word, "1"));
            let times: usize = times.parse().expect("a repeat count");
            let bytes: Vec<u8> = (0..digits.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("two hex digits"))
                .collect();
            for _ in 0..times {
                out.extend(&bytes);
            }
        }
    }
    out
}

/// Bytes as hex with offsets, sixteen a line, so that a failure shows where.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let row = |(line, chunk): (usize, &[u8])| {
        let bytes: Vec<String> = chunk.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{:06x}  {}\n", line * 16, bytes.join(" "))
    };
    bytes.chunks(16).enumerate().map(row).collect()
}

/// Numbers from a seed (`SplitMix64`), so that a failing case is named by one number.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below a bound that is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_catalogued_one() {
        // The check values of CRC-32C in the catalogue of CRC algorithms and in RFC 3720 B.4.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn bits_are_counted_by_doubling() {
        let table =
            [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (16, 4), (17, 5), (256, 8), (257, 9), (4096, 12)];
        for (count, bits) in table {
            assert_eq!(bits_for(count), bits, "{count} kinds");
        }
    }

    #[test]
    fn bits_are_packed_from_the_lowest() {
        let mut out = Vec::new();
        // 5 = 101, 3 = 011, 6 = 110: bits 101 110 011 read from the lowest give 1 0 1 1 1 0 0 1 | 1.
        put_bits(&mut out, [(5, 3), (3, 3), (6, 3)]);
        assert_eq!(out, [0b1001_1101, 0b0000_0001]);
        assert_eq!([0, 3, 6].map(|at| bits_at(&out, at, 3)), [5, 3, 6]);
    }

    #[test]
    fn fixtures_are_read_as_written() {
        assert_eq!(
            fixture("01 ff | two\n 00*3 | three zeros\n abcd*2"),
            [1, 255, 0, 0, 0, 0xab, 0xcd, 0xab, 0xcd]
        );
    }
}
