//! Compression of stored values: none, LZ4 blocks or Zstandard frames.
//!
//! `lz4_flex` writes LZ4; our own reader reads it.
//!
//! Zstandard is the pure Rust `ruzstd`, or the C library with the cargo feature `zstd`. They read each other's output
//! and write different bytes: compare values, never compressed blocks.

use alloc::vec::Vec;

use crate::Problem;

mod lz4;

/// The time that compression may take. Decompression takes the same time for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Effort {
    /// For values that are written while a thread waits. Zstandard uses level 1.
    #[default]
    Fast,
    /// For values that are written once in the background and kept. Zstandard uses level 14 with a longer target, which
    /// takes about twenty times as long and gives about a fifth less. LZ4 and the Rust Zstandard have one level.
    Small,
}

/// The compression of a block of bytes. The number is stored, so it never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Codec {
    /// Stored uncompressed.
    #[default]
    None = 0,
    /// One LZ4 block without a length before it.
    Lz4 = 1,
    /// Zstandard frames.
    Zstd = 2,
}

impl Codec {
    /// Every codec.
    pub const ALL: [Self; 3] = [Self::None, Self::Lz4, Self::Zstd];

    /// The byte that identifies the codec in a frame.
    pub const fn byte(self) -> u8 {
        self as u8
    }

    /// The inverse of [`byte`](Self::byte).
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::None),
            1 => Some(Self::Lz4),
            2 => Some(Self::Zstd),
            _ => None,
        }
    }

    /// The name for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "uncompressed",
            Self::Lz4 => "LZ4",
            Self::Zstd => "Zstandard",
        }
    }
}

/// Appends the compressed form of `raw`, which may be longer than `raw` itself.
///
/// ```
/// use cg_format::codec::{compress, decompress, Codec, Effort};
/// let raw = [7; 1000];
/// let (mut stored, mut back) = (Vec::new(), Vec::new());
/// compress(Codec::Lz4, Effort::Fast, &raw, &mut stored);
/// assert!(stored.len() < 50);
/// decompress(Codec::Lz4, &stored, raw.len(), &mut back)?;
/// assert_eq!(back, raw);
/// # Ok::<(), cg_format::Problem>(())
/// ```
pub fn compress(codec: Codec, effort: Effort, raw: &[u8], out: &mut Vec<u8>) {
    match codec {
        Codec::None => out.extend_from_slice(raw),
        Codec::Lz4 => {
            let start = out.len();
            out.resize(start + lz4_flex::block::get_maximum_output_size(raw.len()), 0);
            let len_bytes = lz4_flex::block::compress_into(raw, out.split_at_mut(start).1)
                .expect("the buffer has the largest size that LZ4 gives");
            out.truncate(start + len_bytes);
        }
        Codec::Zstd => zstandard::compress(effort, raw, out),
    }
}

/// Room after a decompressed value. Near the end of its buffer, the C library copies a repeat in short steps; a directory
/// in byte planes is a few long repeats.
const ZSTD_ROOM_BYTES: usize = 64;

/// Appends the decompressed form of a block: exactly `raw_len_bytes`, never more.
///
/// Allocates `raw_len_bytes` before it decompresses, so charge them to [`Limits`](crate::Limits) first. Beyond that it
/// allocates at most 64 bytes and a Zstandard window, which is the same length again or 1 MiB. On an error nothing is
/// appended.
///
/// # Errors
/// [`Problem::Decompress`] if the block is damaged or does not give exactly `raw_len_bytes`.
pub fn decompress(
    codec: Codec,
    stored: &[u8],
    raw_len_bytes: usize,
    out: &mut Vec<u8>,
) -> Result<(), Problem> {
    let failed =
        Problem::Decompress { codec: codec.name(), stored: stored.len() as u64, raw: raw_len_bytes as u64 };
    let start = out.len();
    let len_bytes = match codec {
        Codec::None if stored.len() == raw_len_bytes => {
            out.extend_from_slice(stored);
            Some(raw_len_bytes)
        }
        Codec::None => None,
        // Each byte of a block stands for at most 255 bytes, so a larger length is refused before it is allocated.
        Codec::Lz4 if raw_len_bytes / 255 > stored.len() => None,
        Codec::Lz4 => {
            out.resize(start + raw_len_bytes, 0);
            lz4::decompress(stored, out.split_at_mut(start).1)
        }
        // A Zstandard block has at least four bytes and stands for at most 128 KiB.
        Codec::Zstd if raw_len_bytes >> 15 > stored.len() => None,
        Codec::Zstd => {
            out.resize(start + raw_len_bytes + ZSTD_ROOM_BYTES, 0);
            zstandard::decompress(stored, out.split_at_mut(start).1)
        }
    };
    if len_bytes == Some(raw_len_bytes) {
        out.truncate(start + raw_len_bytes);
        return Ok(());
    }
    out.truncate(start);
    Err(failed)
}

