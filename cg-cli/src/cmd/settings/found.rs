//! The settings of a world as they are found: a damaged one hides no other.

use std::fmt;

use cg_store::engine::ErrorKind;
use cg_store::settings::WorldSettings;
use cg_store::{Error, Property, World};
use serde::Serialize;

use crate::output::{Failure, hex};

/// The sound settings of a world, and those that are not.
#[derive(Debug)]
pub(in crate::cmd) struct Found {
    pub(in crate::cmd) settings: WorldSettings,
    pub(in crate::cmd) damaged: Vec<Damaged>,
}

/// A setting whose bytes are not of its type, or that cannot be read.
#[derive(Debug, Serialize)]
pub(in crate::cmd) struct Damaged {
    setting: &'static str,
    /// Which row it is, and what is wrong with it.
    problem: String,
}

impl Found {
    pub(in crate::cmd) fn read(world: &World) -> Result<Self, Failure> {
        let mut damaged = Vec::new();
        let settings = WorldSettings::sound(world, |setting, error| {
            damaged.push(Damaged { setting, problem: problem(&error) });
        })?;
        Ok(Self { settings, damaged })
    }

    /// The thumbnail.
    pub(in crate::cmd) fn thumbnail(&self) -> Result<Vec<u8>, Failure> {
        if let Some(damaged) = self.damaged.iter().find(|damaged| damaged.setting == "thumbnail") {
            return Err(Failure::damaged(format!("damaged setting {damaged}")));
        }
        self.settings.thumbnail.clone().ok_or_else(|| {
            Failure::absent("the world has no thumbnail; `cg settings WORLD --thumbnail FILE` sets it")
        })
    }
}

/// The settings by name, each with the property that holds it.
pub(super) fn all() -> impl Iterator<Item = (&'static str, Property)> {
    WorldSettings::NAMES.iter().copied().zip(WorldSettings::properties())
}

/// What is wrong with a setting, without the advice for rows that nothing else can bring back.
fn problem(error: &Error) -> String {
    match error {
        Error::Corrupt(damage) => format!("{:?} row {}: {}", damage.space, hex(&damage.key), damage.problem),
        other => other.to_string(),
    }
}

/// Whether a world has a setting, sound or not.
pub(super) fn is_there(world: &World, property: &Property) -> Result<bool, Failure> {
    match world.property(property) {
        Ok(bytes) => Ok(bytes.is_some()),
        Err(error) if error.kind() == ErrorKind::Damaged => Ok(true),
        Err(error) => Err(error.into()),
    }
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting, problem } = self;
        write!(
            f,
            "{setting} ({problem}); set it again, or remove it with `cg settings WORLD --unset {setting}`"
        )
    }
}
