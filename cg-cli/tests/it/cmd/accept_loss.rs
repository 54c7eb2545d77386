//! `cg accept-loss`

use std::path::PathBuf;
use std::time::Duration;

use cg_store::prelude::*;
use serde_json::json;

use super::{Sample, run, text};

/// The sample as a killed process leaves it after a synced commit, and the log that holds the commit.
fn killed() -> (Sample, PathBuf, PathBuf) {
    let sample = Sample::new();
    let world = sample.open();
    // The floor is raised at most once a second.
    std::thread::sleep(Duration::from_millis(1100));
    let saved = world.transaction(|tx| {
        tx.delete(ChunkAt::new(Dimension::new(0), super::GROUND));
        Ok::<_, cg_store::Error>(())
    });
    saved.expect("is synced");
    let killed = sample.beside("killed");
    for (path, bytes) in sample.files() {
        let path = killed.join(path.strip_prefix(sample.path()).expect("lies in it"));
        std::fs::create_dir_all(path.parent().expect("has one")).expect("creates");
        std::fs::write(path, bytes).expect("writes");
    }
    drop(world);
    let logs = std::fs::read_dir(killed.join("db")).expect("lists").map(|entry| entry.expect("lists").path());
    let log = logs.filter(|path| path.extension().is_some_and(|end| end == "log")).max().expect("has one");
    (sample, killed, log)
}

#[test]
fn a_world_without_its_newest_log_is_refused_until_the_loss_is_accepted() {
    let (sample, killed, log) = killed();
    let world = text(&killed);
    let whole = run(&["accept-loss", world, "--json"]).json();
    let last = whole["last_commit"].as_u64().expect("a number");
    assert_eq!(whole["lost"], json!(0));
    std::fs::remove_file(&log).expect("removes");

    let save = sample.beside("save");
    let map = sample.beside("map.png");
    for args in [
        &["verify", world][..],
        &["verify", world, "--quick"],
        &["info", world],
        &["hash", world],
        &["export", world, "--mca", text(&save)],
        &["map", world, "--out", text(&map)],
        &["get", world, "--chunk", "0", "4", "-1"],
        &["dump", world, "--chunk", "0", "4", "-1"],
        &["tiers", world],
        &["checkpoint", world, text(&save)],
    ] {
        let said = run(args);
        let expected = format!("commits up to {last} were synced, but the newest found is {}: ", last - 1);
        assert_eq!((said.code, said.out.as_str()), (1, ""), "{args:?}: {said:?}");
        assert!(said.err.contains(&expected) && said.err.contains("`cg accept-loss`"), "{args:?}: {said:?}");
    }
    assert!(!save.exists() && !map.exists());

    let said = run(&["accept-loss", world]);
    assert_eq!(said.code, 2);
    assert_eq!(
        said.err,
        format!(
            "cg: 1 synced commit of {world} would be given up for good; nothing was changed, run it again with --yes\n"
        )
    );
    let accepted = run(&["accept-loss", world, "--yes", "--json"]);
    assert_eq!(accepted.json(), json!({ "lost": 1, "last_commit": last - 1 }), "{accepted:?}");
    assert_eq!(run(&["verify", world]).code, 0);
    assert_eq!(run(&["accept-loss", world, "--json"]).json(), json!({ "lost": 0, "last_commit": last - 1 }));
    let found = run(&["get", world, "--chunk", "0", "4", "-1"]);
    assert_eq!(found.code, 0, "the lost commit deleted it: {found:?}");
    let incarnation = |path: &str| run(&["info", path, "--json"]).json()["incarnation"].take();
    assert_ne!(incarnation(world), incarnation(text(&sample.path())));
}
