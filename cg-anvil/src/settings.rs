//! The settings of a world in the files of a save: read from them by an import, and written back by an export where the
//! world says otherwise.
//!
//! | setting | `level.dat` | since 26.1, in `data/minecraft/`, of Paper in that of a dimension |
//! |---|---|---|
//! | `name`, `changed_ms`, `game_time`, `game_mode` | `LevelName`, `LastPlayed`, `Time`, `GameType` | |
//! | `engine` | `Version.Name`, read only | |
//! | `seed` | `RandomSeed`, since 1.16 `WorldGenSettings.seed` | `world_gen_settings.dat`: `seed` |
//! | `spawn` | `SpawnX`, `SpawnY`, `SpawnZ`, since 26.1 `spawn` | |
//! | `time` | `DayTime` | `world_clocks.dat`: `minecraft:overworld.total_ticks` |
//! | `time_cycle`, `weather_cycle` | `GameRules.doDaylightCycle`, `.doWeatherCycle` | `game_rules.dat`: `minecraft:advance_time`, `minecraft:advance_weather` |
//! | `raining`, `rain_time`, `thundering`, `thunder_time` | `raining`, `rainTime`, `thundering`, `thunderTime` | `weather.dat` |
//! | `difficulty` | `Difficulty`, since 26.1 `difficulty_settings.difficulty` | |
//! | `thumbnail` | | the file `icon.png` |

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use cg_format::BlockPos;
use cg_store::settings::{Spawn, WorldSettings};

use crate::nbt::{self, Compound, CompoundWriter, Document, Field, Limits, Tag, Value};
use crate::region::{Compression, compress_as, decompress};
use crate::save::LEVEL;

/// The file with the picture of a save.
pub(crate) const ICON: &str = "icon.png";
/// The largest tree that is read; those of large mod packs take a few megabytes.
const MAX_BYTES: usize = 64 << 20;
/// The dimension in which players appear where a save does not name one.
const OVERWORLD: &str = "minecraft:overworld";
const GAME_MODES: [&str; 4] = ["survival", "creative", "adventure", "spectator"];
const DIFFICULTIES: [&str; 4] = ["peaceful", "easy", "normal", "hard"];

/// How a field holds a setting.
#[derive(Clone, Copy)]
enum Form {
    /// A string.
    Text,
    /// A number of any width.
    Number,
    /// A byte, or a string `true` or `false`.
    Flag,
    /// One of some names.
    NameOf(&'static [&'static str; 4]),
    /// The number of a name.
    OneOf(&'static [&'static str; 4]),
    /// The name of a version of the game, which is only read.
    Version,
    /// Three fields of the compound, of the overworld.
    OldSpawn,
    /// A compound with a dimension and an array of three numbers.
    Spawn,
}

