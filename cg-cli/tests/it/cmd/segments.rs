//! `cg segments`

use std::path::Path;

use cg_format::frame::{Codec, Draft, Stamp};
use cg_format::{Space, key};
use cg_layers::{Arenas, Base, SegmentOptions, SegmentedWorld};
use cg_store::engine::{Batch, Level};
use cg_store::prelude::*;
use cg_tiering::GameTick;
use tempfile::TempDir;

use super::{run, text};

/// A segmented world of three segments, each with one chunk.
pub(super) fn sample() -> TempDir {
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
fn a_command_of_one_world_says_what_it_was_given() {
    let dir = sample();
    let world = dir.path().join("world");
    let path = text(&world);
    let expected = format!(
        "cg: {path} is a segmented world, and this command is of one world: name {path}/root, or one in {path}/segments; archive, checkpoint, compact, hash, info, registry check, restore, segments and verify are of all of them\n"
    );
    for command in [
        &["tiers", path][..],
        &["registry", "list", path],
        &["tiers", "demote", path, "--after", "30d"],
        &["object", "list", path],
    ] {
        let refused = run(command);
        assert_eq!((refused.code, &refused.err), (2, &expected), "{command:?}");
    }
    assert_eq!(run(&["info", text(&world.join("segments/0.3.0.0"))]).code, 0);
}

#[test]
fn all_worlds_of_a_segmented_one_are_compacted() {
    let dir = sample();
    let world = dir.path().join("world");
    for round in 1..=3_u8 {
        let open = SegmentedWorld::open(&world, &[], &SegmentOptions::default()).expect("opens");
        let at = ChunkAt::new(Dimension::new(0), ChunkPos::constant(0, 0, 0));
        let mut state = u32::from(round);
        let bytes = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        });
        let bytes: Vec<u8> = bytes.take(100_000).collect();
        open.transaction(at, |tx| tx.put_object("large", bytes)).expect("puts");
        open.close().expect("closes");
    }
    let compact = |more: &[&'static str]| run(&[&["compact", text(&world)], more].concat());
    let said = compact(&["--json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    let report = said.json();
    assert!(report["freed_bytes"].as_u64().expect("a number") > 150_000, "{report}");
    assert_eq!((&report["segments"], &report["failed"]), (&3.into(), &serde_json::json!([])));
    assert!(compact(&[]).good().ends_with("of the root and 3 segments\n"));
    let refused = compact(&["--dim", "game:overworld", "--box", "0", "0", "0", "1", "1", "1"]);
    let expected = "cg: --box is of a world that is not segmented; a segment of WORLD/segments is one\n";
    assert_eq!((refused.code, refused.err.as_str()), (2, expected));

    std::fs::write(world.join("segments/0.0.0.0/db/DAMAGED"), "object damaged in 000011.sst\n")
        .expect("writes");
    assert_eq!(compact(&["--json"]).json()["skipped_damaged"], 1);
    let said = run(&["segments", "compact", text(&world), "--segment", "0", "0", "0"]);
    let expected = "segment 0 0 0 of game:overworld compacted\nthe files of 1 kind of row were left as they are, because one of them is damaged; `cg verify` tells which\n";
    assert_eq!((said.code, said.out.as_str()), (1, expected));
    std::fs::remove_dir_all(world.join("segments/0.3.0.0")).expect("removes");
    let said = compact(&["--json"]);
    assert_eq!(said.code, 1);
    let failed = said.json()["failed"][0].to_string();
    assert!(failed.starts_with("\"segment 3 0 0 of dimension 0: "), "{failed}");
}

/// The segmented world, and one entity in it that is in the segment at 0.
fn with_a_cow() -> (TempDir, EntityId) {
    let dir = sample();
    let world =
        SegmentedWorld::open(dir.path().join("world"), &[], &SegmentOptions::default()).expect("opens");
    let names =
        Registration { entities: vec![Name::new("game:cow").expect("a name")], ..Registration::default() };
    world.register(&names).expect("registers");
    let cow = EntityId::from_bytes([7; 16]);
    let at = ChunkAt::new(Dimension::new(0), ChunkPos::constant(0, 0, 0));
    let position = EntityPos::new(at.dimension, at.pos.min_block(), [0.5; 3]).expect("a place");
    let put = world.transaction(at, |tx| {
        tx.put_entity(cow, Entity::new(EntityTypeId::new(0), Owner::Chunk(at), position));
        Ok::<_, cg_store::Error>(())
    });
    put.expect("puts");
    world.close().expect("closes");
    (dir, cow)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("is made");
    for entry in std::fs::read_dir(from).expect("lists") {
        let entry = entry.expect("lists");
        let to = to.join(entry.file_name());
        if entry.file_type().expect("is there").is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).expect("copies");
        }
    }
}

