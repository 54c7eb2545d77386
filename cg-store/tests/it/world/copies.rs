//! Copies of a world in other engines and directories: whole, continued, refused.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use cg_engine::conformance::remote::{Network, Remote, Server};
use cg_engine::conformance::{Call, Counting};
use cg_store::Identity;
use cg_store::engine::{ALL_KEYS, CommitSeq, EngineError, Family, Guard, Readable, Reopen, Space, delegate};
use cg_store::view::{Area, Copied};

use super::row_digests::written_in_every_way;
use super::*;

type Rows = BTreeMap<(&'static str, Vec<u8>), Vec<u8>>;

/// All rows but those that each place has for itself.
fn rows(view: &dyn Readable) -> Rows {
    let mut rows = Rows::new();
    for family in Family::ALL {
        view.try_scan(family, ALL_KEYS, |key, row| {
            let is_own = family == Family::WorldMeta && [&b"identity"[..], b"state"].contains(&key);
            if !is_own {
                rows.insert((family.name(), key.to_vec()), row.to_vec());
            }
            Ok::<_, EngineError>(())
        })
        .expect("scans");
    }
    rows
}

fn on_a_server() -> impl Fn() -> Remote {
    let (server, network) = (Server::new(), Arc::new(Network::new(Duration::ZERO, 0)));
    move || Remote::take(&server, &network).expect("it answers")
}

/// A world with objects of 13 MB.
fn large(dir: &Path) -> World {
    let world = World::builder().create(dir).expect("the directory is empty");
    for n in 0..13_u8 {
        let mut state = u32::from(n);
        let bytes: Vec<u8> = (0..1_000_000)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        let put = world.transaction(|tx| tx.put_object(format!("object {n}"), bytes));
        put.expect("commits");
    }
    world
}

#[track_caller]
fn assert_is_copy(copy: &World, original: &Rows, hash: cg_store::verify::ContentHash, of: Identity) {
    assert_eq!(copy.identity(), of);
    assert!(rows(&*copy.engine()) == *original);
    assert_eq!(copy.content_hash(Area::World).expect("hashes"), hash);
    assert!(copy.verify(VerifyDepth::Full, |_| {}).expect("verifies").is_ok());
}

#[test]
fn a_copy_there_and_back_has_the_same_rows() {
    let folder = tempfile::tempdir().expect("a directory");
    let [here, back] = ["here", "back"].map(|name| folder.path().join(name));
    let original = written_in_every_way(&here);
    let (identity, hash) = (original.identity(), original.content_hash(Area::World).expect("hashes"));
    let expected = rows(&*original.engine());

    let open = on_a_server();
    let mut shown = Vec::new();
    let copied =
        World::builder().copy_over(&original, &open(), |so_far| shown.push(*so_far)).expect("copies");
    assert_eq!(copied.row_count, expected.len() as u64 - 1, "the row of the newest commit is not counted");
    assert_eq!((copied.commit, copied.is_continued), (original.last_commit(), false));
    assert_eq!(shown.last(), Some(&copied));
    assert_eq!(open().last_commit(), original.last_commit());
    let there = World::builder().open_read_only_over(open()).expect("opens");
    assert_is_copy(&there, &expected, hash, identity);

    World::builder().copy_to(&there, &back, |_| {}).expect("copies");
    drop(there);
    let returned = World::builder().open_read_only(&back).expect("opens");
    assert_is_copy(&returned, &expected, hash, identity);
    let has_own = |world: &World, key: &str| {
        world.engine().get(Space::WorldMeta, key.as_bytes()).expect("reads").is_some()
    };
    assert!(!has_own(&returned, "identity") && !has_own(&returned, "state"));
    drop(returned);

    // Each place goes on by itself.
    let writers = [World::builder().open(&back), World::builder().open_over(open())];
    for writer in writers {
        let writer = writer.expect("opens");
        assert_eq!(writer.identity().uuid, identity.uuid);
        assert_ne!(writer.identity().incarnation, identity.incarnation);
        let put = writer.transaction(|tx| tx.put_object("later", vec![1]));
        assert!(put.expect("commits").seq > original.last_commit());
        writer.close().expect("closes");
    }
    let again = World::builder().open(&back).expect("its logs are of its history");
    assert_eq!(again.objects().get("later").expect("reads").expect("is there").bytes.as_ref(), [1]);
}

/// Copies until the copy is whole, and stops each call after its first part.
fn copied_in_parts(copy: impl Fn(&mut dyn FnMut(&Copied)) -> Result<Copied, Error>) -> (usize, Copied) {
    for stops in 0.. {
        let mut parts = 0;
        let mut stop = |_: &Copied| {
            parts += 1;
            assert!(parts < 2, "stopped");
        };
        let called = catch_unwind(AssertUnwindSafe(|| copy(&mut stop)));
        if let Ok(copied) = called {
            return (stops, copied.expect("copies"));
        }
        assert!(stops < 100, "no part is kept");
    }
    unreachable!()
}

/// A power cut may leave files of an unfinished copy without what was not synced. The original has it all.
#[test]
fn an_unfinished_copy_whose_files_are_damaged_is_made_anew() {
    let folder = tempfile::tempdir().expect("a directory");
    let [here, there] = ["here", "there"].map(|name| folder.path().join(name));
    let original = large(&here);
    let expected = rows(&*original.engine());
    let copy = |there: &Path| World::builder().copy_to(&original, there, |_| {});
    for of_name in ["CURRENT", "MANIFEST"] {
        let stopped = catch_unwind(AssertUnwindSafe(|| {
            World::builder().copy_to(&original, &there, |_| panic!("stopped"))
        }));
        assert!(stopped.is_err(), "the first part is there");
        let files = fs::read_dir(there.join("db")).expect("lists").map(|entry| entry.expect("lists").path());
        let is_damaged =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(of_name));
        let damaged = files.filter(is_damaged).map(|path| fs::write(path, "").expect("writes")).count();
        assert!(damaged > 0, "{of_name}");
        copy(&there).unwrap_or_else(|error| panic!("{of_name}: {error}"));
        let world = World::builder().open_read_only(&there).expect("opens");
        assert!(rows(&*world.engine()) == expected, "{of_name}");
        drop(world);
        fs::remove_dir_all(&there).expect("removes");
    }
}

