//! The process that is killed while it compacts, archives or restores a world, or in which a call fails, and what must be there
//! afterwards.

mod base;
mod content;
mod judge;
mod place;
mod work;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cg_anvil::new_file::NewFile;
use cg_store::prelude::*;
use cg_store::view::{Area, DamagedRows};

use place::{LARGE, SOURCE, archive_in, chunk_in, open, open_segmented, restored_in, world_in};

pub(crate) use base::{make, make_world};
pub(crate) use content::Content;
pub(crate) use judge::{Left, judge};
pub(crate) use work::Work;

use crate::failure::Failure;
use crate::subject;

/// The most that one step reads or writes.
const PART_BYTES: usize = 32 << 10;

/// The pause before each step.
const PAUSE: Duration = Duration::from_micros(100);

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
    /// Judge what is left of it: the world's content had this hash.
    #[arg(long)]
    hash: Option<String>,
    /// What the world was made from.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The steps that were told of.
    #[arg(long, default_value_t = 0)]
    steps: usize,
    /// The work was done to its end.
    #[arg(long)]
    ended: bool,
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

/// Does the work, and tells of each step; or judges what is left of it.
pub(crate) fn run(orders: &Orders) -> Result<(), Failure> {
    let dir = &*orders.dir;
    if let Some(hash) = &orders.hash {
        let content = Content::of_world(hash.clone(), orders.seed);
        let left = judge(dir, orders.work, &content, orders.steps, orders.ended)?;
        println!("{left:?}");
        return Ok(());
    }
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
