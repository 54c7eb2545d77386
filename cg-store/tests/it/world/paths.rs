//! A world that is opened by a relative path, in a process that changes its directory.

use std::process::Command;

use super::*;
use cg_store::CheckpointFiles;

/// Run in a process of its own by the test below: the current directory belongs to all threads.
#[test]
#[ignore = "changes the current directory"]
fn play_by_a_relative_path() {
    let start = std::env::current_dir().expect("there is one");
    let options = options();
    let world = World::builder().options(&options).create("world").expect("is created");
    let ids = Ids::register(&world);
    std::env::set_current_dir(start.join("elsewhere")).expect("changes");
    assert_eq!(world.directory(), Some(&*start.join("world")));
    // A file of rows, a new log, and a copy by links: each is a new name in the world's directory.
    save(&world, [(ids.at(0, 0, 0), filled(&world, ids.stone))]);
    world.engine().flush().expect("flushes");
    save(&world, [(ids.at(1, 0, 0), filled(&world, ids.stone))]);
    world.flush().expect("flushes");
    world.resume().expect("opens the files again");
    save(&world, [(ids.at(2, 0, 0), filled(&world, ids.stone))]);
    world.checkpoint("copy", CheckpointFiles::Linked).expect("copies");
    world.close().expect("closes");
    drop(world);

    // Opened relative to where the process is now.
    let world = World::builder().options(&options).open("../world").expect("opens");
    std::env::set_current_dir(&start).expect("changes");
    save(&world, [(ids.at(3, 0, 0), filled(&world, ids.stone))]);
    world.engine().flush().expect("flushes");
    world.close().expect("closes");
}

#[test]
fn a_change_of_the_current_directory_affects_no_open_world() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::create_dir(dir.path().join("elsewhere")).expect("is made");
    let played = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--ignored", "--exact", "--nocapture", "world::paths::play_by_a_relative_path"])
        .current_dir(dir.path())
        .output()
        .expect("runs");
    assert!(played.status.success(), "{}", String::from_utf8_lossy(&played.stderr));
    let names = |dir: &Path| {
        let mut names: Vec<_> =
            fs::read_dir(dir).expect("lists").map(|entry| entry.expect("lists").file_name()).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(names(dir.path()), ["elsewhere", "world"]);
    assert_eq!(names(&dir.path().join("elsewhere")), ["copy"]);
    for (path, count) in [("world", 4), ("elsewhere/copy", 3)] {
        let world =
            World::builder().options(&options()).open_read_only(dir.path().join(path)).expect("opens");
        let mut chunks = 0;
        let walked = world.read_view(|view| {
            view.for_each_chunk(cg_store::view::Area::World, |stored| {
                stored.expect("is sound");
                chunks += 1;
                std::ops::ControlFlow::<()>::Continue(())
            })
        });
        walked.expect("walks");
        assert_eq!(chunks, count, "{path}");
    }
}
