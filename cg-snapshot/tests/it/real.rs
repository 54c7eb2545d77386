//! Every schematic of the shared worlds against what another decoder found in it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

use cg_snapshot::schem::{SchemLimits, Schematic};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The folder of the shared worlds: `$CG_WORLDS`, or `../shared/worlds` beside the workspace.
///
/// `None` when it is not there, after saying so loudly; a CI run has to have it.
pub(crate) fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("CG_WORLDS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/worlds"), PathBuf::from);
    if folder.join("TRUTH.json").is_file() {
        return Some(folder);
    }
    let message = format!("no worlds in {}: set CG_WORLDS to the folder of TRUTH.json", folder.display());
    assert!(std::env::var_os("CI").is_none(), "{message}");
    eprintln!("\n*** NOT TESTED: {message} ***\n");
    None
}

/// The figures of a schematic under the names that `TRUTH.json` gives them.
fn figures(schematic: &Schematic) -> Value {
    let blocks = schematic.blocks().expect("blocks");
    let states: BTreeMap<_, _> = blocks.states().map(|(_, state, count)| (state, count)).collect();
    let count = |ids: Vec<String>| {
        let mut counts = BTreeMap::<String, u64>::new();
        for id in ids {
            *counts.entry(id).or_default() += 1;
        }
        counts
    };
    json!({
        "version": schematic.version(),
        "data_version": schematic.data_version(),
        "dims": schematic.size(),
        "offset": schematic.offset(),
        "palette_size": blocks.palette_len(),
        "decoded": blocks.cells(),
        "states": states,
        "block_entities": count(schematic.block_entities().map(|entity| entity.id).collect()),
        "entities": count(schematic.entities().map(|entity| entity.id).collect()),
        "has_biomes": schematic.biomes().is_some(),
    })
}

/// The states in the file's order, and those at the places that the truth names.
fn check_cells(path: &Path, schematic: &Schematic, truth: &Value) {
    let blocks = schematic.blocks().expect("blocks");
    let palette: BTreeMap<_, _> = blocks.states().map(|(index, state, _)| (index, state)).collect();
    let mut cells = vec![0; blocks.cells() as usize];
    let mut reader = blocks.open(File::open(path).expect("it opens")).expect("it was read before");
    // In parts of an odd size.
    for part in cells.chunks_mut(9_973) {
        assert_eq!(reader.read(part).expect("it was read before"), part.len());
    }
    assert_eq!((reader.left(), reader.read(&mut [0]).expect("the end")), (0, 0));
    let [width, _, length] = schematic.size().map(u64::from);
    for sample in truth["samples_xyz_state"].as_array().expect("samples") {
        let at = |axis: usize| sample[axis].as_u64().expect("a place");
        let cell = at(0) + at(2) * width + at(1) * width * length;
        assert_eq!(palette[&cells[cell as usize]], sample[3], "{}: {sample}", path.display());
    }
    if let Some(expected) = truth["ordered_states_sha256"].as_str() {
        let mut hash = Sha256::new();
        let mut before = "";
        for cell in &cells {
            hash.update(before);
            hash.update(palette[cell]);
            before = "\n";
        }
        let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, expected, "{}", path.display());
    }
}

#[test]
fn every_schematic_is_what_the_other_decoder_says() {
    let Some(worlds) = folder() else { return };
    let text = std::fs::read_to_string(worlds.join("TRUTH.json")).expect("readable");
    let truth: BTreeMap<String, Value> = serde_json::from_str(&text).expect("JSON");
    let mut files = 0;
    for (file, truth) in &truth {
        let is_read = matches!(truth["version"].as_u64(), Some(2 | 3)) && file.starts_with("schem/");
        if !is_read {
            continue;
        }
        let path = worlds.join(file);
        let start = Instant::now();
        let schematic =
            Schematic::read(File::open(&path).expect("it opens"), &SchemLimits::default()).expect(file);
        println!("{file}: {:?}", start.elapsed());
        let figures = figures(&schematic);
        for (name, found) in figures.as_object().expect("an object") {
            assert_eq!(*found, truth[name], "{file}: {name}");
        }
        assert!(schematic.unknown_fields().is_empty(), "{file}: {:?}", schematic.unknown_fields());
        if truth["volume"].as_u64().expect("a volume") <= 10_000_000 {
            check_cells(&path, &schematic, truth);
        }
        let size = schematic.size().map(f64::from);
        for entity in schematic.entities() {
            let is_near = entity.pos.iter().zip(size).all(|(at, side)| (-1.0..=side + 1.0).contains(at));
            assert!(is_near, "{file}: {entity:?}");
        }
        files += 1;
    }
    assert_eq!(files, 37);
}

#[test]
fn a_thousand_million_blocks_take_no_more_memory_than_ten() {
    let Some(worlds) = folder() else { return };
    let path = worlds.join("schem/v3_nucleation_stone_cube_1e9_blocks.schem");
    let open = || File::open(&path).expect("it opens");
    let mut schematic = None;
    let counted = allocation_counter::measure(|| {
        schematic = Some(Schematic::read(open(), &SchemLimits::default()).expect("it is whole"));
    });
    assert!(counted.bytes_max < 1 << 20, "{} bytes", counted.bytes_max);
    let schematic = schematic.expect("measured");
    let blocks = schematic.blocks().expect("blocks");
    assert_eq!(blocks.states().collect::<Vec<_>>(), [(1, "minecraft:stone", 1_000_000_000)]);
    // Sixteen layers, as an import takes them: the buffer is the caller's.
    let mut slab = vec![0; 16 * 1000 * 1000];
    let counted = allocation_counter::measure(|| {
        let mut cells = blocks.open(open()).expect("it was read before");
        assert_eq!(cells.read(&mut slab).expect("it was read before"), slab.len());
    });
    assert!(counted.bytes_max < 1 << 20, "{} bytes", counted.bytes_max);
    assert!(slab.iter().all(|index| *index == 1));
}