/// A setting, and the fields that lead to it.
type Place = (&'static str, &'static [&'static str], Form);

const OF_LEVEL: &[Place] = &[
    ("name", &["Data", "LevelName"], Form::Text),
    ("changed_ms", &["Data", "LastPlayed"], Form::Number),
    ("engine", &["Data", "Version", "Name"], Form::Version),
    ("seed", &["Data", "RandomSeed"], Form::Number),
    ("seed", &["Data", "WorldGenSettings", "seed"], Form::Number),
    ("spawn", &["Data", "SpawnX"], Form::OldSpawn),
    ("spawn", &["Data", "spawn"], Form::Spawn),
    ("time", &["Data", "DayTime"], Form::Number),
    ("game_time", &["Data", "Time"], Form::Number),
    ("time_cycle", &["Data", "GameRules", "doDaylightCycle"], Form::Flag),
    ("weather_cycle", &["Data", "GameRules", "doWeatherCycle"], Form::Flag),
    ("raining", &["Data", "raining"], Form::Flag),
    ("rain_time", &["Data", "rainTime"], Form::Number),
    ("thundering", &["Data", "thundering"], Form::Flag),
    ("thunder_time", &["Data", "thunderTime"], Form::Number),
    ("game_mode", &["Data", "GameType"], Form::OneOf(&GAME_MODES)),
    ("difficulty", &["Data", "Difficulty"], Form::OneOf(&DIFFICULTIES)),
    ("difficulty", &["Data", "difficulty_settings", "difficulty"], Form::NameOf(&DIFFICULTIES)),
];

/// The files of 26.1 and later, by their names in `data/minecraft/`.
const OF_DATA: &[(&str, &[Place])] = &[
    ("world_gen_settings.dat", &[("seed", &["data", "seed"], Form::Number)]),
    ("world_clocks.dat", &[("time", &["data", OVERWORLD, "total_ticks"], Form::Number)]),
    (
        "weather.dat",
        &[
            ("raining", &["data", "raining"], Form::Flag),
            ("rain_time", &["data", "rain_time"], Form::Number),
            ("thundering", &["data", "thundering"], Form::Flag),
            ("thunder_time", &["data", "thunder_time"], Form::Number),
        ],
    ),
    (
        "game_rules.dat",
        &[
            ("time_cycle", &["data", "minecraft:advance_time"], Form::Flag),
            ("weather_cycle", &["data", "minecraft:advance_weather"], Form::Flag),
        ],
    ),
];

/// The folders of these files; Paper has them in that of a dimension.
const FOLDERS: [&str; 2] = ["data/minecraft/", "dimensions/minecraft/overworld/data/minecraft/"];

/// The settings that a file of a save holds, by its path in the save.
fn places(file: &str) -> &'static [Place] {
    if file == LEVEL {
        return OF_LEVEL;
    }
    let name = FOLDERS.iter().find_map(|folder| file.strip_prefix(folder));
    let found = OF_DATA.iter().find(|(data, _)| Some(*data) == name);
    found.map_or(&[], |(_, places)| *places)
}

/// The files of a save that hold settings. Where two say something, the last one counts.
pub(crate) fn files() -> impl Iterator<Item = String> {
    let data = OF_DATA.iter().flat_map(|(name, _)| FOLDERS.map(|folder| format!("{folder}{name}")));
    [LEVEL, ICON].into_iter().map(str::to_owned).chain(data)
}

/// The settings for which a save has a place.
pub(crate) fn placed() -> BTreeSet<&'static str> {
    let places = OF_LEVEL.iter().chain(OF_DATA.iter().flat_map(|(_, places)| *places));
    places.map(|(setting, ..)| *setting).chain(["thumbnail"]).collect()
}

/// Takes the settings that a file of a save holds. What is of another type, too long, or in a file that is damaged is none.
pub(crate) fn read(file: &str, bytes: &[u8], settings: &mut WorldSettings) {
    if file == ICON {
        let _no_png_of_that_size = settings.set_thumbnail(bytes.to_vec());
        return;
    }
    let places = places(file);
    let Some(raw) = tree(places, bytes) else { return };
    let Ok(document) = Document::parse(&raw, &Limits::default()) else { return };
    for (setting, path, form) in places {
        let found = find(document, path).and_then(|(parent, field)| form.show(parent.0, field));
        if let Some(text) = found {
            let _not_of_its_type = settings.set_text(setting, &text);
        }
    }
}

/// The settings of a world on their way into the files of a save.
pub(crate) struct Written {
    settings: WorldSettings,
    /// What the files say that the world keeps.
    kept: WorldSettings,
    /// The settings that a file says.
    said: BTreeSet<&'static str>,
}

impl Written {
    pub(crate) fn new(settings: WorldSettings, kept: WorldSettings) -> Self {
        // What wrote the files stays what wrote them.
        Self { settings, kept, said: BTreeSet::from(["engine"]) }
    }

