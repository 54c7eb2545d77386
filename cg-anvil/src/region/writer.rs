//! Writing a region file that other tools open.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::header::{self, Entry};
use super::{ColumnPos, Compression, RawSlot, RegionPos, Slot, compress};
use crate::folder;

/// A region file in the making: columns are appended as they come, the header is written last.
///
/// The file has its name only after [`RegionWriter::finish`]; dropped before, it leaves no region file behind.
#[derive(Debug)]
pub struct RegionWriter {
    directory: PathBuf,
    pos: RegionPos,
    file: File,
    partial: PathBuf,
    entries: Vec<Entry>,
    next_sector: u32,
    /// Slots without a byte: where the header says that they are, and when they were written.
    without_bytes: Vec<(Slot, Option<u32>, u32)>,
    finished: bool,
}

impl RegionWriter {
    /// Begins a region file in this directory, which is made if it is not there.
    ///
    /// # Errors
    /// The directory or file cannot be made.
    pub fn create(directory: &Path, pos: RegionPos) -> io::Result<Self> {
        folder::make(directory)?;
        let partial = directory.join(partial_name(pos));
        let mut file = File::create(&partial)?;
        file.write_all(&[0; header::HEADER_BYTES])?;
        Ok(Self {
            directory: directory.to_owned(),
            pos,
            file,
            partial,
            entries: vec![Entry::default(); usize::from(Slot::COUNT)],
            next_sector: header::HEADER_SECTORS,
            without_bytes: Vec::new(),
            finished: false,
        })
    }

    /// Appends a column's NBT, compressed with zlib. One that takes more than 255 sectors goes to a `.mcc` file
    /// beside the region, as the game does it.
    ///
    /// # Errors
    /// The slot was put before ([`io::ErrorKind::AlreadyExists`]), or a file cannot be written.
    pub fn put(&mut self, slot: Slot, nbt: &[u8], timestamp: u32) -> io::Result<()> {
        self.check_free(slot)?;
        let stored = compress(nbt);
        let inline_bytes = header::SLOT_HEAD_BYTES + stored.len() as u64;
        let inline_sectors = inline_bytes.div_ceil(header::SECTOR_BYTES);
        let sectors = match u32::try_from(inline_sectors) {
            Ok(sectors) if sectors <= header::MAX_SECTORS => {
                let len_bytes = stored.len() as u32 + 1;
                self.file.write_all(&header::write_slot_head(len_bytes, Compression::Zlib as u8))?;
                self.file.write_all(&stored)?;
                sectors
            }
            _ => {
                replace_file(&self.directory.join(self.pos.external_name(slot)), &stored)?;
                let compression = Compression::Zlib as u8 | header::EXTERNAL_BIT;
                self.file.write_all(&header::write_slot_head(1, compression))?;
                1
            }
        };
        self.end_slot(slot, sectors, timestamp)
    }

    /// Appends a slot as it stood in another file. One of more than 255 sectors goes to a `.mcc` file beside the region.
    ///
    /// Of one without a byte only its place in the header is written, by [`RegionWriter::point_at_nothing`].
    ///
    /// # Errors
    /// As [`RegionWriter::put`].
    pub fn put_raw(&mut self, slot: Slot, raw: &RawSlot) -> io::Result<()> {
        self.check_free(slot)?;
        if raw.stored.is_empty() {
            self.without_bytes.push((slot, raw.place, raw.timestamp));
            return Ok(());
        }
        let external = raw.external.as_deref().filter(|_| raw.is_external());
        let (mut stored, mut external) = (raw.stored.as_slice(), external);
        let head;
        if stored.len() as u64 > u64::from(header::MAX_SECTORS) * header::SECTOR_BYTES
            && let Some((before, payload)) = stored.split_first_chunk()
        {
            let (_, compression) = header::slot_head(*before);
            head = header::write_slot_head(1, compression | header::EXTERNAL_BIT);
            (stored, external) = (&head, Some(payload));
        }
        if let Some(external) = external {
            replace_file(&self.directory.join(self.pos.external_name(slot)), external)?;
        }
        self.file.write_all(stored)?;
        let stated = raw.place.map_or(0, |place| place & 0xFF);
        let sectors = (stored.len() as u64).div_ceil(header::SECTOR_BYTES) as u32;
        self.end_slot(slot, sectors.max(stated), raw.timestamp)
    }

