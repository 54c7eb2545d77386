//! The process that is killed while it compacts, archives or restores a world, and what must be there afterwards.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cg_anvil::new_file::NewFile;
use cg_layers::{SegmentOptions, SegmentedWorld};
use cg_store::OpenError;
use cg_store::error::ArchiveError;
use cg_store::prelude::*;
use cg_store::verify::{ContentHash, VerifyDepth};
use cg_store::view::{Area, DamagedRows};

use crate::failure::Failure;
use crate::rng::Rng;
use crate::step::Step;
use crate::subject;

/// Steps in the world.
const STEPS: u64 = 24;
/// Large objects, so that files and archives have many parts, and how often each is written.
const LARGE: u64 = 40;
const ROUNDS: u64 = 3;
const LARGE_BYTES: usize = 40_000;
/// The most that one step reads or writes.
const PART_BYTES: usize = 32 << 10;
/// The archive that is restored.
const SOURCE: &str = "source";
/// Segments that have the objects.
const SEGMENTS: u64 = 3;
const SIDE_CHUNKS: u32 = 16;

/// The pause before each step.
const PAUSE: Duration = Duration::from_micros(100);

/// The work during which it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Work {
    /// A world is compacted.
    Compact,
    /// A segmented world is compacted.
    CompactSegments,
    /// A world is archived into a file.
    Archive,
    /// A world is made of an archive.
    Restore,
}

/// What the process is to do.
#[derive(Debug, clap::Args)]
pub(crate) struct Orders {
    #[arg(long)]
    dir: PathBuf,
    #[arg(long)]
    work: Work,
    /// Do it wrongly, as a control.
    #[arg(long)]
    wrongly: bool,
}

/// What is in the worlds, whatever is done to their files.
#[derive(Debug)]
pub(crate) struct Content {
    /// With the bytes of the snapshot.
    plain: (ContentHash, Vec<u8>),
    segmented: Vec<ContentHash>,
}

/// What a killed process left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Left {
    /// Nothing of its work.
    Nothing,
    /// A part of it, which is no archive and no world.
    Part,
    /// All of it.
    Whole,
}

/// Tells of a step before it is done.
fn tell(word: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "batch 0 {word}")?;
    out.flush()?;
    // Or all is over before the parent has read it.
    std::thread::sleep(PAUSE);
    Ok(())
}

/// A stream that tells of its calls. Each call takes a part of what it is given.
struct Tells<S>(S);

impl<S: Write> Write for Tells<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        tell("write")?;
        self.0.write(&bytes[..bytes.len().min(PART_BYTES)])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<S: Read> Read for Tells<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        tell("read")?;
        let len = buffer.len().min(PART_BYTES);
        self.0.read(&mut buffer[..len])
    }
}

fn world_in(dir: &Path) -> PathBuf {
    dir.join("world")
}

fn segmented_in(dir: &Path) -> PathBuf {
    dir.join("segmented")
}

fn archive_in(dir: &Path) -> PathBuf {
    dir.join("archive")
}

fn restored_in(dir: &Path) -> PathBuf {
    dir.join("restored")
}

fn open(dir: &Path) -> Result<World, Error> {
    World::builder().options(&subject::options()).open(dir)
}

fn open_segmented(dir: &Path) -> Result<SegmentedWorld<cg_layers::OnDisk>, Error> {
    SegmentedWorld::open(segmented_in(dir), &[], &segment_options())
}

fn segment_options() -> SegmentOptions {
    SegmentOptions { side_chunks: SIDE_CHUNKS, max_open: 2, world: subject::options() }
}

/// Bytes that do not compress.
fn large(seed: u64, round: u64, number: u64) -> Vec<u8> {
    let mut rng = Rng::stream(seed, round * LARGE + number);
    let words = std::iter::repeat_with(|| rng.next().to_le_bytes());
    words.take(LARGE_BYTES / 8).flatten().collect()
}

/// A chunk in a segment.
fn chunk_in(world: &SegmentedWorld<cg_layers::OnDisk>, segment: u64) -> Result<ChunkAt, Failure> {
    let dimension = world.catalog().dimension("torture:first").ok_or("no dimension")?;
    Ok(ChunkAt::new(dimension, ChunkPos::new(segment as i64 * i64::from(SIDE_CHUNKS), 0, 0)?))
}

