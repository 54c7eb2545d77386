//! Worlds in engines that are places of their own: what each opening finds, refuses and leaves.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cg_engine::conformance::remote::{Network, Remote, Server};
use cg_format::frame::{Codec, Draft, Stamp};
use cg_registry::PackManifest;
use cg_store::engine::{
    ALL_KEYS, Batch, CommitSeq, Engine, EngineError, Family, Level, MemEngine, ReadableExt as _, RocksEngine,
    RocksOptions, Space,
};
use cg_store::error::Location;
use cg_store::prelude::*;

/// A server, opened again and again.
fn on_a_server() -> impl Fn() -> Remote {
    let (server, network) = (Server::new(), Arc::new(Network::new(Duration::ZERO, 0)));
    move || Remote::take(&server, &network).expect("it answers")
}

/// A directory of RocksDB, opened again and again.
fn on_disk(dir: &Path) -> impl Fn() -> RocksEngine {
    let dir = dir.join("db");
    move || {
        let options = RocksOptions::default();
        let open = if dir.exists() { RocksEngine::open } else { RocksEngine::create };
        open(&dir, &options).expect("opens")
    }
}

fn every_opening<E: Engine>(open: impl Fn() -> E) {
    let builder = World::builder;
    let refused = [
        builder().open_over(open()).map(drop),
        builder().open_read_only_over(open()).map(drop),
        builder().plan_over(open()).map(drop),
        builder().salvage_over(open()).map(drop),
    ];
    for refused in refused {
        assert!(
            matches!(&refused, Err(Error::Open(OpenError::NotAWorld { why, .. })) if why == "it has no rows"),
            "{refused:?}"
        );
    }
    assert_eq!(open().last_commit(), CommitSeq::NONE, "a refused open writes nothing");

    let world = builder().create_over(open()).expect("there is nothing");
    let flat = world.registry().register_dimension("game:flat").expect("registers");
    let [stone] = world.registry().register_blocks(["game:stone"]).expect("registers");
    let at = ChunkAt::new(flat, ChunkPos::new(1, 2, 3).expect("inside the world"));
    let chunk = Chunk::filled(stone, &world.catalog().current_schema()).expect("is registered");
    world
        .transaction(|tx| {
            tx.save(at, chunk.clone());
            Ok::<_, Error>(())
        })
        .expect("commits");
    let identity = world.identity();
    assert_eq!(world.directory(), None);
    world.close().expect("closes");
    drop(world);

    let newest = open().last_commit();
    let refused = builder().create_over(open()).map(drop);
    let address = open().address();
    assert!(
        matches!(&refused, Err(Error::Open(OpenError::NotEmpty { at })) if *at == Location::Address(address)),
        "{refused:?}"
    );
    assert_eq!(builder().salvage_over(open()).expect("is sound"), None);

    let packs = [PackManifest::from_json(
        r#"{"pack":"base","version":"1","namespaces":["game"],"blocks":[{"name":"game:dirt"}]}"#,
    )
    .expect("a pack")];
    let plan = builder().packs(&packs).plan_over(open()).expect("reads");
    assert!(plan.is_accepted() && plan.report().contains("game:dirt"), "{}", plan.report());

    let reader = builder().open_read_only_over(open()).expect("opens");
    assert_eq!((reader.identity(), reader.load(at).expect("reads").as_deref()), (identity, Some(&chunk)));
    let refused = reader.transaction(|tx| {
        tx.delete(at);
        Ok::<_, Error>(())
    });
    let refused = refused.map(drop).expect_err("it is read-only");
    assert!(matches!(refused, Error::Engine(EngineError::OpenedReadOnly)), "{refused}");
    let refused =
        reader.checkpoint("nowhere", cg_store::CheckpointFiles::Copied).expect_err("it is read-only");
    assert_eq!(refused.to_string(), "this engine cannot write a checkpoint when opened for reading only");
    reader.close().expect("closes");
    drop(reader);
    assert_eq!(open().last_commit(), newest, "a reader writes nothing");

    let again = builder().open_over(open()).expect("opens");
    assert_eq!((again.identity(), again.load(at).expect("reads").as_deref()), (identity, Some(&chunk)));
}

#[test]
fn every_opening_finds_what_is_there() {
    every_opening(on_a_server());
    let folder = tempfile::tempdir().expect("a directory");
    every_opening(on_disk(folder.path()));
}

