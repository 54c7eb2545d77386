//! Reads LZ4 blocks. Repeats are copied as a whole.
//!
//! A group of equal chunks is one repeat over nearly its whole length, whose source is the bytes just written.
//! `lz4_flex`, which writes our blocks, reads such a repeat byte by byte; this reader copies it in large parts.
//! `docs/decisions/0063-own-lz4-reader.md` has the gain. Both accept the same blocks and give the same bytes. A test
//! checks that with arbitrary input.
//!
//! A block is a list of sequences. Each is a byte with two lengths, then literal bytes, then a distance of two bytes
//! back to the repeated bytes. The last sequence of a block has no distance. A length of 15 continues in further bytes,
//! up to one that is not 255.

/// The shortest repeat.
const MIN_MATCH: usize = 4;
/// A length with further bytes.
const GOES_ON: u8 = 15;
/// Short literals and repeats are copied in fixed widths, without a call or a loop. Surplus bytes are overwritten later
/// or are beyond the result.
const LITERALS: usize = 16;
const SHORT: usize = 18;
const MIDDLING: usize = 64;

/// Fills `out` from the start. Returns the bytes written, or `None` for damage or more than fits.
pub(super) fn decompress(block: &[u8], out: &mut [u8]) -> Option<usize> {
    let (mut input, mut at) = (block, 0);
    loop {
        let (token, rest) = input.split_first()?;
        let (literals, repeat) = (token >> 4, token & 15);
        if literals < GOES_ON
            && repeat < GOES_ON
            && let Some(window) = rest.first_chunk::<{ LITERALS + 2 }>()
            && let Some(room) = out.get_mut(at..at + LITERALS + SHORT)
        {
            let (literals, len) = (usize::from(literals), usize::from(repeat) + MIN_MATCH);
            if let (Some(room), Some(window)) = (room.first_chunk_mut::<LITERALS>(), window.first_chunk()) {
                *room = *window;
            }
            at += literals;
            let distance = distance(*window.get(literals..)?.first_chunk()?);
            if distance >= len {
                copy_ahead::<SHORT>(out, at, distance)?;
            } else {
                repeat_within(out, at, distance, len)?;
            }
            at += len;
            input = rest.get(literals + 2..)?;
            continue;
        }
        let (literals, rest) = length(literals, rest)?;
        let (copied, rest) = rest.split_at_checked(literals)?;
        out.get_mut(at..at.checked_add(literals)?)?.copy_from_slice(copied);
        at += literals;
        if rest.is_empty() {
            return Some(at);
        }
        let (back, rest) = rest.split_first_chunk()?;
        let (len, rest) = length(repeat, rest)?;
        let (distance, len) = (distance(*back), len + MIN_MATCH);
        if distance >= len && len <= MIDDLING && at + MIDDLING <= out.len() {
            copy_ahead::<MIDDLING>(out, at, distance)?;
        } else {
            repeat_within(out, at, distance, len)?;
        }
        at += len;
        input = rest;
    }
}

fn distance(bytes: [u8; 2]) -> usize {
    u16::from_le_bytes(bytes).into()
}

/// Reads a length that begins in a token, and returns the rest of the input. It is at most 255 times the length of the
/// input.
fn length(begun: u8, mut input: &[u8]) -> Option<(usize, &[u8])> {
    let mut len = usize::from(begun);
    if begun == GOES_ON {
        loop {
            let (more, rest) = input.split_first()?;
            (len, input) = (len + usize::from(*more), rest);
            if *more != u8::MAX {
                break;
            }
        }
    }
    Some((len, input))
}

/// Copies `WIDTH` bytes from a distance back. Only those before `at` are written already.
#[inline]
fn copy_ahead<const WIDTH: usize>(out: &mut [u8], at: usize, distance: usize) -> Option<()> {
    let source: [u8; WIDTH] = *out.get(at.checked_sub(distance)?..)?.first_chunk()?;
    *out.get_mut(at..)?.first_chunk_mut()? = source;
    Some(())
}

/// Repeats the bytes from a distance back. The distance may be less than the length.
fn repeat_within(out: &mut [u8], at: usize, distance: usize, len: usize) -> Option<()> {
    if distance == 0 {
        return None;
    }
    let area = out.get_mut(at.checked_sub(distance)?..at.checked_add(len)?)?;
    let (source, repeated) = area.split_at_mut_checked(distance)?;
    match *source {
        [byte] => repeated.fill(byte),
        _ if distance <= MIDDLING && len > MIDDLING => repeat_pattern(source, repeated),
        _ => repeat_doubling(area, distance),
    }
    Some(())
}

/// Repeats a short pattern from a copy of it, because reading bytes just written is slow.
fn repeat_pattern(source: &[u8], repeated: &mut [u8]) {
    let mut pattern = [0; MIDDLING];
    for part in pattern.chunks_mut(source.len()) {
        for (byte, source) in part.iter_mut().zip(source) {
            *byte = *source;
        }
    }
    // The length of the whole repeats in the pattern. The next copy overwrites the bytes after them.
    let whole = MIDDLING / source.len() * source.len();
    let mut rest = repeated;
    while let Some(window) = rest.first_chunk_mut() {
        *window = pattern;
        rest = rest.split_at_mut_checked(whole).map_or(&mut [], |(_, behind)| behind);
    }
    for (byte, source) in rest.iter_mut().zip(pattern) {
        *byte = source;
    }
}

