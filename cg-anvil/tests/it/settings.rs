//! Settings of saves: in the world after an import, and in the files after an export.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use cg_anvil::export::{ExportOptions, ExportReport, export};
use cg_anvil::import::{ImportOptions, Merge, MergeFiles, import};
use cg_anvil::nbt::{self, CompoundWriter, Document, Limits};
use cg_anvil::region::{Compression, compress_as, decompress};
use cg_store::prelude::*;
use cg_store::settings::{Spawn, WorldSettings};
use tempfile::TempDir;

use crate::worlds;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\npicture";

type Files = BTreeMap<String, Vec<u8>>;

fn dimension(name: &str) -> Name {
    Name::new(name).expect("a literal name")
}

fn gzip(fields: impl FnOnce(&mut CompoundWriter<'_>)) -> Vec<u8> {
    compress_as(Compression::Gzip, &nbt::document(fields))
}

fn tree(bytes: &[u8]) -> Vec<u8> {
    let mut raw = Vec::new();
    decompress(Compression::Gzip, bytes, 1 << 20, &mut raw).expect("is gzip");
    raw
}

/// A `level.dat` of before 26.1, with the time of day.
fn old_level(day_time: i64, rest: impl FnOnce(&mut CompoundWriter<'_>)) -> Vec<u8> {
    gzip(|root| {
        root.compound("Data", |data| {
            data.compound("Version", |version| {
                version.int("Id", 3465);
                let _ = version.string("Name", "1.20.1");
            });
            let _ = data.string("LevelName", "Grove \u{1f333} \\ and more");
            data.int("DataVersion", 3465);
            data.long("LastPlayed", 1_700_000_000_123);
            data.compound("WorldGenSettings", |settings| settings.long("seed", -42));
            data.int("SpawnZ", 8);
            data.int("SpawnY", -60);
            data.int("SpawnX", i32::MIN);
            data.long("DayTime", day_time);
            data.long("Time", 123_456);
            data.compound("GameRules", |rules| {
                let _ = rules.string("keepInventory", "true");
                let _ = rules.string("doDaylightCycle", "false");
                let _ = rules.string("doWeatherCycle", "true");
            });
            data.byte("raining", 1);
            data.int("rainTime", 100);
            data.byte("thundering", 0);
            data.int("thunderTime", 200);
            data.int("GameType", 2);
            data.byte("Difficulty", 3);
            rest(data);
        });
    })
}

fn of_old_level() -> WorldSettings {
    let mut settings = WorldSettings::default();
    settings.name = Some("Grove \u{1f333} \\ and more".into());
    settings.changed_ms = Some(1_700_000_000_123);
    settings.engine = Some("Minecraft 1.20.1".into());
    settings.seed = Some(-42);
    let block = BlockPos::new(i32::MIN.into(), -60, 8);
    settings.spawn = Some(Spawn { dimension: dimension("minecraft:overworld"), block });
    settings.time = Some(6000);
    settings.game_time = Some(123_456);
    (settings.time_cycle, settings.weather_cycle) = (Some(false), Some(true));
    (settings.raining, settings.rain_time) = (Some(true), Some(100));
    (settings.thundering, settings.thunder_time) = (Some(false), Some(200));
    settings.game_mode = Some("adventure".into());
    settings.difficulty = Some("hard".into());
    settings
}

/// The files of a save of 26.1 or later, with those of `data/minecraft/` in some folder.
fn new_files(folder: &str) -> Files {
    let level = gzip(|root| {
        root.compound("Data", |data| {
            data.int("DataVersion", 4790);
            let _ = data.string("LevelName", "Grove");
            data.compound("spawn", |spawn| {
                let _ = spawn.string("dimension", "minecraft:the_nether");
                spawn.int_array("pos", &[1, 2, 3]);
            });
            data.long("Time", 7);
            data.compound("difficulty_settings", |settings| {
                settings.byte("hardcore", 1);
                let _ = settings.string("difficulty", "easy");
            });
        });
    });
    let data = |fields: &dyn Fn(&mut CompoundWriter<'_>)| {
        gzip(|root| {
            root.compound("data", fields);
            root.int("DataVersion", 4790);
        })
    };
    let weather = data(&|data| {
        data.int("thunder_time", 1);
        data.byte("raining", 0);
        data.byte("thundering", 1);
        data.int("rain_time", 2);
    });
    let rules = data(&|data| {
        data.byte("minecraft:advance_time", 1);
        data.byte("minecraft:advance_weather", 0);
    });
    let clocks =
        data(&|data| data.compound("minecraft:overworld", |clock| clock.long("total_ticks", 1_326_000)));
    let files = [
        ("weather", weather),
        ("game_rules", rules),
        ("world_clocks", clocks),
        ("world_gen_settings", data(&|data| data.long("seed", i64::MAX))),
    ];
    let files = files.into_iter().map(|(name, bytes)| (format!("{folder}{name}.dat"), bytes));
    files.chain([("level.dat".into(), level), ("icon.png".into(), PNG.into())]).collect()
}

fn of_new_files() -> WorldSettings {
    let mut settings = WorldSettings::default();
    settings.name = Some("Grove".into());
    settings.thumbnail = Some(PNG.into());
    settings.seed = Some(i64::MAX);
    settings.spawn =
        Some(Spawn { dimension: dimension("minecraft:the_nether"), block: BlockPos::new(1, 2, 3) });
    settings.time = Some(1_326_000);
    settings.game_time = Some(7);
    (settings.time_cycle, settings.weather_cycle) = (Some(true), Some(false));
    (settings.raining, settings.rain_time) = (Some(false), Some(2));
    (settings.thundering, settings.thunder_time) = (Some(true), Some(1));
    settings.difficulty = Some("easy".into());
    settings
}

fn save(files: &Files) -> TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, bytes) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().expect("has one")).expect("makes");
        fs::write(path, bytes).expect("writes");
    }
    dir
}

