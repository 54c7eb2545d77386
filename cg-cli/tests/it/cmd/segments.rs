//! `cg segments`

use cg_layers::{SegmentOptions, SegmentedWorld};
use cg_store::prelude::*;
use tempfile::TempDir;

use super::{run, text};

/// A segmented world of three segments, each with one chunk.
fn sample() -> TempDir {
    let dir = TempDir::new().expect("a temporary directory");
    let world = SegmentedWorld::create(dir.path().join("world"), &[], &SegmentOptions::default());
    let world = world.expect("an empty directory");
    let names = Registration {
        blocks: vec![BlockOffer::new(Name::new("game:stone").expect("a name"))],
        dimensions: vec![Name::new("game:overworld").expect("a name")],
        ..Registration::default()
    };
    world.register(&names).expect("registers");
    for x in [-1, 0, 100] {
        let at = ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0));
        let saved = world.transaction(at, |tx| {
            let chunk = Chunk::filled(BlockId::new(0), &tx.catalog().current_schema());
            tx.save(at, chunk.expect("registered"));
            Ok::<_, cg_store::Error>(())
        });
        saved.expect("saves");
    }
    world.close().expect("closes");
    dir
}

#[test]
fn segments_are_listed_compacted_and_deleted() {
    let dir = sample();
    let world = dir.path().join("world");
    let listed = "segment -1 0 0 of game:overworld\nsegment 0 0 0 of game:overworld\nsegment 3 0 0 of game:overworld\n";
    let list = ["segments", "list", text(&world)];
    assert_eq!(run(&list).good(), format!("{listed}3 segments of 32 chunks per side\n"));
    assert_eq!(run(&["verify", text(&world.join("segments/0.3.0.0"))]).code, 0, "a segment is a world");
    let of = |verb, more: &[&'static str]| {
        let words = ["segments", verb, text(&world), "--segment", "-1", "0", "0"];
        run(&words.iter().copied().chain(more.iter().copied()).collect::<Vec<_>>())
    };
    assert_eq!(of("compact", &[]).good(), "segment -1 0 0 of game:overworld compacted\n");
    let refused = of("delete", &[]);
    let expected = "cg: segment -1 0 0 of dimension 0 would be deleted with everything in it; nothing was changed, run it again with --yes\n";
    assert_eq!((refused.code, refused.err.as_str()), (2, expected));
    assert_eq!(of("delete", &["--yes"]).good(), "segment -1 0 0 of game:overworld deleted\n");
    assert_eq!(run(&[&list[..], &["--json"]].concat()).json()["segments"].as_array().map(Vec::len), Some(2));
    let missing = of("delete", &["--yes"]);
    assert_eq!(
        (missing.code, missing.err.as_str()),
        (4, "cg: segment -1 0 0 of dimension 0 is not stored\n")
    );
}

#[test]
fn a_world_that_is_not_segmented_is_refused() {
    let dir = TempDir::new().expect("a temporary directory");
    let path = dir.path().join("world");
    World::builder().create(&path).expect("creates").close().expect("closes");
    let said = run(&["segments", "list", text(&path)]);
    let expected = format!("cg: {} is no segmented world: it has no directory `root`\n", text(&path));
    assert_eq!((said.code, said.err), (4, expected));
}

#[test]
fn a_merge_that_an_earlier_version_did_not_finish_is_told() {
    let dir = sample();
    let path = dir.path().join("world");
    let root = World::builder().open(path.join("root")).expect("a world");
    let written = root.transaction(|tx| {
        tx.set_property(Property::Named(Name::new(":promotion")?), Some(vec![2]));
        Ok::<_, Error>(())
    });
    written.expect("writes");
    root.close().expect("closes");
    drop(root);
    let said = run(&["segments", "list", text(&path)]);
    let expected = "cg: the root has a merge into several segments that an earlier version began and did not finish; open the world once with the version that wrote it, then again with this one\n";
    assert_eq!((said.code, said.err.as_str()), (1, expected));
}
