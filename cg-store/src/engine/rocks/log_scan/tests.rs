//! Logs as RocksDB writes them, torn and damaged: which is which.

use super::*;

/// Writes records as RocksDB does.
fn log(records: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for record in records {
        let mut rest = *record;
        let mut begin = true;
        loop {
            let room = BLOCK_BYTES - out.len() % BLOCK_BYTES;
            if room < HEADER_BYTES {
                out.resize(out.len() + room, 0);
                continue;
            }
            let (part, behind) = rest.split_at(rest.len().min(room - HEADER_BYTES));
            let kind = match (begin, behind.is_empty()) {
                (true, true) => 1,
                (true, false) => 2,
                (false, false) => 3,
                (false, true) => 4,
            };
            push(&mut out, kind, part);
            (rest, begin) = (behind, false);
            if rest.is_empty() {
                break;
            }
        }
    }
    out
}

fn push(out: &mut Vec<u8>, kind: u8, data: &[u8]) {
    let crc = crc32c::crc32c_append(crc32c::crc32c(&[kind]), data);
    let masked = crc.rotate_right(15).wrapping_add(0xa282_ead8);
    out.extend(masked.to_le_bytes());
    out.extend((data.len() as u16).to_le_bytes());
    out.push(kind);
    out.extend(data);
}

fn scan_bytes(mut bytes: &[u8]) -> Result<LogEnd, Damage> {
    scan(&mut bytes).expect("a slice is always readable")
}

#[track_caller]
fn check_end(bytes: &[u8], record_count: u64, whole_bytes: u64, torn_bytes: u64) {
    assert_eq!(scan_bytes(bytes), Ok(LogEnd { record_count, whole_bytes, torn_bytes }));
}

#[track_caller]
fn check_damage(bytes: &[u8], offset_bytes: u64, problem: LogProblem) {
    assert_eq!(scan_bytes(bytes), Err(Damage { offset_bytes, problem }));
}

#[test]
fn whole_logs_end_with_their_last_record() {
    check_end(&[], 0, 0, 0);
    check_end(&log(&[b"one"]), 1, 10, 0);
    check_end(&log(&[b"one", b"", b"three"]), 3, 10 + 7 + 12, 0);
    // Three blocks; and one that ends seven, six and no bytes before its block does.
    check_end(&log(&[&vec![1; 70_000]]), 1, 70_000 + 3 * 7, 0);
    for left in [7, 6, 1, 0] {
        let first = vec![9; BLOCK_BYTES - HEADER_BYTES - left];
        let bytes = log(&[&first, b"next"]);
        check_end(&bytes, 2, bytes.len() as u64, 0);
    }
}

#[test]
fn every_cut_is_a_torn_tail() {
    let border = vec![9; BLOCK_BYTES - 40];
    let bytes = log(&[b"one", &border, b"a record that crosses into the next block", b"last"]);
    let ends: Vec<u64> = [10, 10 + 7 + border.len()].into_iter().map(|end| end as u64).collect();
    for cut in (0..60).chain(BLOCK_BYTES - 40..bytes.len()) {
        let found = scan_bytes(&bytes[..cut]).expect("a prefix is what a crash leaves");
        assert_eq!(found.whole_bytes + found.torn_bytes, cut as u64);
        if cut < bytes.len() - 11 && found.record_count > 0 {
            assert!(ends.contains(&found.whole_bytes), "cut at {cut}: {found:?}");
        }
    }
}

#[test]
fn every_flipped_bit_of_whole_records_is_damage() {
    let mut bytes = log(&[b"one", &[7; 300], b"", b"the last record"]);
    assert!(scan_bytes(&bytes).is_ok());
    for bit in 0..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(scan_bytes(&bytes).is_err(), "bit {bit} was flipped unseen");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn every_flipped_bit_around_a_block_border_is_damage() {
    // Three bytes of filling, and a record in two parts.
    let first = vec![9; BLOCK_BYTES - HEADER_BYTES - 3];
    let second = vec![8; BLOCK_BYTES - HEADER_BYTES - 20];
    let mut bytes = log(&[&first, &second, b"in two parts by the border"]);
    for bit in
        [BLOCK_BYTES, 2 * BLOCK_BYTES].into_iter().flat_map(|border| (border - 24) * 8..(border + 12) * 8)
    {
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(scan_bytes(&bytes).is_err(), "bit {bit} was flipped unseen");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn a_length_behind_the_end_is_told_from_a_cut() {
    let mut bytes = log(&[b"one", b"two"]);
    // Eight more than there are: exactly what a cut record looks like, but for its checksum.
    bytes[14] ^= 8;
    check_damage(&bytes, 10, LogProblem::Length { found: 11, fits: 3 });
    bytes.truncate(19);
    check_end(&bytes, 1, 10, 9);
    bytes.truncate(10);
    push(&mut bytes, 1, b"");
    bytes[14] = 1;
    check_damage(&bytes, 10, LogProblem::Length { found: 1, fits: 0 });
}

#[test]
fn zeros_may_only_reach_to_the_end() {
    let mut bytes = log(&[b"one"]);
    bytes.resize(3 * BLOCK_BYTES, 0);
    check_end(&bytes, 1, 10, 3 * BLOCK_BYTES as u64 - 10);
    bytes[2 * BLOCK_BYTES + 5] = 1;
    check_damage(&bytes, 2 * BLOCK_BYTES as u64, LogProblem::DataBehindZeros);
    // A wiped record between two whole ones.
    let mut bytes = log(&[b"one", b"two", b"three"]);
    bytes[10..20].fill(0);
    check_damage(&bytes, 10, LogProblem::DataBehindZeros);
}

#[test]
fn parts_out_of_order_are_damage() {
    let part = |kinds: &[u8]| {
        let mut bytes = Vec::new();
        for kind in kinds {
            push(&mut bytes, *kind, b"x");
        }
        bytes
    };
    check_end(&part(&[9, 130, 1, 2, 3, 3, 4, 1]), 5, 64, 0);
    check_end(&part(&[2, 3]), 0, 0, 16);
    check_damage(&part(&[4]), 0, LogProblem::Order(4));
    check_damage(&part(&[1, 3]), 8, LogProblem::Order(3));
    check_damage(&part(&[2, 1]), 8, LogProblem::Order(1));
    check_damage(&part(&[2, 2]), 8, LogProblem::Order(2));
    check_damage(&part(&[5]), 0, LogProblem::Type(5));
    check_damage(&part(&[200]), 0, LogProblem::Type(200));
}

#[test]
fn any_bytes_give_an_answer() {
    proptest::proptest!(|(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200))| {
        if let Ok(end) = scan_bytes(&bytes) {
            assert_eq!(end.whole_bytes + end.torn_bytes, bytes.len() as u64);
        }
    });
}
