//! What every engine promises.

use std::cell::RefCell;

use cg_engine::conformance;

use crate::database::database;

#[test]
fn it_keeps_the_promises() {
    let Some(database) = database() else { return };
    let worlds = RefCell::new(Vec::new());
    conformance::run_all(|| {
        let world = database.world();
        let engine = world.create();
        worlds.borrow_mut().push(world);
        engine
    });
}
