//! LZ4 columns of another encoder: the framing of `lz4-java-wrc`, around blocks of the LZ4 library in C.

use std::io::{Read, Write};

use cg_anvil::region::{ColumnPos, Compression, decompress};
use cg_anvil::{SlotError, write};
use lz4_java_wrc::{Context, Lz4BlockInput, Lz4BlockOutput};

use crate::maker::{self, Stored, patterned};
use crate::worlds;

/// End mark that lz4-java writes when a stream is closed, and this encoder does not.
const END: &[u8; 21] = b"LZ4Block\x10\0\0\0\0\0\0\0\0\0\0\0\0";
const LIMIT_BYTES: usize = 1 << 20;

fn encoded(bytes: &[u8], block_bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let encoder = Lz4BlockOutput::with_context(&mut out, Context::Lz4Sys, block_bytes);
    encoder.expect("a size that blocks can have").write_all(bytes).expect("memory");
    out
}

/// How many blocks of this method a stream has: 0x10 stored, 0x20 compressed.
fn blocks(mut stream: &[u8], wanted: u8) -> usize {
    let mut count = 0;
    while let Some((header, rest)) = stream.split_first_chunk::<21>() {
        let [.., method, a, b, c, d, _, _, _, _, _, _, _, _] = *header;
        count += usize::from(method & 0xF0 == wanted);
        stream = &rest[u32::from_le_bytes([a, b, c, d]) as usize..];
    }
    count
}

#[track_caller]
fn check(bytes: &[u8], block_bytes: usize, stored: usize, compressed: usize) {
    let stream = encoded(bytes, block_bytes);
    assert_eq!((blocks(&stream, 0x10), blocks(&stream, 0x20)), (stored, compressed));
    let mut out = vec![7; 3];
    for stream in [&stream[..], &[&stream[..], END].concat(), &[&stream[..], END, b"behind"].concat()] {
        decompress(Compression::Lz4, stream, LIMIT_BYTES, &mut out).expect("a sound stream");
        assert!(out == bytes, "{block_bytes}");
    }
}

/// Bytes that do not compress.
fn noise(len_bytes: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(len_bytes).collect()
}

#[test]
fn streams_of_another_encoder_are_read() {
    let column = maker::column(3, 0, (-4..20).map(|y| patterned(y, 300)));
    let text = write::column(&column).expect("a column");
    assert!(text.len() > 130_000, "several blocks of the usual size");
    let usual = 64 << 10;
    check(&text, usual, 0, text.len().div_ceil(usual));
    check(&text, 32 << 20, 0, 1);
    check(b"abc", usual, 1, 0);
    check(&noise(200_000), usual, 4, 0);
    check(&[noise(1 << 16), vec![0; 1 << 16], noise(1)].concat(), usual, 2, 1);
    let (short, short_blocks) = (&text[..1000], encoded(&text[..1000], 64));
    check(short, 64, blocks(&short_blocks, 0x10), blocks(&short_blocks, 0x20));
    assert_eq!(blocks(&short_blocks, 0x10) + blocks(&short_blocks, 0x20), 16);
}

#[test]
fn a_region_with_their_columns_is_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let column = maker::column(3, 0, (-4..20).map(|y| patterned(y, 300)));
    let payload = encoded(&write::column(&column).expect("a column"), 64 << 10);
    let slots = [Stored { slot: ColumnPos::new(3, 0).slot(), compression: 4, payload }];
    let reading = worlds::read(&maker::region(&dir.path().join("r.0.0.mca"), &slots));
    assert!(reading.lost.is_empty(), "{:?}", reading.lost);
    assert_eq!(reading.columns, [(ColumnPos::new(3, 0).slot(), column)]);
}

#[test]
fn what_the_other_tests_encode_is_read_by_their_decoder() {
    let bytes = [noise(5000), vec![0; 5000]].concat();
    for block_bytes in [100, 1024, 64 << 10] {
        let stream = maker::lz4_blocks(&bytes, block_bytes);
        let mut out = Vec::new();
        let mut decoder = Lz4BlockInput::with_context(&stream[..], Context::Lz4Sys);
        decoder.read_to_end(&mut out).expect("a sound stream");
        assert!(out == bytes, "{block_bytes}");
    }
}

#[test]
fn a_stream_that_is_cut_gives_whole_blocks_or_an_error() {
    let bytes = [noise(300), vec![1; 300]].concat();
    let stream = encoded(&bytes, 100);
    let mut out = Vec::new();
    let mut whole = 0;
    for len in 0..stream.len() {
        match decompress(Compression::Lz4, &stream[..len], LIMIT_BYTES, &mut out) {
            Ok(()) => {
                whole += 1;
                assert!(out == bytes[..whole * 100], "{len}");
            }
            Err(SlotError::Truncated(Compression::Lz4)) => {}
            Err(error) => panic!("{len}: {error}"),
        }
    }
    assert_eq!(whole, 5);
}
