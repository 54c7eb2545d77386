//! Every input that is committed for a fuzz target goes through that target's own check, in the budget of one input.

use std::fs;
use std::path::{Path, PathBuf};

#[path = "../../../fuzz/src/archive.rs"]
mod archive;
#[path = "../../../fuzz/src/budget.rs"]
mod budget;
#[path = "../../../fuzz/src/chunk.rs"]
mod chunk;
#[path = "../../../fuzz/src/cluster.rs"]
mod cluster;
#[path = "../../../fuzz/src/column.rs"]
mod column;
#[path = "../../../fuzz/src/delta.rs"]
mod delta;
#[path = "../../../fuzz/src/entity.rs"]
mod entity;
#[path = "../../../fuzz/src/frame.rs"]
mod frame;
#[path = "../../../fuzz/src/intent.rs"]
mod intent;
#[path = "../../../fuzz/src/key.rs"]
mod key;
#[path = "../../../fuzz/src/nbt.rs"]
mod nbt;
#[path = "../../../fuzz/src/object.rs"]
mod object;
#[path = "../../../fuzz/src/opacity.rs"]
mod opacity;
#[path = "../../../fuzz/src/overlay.rs"]
mod overlay;
#[path = "../../../fuzz/src/pack.rs"]
mod pack;
#[path = "../../../fuzz/src/parts.rs"]
mod parts;
#[path = "../../../fuzz/src/record.rs"]
mod record;
#[path = "../../../fuzz/src/region.rs"]
mod region;
#[path = "../../../fuzz/src/registry.rs"]
mod registry;
#[path = "../../../fuzz/src/schem.rs"]
mod schem;
#[path = "../../../fuzz/src/snapshot.rs"]
mod snapshot;
#[path = "../../../fuzz/src/sync.rs"]
mod sync;
#[path = "../../../fuzz/src/trace.rs"]
mod trace;

/// A target's check: whether the bytes are what the target decodes.
type Check = fn(&[u8]) -> bool;

/// Every target in name order.
const TARGETS: [(&str, Check); 21] = [
    ("archive_read", archive::check),
    ("chunk_decode", chunk::check),
    ("cluster_decode", cluster::check),
    ("column_decode", column::check),
    ("delta_decode", delta::check),
    ("entity_decode", entity::check),
    ("frame_open", frame::check),
    ("intent_decode", intent::check),
    ("key_decode", key::check),
    ("nbt_decode", nbt::check),
    ("object_decode", object::check),
    ("opacity_decode", opacity::check),
    ("overlay_decode", overlay::check),
    ("pack_decode", pack::check),
    ("record_decode", record::check),
    ("region_read", region::check),
    ("registry_decode", registry::check),
    ("schem_read", schem::check),
    ("snapshot_decode", snapshot::check),
    ("sync_decode", sync::check),
    ("trace_decode", trace::check),
];

/// Targets whose corpus the tests of their own crate replay: `cg-ffi/tests/it/programs.rs`.
const OF_THEIR_CRATES: [&str; 1] = ["ffi_calls"];

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz").join(name)
}

/// The files and folders of a folder, in name order.
#[track_caller]
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("listed").path()).collect();
    paths.sort();
    paths
}

fn names(folder: &Path) -> Vec<String> {
    let stem = |path: PathBuf| path.file_stem().expect("a name").to_string_lossy().into_owned();
    entries(folder).into_iter().map(stem).collect()
}

#[test]
fn every_target_is_replayed_and_has_a_corpus() {
    let mut replayed = [&TARGETS.map(|(name, _)| name)[..], &OF_THEIR_CRATES].concat();
    replayed.sort_unstable();
    assert_eq!(names(&folder("fuzz_targets")), replayed);
    assert_eq!(names(&folder("corpus")), replayed);
    let manifest = fs::read_to_string(folder("Cargo.toml")).expect("readable");
    for name in replayed {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} is no program of fuzz/Cargo.toml");
    }
}

#[test]
fn every_committed_input_keeps_the_laws_of_its_target() {
    for (target, check) in TARGETS {
        let mut taken = 0;
        for path in entries(&folder("corpus").join(target)) {
            let bytes = fs::read(&path).expect("readable");
            // A test that fails says only what it prints.
            println!("{}", path.display());
            let is_taken = budget::within(|| check(&bytes));
            taken += usize::from(is_taken);
            let name = path.file_name().expect("a name").to_string_lossy();
            assert_eq!(is_taken, !name.starts_with("bad_"), "what is refused is named bad_: {name}");
        }
        assert!(taken > 0, "nothing of what is committed for {target} decodes");
    }
}

#[test]
fn the_budget_is_enforced() {
    let spent = |bytes: usize| {
        std::panic::catch_unwind(|| budget::within(|| std::hint::black_box(vec![1_u8; bytes]).len()))
    };
    assert_eq!(spent(1 << 20).ok(), Some(1 << 20));
    let message = spent(65 << 20).expect_err("too much");
    let message = message.downcast_ref::<String>().expect("a formatted message");
    assert_eq!(message, "one input took 68157440 bytes of memory, more than 67108864");
}