/// A world with the dimensions of the game, in which a save was imported.
fn imported(files: &Files) -> World {
    let world = World::builder().in_memory().expect("opens");
    for name in ["minecraft:overworld", "minecraft:the_nether"] {
        world.registry().register_dimension(name).expect("registers");
    }
    take(files, &world, None);
    world
}

fn take(files: &Files, world: &World, merge: Option<(Merge, MergeFiles)>) {
    let mut options = ImportOptions::default();
    if let Some((merge, files)) = merge {
        (options.merge, options.merge_files) = (Some(merge), files);
    }
    import(save(files).path(), world, &options, |_| {}).expect("imports");
}

fn exported(world: &World) -> (Files, ExportReport) {
    let dir = tempfile::tempdir().expect("a directory");
    let to = dir.path().join("save");
    let report = export(world, &to, &ExportOptions::default(), |_| {}).expect("exports");
    let mut files = Files::new();
    read_all(&to, &to, &mut files);
    (files, report)
}

fn read_all(root: &Path, folder: &Path, files: &mut Files) {
    for entry in fs::read_dir(folder).expect("lists") {
        let path = entry.expect("lists").path();
        if path.is_dir() {
            read_all(root, &path, files);
        } else {
            let name = path.strip_prefix(root).expect("is inside").display().to_string();
            files.insert(name, fs::read(path).expect("reads"));
        }
    }
}

fn set(world: &World, settings: &WorldSettings) {
    world.transaction(|tx| tx.set_settings(settings)).expect("sets");
}

fn old_files() -> Files {
    Files::from([("level.dat".into(), old_level(6000, |_| ())), ("icon.png".into(), PNG.into())])
}

#[test]
fn an_import_fills_the_settings_and_an_export_writes_the_same_files() {
    let mut of_old = of_old_level();
    of_old.thumbnail = Some(PNG.into());
    let paper = "dimensions/minecraft/overworld/data/minecraft/";
    for (files, expected) in [
        (old_files(), of_old),
        (new_files("data/minecraft/"), of_new_files()),
        (new_files(paper), of_new_files()),
    ] {
        let world = imported(&files);
        assert_eq!(WorldSettings::of(&world).expect("reads"), expected);
        let (written, report) = exported(&world);
        assert_eq!(report.not_exported, BTreeMap::new());
        assert_eq!(written, files);
    }
}

