//! A snapshot from above, as a PNG.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cg_format::ChunkAt;
use cg_format::chunk::Chunk;
use cg_map::{Colours, MapOptions, render};
use cg_snapshot::{Place, RestoreJob, RestoreOptions, Snapshot};
use cg_store::World;
use clap::ValueHint;

use crate::output::{Failure, Output, bytes_text, counted};
use crate::picture::{refuse_existing, save_png};

/// Chunks that are written at once into the world that is drawn.
const CHUNKS_AT_ONCE: usize = 1024;

/// Most bytes of memory that a drawing may take.
const MAX_DRAWN_BYTES: u64 = 1 << 30;
/// Bytes of a chunk in the world that is drawn, beside its content.
const CHUNK_BYTES: u64 = 256;

/// Where to draw it, if at all.
#[derive(Debug, clap::Args)]
pub(super) struct MapArg {
    /// Draw the box from above into this PNG, as `cg map` draws a world; it must not exist.
    /// Refused if that would take more than 1 GiB of memory.
    #[arg(long = "map", value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
}

impl MapArg {
    /// Refuses a file that is there: before the work, not after it.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.file.as_deref().map_or(Ok(()), refuse_existing)
    }

    /// Refuses a snapshot that is too large to be drawn, if that was asked for.
    pub(super) fn check_size(&self, snapshot: &Snapshot) -> Result<(), Failure> {
        if self.file.is_some() { refuse_too_large(snapshot) } else { Ok(()) }
    }

    /// Draws the snapshot, if that was asked for; the file's name.
    pub(super) fn draw(&self, snapshot: &Snapshot, out: &Output) -> Result<Option<String>, Failure> {
        let Some(file) = &self.file else { return Ok(None) };
        draw(snapshot, file, out)?;
        Ok(Some(file.display().to_string()))
    }
}

/// A section that is kept once may be at millions of places, and takes memory at each.
fn refuse_too_large(snapshot: &Snapshot) -> Result<(), Failure> {
    let needed_bytes = snapshot.sections().fold(0_u64, |sum, (_, place)| match place {
        Place::Kept(kept) => sum.saturating_add(kept.bytes().len() as u64 + CHUNK_BYTES),
        Place::Absent | Place::Lost => sum,
    });
    if needed_bytes <= MAX_DRAWN_BYTES {
        return Ok(());
    }
    let info = snapshot.info();
    Err(Failure::refused(format!(
        "to draw snapshot `{}` takes {} of memory for {}, more than {}; restore it into a world of its own and draw \
         parts of that with `cg map --box`",
        info.name,
        bytes_text(needed_bytes),
        counted(info.present_count, "section"),
        bytes_text(MAX_DRAWN_BYTES),
    )))
}

/// Puts the snapshot into a world in memory, which is what can be drawn.
fn draw(snapshot: &Snapshot, file: &Path, out: &Output) -> Result<(), Failure> {
    refuse_too_large(snapshot)?;
    let world = World::builder().in_memory()?;
    world.registry().register(&snapshot.registration(&world.catalog()))?;
    let catalog = world.catalog();
    let options = RestoreOptions { entities: false, ..RestoreOptions::default() };
    let mut job = RestoreJob::new(Arc::new(snapshot.clone()), &catalog, options).map_err(Failure::failed)?;
    let region = job.target();
    // A part of a chunk needs a chunk that holds the rest, which lies outside of the picture.
    let whatever = snapshot.names().blocks().find_map(|(_, name)| catalog.block_id(name.as_str()));
    let places = region.sections().zip(snapshot.sections().map(|(_, place)| place));
    let cut = places.filter(|(section, place)| !section.is_whole() && matches!(place, Place::Kept(_)));
    let cut: Vec<ChunkAt> = cut.map(|(section, _)| section.at).collect();
    for some in cut.chunks(CHUNKS_AT_ONCE) {
        world.transaction(|tx| {
            let rest = Arc::new(
                Chunk::filled(whatever.unwrap_or_default(), &catalog.current_schema())
                    .map_err(Failure::failed)?,
            );
            for at in some {
                tx.save(*at, Arc::clone(&rest));
            }
            Ok::<_, Failure>(())
        })?;
    }
    let mut is_more = true;
    while is_more {
        let done =
            world.transaction(|tx| job.run_some(tx, &mut |_| {}, CHUNKS_AT_ONCE).map_err(Failure::failed))?;
        is_more = done.value;
    }
    let options = MapOptions {
        dimension: region.dimension(),
        area: region.area().into(),
        scale_blocks: None,
        legend: true,
        colours: Colours::Blocks,
    };
    let progress = out.progress_of("percent drawn", 100);
    let map = render(&world, &options, |share| progress.set_position((share * 100.0) as u64));
    progress.finish_and_clear();
    let map = map.map_err(Failure::failed)?;
    save_png(&map.image, file).map_err(|error| Failure::io("write", file, &error))
}
