//! Reading the settings of a world.

use crate::World;
use crate::kinds::settings::WorldSettings;
use crate::storage::error::Error;

impl WorldSettings {
    /// The last committed settings. Two commits at the same time may each have set some of them.
    ///
    /// Costs one read of many keys.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if one is damaged, or is stored as another type.
    pub fn of(world: &World) -> Result<Self, Error> {
        Self::decode(world.applied()?.read.properties(&Self::properties()))
    }

    /// As [`of`](Self::of), without those that are damaged, which `damaged` gets by name.
    ///
    /// # Errors
    /// All but damage.
    pub fn sound(world: &World, damaged: impl FnMut(&'static str, Error)) -> Result<Self, Error> {
        Self::decode_sound(world.applied()?.read.properties(&Self::properties()), damaged)
    }
}