/// Other values than both saves have.
fn other() -> WorldSettings {
    let mut other = WorldSettings::default();
    other.name = Some("Another, longer name".into());
    other.seed = Some(5);
    other.spawn =
        Some(Spawn { dimension: dimension("minecraft:overworld"), block: BlockPos::new(-7, 300, 9) });
    (other.time, other.game_time) = (Some(18_000), Some(i64::MAX));
    (other.time_cycle, other.weather_cycle) = (Some(true), Some(true));
    (other.raining, other.rain_time) = (Some(true), Some(-3));
    (other.thundering, other.thunder_time) = (Some(true), Some(4));
    other.difficulty = Some("peaceful".into());
    other.thumbnail = Some([PNG, b" of another"].concat());
    other
}

#[test]
fn an_export_writes_what_was_changed_and_nothing_else() {
    for files in [old_files(), new_files("data/minecraft/")] {
        let world = imported(&files);
        let mut changed = other();
        if files.len() == 2 {
            changed.game_mode = Some("spectator".into());
            changed.changed_ms = Some(9);
        }
        set(&world, &changed);
        let expected = WorldSettings::of(&world).expect("reads");
        let (written, report) = exported(&world);
        assert_eq!(report.not_exported, BTreeMap::new());
        assert_eq!(WorldSettings::of(&imported(&written)).expect("reads"), expected);
        // Back to what it was: the same trees.
        let back = WorldSettings::of(&imported(&files)).expect("reads");
        let world = imported(&written);
        set(&world, &back);
        let (written, _) = exported(&world);
        assert_eq!(written.keys().collect::<Vec<_>>(), files.keys().collect::<Vec<_>>());
        for (name, bytes) in files.iter().filter(|(name, _)| *name != "icon.png") {
            assert_eq!(tree(&written[name]), tree(bytes), "{name}");
        }
        assert_eq!(written["icon.png"], PNG);
    }
}

#[test]
fn a_save_without_a_picture_gets_that_of_the_world() {
    let mut files = old_files();
    files.remove("icon.png");
    let world = imported(&files);
    assert_eq!(WorldSettings::of(&world).expect("reads"), of_old_level());
    let mut settings = WorldSettings::default();
    settings.thumbnail = Some(PNG.into());
    set(&world, &settings);
    let (written, report) = exported(&world);
    assert_eq!((written, report.not_exported), (old_files(), BTreeMap::new()));
    assert_eq!(report.other_files, 2);
}

#[test]
fn settings_that_the_save_has_no_place_for_are_counted() {
    let world = imported(&old_files());
    let mut settings = WorldSettings::default();
    settings.created_ms = Some(1);
    settings.tick_range = Some(2);
    // The game has no such mode, and its field no place in another dimension, or so far away.
    settings.game_mode = Some("build".into());
    settings.spawn =
        Some(Spawn { dimension: dimension("minecraft:the_nether"), block: BlockPos::new(0, 0, 0) });
    settings.thunder_time = Some(1 << 40);
    set(&world, &settings);
    let (written, report) = exported(&world);
    let missed = BTreeMap::from([("settings that no file of the save has a place for".to_owned(), 5)]);
    assert_eq!(report.not_exported, missed);
    assert_eq!(written, old_files());
    let away = imported(&old_files());
    settings = WorldSettings::default();
    settings.spawn =
        Some(Spawn { dimension: dimension("minecraft:overworld"), block: BlockPos::new(1 << 31, 0, 0) });
    set(&away, &settings);
    let (written, report) = exported(&away);
    assert_eq!((written, report.not_exported.into_values().sum::<u64>()), (old_files(), 1));
}

