//! Players of whom two files of a save say something.

use super::*;
use cg_anvil::import::TwoStates;

/// A `level.dat` with the owner at (5, 64, 5).
fn level(version: Version, health: i32) -> Vec<u8> {
    version.level(|data| {
        data.compound("Player", |out| version.player(out, OWNER, [5.0, 64.0, 5.0], 0, health));
    })
}

/// An import of a save with the owner in `level.dat` and perhaps in a file too.
fn made(file: Option<Vec<u8>>) -> (Made, ImportReport) {
    let mut files = V1_20.save();
    files.insert("level.dat".to_owned(), level(V1_20, 3));
    files.extend(file.map(|file| (V1_20.path(OWNER), file)));
    let made = Made::new(V1_20, files);
    let report = made.import("save", &ImportOptions::default());
    assert_eq!((report.players, report.players_as_files.len(), report.is_whole()), (4, 0, true));
    (made, report)
}

fn place(made: &Made) -> [f64; 3] {
    made.player(OWNER).expect("is an entity").position.to_f64()
}

#[test]
fn the_player_of_level_dat_is_the_one_of_their_file() {
    for has_file in [true, false] {
        let file = V1_20.file(OWNER, [5.0, 64.0, 5.0], 0, 3);
        let (made, report) = made(has_file.then_some(file));
        assert_eq!(report.two_states, None);
        assert_eq!(place(&made).map(f64::to_bits), [5.0_f64, 64.0, 5.0].map(f64::to_bits));
        let (report, files) = made.export("same");
        assert_eq!((report.players, report.changed_players, report.two_states), (4, 0, None));
        assert_eq!(files, made.files);

        made.set_health(OWNER, 4);
        let (report, files) = made.export("changed");
        assert_eq!((report.players, report.changed_players, report.two_states), (4, 1, None));
        let mut expected = made.files.clone();
        expected.insert("level.dat".to_owned(), level(V1_20, 4));
        if has_file {
            expected.insert(V1_20.path(OWNER), V1_20.file(OWNER, [5.0, 64.0, 5.0], 0, 4));
        }
        assert_eq!(trees(&files), trees(&expected));

        made.delete(OWNER);
        let (report, files) = made.export("deleted");
        assert_eq!((report.players, report.deleted_players), (3, 1));
        expected.insert("level.dat".to_owned(), V1_20.level(|_| ()));
        expected.remove(&V1_20.path(OWNER));
        assert_eq!(trees(&files), trees(&expected));
    }
}

#[test]
fn of_two_states_the_later_one_is_the_player_and_the_other_is_named() {
    let newer = Version { data_version: V1_20.data_version + 1, ..V1_20 };
    let older = Version { data_version: V1_20.data_version - 1, ..V1_20 };
    let own = V1_20.path(OWNER);
    let level_path = "level.dat".to_owned();
    // A server writes the file alone; a file of an older game was put there.
    for (of_file, is_file_taken) in [(V1_20, true), (newer, true), (older, false)] {
        let (made, report) = made(Some(of_file.file(OWNER, [900.0, 64.0, 5.0], 0, 18)));
        let (taken, other) = if is_file_taken { (&own, &level_path) } else { (&level_path, &own) };
        let mut two =
            TwoStates { uuid: OWNER, taken: taken.clone(), other: other.clone(), is_replaced: false };
        assert_eq!(report.two_states, Some(two.clone()));
        let x = if is_file_taken { 900.0_f64 } else { 5.0 };
        assert_eq!(place(&made)[0].to_bits(), x.to_bits());

        let (report, files) = made.export("same");
        assert_eq!((report.players, report.changed_players, report.two_states), (4, 0, Some(two.clone())));
        assert_eq!(files, made.files);

        made.set_health(OWNER, 4);
        let (report, files) = made.export("changed");
        two.is_replaced = true;
        assert_eq!((report.players, report.changed_players, report.two_states), (4, 1, Some(two.clone())));
        let of_entity = if is_file_taken { of_file } else { V1_20 };
        let mut expected = made.files.clone();
        let in_level = V1_20.level(|data| {
            data.compound("Player", |out| of_entity.player(out, OWNER, [x, 64.0, 5.0], 0, 4));
        });
        expected.insert(level_path.clone(), in_level);
        expected.insert(own.clone(), of_entity.file(OWNER, [x, 64.0, 5.0], 0, 4));
        assert_eq!(trees(&files), trees(&expected));
        // The world still has both.
        for path in [&level_path, &own] {
            let key = cg_store::objects::ObjectKey::new(format!("minecraft/file/{path}")).expect("a key");
            let kept = made.world.objects().get(key).expect("no damage").expect("kept");
            assert_eq!(*kept.bytes, *made.files[path]);
        }
    }
}