#[test]
fn a_copy_that_stops_after_any_part_is_continued() {
    let folder = tempfile::tempdir().expect("a directory");
    let [here, there] = ["here", "there"].map(|name| folder.path().join(name));
    let original = large(&here);
    let expected = rows(&*original.engine());
    let is_half = |opened: Result<World, Error>| {
        let opened = opened.map(drop);
        assert!(matches!(opened, Err(Error::Open(OpenError::HalfCreated { .. }))), "{opened:?}");
    };

    let open = on_a_server();
    let (stops, copied) = copied_in_parts(|progress| {
        let copied = World::builder().copy_over(&original, &open(), progress);
        assert!(copied.is_ok());
        copied
    });
    assert!((1..=4).contains(&stops), "{stops}");
    assert!(copied.is_continued && copied.row_count < expected.len() as u64 / 2, "{copied:?}");
    assert!(rows(&open()) == expected);
    // The call that made it may have ended before the rows were durable.
    let (whole, counter) = Counting::over(open());
    let again = World::builder().copy_over(&original, &whole, |_| {}).expect("it is there");
    assert_eq!((again.row_count, again.is_continued), (0, true));
    assert_eq!(counter.calls().of(Call::Sync), 1);
    drop(whole);
    World::builder().open_over(open()).expect("opens");

    let (stops, copied) = copied_in_parts(|progress| World::builder().copy_to(&original, &there, progress));
    assert!((1..=4).contains(&stops) && copied.is_continued, "{stops} {copied:?}");
    let copy = World::builder().open_read_only(&there).expect("opens");
    assert!(rows(&*copy.engine()) == expected);
    drop(copy);
    let refused = World::builder().copy_to(&original, &there, |_| {}).map(drop);
    assert!(matches!(refused, Err(Error::Open(OpenError::NotEmpty { .. }))), "{refused:?}");

    // Half copies open as no world, and are of one commit of one world.
    let (open, half) = (on_a_server(), folder.path().join("half"));
    for stopped in [
        catch_unwind(AssertUnwindSafe(|| {
            World::builder().copy_over(&original, &open(), |_| panic!("stopped"))
        }))
        .map(drop),
        catch_unwind(AssertUnwindSafe(|| World::builder().copy_to(&original, &half, |_| panic!("stopped"))))
            .map(drop),
    ] {
        assert!(stopped.is_err());
    }
    is_half(World::builder().open_over(open()));
    is_half(World::builder().over(open()));
    is_half(World::builder().open(&half));
    original.transaction(|tx| tx.put_object("newer", vec![])).expect("commits");
    let refused = World::builder().copy_over(&original, &open(), |_| {}).map(drop);
    assert!(
        matches!(&refused, Err(Error::Open(OpenError::HalfCreated { at })) if at.to_string() == open().address()),
        "{refused:?}"
    );
    let refused = World::builder().copy_to(&original, &half, |_| {}).map(drop);
    assert!(matches!(refused, Err(Error::Open(OpenError::HalfCreated { .. }))), "{refused:?}");
    let other = World::builder().create(folder.path().join("other")).expect("the directory is empty");
    let refused = World::builder().copy_to(&other, &half, |_| {}).map(drop);
    assert!(matches!(refused, Err(Error::Open(OpenError::NotEmpty { .. }))), "{refused:?}");
}