#[test]
fn what_is_of_another_type_is_no_setting_and_comes_back() {
    let strange = gzip(|root| {
        root.compound("Data", |data| {
            data.int("LevelName", 3);
            let _ = data.string("Time", "noon");
            data.byte("GameType", 7);
            data.byte("Difficulty", -1);
            data.long("SpawnX", 1 << 40);
            data.int("SpawnY", 1);
            data.int("RandomSeed", 77);
            data.int("Version", 1);
            data.compound("spawn", |spawn| {
                spawn.int_array("pos", &[1, 2]);
                let _ = spawn.string("dimension", "minecraft:overworld");
            });
            data.compound("GameRules", |rules| {
                let _ = rules.string("doDaylightCycle", "maybe");
            });
        });
    });
    let mut only_seed = WorldSettings::default();
    only_seed.seed = Some(77);
    let long = gzip(|root| {
        root.compound("Data", |data| {
            let _ = data.string("LevelName", &"long".repeat(65));
            data.compound("spawn", |spawn| {
                spawn.int_array("pos", &[1, 2, 3]);
                let _ = spawn.string("dimension", "mod:nowhere");
            });
        });
    });
    let nothing = WorldSettings::default;
    let mut only_spawn = nothing();
    only_spawn.spawn = Some(Spawn { dimension: dimension("mod:nowhere"), block: BlockPos::new(1, 2, 3) });
    let gif = b"GIF89a".to_vec();
    for (level, icon, expected) in [
        (strange, gif.clone(), only_seed),
        (long, [PNG, &vec![0; 256 << 10]].concat(), only_spawn),
        (old_level(1, |_| ())[..100].to_vec(), Vec::new(), nothing()),
        (gzip(|root| root.int("Data", 1)), gif.clone(), nothing()),
        (Vec::new(), gif, nothing()),
    ] {
        let files = Files::from([
            ("level.dat".into(), level),
            ("icon.png".into(), icon),
            ("region/x".into(), Vec::new()),
        ]);
        let world = imported(&files);
        assert_eq!(WorldSettings::of(&world).expect("reads"), expected);
        let (written, report) = exported(&world);
        assert_eq!((written, report.not_exported), (files, BTreeMap::new()));
    }
}

#[test]
fn a_world_that_keeps_what_it_has_keeps_its_settings() {
    let world = imported(&old_files());
    let before = WorldSettings::of(&world).expect("reads");
    take(&new_files("data/minecraft/"), &world, Some((Merge::Keep, MergeFiles::default())));
    assert_eq!(WorldSettings::of(&world).expect("reads"), before);
    let (written, report) = exported(&world);
    assert_eq!(report.not_exported, BTreeMap::new());
    assert_eq!(written["level.dat"], old_files()["level.dat"]);
    // The files that were new to it say the same now.
    assert_eq!(WorldSettings::of(&imported(&written)).expect("reads"), before);
}

#[test]
fn a_save_that_replaces_another_replaces_its_settings() {
    let of_host = |world: &World| {
        let mut settings = WorldSettings::default();
        settings.tick_range = Some(4);
        set(world, &settings);
    };
    for files in [MergeFiles::default(), MergeFiles::Replace] {
        let world = imported(&old_files());
        of_host(&world);
        take(&new_files("data/minecraft/"), &world, Some((Merge::Replace, files)));
        let mut replaced = of_new_files();
        replaced.tick_range = Some(4);
        assert_eq!(WorldSettings::of(&world).expect("reads"), replaced);
    }
    // What cannot be read of the new save is not that of the old one.
    let mut unreadable = new_files("data/minecraft/");
    unreadable.insert("icon.png".into(), b"GIF89a".to_vec());
    unreadable.insert("data/minecraft/weather.dat".into(), b"torn".to_vec());
    let world = imported(&old_files());
    take(&unreadable, &world, Some((Merge::Replace, MergeFiles::Replace)));
    let mut sound = of_new_files();
    sound.thumbnail = None;
    (sound.raining, sound.rain_time, sound.thundering, sound.thunder_time) = (None, None, None, None);
    assert_eq!(WorldSettings::of(&world).expect("reads"), sound);
    let (written, report) = exported(&world);
    assert_eq!((written, report.not_exported), (unreadable, BTreeMap::new()));
}

#[test]
fn places_that_disagree_come_back_as_they_are() {
    let mut files = new_files("data/minecraft/");
    files.extend(new_files("dimensions/minecraft/overworld/data/minecraft/"));
    let rain = gzip(|root| root.compound("data", |data| data.byte("raining", 1)));
    files.insert("data/minecraft/weather.dat".into(), rain);
    let level = old_level(77, |data| {
        data.long("RandomSeed", 1);
        data.byte("raining", 1);
    });
    files.insert("level.dat".into(), level);
    let world = imported(&files);
    let settings = WorldSettings::of(&world).expect("reads");
    assert_eq!(
        (settings.seed, settings.raining, settings.time),
        (Some(i64::MAX), Some(false), Some(1_326_000))
    );
    let (written, report) = exported(&world);
    assert_eq!((written, report.not_exported), (files, BTreeMap::new()));
}