#[test]
fn a_killed_import_takes_the_same_of_two_states() {
    let file = V1_20.file(OWNER, [900.0, 64.0, 5.0], 0, 18);
    let (whole, report) = made(Some(file));
    let killed = Made::new(V1_20, whole.files.clone());
    killed.write("save");
    let again = loop {
        let options = ImportOptions { stop_after_transactions: Some(1), ..ImportOptions::default() };
        match import(&killed.dir.path().join("save"), &killed.world, &options, |_| {}) {
            Err(ImportError::Stopped(1)) => {}
            done => break done.expect("an import"),
        }
    };
    assert_eq!((again.two_states, killed.hash()), (report.two_states, whole.hash()));
    // The same save again, also where the world keeps its own.
    for merge in [Merge::Replace, Merge::Keep] {
        let options = ImportOptions { merge: Some(merge), ..ImportOptions::default() };
        let report = whole.import("save", &options);
        assert!(report.two_states.is_some());
        assert_eq!(whole.hash(), killed.hash());
    }
}

#[test]
fn a_file_of_the_other_layout_stays_as_it_came() {
    for (version, other) in [(V1_20, V26_2), (V26_2, V1_20)] {
        let mut files = version.save();
        let beside = other.path(FAR);
        files.insert(beside.clone(), version.file(FAR, [1.0, 2.0, 3.0], 0, 11));
        files.insert(beside.replace(".dat", ".dat_old"), b"an earlier state".to_vec());
        if version == V26_2 {
            // No game of this version reads a player from there.
            files.insert("level.dat".to_owned(), level(version, 3));
        }
        let mut made = Made::new(version, files);
        let report = made.import("save", &ImportOptions::default());
        assert_eq!((report.players, report.two_states), (3, None));
        assert_eq!(report.players_as_files.keys().collect::<Vec<_>>(), [&beside]);
        made.set_health(FAR, 1);
        let (report, files) = made.export("changed");
        assert_eq!((report.players, report.changed_players), (3, 1));
        let mut expected = made.files.clone();
        expected.insert(version.path(FAR), version.file(FAR, [-1000.5, 70.0, 0.0], 0, 1));
        assert_eq!(trees(&files), trees(&expected));
        made.delete(FAR);
        let (report, files) = made.export("deleted");
        assert_eq!((report.players, report.deleted_players), (2, 1));
        expected.remove(&version.path(FAR));
        expected.remove(&format!("{}/{FAR}.dat_old", version.folder));
        assert_eq!(trees(&files), trees(&expected));

        // A save without the other file leaves the player.
        let merge = |merge_files| ImportOptions {
            merge: Some(Merge::Replace),
            merge_files,
            ..ImportOptions::default()
        };
        made.import("save", &merge(MergeFiles::Keep));
        let before = made.world.entity_version(EntityId::new(FAR)).expect("no damage");
        made.files.retain(|name, _| !name.starts_with(other.folder));
        fs::remove_dir_all(made.dir.path().join("save").join(other.folder)).expect("there");
        made.import("save", &merge(MergeFiles::Replace));
        assert_eq!(made.world.entity_version(EntityId::new(FAR)).expect("no damage"), before);
        assert_eq!(made.export("without").1, made.files);
    }
}

#[test]
fn a_state_is_replaced_too_if_it_becomes_that_of_level_dat() {
    let (made, report) = made(Some(V1_20.file(OWNER, [5.0, 64.0, 5.0], 0, 18)));
    assert!(report.two_states.is_some());
    made.set_health(OWNER, 3);
    let (report, files) = made.export("changed");
    assert_eq!((report.changed_players, report.two_states.map(|two| two.is_replaced)), (1, Some(true)));
    assert_eq!(files["level.dat"], made.files["level.dat"]);
    assert_ne!(files[&V1_20.path(OWNER)], made.files[&V1_20.path(OWNER)]);
}

#[test]
fn a_world_that_keeps_its_player_has_neither_state() {
    let merge = ImportOptions { merge: Some(Merge::Keep), ..ImportOptions::default() };
    let older = Version { data_version: V1_20.data_version - 1, ..V1_20 };
    for file in [V1_20, older] {
        let (made, _) = made(Some(file.file(OWNER, [5.0, 64.0, 5.0], 0, 18)));
        assert!(made.import("save", &merge).two_states.is_some());
        made.set_health(OWNER, 4);
        let report = made.import("save", &merge);
        assert_eq!((report.kept_entities, report.two_states), (4, None));
    }
}
