//! Region files are found where every version and tool puts them.

#![allow(clippy::needless_raw_string_hashes, reason = "expect_test writes them")]

use std::fs;
use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};

use super::*;
use crate::region::{ColumnPos, region_pos};

#[track_caller]
fn check(paths: &[&str], expected: Expect) {
    let dir = tempfile::tempdir().expect("a directory");
    for path in paths {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("below the directory")).expect("made");
        fs::write(path, b"").expect("written");
    }
    let found = match find(dir.path()) {
        Ok(save) => save
            .regions
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
        minecraft:overworld ByContent Some((0, 0)) r.0.0.mca
        minecraft:overworld ByContent Some((0, 1)) 1.18_flat_r.0.1.mca
        minecraft:overworld ByContent None odd.mca
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
fn only_the_games_own_names_are_regions_of_a_save() {
    check(
        &[
            "level.dat",
            "r.7.7.mca",
            "region/r.0.0.mca",
            "region/r.0.0 (1).mca",
            "region/Copy of r.0.0.mca",
            "region/a_r.0.0.mca",
            "region/r.-0.1.mca",
            "region/r.01.0.mca",
            "region/r.+1.0.mca",
            "region/r.67108864.0.mca",
            "region/r.1.0.MCA",
            "dimensions/My Mod/Deep/region/r.0.0.mca",
            "dimensions/dim/7/region/r.0.0.mca",
        ],
        expect![[r#"
            My Mod:Deep Blocks Some((0, 0)) dimensions/My Mod/Deep/region/r.0.0.mca
            minecraft:overworld Blocks Some((0, 0)) region/r.0.0.mca
        "#]],
    );
    // Without a save around them, copies of a file that is there are none.
    check(
        &[
            "r.0.0.mca",
            "Copy of r.0.0.mca",
            "R.0.0.MCA",
            "r.0.0 - Copy.mca",
            "r.00.-0.mca",
            "r.1.0 (1).mca",
            "a_r.0.0.mca",
            "_r.0.0.mca",
            "Copy of r.2.0.mca",
        ],
        expect![[r#"
            file:Copy of ByContent Some((2, 0)) Copy of r.2.0.mca
            file:a ByContent Some((0, 0)) a_r.0.0.mca
            minecraft:overworld ByContent Some((0, 0)) r.0.0.mca
            minecraft:overworld ByContent None r.1.0 (1).mca
        "#]],
    );
}

#[test]
fn paths_of_regions_are_told_by_their_names() {
    for (name, expected) in [
        ("region/r.0.0.mca", true),
        ("poi/r.-1.0.mca", true),
        ("entities/c.1.1.mcc", true),
        ("DIM-1/region/r.0.0.mca", true),
        ("DIM7/region/r.0.0.mca", true),
        ("dimensions/a/b/c/region/r.0.0.mca", true),
        ("dimensions/A b/C/region/r.0.0.mca", true),
        ("r.0.0.mca", false),
        ("region/r.0.0 (1).mca", false),
        ("region/r.-0.0.mca", false),
        ("region/c.01.1.mcc", false),
        ("region/deeper/r.0.0.mca", false),
        ("DIM07/region/r.0.0.mca", false),
        ("DIM_MYST3/region/r.0.0.mca", false),
        ("DIM-1/DIM1/region/r.0.0.mca", false),
        ("backups/region/r.0.0.mca", false),
        ("dimensions/region/r.0.0.mca", false),
        ("dimensions/a/region/r.0.0.mca", false),
        ("dimensions/dim/7/region/r.0.0.mca", false),
        ("dimensions/a:b/c/region/r.0.0.mca", false),
        ("dimensions/a/b/data/region/r.0.0.mca", false),
        ("dimensions/a/b/c/d/e/f/g/h/i/j/region/r.0.0.mca", false),
    ] {
        assert_eq!(is_region_part(name), expected, "{name}");
    }
}

#[test]
fn what_is_no_save_is_refused() {
    check(
        &["notes.txt"],
        expect![
            "SAVE is no save: neither a region file (.mca), nor a folder of them, nor a folder with a level.dat of Java Edition, region/, DIM-1/, DIM1/ or dimensions/ in it"
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
        assert_eq!(dimension_folder(dimension, Layout::Old).as_deref(), folder.map(Path::new), "{dimension}");
        let newer = match dimension.strip_prefix("minecraft:") {
            Some(name) => Some(format!("dimensions/minecraft/{name}")),
            None => folder.map(str::to_owned),
        };
        let found = dimension_folder(dimension, Layout::Dimensions);
        assert_eq!(found, newer.map(PathBuf::from), "{dimension}");
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
    let found: Vec<_> = found.regions.iter().map(|file| file.dimension.as_str()).collect();
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

/// A region file with one column, in the slot of (`x`, 0).
fn region(folder: &Path, x: i32, timestamp: u32) {
    let mut writer = crate::RegionWriter::create(folder, ColumnPos::new(x, 0).region()).expect("a file");
    let slot = ColumnPos::new(x, 0).slot();
    writer.put(slot, &crate::nbt::document(|_| ()), timestamp).expect("written");
    writer.finish().expect("written");
}

/// A `level.dat` of this version.
fn level(folder: &Path, data_version: i32) {
    use std::io::Write as _;
    let raw = crate::nbt::document(|root| {
        root.compound("Data", |data| data.int("DataVersion", data_version));
    });
    let file = fs::File::create(folder.join("level.dat")).expect("a file");
    let mut file = flate2::write::GzEncoder::new(file, flate2::Compression::default());
    file.write_all(&raw).and_then(|()| file.finish().map(drop)).expect("written");
}

fn told(save: &Save) -> String {
    let layouts = save.layouts.iter().map(|(dimension, layout)| format!("{dimension} {layout}"));
    let strays = save.strays.iter().map(|strays| {
        let Strays { dimension, layout, side, live, .. } = strays;
        format!("stray {dimension} {layout} {side:?} beside {live:?}")
    });
    layouts.chain(strays).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_side_with_columns_is_the_games() {
    let dir = tempfile::tempdir().expect("a directory");
    let save = dir.path();
    region(&save.join("DIM-1/region"), 0, 5);
    region(&save.join("DIM-1/entities"), 0, 9);
    fs::create_dir_all(save.join("dimensions/minecraft/the_nether/region")).expect("made");
    fs::write(save.join("dimensions/minecraft/the_nether/region/r.0.0.mca"), [0; 8192]).expect("written");
    region(&save.join("dimensions/minecraft/overworld/region"), 0, 7);
    region(&save.join("poi"), 0, 8);
    level(save, 4788);
    expect![[r#"
        minecraft:overworld dimensions
        minecraft:the_nether old
        stray minecraft:overworld old Side { folder: ".", files: 1, columns: 0, newest: 8 } beside Side { folder: "dimensions/minecraft/overworld", files: 1, columns: 1, newest: 7 }"#]]
    .assert_eq(&told(&find(save).expect("a save")));
    // Of two sides with columns `level.dat` tells.
    region(&save.join("dimensions/minecraft/the_nether/region"), 33, 6);
    region(&save.join("region"), 0, 7);
    expect![[r#"
        minecraft:overworld dimensions
        minecraft:the_nether dimensions
        stray minecraft:overworld old Side { folder: ".", files: 2, columns: 1, newest: 8 } beside Side { folder: "dimensions/minecraft/overworld", files: 1, columns: 1, newest: 7 }
        stray minecraft:the_nether old Side { folder: "DIM-1", files: 2, columns: 1, newest: 9 } beside Side { folder: "dimensions/minecraft/the_nether", files: 2, columns: 1, newest: 6 }"#]]
    .assert_eq(&told(&find(save).expect("a save")));
    level(save, 4671);
    let mut found = find(save).expect("a save");
    assert_eq!(found.layouts["minecraft:the_nether"], Layout::Old);
    found.take_strays().expect("no dimension has that name");
    assert_eq!(found.strays, []);
    assert_eq!(found.layouts["stray:the_nether"], Layout::Dimensions);
    assert_eq!(found.regions.iter().filter(|file| file.dimension == "stray:the_nether").count(), 2);
    // Where that cannot be read, the one before it, and then the folders.
    level(save, 4788);
    fs::rename(save.join("level.dat"), save.join("level.dat_old")).expect("renamed");
    fs::write(save.join("level.dat"), b"torn").expect("written");
    assert_eq!(find(save).expect("a save").layouts["minecraft:the_nether"], Layout::Dimensions);
    fs::remove_file(save.join("level.dat_old")).expect("removed");
    assert_eq!(find(save).expect("a save").layouts["minecraft:the_nether"], Layout::Old);
    fs::create_dir_all(save.join("players/data")).expect("made");
    assert_eq!(find(save).expect("a save").layouts["minecraft:the_nether"], Layout::Dimensions);
}

#[cfg(unix)]
#[test]
fn a_link_to_the_other_side_is_no_stray() {
    let dir = tempfile::tempdir().expect("a directory");
    let save = dir.path();
    region(&save.join("dimensions/minecraft/the_end/region"), 0, 7);
    std::os::unix::fs::symlink(save.join("dimensions/minecraft/the_end"), save.join("DIM1")).expect("a link");
    level(save, 4788);
    assert_eq!(told(&find(save).expect("a save")), "minecraft:the_end dimensions");
}

#[test]
fn a_dimensions_own_folder_is_that_dimension() {
    let dir = tempfile::tempdir().expect("a directory");
    let save = dir.path();
    for (folder, expected) in [
        ("dimensions/minecraft/the_nether", "minecraft:the_nether dimensions"),
        ("dimensions/minecraft/overworld", "minecraft:overworld dimensions"),
        ("dimensions/aether/deep/er", "aether:deep/er dimensions"),
        ("DIM-1", "minecraft:the_nether old"),
        ("DIM7", "dim:7 old"),
    ] {
        let folder = save.join(folder);
        region(&folder.join("region"), 0, 1);
        fs::create_dir_all(folder.join("data/minecraft")).expect("made");
        fs::write(folder.join("data/minecraft/raids.dat"), b"raids").expect("written");
        for path in [folder.clone(), folder.join("region"), folder.join("region/r.0.0.mca")] {
            let found = find(&path).expect("a dimension");
            assert_eq!(told(&found), expected, "{}", path.display());
            assert_eq!(found.regions.len(), 1);
            let others = found.other_files().expect("readable").files;
            let own =
                format!("{}/data/minecraft/raids.dat", folder.strip_prefix(save).expect("below").display());
            let expected: Vec<_> = if path == folder { vec![own] } else { vec![] };
            assert_eq!(others.into_iter().map(|(name, _)| name).collect::<Vec<_>>(), expected);
        }
        // A save may have such a name.
        level(&folder, 4671);
        let found = find(&folder).expect("a save");
        assert_eq!(told(&found), "minecraft:overworld old", "{}", folder.display());
        fs::remove_file(folder.join("level.dat")).expect("removed");
    }
}

#[test]
fn a_level_makes_a_save() {
    let dir = tempfile::tempdir().expect("a directory");
    level(dir.path(), 4788);
    assert_eq!(told(&find(dir.path()).expect("a save")), "");
    fs::create_dir_all(dir.path().join("dimensions/minecraft/overworld/region")).expect("made");
    assert_eq!(told(&find(dir.path()).expect("a save")), "minecraft:overworld dimensions");
    // Bedrock Edition has a file of that name too.
    let other = tempfile::tempdir().expect("a directory");
    fs::write(other.path().join("level.dat"), b"\x0a\0\0\0\x10\0\0\0").expect("written");
    assert!(matches!(find(other.path()), Err(SaveError::NotASave(_))));
}
