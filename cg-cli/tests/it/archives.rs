//! Archives of all sample worlds, restores that fail at each of their parts and go on, and archives that lie.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cg_format::Limits;
use cg_format::archive::{ArchiveReader, ArchiveWriter, Head};
use cg_format::codec::Codec;
use cg_format::key::Family;
use cg_store::engine::{EngineError, MemEngine};
use cg_store::error::ArchiveError;
use cg_store::prelude::*;
use cg_store::view::{Area, Copied, DamagedRows};
use expect_test::{Expect, expect};

use crate::copies::{Failing, Fails, PARTS, rows};

fn archive(world: &World) -> Vec<u8> {
    let mut out = Vec::new();
    let archived = World::builder().archive(world, &mut out, DamagedRows::Refuse, |_| {});
    let archived = archived.expect("it is sound");
    assert_eq!((archived.written_bytes, archived.damaged_count), (out.len() as u64, 0));
    out
}

/// Restores into rows. Returns the number of loads too.
fn restore(
    archive: &[u8],
    rows: &Arc<MemEngine>,
    part_bytes: u64,
    fails: Option<(u64, Fails)>,
) -> (Result<Copied, ArchiveError>, u64) {
    let engine = Failing { rows: Arc::clone(rows), part_bytes, loads: Arc::default(), fails };
    let restored = World::builder().restore_over(archive, &engine, |_| {});
    (restored, engine.loads.load(Ordering::Relaxed))
}

fn open(rows: Arc<MemEngine>) -> Result<World, Error> {
    let whole = Failing { rows, part_bytes: 1 << 20, loads: Arc::default(), fails: None };
    World::builder().open_read_only_over(whole)
}

fn assert_is_restored(world: &World, name: &Path) {
    let there = Arc::<MemEngine>::default();
    let (restored, _) = restore(&archive(world), &there, 1 << 20, None);
    restored.unwrap_or_else(|error| panic!("{}: {error}", name.display()));
    assert!(rows(&*there) == rows(&*world.engine()), "{}", name.display());
    let hash = |world: &World| world.content_hash(Area::World).expect("hashes");
    assert_eq!(hash(&open(there).expect("opens")), hash(world), "{}", name.display());
}

fn assert_goes_on_after_each_part(world: &World, name: &Path) {
    let bytes = archive(world);
    let expected = rows(&*world.engine());
    let len_bytes: u64 = expected.iter().map(|(_, key, row)| (key.len() + row.len()) as u64).sum();
    let part_bytes = len_bytes.div_ceil(PARTS);
    let (whole, parts) = restore(&bytes, &Arc::default(), part_bytes, None);
    whole.unwrap_or_else(|error| panic!("{}: {error}", name.display()));
    for part in 1..=parts {
        for fails in [Fails::Before, Fails::After] {
            let there = Arc::<MemEngine>::default();
            let (failed, loads) = restore(&bytes, &there, part_bytes, Some((part, fails)));
            let lost = matches!(
                failed,
                Err(ArchiveError::Store(Error::Engine(EngineError::Unavailable { message })))
                    if message == format!("part {part} is lost")
            );
            assert!(lost && loads == part, "{}: part {part} {fails:?}", name.display());
            let is_whole = (part, fails) == (parts, Fails::After);
            assert!(
                is_whole || open(Arc::clone(&there)).is_err(),
                "part {part} {fails:?}: it is half a world"
            );
            let (restored, _) = restore(&bytes, &there, part_bytes, None);
            let restored = restored.unwrap_or_else(|error| panic!("part {part} {fails:?}: {error}"));
            assert_eq!(restored.is_continued, (part, fails) != (1, Fails::Before), "part {part} {fails:?}");
            assert!(rows(&*there) == expected, "{}: part {part} {fails:?}", name.display());
        }
    }
}

/// Checks archive and restore of a sample. Called where the samples are imported, which takes longer than both.
pub(crate) fn assert_is_archived(world: &World, name: &Path, with_failures: bool) {
    assert_is_restored(world, name);
    if with_failures {
        assert_goes_on_after_each_part(world, name);
    }
}

/// A small world.
fn small() -> World {
    let world = World::builder().in_memory().expect("a world");
    world.registry().register_blocks(["game:stone"]).expect("it is new");
    let put = world.transaction(|tx| {
        tx.put_object("avatar/7", b"red hat".to_vec())?;
        tx.set_property(Property::of_key(b"game:weather").ok_or("a name")?, Some(b"rain".to_vec()));
        Ok::<_, Box<dyn std::error::Error>>(())
    });
    put.expect("commits");
    world
}

/// The error of an archive. Afterwards the rows are no world.
#[track_caller]
fn refused(bytes: &[u8]) -> ArchiveError {
    let there = Arc::<MemEngine>::default();
    let (restored, _) = restore(bytes, &there, 1 << 20, None);
    assert!(open(there).is_err(), "it is half a world");
    restored.expect_err("it is no archive of a world")
}

#[test]
fn no_cut_and_no_flipped_byte_makes_a_world() {
    let good = archive(&small());
    for at in 0..good.len() {
        assert!(matches!(refused(&good[..at]), ArchiveError::Fault(_)), "cut at {at}");
        let mut bad = good.clone();
        bad[at] ^= 0x55;
        assert!(matches!(refused(&bad), ArchiveError::Fault(_)), "changed at {at}");
    }
}

type Row = (Family, Vec<u8>, Vec<u8>);

