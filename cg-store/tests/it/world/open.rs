//! Opening: every refusal by itself, and that it changes no byte.

use std::process::{Command, Stdio};

use super::*;
use cg_format::frame;
use cg_store::OpenError;
use cg_store::engine::EngineError;
use cg_store::opacity::Keep;
use expect_test::{Expect, expect};

/// A closed world with something in it.
fn closed() -> (Disk, Ids) {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    save(&world, [(ids.at(0, 0, 0), filled(&world, ids.stone))]);
    (disk, ids)
}

/// The error of opening for writing and for reading, which change nothing.
#[track_caller]
fn refusal(disk: &Disk, packs: &[PackManifest]) -> Error {
    let before = disk.path().exists().then(|| disk.files());
    let error = World::builder().packs(packs).options(&options()).open(disk.path()).expect_err("is refused");
    if packs.is_empty() {
        let reading =
            World::builder().options(&options()).open_read_only(disk.path()).expect_err("is refused");
        assert_eq!(reading.to_string(), error.to_string());
    }
    assert!(before == disk.path().exists().then(|| disk.files()), "a refused open changed the directory");
    error
}

/// The same, with what it says.
#[track_caller]
fn refused(disk: &Disk, packs: &[PackManifest], expected: Expect) -> Error {
    let error = refusal(disk, packs);
    let text = error.to_string().replace(&*disk.root().to_string_lossy(), "DIR");
    expected.assert_eq(&text.replace(&std::process::id().to_string(), "PID"));
    error
}

fn edit_world_file(disk: &Disk, edit: impl FnOnce(String) -> String) {
    let path = disk.path().join("world.cg");
    let text = edit(fs::read_to_string(&path).expect("reads"));
    let body: String =
        text.lines().filter(|line| !line.starts_with("crc32c")).map(|line| format!("{line}\n")).collect();
    fs::write(&path, format!("{body}crc32c = {:08x}\n", crc32c::crc32c(body.as_bytes()))).expect("writes");
}

#[test]
fn a_directory_that_is_no_world() {
    let disk = Disk::new();
    let expected = expect!["DIR/world is not a world: it has no file `world.cg`"];
    let error = refused(&disk, &[], expected);
    assert!(matches!(error, Error::Open(OpenError::NotAWorld { .. })));
    fs::create_dir(disk.path()).expect("creates");
    fs::write(disk.path().join("level.dat"), b"another game").expect("writes");
    let error = refused(&disk, &[], expect!["DIR/world is not a world: it has no file `world.cg`"]);
    assert!(matches!(error, Error::Open(OpenError::NotAWorld { .. })));
    let error = World::builder().options(&options()).create(disk.path()).expect_err("is not empty");
    assert!(matches!(error, Error::Open(OpenError::NotEmpty { .. })), "{error}");
    assert_eq!(disk.files().len(), 1);
}

#[test]
fn a_world_that_was_never_finished() {
    let (disk, _) = closed();
    edit_world_file(&disk, |text| text.replace("state = ready", "state = creating"));
    let error = refused(
        &disk,
        &[],
        expect![
            "DIR/world was never finished being created; delete the directory and create the world again"
        ],
    );
    assert!(matches!(error, Error::Open(OpenError::HalfCreated { .. })));
}

#[test]
fn a_world_of_a_newer_release() {
    let (disk, _) = closed();
    edit_world_file(&disk, |text| text.replace("frame_version = 1", "frame_version = 2"));
    let error = refused(
        &disk,
        &[],
        expect![
            "frame_version is 2, and this release knows 1; open the world with the release that wrote it"
        ],
    );
    assert!(matches!(
        error,
        Error::Open(OpenError::NewerFormat { field: "frame_version", found: 2, newest: 1 })
    ));
}

#[test]
fn a_damaged_world_file() {
    let (disk, _) = closed();
    let path = disk.path().join("world.cg");
    let text = fs::read_to_string(&path).expect("reads");
    fs::write(&path, text.replace("state = ready", "state = ruddy")).expect("writes");
    let before = disk.files();
    let error = World::builder().options(&options()).open(disk.path()).expect_err("is refused");
    assert!(matches!(error, Error::Open(OpenError::DamagedWorldFile { .. })), "{error}");
    assert!(before == disk.files());
}