/// Makes a world and a segmented one, with much that was overwritten, and an archive of the first.
pub(crate) fn make(dir: &Path, seed: u64) -> Result<Content, Failure> {
    subject::create(&world_in(dir), seed)?;
    SegmentedWorld::create(segmented_in(dir), &[], &segment_options())?.close()?;
    for round in 0..ROUNDS {
        let world = open(&world_in(dir))?;
        for index in 0..STEPS / ROUNDS {
            subject::take(&world, &Step::new(seed, round * STEPS / ROUNDS + index), None)?;
        }
        let segmented = open_segmented(dir)?;
        if round == 0 {
            let dimensions = vec![cg_registry::Name::new("torture:first")?];
            segmented.register(&Registration { dimensions, ..Registration::default() })?;
        }
        segmented.transaction(chunk_in(&segmented, 0)?, |tx| {
            tx.set_property(subject::named(subject::STEPS)?, Some(vec![1]));
            Ok::<_, Failure>(())
        })?;
        for number in 0..LARGE {
            let key = format!("large/{number}");
            world.objects().put(&key, large(seed, round, number))?;
            let at = chunk_in(&segmented, number % SEGMENTS)?;
            segmented.transaction(at, |tx| tx.put_object(key, large(seed, round, number)))?;
        }
        if round == 0 {
            world.snapshots().save("torture", &large(seed, ROUNDS, 0))?;
        }
        world.close()?;
        segmented.close()?;
    }
    let world = open(&world_in(dir))?;
    let file = File::create_new(dir.join(SOURCE))?;
    World::builder().archive(&world, file, DamagedRows::Refuse, |_| {})?;
    world.close()?;
    drop(world);
    Ok(Content { plain: hash_of(&world_in(dir))?, segmented: hashes_of(dir)? })
}

/// Does the work, and tells of each step.
pub(crate) fn run(orders: &Orders) -> Result<(), Failure> {
    let dir = &*orders.dir;
    match orders.work {
        Work::Compact => {
            let world = open(&world_in(dir))?;
            let mut compaction = world.tiers().compaction(Area::World)?;
            loop {
                let steps = world.property(&subject::named(subject::STEPS)?)?;
                let set = |value| {
                    world.transaction(|tx| {
                        tx.set_property(subject::named(subject::STEPS)?, value);
                        Ok::<_, Failure>(())
                    })
                };
                if orders.wrongly {
                    set(None)?;
                }
                tell("slice")?;
                let is_left = compaction.run(Duration::ZERO)?;
                if orders.wrongly {
                    set(steps)?;
                }
                if !is_left {
                    break;
                }
            }
            world.close()?;
        }
        Work::CompactSegments => {
            let world = open_segmented(dir)?;
            let mut compaction = world.segments().compaction(world.segments().list());
            let at = chunk_in(&world, 0)?;
            let set = |value| {
                world.transaction(at, |tx| {
                    tx.set_property(subject::named(subject::STEPS)?, value);
                    Ok::<_, Failure>(())
                })
            };
            loop {
                if orders.wrongly {
                    set(None)?;
                }
                tell("slice")?;
                let is_left = compaction.run(Duration::ZERO)?;
                if orders.wrongly {
                    set(Some(vec![1]))?;
                }
                if !is_left {
                    break;
                }
            }
            world.close()?;
        }
        Work::Archive => {
            let world = World::builder().options(&subject::options()).open_read_only(world_in(dir))?;
            if orders.wrongly {
                let file = Tells(File::create_new(archive_in(dir))?);
                World::builder().archive(&world, file, DamagedRows::Refuse, |_| {})?;
            } else {
                let mut file = NewFile::create(&archive_in(dir))?;
                World::builder().archive(&world, Tells(&mut file), DamagedRows::Refuse, |_| {})?;
                tell("name")?;
                file.finish()?;
            }
        }
        Work::Restore if orders.wrongly => restore_wrongly(dir)?,
        Work::Restore => {
            World::builder().options(&subject::options()).restore(
                Tells(File::open(dir.join(SOURCE))?),
                restored_in(dir),
                |_| {},
            )?;
        }
    }
    let mut out = io::stdout().lock();
    writeln!(out, "end of work")?;
    Ok(out.flush()?)
}

/// Makes a world first, and puts what belongs into it then.
fn restore_wrongly(dir: &Path) -> Result<(), Failure> {
    let from = World::builder().options(&subject::options()).open_read_only(world_in(dir))?;
    let to = World::builder().options(&subject::options()).create(restored_in(dir))?;
    for number in 0..LARGE {
        tell("read")?;
        let object = from.objects().get(format!("large/{number}"))?.ok_or("no object")?;
        to.objects().put(format!("large/{number}"), object.bytes.to_vec())?;
    }
    Ok(to.close()?)
}

