//! A region file with some of its slots changed, and every other as it was.
//!
//! Slots that are kept stay in their sectors, so that neither what they hold nor what is damaged about them changes. New
//! slots take sectors that no other slot uses, or are appended.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::header::{self, Entry};
use super::{Compression, Slot};

/// Sectors that an entry can count to.
const MAX_SECTOR: u32 = 0xFF_FFFF;

/// Change of a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotChange {
    /// It holds this.
    Put {
        /// The compressed NBT.
        stored: Vec<u8>,
        /// How it is compressed.
        compression: Compression,
        /// When it was written, in seconds since 1970.
        timestamp: u32,
    },
    /// As [`SlotChange::Put`], with the compressed NBT in a `.mcc` file beside the region.
    PutExternal {
        /// How the file is compressed.
        compression: Compression,
        /// When it was written, in seconds since 1970.
        timestamp: u32,
    },
    /// It is empty.
    Remove,
}

/// Whether compressed NBT is too large for a region file.
pub fn is_external(stored_len: usize) -> bool {
    (header::SLOT_HEAD_BYTES + stored_len as u64).div_ceil(header::SECTOR_BYTES)
        > u64::from(header::MAX_SECTORS)
}

/// Writes the region file `path` with some slots changed to `to`, synced; a missing `path` is a region without slots.
///
/// # Errors
/// A file cannot be read or written, or the region has no sectors left. `to` may be there then, and is not whole.
pub fn rewrite(path: &Path, to: &Path, changes: &BTreeMap<Slot, SlotChange>) -> io::Result<()> {
    match fs::copy(path, to) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => drop(File::create(to)?),
        Err(error) => return Err(error),
    }
    let mut file = File::options().read(true).write(true).open(to)?;
    let file_bytes = file.metadata()?.len();
    let mut head = Vec::with_capacity(header::HEADER_BYTES);
    (&file).take(header::HEADER_BYTES as u64).read_to_end(&mut head)?;
    let mut entries = header::read(&head);
    let mut sectors = Sectors::default();
    for (slot, entry) in Slot::all().zip(&mut entries) {
        if changes.contains_key(&slot) {
            *entry = Entry::default();
        } else if !entry.is_absent() {
            sectors.keep(&mut file, slot, *entry, file_bytes)?;
        }
    }
    let kept_bytes = sectors.len_bytes().min(file_bytes);
    let mut written_bytes = 0;
    for (slot, change) in changes {
        let (head, stored, timestamp) = match change {
            SlotChange::Remove => continue,
            SlotChange::Put { stored, compression, timestamp } => {
                let len_bytes = u32::try_from(stored.len() + 1).map_err(|_| no_sectors())?;
                (header::write_slot_head(len_bytes, *compression as u8), &stored[..], *timestamp)
            }
            SlotChange::PutExternal { compression, timestamp } => {
                let compression = *compression as u8 | header::EXTERNAL_BIT;
                (header::write_slot_head(1, compression), &[][..], *timestamp)
            }
        };
        let count = (head.len() + stored.len()).div_ceil(header::SECTOR_BYTES as usize);
        let count = u32::try_from(count).ok().filter(|count| *count <= header::MAX_SECTORS);
        let count = count.ok_or_else(no_sectors)?;
        let first_sector = sectors.take(count)?;
        let mut bytes = [&head[..], stored].concat();
        bytes.resize(count as usize * header::SECTOR_BYTES as usize, 0);
        file.seek(SeekFrom::Start(u64::from(first_sector) * header::SECTOR_BYTES))?;
        file.write_all(&bytes)?;
        written_bytes = written_bytes.max(u64::from(first_sector + count) * header::SECTOR_BYTES);
        let entry = entries.get_mut(usize::from(slot.index())).expect("a slot is below the slot count");
        *entry = Entry { first_sector, sectors: count, timestamp };
    }
    let len_bytes = kept_bytes.max(written_bytes).max(header::HEADER_BYTES as u64);
    file.set_len(len_bytes)?;
    sectors.end_past_the_end(&mut file, &mut entries, file_bytes, len_bytes)?;
    file.rewind()?;
    file.write_all(&header::write(&entries))?;
    file.sync_all()
}

