//! The process that is killed while it changes objects, records, properties and chunks of segments, and what must be there.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use cg_format::RecordId;
use cg_format::record::Record;
use cg_registry::Name;
use cg_store::engine::{RocksEngine, RocksOptions};
use cg_store::prelude::*;
use cg_store::verify::VerifyDepth;

use crate::failure::Failure;
use crate::merger::{self, Base, Home};
use crate::promoter::{Kinds, options};
use crate::rng::Rng;

/// Things; each is an object, a record, a property and a chunk.
const THINGS: u64 = 7;
/// Segments, and chunks along the side of one.
const SEGMENTS: u64 = 3;
const SIDE_CHUNKS: u32 = 16;
/// A batch of a segment; every other step is larger.
const BATCH_BYTES: u64 = 8 << 10;

/// What the process is to do.
#[derive(Debug, clap::Args)]
pub(crate) struct Orders {
    /// Where the world is to be.
    #[arg(long)]
    dir: PathBuf,
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[arg(long, default_value_t = 0)]
    steps: u64,
    /// Commit the chunk after everything else, as a control.
    #[arg(long)]
    splits: bool,
}

/// What a thing is: the segment that has it, and the step that wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Written {
    segment: u64,
    step: u64,
}

/// Everything, as it must be after some steps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Model {
    things: BTreeMap<u64, Written>,
    /// How often each thing was written: the version of its object is one less. It counts on after deletions.
    written: BTreeMap<u64, i64>,
    steps: u64,
}

/// What a step does with a thing.
#[derive(Debug, Clone, Copy)]
enum Action {
    Write { thing: u64, segment: u64 },
    Delete { thing: u64, segment: u64 },
}

impl Model {
    pub(crate) fn after(seed: u64, steps: u64) -> Self {
        let mut model = Self::default();
        for _ in 0..steps {
            model.take(seed);
        }
        model
    }

    /// Takes the next step: what is there is changed where it is or deleted, and what is not comes into any segment.
    fn take(&mut self, seed: u64) -> Action {
        let mut rng = Rng::stream(seed, self.steps);
        let (thing, step) = (rng.below(THINGS), self.steps);
        self.steps += 1;
        match self.things.get(&thing).copied() {
            Some(Written { segment, .. }) if rng.one_in(3) => {
                self.things.remove(&thing);
                Action::Delete { thing, segment }
            }
            found => {
                let segment = found.map_or_else(|| rng.below(SEGMENTS), |found| found.segment);
                self.things.insert(thing, Written { segment, step });
                *self.written.entry(thing).or_default() += 1;
                Action::Write { thing, segment }
            }
        }
    }
}

/// Takes steps, and tells of every batch and of every step that is done.
pub(crate) fn run(orders: &Orders) -> Result<(), Failure> {
    let (base, kinds) = make(&orders.dir)?;
    let mut model = Model::default();
    for step in 0..orders.steps {
        let action = model.take(orders.seed);
        let (Action::Write { thing, segment } | Action::Delete { thing, segment }) = action;
        let at = chunk_at(&base, thing, segment)?;
        let chunk = chunk_of(&base, &kinds, orders.seed, step)?;
        let values = |tx: &mut cg_layers::SegmentTransaction<'_, '_>| match action {
            Action::Write { .. } => {
                tx.put_object(object(thing), payload(step))?;
                tx.put_record(record_id(thing), record(at, step)?);
                tx.set_property(property(thing)?, Some(step.to_le_bytes().into()));
                Ok::<_, Failure>(())
            }
            Action::Delete { .. } => {
                tx.delete_object(object(thing))?;
                tx.delete_record(record_id(thing));
                tx.set_property(property(thing)?, None);
                Ok(())
            }
        };
        let of_chunk = |tx: &mut cg_layers::SegmentTransaction<'_, '_>| match action {
            Action::Write { .. } => tx.save(at, chunk),
            Action::Delete { .. } => tx.delete(at),
        };
        if orders.splits {
            base.transaction(at, values)?;
            base.transaction(at, |tx| {
                of_chunk(tx);
                Ok::<_, Failure>(())
            })?;
        } else {
            base.transaction(at, |tx| {
                values(tx)?;
                of_chunk(tx);
                Ok::<_, Failure>(())
            })?;
        }
        let mut out = io::stdout().lock();
        writeln!(out, "batch {step} done")?;
        out.flush()?;
    }
    base.close()?;
    let mut out = io::stdout().lock();
    writeln!(out, "end {} steps", orders.steps)?;
    Ok(out.flush()?)
}