/// Repeats the first bytes of an area up to its end. Each copy uses everything written so far, so its length doubles.
fn repeat_doubling(area: &mut [u8], distance: usize) {
    let mut known = distance;
    while known < area.len() {
        // A multiple of the distance, except in the last copy, so the repeat stays aligned.
        let more = known.min(area.len() - known);
        area.copy_within(..more, known);
        known += more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Codec, Effort, compress};
    use proptest::prelude::*;
    use std::vec::Vec;
    use std::{iter, vec};

    /// The output of both readers, up to the requested length.
    fn both(block: &[u8], room: usize) -> [Option<Vec<u8>>; 2] {
        let (mut ours, mut theirs) = (vec![0xa5; room], vec![0xa5; room]);
        let written = decompress(block, &mut ours);
        let expected = lz4_flex::block::decompress_into(block, &mut theirs).ok();
        [written.map(|len| ours[..len].to_vec()), expected.map(|len| theirs[..len].to_vec())]
    }

    fn compressed(raw: &[u8]) -> Vec<u8> {
        let mut block = Vec::new();
        compress(Codec::Lz4, Effort::Fast, raw, &mut block);
        block
    }

    #[track_caller]
    fn check(block: &[u8], room: usize, expected: Option<&[u8]>) {
        let [ours, theirs] = both(block, room);
        assert_eq!(ours.as_deref(), expected);
        assert_eq!(theirs.as_deref(), expected);
    }

    #[test]
    fn sequences_by_hand() {
        check(&[], 9, None);
        check(&[0], 9, Some(b""));
        check(&[0x30, b'a', b'b', b'c'], 3, Some(b"abc"));
        check(&[0x30, b'a', b'b', b'c'], 2, None);
        check(&[0x30, b'a', b'b'], 3, None);
        // "ab" four and a half times: a repeat that overlaps itself.
        check(&[0x23, b'a', b'b', 2, 0, 0x10, b'!'], 10, Some(b"ababababa!"));
        check(&[0x10, b'a', 1, 0, 0x10, b'b'], 6, Some(b"aaaaab"));
        check(&[0x10, b'a', 0, 0, 0x10, b'b'], 6, None);
        check(&[0x10, b'a', 2, 0, 0x10, b'b'], 6, None);
        check(&[0x10, b'a', 1], 6, None);
        check(&[0x10, b'a', 1, 0], 6, None);
        check(&[0x1f, b'a', 1, 0, 255, 1, 0], 276, Some(&[b'a'; 276]));
        check(&[0x1f, b'a', 1, 0, 255, 1, 0], 275, None);
        check(&[0x1f, b'a', 1, 0, 255], 400, None);
        check(&[0xf0, 255], 400, None);
    }

    /// Bytes with repeats of a few kinds and lengths, and some that do not repeat.
    fn repetitive() -> impl Strategy<Value = Vec<u8>> {
        let repeat = (prop::collection::vec(any::<u8>(), 1..70), 1_usize..80);
        prop::collection::vec(repeat, 0..12)
            .prop_map(|parts| parts.into_iter().flat_map(|(part, times)| part.repeat(times)).collect())
    }

    /// A block of sequences with lengths and distances, including some that no writer produces.
    fn sequences() -> impl Strategy<Value = Vec<u8>> {
        let sequence = (prop::collection::vec(any::<u8>(), 0..40), 0_usize..400, 0_u16..300);
        prop::collection::vec(sequence, 0..12).prop_map(|sequences| {
            let mut block = Vec::new();
            for (literals, repeat, distance) in sequences {
                let nibble = |len: usize| len.min(15) as u8;
                block.push(nibble(literals.len()) << 4 | nibble(repeat));
                let rest = |len: usize| {
                    let more = len.checked_sub(15);
                    more.into_iter().flat_map(|more| {
                        iter::repeat_n(255, more / 255).chain(iter::once((more % 255) as u8))
                    })
                };
                block.extend(rest(literals.len()));
                block.extend(&literals);
                block.extend(distance.to_le_bytes());
                block.extend(rest(repeat));
            }
            block.push(0);
            block
        })
    }

    proptest! {
        #[test]
        fn what_was_compressed_comes_back(raw in repetitive()) {
            let block = compressed(&raw);
            let [ours, theirs] = both(&block, raw.len());
            prop_assert_eq!(ours.as_ref(), Some(&raw));
            prop_assert_eq!(theirs.as_ref(), Some(&raw));
        }

        #[test]
        fn both_readers_answer_alike(block in sequences(), room in 0_usize..3000) {
            let [ours, theirs] = both(&block, room);
            prop_assert_eq!(ours, theirs);
        }

        #[test]
        fn both_readers_answer_any_bytes_alike(block in prop::collection::vec(any::<u8>(), 0..300), room in 0_usize..600) {
            let [ours, theirs] = both(&block, room);
            prop_assert_eq!(ours, theirs);
        }

        #[test]
        fn both_readers_answer_damage_alike(raw in repetitive(), at: prop::sample::Index, flip in 1_u8.., room in -3_isize..40) {
            let mut block = compressed(&raw);
            let at = at.index(block.len());
            block[at] ^= flip;
            let room = raw.len().saturating_add_signed(room);
            let [ours, theirs] = both(&block, room);
            prop_assert_eq!(ours, theirs);
            let [ours, theirs] = both(&block[..at], room);
            prop_assert_eq!(ours, theirs);
        }
    }
}
