//! The nineteen successive saves of one house as snapshots of one place: what is equal is kept once, and what differs
//! between neighbours is what their schematics say.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cg_anvil::schem::{SchemFile, import};
use cg_format::Chunk;
use cg_format::codec::{Codec, Effort, compress};
use cg_snapshot::file::FileOptions;
use cg_snapshot::{CaptureOptions, Region, Snapshot, capture, diff};
use cg_store::prelude::*;

use crate::worlds;

const CORNER: BlockPos = BlockPos::new(-37, 70, 205);
const AIR: &str = "minecraft:air";

/// The names of all saves, the oldest first: `house2.6b` comes after `house2.5` and before `house2.6c`.
fn saves(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder.join("schem/series_house"))
        .expect("a folder")
        .map(|entry| entry.expect("listed").path())
        .collect();
    files.sort_by_key(|path| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let (house, save) = name.trim_start_matches("house").split_once('.').expect("a number and one more");
        let digits = save.trim_end_matches(|it: char| it.is_ascii_alphabetic());
        (house.to_owned(), digits.parse::<u32>().expect("a number"), save[digits.len()..].to_owned())
    });
    files
}

/// The state of each block of a schematic that is not air, as the file says it.
fn states(path: &Path) -> BTreeMap<[i64; 3], String> {
    let schematic = SchemFile::read(path).expect("a schematic").schematic;
    let [width, _, length] = schematic.size().map(usize::from);
    let grid = schematic.blocks().expect("it has blocks");
    let palette: BTreeMap<_, _> = grid.states().map(|(index, name, _)| (index, name.to_owned())).collect();
    let mut cells = vec![0; grid.cells() as usize];
    grid.open(File::open(path).expect("opens")).expect("read before").read(&mut cells).expect("read before");
    let place = |at: usize| [at % width, at / width / length, at / width % length].map(|c| c as i64);
    let named = cells.iter().enumerate().map(|(at, cell)| (place(at), palette[cell].clone()));
    named.filter(|(_, name)| name != AIR).collect()
}

fn differing(a: &BTreeMap<[i64; 3], String>, b: &BTreeMap<[i64; 3], String>) -> BTreeSet<[i64; 3]> {
    a.keys().chain(b.keys()).filter(|at| a.get(*at) != b.get(*at)).copied().collect()
}

