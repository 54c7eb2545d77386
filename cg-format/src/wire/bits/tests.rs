//! Packed ids compared with `bitvec`, which moves them one at a time.

use bitvec::prelude::*;
use proptest::prelude::*;
use std::vec;

use super::*;

/// The oracle: another crate's implementation of the same bit stream.
fn oracle_pack(values: &[u32], width: u32) -> Vec<u8> {
    let mut bits = bitvec![u8, Lsb0; 0; len_bytes(values.len() as u64, width) as usize * 8];
    for (value, slot) in values.iter().zip(bits.chunks_mut((width as usize).max(1))) {
        if width > 0 {
            slot.store_le(*value);
        }
    }
    bits.into_vec()
}

#[test]
fn eight_values_take_as_many_bytes_as_they_are_wide() {
    let mut out = vec![0xee];
    pack(&[1, 2, 3, 4, 5, 6, 7, 0], 3, &mut out);
    assert_eq!(out, [0xee, 0b1101_0001, 0b0101_1000, 0b0001_1111]);
}

#[test]
fn bits_behind_the_end_read_as_zero_and_are_not_written() {
    assert_eq!(get(&[0xff], 5, 1), 0b111);
    assert_eq!(get(&[0xff; 9], 32, 2), 0xff);
    assert_eq!(get(&[0xff; 9], 32, 3), 0);
    assert_eq!(get(&[], 7, 0), 0);
    let mut bytes = [0; 9];
    set(&mut bytes, 32, 3, u32::MAX);
    set(&mut bytes, 32, usize::MAX / 32, u32::MAX);
    assert_eq!(bytes, [0; 9]);
}

proptest! {
    #[test]
    fn every_width_agrees_with_bitvec(width in 0..=32_u32, values: Vec<u32>) {
        let values: Vec<u32> = values.iter().map(|value| value & max_value(width)).collect();
        let mut packed = Vec::new();
        pack(&values, width, &mut packed);
        prop_assert_eq!(&packed, &oracle_pack(&values, width));

        let mut unpacked = vec![u32::MAX; values.len()];
        unpack(&packed, width, &mut unpacked);
        prop_assert_eq!(&unpacked, &values);
        for (index, value) in values.iter().enumerate() {
            prop_assert_eq!(get(&packed, width, index), *value);
        }
    }

    #[test]
    fn set_replaces_one_value_and_no_other(
        width in 0..=32_u32,
        values in proptest::collection::vec(any::<u32>(), 1..80),
        index: prop::sample::Index,
        new: u32,
    ) {
        let mut values: Vec<u32> = values.iter().map(|value| value & max_value(width)).collect();
        let mut packed = oracle_pack(&values, width);
        let index = index.index(values.len());
        set(&mut packed, width, index, new);
        values[index] = new & max_value(width);
        prop_assert_eq!(packed, oracle_pack(&values, width));
    }

    #[test]
    fn a_short_input_unpacks_as_if_zeros_followed(width in 0..=32_u32, bytes: Vec<u8>, count in 0..100_usize) {
        let mut out = vec![7; count];
        unpack(&bytes, width, &mut out);
        for (index, value) in out.iter().enumerate() {
            prop_assert_eq!(*value, get(&bytes, width, index));
        }
    }
}

#[test]
fn a_value_far_after_the_end_is_zero_and_is_not_written() {
    let mut bytes = [0xff; 16];
    // The number of its first byte is 2³²: cut to 32 bits it would be inside.
    let index = 1 << 30;
    assert_eq!(get(&bytes, 32, index), 0);
    set(&mut bytes, 32, index, 5);
    assert_eq!(bytes, [0xff; 16]);
}

proptest! {
    #[test]
    fn bytes_and_nibbles_are_packed_as_other_values_are_and_unpacked(width in 1_u32..=8, bytes in prop::collection::vec(any::<[u8; 8]>(), 0..40)) {
        let bytes = bytes.concat();
        let check = |width, values: Vec<u32>, packed: Vec<u8>| {
            let mut expected = vec![7];
            pack(&values, width, &mut expected);
            assert_eq!(packed, expected);
        };
        let (mut by_bytes, mut by_nibbles) = (vec![7], vec![7]);
        let masked: Vec<u8> = bytes.iter().map(|byte| byte & max_value(width) as u8).collect();
        pack_bytes(&masked, width, &mut by_bytes);
        let mut unpacked = vec![7; masked.len()];
        unpack_bytes(&by_bytes[1..], width, &mut unpacked);
        assert_eq!(unpacked, masked);
        check(width, masked.iter().copied().map(u32::from).collect(), by_bytes);
        let masked: Vec<u8> = bytes.iter().map(|byte| byte & 0x77).collect();
        pack_nibbles(&masked, &mut by_nibbles);
        check(3, masked.iter().flat_map(|byte| [byte & 15, byte >> 4]).map(u32::from).collect(), by_nibbles);
    }
}