/// Which sectors of a file are taken.
#[derive(Debug, Default)]
struct Sectors {
    used: Vec<bool>,
    /// Kept slots whose bytes end before they should, at the end of the file.
    cut: Vec<Slot>,
    /// Kept slots that point past the end of the file.
    outside: Vec<Slot>,
}

impl Sectors {
    /// Takes the sectors that a kept slot says that it uses, by either of its counts.
    fn keep(&mut self, file: &mut File, slot: Slot, entry: Entry, file_bytes: u64) -> io::Result<()> {
        let from_bytes = u64::from(entry.first_sector) * header::SECTOR_BYTES;
        if from_bytes >= file_bytes {
            self.outside.push(slot);
            return Ok(());
        }
        let mut len_bytes = [0; 4];
        file.seek(SeekFrom::Start(from_bytes))?;
        let is_there = file_bytes - from_bytes >= len_bytes.len() as u64;
        if is_there {
            file.read_exact(&mut len_bytes)?;
        }
        let [a, b, c, d] = len_bytes;
        let (stated, _) = header::slot_head([a, b, c, d, 0]);
        let end_bytes = from_bytes + len_bytes.len() as u64 + u64::from(stated);
        if !is_there || end_bytes > file_bytes {
            self.cut.push(slot);
        }
        let counted = u64::from(entry.first_sector + entry.sectors);
        let end = end_bytes.div_ceil(header::SECTOR_BYTES).max(counted);
        let end = end.min(file_bytes.div_ceil(header::SECTOR_BYTES)) as usize;
        self.used.resize(self.used.len().max(end), false);
        for used in self.used.iter_mut().take(end).skip(entry.first_sector as usize) {
            *used = true;
        }
        Ok(())
    }

    fn len_bytes(&self) -> u64 {
        self.used.len() as u64 * header::SECTOR_BYTES
    }

    /// The first free sectors, `count` in a row.
    fn take(&mut self, count: u32) -> io::Result<u32> {
        let count = count as usize;
        let mut first = header::HEADER_SECTORS as usize;
        let mut at = first;
        while at < first + count {
            if self.used.get(at).copied().unwrap_or(false) {
                first = at + 1;
            }
            at += 1;
        }
        self.used.resize(self.used.len().max(first + count), false);
        for used in self.used.iter_mut().skip(first).take(count) {
            *used = true;
        }
        u32::try_from(first).ok().filter(|sector| *sector <= MAX_SECTOR).ok_or_else(no_sectors)
    }

    /// Keeps slots that reach past the end of the file from reaching into what was appended.
    fn end_past_the_end(
        &self,
        file: &mut File,
        entries: &mut [Entry],
        old_bytes: u64,
        new_bytes: u64,
    ) -> io::Result<()> {
        let mut end_bytes = new_bytes;
        let first = |slot: &Slot, entries: &[Entry]| {
            entries.get(usize::from(slot.index())).map_or(0, |entry| entry.first_sector)
        };
        let tail = self.cut.iter().map(|slot| first(slot, entries)).min();
        if let Some(tail) = tail.filter(|_| new_bytes > old_bytes) {
            let mut rest = Vec::new();
            file.seek(SeekFrom::Start(u64::from(tail) * header::SECTOR_BYTES))?;
            let rest_bytes = old_bytes - u64::from(tail) * header::SECTOR_BYTES;
            file.take(rest_bytes).read_to_end(&mut rest)?;
            let end_sectors = sector_of(new_bytes)?;
            for slot in &self.cut {
                let moved = first(slot, entries) - tail + end_sectors;
                place(entries, *slot, moved)?;
            }
            file.seek(SeekFrom::Start(u64::from(end_sectors) * header::SECTOR_BYTES))?;
            file.write_all(&rest)?;
            end_bytes = u64::from(end_sectors) * header::SECTOR_BYTES + rest_bytes;
        }
        let outside = sector_of(end_bytes)?;
        for slot in &self.outside {
            if first(slot, entries) < outside {
                place(entries, *slot, outside)?;
            }
        }
        Ok(())
    }
}

