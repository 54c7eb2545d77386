//! Laws for any bytes that are taken for a region file, and for the sectors of one whose header is right: a slot is
//! read, within the limits, or says why not; what is read is then taken for a column.

use std::io::Cursor;
use std::path::PathBuf;

use cg_anvil::Region;
use cg_anvil::region::{Compression, ReadLimits, RegionPos, Slot, SlotError, compress, decompress};

use super::column;

/// Limits of a slot: enough for any column of a small input, too little for what a small input can promise.
const LIMITS: ReadLimits = ReadLimits { stored_bytes: 64 << 10, raw_bytes: 256 << 10 };
/// Slots of a file that are read: they may all show the same bytes.
const SLOTS: usize = 8;

/// Reads bytes both ways and says whether a slot could be read.
///
/// # Panics
/// If a law is broken.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let as_file = read(bytes);
    let as_sectors = read(&[&header(), bytes].concat());
    as_file || as_sectors
}

/// A header whose slots lie at sectors 2, 3 and 4, at sector 2 again, inside the header, and far behind the end.
fn header() -> Vec<u8> {
    let mut header = vec![0; 8192];
    for (slot, sector) in [(0, 2), (1, 3), (2, 4), (500, 2), (501, 1), (1023, 200)] {
        header[slot * 4 + 2] = sector;
        header[slot * 4 + 3] = 1;
    }
    header
}

fn read(file: &[u8]) -> bool {
    // No column lies beside the region: nothing is found in a place that is no folder.
    let beside = PathBuf::from("/dev/null");
    let mut region = Region::new(Cursor::new(file), RegionPos::new(0, 0), beside).expect("memory is read");
    let slots: Vec<Slot> = region.slots().take(SLOTS).collect();
    assert!(slots.is_sorted());
    let mut any = false;
    for slot in slots {
        any |= read_slot(&mut region, slot);
    }
    any
}

fn read_slot(region: &mut Region<Cursor<&[u8]>>, slot: Slot) -> bool {
    let (mut out, mut again) = (Vec::new(), Vec::new());
    match region.read(slot, &LIMITS, &mut out) {
        Ok(None) => panic!("slot {slot} was listed"),
        Err(error) => {
            let second = region.read(slot, &LIMITS, &mut again).expect_err("it is as it was");
            assert_eq!(second.to_string(), error.to_string());
            assert!(out.len() <= LIMITS.raw_bytes + 1, "one byte more tells that it is too much");
            return false;
        }
        Ok(Some(_)) => {}
    }
    assert!(out.len() <= LIMITS.raw_bytes);
    let exact = ReadLimits { raw_bytes: out.len(), ..LIMITS };
    assert!(region.read(slot, &exact, &mut again).is_ok() && again == out, "it is as it was");
    if let Some(less) = out.len().checked_sub(1) {
        let error = region.read(slot, &ReadLimits { raw_bytes: less, ..LIMITS }, &mut again);
        let error = error.expect_err("one byte is missing").to_string();
        assert_eq!(error, SlotError::TooLarge { limit_bytes: less }.to_string());
    }
    decompress(Compression::Zlib, &compress(&out), LIMITS.raw_bytes, &mut again).expect("just compressed");
    assert!(again == out, "what is compressed comes back");
    column::check(&out);
    true
}