#[test]
fn a_copy_needs_an_engine_without_rows_that_loads() {
    let world = World::builder().in_memory().expect("a world");
    let used = MemEngine::new();
    used.commit(Batch::new(), &[], Level::Process).expect("commits");
    let refused = World::builder().copy_over(&world, &used, |_| {}).map(drop);
    assert!(matches!(refused, Err(Error::Open(OpenError::NotEmpty { .. }))), "{refused:?}");
    let refused = World::builder()
        .copy_over(&world, &Plain { engine: MemEngine::new() }, |_| {})
        .expect_err("it has no load");
    assert_eq!(refused.to_string(), "this engine cannot load rows");
}

/// An engine without [`Engine::load`].
#[derive(Debug)]
struct Plain {
    engine: MemEngine,
}

impl Engine for Plain {
    fn commit(&self, batch: Batch, guards: &[Guard], level: Level) -> Result<CommitSeq, EngineError> {
        self.engine.commit(batch, guards, level)
    }

    fn reopening(&self) -> Reopen {
        self.engine.reopening()
    }

    delegate! {
        engine => snapshot sync last_commit batch_count last_synced checkpoint flush compact close failure free_bytes
        caps usage
    }
}

impl Readable for Plain {
    delegate! { engine => get get_many get_slices scan_rows }
}

#[test]
fn rows_that_moved_meanwhile_are_not_lost() {
    let folder = tempfile::tempdir().expect("a directory");
    let original = large(&folder.path().join("here"));
    let ids = Ids::register(&original);
    save(&original, [(ids.at(0, 0, 0), filled(&original, ids.stone))]);
    let open = on_a_server();
    let stopped = catch_unwind(AssertUnwindSafe(|| {
        World::builder().copy_over(&original, &open(), |_| panic!("stopped"))
    }));
    assert!(stopped.is_err());
    // The copy has the chunk in the family of hot rows. It moves to another, which is copied later.
    demote(&original, cg_format::ClusterTier::L1, &[ids.at(0, 0, 0)], false);
    let refused = World::builder().copy_over(&original, &open(), |_| {}).map(drop);
    assert!(matches!(refused, Err(Error::Open(OpenError::HalfCreated { .. }))), "{refused:?}");
}
