//! Logs as RocksDB writes them, torn or damaged, and the result of their scan.

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
    scan(&mut bytes, u64::MAX).expect("a slice is always readable")
}

#[track_caller]
fn check_end(bytes: &[u8], record_count: u64, whole_bytes: u64, torn_bytes: u64) {
    let end = scan_bytes(bytes).expect("it is no damage");
    assert_eq!((end.record_count, end.whole_bytes, end.torn_bytes), (record_count, whole_bytes, torn_bytes));
    assert_ne!(end.tear, Some(Tear::Zeros));
}

/// Checks a log whose last record reads as zeros from some point on.
#[track_caller]
fn check_wiped(bytes: &[u8], record_count: u64, whole_bytes: u64) {
    let end = scan_bytes(bytes).expect("it is no damage");
    let torn_bytes = bytes.len() as u64 - whole_bytes;
    assert_eq!((end.record_count, end.whole_bytes, end.torn_bytes), (record_count, whole_bytes, torn_bytes));
    assert_eq!(end.tear, Some(Tear::Zeros));
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
    // Three blocks. Then records that end seven, six, one and no bytes before the end of their block.
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
        assert_eq!(found.tear, (found.torn_bytes > 0).then_some(Tear::Cut), "cut at {cut}");
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
    // Three bytes of padding, and a record in two parts.
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
    // Eight bytes more than the log has. Only the checksum distinguishes it from a cut record.
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
fn a_record_that_ends_in_unwritten_sectors_is_torn() {
    let second = vec![9; 5000];
    let whole = log(&[&[7; 600], &second]);
    assert_eq!(whole.len(), 607 + 5007);
    for border in (1024..whole.len()).step_by(SECTOR_BYTES) {
        let mut bytes = whole.clone();
        bytes[border..].fill(0);
        check_wiped(&bytes, 1, 607);
        // The file may be longer than what was written.
        bytes.resize(2 * BLOCK_BYTES, 0);
        check_wiped(&bytes, 1, 607);
        // Data after the zeros, in the same block or a later one: a wiped middle, not a torn end.
        bytes[2 * BLOCK_BYTES - 1] = 1;
        check_damage(&bytes, 607, LogProblem::Checksum);
        bytes.truncate(whole.len());
        bytes[whole.len() - 1] = 9;
        check_damage(&bytes, 607, LogProblem::Checksum);
    }
    // Zeros that begin elsewhere were not left by a disk.
    let mut bytes = whole.clone();
    bytes.truncate(1535);
    bytes[1530..].fill(0);
    check_end(&bytes, 1, 607, 1535 - 607);
    let mut bytes = log(&[&[7; 600], &[9; 300]]);
    bytes[700..].fill(0);
    check_damage(&bytes, 607, LogProblem::Checksum);
    // A flipped bit before the last sector boundary.
    let mut bytes = whole;
    bytes[1000] ^= 1;
    check_damage(&bytes, 607, LogProblem::Checksum);
}

#[test]
fn a_header_that_ends_in_unwritten_sectors_is_torn() {
    for written in 1..HEADER_BYTES {
        let first = vec![7; 2 * SECTOR_BYTES - HEADER_BYTES - written];
        let mut bytes = log(&[&first, &[0xff; 900]]);
        let start = 2 * SECTOR_BYTES - written;
        bytes[2 * SECTOR_BYTES..].fill(0);
        check_wiped(&bytes, 1, start as u64);
        bytes.truncate(start + HEADER_BYTES);
        check_wiped(&bytes, 1, start as u64);
    }
}

#[test]
fn a_part_of_a_record_that_was_not_written_tears_the_whole_of_it() {
    let whole = log(&[b"one", &vec![9; 3 * BLOCK_BYTES]]);
    for border in [SECTOR_BYTES, BLOCK_BYTES - SECTOR_BYTES, BLOCK_BYTES, BLOCK_BYTES + 4096, 3 * BLOCK_BYTES]
    {
        let mut bytes = whole.clone();
        bytes[border..].fill(0);
        check_wiped(&bytes, 1, 10);
    }
}

#[test]
fn a_batch_without_operations_is_no_commit() {
    let batch = |operations: u32| [&7_u64.to_le_bytes()[..], &operations.to_le_bytes(), b"rows"].concat();
    let holds = |records: &[&[u8]]| scan_bytes(&log(records)).expect("it is whole").holds_commits;
    assert!(!holds(&[]));
    assert!(!holds(&[&batch(0)]));
    assert!(holds(&[&batch(0), &batch(2)]) && holds(&[&batch(1), &batch(0)]));
    // A batch in parts. An incomplete record is not counted.
    let long = [batch(300), vec![9; BLOCK_BYTES]].concat();
    assert!(holds(&[&long]));
    assert!(!scan_bytes(&log(&[&long])[..BLOCK_BYTES + 9]).expect("it is torn").holds_commits);
    // A record that only describes the log.
    let mut bytes = Vec::new();
    push(&mut bytes, 130, &[1; 40]);
    assert!(!scan_bytes(&bytes).expect("it is whole").holds_commits);
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
