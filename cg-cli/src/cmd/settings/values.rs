//! The values of settings as they are printed.

use std::fmt;

use cg_store::settings::{Spawn, WorldSettings};
use serde::{Serialize, Serializer};

/// Settings that a world has, in the order of their list.
#[derive(Debug)]
pub(in crate::cmd) struct Values(Vec<Setting>);

#[derive(Debug)]
struct Setting {
    name: &'static str,
    /// The value on one line, for people.
    text: String,
    /// The value for scripts.
    value: Value,
}

/// A value in JSON.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Value {
    Text(String),
    Number(i64),
    Flag(bool),
    Place { dimension: String, x: i64, y: i64, z: i64 },
    Picture { bytes: usize },
}

impl Values {
    pub(in crate::cmd) fn of(settings: &WorldSettings) -> Self {
        let setting = |name: &&'static str| {
            let text = settings.text(name)?;
            let value = value(settings, name).unwrap_or_else(|| Value::Text(text.clone()));
            Some(Setting { name, text, value })
        };
        Self(WorldSettings::NAMES.iter().filter_map(setting).collect())
    }

    pub(in crate::cmd) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The name that people see, as it is.
    pub(in crate::cmd) fn name(&self) -> Option<&str> {
        self.0.iter().find_map(|setting| match (setting.name, &setting.value) {
            ("name", Value::Text(name)) => Some(name.as_str()),
            _ => None,
        })
    }
}

/// The value of a setting; `None` if it is not there, or this tool does not know its type.
fn value(settings: &WorldSettings, name: &str) -> Option<Value> {
    let text = |text: &Option<String>| text.clone().map(Value::Text);
    let number = |number: Option<i64>| number.map(Value::Number);
    let flag = |flag: Option<bool>| flag.map(Value::Flag);
    let place = |Spawn { dimension, block }: &Spawn| Value::Place {
        dimension: dimension.to_string(),
        x: block.x,
        y: block.y,
        z: block.z,
    };
    match name {
        "name" => text(&settings.name),
        "created_ms" => number(settings.created_ms),
        "changed_ms" => number(settings.changed_ms),
        "engine" => text(&settings.engine),
        "thumbnail" => settings.thumbnail.as_ref().map(|bytes| Value::Picture { bytes: bytes.len() }),
        "seed" => number(settings.seed),
        "spawn" => settings.spawn.as_ref().map(place),
        "time" => number(settings.time),
        "game_time" => number(settings.game_time),
        "time_cycle" => flag(settings.time_cycle),
        "raining" => flag(settings.raining),
        "rain_time" => number(settings.rain_time),
        "thundering" => flag(settings.thundering),
        "thunder_time" => number(settings.thunder_time),
        "weather_cycle" => flag(settings.weather_cycle),
        "required_sleep_ticks" => number(settings.required_sleep_ticks),
        "game_mode" => text(&settings.game_mode),
        "difficulty" => text(&settings.difficulty),
        "tick_range" => number(settings.tick_range),
        _ => None,
    }
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|setting| (setting.name, &setting.value)))
    }
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|Setting { name, text, .. }| writeln!(f, "{name} = {text}"))
    }
}
