//! Cutting the log, and zeroing its last sectors as a power cut may: whatever is gone, the rest is whole steps, and the
//! world opens exactly if no promised commit is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use cg_store::engine::EngineError;
use cg_store::{Error, OpenError, World, WorldOptions};

use crate::damage;
use crate::failure::Failure;
use crate::image::{self, Floor, Image};
use crate::model::{Picture, Thing};
use crate::reading::Reading;
use crate::report::plural;
use crate::rng::Rng;
use crate::subject;

/// Records at the end that are cut at every byte.
const LAST_RECORDS: usize = 3;
/// Sectors at the end from which on the log is zeroed.
const LAST_SECTORS: usize = 16;
const BLOCK_BYTES: usize = 32 << 10;
const HEADER_BYTES: usize = 7;
const FLOOR_SLOT_BYTES: usize = 64;
/// Bytes that a disk writes at once.
const SECTOR_BYTES: usize = 512;

/// Cuts the log of a world at every byte of its last records, or a part of them if it is to be short, and the log of a
/// world whose floor lags behind at random places.
pub(crate) fn run(seed: u64, cuts: u64, short: bool) -> Result<(), Failure> {
    let image = Image::make(seed, Floor::Settled)?;
    let cutter = Cutter::new(&image)?;
    let records = cutter.records.as_slice();
    let from = records.len().checked_sub(LAST_RECORDS).and_then(|first| records.get(first));
    let from = from.ok_or("the log has too few records")?.start;
    let mut places: Vec<usize> = (from..=cutter.log.len()).collect();
    if short {
        // The borders of the records, and between them as many places as asked for.
        let rng = &mut Rng::stream(seed, 3);
        let borders: Vec<usize> = records.iter().flat_map(|record| [record.start, record.end]).collect();
        let chosen = (0..cuts).map(|_| places[rng.below(places.len() as u64) as usize]);
        let chosen: BTreeSet<usize> = chosen.collect();
        places.retain(|place| borders.contains(place) || chosen.contains(place));
    }
    cutter.tear_all("last records", places.into_iter().map(Tear::Cut))?;
    let mut borders: Vec<usize> = cutter.borders().collect();
    let last = borders.split_off(borders.len().saturating_sub(LAST_SECTORS));
    cutter.tear_all("last sectors", last.into_iter().map(Tear::Zeros))?;
    cutter.delete()?;
    cutter.control()?;

    let image = Image::make(seed.wrapping_add(1), Floor::Lagging)?;
    let cutter = Cutter::new(&image)?;
    let rng = &mut Rng::stream(seed, 4);
    let places: Vec<usize> = (0..cuts).map(|_| rng.below(cutter.log.len() as u64) as usize).collect();
    cutter.tear_all("random places", places.into_iter().map(Tear::Cut))?;
    let borders: Vec<usize> = cutter.borders().collect();
    let borders: BTreeSet<usize> =
        (0..cuts).map(|_| borders[rng.below(borders.len() as u64) as usize]).collect();
    cutter.tear_all("random places", borders.into_iter().map(Tear::Zeros))?;
    cutter.delete()
}

/// The options with which what is left of a world is read, whatever is lost of it.
fn accepting() -> WorldOptions {
    WorldOptions { accept_lost_commits: true, ..subject::options() }
}

/// Where the parts of log records start, in the newest log of a world.
pub(crate) fn headers(image: &Image) -> Result<Vec<u64>, Failure> {
    let log = fs::read(image.world().join(image.log()?))?;
    Ok(parts(&log).map(|part| part.start as u64).collect())
}

/// Cuts the log of copies of a world.
struct Cutter<'i> {
    image: &'i Image,
    scratch: tempfile::TempDir,
    name: String,
    log: Vec<u8>,
    records: Vec<Record>,
    /// The newest commit before the log, and the one that the floor promises.
    before: u64,
    floor: u64,
    history: Vec<Picture>,
}