#[cfg(any(test, not(feature = "zstd")))]
mod pure {
    //! Zstandard in Rust.

    use super::Effort;
    use alloc::vec::Vec;
    use ruzstd::decoding::FrameDecoder;
    use ruzstd::encoding::CompressionLevel;

    /// The largest window that an encoder at level 1 declares is 512 KiB.
    const WINDOW_MIN_BYTES: u64 = 1 << 20;

    /// It has no smaller level.
    pub(super) fn compress(_: Effort, raw: &[u8], out: &mut Vec<u8>) {
        ruzstd::encoding::compress(raw, out, CompressionLevel::Fastest);
    }

    /// Fills `out` from the start. Returns the bytes written, or `None` for damage or more than fits.
    pub(super) fn decompress(stored: &[u8], out: &mut [u8]) -> Option<usize> {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW_MIN_BYTES.max(out.len() as u64));
        decoder.decode_all(stored, out).ok()
    }
}

#[cfg(feature = "zstd")]
mod native {
    //! Zstandard in C.

    use super::Effort;
    use alloc::vec::Vec;
    use core::cell::RefCell;
    use zstd::bulk::{Compressor, Decompressor};
    use zstd::zstd_safe::CParameter;

    std::thread_local! {
        /// Making a context costs as much as decompressing some kilobytes, so each thread keeps one, about 100 KB.
        /// `None` if it could not be made.
        static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = RefCell::new(Decompressor::new().ok());
    }

    /// A lower level is not faster. The next ones make archives a few per cent smaller in twice the time.
    const FAST_LEVEL: i32 = 1;
    /// A seventh of the time of level 19 for four per cent more bytes. Measured in `docs/lab/cold-bytes.md`.
    const SMALL: [CParameter; 3] =
        [CParameter::CompressionLevel(14), CParameter::SearchLog(2), CParameter::TargetLength(64)];

    pub(super) fn compress(effort: Effort, raw: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + zstd::zstd_safe::compress_bound(raw.len()), 0);
        let room = out.split_at_mut(start).1;
        let len_bytes = match effort {
            Effort::Fast => zstd::bulk::compress_to_buffer(raw, room, FAST_LEVEL),
            Effort::Small => compress_small(raw, room),
        };
        out.truncate(start + len_bytes.expect("the buffer has the largest size that Zstandard gives"));
    }

    /// A context for each value costs nothing that can be measured beside this effort, and frees its 1.7 MB.
    fn compress_small(raw: &[u8], room: &mut [u8]) -> std::io::Result<usize> {
        let mut compressor = Compressor::default();
        for parameter in SMALL {
            compressor.set_parameter(parameter)?;
        }
        compressor.compress_to_buffer(raw, room)
    }

    /// Fills `out` from the start. Returns the bytes written, or `None` for damage or more than fits.
    pub(super) fn decompress(stored: &[u8], out: &mut [u8]) -> Option<usize> {
        let kept = DECOMPRESSOR.try_with(|context| {
            Some(context.borrow_mut().as_mut()?.decompress_to_buffer(stored, &mut *out).ok())
        });
        match kept {
            Ok(Some(len_bytes)) => len_bytes,
            // There is no context, or the thread is ending.
            _ => zstd::bulk::decompress_to_buffer(stored, out).ok(),
        }
    }
}