#[test]
fn a_world_without_its_file() {
    let (disk, ids) = closed();
    let copy = Disk::new();
    disk.open(&[]).checkpoint(copy.path(), cg_store::CheckpointFiles::Linked).expect("copies");
    fs::remove_file(disk.path().join("world.cg")).expect("removes");
    refused(
        &disk,
        &[],
        expect![[
            "DIR/world is not a world: it has no file `world.cg`, but a database: copy that file from a checkpoint or an older copy of this world; the rows are in `db`"
        ]],
    );
    fs::copy(copy.path().join("world.cg"), disk.path().join("world.cg")).expect("copies");
    let world = disk.open(&[]);
    assert!(world.load(ids.at(0, 0, 0)).expect("loads").is_some());
    assert_sound(&world);
}

#[test]
fn a_world_without_its_database() {
    let (disk, _) = closed();
    fs::remove_dir_all(disk.path().join("db")).expect("removes");
    let error = World::builder().options(&options()).open(disk.path()).expect_err("is refused");
    assert!(
        matches!(error, Error::Open(OpenError::Engine { source: EngineError::NotAnEngineDir { .. }, .. })),
        "{error}"
    );
    assert!(!disk.path().join("db").exists(), "opening makes no database");
}

#[test]
fn a_world_without_one_of_its_families() {
    let (disk, _) = closed();
    disk.raw().drop_family(Family::Object);
    let error =
        refused(&disk, &[], expect!["DIR/world: DIR/world/db has no family object: not a complete world"]);
    assert!(matches!(
        error,
        Error::Open(OpenError::Engine {
            source: EngineError::MissingFamily { family: Family::Object, .. },
            ..
        })
    ));
}

#[test]
fn a_world_whose_own_rows_are_damaged() {
    // Its names, its limits and the number of its newest commit, in rows that do not check.
    let mill = pack(r#"{ "name": "mill:stone", "components": ["mill:grain"] }"#);
    for row in ["blocks", "limits"] {
        let (disk, _) = closed();
        disk.raw().flip(Family::WorldMeta, row, frame::LEN_BYTES + 3);
        for packs in [&[][..], std::slice::from_ref(&mill)] {
            let error = refusal(&disk, packs);
            assert!(matches!(&error, Error::Corrupt(damage) if damage.key == row.as_bytes()), "{error}");
        }
    }
    let (disk, _) = closed();
    disk.raw().flip(Family::WorldMeta, engine::COMMIT_SEQUENCE_KEY, 9);
    let error = refusal(&disk, &[]);
    assert!(
        matches!(&error, Error::Open(OpenError::Engine { source: EngineError::Corrupt { .. }, .. })),
        "{error}"
    );
    // Its names again, in a row that checks.
    let (disk, _) = closed();
    let world = disk.open(&[]);
    plant(&world, [(cg_format::Space::WorldMeta, b"dimensions".to_vec(), Some(plain(&[2, 0, 0, 0])))]);
    // Closing the world would write the row again.
    world.engine().close().expect("closes");
    drop(world);
    let error = refused(
        &disk,
        &[],
        expect![
            "the world's registry is damaged: row `dimensions`: name list: name count needs 8 bytes and 4 are left (at byte 0); restore it from a backup"
        ],
    );
    assert!(matches!(error, Error::Registry(_)), "{error}");
}

#[test]
fn a_world_that_is_open_already() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    for opened in [
        World::builder().options(&options()).open(disk.path()),
        World::builder().options(&options()).open_read_only(disk.path()),
    ] {
        let error = opened.expect_err("is locked");
        assert!(
            matches!(&error, Error::Open(OpenError::Engine { source: EngineError::Locked { by: Some(by), .. }, .. })
                if *by == std::process::id()),
            "{error}"
        );
        let message = error.to_string();
        assert!(message.contains("is open already: this process has it; use that handle"), "{message}");
    }
    // Any number may read it together, and nobody writes meanwhile.
    drop(world);
    let readers =
        [(); 2].map(|()| World::builder().options(&options()).open_read_only(disk.path()).expect("opens"));
    let error = World::builder().options(&options()).open(disk.path()).expect_err("is locked");
    assert!(
        matches!(&error, Error::Open(OpenError::Engine { source: EngineError::Locked { by: Some(by), .. }, .. })
            if *by == std::process::id()),
        "{error}"
    );
    drop(readers);
    drop(disk.open(&[]));
}

