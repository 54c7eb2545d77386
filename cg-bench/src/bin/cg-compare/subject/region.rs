//! Region files as the game has them: 32×32 columns, sectors of 4 KiB, zlib.
//!
//! A column is our chunks after one another where the game has NBT: the same bytes as in every other subject.
#![expect(clippy::big_endian_bytes, reason = "region files are big-endian by their own definition")]

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

use super::blobs::{Blobs, Whole};
use super::{About, Kind, Role, Setting, Subject, Until};
use crate::failure::Failure;
use crate::place::Place;
use crate::workload::Workload;

/// Columns on each side of a region.
pub(super) const SIDE: i64 = 32;
const SLOTS: usize = (SIDE * SIDE) as usize;
const SECTOR: usize = 4096;
/// The sectors of the two tables at the beginning: locations and times.
const TABLES: usize = 2;
/// The most sectors of a column: its count is one byte.
const MOST_SECTORS: usize = 255;
/// zlib, in the byte that says how a column is compressed.
const ZLIB: u8 = 2;

pub(super) struct Regions;

impl Kind for Regions {
    fn about(&self) -> About {
        About {
            name: "region files".to_owned(),
            role: Role::Rival,
            version: "Anvil's layout, written here; flate2 1.1 with zlib-rs".to_owned(),
            durability: "a save is in the system when it returns; synced: fdatasync. Not atomic: a crash can leave a part of \
                         a column"
                .to_owned(),
            options: "32×32 columns a file, sectors of 4 KiB, zlib 6 for each column, tables in memory".to_owned(),
        }
    }

    fn create(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure> {
        fs::create_dir_all(setting.dir)?;
        self.open(setting)
    }

    fn open(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure> {
        let files = Files { dir: setting.dir.to_owned(), open: BTreeMap::new() };
        Ok(Box::new(Whole::new(files, setting)))
    }

    fn cannot(&self, workload: Workload) -> Option<&'static str> {
        if workload.opens_only() {
            return Some("nothing is opened until a column is asked for");
        }
        workload.needs_threads().then_some("the game has one thread at its region files")
    }
}

struct Files {
    dir: PathBuf,
    open: BTreeMap<(i64, i64), Region>,
}

/// One open file.
struct Region {
    file: File,
    /// First sector and count, as they are stored; zero where there is no column.
    slots: Vec<u32>,
    /// Whether a sector is in use.
    used: Vec<bool>,
}

/// The region of a column, and its slot there.
pub(super) fn region_of(at: Place) -> ((i64, i64), usize) {
    let slot = at.z.rem_euclid(SIDE) * SIDE + at.x.rem_euclid(SIDE);
    ((at.x.div_euclid(SIDE), at.z.div_euclid(SIDE)), slot as usize)
}

/// The column of a slot.
pub(super) fn column_of((x, z): (i64, i64), slot: usize) -> Place {
    let slot = slot as i64;
    Place::new(x * SIDE + slot % SIDE, z * SIDE + slot / SIDE)
}

impl Region {
    /// Opens a file; `None` if it is absent and not to be made.
    fn open(path: &Path, make: bool) -> Result<Option<Self>, Failure> {
        if !make && !path.exists() {
            return Ok(None);
        }
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let len = file.metadata()?.len() as usize;
        let mut table = vec![0; SECTOR];
        if len == 0 {
            file.write_all_at(&vec![0; TABLES * SECTOR], 0)?;
        } else {
            file.read_exact_at(&mut table, 0)?;
        }
        let slots: Vec<_> = table.as_chunks::<4>().0.iter().map(|slot| u32::from_be_bytes(*slot)).collect();
        let mut region = Self { file, slots: Vec::new(), used: vec![true; TABLES] };
        for slot in &slots {
            region.mark(*slot, true);
        }
        Ok(Some(Self { slots, ..region }))
    }

    fn mark(&mut self, slot: u32, used: bool) {
        let (first, count) = sectors(slot);
        if self.used.len() < first + count {
            self.used.resize(first + count, false);
        }
        self.used[first..first + count].fill(used);
    }

    /// The first free sectors, at the end if there is no gap.
    fn free(&self, count: usize) -> usize {
        let mut run = 0;
        for (sector, used) in self.used.iter().enumerate() {
            run = if *used { 0 } else { run + 1 };
            if run == count {
                return sector + 1 - count;
            }
        }
        self.used.len() - run
    }

