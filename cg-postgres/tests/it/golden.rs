//! A dump of a world in version 1 of the schema, which every release must open.
//!
//! `UPDATE_GOLDEN=1` makes the dump again with `pg_dump`. Until the first release with this crate, a change of version 1
//! makes it again. Later a change of the schema is another version, and this dump stays as it is.

use std::fs;
use std::path::Path;
use std::process::Command;

use cg_format::{BlockBox, BlockPos, ChunkPos, Dimension, LocalPos};
use cg_store::prelude::*;
use cg_store::records::RecordQuery;
use cg_store::verify::VerifyDepth;
use cg_store::view::Area;

use crate::database::{Database, TestWorld, database};
use crate::records::{id, record_at};

/// The name of the world in the dump.
const NAME: &str = "golden_dump";
const HASH: &str = "b2afb4ab5e7326f10e1e2f53de0a2f2427f0f1574054646bf3980ddaedd1ea49";

fn path() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/schema-1.sql")
}

fn register(world: &World) -> (Dimension, [BlockId; 2]) {
    let dimension = world.registry().register_dimension("game:overworld").expect("registers");
    (dimension, world.registry().register_blocks([":air", "game:stone"]).expect("registers"))
}

/// Chunks that are hot, warm and cold, an object, and records in two tables.
fn fill(world: &World) {
    let (dimension, [air, stone]) = register(world);
    let at = |x| ChunkAt::new(dimension, ChunkPos::constant(x, 4, -1));
    let save = |x, cell: u16| {
        let saved = world.transaction(|tx| {
            let mut chunk = tx.new_chunk(air)?;
            let cell = LocalPos::from_index(cell).expect("below 4096");
            chunk.set_block(cell, stone, &tx.catalog().current_schema())?;
            tx.save(at(x), chunk);
            Ok::<_, Error>(())
        });
        saved.expect("saves");
    };
    (0..3).for_each(|x| save(x, 7));
    world.tiers().demote_all(u64::MAX / 2, |_| {}).expect("moves");
    save(1, 9);
    let put = world.transaction(|tx| {
        tx.put_object("key", b"content".to_vec())?;
        for (n, x) in [(1, 10), (2, -300)] {
            tx.put_record(id(n), record_at(dimension, BlockPos::new(x, 64, 3), "game:sign", n as i64));
        }
        Ok::<_, Error>(())
    });
    put.expect("puts");
}

fn dump(database: &Database) {
    let test = database.named(NAME);
    let world = World::builder().create_over(test.create()).expect("begins");
    fill(&world);
    world.close().expect("closes");
    drop(world);
    let base = database.url.split('?').next().unwrap_or_default();
    let address = format!("{base}?target_session_attrs=read-write");
    let dumped = Command::new("pg_dump")
        .args(["--schema", &format!("cg_{NAME}"), "--no-owner", "--no-privileges", "--inserts", &address])
        .output()
        .expect("pg_dump starts");
    assert!(dumped.status.success(), "{}", String::from_utf8_lossy(&dumped.stderr));
    let dumped = String::from_utf8(dumped.stdout).expect("is UTF-8");
    // Comments name the server, and lines of psql are no SQL.
    let is_sql = |line: &&str| !line.starts_with("--") && !line.starts_with('\\') && !line.is_empty();
    let sql = dumped.lines().filter(is_sql).map(|line| format!("{line}\n")).collect::<String>();
    fs::create_dir_all(path().parent().expect("has a folder")).expect("is made");
    fs::write(path(), sql).expect("is written");
}

/// The dump as a world of its own.
fn restored(database: &Database) -> TestWorld {
    let name = format!("golden_{}", std::process::id());
    let test = database.named(&name);
    let sql = fs::read_to_string(path()).expect("is there");
    database.run(&sql.replace(&format!("cg_{NAME}"), &format!("cg_{name}")));
    test
}

#[test]
fn a_dump_of_version_1_opens_and_takes_commits() {
    let Some(database) = database() else { return };
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        dump(&database);
    }
    let test = restored(&database);
    let area = BlockBox::new(BlockPos::new(-400, 0, -400), BlockPos::new(400, 400, 400));
    let check = |world: &World| {
        assert_eq!(world.content_hash(Area::World).expect("hashes").to_string(), HASH);
        let object = world.objects().get("key").expect("reads").expect("is there");
        assert_eq!(&*object.bytes, b"content");
        let dimension = world.catalog().dimension("game:overworld").expect("is registered");
        let query = RecordQuery::in_areas(dimension, [area]);
        let found = world.records().in_box(&query).expect("reads");
        assert_eq!(found.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [id(2), id(1)]);
        let report = world.verify(VerifyDepth::Full, |_| {}).expect("reads");
        assert!(report.is_ok(), "{report:?}");
    };
    let reader = World::builder().open_read_only_over(test.read()).expect("opens");
    check(&reader);
    let writer = World::builder().open_over(test.open().expect("opens")).expect("begins");
    check(&writer);
    let (dimension, [_, stone]) = register(&writer);
    let set = writer.transaction(|tx| {
        tx.put_record(id(3), record_at(dimension, BlockPos::new(900, 64, 3), "game:sign", 3));
        tx.set_block(dimension, BlockPos::new(0, 64, -16), stone)
    });
    assert_eq!(reader.refresh().expect("refreshes"), set.expect("commits").seq);
    let named = "SELECT count(*) FROM {schema}.records_0_3_0_0 WHERE kind = 'game:sign'";
    assert_eq!(test.run(named).as_deref(), Some("1"));
    writer.close().expect("closes");
}
