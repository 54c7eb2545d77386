//! The 24 bytes around a stored value, by definition.

use super::{Cursor, Refused, crc32c, put, unlz4};

/// A frame with the bytes after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// 1 plain, 2 cluster, 3 tombstone, 4 deltas.
    pub(crate) kind: u8,
    /// 0 none, 1 LZ4 block, 2 Zstandard.
    pub(crate) codec: u8,
    pub(crate) version: u64,
    pub(crate) schema_generation: u32,
    pub(crate) lineage: u32,
    /// Everything after the header.
    pub(crate) payload: Vec<u8>,
}

/// The checksum: payload (a cluster's directory only), space, key, then the header with zeros for the checksum.
fn checksum(header: &[u8], checked: &[u8], space: u8, key: &[u8]) -> u32 {
    let mut all = checked.to_vec();
    all.push(space);
    all.extend(key);
    all.extend(&header[..4]);
    all.extend([0; 4]);
    all.extend(&header[8..24]);
    crc32c(&all)
}

/// The row of a frame of which the first so many payload bytes are covered by the checksum.
pub(crate) fn encode(frame: &Frame, checked_len: usize, space: u8, key: &[u8]) -> Vec<u8> {
    let mut out = vec![1, frame.kind, frame.codec, 0];
    put(&mut out, 0, 4);
    put(&mut out, frame.version, 8);
    put(&mut out, u64::from(frame.schema_generation), 4);
    put(&mut out, u64::from(frame.lineage), 4);
    out.extend(&frame.payload);
    reseal(&mut out, checked_len, space, key);
    out
}

/// Puts the checksum that a row needs into its header.
pub(crate) fn reseal(row: &mut [u8], checked_len: usize, space: u8, key: &[u8]) {
    let crc = checksum(row, &row[24..24 + checked_len], space, key);
    let mut bytes = Vec::new();
    put(&mut bytes, u64::from(crc), 4);
    row[4..8].copy_from_slice(&bytes);
}

/// Reads a row of which the first so many payload bytes are covered by the checksum.
pub(crate) fn decode(row: &[u8], checked_len: usize, space: u8, key: &[u8]) -> Result<Frame, Refused> {
    let mut at = Cursor::new(row);
    let frame_version = at.u8("frame version")?;
    let kind = at.u8("kind")?;
    let codec = at.u8("codec")?;
    let zero = at.u8("reserved")?;
    let crc = at.u32("checksum")?;
    let version = at.u64("version")?;
    let schema_generation = at.u32("schema generation")?;
    let lineage = at.u32("lineage")?;
    if frame_version != 1 || !(1..=4).contains(&kind) || codec > 2 || zero != 0 {
        return Err(format!("frame {frame_version} kind {kind} codec {codec} reserved {zero}"));
    }
    let payload = at.take("payload", at.left() as u64)?;
    // A compressed value begins with its length; in a cluster each group is compressed by itself.
    if codec != 0 && matches!(kind, 1 | 4) && payload.len() < 4 {
        return Err("the length of a compressed value is cut off".into());
    }
    let checked = payload.get(..checked_len).ok_or("the payload ends early")?;
    if checksum(row, checked, space, key) != crc {
        return Err("checksum".into());
    }
    Ok(Frame { kind, codec, version, schema_generation, lineage, payload: payload.to_vec() })
}

/// Unpacks a payload with a codec. It holds the raw bytes, or for LZ4 a u32 of the raw length and a block.
pub(crate) fn raw_payload(frame: &Frame) -> Result<Vec<u8>, Refused> {
    match frame.codec {
        0 => Ok(frame.payload.clone()),
        1 => {
            let mut at = Cursor::new(&frame.payload);
            let raw_len = at.u32("raw length")?;
            unlz4(&frame.payload[4..], raw_len)
        }
        codec => Err(format!("codec {codec} is not read here")),
    }
}

mod tests {
    use super::super::{fixture, hex, lz4};
    use super::*;

    fn plain() -> Frame {
        Frame {
            kind: 1,
            codec: 0,
            version: 0x0102,
            schema_generation: 7,
            lineage: 0,
            payload: b"chunk".to_vec(),
        }
    }

    #[test]
    fn a_plain_frame_is_its_header_and_its_payload() {
        // The checksum is CRC-32C of 63 68 75 6e 6b | 03 | 4b 4b | the header with zeros, from a calculator
        // that shares no code with this one.
        let row = fixture(
            "01               | frame version
             01               | kind: plain
             00               | codec: none
             00               | reserved
             72f8463e          | checksum
             0201000000000000 | version 258
             07000000         | schema generation
             00000000         | lineage
             6368756e6b       | payload: chunk",
        );
        assert_eq!(hex(&encode(&plain(), 5, 3, b"KK")), hex(&row));
        assert_eq!(decode(&row, 5, 3, b"KK"), Ok(plain()));
    }

    #[test]
    fn a_tombstone_is_a_header_alone() {
        let row = fixture(
            "01 03 00 00      | frame version, kind: tombstone, codec: none, reserved
             fd18c553          | checksum of 03 | 4b | the header with zeros
             0900000000000000 | version 9
             00000000         | schema generation
             00000000         | lineage",
        );
        let frame =
            Frame { kind: 3, codec: 0, version: 9, schema_generation: 0, lineage: 0, payload: Vec::new() };
        assert_eq!(hex(&encode(&frame, 0, 3, b"K")), hex(&row));
        assert_eq!(decode(&row, 0, 3, b"K"), Ok(frame));
    }

    #[test]
    fn another_key_another_space_or_any_flipped_bit_is_refused() {
        let row = encode(&plain(), 5, 3, b"KK");
        assert_eq!(decode(&row, 5, 3, b"KL"), Err("checksum".into()));
        assert_eq!(decode(&row, 5, 4, b"KK"), Err("checksum".into()));
        for bit in 0..row.len() * 8 {
            let mut damaged = row.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&damaged, 5, 3, b"KK").is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_compressed_payload_says_its_raw_length() {
        let raw = b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        let mut payload = fixture("28000000 | raw length: 40");
        payload.extend(lz4(raw));
        let frame = Frame { kind: 1, codec: 1, version: 1, schema_generation: 0, lineage: 0, payload };
        assert_eq!(raw_payload(&frame), Ok(raw.to_vec()));
        let wrong = Frame { payload: fixture("29000000 10 61"), ..frame };
        assert_eq!(raw_payload(&wrong), Err("a block of 1 bytes, not 41".into()));
    }
}