#[test]
fn a_segmented_world_is_verified_as_a_whole() {
    let (dir, cow) = with_a_cow();
    let path = dir.path().join("world");
    let verify = |more: &[&str]| run(&[&["verify", text(&path)], more].concat());
    let sound = verify(&[]).good();
    assert!(
        sound.contains("verified the root and 3 segments\n") && sound.ends_with("no problem found\n"),
        "{sound}"
    );
    assert_eq!(verify(&["--json"]).json()["segments"], 3);
    let found = |more: &[&str]| {
        let run = verify(more);
        assert_eq!(run.code, 1, "{}", run.err);
        run.out
    };

    // The cow crosses, and its old segment is put back from a copy of before.
    let (home, before) = (path.join("segments/0.0.0.0"), dir.path().join("before"));
    copy(&home, &before);
    let world = SegmentedWorld::open(&path, &[], &SegmentOptions::default()).expect("opens");
    let to = ChunkAt::new(Dimension::new(0), ChunkPos::constant(100, 0, 0));
    let mut entity = world.entity(cow).expect("reads").expect("is there");
    entity.owner = Owner::Chunk(to);
    world.transfer_entities([(cow, entity)]).expect("crosses");
    world.close().expect("closes");
    drop(world);
    assert_eq!(verify(&[]).code, 0);
    std::fs::remove_dir_all(&home).expect("removes");
    copy(&before, &home);
    let said = found(&[]);
    let expected = "segment 0 0 0 of dimension 0 and its root are not of one history: the segment does not have the commit ";
    assert!(said.contains(expected), "{said}");
    let refused = run(&["segments", "accept", text(&path)]);
    assert_eq!(refused.code, 2, "{}", refused.err);
    let accepted = run(&["segments", "accept", text(&path), "--yes", "--json"]).json();
    assert_eq!(accepted, serde_json::json!({"doubled": [format!("entity {cow}")], "moved": [], "gone": []}));
    assert!(verify(&[]).good().ends_with("no problem found\n"));

    // A segment that is lost, one in another's place, and what is none.
    std::fs::remove_dir_all(&home).expect("removes");
    copy(&path.join("segments/0.3.0.0"), &path.join("segments/0.9.0.0"));
    std::fs::create_dir(path.join("segments/notes")).expect("is made");
    let said = found(&["--quick"]);
    assert!(said.contains("segments/0.0.0.0: "), "{said}");
    assert!(said.contains("segment 9 0 0 of dimension 0"), "{said}");
    assert!(said.contains("segments/notes is no segment; it may be moved away\n"), "{said}");
    copy(&path.join("segments/0.3.0.0"), &home);
    let said = found(&["--quick"]);
    assert!(said.contains("segments/0.0.0.0: ") && said.contains("segment 3 0 0"), "{said}");
}

/// A pool of one arena that changes a chunk, with its row spoiled if that is wanted.
fn make_pool<S: Base>(path: &Path, base: S, at: ChunkAt, is_spoiled: bool) {
    let options = WorldOptions::default();
    let arenas = Arenas::create(path, base, &options).expect("an empty directory");
    let arena = arenas.lease("ada", GameTick::new(1)).expect("leases");
    let written = arena.transaction(|tx| {
        tx.delete(at);
        Ok::<_, cg_store::Error>(())
    });
    written.expect("writes");
    if is_spoiled {
        let mut batch = Batch::new();
        let nonsense = Draft::plain(Codec::None, 0, |out| out.push(0xee));
        batch.put(Space::ChunkL0, key::overlay_chunk(1, at), nonsense, Stamp::Commit);
        arenas.engine().commit(batch, &[], Level::Power).expect("the disk takes it");
    }
}

#[test]
fn arenas_are_verified_with_their_base() {
    let dir = sample();
    let path = dir.path().join("world");
    let world = SegmentedWorld::open(&path, &[], &SegmentOptions::default()).expect("opens");
    let at = ChunkAt::new(Dimension::new(0), ChunkPos::constant(100, 0, 0));
    let elsewhere = dir.path().join("elsewhere");
    make_pool(&path.join("duels"), world.clone(), at, false);
    make_pool(&elsewhere, world.clone(), at, true);
    world.close().expect("closes");
    drop(world);
    let sound = run(&["verify", text(&path)]).good();
    assert!(sound.contains("verified 1 directory of arenas\n"), "{sound}");
    let said = run(&["verify", text(&path), "--arenas", text(&elsewhere)]);
    assert_eq!(said.code, 1, "{}", said.err);
    let named = format!("{}: chunkl0 0000000000000001", text(&elsewhere));
    assert!(said.out.starts_with(&named), "{}", said.out);
    assert!(said.out.contains("arena 0: chunk 100, 0, 0 of dimension 0 is damaged"), "{}", said.out);
    assert!(said.out.contains("verified 2 directories of arenas\n"), "{}", said.out);
    let command = said.out.lines().find_map(|line| line.strip_prefix("  cg ")).expect("it is printed");
    let expected = format!(
        "overlay reset-damaged {} {} --arena 0 --dimension game:overworld --box 1600 0 0 1615 15 15 --yes",
        text(&path),
        text(&elsewhere)
    );
    assert_eq!(command, expected);
    let done = run(&command.split(' ').collect::<Vec<_>>()).good();
    assert_eq!(done, "1 damaged chunk of arena 0 reset to the world's\n");
    run(&["verify", text(&path), "--arenas", text(&elsewhere)]).good();

    // The arenas of a world that is not segmented, and what is none.
    let alone = dir.path().join("alone");
    let world = World::builder().create(&alone).expect("creates");
    world.registry().register_dimension("game:overworld").expect("registers");
    let pool = dir.path().join("pool");
    make_pool(&pool, world.clone(), at, false);
    world.close().expect("closes");
    drop(world);
    let verify = |arenas: &Path| run(&["verify", text(&alone), "--arenas", text(arenas), "--json"]);
    assert_eq!(verify(&pool).json()["arenas"], 1);
    let refused = verify(&elsewhere);
    assert_eq!(refused.code, 1);
    assert!(refused.out.contains("\"ok\":false") && refused.out.contains("elsewhere"), "{}", refused.out);
    let none = verify(&alone);
    assert_eq!(none.code, 1);
    assert!(none.out.contains("it has no directory `overlay`"), "{}", none.out);
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
