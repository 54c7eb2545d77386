//! Keys, by definition: numbers with the highest byte first, coordinates interleaved one bit at a time.

/// Appends a number with its highest byte first.
fn put_high_first(out: &mut Vec<u8>, value: u64) {
    for place in (0..8).rev() {
        out.push((value >> (8 * place)) as u8);
    }
}

/// A signed number moved up so that the smallest becomes 0.
fn biased(value: i64) -> u64 {
    (i128::from(value) + (1 << 63)) as u64
}

/// The bits of biased coordinates, in turns from the highest, the first coordinate before the others.
fn morton(coordinates: &[i64]) -> Vec<u8> {
    let mut bits = Vec::new();
    for place in (0..64).rev() {
        for coordinate in coordinates {
            bits.push((biased(*coordinate) >> place & 1) as u8);
        }
    }
    bits.chunks(8).map(|byte| byte.iter().fold(0, |all, bit| all << 1 | bit)).collect()
}

/// The key of a chunk, or of a cluster at cluster coordinates.
pub(crate) fn cube(dimension: u64, at: [i64; 3]) -> Vec<u8> {
    let mut key = Vec::new();
    put_high_first(&mut key, dimension);
    key.extend(morton(&at));
    key
}

/// The key of the opacity tile over a chunk.
pub(crate) fn opacity_tile(dimension: u64, [x, _, z]: [i64; 3]) -> Vec<u8> {
    let mut key = Vec::new();
    put_high_first(&mut key, dimension);
    key.extend(morton(&[x.div_euclid(4), z.div_euclid(4)]));
    key
}

/// The key of a chunk's share of its tile: tile, chunk y, place x·4 + z.
pub(crate) fn opacity_patch(dimension: u64, [x, y, z]: [i64; 3]) -> Vec<u8> {
    let mut key = opacity_tile(dimension, [x, y, z]);
    put_high_first(&mut key, biased(y));
    key.push((x.rem_euclid(4) * 4 + z.rem_euclid(4)) as u8);
    key
}

/// The key of what one commit changed in a chunk.
pub(crate) fn delta(dimension: u64, at: [i64; 3], commit_seq: u64) -> Vec<u8> {
    let mut key = cube(dimension, at);
    put_high_first(&mut key, commit_seq);
    key
}

/// The key under which a row was quarantined: tag 3, the row's space, its key, the commit.
pub(crate) fn quarantine(space: u8, row: &[u8], commit_seq: u64) -> Vec<u8> {
    let mut key = vec![3, space];
    key.extend(row);
    put_high_first(&mut key, commit_seq);
    key
}

/// The key of a record: tag 1, dimension, table, the number of each level in four bytes, the UUID.
pub(crate) fn record(dimension: u64, table: [i64; 3], numbers: &[u32], id: [u8; 16]) -> Vec<u8> {
    let mut key = vec![1];
    key.extend(cube(dimension, table));
    for number in numbers {
        for place in (0..4).rev() {
            key.push((number >> (8 * place)) as u8);
        }
    }
    key.extend(id);
    key
}

mod tests {
    use super::super::{fixture, hex};
    use super::*;

    #[test]
    fn the_middle_of_a_world() {
        // Every biased coordinate is 2^63: one bit each, and they are the first three.
        let key = fixture(
            "0000000000000002 | dimension 2
             e0               | the highest bits of x, y and z, then zeros
             00*23",
        );
        assert_eq!(hex(&cube(2, [0, 0, 0])), hex(&key));
    }

    #[test]
    fn one_step_from_the_middle() {
        // The last triple is x y z = 1 0 0, then 0 1 1.
        let along_x = fixture("00*8 e0 00*22 04");
        let along_y_and_z = fixture("00*8 e0 00*22 03");
        assert_eq!(hex(&cube(0, [1, 0, 0])), hex(&along_x));
        assert_eq!(hex(&cube(0, [0, 1, 1])), hex(&along_y_and_z));
    }

    #[test]
    fn minus_one_is_all_bits_but_the_highest() {
        // x = 0111…, y = z = 1000…: the triples are 011, then 100 for ever: 0111 0010 0100 1001 0010 0100 1001…
        let key = fixture("00*8 | dimension 0\n 72 492492*7 49 24");
        assert_eq!(hex(&cube(0, [-1, 0, 0])), hex(&key));
    }

    #[test]
    fn a_patch_is_a_tile_a_height_and_a_place() {
        let key = fixture(
            "0000000000000001 | dimension 1
             6a aa*15         | tile x −1 is 0111…, tile z 0 is 1000…: the pairs 01, then 10 for ever
             7fffffffffffffff | chunk y −1
             0e               | place 3·4 + 2",
        );
        assert_eq!(hex(&opacity_patch(1, [-1, -1, 2])), hex(&key));
    }
}
