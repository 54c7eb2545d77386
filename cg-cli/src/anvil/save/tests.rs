//! Region files are found where every version and tool puts them.

#![allow(clippy::needless_raw_string_hashes, reason = "expect_test writes them")]

use std::path::Path;

use expect_test::{Expect, expect};

use super::*;

#[track_caller]
fn check(paths: &[&str], expected: Expect) {
    let dir = tempfile::tempdir().expect("a directory");
    for path in paths {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("below the directory")).expect("made");
        fs::write(path, b"").expect("written");
    }
    let found = match find(dir.path()) {
        Ok(files) => files
            .iter()
            .map(|file| {
                let path = file.path.strip_prefix(dir.path()).expect("below the directory");
                let pos = file.pos.map(|pos| (pos.x(), pos.z()));
                format!("{} {:?} {pos:?} {}\n", file.dimension, file.kind, path.display())
            })
            .collect(),
        Err(error) => error.to_string().replace(&dir.path().display().to_string(), "SAVE"),
    };
    expected.assert_eq(&found);
}

#[test]
fn all_dimensions_of_a_save_are_found() {
    check(
        &[
            "level.dat",
            "region/r.0.0.mca",
            "region/r.-1.2.mca",
            "region/c.3.4.mcc",
            "entities/r.0.0.mca",
            "poi/r.0.0.mca",
            "DIM-1/region/r.0.0.mca",
            "DIM1/entities/r.0.0.mca",
            "DIM7/region/r.0.0.mca",
            "DIM07/region/r.0.0.mca",
            "DIM+8/region/r.0.0.mca",
            "dimensions/minecraft/overworld/region/r.5.5.mca",
            "dimensions/aether/sky/region/r.0.0.mca",
            "dimensions/aether/deep/er/entities/r.0.0.mca",
        ],
        expect![[r#"
            aether:deep/er Entities Some((0, 0)) dimensions/aether/deep/er/entities/r.0.0.mca
            aether:sky Blocks Some((0, 0)) dimensions/aether/sky/region/r.0.0.mca
            dim:7 Blocks Some((0, 0)) DIM7/region/r.0.0.mca
            minecraft:overworld Blocks Some((-1, 2)) region/r.-1.2.mca
            minecraft:overworld Blocks Some((0, 0)) region/r.0.0.mca
            minecraft:overworld Blocks Some((5, 5)) dimensions/minecraft/overworld/region/r.5.5.mca
            minecraft:overworld Entities Some((0, 0)) entities/r.0.0.mca
            minecraft:overworld PointsOfInterest Some((0, 0)) poi/r.0.0.mca
            minecraft:the_end Entities Some((0, 0)) DIM1/entities/r.0.0.mca
            minecraft:the_nether Blocks Some((0, 0)) DIM-1/region/r.0.0.mca
        "#]],
    );
}

#[test]
fn a_folder_of_files_is_the_overworld_unless_places_collide() {
    check(
        &["r.0.0.mca", "1.18_flat_r.0.1.mca", "odd.mca"],
        expect![[r#"
        minecraft:overworld ByContent None odd.mca
        minecraft:overworld ByContent Some((0, 0)) r.0.0.mca
        minecraft:overworld ByContent Some((0, 1)) 1.18_flat_r.0.1.mca
    "#]],
    );
    check(
        &["1.18_flat_r.0.0.mca", "1.20_r.0.0.mca", "r.0.1.mca"],
        expect![[r#"
        file:1.18_flat ByContent Some((0, 0)) 1.18_flat_r.0.0.mca
        file:1.20 ByContent Some((0, 0)) 1.20_r.0.0.mca
        minecraft:overworld ByContent Some((0, 1)) r.0.1.mca
    "#]],
    );
}

#[test]
fn what_is_no_save_is_refused() {
    check(
        &["notes.txt"],
        expect![
            "SAVE is no save: neither a region file (.mca), nor a folder of them, nor a folder with region/, DIM-1/, DIM1/ or dimensions/ in it"
        ],
    );
    check(
        &["region/r.0.0.mcr"],
        expect![
            "SAVE holds .mcr region files of Minecraft 1.1 and older, which are not read; open the save once in 1.13 or later"
        ],
    );
    check(&["region/session.lock"], expect![[""]]);
    let error = find(Path::new("/nonexistent-save")).expect_err("not there");
    assert!(matches!(error, SaveError::Io { .. }), "{error}");
}

#[test]
fn only_names_of_the_games_own_form_have_a_place() {
    for (name, place) in [
        ("r.0.0.mca", Some((0, 0))),
        ("r.-12.7.mca", Some((-12, 7))),
        ("world-r.1.1.mca", Some((1, 1))),
        ("tower.1.1.mca", None),
        ("r.01.0.mca", None),
        ("r.+1.0.mca", None),
        ("r.-0.0.mca", None),
        ("r.1.mca", None),
        ("r.99999999999.0.mca", None),
        ("r.67108864.0.mca", None),
        ("r.0.0.mcr", None),
    ] {
        let found = region_pos(Path::new(name)).map(|pos| (pos.x(), pos.z()));
        assert_eq!(found, place, "{name}");
    }
}

#[test]
fn a_dimension_never_leads_out_of_its_folder() {
    for (dimension, folder) in [
        ("minecraft:overworld", Some("")),
        ("minecraft:the_nether", Some("DIM-1")),
        ("minecraft:the_end", Some("DIM1")),
        ("aether:deep/er", Some("dimensions/aether/deep/er")),
        ("dim:7", Some("DIM7")),
        ("dim:-23", Some("DIM-23")),
        // The game's own folders are others.
        ("dim:-1", Some("dimensions/dim/-1")),
        ("dim:1", Some("dimensions/dim/1")),
        ("dim:07", Some("dimensions/dim/07")),
        ("aether:..", None),
        ("..:x", None),
        ("a:b/../c", None),
        ("a:/etc", None),
        ("a:b\\c", None),
        ("a:B", None),
        ("a", None),
        ("a:", None),
    ] {
        assert_eq!(dimension_folder(dimension).as_deref(), folder.map(Path::new), "{dimension}");
    }
}

#[cfg(unix)]
#[test]
fn links_to_each_other_lead_nowhere_twice() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().expect("a directory");
    let mods = dir.path().join("dimensions/mod");
    for name in ["a", "b", "c"] {
        fs::create_dir_all(mods.join(name).join("region")).expect("made");
        fs::write(mods.join(name).join("region/r.0.0.mca"), b"").expect("written");
        for to in ["a", "b", "c"] {
            symlink(mods.join(to), mods.join(name).join(format!("to_{to}"))).expect("a link");
        }
    }
    symlink(&mods, mods.join("a/up")).expect("a link");
    let elsewhere = tempfile::tempdir().expect("a directory");
    fs::create_dir(elsewhere.path().join("region")).expect("made");
    fs::write(elsewhere.path().join("region/r.0.0.mca"), b"").expect("written");
    symlink(elsewhere.path(), mods.join("linked")).expect("a link");
    let found = find(dir.path()).expect("a save");
    let found: Vec<_> = found.iter().map(|file| file.dimension.as_str()).collect();
    expect![[r#"
        mod:a
        mod:a/to_b
        mod:a/to_b/to_a
        mod:a/to_b/to_a/to_c
        mod:b
        mod:c
        mod:linked"#]]
    .assert_eq(&found.join("\n"));
}
