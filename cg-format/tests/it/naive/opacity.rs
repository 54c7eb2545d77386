//! Opacity tiles and patches, by definition.

use super::{Cursor, Refused, ascends, put};

/// A tile: for each column x·side + z, where opaque begins and ends by turns, going up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tile {
    pub(crate) scale_level: u8,
    pub(crate) columns: Vec<Vec<i64>>,
}

/// Columns of a tile: 64² or 256².
fn columns(scale_level: u8) -> Result<usize, Refused> {
    match scale_level {
        1 => Ok(64 * 64),
        2 => Ok(256 * 256),
        _ => Err(format!("scale level {scale_level}")),
    }
}

pub(crate) fn encode_tile(tile: &Tile) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, 1, 8);
    out.push(tile.scale_level);
    let mut offset = 9 + 4 * (tile.columns.len() as u64 + 1);
    put(&mut out, offset, 4);
    for column in &tile.columns {
        offset += 8 * column.len() as u64;
        put(&mut out, offset, 4);
    }
    for boundary in tile.columns.iter().flatten() {
        put(&mut out, *boundary as u64, 8);
    }
    out
}

/// Reads a tile. A column of an odd number of boundaries is opaque from its last one up to the top of the world.
pub(crate) fn decode_tile(bytes: &[u8]) -> Result<Tile, Refused> {
    let mut at = Cursor::new(bytes);
    let version = at.u64("format version")?;
    if version != 1 {
        return Err(format!("format version {version}"));
    }
    let scale_level = at.u8("scale level")?;
    let count = columns(scale_level)?;
    let mut offsets = Vec::new();
    for _ in 0..=count {
        offsets.push(at.u32("column offset")?);
    }
    if offsets[0] as usize != at.at || offsets[count] as usize != bytes.len() {
        return Err(format!(
            "columns from {} to {}, not {} to {}",
            offsets[0],
            offsets[count],
            at.at,
            bytes.len()
        ));
    }
    let mut columns = Vec::new();
    for pair in offsets.windows(2) {
        if pair[1] < pair[0] || (pair[1] - pair[0]) % 8 != 0 {
            return Err(format!("a column from {} to {}", pair[0], pair[1]));
        }
        let mut column = Vec::new();
        for _ in 0..(pair[1] - pair[0]) / 8 {
            column.push(at.i64("boundary")?);
        }
        if !ascends(&column) {
            return Err("boundaries do not rise".into());
        }
        columns.push(column);
    }
    Ok(Tile { scale_level, columns })
}

/// One chunk's opacity: bit y of column x·16 + z.
pub(crate) type Patch = [u16; 256];

pub(crate) fn encode_patch(patch: &Patch) -> Vec<u8> {
    if patch.iter().all(|column| *column == 0) {
        return vec![0];
    }
    if patch.iter().all(|column| *column == 0xffff) {
        return vec![1];
    }
    let mut out = Vec::new();
    for column in patch {
        put(&mut out, u64::from(*column), 2);
    }
    out
}

/// Reads a patch. A uniform one is read in its long form too, and never written so.
pub(crate) fn decode_patch(bytes: &[u8]) -> Result<Patch, Refused> {
    match bytes {
        [0] => return Ok([0; 256]),
        [1] => return Ok([0xffff; 256]),
        _ => {}
    }
    let mut at = Cursor::new(bytes);
    let mut patch = [0; 256];
    for column in &mut patch {
        *column = at.u16("column")?;
    }
    at.end("the columns")?;
    Ok(patch)
}

mod tests {
    use super::super::{fixture, hex};
    use super::*;

    #[test]
    fn one_opaque_run_in_the_last_column() {
        let mut columns = vec![Vec::new(); 4096];
        columns[4095] = vec![-3, 70];
        let tile = Tile { scale_level: 1, columns };
        let bytes = fixture(
            "0100000000000000 | format version
             01               | scale level
             0d400000*4096    | each column starts at 9 + 4·4097 = 16397
             1d400000         | the last one ends 16 bytes later
             fdffffffffffffff | opaque from −3
             4600000000000000 | not from 70",
        );
        assert_eq!(bytes.len(), 16413);
        assert_eq!(hex(&encode_tile(&tile)), hex(&bytes));
        assert_eq!(decode_tile(&bytes), Ok(tile));
    }

    #[test]
    fn tiles_that_contradict_themselves_are_refused() {
        let empty = |scale| fixture(&format!("0100000000000000 0{scale} 0d400000*4097"));
        assert!(decode_tile(&empty(1)).is_ok());
        assert_eq!(decode_tile(&empty(3)), Err("scale level 3".into()));
        let falling = fixture("0100000000000000 01 0d400000*4096 1d400000 0500000000000000*2");
        assert_eq!(decode_tile(&falling), Err("boundaries do not rise".into()));
        let half = fixture("0100000000000000 01 0d400000*4096 11400000 00000000");
        assert_eq!(decode_tile(&half), Err("a column from 16397 to 16401".into()));
    }

    #[test]
    fn a_patch_is_512_bytes_or_one() {
        let mut patch = [0; 256];
        patch[1] = 0b1000_0000_0000_0001; // x 0, z 1: y 0 and y 15
        let bytes = fixture("0000 0180 0000*254");
        assert_eq!(hex(&encode_patch(&patch)), hex(&bytes));
        assert_eq!(decode_patch(&bytes), Ok(patch));
        assert_eq!(encode_patch(&[0; 256]), [0]);
        assert_eq!(encode_patch(&[0xffff; 256]), [1]);
        assert_eq!(decode_patch(&[2]), Err("column: 2 bytes wanted at 0, 1 left".into()));
        assert_eq!(decode_patch(&[0; 512]), Ok([0; 256]));
    }
}