#[test]
fn a_difficulty_that_the_game_does_not_have_is_not_written() {
    let files = new_files("data/minecraft/");
    let world = imported(&files);
    let mut settings = WorldSettings::default();
    settings.difficulty = Some("insane".into());
    set(&world, &settings);
    let (written, report) = exported(&world);
    assert_eq!((written, report.not_exported.into_values().sum::<u64>()), (files, 1));
}

#[test]
fn a_damaged_setting_costs_no_other_one() {
    let world = imported(&old_files());
    let mut settings = WorldSettings::default();
    settings.name = Some("Later".into());
    set(&world, &settings);
    let put = world.transaction(|tx| {
        tx.set_property(Property::Seed, Some(vec![1; 4]));
        Ok::<_, Error>(())
    });
    drop(put.expect("puts"));
    let (written, report) = exported(&world);
    assert_eq!(report.not_exported, BTreeMap::from([("damaged settings".to_owned(), 1)]));
    let mut expected = of_old_level();
    expected.name = Some("Later".into());
    expected.thumbnail = Some(PNG.into());
    assert_eq!(WorldSettings::of(&imported(&written)).expect("reads"), expected);
}

#[test]
fn the_trees_that_are_written_are_sound() {
    let world = imported(&new_files("data/minecraft/"));
    set(&world, &other());
    for (name, bytes) in exported(&world).0.iter().filter(|(name, _)| *name != "icon.png") {
        let raw = tree(bytes);
        let document = Document::parse(&raw, &Limits::default()).expect("is a tree");
        assert_eq!(document.trailing, b"", "{name}");
    }
}

/// The files of a real save that hold settings.
fn real_files(save: &str) -> Option<Files> {
    let save = worlds::folder()?.join("java26").join(save);
    let mut files = Files::new();
    read_all(&save, &save, &mut files);
    files.retain(|name, _| {
        ["level.dat", "icon.png"].contains(&name.as_str()) || name.contains("data/minecraft/")
    });
    Some(files)
}

#[test]
fn real_saves_say_what_another_reader_found_in_them() {
    let spawn =
        |x, y, z| Some(Spawn { dimension: dimension("minecraft:overworld"), block: BlockPos::new(x, y, z) });
    let mut map = WorldSettings::default();
    map.name = Some("Hyrule Castle".into());
    map.changed_ms = Some(1_785_594_308_512);
    map.engine = Some("Minecraft 26.2".into());
    map.seed = Some(7_505_898_906_105_606_571);
    map.spawn = spawn(-2008, 4, 453);
    (map.time, map.game_time) = (Some(1_326_000), Some(2_645_958));
    (map.time_cycle, map.weather_cycle) = (Some(false), Some(false));
    (map.raining, map.rain_time) = (Some(false), Some(92_563));
    (map.thundering, map.thunder_time) = (Some(false), Some(10_493));
    (map.game_mode, map.difficulty) = (Some("creative".into()), Some("peaceful".into()));
    let mut server = WorldSettings::default();
    server.name = Some("world".into());
    server.changed_ms = Some(1_776_867_827_431);
    server.engine = Some("Minecraft 26.1.1".into());
    server.seed = Some(-4_863_863_236_609_735_254);
    server.spawn = spawn(0, 82, 0);
    (server.time, server.game_time) = (Some(42_000), Some(42_000));
    (server.time_cycle, server.weather_cycle) = (Some(true), Some(true));
    (server.raining, server.rain_time) = (Some(false), Some(19_068));
    (server.thundering, server.thunder_time) = (Some(false), Some(90_915));
    (server.game_mode, server.difficulty) = (Some("survival".into()), Some("normal".into()));
    for (save, mut expected) in [("26.2_upgraded_map", map), ("26.1.1_paper_server", server)] {
        let Some(files) = real_files(save) else { return };
        expected.thumbnail = files.get("icon.png").cloned();
        let world = imported(&files);
        assert_eq!(WorldSettings::of(&world).expect("reads"), expected, "{save}");
        let (written, report) = exported(&world);
        assert_eq!(report.not_exported, BTreeMap::new());
        assert!(written == files, "{save}");
    }
}