/// Makes a segmented world without segments, which tells from then on.
fn make(dir: &Path) -> Result<(Base, Kinds), Failure> {
    std::fs::create_dir_all(dir.join("base"))?;
    let home = Home::new(dir);
    let tells = home.tells();
    let engine = RocksEngine::create(&dir.join("base").join("root"), &RocksOptions::default())?;
    let options = options(BATCH_BYTES);
    let root = home.root(engine, &options)?;
    let kinds = Kinds::register(&root)?;
    let base = merger::begin(home, root, Some(SIDE_CHUNKS), options)?;
    tells.store(true, Ordering::Release);
    Ok((base, kinds))
}

/// Opens a world as it was left, and says which number of steps of two it has taken; an error if that is neither, if
/// anything is not sound, or if a segment has what the root does not name.
pub(crate) fn steps_of(dir: &Path, seed: u64, told: u64) -> Result<u64, Failure> {
    let base = merger::open(dir)?;
    let kinds = Kinds::register(base.root())?;
    let mut found = None;
    for steps in [told, told + 1] {
        if is(&base, &kinds, seed, &Model::after(seed, steps))? {
            found = Some(steps);
        }
    }
    let mut objects = 0;
    for segment in base.segments().list() {
        let (count, report) = base.segments().with(segment, |world| {
            let listed = world.objects().list("", None, usize::MAX)?.entries.len();
            Ok((listed, world.verify(VerifyDepth::Full, |_| {})?))
        })?;
        objects += count;
        if let Some(finding) = report.findings.first() {
            return Err(format!("{segment} is not sound: {}", finding.what).into());
        }
    }
    let listed = base.objects().list("", None, usize::MAX)?.entries.len();
    base.close()?;
    if objects != listed {
        return Err(format!("segments have {objects} objects, and {listed} are found").into());
    }
    found.ok_or_else(|| {
        format!("after {told} steps and perhaps one more, it is neither as before nor as after").into()
    })
}

/// Whether a world is as it must be after some steps.
fn is(base: &Base, kinds: &Kinds, seed: u64, model: &Model) -> Result<bool, Failure> {
    for thing in 0..THINGS {
        let written = model.things.get(&thing);
        let version = model.written.get(&thing).map_or(0, |written| written - 1);
        let object = base.objects().get(object(thing))?.map(|object| (object.version, object.bytes.to_vec()));
        if object != written.map(|written| (version, payload(written.step))) {
            return Ok(false);
        }
        let property = base.property(&property(thing)?)?;
        if property != written.map(|written| written.step.to_le_bytes().to_vec()) {
            return Ok(false);
        }
        let expected = match written {
            Some(written) => Some(record(chunk_at(base, thing, written.segment)?, written.step)?),
            None => None,
        };
        if base.records().get(record_id(thing))? != expected {
            return Ok(false);
        }
        for segment in 0..SEGMENTS {
            let written = written.filter(|written| written.segment == segment);
            let expected = match written {
                Some(written) => Some(chunk_of(base, kinds, seed, written.step)?),
                None => None,
            };
            if base.load(chunk_at(base, thing, segment)?)?.as_deref() != expected.as_ref() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn object(thing: u64) -> String {
    format!("thing/{thing}")
}

fn record_id(thing: u64) -> RecordId {
    RecordId::from_bytes([thing as u8; 16])
}

fn property(thing: u64) -> Result<Property, Failure> {
    Ok(Property::Named(Name::new(format!("game:thing{thing}"))?))
}

/// The bytes of an object; those of every other step take more than a batch.
fn payload(step: u64) -> Vec<u8> {
    let count = if step.is_multiple_of(2) { 1 } else { 2 * BATCH_BYTES / 8 };
    (0..count).flat_map(|_| step.to_le_bytes()).collect()
}

fn record(at: ChunkAt, step: u64) -> Result<Record, Failure> {
    let position = EntityPos::new(at.dimension, at.pos.min_block(), [0.5; 3])?;
    Ok(Record::new(position, "game:thing", step as i64, step.to_le_bytes().into())?)
}

fn chunk_of(base: &Base, kinds: &Kinds, seed: u64, step: u64) -> Result<Chunk, Failure> {
    kinds.random(&mut Rng::stream(!seed, step), 2, base.root())
}

fn chunk_at(base: &Base, thing: u64, segment: u64) -> Result<ChunkAt, Failure> {
    let dimension = base.catalog().dimension("game:field").ok_or("no dimension")?;
    let x = (segment * u64::from(SIDE_CHUNKS) + thing) as i64;
    Ok(ChunkAt::new(dimension, ChunkPos::new(x, 0, 0)?))
}