fn place(entries: &mut [Entry], slot: Slot, first_sector: u32) -> io::Result<()> {
    if first_sector > MAX_SECTOR {
        return Err(no_sectors());
    }
    if let Some(entry) = entries.get_mut(usize::from(slot.index())) {
        entry.first_sector = first_sector;
    }
    Ok(())
}

fn sector_of(len_bytes: u64) -> io::Result<u32> {
    u32::try_from(len_bytes.div_ceil(header::SECTOR_BYTES)).map_err(|_| no_sectors())
}

fn no_sectors() -> io::Error {
    io::Error::new(
        io::ErrorKind::FileTooLarge,
        "a region file has no more than 16,777,216 sectors of 4 KiB, and a slot no more than 255",
    )
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::region::ColumnPos;
    use crate::region::{ReadLimits, Region, RegionPos, RegionWriter, compress};

    const POS: RegionPos = ColumnPos::new(0, 0).region();

    fn slot(index: u16) -> Slot {
        Slot::new(index).expect("below the count")
    }

    /// Bytes that zlib makes no smaller.
    fn noise(len: usize, seed: u32) -> Vec<u8> {
        let mut state = seed | 1;
        let next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as u8
        };
        std::iter::repeat_with(next).take(len).collect()
    }

    fn put(bytes: &[u8]) -> SlotChange {
        SlotChange::Put { stored: compress(bytes), compression: Compression::Zlib, timestamp: 9 }
    }

    /// A region of slots with these numbers of bytes, in order.
    fn region(dir: &TempDir, slots: &[(u16, usize)]) -> std::path::PathBuf {
        let mut writer = RegionWriter::create(dir.path(), POS).expect("a file");
        for (index, len) in slots {
            writer.put(slot(*index), &noise(*len, (*index).into()), 1 + u32::from(*index)).expect("written");
        }
        writer.finish().expect("finished")
    }

    /// Result of reading each slot, in words, and its time.
    fn read(path: &Path) -> BTreeMap<u16, (u32, String)> {
        let mut region = Region::open(path).expect("opens");
        let slots: Vec<_> = region.slots().collect();
        let mut read = |slot| {
            let mut bytes = Vec::new();
            let said = match region.read(slot, &ReadLimits::default(), &mut bytes) {
                Ok(compression) => {
                    format!("{compression:?} {:08x} of {}", crc32c::crc32c(&bytes), bytes.len())
                }
                Err(error) => format!("{error:?}"),
            };
            (slot.index(), (region.timestamp(slot), said))
        };
        slots.into_iter().map(&mut read).collect()
    }

    /// Rewrites a region and checks that slots without a change are read as before.
    #[track_caller]
    fn check(path: &Path, changes: &[(u16, SlotChange)]) -> u64 {
        let mut before = read(path);
        let changes: BTreeMap<_, _> =
            changes.iter().map(|(index, change)| (slot(*index), change.clone())).collect();
        let to = path.with_extension("new");
        rewrite(path, &to, &changes).expect("written");
        let after = read(&to);
        for (slot, change) in &changes {
            before.remove(&slot.index());
            if let SlotChange::Put { stored, .. } = change {
                let mut raw = Vec::new();
                crate::region::decompress(Compression::Zlib, stored, 1 << 30, &mut raw).expect("whole");
                let said = format!("Some(Zlib) {:08x} of {}", crc32c::crc32c(&raw), raw.len());
                before.insert(slot.index(), (9, said));
            }
        }
        let kind = |read: &BTreeMap<u16, (u32, String)>| -> Vec<_> {
            // Where the end of the file is, is another matter.
            let of = |(index, (time, said)): (&u16, &(u32, String))| {
                let kind =
                    if said.starts_with("Some") { said } else { said.split(' ').next().unwrap_or_default() };
                (*index, *time, kind.to_owned())
            };
            read.iter().map(of).collect()
        };
        assert_eq!(kind(&after), kind(&before));
        fs::rename(&to, path).expect("renamed");
        fs::metadata(path).expect("there").len()
    }

    #[test]
    fn slots_that_are_kept_stay_in_their_sectors_and_room_is_used_again() {
        let dir = TempDir::new().expect("a folder");
        let path = region(&dir, &[(0, 5000), (1, 9000), (2, 3000), (3, 100)]);
        let before = fs::read(&path).expect("readable");
        let sectors = before.len() / 4096;
        // Into the room of the old one, to its end, and behind all others.
        assert_eq!(check(&path, &[(1, put(&noise(9000, 7)))]), before.len() as u64);
        assert_eq!(check(&path, &[(1, put(&noise(4000, 8))), (9, put(b"small"))]), before.len() as u64);
        let after = fs::read(&path).expect("readable");
        for index in [0, 2, 3] {
            assert_eq!(
                after[index * 4..index * 4 + 4],
                before[index * 4..index * 4 + 4],
                "slot {index} moved"
            );
        }
        assert_eq!(check(&path, &[(2, put(&noise(40_000, 9)))]), ((sectors + 10) * 4096) as u64);
        // The last one goes, and with it the end of the file.
        assert_eq!(check(&path, &[(2, SlotChange::Remove), (3, SlotChange::Remove)]) % 4096, 0);
        let all: Vec<_> = [0, 1, 9].map(|index| (index, SlotChange::Remove)).into();
        assert_eq!(check(&path, &all), 8192);
    }

    #[test]
    fn a_region_that_is_not_there_is_made_and_a_cut_header_is_completed() {
        let dir = TempDir::new().expect("a folder");
        let path = dir.path().join("r.0.0.mca");
        let to = dir.path().join("new");
        rewrite(&path, &to, &BTreeMap::from([(slot(5), put(b"new"))])).expect("written");
        assert_eq!(read(&to).keys().collect::<Vec<_>>(), [&5]);
        for len in [0, 5, 4096, 8191] {
            fs::write(&path, vec![0; len]).expect("written");
            assert_eq!(check(&path, &[(1023, put(b"new"))]), 3 * 4096, "{len} bytes");
        }
    }

    #[test]
    fn damaged_slots_stay_as_damaged_as_they_are() {
        let dir = TempDir::new().expect("a folder");
        let path = region(&dir, &[(0, 5000), (1, 9000), (2, 30_000), (3, 3000), (4, 9000)]);
        let mut bytes = fs::read(&path).expect("readable");
        let mut entry = |index: usize, place: u32| {
            bytes[index * 4..index * 4 + 4].copy_from_slice(
                &header::write(&[Entry { first_sector: place >> 8, sectors: place & 0xFF, timestamp: 0 }])
                    [..4],
            );
        };
        // Into the header, past the end, where another is, inside of another, and one that says too few sectors.
        entry(10, 1 << 8 | 1);
        entry(11, 500 << 8 | 3);
        entry(12, 2 << 8 | 2);
        entry(13, 5 << 8 | 1);
        entry(2, 7 << 8 | 1);
        // The last one is cut.
        bytes.truncate(bytes.len() - 5000);
        fs::write(&path, &bytes).expect("written");
        let said = read(&path);
        assert!(said[&4].1.starts_with("LengthPastEnd"), "{said:?}");
        for round in 0..3 {
            check(&path, &[(0, put(&noise(5000, round))), (20 + round as u16, put(&noise(60_000, round)))]);
        }
        let before = fs::metadata(&path).expect("there").len();
        let after = check(&path, &[(20, put(&noise(60_000, 70))), (21, put(&noise(60_000, 71)))]);
        assert_eq!(after, before, "the room of what was replaced is used again");
        check(&path, &[(4, put(b"whole again"))]);
        // Every slot of the header says nonsense.
        let mut bytes = noise(3 * 4096 + 77, 3);
        bytes[..4096].copy_from_slice(&noise(4096, 4));
        fs::write(&path, &bytes).expect("written");
        check(&path, &[(0, put(b"new")), (1, SlotChange::Remove)]);
    }
}