/// A record of a log, all of its parts.
#[derive(Debug, Clone, Copy)]
struct Record {
    start: usize,
    end: usize,
}

/// Damage to the end of a log.
#[derive(Debug, Clone, Copy)]
enum Tear {
    /// It is cut to this many bytes.
    Cut(usize),
    /// It reads as zeros from a byte on.
    Zeros(usize),
}

/// The outcome of opening a world with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// With this many steps, whole.
    Opened { steps: u64 },
    /// Refused, naming the commits that are gone.
    LostCommits,
    /// Opened although promised commits are gone: what must never be.
    OpenedBelowFloor,
}

impl<'i> Cutter<'i> {
    fn new(image: &'i Image) -> Result<Self, Failure> {
        let name = image.log()?;
        let log = fs::read(image.world().join(&name))?;
        let mut cutter = Self {
            image,
            scratch: image::scratch()?,
            records: records(&log),
            floor: floor(&image.world())?,
            history: image::history(image.seed, Image::steps()),
            before: 0,
            name,
            log,
        };
        cutter.before = cutter.newest(0)?;
        let last = cutter.newest(cutter.log.len())?;
        if last != cutter.before + cutter.records.len() as u64 {
            return Err(
                format!("the log has {} records and leads to commit {last}", cutter.records.len()).into()
            );
        }
        if !(cutter.before + 1..=last).contains(&cutter.floor) {
            return Err(format!("the floor {} is not a commit of the log", cutter.floor).into());
        }
        Ok(cutter)
    }

