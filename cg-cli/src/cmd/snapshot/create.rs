//! `cg snapshot create`

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use cg_format::codec::Codec;
use cg_snapshot::file::FileOptions;
use cg_snapshot::{CaptureOptions, Contents, Region, Snapshot, capture};

use super::picture::MapArg;
use super::watched::Watched;
use super::{About, limit_bytes};
use crate::args::{BoxArg, DimensionArg, WrittenWorldArg};
use crate::output::{Failure, Outcome, Output, bytes_text, counted, grouped};
use crate::shown::shown;

/// Keep a box of blocks as it is now, with components, side data and entities. Writes.
///
/// JSON: `{"name","created_ms","dimension","min":[X,Y,Z],"max":[X,Y,Z],"sections","present","unique","bytes","entities","stored_bytes"}`,
/// and with --map `"map":FILE`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    world: WrittenWorldArg,
    /// The snapshot's name; the world must not keep one of that name.
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    area: BoxArg,
    #[command(flatten)]
    dimension: DimensionArg,
    /// Keep blocks alone: no components, no side data, no entities.
    #[arg(long)]
    blocks_only: bool,
    #[command(flatten)]
    map: MapArg,
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let area = args.area.get("run `cg snapshot create` once for each box, with a name of its own")?;
    let area = area.ok_or_else(|| Failure::usage("say which box: --box X0 Y0 Z0 X1 Y1 Z1"))?;
    args.map.check()?;
    let world = args.world.open_for_writing(out)?;
    if world.snapshots().open(&args.name)?.is_some() {
        return Err(cg_store::Error::SnapshotExists { name: args.name.clone() }.into());
    }
    let region = Region::new(args.dimension.find(&world.catalog())?, area);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let options = CaptureOptions {
        name: args.name.clone(),
        created_ms: now.as_millis() as u64,
        contents: if args.blocks_only { Contents::BLOCKS } else { Contents::ALL },
    };
    let progress = out.progress_of("sections captured", area.chunks().count() as u64);
    let snapshot = world.read_view(|view| {
        let source = Watched { source: view, progress: &progress };
        capture(&source, view.catalog(), region, &options).map_err(Failure::failed)
    });
    progress.finish_and_clear();
    let snapshot = snapshot?;
    args.map.check_size(&snapshot)?;
    let bytes = packed(&snapshot, limit_bytes)?;
    world.snapshots().save(&args.name, &bytes)?;
    world.flush()?;
    world.close()?;
    let map = args.map.draw(&snapshot, out).map_err(|failure| {
        let name = shown(&args.name);
        let what = format!(
            "snapshot `{name}` is kept, but was not drawn: {failure}; `cg snapshot show --map` draws it"
        );
        Failure::Known(failure.code(), what)
    })?;
    out.print(&About { map, ..About::new(snapshot.info(), &args.name, bytes.len() as u64) })?;
    Ok(Outcome::Good)
}

/// The snapshot as it is kept: by Zstandard, or by LZ4 if the few bytes of Zstandard would not let a reader take the memory that it needs,
/// which `limit_bytes` bounds by the stored bytes.
fn packed(snapshot: &Snapshot, limit_bytes: impl Fn(u64) -> u64) -> Result<Vec<u8>, Failure> {
    let by = |codec| snapshot.to_bytes(&FileOptions { codec }).map_err(Failure::failed);
    let small = by(Codec::Zstd)?;
    let needed = snapshot.memory_bytes() as u64 + 4 * snapshot.info().section_count;
    if 2 * needed > limit_bytes(small.len() as u64) { by(Codec::Lz4) } else { Ok(small) }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, dimension, min: [x0, y0, z0], max: [x1, y1, z1], .. } = self;
        let name = shown(name);
        writeln!(f, "{name}: {dimension}, {x0} {y0} {z0} to {x1} {y1} {z1}")?;
        let (sections, present, unique) =
            (counted(self.sections, "section"), grouped(self.present), grouped(self.unique));
        let (raw, stored) = (bytes_text(self.bytes), bytes_text(self.stored_bytes));
        let entities =
            if self.entities == 1 { "1 entity".into() } else { grouped(self.entities) + " entities" };
        writeln!(f, "  {sections}, {present} there, {unique} different; {entities}; {raw}, stored {stored}")?;
        self.map.iter().try_for_each(|map| writeln!(f, "  drawn: {map}"))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use cg_format::chunk::Chunk;
    use cg_format::{BlockBox, BlockId, BlockPos, ChunkAt, Limits};
    use cg_registry::{BlockOffer, Catalog, Name, Registration};
    use cg_snapshot::file::SnapshotFile;
    use cg_snapshot::memory::Memory;
    use cg_snapshot::{SnapshotError, Unverifiable};

    use super::*;

    /// A hundred sections that differ, of 60 KB each that are nearly all the same byte.
    fn compressible() -> Snapshot {
        let mut catalog = Catalog::new();
        let name = |text| Name::new(text).expect("a name");
        let registration = Registration {
            blocks: vec![BlockOffer::new(name("game:stone"))],
            dimensions: vec![name("game:arena")],
            sides: vec![name("game:light")],
            ..Registration::default()
        };
        catalog.register(&registration).expect("new names");
        let dimension = catalog.dimension("game:arena").expect("registered");
        let light = catalog.side_kind("game:light").expect("registered");
        let mut host = Memory::new(&catalog);
        let area = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(1599, 15, 15));
        for (number, pos) in area.chunks().iter().enumerate() {
            let mut chunk = Chunk::filled(BlockId::new(0), &catalog.current_schema()).expect("known");
            let mut data = vec![0; 60_000];
            data[0] = number as u8;
            chunk.set_side(light, data);
            host.insert(ChunkAt::new(dimension, pos), chunk);
        }
        let region = Region::new(dimension, area);
        capture(&host, &catalog, region, &CaptureOptions::named("light")).expect("captured")
    }

    fn read(bytes: &[u8], limit_bytes: u64) -> Result<Snapshot, SnapshotError> {
        SnapshotFile::open(Cursor::new(bytes), Limits::new(limit_bytes))?.load(Unverifiable::Fail)
    }

    #[test]
    fn what_is_kept_can_be_read_within_what_its_length_allows() {
        let snapshot = compressible();
        let by = |codec| snapshot.to_bytes(&FileOptions { codec }).expect("nothing is lost");
        let (small, fast) = (by(Codec::Zstd), by(Codec::Lz4));
        // As readers have it, without the gibibyte that they take for any file.
        let limit = |stored_bytes: u64| stored_bytes * 256;
        let refused = read(&small, limit(small.len() as u64)).expect_err("or this shows nothing").to_string();
        let needed = snapshot.info().unique_bytes;
        let said = format!("snapshot index: all sections needs {needed} bytes of memory, the limit leaves ");
        assert!(refused.starts_with(&said), "{refused}");
        let kept = packed(&snapshot, limit).expect("nothing is lost");
        assert!(kept == fast, "{} bytes, {} by LZ4, {} by Zstandard", kept.len(), fast.len(), small.len());
        assert_eq!(read(&kept, limit(kept.len() as u64)).expect("readable"), snapshot);
        let kept = packed(&snapshot, limit_bytes).expect("nothing is lost");
        assert!(kept == small, "where the gibibyte is enough");
    }
}
