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
    assert_eq!(
        accepted.json(),
        json!({ "lost": 1, "last_commit": last - 1, "unchecked": false }),
        "{accepted:?}"
    );
    assert_eq!(run(&["verify", world]).code, 0);
    assert_eq!(
        run(&["accept-loss", world, "--json"]).json(),
        json!({ "lost": 0, "last_commit": last - 1, "unchecked": false })
    );
    let found = run(&["get", world, "--chunk", "0", "4", "-1"]);
    assert_eq!(found.code, 0, "the lost commit deleted it: {found:?}");
    let incarnation = |path: &str| run(&["info", path, "--json"]).json()["incarnation"].take();
    assert_ne!(incarnation(world), incarnation(text(&sample.path())));
}

#[test]
fn a_world_without_durable_is_read_and_gets_a_new_one_if_that_is_accepted() {
    for is_there in [false, true] {
        let sample = Sample::new();
        let (floor, world) = (sample.path().join("db/DURABLE"), text(&sample.path()).to_owned());
        let hash = sample.cg("hash", &[]).good();
        if is_there {
            std::fs::write(&floor, [7; 100]).expect("writes");
        } else {
            std::fs::remove_file(&floor).expect("removes");
        }
        assert_eq!(sample.cg("hash", &[]).good(), hash);
        let verified = sample.cg("verify", &[]);
        assert_eq!(verified.code, 1);
        assert!(verified.out.contains("file DURABLE at byte 0 is damaged: "), "{}", verified.out);
        let put = sample.cg("object put", &["k", "--text", "t"]);
        assert_eq!((put.code, put.out.as_str()), (1, ""));
        assert!(put.err.contains("or go on without it by `cg accept-loss`"), "{}", put.err);
        let asked = run(&["accept-loss", &world]);
        assert_eq!(asked.code, 2, "{asked:?}");
        let wanted = format!(
            "synced commits of {world} that are missing would be given up for good; nothing was changed"
        );
        assert!(asked.err.contains(&wanted), "{}", asked.err);
        let accepted = run(&["accept-loss", &world, "--yes", "--json"]).json();
        assert_eq!((&accepted["lost"], &accepted["unchecked"]), (&json!(0), &json!(true)));
        assert_eq!(sample.cg("hash", &[]).good(), hash);
        assert_eq!(sample.cg("verify", &[]).code, 0);
        sample.cg("object put", &["k", "--text", "t"]).good();
        let again = run(&["accept-loss", &world, "--json"]).json();
        assert_eq!(again["unchecked"], json!(false));
    }
}
