//! The game of a world that a save goes into.

use cg_anvil::export::{ExportOptions, export};
use cg_anvil::import::{ImportError, ImportOptions, import};
use cg_store::prelude::*;

use crate::import::imported;
use crate::saves::make;

fn game() -> Property {
    Property::Named(Name::new("cherrygrove:game").expect("a literal name"))
}

#[test]
fn an_import_makes_a_world_one_of_java_edition() {
    let dir = tempfile::tempdir().expect("a directory");
    let [save, out] = ["save", "out"].map(|name| dir.path().join(name));
    make(&save);
    let (world, _) = imported(&save, &dir.path().join("world"));
    assert_eq!(world.property(&game()).expect("sound").as_deref(), Some(&b"java"[..]));
    let report = export(&world, &out, &ExportOptions::default(), |_| {}).expect("exported");
    assert_eq!(report.not_exported.get("properties"), None, "a save needs no name of its game");
}

#[test]
fn a_world_of_another_game_takes_no_save() {
    let dir = tempfile::tempdir().expect("a directory");
    let save = dir.path().join("save");
    make(&save);
    let world = World::builder().in_memory().expect("memory");
    let named = world.transaction(|tx| {
        tx.set_property(game(), Some(b"bedrock".to_vec()));
        Ok::<_, cg_store::Error>(())
    });
    named.expect("committed");
    let before = world.last_commit();
    let error = import(&save, &world, &ImportOptions::default(), |_| {}).expect_err("another game");
    assert!(matches!(&error, ImportError::OtherGame { game } if game == "bedrock"), "{error}");
    assert_eq!(world.last_commit(), before, "a refused import changes nothing");
}