/// Not a test by itself: the second process of the test below.
#[test]
#[ignore = "run by another test, in a process of its own"]
fn hold_a_world_open() {
    let dir = std::env::var_os("CG_TEST_WORLD").expect("the directory");
    let world = World::builder().options(&options()).open(dir).expect("opens");
    println!("\nis open");
    // Until it is killed.
    loop {
        world.flush().expect("flushes");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn a_world_that_another_process_has_open_until_it_dies() {
    use std::io::BufRead as _;
    let (disk, ids) = closed();
    let mut other = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--ignored", "--exact", "--nocapture", "world::open::hold_a_world_open"])
        .env("CG_TEST_WORLD", disk.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let lines = std::io::BufReader::new(other.stdout.take().expect("is piped")).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "is open"), "the other process opened the world");
    let error = World::builder().options(&options()).open(disk.path()).expect_err("is locked");
    let by = other.id();
    other.kill().expect("is killed");
    other.wait().expect("is gone");
    assert!(
        matches!(&error, Error::Open(OpenError::Engine { source: EngineError::Locked { by: Some(found), .. }, .. })
            if *found == by),
        "{error}"
    );
    let world = disk.open(&[]);
    assert!(world.load(ids.at(0, 0, 0)).expect("loads").is_some());
    assert_sound(&world);
}

/// Nobody could write what a world that is only read has accepted.
#[test]
fn a_world_that_is_only_read_accepts_nothing_to_be_written_later() {
    let disk = Disk::new();
    let limits = cg_store::StoreLimits { batch_bytes: 3000, ..cg_store::StoreLimits::default() };
    let world = World::builder()
        .options(&WorldOptions { limits, ..options() })
        .create(disk.path())
        .expect("is created");
    let ids = Ids::register(&world);
    save(&world, [(ids.at(0, 0, 0), filled(&world, ids.stone))]);
    drop(world);
    let fast = WorldOptions { durability: Durability::Fast, ..options() };
    let world = World::builder().options(&fast).open_read_only(disk.path()).expect("opens");
    let last = world.last_commit();
    for durability in
        [Durability::Fast, Durability::Balanced, Durability::Process, Durability::Safe, Durability::SafeBatch]
    {
        // One batch, and many.
        for count in [1, 60] {
            let refused = world.transaction_at(durability, |tx| {
                for x in 0..count {
                    tx.save(ids.at(x, 0, 0), filled(&world, ids.glass));
                }
                Ok::<_, Error>(())
            });
            let is_refused = matches!(refused, Err(Error::Engine(EngineError::OpenedReadOnly)));
            assert!(is_refused, "{durability:?}, {count} chunks: {refused:?}");
        }
    }
    let shown = world.load(ids.at(0, 0, 0)).expect("loads");
    assert_eq!(shown.as_deref(), Some(&filled(&world, ids.stone)));
    assert_eq!((world.load(ids.at(1, 0, 0)).expect("loads"), world.last_commit()), (None, last));
    assert_sound(&world);
    world.close().expect("there is nothing to be written");
}

/// A copy of a world that was killed, whose log holds commits that the floor promises; and where its log is.
fn killed() -> (Disk, Ids, PathBuf) {
    let (disk, ids) = closed();
    let world = disk.open(&[]);
    save(&world, [(ids.at(1, 0, 0), filled(&world, ids.glass))]);
    world.flush().expect("syncs");
    let killed = Disk::new();
    copy_dir(&disk.path(), &killed.path());
    let logs =
        fs::read_dir(killed.path().join("db")).expect("lists").map(|entry| entry.expect("lists").path());
    let newest = logs.filter(|path| path.extension().is_some_and(|end| end == "log")).max();
    (killed, ids, newest.expect("there is a log"))
}

#[test]
fn a_world_that_lost_synced_commits() {
    let (disk, ids, log) = killed();
    let bytes = fs::read(&log).expect("reads");
    fs::remove_file(&log).expect("removes");
    let error = refusal(&disk, &[]);
    let Error::Open(OpenError::Engine { source: EngineError::LostCommits { floor, found }, .. }) = error
    else {
        panic!("{error}")
    };
    assert_eq!(floor.get(), found.get() + 1);

    // What is left is shown to who asks for that, and the log may come back.
    let accepting = WorldOptions { accept_lost_commits: true, opacity: Keep::AsStored, ..options() };
    let before = disk.files();
    let rest = World::builder().options(&accepting).open_read_only(disk.path()).expect("is accepted");
    let incarnation = rest.identity().incarnation;
    assert!(rest.load(ids.at(0, 0, 0)).expect("loads").is_some());
    assert_eq!((rest.load(ids.at(1, 0, 0)).expect("loads"), rest.last_commit()), (None, found));
    drop(rest);
    assert!(before == disk.files());
    fs::write(&log, bytes).expect("writes");
    let world = World::builder().options(&options()).open_read_only(disk.path()).expect("is whole");
    assert!(world.load(ids.at(1, 0, 0)).expect("loads").is_some());
    drop(world);

    // Accepted for good, it is another life: the numbers of the lost commits are given out again.
    fs::remove_file(&log).expect("removes");
    let world = World::builder().options(&accepting).open(disk.path()).expect("is accepted");
    assert_ne!(world.identity().incarnation, incarnation);
    // Its opacity map is not trusted any more.
    let last = world.last_commit();
    assert_eq!(last, found.next());
    let incarnation = world.identity().incarnation;
    drop(world);
    let world = World::builder().options(&accepting).open(disk.path()).expect("nothing is lost any more");
    assert_eq!((world.identity().incarnation, world.last_commit()), (incarnation, last));
    assert_sound(&world);
}

#[test]
fn reading_changes_no_byte() {
    let (disk, ids) = closed();
    let before = disk.files();
    {
        let world = World::builder().options(&options()).open_read_only(disk.path()).expect("opens");
        assert!(world.load(ids.at(0, 0, 0)).expect("loads").is_some());
        assert_eq!(Ids::of(&world).stone, ids.stone);
        assert_sound(&world);
        world.content_hash(cg_store::view::Area::World).expect("hashes");
        let error = world.transaction(|tx| {
            tx.save(ids.at(0, 0, 0), filled(&world, ids.air));
            Ok::<_, Error>(())
        });
        assert!(matches!(error, Err(Error::Engine(EngineError::OpenedReadOnly))), "{error:?}");
        for refused in [
            world.registry().register_blocks(["game:new"]).map(drop),
            world.opacity().fold(1).map(drop),
            world.opacity().rebuild().map(drop),
            world.flush(),
        ] {
            assert!(matches!(refused, Err(Error::Engine(EngineError::OpenedReadOnly))), "{refused:?}");
        }
        assert_eq!(world.catalog().block_id("game:new"), None);
        assert!(!world.quarantine().chunk(ids.at(0, 0, 0)).expect("is sound"));
        world.close().expect("closes");
    }
    assert!(before == disk.files());
}

fn pack(blocks: &str) -> PackManifest {
    let text = format!(
        r#"{{ "pack": "mill", "version": "1", "namespaces": ["mill"],
            "components": [{{ "name": "mill:grain", "size": 4 }}], "blocks": [{blocks}] }}"#
    );
    PackManifest::from_json(&text).expect("a manifest")
}

