//! The settings of a world: what a launcher shows, and what a server needs before the first player joins.

use cg_format::frame::LEN_BYTES;
use cg_format::wire::{Reader, Writer};
use cg_format::{BlockPos, DecodeError, Problem, Section};
use cg_registry::Name;

use crate::engine::ErrorKind;
use crate::kinds::property::Property;
use crate::storage::error::{Damage, Error};

/// The longest text of a setting.
const MAX_TEXT_BYTES: usize = 256;
/// The longest thumbnail.
const MAX_THUMBNAIL_BYTES: usize = 256 << 10;
/// The first bytes of each PNG file.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Where players appear who have no place of their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Spawn {
    /// The name of the dimension: ids of another world are others.
    pub dimension: Name,
    /// The block in it.
    pub block: BlockPos,
}

/// Defines the settings, with the property that holds each.
macro_rules! settings {
    ($($(#[$about:meta])+ $field:ident: $of:ty = $property:expr,)+) => {
        /// The settings of a world, each with its type. `None` is a setting that the world does not have.
        ///
        /// Each is a [`Property`] of its own, so a server that does not know a setting leaves it as it is, and settings are
        /// committed together with chunks and players.
        ///
        /// ```
        /// use cg_store::prelude::*;
        /// use cg_store::settings::WorldSettings;
        /// let world = World::builder().in_memory()?;
        /// let mut settings = WorldSettings::default();
        /// settings.name = Some("Grove".into());
        /// settings.raining = Some(true);
        /// world.transaction(|tx| tx.set_settings(&settings))?;
        /// assert_eq!(WorldSettings::of(&world)?.name.as_deref(), Some("Grove"));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct WorldSettings {
            $($(#[$about])+ pub $field: Option<$of>,)+
        }

        impl WorldSettings {
            /// The names of all settings, which are those of the fields.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field)),+];

            /// The longest thumbnail.
            pub const MAX_THUMBNAIL_BYTES: usize = MAX_THUMBNAIL_BYTES;

            /// The properties that hold the settings, in the order of [`NAMES`](Self::NAMES).
            pub fn properties() -> Vec<Property> {
                vec![$($property),+]
            }

            /// The properties of the settings that are there.
            ///
            /// # Errors
            /// [`Error::TooLarge`] and [`Error::Setting`].
            pub(crate) fn encode(&self) -> Result<Vec<(Property, Vec<u8>)>, Error> {
                $(self.$field.as_ref().map_or(Ok(()), |value| value.check(stringify!($field)))?;)+
                let all = Self::NAMES.iter().zip(Self::properties());
                Ok(all.filter_map(|(name, property)| Some((property, self.bytes(name)?))).collect())
            }

            /// Takes each setting that a newer value has.
            pub fn update(&mut self, newer: &Self) {
                $(if newer.$field.is_some() {
                    self.$field.clone_from(&newer.$field);
                })+
            }

            /// A setting as one line of text, such as `true`, `-3` or `minecraft:overworld 8 64 -8`; of a thumbnail its
            /// length. `None` if there is no such setting, or the world does not have it.
            pub fn text(&self, name: &str) -> Option<String> {
                match name {
                    $(stringify!($field) => self.$field.as_ref().map(Value::show),)+
                    _ => None,
                }
            }

            /// Sets a setting from a text: a number, `true` or `false`, a place as [`text`](Self::text) shows it; any other
            /// text is taken as it is. A thumbnail cannot be set so.
            ///
            /// # Errors
            /// [`Error::Setting`].
            pub fn set_text(&mut self, name: &str, text: &str) -> Result<(), Error> {
                match name {
                    $(stringify!($field) => {
                        let value = <$of>::parse(text);
                        let value = value.ok_or_else(|| not(name, text, <$of>::ALLOWED))?;
                        value.check(name)?;
                        self.$field = Some(value);
                        Ok(())
                    })+
                    _ => Err(not(name, text, "no setting has this name")),
                }
            }

            /// The bytes that the [property](Self::properties) of a setting has. `None` if there is no such setting, or the world
            /// does not have it.
            pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
                let mut bytes = Vec::new();
                match name {
                    $(stringify!($field) => self.$field.as_ref()?.encode(&mut bytes),)+
                    _ => return None,
                }
                Some(bytes)
            }

            /// Sets a setting from the bytes of its property.
            fn set_bytes(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error> {
                match name {
                    $(stringify!($field) => {
                        self.$field = Some(open(&$property, stringify!($field), bytes)?);
                    })+
                    // Only names of settings are asked for.
                    _ => {}
                }
                Ok(())
            }
        }
    };
}

impl WorldSettings {
    /// The settings that some properties hold, in the order of [`properties`](Self::properties).
    ///
    /// # Errors
    /// That of the first one that cannot be read; [`Error::Corrupt`] for bytes that are not of the setting's type.
    pub(crate) fn decode(rows: Vec<Result<Option<Vec<u8>>, Error>>) -> Result<Self, Error> {
        let mut damage = None;
        let settings = Self::decode_sound(rows, |_, error| damage = damage.take().or(Some(error)))?;
        damage.map_or(Ok(settings), Err)
    }

    /// As [`decode`](Self::decode), without those that are damaged, which `damaged` gets by name.
    pub(crate) fn decode_sound(
        rows: Vec<Result<Option<Vec<u8>>, Error>>,
        mut damaged: impl FnMut(&'static str, Error),
    ) -> Result<Self, Error> {
        let mut settings = Self::default();
        for (name, row) in Self::NAMES.iter().zip(rows) {
            match row.and_then(|bytes| bytes.map_or(Ok(()), |bytes| settings.set_bytes(name, &bytes))) {
                Err(error) if error.kind() == ErrorKind::Damaged => damaged(name, error),
                read => read?,
            }
        }
        Ok(settings)
    }

    /// Sets the thumbnail: a PNG file of at most 256 KiB. It is not decoded.
    ///
    /// # Errors
    /// [`Error::Setting`] if it does not begin as a PNG file, [`Error::TooLarge`].
    pub fn set_thumbnail(&mut self, png: Vec<u8>) -> Result<(), Error> {
        png.check("thumbnail")?;
        self.thumbnail = Some(png);
        Ok(())
    }
}

settings! {
    /// The name that people see: at most 256 bytes.
    name: String = Property::Name,
    /// When the world was made, by the clock of its host: milliseconds since 1970.
    created_ms: i64 = Property::Created,
    /// When the world was changed last, likewise. The host sets it, for example each time that it saves.
    changed_ms: i64 = Property::Changed,
    /// The program that wrote the world last, with its version: at most 256 bytes.
    engine: String = Property::Engine,
    /// A picture of the world: a PNG file of at most 256 KiB. It is never decoded.
    thumbnail: Vec<u8> = Property::Thumbnail,
    /// The seed of the generator.
    seed: i64 = Property::Seed,
    /// Where players appear who have no place of their own.
    spawn: Spawn = named("cg:spawn"),
    /// The time of day, in ticks of the game: what players see.
    time: i64 = Property::Time,
    /// The ticks that the world has run. They never go back.
    game_time: i64 = named("cg:game_time"),
    /// Whether the time of day goes on.
    time_cycle: bool = named("cg:time_cycle"),
    /// Whether it rains.
    raining: bool = named("cg:raining"),
    /// The ticks until that changes.
    rain_time: i64 = named("cg:rain_time"),
    /// Whether there is a thunderstorm when it rains.
    thundering: bool = named("cg:thundering"),
    /// The ticks until that changes.
    thunder_time: i64 = named("cg:thunder_time"),
    /// Whether the weather changes.
    weather_cycle: bool = named("cg:weather_cycle"),
    /// The ticks that players must sleep until it is day.
    required_sleep_ticks: i64 = named("cg:required_sleep_ticks"),
    /// The game mode of players who join for the first time, such as `survival`: at most 256 bytes.
    game_mode: String = named("cg:game_mode"),
    /// The difficulty, such as `hard`: at most 256 bytes.
    difficulty: String = named("cg:difficulty"),
    /// The distance from a player within which blocks and entities are ticked, in chunks.
    tick_range: i64 = named("cg:tick_range"),
}

fn named(name: &str) -> Property {
    Property::Named(Name::new(name).expect("a literal name"))
}

fn not(name: &str, found: &str, allowed: &'static str) -> Error {
    Error::Setting { name: name.into(), found: found.into(), allowed }
}

fn open<V: Value>(property: &Property, field: &'static str, row: &[u8]) -> Result<V, Error> {
    let mut reader = Reader::at_offset(row, LEN_BYTES as u64, Section::Frame);
    let decoded = V::decode(&mut reader, field).and_then(|value| {
        reader.end("bytes after the setting")?;
        Ok(value)
    });
    decoded.map_err(|problem| {
        let (space, key) = property.row();
        Damage::of_row(space, key, format!("setting `{field}`"), problem)
    })
}

/// A type of settings.
trait Value: Sized {
    /// The allowed texts, in words.
    const ALLOWED: &'static str;

    fn encode(&self, out: &mut Vec<u8>);

    fn decode(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError>;

    fn check(&self, _name: &str) -> Result<(), Error> {
        Ok(())
    }

    fn show(&self) -> String;

    fn parse(text: &str) -> Option<Self>;
}

impl Value for i64 {
    const ALLOWED: &'static str = "it is a whole number";

    fn encode(&self, out: &mut Vec<u8>) {
        Writer::new(out).i64(*self);
    }

    fn decode(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
        reader.i64(field)
    }

    fn show(&self) -> String {
        self.to_string()
    }

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Value for bool {
    const ALLOWED: &'static str = "it is `true` or `false`";

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn decode(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
        let here = reader.clone();
        match reader.u8(field)? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(here.error(Problem::OutOfRange { field, found: found.into(), allowed: "0 or 1" })),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Value for String {
    const ALLOWED: &'static str = "it is text of at most 256 bytes";

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.as_bytes());
    }

    fn decode(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
        let here = reader.clone();
        let bytes = reader.rest();
        let text = str::from_utf8(bytes).map_err(|error| {
            let found = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
            here.error(Problem::NotUtf8 { field, found })
        })?;
        Ok(text.to_owned())
    }

    fn check(&self, name: &str) -> Result<(), Error> {
        at_most(name, self.len(), MAX_TEXT_BYTES)
    }

    fn show(&self) -> String {
        let mut shown = Self::new();
        for c in self.chars() {
            match c {
                '\\' => shown.push_str("\\\\"),
                c if c.is_control() => shown.extend(c.escape_default()),
                c => shown.push(c),
            }
        }
        shown
    }

    fn parse(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

impl Value for Spawn {
    const ALLOWED: &'static str = "it is the name of a dimension, and x, y and z of a block";

    fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        for coordinate in [self.block.x, self.block.y, self.block.z] {
            writer.i64(coordinate);
        }
        writer.bytes(self.dimension.as_str().as_bytes());
    }

    fn decode(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
        let [x, y, z] = [reader.i64(field)?, reader.i64(field)?, reader.i64(field)?];
        let here = reader.clone();
        let text = String::decode(reader, field)?;
        let dimension = Name::new(text.as_str()).map_err(|_| {
            let (found, allowed) = (text.len() as u64, "a name of a dimension");
            here.error(Problem::OutOfRange { field: "dimension of the spawn", found, allowed })
        })?;
        Ok(Self { dimension, block: BlockPos::new(x, y, z) })
    }

    fn show(&self) -> String {
        let BlockPos { x, y, z } = self.block;
        format!("{} {x} {y} {z}", self.dimension)
    }

    fn parse(text: &str) -> Option<Self> {
        // A name may have spaces.
        let mut words = text.rsplitn(4, ' ');
        let [z, y, x] =
            [words.next()?.parse().ok()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?];
        let dimension = Name::new(words.next()?).ok()?;
        Some(Self { dimension, block: BlockPos::new(x, y, z) })
    }
}

/// A PNG file.
impl Value for Vec<u8> {
    const ALLOWED: &'static str = "it is a PNG file";

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self);
    }

    fn decode(reader: &mut Reader<'_>, _: &'static str) -> Result<Self, DecodeError> {
        Ok(reader.rest().to_vec())
    }

    fn check(&self, name: &str) -> Result<(), Error> {
        if !self.starts_with(PNG) {
            let found = format!("{} bytes that begin with {:02x?}", self.len(), &self[..self.len().min(8)]);
            return Err(not(name, &found, Self::ALLOWED));
        }
        at_most(name, self.len(), MAX_THUMBNAIL_BYTES)
    }

    fn show(&self) -> String {
        format!("{} bytes", self.len())
    }

    fn parse(_: &str) -> Option<Self> {
        None
    }
}

fn at_most(name: &str, found: usize, limit: usize) -> Result<(), Error> {
    let (len_bytes, limit_bytes) = (found as u64, limit as u64);
    let what = || format!("setting `{name}`");
    if found > limit { Err(Error::TooLarge { what: what(), len_bytes, limit_bytes }) } else { Ok(()) }
}
