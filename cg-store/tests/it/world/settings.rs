//! Settings of a world, and their copy in a text file.

use std::time::{Duration, Instant};

use cg_store::settings::{Spawn, WorldSettings};
use expect_test::expect;

use super::*;

over_both_engines! {
    each_setting_is_there_with_its_type
    a_setting_that_is_not_given_stays
    values_that_a_setting_cannot_have_are_refused
    each_setting_has_the_bytes_of_its_property
    bytes_of_another_type_are_damage
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

fn dimension(name: &str) -> Name {
    Name::new(name).expect("a literal name")
}

/// Every setting.
fn all() -> WorldSettings {
    let mut all = WorldSettings::default();
    all.name = Some("Grove\n\\of Å".into());
    all.created_ms = Some(1_700_000_000_000);
    all.changed_ms = Some(1_700_000_060_000);
    all.engine = Some("game 1.2".into());
    all.thumbnail = Some(PNG.into());
    all.seed = Some(i64::MIN);
    all.spawn =
        Some(Spawn { dimension: dimension("game:sky island"), block: BlockPos::new(i64::MAX, -64, 8) });
    all.time = Some(6000);
    all.game_time = Some(123);
    all.time_cycle = Some(true);
    all.raining = Some(false);
    all.rain_time = Some(12_000);
    all.thundering = Some(true);
    all.thunder_time = Some(-1);
    all.weather_cycle = Some(false);
    all.required_sleep_ticks = Some(100);
    all.game_mode = Some("survival".into());
    all.difficulty = Some("hard".into());
    all.tick_range = Some(6);
    all
}

fn set(world: &World, settings: &WorldSettings) -> Result<(), Error> {
    world.transaction(|tx| tx.set_settings(settings)).map(drop)
}

fn each_setting_is_there_with_its_type(world: &World) {
    assert_eq!(WorldSettings::of(world).expect("reads"), WorldSettings::default());
    let all = all();
    for name in WorldSettings::NAMES {
        assert!(all.text(name).is_some(), "{name}");
    }
    set(world, &all).expect("sets");
    assert_eq!(WorldSettings::of(world).expect("reads"), all);
    assert_eq!(WorldSettings::properties().len(), WorldSettings::NAMES.len());
    for property in WorldSettings::properties() {
        assert!(world.property(&property).expect("reads").is_some(), "{property}");
        let removed = world.transaction(|tx| {
            tx.set_property(property, None);
            Ok::<_, Error>(())
        });
        drop(removed.expect("removes"));
    }
    assert_eq!(WorldSettings::of(world).expect("reads"), WorldSettings::default());
    assert_sound(world);
}

fn a_setting_that_is_not_given_stays(world: &World) {
    let all = all();
    set(world, &all).expect("sets");
    let before = world.content_hash(cg_store::view::Area::World).expect("hashes");
    let [mut rain, mut name] = [WorldSettings::default(), WorldSettings::default()];
    rain.raining = Some(true);
    name.name = Some("Other".into());
    for change in [rain, name] {
        set(world, &change).expect("sets");
        let mut expected = all.clone();
        expected.raining = change.raining.or(all.raining);
        expected.name = change.name.or_else(|| all.name.clone());
        assert_eq!(WorldSettings::of(world).expect("reads"), expected);
        assert_ne!(world.content_hash(cg_store::view::Area::World).expect("hashes"), before);
        set(world, &all).expect("sets");
        assert_eq!(world.content_hash(cg_store::view::Area::World).expect("hashes"), before);
    }
}

fn values_that_a_setting_cannot_have_are_refused(world: &World) {
    let refused = |change: &dyn Fn(&mut WorldSettings)| {
        let mut settings = all();
        change(&mut settings);
        let error = set(world, &settings).expect_err("is refused");
        assert_eq!(WorldSettings::of(world).expect("reads"), WorldSettings::default(), "{error}");
        error.to_string()
    };
    let long = "é".repeat(129);
    assert_eq!(
        refused(&|settings| settings.name = Some(long.clone())),
        "setting `name` takes 258 bytes, the world's limit is 256; raise the limit or split it"
    );
    assert_eq!(
        refused(&|settings| settings.thumbnail = Some(b"GIF89a....".into())),
        "setting `thumbnail` cannot be `10 bytes that begin with [47, 49, 46, 38, 39, 61, 2e, 2e]`: it is a PNG file"
    );
    let large = || Some([PNG, &vec![0; 256 << 10]].concat());
    assert_eq!(
        refused(&|settings| settings.thumbnail = large()),
        "setting `thumbnail` takes 262156 bytes, the world's limit is 262144; raise the limit or split it"
    );
    let mut longest = all();
    longest.name = Some("é".repeat(128));
    set(world, &longest).expect("fits");
}

fn each_setting_has_the_bytes_of_its_property(world: &World) {
    let all = all();
    set(world, &all).expect("sets");
    for (name, property) in WorldSettings::NAMES.iter().zip(WorldSettings::properties()) {
        let bytes = world.property(&property).expect("reads");
        assert!(bytes.is_some() && bytes == all.bytes(name), "{name}");
    }
    assert_eq!(WorldSettings::of(world).expect("reads"), all);
    assert_eq!(all.bytes("weather"), None);
}

fn bytes_of_another_type_are_damage(world: &World) {
    Ids::register(world);
    let put = |property: &Property, bytes: Option<&[u8]>| {
        let put = world.transaction(|tx| {
            tx.set_property(property.clone(), bytes.map(Into::into));
            Ok::<_, Error>(())
        });
        drop(put.expect("puts"));
    };
    let named = |name: &str| Property::Named(Name::new(name).expect("a literal name"));
    let cases: [(Property, &[u8], &str); 6] = [
        (Property::Time, &[1], "time"),
        (Property::Seed, &[1; 9], "seed"),
        (named("cg:raining"), &[2], "raining"),
        (Property::Name, &[0xff], "name"),
        (named("cg:spawn"), &[0; 23], "spawn"),
        (named("cg:spawn"), &[0; 31], "spawn"),
    ];
    let game_mode = named("cg:game_mode");
    put(&game_mode, Some(b"survival"));
    for (property, bytes, name) in cases {
        put(&property, Some(bytes));
        let damage = super::damage::corrupt(WorldSettings::of(world));
        assert_eq!(damage.key.as_slice(), property.row().1, "{damage}");
        assert!(damage.to_string().contains(&format!("setting `{name}`")), "{damage}");
        let mut found = Vec::new();
        let sound = WorldSettings::sound(world, |name, error| found.push((name, error))).expect("reads");
        let [(found_name, error)] = <[_; 1]>::try_from(found).expect("is one");
        assert_eq!((found_name, super::damage::corrupt(Err::<(), _>(error))), (name, damage));
        assert_eq!(sound.game_mode.as_deref(), Some("survival"));
        put(&property, None);
    }
    put(&game_mode, None);
    assert_eq!(WorldSettings::of(world).expect("reads"), WorldSettings::default());
}

#[test]
fn texts_of_settings_are_read_as_they_are_shown() {
    let mut all = all();
    // Only what a line can hold is shown as it is.
    all.name = Some("Grove of Å".into());
    let mut read = WorldSettings::default();
    read.thumbnail.clone_from(&all.thumbnail);
    for name in WorldSettings::NAMES.iter().filter(|name| **name != "thumbnail") {
        let text = all.text(name).expect("is set");
        read.set_text(name, &text).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    assert_eq!(read, all);
    assert_eq!(all.text("thumbnail").as_deref(), Some("12 bytes"));
    assert_eq!(all.text("weather"), None);
    let mut refused = |name, text| {
        let error = read.set_text(name, text).expect_err("is refused");
        error.to_string()
    };
    let place = "it is the name of a dimension, and x, y and z of a block";
    for (name, text, why) in [
        ("weather", "fine", "no setting has this name"),
        ("raining", "yes", "it is `true` or `false`"),
        ("time", "6e3", "it is a whole number"),
        ("thumbnail", "12 bytes", "it is a PNG file"),
        ("spawn", "1 2 3", place),
        ("spawn", "game:here 1 2", place),
        ("spawn", "", place),
    ] {
        assert_eq!(refused(name, text), format!("setting `{name}` cannot be `{text}`: {why}"));
    }
}

/// The copy of the settings in a world's directory.
fn copy(disk: &Disk) -> Option<String> {
    fs::read_to_string(disk.path().join("settings.txt")).ok()
}

#[test]
fn a_text_file_has_a_copy_of_the_settings() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    world.flush().expect("flushes");
    assert_eq!(copy(&disk), None, "there are no settings");
    set(&world, &all()).expect("sets");
    world.flush().expect("flushes");
    expect![[r"
        cherrygrove settings 1
        name = Grove\n\\of Å
        created_ms = 1700000000000
        changed_ms = 1700000060000
        engine = game 1.2
        thumbnail = 12 bytes
        seed = -9223372036854775808
        spawn = game:sky island 9223372036854775807 -64 8
        time = 6000
        game_time = 123
        time_cycle = true
        raining = false
        rain_time = 12000
        thundering = true
        thunder_time = -1
        weather_cycle = false
        required_sleep_ticks = 100
        game_mode = survival
        difficulty = hard
        tick_range = 6
    "]]
    .assert_eq(&copy(&disk).expect("is there"));
    let mut names: Vec<_> =
        fs::read_dir(disk.path()).expect("lists").map(|entry| entry.expect("lists").file_name()).collect();
    names.sort();
    assert_eq!(names, ["db", "settings.txt", "world.cg"]);
}

#[test]
fn the_copy_follows_without_a_flush_and_at_close() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    Ids::register(&world);
    let mut settings = WorldSettings::default();
    settings.name = Some("first".into());
    set(&world, &settings).expect("sets");
    let until = Instant::now() + Duration::from_secs(20);
    while !copy(&disk).is_some_and(|text| text.contains("name = first")) {
        assert!(Instant::now() < until, "{:?}", copy(&disk));
        std::thread::sleep(Duration::from_millis(20));
    }
    settings.name = Some("second".into());
    set(&world, &settings).expect("sets");
    world.close().expect("closes");
    assert_eq!(copy(&disk).as_deref(), Some("cherrygrove settings 1\nname = second\n"));
}

#[test]
fn the_rows_win_over_the_copy() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let mut settings = WorldSettings::default();
    settings.name = Some("right".into());
    set(&world, &settings).expect("sets");
    world.close().expect("closes");
    drop(world);
    let path = disk.path().join("settings.txt");
    fs::write(&path, "cherrygrove settings 1\nname = wrong\n").expect("writes");
    let world = World::builder().open_read_only(disk.path()).expect("opens");
    assert_eq!(WorldSettings::of(&world).expect("reads"), settings);
    world.close().expect("closes");
    drop(world);
    assert!(copy(&disk).expect("is there").contains("wrong"), "a reader writes nothing");
    drop(disk.open(&[]));
    assert_eq!(copy(&disk).as_deref(), Some("cherrygrove settings 1\nname = right\n"));
    // A directory in its place costs the copy, not the world.
    fs::remove_file(&path).expect("removes");
    fs::create_dir(&path).expect("makes");
    let world = disk.open(&[]);
    settings.name = Some("later".into());
    set(&world, &settings).expect("sets");
    world.close().expect("closes");
    drop(world);
    assert_eq!(WorldSettings::of(&disk.open(&[])).expect("reads"), settings);
}

#[cfg(unix)]
#[test]
fn a_file_that_is_no_copy_stays_and_stops_nothing() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let path = disk.path().join("settings.txt");
    fs::write(&path, "theirs").expect("writes");
    let mut settings = WorldSettings::default();
    settings.name = Some("Grove".into());
    set(&world, &settings).expect("sets");
    world.flush().expect("flushes");
    assert_eq!(copy(&disk).as_deref(), Some("theirs"));
    // A pipe would be waited for.
    fs::remove_file(&path).expect("removes");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().expect("runs").success());
    world.flush().expect("flushes");
    world.close().expect("closes");
    fs::remove_file(&path).expect("removes");
    drop(world);
    drop(disk.open(&[]));
    assert_eq!(copy(&disk).as_deref(), Some("cherrygrove settings 1\nname = Grove\n"));
}