#[test]
fn packs_that_do_not_fit_change_no_byte() {
    let stone = pack(r#"{ "name": "mill:stone", "components": ["mill:grain"] }"#);
    let mut narrower = stone.clone();
    narrower.components[0].size = cg_registry::Size::Fixed(2);
    let disk = Disk::new();
    drop(disk.create(std::slice::from_ref(&stone)));
    // A chunk that uses it, so that the catalog cannot be all there is.
    let world = disk.open(std::slice::from_ref(&stone));
    let id = world.catalog().block_id("mill:stone").expect("offered");
    let overworld = world.registry().register_dimension("game:overworld").expect("registers");
    let at = ChunkAt::new(overworld, ChunkPos::constant(0, 0, 0));
    save(&world, [(at, filled(&world, id))]);
    drop(world);
    let plan = World::builder()
        .packs(std::slice::from_ref(&narrower))
        .options(&options())
        .plan(disk.path())
        .expect("plans");
    assert!(!plan.is_accepted());
    let before = disk.files();
    let error = World::builder()
        .packs(std::slice::from_ref(&narrower))
        .options(&options())
        .open(disk.path())
        .expect_err("is refused");
    let Error::Open(OpenError::NeedsPlan { report }) = &error else { panic!("{error}") };
    assert_eq!(*report, plan.report());
    assert!(report.contains("mill:grain"), "{report}");
    assert!(before == disk.files(), "a refused open changed the directory");
    drop(disk.open(std::slice::from_ref(&stone)));

    // Nor does a world come to be whose packs do not fit.
    let mut twin = stone.clone();
    twin.pack = "windmill".into();
    let elsewhere = Disk::new();
    let error = World::builder()
        .packs(&[stone, twin])
        .options(&options())
        .create(elsewhere.path())
        .expect_err("is refused");
    assert!(matches!(error, Error::Open(OpenError::NeedsPlan { .. })), "{error}");
    assert!(!elsewhere.path().exists(), "nothing was created");
}

#[test]
fn a_checkpoint_is_a_world_of_its_own() {
    let (disk, ids) = closed();
    let world = disk.open(&[]);
    let (a, b) = (ids.at(0, 0, 0), ids.at(0, 0, 1));
    let [late] = world.registry().register_blocks(["game:late"]).expect("registers");
    save(&world, [(b, filled(&world, late))]);
    let copy = Disk::new();
    world.checkpoint(copy.path(), cg_store::CheckpointFiles::Linked).expect("copies");
    let hash = world.content_hash(cg_store::view::Area::World).expect("hashes");
    save(&world, [(a, filled(&world, ids.glass))]);
    let error = world.checkpoint(copy.path(), cg_store::CheckpointFiles::Linked).expect_err("holds a world");
    assert!(matches!(error, Error::Open(OpenError::NotEmpty { .. })), "{error}");

    // Read while the original plays on.
    let before = copy.files();
    let reader = World::builder().options(&options()).open_read_only(copy.path()).expect("opens");
    assert_eq!(
        (reader.identity().uuid, reader.identity().incarnation),
        (world.identity().uuid, world.identity().incarnation)
    );
    assert_eq!(reader.content_hash(cg_store::view::Area::World).expect("hashes"), hash);
    assert_eq!(reader.catalog().block_id("game:late"), Some(late));
    assert_sound(&reader);
    save(&world, [(b, filled(&world, ids.glass))]);
    assert_eq!(reader.content_hash(cg_store::view::Area::World).expect("hashes"), hash);
    drop(reader);
    assert!(before == copy.files());

    // Played on, it is another life of the same world, and stays that one.
    let second = copy.open(&[]);
    assert_eq!(second.identity().uuid, world.identity().uuid);
    assert_ne!(second.identity().incarnation, world.identity().incarnation);
    save(&second, [(a, filled(&second, ids.air))]);
    let incarnation = second.identity().incarnation;
    drop(second);
    let second = copy.open(&[]);
    assert_eq!(second.identity().incarnation, incarnation);
    assert_eq!(second.load(a).expect("loads").as_deref(), Some(&filled(&second, ids.air)));
    assert_eq!(world.load(a).expect("loads").as_deref(), Some(&filled(&world, ids.glass)));
    assert_sound(&second);
    assert_sound(&world);
}

#[test]
fn a_checkpoint_that_cannot_be_made_leaves_nothing_behind() {
    let (disk, _) = closed();
    let reader = World::builder().options(&options()).open_read_only(disk.path()).expect("opens");
    let copy = Disk::new();
    reader
        .checkpoint(copy.path(), cg_store::CheckpointFiles::Linked)
        .expect_err("an engine opened for reading writes none");
    assert!(!copy.path().exists());
    drop(reader);
    let world = disk.open(&[]);
    world.close().expect("closes");
    let error = world.checkpoint(copy.path(), cg_store::CheckpointFiles::Linked).expect_err("is closed");
    assert!(matches!(error, Error::Closed), "{error}");
    assert!(!copy.path().exists());
}

#[test]
fn the_file_of_another_world_is_refused() {
    let (disk, _) = closed();
    let (other, _) = closed();
    let uuid = disk.open(&[]).identity().uuid;
    let own = std::fs::read(disk.path().join("world.cg")).expect("reads");
    std::fs::copy(other.path().join("world.cg"), disk.path().join("world.cg")).expect("copies");
    let error = refusal(&disk, &[]);
    let Error::Open(OpenError::OtherWorld { file, rows, .. }) = &error else { panic!("{error}") };
    assert_eq!((*file, *rows), (other.open(&[]).identity().uuid, uuid));
    assert_eq!(
        error.to_string(),
        format!(
            "{}/world.cg is of world {file}, and the rows in db are of world {uuid}: bring back the `world.cg` of world {uuid} from a checkpoint or a copy of it",
            disk.path().display()
        )
    );
    std::fs::write(disk.path().join("world.cg"), own).expect("writes");
    assert_sound(&disk.open(&[]));
}

#[test]
fn a_world_of_earlier_drafts_gets_its_own_number_when_it_is_opened_for_writing() {
    let (disk, _) = closed();
    let (other, _) = closed();
    disk.raw().delete(Family::WorldMeta, "world");
    let own = std::fs::read(disk.path().join("world.cg")).expect("reads");
    let reader = World::builder().options(&options()).open_read_only(disk.path()).expect("opens");
    drop(reader);
    std::fs::copy(other.path().join("world.cg"), disk.path().join("world.cg")).expect("copies");
    let reader = World::builder().options(&options()).open_read_only(disk.path()).expect("nothing tells");
    drop(reader);
    std::fs::write(disk.path().join("world.cg"), own).expect("writes");
    drop(disk.open(&[]));
    std::fs::copy(other.path().join("world.cg"), disk.path().join("world.cg")).expect("copies");
    let error = refusal(&disk, &[]);
    assert!(matches!(error, Error::Open(OpenError::OtherWorld { .. })), "{error}");
}

#[test]
fn without_its_floor_a_world_is_read_and_written_once_that_is_accepted() {
    let advice = "; it says which commits were synced, so that missing ones are noticed: bring it back from a copy that was made since the world was last written, or go on without it by `cg accept-loss`";
    for is_there in [false, true] {
        let (disk, _) = closed();
        let hash = disk.open(&[]).content_hash(cg_store::view::Area::World).expect("hashes");
        let floor = disk.path().join("db/DURABLE");
        let problem = if is_there {
            std::fs::write(&floor, [7; 128]).expect("writes");
            "neither slot matches its checksum"
        } else {
            std::fs::remove_file(&floor).expect("removes");
            "the file is missing"
        };
        let wanted = format!("file DURABLE at byte 0 is damaged: {problem}{advice}");
        let before = disk.files();
        let reader = World::builder().options(&options()).open_read_only(disk.path()).expect("opens");
        assert_eq!(reader.content_hash(cg_store::view::Area::World).expect("hashes"), hash);
        let incarnation = reader.identity().incarnation;
        let report = reader.verify(cg_store::verify::VerifyDepth::Full, |_| ()).expect("verifies");
        let found: Vec<_> = report.findings.iter().map(|finding| finding.what.as_str()).collect();
        assert_eq!(found, [wanted.as_str()]);
        drop(reader);
        let error =
            World::builder().options(&options()).open(disk.path()).expect_err("nothing says what is lost");
        assert_eq!(error.to_string(), format!("{}: {wanted}", disk.path().display()));
        assert!(before == disk.files(), "a refused open changed the directory");
        let accepting = WorldOptions { accept_lost_commits: true, ..options() };
        let world = World::builder().options(&accepting).open(disk.path()).expect("is accepted");
        assert_ne!(world.identity().incarnation, incarnation);
        assert_sound(&world);
        drop(world);
        assert_sound(&disk.open(&[]));
    }
}