    /// The file with the settings that the world has changed.
    pub(crate) fn file<'b>(&mut self, file: &str, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        if file == ICON {
            let thumbnail = self.thumbnail();
            let changed = thumbnail.filter(|thumbnail| self.kept.thumbnail.as_ref() != Some(thumbnail));
            return changed.map_or(Cow::Borrowed(bytes), Cow::Owned);
        }
        let places = places(file);
        let Some(mut raw) = tree(places, bytes) else { return bytes.into() };
        let mut is_changed = false;
        for (setting, path, form) in places {
            let Some(wanted) = value_of(setting, &self.settings) else { continue };
            let Ok(document) = Document::parse(&raw, &Limits::default()) else { break };
            let Some((parent, field)) = find(document, path) else { continue };
            let is_said = value_of(setting, &self.kept).as_ref() == Some(&wanted)
                || form.show(parent.0, field).as_ref() == Some(&wanted);
            if !is_said {
                let payloads = form.payloads(parent, field, &wanted, &self.settings);
                if payloads.is_empty() {
                    continue;
                }
                is_changed = true;
                for (range, payload) in payloads {
                    raw.splice(range, payload);
                }
            }
            self.said.insert(setting);
        }
        if is_changed { compress_as(Compression::Gzip, &raw).into() } else { bytes.into() }
    }

    /// The picture of the world.
    pub(crate) fn thumbnail(&mut self) -> Option<Vec<u8>> {
        self.said.insert("thumbnail");
        self.settings.thumbnail.clone()
    }

    /// The number of settings that no file says.
    pub(crate) fn unsaid(&self) -> u64 {
        let is_unsaid = |name: &&&str| !self.said.contains(**name) && self.settings.text(name).is_some();
        WorldSettings::NAMES.iter().filter(is_unsaid).count() as u64
    }
}

/// The value of a setting, as a field shows it.
fn value_of(setting: &str, settings: &WorldSettings) -> Option<String> {
    match setting {
        // A line shows their control characters otherwise.
        "name" => settings.name.clone(),
        "game_mode" => settings.game_mode.clone(),
        "difficulty" => settings.difficulty.clone(),
        other => settings.text(other),
    }
}

/// The tree of a file that holds settings.
fn tree(places: &[Place], bytes: &[u8]) -> Option<Vec<u8>> {
    let mut raw = Vec::new();
    let is_read = !places.is_empty() && decompress(Compression::Gzip, bytes, MAX_BYTES, &mut raw).is_ok();
    is_read.then_some(raw)
}

/// A compound, and where in the tree it begins.
type At<'a> = (Compound<'a>, usize);

/// The field to which some names lead, and the compound that has it.
fn find<'a>(document: Document<'a>, path: &[&str]) -> Option<(At<'a>, Field<'a>)> {
    let root = document.root;
    let (last, path) = path.split_last()?;
    // Tag and length of the root's name come before it.
    let mut at = (root, 3 + document.name.0.len());
    for name in path {
        let field = at.0.field(name)?;
        at = (field.value.as_compound()?, at.1 + payload(field).start);
    }
    Some((at, at.0.field(last)?))
}

/// The payload of a field, in its compound.
const fn payload(field: Field<'_>) -> Range<usize> {
    let start = field.offset_bytes + 3 + field.name.0.len();
    start..field.offset_bytes + field.raw.len()
}

impl Form {
    /// The value of a field, as the text of a setting.
    fn show(self, parent: Compound<'_>, field: Field<'_>) -> Option<String> {
        let text = || Some(field.value.as_text()?.decode()?.into_owned());
        match self {
            Self::Text | Self::NameOf(_) => text(),
            Self::Version => text().map(|version| format!("Minecraft {version}")),
            Self::Number => field.value.as_long().map(|number| number.to_string()),
            Self::Flag => match field.value.as_long() {
                Some(number) => Some((number != 0).to_string()),
                None => text(),
            },
            Self::OneOf(names) => {
                let number = usize::try_from(field.value.as_long()?).ok()?;
                names.get(number).map(|&name| name.to_owned())
            }
            Self::OldSpawn => {
                let [x, y, z] = ["SpawnX", "SpawnY", "SpawnZ"].map(|name| parent.int(name));
                Some(format!("{OVERWORLD} {} {} {}", x?, y?, z?))
            }
            Self::Spawn => {
                let spawn = field.value.as_compound()?;
                let dimension = spawn.text("dimension")?.decode()?.into_owned();
                let dimension = cg_minecraft::name::of(&dimension).ok()?;
                let Some(Value::IntArray(pos)) = spawn.get("pos") else { return None };
                let [x, y, z] = <[i32; 3]>::try_from(pos.values().collect::<Vec<_>>()).ok()?;
                Some(format!("{} {x} {y} {z}", dimension.as_str()))
            }
        }
    }