    /// The borders between sectors inside the log's records.
    fn borders(&self) -> impl Iterator<Item = usize> + '_ {
        let first = self.records.first().map_or(self.log.len(), |record| record.start);
        (first + 1..self.log.len()).filter(|at| at.is_multiple_of(SECTOR_BYTES))
    }

    /// Tears in every given way and prints what came of it.
    fn tear_all(&self, what: &str, tears: impl Iterator<Item = Tear>) -> Result<(), Failure> {
        let (mut cuts, mut zeroed, mut opened, mut refused, mut unpromised) = (0, 0, 0, 0, 0);
        for tear in tears {
            match tear {
                Tear::Cut(_) => cuts += 1,
                Tear::Zeros(_) => zeroed += 1,
            }
            match self.tear(tear).map_err(|why| format!("{tear:?} of the log: {why}"))? {
                Outcome::LostCommits => refused += 1,
                Outcome::OpenedBelowFloor => {
                    return Err(format!("{tear:?} of the log: opened below the floor {}", self.floor).into());
                }
                Outcome::Opened { steps } => {
                    opened += 1;
                    unpromised += u64::from(steps < self.image.synced_steps());
                }
            }
        }
        let done = if zeroed > 0 { plural(zeroed, "zeroed end") } else { plural(cuts, "cut") };
        println!(
            "cut: seed {}, {what}: {done}, {opened} opened with whole steps, {refused} refused with LostCommits; in \
             {unpromised} of those opened, steps were missing that had been synced after the floor was last raised",
            self.image.seed,
        );
        Ok(())
    }

    /// Tears the log of a copy and checks everything that can be known about the rest.
    fn tear(&self, tear: Tear) -> Result<Outcome, Failure> {
        let (kept, log) = match tear {
            Tear::Cut(len) => (len, self.log[..len].to_vec()),
            Tear::Zeros(from) => {
                let mut log = self.log.clone();
                log[from..].fill(0);
                (from, log)
            }
        };
        // A record that is zero behind its torn part anyway has lost nothing.
        let is_whole = |record: &&Record| {
            log.get(kept.min(record.end)..record.end) == self.log.get(kept.min(record.end)..record.end)
        };
        let whole = self.records.iter().take_while(is_whole).count() as u64;
        let copy = self.copy(Some(&log))?;
        let world = World::builder().options(&accepting()).open_read_only(&copy)?;
        let found = world.last_commit().get();
        if found != self.before + whole {
            return Err(format!("{whole} records are whole, commit {found} was found").into());
        }
        let steps = self.compare(&world)?;
        drop(world);
        self.open(&copy, found, steps)
    }

    /// Opens for reading and for writing: both are refused exactly if the floor is above.
    fn open(&self, copy: &Path, found: u64, steps: u64) -> Result<Outcome, Failure> {
        let is_refused = World::builder().options(&subject::options()).open_read_only(copy).is_err();
        let outcome = self.open_to_write(copy, found, steps)?;
        if is_refused == (outcome == Outcome::LostCommits) {
            return Ok(outcome);
        }
        Err(format!("commit {found}, floor {}: {outcome:?} for writing, not so for reading", self.floor)
            .into())
    }

    fn open_to_write(&self, copy: &Path, found: u64, steps: u64) -> Result<Outcome, Failure> {
        match World::builder().options(&subject::options()).open(copy) {
            Ok(_) if found < self.floor => Ok(Outcome::OpenedBelowFloor),
            Ok(world) if self.compare(&world)? == steps => Ok(Outcome::Opened { steps }),
            Ok(_) => Err("the world opens otherwise for writing than for reading".into()),
            Err(Error::Open(OpenError::Engine {
                source: EngineError::LostCommits { floor, found: newest },
                ..
            })) if found < self.floor && (floor.get(), newest.get()) == (self.floor, found) => {
                Ok(Outcome::LostCommits)
            }
            Err(error) => Err(format!("commit {found}, floor {}: {error}", self.floor).into()),
        }
    }

    /// Deletes the log: the world must not open, and must say why.
    fn delete(&self) -> Result<(), Failure> {
        let copy = self.copy(None)?;
        match World::builder().options(&subject::options()).open(&copy) {
            Err(Error::Open(OpenError::Engine {
                source: error @ (EngineError::LostCommits { .. } | EngineError::Corrupt { .. }),
                ..
            })) => {
                println!("cut: seed {}, log deleted: {error}", self.image.seed);
                Ok(())
            }
            Err(error) => Err(format!("the log was deleted: {error}").into()),
            Ok(world) => Err(format!("the log was deleted, commit {} was found", world.last_commit()).into()),
        }
    }

    /// Takes the floor away together with the last promised record: the check must see a world that opens too low.
    fn control(&self) -> Result<(), Failure> {
        let promised = self.floor - self.before;
        let record = self.records.get(promised as usize - 1).ok_or("the floor's record is not there")?;
        let copy = self.copy(Some(&self.log[..record.start]))?;
        fs::write(copy.join("db/DURABLE"), floor_of_nothing())?;
        let world = World::builder().options(&accepting()).open_read_only(&copy)?;
        let (found, steps) = (world.last_commit().get(), self.compare(&world)?);
        drop(world);
        match self.open(&copy, found, steps)? {
            Outcome::OpenedBelowFloor => {
                println!(
                    "cut: control without a promise caught: opened at commit {found}, floor {}",
                    self.floor
                );
                Ok(())
            }
            other => Err(format!("the control without a promise gave {other:?}").into()),
        }
    }

    /// How many steps the world has taken; it must hold what they left and nothing else.
    fn compare(&self, world: &World) -> Result<u64, Failure> {
        let mut reading = Reading::of(world, Image::steps(), self.image.seed)?;
        if let Some((thing, error)) = reading.unreadable.first_key_value() {
            return Err(format!("{thing:?}: {error}").into());
        }
        reading.conserved()?;
        let steps = reading.steps.ok_or("the count of steps is gone")?;
        let expected = self.history.get(steps as usize).ok_or("more steps than were taken")?;
        // A name is committed before the step that needs it.
        reading.picture.remove(&Thing::Name(steps));
        if *expected != reading.picture {
            return Err(format!("what is there is not what {steps} steps left").into());
        }
        Ok(steps)
    }

    fn newest(&self, len: usize) -> Result<u64, Failure> {
        let copy = self.copy(Some(&self.log[..len]))?;
        Ok(World::builder().options(&accepting()).open_read_only(&copy)?.last_commit().get())
    }

    /// A fresh copy with another log, or without it.
    fn copy(&self, bytes: Option<&[u8]>) -> Result<PathBuf, Failure> {
        let copy = self.scratch.path().join("copy");
        image::copy(&self.image.world(), &copy)?;
        let log = copy.join(&self.name);
        match bytes {
            Some(bytes) => damage::replace(&log, bytes)?,
            None => fs::remove_file(&log)?,
        }
        Ok(copy)
    }
}