/// Writes rows of `worldMeta` with these payloads.
fn put(engine: &dyn Engine, rows: &[(&str, &[u8])]) {
    let mut batch = Batch::new();
    for (key, payload) in rows {
        let draft = Draft::plain(Codec::None, 0, |out| out.extend_from_slice(payload));
        batch.put(Space::WorldMeta, key, draft, Stamp::Commit);
    }
    engine.commit(batch, &[], Level::Process).expect("commits");
}

#[test]
fn a_world_is_created_where_no_row_is() {
    for space in [Space::WorldMeta, Space::ChunkL0, Space::Quarantine] {
        for is_maintenance in [false, true] {
            let engine = MemEngine::new();
            let mut batch = Batch::new();
            batch.put(space, [1], Draft::plain(Codec::None, 0, |_| {}), Stamp::Keep(1));
            let batch = if is_maintenance { batch.maintenance() } else { batch };
            engine.commit(batch, &[], Level::Process).expect("commits");
            let refused = World::builder().create_over(engine).map(drop).expect_err("there is a row");
            assert_eq!(
                refused.to_string(),
                "memory already holds rows; a world is created where there are none"
            );
        }
    }
    let deleted = MemEngine::new();
    deleted.commit(Batch::new(), &[], Level::Process).expect("commits");
    let refused = World::builder().create_over(deleted).map(drop);
    assert!(matches!(refused, Err(Error::Open(OpenError::NotEmpty { .. }))), "{refused:?}");
    let world = World::builder().create_over(MemEngine::new()).expect("there is nothing");
    let refused =
        world.checkpoint("nowhere", cg_store::CheckpointFiles::Linked).expect_err("it has no files");
    assert_eq!(refused.to_string(), "this engine cannot write a checkpoint");
}

#[test]
fn a_world_that_is_being_made_does_not_open() {
    for rows in [&[("limits", &[][..])][..], &[("state", &[1])]] {
        let open = on_a_server();
        put(&open(), rows);
        let before = open().last_commit();
        let refused = [
            World::builder().open_over(open()).map(drop),
            World::builder().open_read_only_over(open()).map(drop),
            World::builder().plan_over(open()).map(drop),
            World::builder().salvage_over(open()).map(drop),
        ];
        for refused in refused {
            let refused = refused.expect_err("it is half").to_string();
            let words = "was never finished being created; delete its rows and create the world again";
            assert!(refused.ends_with(words), "{refused}");
        }
        assert_eq!(open().last_commit(), before);
    }
    // Also one whose identity is there already.
    let open = on_a_server();
    World::builder().create_over(open()).expect("there is nothing").close().expect("closes");
    put(&open(), &[("state", &[1])]);
    for refused in [World::builder().open_over(open()), World::builder().over(open())] {
        let refused = refused.map(drop);
        assert!(matches!(refused, Err(Error::Open(OpenError::HalfCreated { .. }))), "{refused:?}");
    }
    put(&open(), &[("state", &[3])]);
    let refused = World::builder().open_over(open()).map(drop).expect_err("no such state");
    expect_test::expect!["the row of the world's state is damaged (WorldMeta row 7374617465): frame: state is 3, allowed is 1 or 2 (at byte 24); restore it from a checkpoint"].assert_eq(&refused.to_string());
}

#[test]
fn a_copy_becomes_another_world_when_it_is_opened_for_writing() {
    let open = on_a_server();
    let made = World::builder().create_over(open()).expect("there is nothing");
    let original = made.identity();
    made.close().expect("closes");
    put(&open(), &[("state", &[2])]);
    let state = || {
        let mut found = false;
        let view = open();
        view.scan(Family::WorldMeta, ALL_KEYS, |key, _| {
            found |= key == b"state";
            std::ops::ControlFlow::<()>::Continue(())
        })
        .expect("reads");
        found
    };
    let reader = World::builder().open_read_only_over(open()).expect("opens");
    assert_eq!(reader.identity(), original, "who only reads it reads the original");
    drop(reader);
    assert!(state());
    let copy = World::builder().open_over(open()).expect("opens");
    let identity = copy.identity();
    assert_eq!(identity.uuid, original.uuid);
    assert_ne!(identity.incarnation, original.incarnation);
    drop(copy);
    assert!(!state(), "it is a copy no longer");
    let again = World::builder().open_over(open()).expect("opens");
    assert_eq!(again.identity(), identity, "once");
}