#[test]
fn the_saves_of_a_house_share_sections_and_differ_where_their_schematics_do() {
    let Some(folder) = worlds::folder() else { return };
    let files = saves(&folder);
    assert_eq!(files.len(), 19);
    let world = World::builder().in_memory().expect("memory takes it");
    let overworld = world.registry().register_dimension("minecraft:overworld").expect("a name");
    let [air] = world.registry().register_blocks([AIR]).expect("a name");
    let sizes = files.iter().map(|path| SchemFile::read(path).expect("a schematic").schematic.size());
    let [x, y, z] =
        sizes.fold([0; 3], |most: [u16; 3], size| std::array::from_fn(|axis| most[axis].max(size[axis])));
    let [x, y, z] = [x, y, z].map(|side| i64::from(side) - 1);
    let area = BlockBox::new(CORNER, BlockPos::new(CORNER.x + x, CORNER.y + y, CORNER.z + z));

    let schema = world.catalog().current_schema();
    let nothing = Arc::new(Chunk::filled(air, &schema).expect("a block without data"));
    let mut snapshots: Vec<Snapshot> = Vec::new();
    for path in &files {
        // Around a smaller house there is air, not the larger one before it.
        let cleared = world.transaction(|tx| {
            for pos in area.chunks().iter() {
                tx.save(ChunkAt::new(overworld, pos), Arc::clone(&nothing));
            }
            Ok::<_, cg_store::Error>(())
        });
        cleared.expect("it is cleared");
        let schematic = SchemFile::read(path).expect("a schematic");
        import(&schematic, &world, overworld, CORNER, |_| {}).expect("it fits");
        let name = path.file_stem().expect("a name").to_string_lossy();
        let options = CaptureOptions::named(name);
        let region = Region::new(overworld, area);
        let taken = world.read_view(|view| Ok::<_, Error>(capture(view, &world.catalog(), region, &options)));
        snapshots.push(taken.expect("reads").expect("is captured"));
    }

    let mut different = 0;
    let contents: Vec<_> = files.iter().map(|path| states(path)).collect();
    for ((pair, contents), path) in snapshots.windows(2).zip(contents.windows(2)).zip(&files[1..]) {
        let mut changed = BTreeSet::new();
        diff(&pair[0], &pair[1], &mut |change| {
            if change.old != change.new {
                let BlockPos { x, y, z } = change.pos;
                changed.insert([x - CORNER.x, y - CORNER.y, z - CORNER.z]);
            }
        })
        .expect("both are of one place");
        let expected = differing(&contents[0], &contents[1]);
        assert!(changed == expected, "{}: {} and {} blocks", path.display(), changed.len(), expected.len());
        different += usize::from(!changed.is_empty());
    }
    assert!(different > 10, "the house was built on");

    let alone: usize = snapshots.iter().map(Snapshot::memory_bytes).sum();
    let names: usize = snapshots.iter().map(|snapshot| snapshot.names().memory_bytes()).sum();
    let kept: Vec<_> =
        snapshots.iter().flat_map(|snapshot| snapshot.kept().map(|kept| kept.bytes().to_vec())).collect();
    let distinct: HashSet<_> = kept.iter().collect();
    let all_bytes: usize = kept.iter().map(Vec::len).sum();
    let distinct_bytes: usize = distinct.iter().map(|bytes| bytes.len()).sum();
    let files_bytes: u64 = files.iter().map(|path| fs::metadata(path).expect("is there").len()).sum();
    for codec in [Codec::Lz4, Codec::Zstd] {
        let stored = snapshots.iter().map(|it| it.to_bytes(&FileOptions { codec }).expect("sound").len());
        let alone = |bytes: &[u8]| {
            let mut out = Vec::new();
            compress(codec, Effort::Fast, bytes, &mut out);
            out.len().min(bytes.len())
        };
        let (stored, sections) =
            (stored.sum::<usize>(), distinct.iter().map(|bytes| alone(bytes)).sum::<usize>());
        // Groups that end where a section's checksum says so, that snapshots could share whole.
        let mut shown = format!("{codec:?}: {stored} bytes as files, {sections} as different sections alone");
        for one_in in [2, 4, 8] {
            let mut groups = HashSet::new();
            for snapshot in &snapshots {
                let mut group = Vec::new();
                for kept in snapshot.kept() {
                    group.extend_from_slice(kept.bytes());
                    if kept.checksum().is_multiple_of(one_in) || group.len() >= 1 << 16 {
                        groups.insert(std::mem::take(&mut group));
                    }
                }
                groups.insert(group);
            }
            let bytes: usize = groups.iter().map(|group| alone(group)).sum();
            write!(shown, ", {bytes} as {} groups of {one_in}", groups.len()).expect("a text");
        }
        println!("{shown}");
    }
    let mut shared = 0;
    for later in 1..snapshots.len() {
        let (before, rest) = snapshots.split_at_mut(later);
        shared += rest[0].share_with(&before[later - 1]);
    }
    let pairs = snapshots.windows(2).map(|pair| pair[1].memory_beside(&pair[0]));
    let together = snapshots[0].memory_bytes() + pairs.sum::<usize>();
    let names_together: usize = snapshots[0].names().memory_bytes()
        + snapshots.windows(2).map(|pair| pair[1].names().memory_beside(pair[0].names())).sum::<usize>();
    println!("{together} in memory after that, of which names {names_together}");
    println!(
        "{} sections kept, {} different; {all_bytes} bytes, {distinct_bytes} of different ones; {shared} bytes shared \
         with the save before; {alone} in memory before that, of which names {names}; the files take {files_bytes}",
        kept.len(),
        distinct.len(),
    );
    assert!(shared > 0 && distinct.len() < kept.len());
}
