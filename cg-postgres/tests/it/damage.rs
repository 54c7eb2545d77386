//! Rows in damaged pages of the database.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use cg_engine::{
    ALL_KEYS, Batch, Engine as _, EngineError, Family, Level, Readable, ReadableExt as _, RowSlice, Space,
    Stamp,
};
use cg_format::frame::{Codec, Draft};

use crate::database::{TestWorld, database};

const KEYS: [&[u8]; 4] = [b"a", b"broken", b"c", b"absent"];

/// Lets the server answer each read of one row as if its page were damaged. Later commits fail.
fn break_row(world: &TestWorld) {
    let made = world.run(
        "BEGIN; ALTER TABLE {schema}.cg_row RENAME TO cg_real; \
         CREATE FUNCTION {schema}.broken() RETURNS bytea LANGUAGE plpgsql AS $$ BEGIN \
             RAISE EXCEPTION 'invalid page in block 7' USING ERRCODE = 'XX001'; END $$; \
         CREATE VIEW {schema}.cg_row AS SELECT seg, fam, k, \
             CASE WHEN k = 'broken'::bytea THEN {schema}.broken() ELSE v END AS v FROM {schema}.cg_real; COMMIT",
    );
    assert_eq!(made, None);
}

fn is_damage(error: &EngineError) -> bool {
    matches!(error, EngineError::Corrupt { message, .. } if message.contains("invalid page in block 7"))
}

/// Reads all rows together, alone and in a scan.
fn check(view: &dyn Readable) {
    let rows = KEYS.map(|key| (Space::Object, key));
    let slices = KEYS.map(|key| RowSlice { space: Space::Object, key, bytes: 0..usize::MAX });
    let alone: Vec<_> = rows.iter().map(|(space, key)| view.get(*space, key)).collect();
    for found in [view.get_many(&rows), view.get_slices(&slices), alone] {
        let [a, broken, c, absent] = &found[..] else { panic!("{} results", found.len()) };
        assert!(matches!((a, c, absent), (Ok(Some(_)), Ok(Some(_)), Ok(None))), "{found:?}");
        assert!(broken.as_ref().is_err_and(is_damage), "{broken:?}");
    }
    let visit = |_: &[u8], _: &[u8]| ControlFlow::<()>::Continue(());
    let scanned = view.scan(Family::Object, ALL_KEYS, visit);
    assert!(scanned.as_ref().is_err_and(is_damage), "{scanned:?}");
}

#[test]
fn a_damaged_page_fails_its_own_rows() {
    let Some(database) = database() else { return };
    let world = database.world();
    let engine = world.create();
    let mut batch = Batch::new();
    for key in &KEYS[..3] {
        batch.put(Space::Object, key, Draft::plain(Codec::None, 0, |out| out.push(7)), Stamp::Commit);
    }
    engine.commit(batch, &[], Level::Process).expect("commits");
    break_row(&world);

    check(&engine);
    let snapshot = engine.snapshot().expect("is open");
    check(&*snapshot);

    // Sound rows are read from the same snapshot meanwhile.
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let broken = snapshot.get(Space::Object, b"broken");
                assert!(broken.as_ref().is_err_and(is_damage), "{broken:?}");
            }
        });
        let sound = scope.spawn(|| {
            for _ in 0..300 {
                let found = snapshot.get(Space::Object, b"a").map(|row| row.is_some());
                assert!(matches!(found, Ok(true)), "{found:?}");
            }
        });
        let sound = sound.join();
        is_over.store(true, Ordering::Relaxed);
        sound.expect("sound rows are read");
    });
}
