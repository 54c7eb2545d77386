//! The life of worlds.

use cherrygrove::*;

use crate::support::*;

#[test]
fn a_world_is_made_saved_closed_and_found() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("world").to_string_lossy().into_owned();
    let game = Game::at(&path);
    assert_eq!(game.load(3, -4), None);
    assert_eq!(game.save(3, -4, 1), CG_OK);
    assert_eq!(game.save(3, -4, 1), CG_UNCHANGED);
    assert_eq!(game.load(3, -4), Some(vec![1]));
    let binding = game.binding;
    // SAFETY: it takes no memory.
    ok(|error| unsafe { cg_world_close(game.world, error) });
    let game = Game::at(&path);
    assert_eq!(game.load(3, -4), Some(vec![1]));
    game.close();
    // SAFETY: it takes no memory.
    assert_eq!(unsafe { cg_release(binding) }, CG_OK);
}
