//! The machine's limit: the same bytes through LZ4 to the end of one file, and back.
//!
//! No checksum, no order, no room is reused, nothing is atomic: the least that a store can do for the same bytes.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::blobs::{Blobs, Whole};
use super::{About, Kind, Role, Setting, Subject, Until, lz4};
use crate::failure::Failure;
use crate::place::Place;
use crate::workload::Workload;

/// Bytes that are written together when nothing waits for them.
const TOGETHER: usize = 1 << 20;
/// Before each column: x, z, and the length of what follows.
const HEAD: usize = 20;

pub(super) struct Append;

impl Kind for Append {
    fn about(&self) -> About {
        About {
            name: "limit: LZ4 and append".to_owned(),
            role: Role::Limit,
            version: "written here; lz4_flex 0.14".to_owned(),
            durability:
                "a save is in memory when it returns; process: written; synced: fdatasync. Nothing is checked"
                    .to_owned(),
            options: "one file, LZ4 for each column, the places in memory; old columns stay in the file"
                .to_owned(),
        }
    }

    fn create(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure> {
        fs::create_dir_all(setting.dir)?;
        self.open(setting)
    }

    fn open(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure> {
        Ok(Box::new(Whole::new(Log::open(&setting.dir.join("columns"))?, setting)))
    }

    fn cannot(&self, workload: Workload) -> Option<&'static str> {
        workload.needs_threads().then_some("it has no locks")
    }
}

struct Log {
    file: File,
    /// Where each column is, and its length.
    places: BTreeMap<Place, (u64, usize)>,
    /// Bytes of the file.
    end: u64,
    /// Bytes that follow them in memory.
    waiting: Vec<u8>,
}

impl Log {
    fn open(path: &Path) -> Result<Self, Failure> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let len = file.metadata()?.len();
        let (mut places, mut end) = (BTreeMap::new(), 0);
        while end < len {
            let mut head = [0; HEAD];
            file.read_exact_at(&mut head, end)?;
            let number =
                |at: usize| -> Result<i64, Failure> { Ok(i64::from_le_bytes(head[at..at + 8].try_into()?)) };
            let bytes = u32::from_le_bytes(head[16..].try_into()?) as usize;
            places.insert(Place::new(number(0)?, number(8)?), (end + HEAD as u64, bytes));
            end += (HEAD + bytes) as u64;
        }
        Ok(Self { file, places, end, waiting: Vec::new() })
    }

    fn write(&mut self) -> Result<(), Failure> {
        self.file.write_all_at(&self.waiting, self.end)?;
        self.end += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }
}

impl Blobs for Log {
    fn put(&mut self, at: Place, bytes: Vec<u8>, until: Until) -> Result<(), Failure> {
        let bytes = lz4::compress(&bytes)?;
        let begin = self.end + self.waiting.len() as u64 + HEAD as u64;
        self.waiting.extend(at.x.to_le_bytes());
        self.waiting.extend(at.z.to_le_bytes());
        self.waiting.extend(u32::try_from(bytes.len())?.to_le_bytes());
        self.waiting.extend(&bytes);
        self.places.insert(at, (begin, bytes.len()));
        if matches!(until, Until::Process | Until::Synced) || self.waiting.len() >= TOGETHER {
            self.write()?;
        }
        if until == Until::Synced {
            self.file.sync_data()?;
        }
        Ok(())
    }

    fn get(&mut self, at: Place) -> Result<Option<Vec<u8>>, Failure> {
        let Some((begin, len)) = self.places.get(&at).copied() else { return Ok(None) };
        if begin >= self.end {
            self.write()?;
        }
        let mut stored = vec![0; len];
        self.file.read_exact_at(&mut stored, begin)?;
        Ok(Some(lz4::decompress(&stored)?))
    }

    fn places(&mut self) -> Result<Vec<Place>, Failure> {
        Ok(self.places.keys().copied().collect())
    }

    fn sync(&mut self) -> Result<(), Failure> {
        self.write()?;
        Ok(self.file.sync_data()?)
    }
}