    /// The bytes that make a field say something else, with the places that they replace, the last place first. None if it
    /// cannot.
    fn payloads(
        self,
        (parent, at): At<'_>,
        field: Field<'_>,
        wanted: &str,
        settings: &WorldSettings,
    ) -> Vec<(Range<usize>, Vec<u8>)> {
        let absolute = |field: Field<'_>, at: usize| at + payload(field).start..at + payload(field).end;
        let one =
            |bytes: Option<Vec<u8>>| bytes.map(|bytes| (absolute(field, at), bytes)).into_iter().collect();
        match self {
            Self::Text => one(string(wanted)),
            Self::NameOf(names) => one(string(wanted).filter(|_| names.contains(&wanted))),
            Self::Version => Vec::new(),
            Self::Number => one(wanted.parse().ok().and_then(|number| integer(field.value.tag(), number))),
            Self::Flag if field.value.as_text().is_some() => one(string(wanted)),
            Self::Flag => one(integer(field.value.tag(), i64::from(wanted == "true"))),
            Self::OneOf(names) => {
                let number = names.iter().position(|name| *name == wanted);
                one(number.and_then(|number| integer(field.value.tag(), number as i64)))
            }
            Self::OldSpawn => {
                let found = settings.spawn.as_ref().and_then(|spawn| {
                    let is_here = spawn.dimension.as_str() == OVERWORLD;
                    let of = |name, number: i64| {
                        let field = parent.field(name)?;
                        Some((absolute(field, at), integer(field.value.tag(), number)?))
                    };
                    let BlockPos { x, y, z } = spawn.block;
                    is_here.then(|| Some(vec![of("SpawnX", x)?, of("SpawnY", y)?, of("SpawnZ", z)?]))?
                });
                last_first(found)
            }
            Self::Spawn => {
                let found = settings.spawn.as_ref().and_then(|Spawn { dimension: name, block }| {
                    let BlockPos { x, y, z } = *block;
                    let (compound, at) = (field.value.as_compound()?, absolute(field, at).start);
                    let dimension = compound.field("dimension")?;
                    let name = cg_minecraft::name::text(name.as_str());
                    let pos = compound.field("pos")?;
                    let numbers = [x, y, z].map(i32::try_from);
                    let [Ok(x), Ok(y), Ok(z)] = numbers else { return None };
                    let numbers = value(|fields| fields.int_array("", &[x, y, z]));
                    Some(vec![(absolute(pos, at), numbers), (absolute(dimension, at), string(&name)?)])
                });
                last_first(found)
            }
        }
    }
}

/// Replacements, the last place first, so that each leaves the others where they are.
fn last_first(found: Option<Vec<(Range<usize>, Vec<u8>)>>) -> Vec<(Range<usize>, Vec<u8>)> {
    let mut found = found.unwrap_or_default();
    found.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    found
}

/// The payload of the one field that is written, which has no name.
fn value<R>(write: impl FnOnce(&mut CompoundWriter<'_>) -> R) -> Vec<u8> {
    let mut fields = nbt::payload(write);
    // The end of the compound; tag and length of the name.
    fields.pop();
    fields.drain(..3.min(fields.len()));
    fields
}

fn string(text: &str) -> Option<Vec<u8>> {
    // A length is 16 bits.
    (text.len() < 1 << 14).then(|| value(|fields| fields.string("", text)))
}

/// A number of a width; `None` if it does not fit, or the field holds no number.
fn integer(tag: Tag, number: i64) -> Option<Vec<u8>> {
    Some(match tag {
        Tag::Byte => i8::try_from(number).map(|number| value(|fields| fields.byte("", number))).ok()?,
        Tag::Short => i16::try_from(number).map(|number| value(|fields| fields.short("", number))).ok()?,
        Tag::Int => i32::try_from(number).map(|number| value(|fields| fields.int("", number))).ok()?,
        Tag::Long => value(|fields| fields.long("", number)),
        _ => return None,
    })
}