    fn put(&mut self, slot: usize, bytes: &[u8]) -> Result<(), Failure> {
        let mut out = vec![0; 4];
        out.push(ZLIB);
        let mut encoder = ZlibEncoder::new(out, Compression::default());
        encoder.write_all(bytes)?;
        let mut out = encoder.finish()?;
        let len = u32::try_from(out.len() - 4)?;
        out[..4].copy_from_slice(&len.to_be_bytes());
        let count = out.len().div_ceil(SECTOR);
        if count > MOST_SECTORS {
            return Err(format!("a column of {} bytes does not fit into a region file", out.len()).into());
        }
        out.resize(count * SECTOR, 0);
        let (old, first) = (self.slots[slot], self.free(count));
        self.file.write_all_at(&out, (first * SECTOR) as u64)?;
        let new = u32::try_from(first << 8 | count)?;
        self.file.write_all_at(&new.to_be_bytes(), slot as u64 * 4)?;
        self.slots[slot] = new;
        if old != 0 {
            self.mark(old, false);
        }
        self.mark(new, true);
        Ok(())
    }

    fn get(&self, slot: usize) -> Result<Option<Vec<u8>>, Failure> {
        if self.slots[slot] == 0 {
            return Ok(None);
        }
        let (first, count) = sectors(self.slots[slot]);
        let mut stored = vec![0; count * SECTOR];
        self.file.read_exact_at(&mut stored, (first * SECTOR) as u64)?;
        let (len, rest) = stored.split_first_chunk::<4>().ok_or("a sector has fewer bytes")?;
        let payload =
            rest.get(..u32::from_be_bytes(*len) as usize).ok_or("a column is longer than its sectors")?;
        let (kind, compressed) = payload.split_first().ok_or("a column has no bytes")?;
        if *kind != ZLIB {
            return Err(format!("a column is compressed with {kind}").into());
        }
        let mut bytes = Vec::new();
        ZlibDecoder::new(compressed).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }
}

/// The first sector and the count that a slot names.
fn sectors(slot: u32) -> (usize, usize) {
    ((slot >> 8) as usize, (slot & 0xff) as usize)
}

impl Files {
    fn region(&mut self, at: (i64, i64), make: bool) -> Result<Option<&mut Region>, Failure> {
        if !self.open.contains_key(&at) {
            let path = self.dir.join(format!("r.{}.{}.mca", at.0, at.1));
            let Some(region) = Region::open(&path, make)? else { return Ok(None) };
            self.open.insert(at, region);
        }
        Ok(self.open.get_mut(&at))
    }
}

impl Blobs for Files {
    fn put(&mut self, at: Place, bytes: Vec<u8>, until: Until) -> Result<(), Failure> {
        let (region, slot) = region_of(at);
        let region = self.region(region, true)?.ok_or("the region file was not made")?;
        region.put(slot, &bytes)?;
        if until == Until::Synced {
            region.file.sync_data()?;
        }
        Ok(())
    }

    fn get(&mut self, at: Place) -> Result<Option<Vec<u8>>, Failure> {
        let (region, slot) = region_of(at);
        self.region(region, false)?.map_or(Ok(None), |region| region.get(slot))
    }

    fn places(&mut self) -> Result<Vec<Place>, Failure> {
        let mut places = Vec::new();
        for at in regions_in(&self.dir)? {
            let region = self.region(at, false)?.ok_or("a region file is gone")?;
            let slots = (0..SLOTS).filter(|slot| region.slots[*slot] != 0);
            places.extend(slots.map(|slot| column_of(at, slot)));
        }
        Ok(places)
    }

    fn sync(&mut self) -> Result<(), Failure> {
        for region in self.open.values() {
            region.file.sync_data()?;
        }
        Ok(File::open(&self.dir)?.sync_all()?)
    }
}

/// The regions of a folder, by the names of its files `r.X.Z.…`.
pub(super) fn regions_in(dir: &Path) -> Result<Vec<(i64, i64)>, Failure> {
    let mut regions = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        let mut parts = name.split('.').skip(1);
        let mut number = || parts.next().and_then(|part| part.parse::<i64>().ok());
        regions.extend(number().zip(number()));
    }
    regions.sort_unstable();
    Ok(regions)
}