    /// Writes the places of slots without a byte into the header, where they point into it or past the end of the file, as
    /// they did. Returns how many would point at another slot and are left out. No slot may be put afterwards.
    pub fn point_at_nothing(&mut self) -> u64 {
        let mut left_out = 0;
        for (slot, place, timestamp) in std::mem::take(&mut self.without_bytes) {
            let entry =
                place.map(|place| Entry { first_sector: place >> 8, sectors: place & 0xFF, timestamp });
            let is_outside = |entry: &Entry| {
                entry.first_sector < header::HEADER_SECTORS || entry.first_sector >= self.next_sector
            };
            let entry = entry.filter(is_outside);
            match (self.entries.get_mut(usize::from(slot.index())), entry) {
                (Some(known), Some(entry)) => *known = entry,
                _ => left_out += 1,
            }
        }
        left_out
    }

    fn check_free(&self, slot: Slot) -> io::Result<()> {
        let entry = self.entries.get(usize::from(slot.index())).copied().unwrap_or_default();
        if entry.is_absent() && self.without_bytes.iter().all(|(other, ..)| *other != slot) {
            return Ok(());
        }
        let message = format!("slot {slot} of {} is put twice", self.pos.file_name());
        Err(io::Error::new(io::ErrorKind::AlreadyExists, message))
    }

    /// Notes where a slot is that was just written, and fills its last sector.
    fn end_slot(&mut self, slot: Slot, sectors: u32, timestamp: u32) -> io::Result<()> {
        let entry = self.entries.get_mut(usize::from(slot.index())).expect("a slot is below the slot count");
        *entry = Entry { first_sector: self.next_sector, sectors, timestamp };
        self.next_sector += sectors;
        // Tools expect whole sectors, the last one too.
        let end_bytes = u64::from(self.next_sector) * header::SECTOR_BYTES;
        self.file.set_len(end_bytes)?;
        self.file.seek(SeekFrom::Start(end_bytes))?;
        Ok(())
    }

    /// Writes the header and gives the file its name, replacing one of that name. The file and its name are on the disk then.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> io::Result<PathBuf> {
        self.file.rewind()?;
        self.file.write_all(&header::write(&self.entries))?;
        self.file.sync_all()?;
        let path = self.directory.join(self.pos.file_name());
        fs::rename(&self.partial, &path)?;
        self.finished = true;
        folder::sync(&self.directory)?;
        Ok(path)
    }
}

impl Drop for RegionWriter {
    fn drop(&mut self) {
        if !self.finished {
            // Nothing to be done about a failure here: the name says that the file is not whole.
            let _ = fs::remove_file(&self.partial);
        }
    }
}

/// The region for which a [`RegionWriter`] makes a file of this name, finished or not.
pub fn region_of_file(name: &str) -> Option<RegionPos> {
    let whole = name.strip_suffix(PARTIAL).unwrap_or(name);
    let numbers = |start: &str, end: &str| -> Option<(i32, i32)> {
        let (x, z) = whole.strip_prefix(start)?.strip_suffix(end)?.split_once('.')?;
        Some((x.parse().ok()?, z.parse().ok()?))
    };
    if let Some((x, z)) = numbers("c.", ".mcc") {
        let column = ColumnPos::new(x, z);
        let pos = column.region();
        return (pos.external_name(column.slot()) == whole).then_some(pos);
    }
    let (x, z) = numbers("r.", ".mca").or_else(|| numbers(".r.", ".mca"))?;
    RegionPos::new(x, z).filter(|pos| name == pos.file_name() || name == partial_name(*pos))
}

/// How the name of a file ends that is not whole.
const PARTIAL: &str = ".partial";

fn partial_name(pos: RegionPos) -> String {
    format!(".{}{PARTIAL}", pos.file_name())
}

fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let partial = path.with_extension("mcc.partial");
    let mut file = File::create(&partial)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&partial, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_region_are_known_by_their_names() {
        let pos = RegionPos::new(-1, 0).expect("inside");
        for own in ["r.-1.0.mca", ".r.-1.0.mca.partial", "c.-1.31.mcc", "c.-32.0.mcc.partial"] {
            assert_eq!(region_of_file(own), Some(pos), "{own}");
        }
        assert_eq!(region_of_file("c.0.31.mcc"), RegionPos::new(0, 0));
        for other in
            ["r.-1.0.mca.partial", ".r.-1.0.mca", "r.-01.0.mca", "c.-1.031.mcc", "c.-1.mcc", "r.-1.0.mcc", ""]
        {
            assert_eq!(region_of_file(other), None, "{other}");
        }
    }

    #[test]
    fn the_folder_is_synced_when_a_region_is_finished() {
        let dir = tempfile::tempdir().expect("a directory");
        let pos = RegionPos::new(0, 0).expect("inside");
        let before = folder::sync_count();
        let writer = RegionWriter::create(&dir.path().join("DIM1/region"), pos).expect("it is writable");
        assert_eq!(folder::sync_count() - before, 2, "two folders were made");
        writer.finish().expect("it is writable");
        assert_eq!(folder::sync_count() - before, 3);
    }
}
