//! A region as one Zstandard stream, in the style of Linear: small, and rewritten whole.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;

use super::blobs::{Blobs, Whole};
use super::region::{SIDE, column_of, region_of, regions_in};
use super::{About, Kind, Role, Setting, Subject, Until};
use crate::failure::Failure;
use crate::place::Place;
use crate::workload::Workload;

const SLOTS: usize = (SIDE * SIDE) as usize;
const LEVEL: i32 = 6;

pub(super) struct Streams;

impl Kind for Streams {
    fn about(&self) -> About {
        About {
            name: "region streams".to_owned(),
            role: Role::Rival,
            version: format!("in the style of Linear, written here; Zstandard {}", zstd::zstd_safe::version_string()),
            durability: "a save is in memory when it returns; process and synced: the whole region is written to another \
                         file, synced and renamed"
                .to_owned(),
            options: "32×32 columns a file, one stream of level 6; a region stays in memory if its bytes fit there".to_owned(),
        }
    }

    fn create(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure> {
        fs::create_dir_all(setting.dir)?;
        self.open(setting)
    }

    fn open(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure> {
        let limit_bytes = setting.memory.blocks();
        let streams = Open { dir: setting.dir.to_owned(), regions: BTreeMap::new(), limit_bytes };
        Ok(Box::new(Whole::new(streams, setting)))
    }

    fn cannot(&self, workload: Workload) -> Option<&'static str> {
        if workload.opens_only() {
            return Some("nothing is opened until a column is asked for");
        }
        workload.needs_threads().then_some("a region is read and written by one thread")
    }
}

struct Open {
    dir: PathBuf,
    /// The regions in memory.
    regions: BTreeMap<(i64, i64), Region>,
    /// How many bytes of columns stay in memory.
    limit_bytes: usize,
}

/// The bytes of all columns.
struct Region {
    slots: Vec<Option<Vec<u8>>>,
    /// Whether the file is older.
    changed: bool,
}

impl Region {
    fn decode(stored: &[u8]) -> Result<Self, Failure> {
        let (len, stream) = stored.split_first_chunk::<8>().ok_or("a region stream has no length")?;
        let bytes = zstd::bulk::decompress(stream, usize::try_from(u64::from_le_bytes(*len))?)?;
        let (table, mut rest) = bytes.split_at_checked(SLOTS * 4).ok_or("a region stream has no table")?;
        let mut slots = Vec::with_capacity(SLOTS);
        for len in table.as_chunks::<4>().0 {
            let len = u32::from_le_bytes(*len) as usize;
            let (column, after) = rest.split_at_checked(len).ok_or("a region stream ends within a column")?;
            slots.push((len > 0).then(|| column.to_vec()));
            rest = after;
        }
        Ok(Self { slots, changed: false })
    }

    fn encode(&self) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        for slot in &self.slots {
            bytes.extend(u32::try_from(slot.as_ref().map_or(0, Vec::len))?.to_le_bytes());
        }
        for column in self.slots.iter().flatten() {
            bytes.extend(column);
        }
        let stream = zstd::bulk::compress(&bytes, LEVEL)?;
        Ok([(bytes.len() as u64).to_le_bytes().to_vec(), stream].concat())
    }

    fn len_bytes(&self) -> usize {
        self.slots.iter().flatten().map(Vec::len).sum()
    }
}

impl Open {
    fn path(&self, at: (i64, i64)) -> PathBuf {
        self.dir.join(format!("r.{}.{}.linear", at.0, at.1))
    }

    fn region(&mut self, at: (i64, i64)) -> Result<&mut Region, Failure> {
        if !self.regions.contains_key(&at) {
            let path = self.path(at);
            let region = if path.exists() {
                Region::decode(&fs::read(path)?)?
            } else {
                Region { slots: vec![None; SLOTS], changed: false }
            };
            self.regions.insert(at, region);
        }
        self.regions.get_mut(&at).ok_or_else(|| "the region was just read".into())
    }

    fn write(&mut self, at: (i64, i64)) -> Result<(), Failure> {
        let path = self.path(at);
        let Some(region) = self.regions.get_mut(&at).filter(|region| region.changed) else { return Ok(()) };
        let new = path.with_extension("new");
        fs::write(&new, region.encode()?)?;
        File::open(&new)?.sync_all()?;
        fs::rename(new, path)?;
        File::open(&self.dir)?.sync_all()?;
        region.changed = false;
        Ok(())
    }

    /// Forgets regions that the file has too, while there is too much in memory.
    fn shrink(&mut self) {
        let mut bytes: usize = self.regions.values().map(Region::len_bytes).sum();
        self.regions.retain(|_, region| {
            let stays = region.changed || bytes <= self.limit_bytes;
            if !stays {
                bytes -= region.len_bytes();
            }
            stays
        });
    }
}

impl Blobs for Open {
    fn put(&mut self, at: Place, bytes: Vec<u8>, until: Until) -> Result<(), Failure> {
        let (at, slot) = region_of(at);
        let region = self.region(at)?;
        region.slots[slot] = Some(bytes);
        region.changed = true;
        if matches!(until, Until::Process | Until::Synced) {
            self.write(at)?;
        }
        Ok(())
    }

    fn get(&mut self, at: Place) -> Result<Option<Vec<u8>>, Failure> {
        let (at, slot) = region_of(at);
        let column = self.region(at)?.slots[slot].clone();
        self.shrink();
        Ok(column)
    }

    fn places(&mut self) -> Result<Vec<Place>, Failure> {
        self.sync()?;
        let mut places = Vec::new();
        for at in regions_in(&self.dir)? {
            let slots = self.region(at)?.slots.iter().enumerate();
            places.extend(slots.filter(|(_, column)| column.is_some()).map(|(slot, _)| column_of(at, slot)));
            self.shrink();
        }
        Ok(places)
    }

    fn sync(&mut self) -> Result<(), Failure> {
        let changed: Vec<_> = self.regions.keys().copied().collect();
        changed.into_iter().try_for_each(|at| self.write(at))
    }
}