/// The archive of a small world with another head and other rows, whose checksums are right.
fn lying(change: impl FnOnce(&mut Head, &mut Vec<Row>)) -> Vec<u8> {
    let good = archive(&small());
    let mut reader = ArchiveReader::open(&good[..], Limits::default()).expect("sound");
    let (mut head, mut rows) = (reader.head().clone(), Vec::new());
    while let Some(page) = reader.next_page().expect("sound") {
        rows.extend(page.iter().map(|(family, key, row)| (family, key.to_vec(), row.to_vec())));
    }
    change(&mut head, &mut rows);
    rows.sort_by(|one, other| (one.0.number(), &one.1).cmp(&(other.0.number(), &other.1)));
    let mut out = Vec::new();
    let mut writer = ArchiveWriter::new(Codec::None, &head, &mut out).expect("fits");
    for (family, key, row) in rows {
        writer.row(family, &key, &row, &mut out).expect("in order");
    }
    writer.finish(&mut out).expect("fits");
    out
}

#[test]
fn an_archive_that_lies_is_no_world() {
    assert!(restore(&lying(|_, _| {}), &Arc::default(), 1 << 20, None).0.is_ok());
    let check = |bytes: &[u8], expected: Expect| expected.assert_eq(&refused(bytes).to_string());
    let without = |key: &'static [u8]| {
        lying(move |_, rows| {
            let before = rows.len();
            rows.retain(|(_, its, _)| its != key);
            assert_eq!(rows.len(), before - 1);
        })
    };
    check(
        &without(b"limits"),
        expect![
            "the archive holds no world that this release could open: the row of the world's limits is missing"
        ],
    );
    check(
        &lying(|head, _| head.signature = Some("two\nlines".into())),
        expect![[
            r#"the archive holds no world that this release could open: `two\nlines` is no signature; it is 1 to 256 bytes without control characters"#
        ]],
    );
    for key in ["state", "identity"] {
        let bytes = lying(|_, rows| rows.push((Family::WorldMeta, key.into(), vec![1])));
        let said = refused(&bytes).to_string();
        let ends = format!(": row `{key}`, which each world has for itself");
        assert!(
            said.starts_with("the archive holds no world that this release could open: in the part"),
            "{said}"
        );
        assert!(said.ends_with(&ends), "{said}");
    }
    check(
        &without(b"renames"),
        expect![
            "the archive holds no world that this release could open: the world's registry is damaged: row `renames` is missing; restore it from a backup; restore it from a backup"
        ],
    );
    // Frames have random numbers, and so have their checksums.
    let damaged = |bytes: &[u8], what: &str| {
        let said = refused(bytes).to_string();
        let begins = format!(
            "the archive holds no world that this release could open: {what} is damaged (WorldMeta row "
        );
        assert!(said.starts_with(&begins) && said.contains(": frame: checksum is 0x"), "{said}");
    };
    damaged(&lying(|head, _| head.commit_row[12] ^= 1), "the row of the newest commit");
    let limits = lying(|_, rows| {
        let row = rows.iter_mut().find(|(_, key, _)| key == b"limits").expect("each world has it");
        *row.2.last_mut().expect("it has bytes") ^= 1;
    });
    damaged(&limits, "the row of the world's limits");
}

#[test]
fn an_archive_whose_world_no_open_could_hold_is_refused_before_it_is_read() {
    let good = archive(&small());
    let reader = ArchiveReader::open(&good[..], Limits::default()).expect("sound");
    let restored = |row_count: u8, mib: usize| {
        let (mut out, row) = (Vec::new(), vec![0; mib << 20]);
        let mut writer = ArchiveWriter::new(Codec::Zstd, reader.head(), &mut out).expect("fits");
        for number in 0..row_count {
            writer.row(Family::WorldMeta, &[b'z', number], &row, &mut out).expect("in order");
        }
        writer.row(Family::Object, b"z", &row, &mut out).expect("in order");
        writer.finish(&mut out).expect("fits");
        let there = Arc::<MemEngine>::default();
        let (restored, _) = restore(&out, &there, 1 << 20, None);
        (restored.expect_err("it is no archive of a world").to_string(), rows(&*there).len())
    };
    let (said, there) = restored(9, 32);
    expect!["the archive holds no world that this release could open: its names and other rows of `worldMeta` take more than 268435456 bytes"].assert_eq(&said);
    assert!(there < 9, "{there} rows were loaded");
    // Rows of other families take no room of theirs.
    let (said, _) = restored(7, 32);
    expect![
        "the archive holds no world that this release could open: the row of the world's limits is missing"
    ]
    .assert_eq(&said);
}

#[test]
fn a_restore_of_one_part_goes_on_too_and_is_no_world_before() {
    let world = World::builder().in_memory().expect("is made");
    world.objects().put("a", *b"value").expect("commits");
    let bytes = archive(&world);
    let (whole, parts) = restore(&bytes, &Arc::default(), 1 << 20, None);
    whole.expect("restores");
    assert_eq!(parts, 2, "the rows, and the row that makes them a world");
    for (part, fails) in [(1, Fails::After), (2, Fails::Before)] {
        let there = Arc::<MemEngine>::default();
        let (failed, _) = restore(&bytes, &there, 1 << 20, Some((part, fails)));
        assert!(matches!(failed, Err(ArchiveError::Store(Error::Engine(EngineError::Unavailable { .. })))));
        let rows_there =
            Failing { rows: Arc::clone(&there), part_bytes: 1 << 20, loads: Arc::default(), fails: None };
        let opened = World::builder().over(rows_there);
        assert!(
            matches!(opened, Err(Error::Open(cg_store::OpenError::HalfCreated { .. }))),
            "part {part} {fails:?}: {opened:?}"
        );
        let (restored, _) = restore(&bytes, &there, 1 << 20, None);
        assert!(restored.expect("goes on").is_continued, "part {part} {fails:?}");
        assert_eq!(
            open(there).expect("opens").objects().get("a").expect("reads").map(|it| it.bytes.to_vec()),
            Some(b"value".to_vec())
        );
    }
}