/// Says what is left of some work after these steps, or what is wrong; then goes on with it, and checks that all is there.
pub(crate) fn judge(
    dir: &Path,
    work: Work,
    content: &Content,
    steps: usize,
    is_ended: bool,
) -> Result<Left, Failure> {
    let left = match work {
        Work::Compact | Work::CompactSegments if is_ended => Left::Whole,
        Work::Compact | Work::CompactSegments => Left::Part,
        Work::Archive if archive_in(dir).exists() => Left::Whole,
        // Until then it has no name, or one that a crash may leave.
        Work::Archive if !is_ended && steps > 0 => Left::Part,
        Work::Restore if restored_in(dir).exists() => match open(&restored_in(dir)) {
            Ok(world) => world.close().map(|()| Left::Whole)?,
            Err(Error::Open(OpenError::HalfCreated { .. } | OpenError::NotAWorld { .. })) => Left::Part,
            Err(error) => return Err(format!("the restored world does not open: {error}").into()),
        },
        Work::Archive | Work::Restore => Left::Nothing,
    };
    if left == Left::Whole {
        check(dir, work, content)?;
    }
    match work {
        Work::Compact => {
            check(dir, work, content)?;
            let world = open(&world_in(dir))?;
            while world.tiers().compaction(Area::World)?.run(Duration::MAX)? {}
            world.close()?;
        }
        Work::CompactSegments => {
            check(dir, work, content)?;
            let world = open_segmented(dir)?;
            while world.segments().compaction(world.segments().list()).run(Duration::MAX)? {}
            world.close()?;
        }
        Work::Archive if left != Left::Whole => {
            check(dir, Work::Compact, content)?;
            let world = open(&world_in(dir))?;
            let mut file = NewFile::create(&archive_in(dir))?;
            World::builder().archive(&world, &mut file, DamagedRows::Refuse, |_| {})?;
            file.finish()?;
            world.close()?;
        }
        Work::Restore if left != Left::Whole => restore_again(dir)?,
        Work::Archive | Work::Restore => {}
    }
    check(dir, work, content)?;
    Ok(left)
}

/// As `cg restore --resume`.
fn restore_again(dir: &Path) -> Result<(), Failure> {
    let again = || {
        let source = File::open(dir.join(SOURCE))?;
        World::builder().options(&subject::options()).restore(source, restored_in(dir), |_| {})
    };
    match again() {
        Err(ArchiveError::Store(Error::Open(OpenError::HalfCreated { .. } | OpenError::NotEmpty { .. }))) => {
            fs::remove_dir_all(restored_in(dir))?;
            again()?;
        }
        restored => drop(restored?),
    }
    Ok(())
}

/// Compares everything that is there with what must be.
fn check(dir: &Path, work: Work, content: &Content) -> Result<(), Failure> {
    let is_same = match work {
        Work::Compact => hash_of(&world_in(dir))? == content.plain,
        Work::CompactSegments => hashes_of(dir)? == content.segmented,
        Work::Restore => hash_of(&restored_in(dir))? == content.plain,
        Work::Archive => {
            let made = dir.join("made");
            let archive = File::open(archive_in(dir))?;
            World::builder().options(&subject::options()).restore(archive, &made, |_| {})?;
            let hash = hash_of(&made)?;
            fs::remove_dir_all(made)?;
            hash == content.plain
        }
    };
    if is_same { Ok(()) } else { Err("another content".into()) }
}

/// The hash of a world's content and of its snapshot, whose rows must be sound.
fn hash_of(dir: &Path) -> Result<(ContentHash, Vec<u8>), Failure> {
    let world = open(dir)?;
    if let Some(finding) = world.verify(VerifyDepth::Full, |_| {})?.findings.first() {
        return Err(format!("the world is not sound: {}", finding.what).into());
    }
    let hash = world.content_hash(Area::World)?;
    let mut snapshot = Vec::new();
    world.snapshots().open("torture")?.ok_or("the snapshot is gone")?.read_to_end(&mut snapshot)?;
    world.close()?;
    Ok((hash, snapshot))
}

/// The same of the root and all segments, in their order.
fn hashes_of(dir: &Path) -> Result<Vec<ContentHash>, Failure> {
    let world = open_segmented(dir)?;
    let mut hashes = vec![world.root().content_hash(Area::World)?];
    for segment in world.segments().list() {
        hashes.push(world.segments().with(segment, |world| world.content_hash(Area::World))?);
    }
    let found = world.objects().list("", None, usize::MAX)?.entries.len() as u64;
    world.close()?;
    drop(world);
    let report =
        SegmentedWorld::verify(segmented_in(dir), VerifyDepth::Full, &subject::options(), &[], |_| {})?;
    match (report.is_ok(), found) {
        (true, LARGE) => Ok(hashes),
        _ => Err(format!("{found} objects are found; {:?}", report.findings).into()),
    }
}