/// The records of a log that hold commits. Independent of the engine's own reader of logs.
fn records(log: &[u8]) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    for part in parts(log) {
        match (part.kind, records.last_mut()) {
            (1 | 2, _) => records.push(Record { start: part.start, end: part.end }),
            (3 | 4, Some(record)) => record.end = part.end,
            // What describes the log.
            _ => {}
        }
    }
    records
}

/// A part of a record: a header and what it announces, inside one block.
struct Part {
    start: usize,
    end: usize,
    kind: u8,
}

fn parts(log: &[u8]) -> impl Iterator<Item = Part> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        if BLOCK_BYTES - at % BLOCK_BYTES < HEADER_BYTES {
            at = at.next_multiple_of(BLOCK_BYTES);
        }
        let [_, _, _, _, low, high, kind] = *log.get(at..)?.first_chunk::<HEADER_BYTES>()?;
        let (start, end) = (at, at + HEADER_BYTES + usize::from(u16::from_le_bytes([low, high])));
        at = end;
        (kind != 0 && end <= log.len()).then_some(Part { start, end, kind })
    })
}

/// The commit that a world's floor promises: the slot that was written last.
fn floor(world: &Path) -> Result<u64, Failure> {
    let bytes = fs::read(world.join("db/DURABLE"))?;
    let slots: BTreeMap<u64, u64> = bytes
        .chunks_exact(FLOOR_SLOT_BYTES)
        .filter_map(|slot| {
            let number = |at: usize| Some(u64::from_le_bytes(slot.get(at..at + 8)?.try_into().ok()?));
            Some((number(8)?, number(16)?))
        })
        .collect();
    Ok(slots.into_iter().next_back().ok_or("the floor is empty")?.1)
}

/// A floor that promises no commit, as in a world that was just made.
fn floor_of_nothing() -> Vec<u8> {
    let slot = |write_count: u64| {
        let mut slot = b"cgfloor1".to_vec();
        slot.extend(write_count.to_le_bytes());
        slot.resize(FLOOR_SLOT_BYTES - 4, 0);
        slot.extend(crc32c::crc32c(&slot).to_le_bytes());
        slot
    };
    [slot(1), slot(2)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(kind: u8, len: u16) -> Vec<u8> {
        let mut part = vec![0; 4];
        part.extend(len.to_le_bytes());
        part.push(kind);
        part.resize(HEADER_BYTES + usize::from(len), 1);
        part
    }

    #[test]
    fn records_are_found_over_blocks_and_fillings() {
        // A note about the log, a whole record, one that fills its block but for five bytes, and one in two parts.
        let mut log = [part(130, 3), part(1, 10)].concat();
        let filling = BLOCK_BYTES - log.len() - HEADER_BYTES - 5;
        log.extend(part(1, filling as u16));
        log.resize(BLOCK_BYTES, 0);
        log.extend(part(2, 20));
        log.extend(part(4, 5));
        let found: Vec<_> = records(&log).iter().map(|record| (record.start, record.end)).collect();
        let block = BLOCK_BYTES;
        assert_eq!(found, [(10, 27), (27, block - 5), (block, block + 27 + 12)]);
        // Cut inside the last part, or zeros instead of it.
        assert_eq!(records(&log[..log.len() - 1]).last().map(|record| record.end), Some(block + 27));
        log.truncate(block);
        log.resize(block + 100, 0);
        assert_eq!(records(&log).len(), 2);
    }
}