#[cfg(feature = "zstd")]
use native as zstandard;
#[cfg(not(feature = "zstd"))]
use pure as zstandard;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;

    fn round_trip(codec: Codec, effort: Effort, raw: &[u8]) -> Vec<u8> {
        let (mut stored, mut back) = (vec![1, 2], vec![3]);
        compress(codec, effort, raw, &mut stored);
        decompress(codec, &stored[2..], raw.len(), &mut back).unwrap();
        assert!(back[0] == 3 && &back[1..] == raw, "{codec:?} gives back what it got, after what was there");
        stored.split_off(2)
    }

    fn text(len: usize) -> Vec<u8> {
        (0..len).map(|i| ((i * i) >> 7) as u8 & 31).collect()
    }

    #[test]
    fn all_sizes_come_back() {
        for codec in Codec::ALL {
            for len in [0, 1, 12, 13, 255, 256, 4096, 131_071, 131_073, 700_000] {
                for effort in [Effort::Fast, Effort::Small] {
                    let stored = round_trip(codec, effort, &text(len));
                    assert!(
                        codec == Codec::None || len < 4096 || stored.len() < len / 2,
                        "{codec:?} {effort:?} {len}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_promise_that_is_not_kept_exactly_is_an_error() {
        for codec in Codec::ALL {
            let stored = round_trip(codec, Effort::Fast, &text(1000));
            for promised in [0, 999, 1001, 200_000] {
                let mut out = vec![9];
                let error = decompress(codec, &stored, promised, &mut out).unwrap_err();
                assert!(
                    matches!(error, Problem::Decompress { raw, .. } if raw == promised as u64),
                    "{error}"
                );
                assert_eq!(out, [9], "nothing is appended");
            }
        }
    }

    #[test]
    fn a_bomb_stops_at_its_promise() {
        for codec in [Codec::Lz4, Codec::Zstd] {
            let stored = round_trip(codec, Effort::Small, &vec![0; 1 << 20]);
            assert!(decompress(codec, &stored, 4096, &mut Vec::new()).is_err());
        }
        let error = decompress(Codec::Lz4, &[0; 4], usize::MAX, &mut Vec::new()).unwrap_err();
        assert_eq!(
            std::format!("{error}"),
            "LZ4 block of 4 bytes does not decompress to 18446744073709551615 bytes"
        );
        let mut out = Vec::new();
        let error = decompress(Codec::Zstd, &[0; 100], 1 << 30, &mut out).unwrap_err();
        assert_eq!(
            (out.capacity(), std::format!("{error}").as_str()),
            (0, "Zstandard block of 100 bytes does not decompress to 1073741824 bytes")
        );
    }

    #[test]
    fn bytes_name_codecs_both_ways() {
        for byte in 0..=u8::MAX {
            assert!(Codec::from_byte(byte).is_none_or(|codec| codec.byte() == byte));
        }
        assert_eq!(Codec::ALL.map(|codec| Codec::from_byte(codec.byte())), Codec::ALL.map(Some));
    }

    #[cfg(feature = "zstd")]
    proptest! {
        #[test]
        fn the_two_zstandards_read_each_other(raw in prop::collection::vec(0_u8..9, 0..20_000), times in 1_usize..40, is_small: bool) {
            let raw = raw.repeat(times);
            let (mut by_rust, mut by_c) = (Vec::new(), Vec::new());
            pure::compress(Effort::Fast, &raw, &mut by_rust);
            native::compress(if is_small { Effort::Small } else { Effort::Fast }, &raw, &mut by_c);
            let mut back = vec![0; raw.len()];
            prop_assert_eq!(native::decompress(&by_rust, &mut back), Some(raw.len()));
            prop_assert!(back == raw);
            back.fill(0);
            prop_assert_eq!(pure::decompress(&by_c, &mut back), Some(raw.len()));
            prop_assert!(back == raw);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_value_or_an_error(stored in prop::collection::vec(any::<u8>(), 0..300), raw_len in 0_usize..5000) {
            for codec in Codec::ALL {
                let mut out = Vec::new();
                let answer = decompress(codec, &stored, raw_len, &mut out);
                prop_assert_eq!(out.len(), if answer.is_ok() { raw_len } else { 0 });
            }
        }

        #[test]
        fn truncated_and_flipped_blocks_never_panic(raw in prop::collection::vec(0_u8..5, 0..3000), cut: prop::sample::Index, flip in 1_u8..) {
            for codec in [Codec::Lz4, Codec::Zstd] {
                let mut stored = Vec::new();
                compress(codec, Effort::Small, &raw, &mut stored);
                let at = cut.index(stored.len());
                prop_assert!(decompress(codec, &stored[..at], raw.len(), &mut Vec::new()).is_err() || at == 0 && raw.is_empty());
                stored[at] ^= flip;
                let mut out = Vec::new();
                if decompress(codec, &stored, raw.len(), &mut out).is_ok() {
                    prop_assert_eq!(out.len(), raw.len());
                }
            }
        }
    }
}
