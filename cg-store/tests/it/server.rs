//! The example of a game server loses nothing, and walks back over the land that it made.

use std::time::Duration;

#[expect(dead_code, reason = "the example's `main` takes its directory from the command line")]
#[path = "../../examples/server.rs"]
mod example;

#[test]
fn the_example_keeps_what_it_did() {
    /// Five times as fast as a game.
    const PACE: Duration = Duration::from_millis(10);
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("world");
    let there = example::run(&dir, 120, PACE, 1.0).unwrap();
    assert_eq!((there.ticks, there.from.x), (120, 8));
    assert!(there.to.x > 8 && there.generated > 0 && there.sold > 0, "{there:?}");
    assert_eq!(u64::from(there.coins), there.sold, "no coin was lost to a step");
    let back = example::run(&dir, 120, PACE, -1.0).unwrap();
    assert_eq!((back.ticks, back.from), (120, there.to));
    assert!(back.loaded > 0, "{back:?}");
    assert_eq!(u64::from(back.coins), there.sold + back.sold, "no coin was lost to a step");
}
