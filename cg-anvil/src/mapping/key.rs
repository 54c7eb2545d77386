//! The keys of what an import keeps as objects of a world.
//!
//! | object | what it holds |
//! |---|---|
//! | `minecraft/column/<dimension>/r.X.Z/<x>/<z>` | [`Leftovers`](super::Leftovers) of a column |
//! | `minecraft/poi/<dimension>/r.X.Z/<x>/<z>` | [`Points`](super::slots::Points): what the slot of `poi/` held |
//! | `minecraft/entities/<dimension>/r.X.Z/<x>/<z>` | [`EntitySlot`](super::slots::EntitySlot): what of a slot of `entities/` is no entity |
//! | `minecraft/slot…/<dimension>/r.X.Z/<x>/<z>` | [`KeptSlot`](super::KeptSlot): a slot with an unreadable part |
//! | `minecraft/layout/<dimension>` | [`MetLayout`](super::layout::MetLayout): in which folder the dimension was met |
//! | `minecraft/player/<uuid>` | that an entity stands for the files of a player |
//! | `minecraft/file/<path>` | a file of the save, from the save's folder on |
//!
//! The dimension is escaped as in a property of a column, and `r.X.Z` is the region, so that a prefix lists a
//! dimension or a region.

use cg_minecraft::name;
use cg_store::Error;
use cg_store::objects::ObjectKey;

use super::kept::{self, Folder, slot_key};
use super::layout::LAYOUT_PREFIX;
use super::player::PLAYER_PREFIX;
use crate::region::{ColumnPos, RegionPos};

/// How the keys of all objects begin that an import makes.
pub const PREFIX: &str = "minecraft/";
/// How the keys of files begin.
pub const FILE_PREFIX: &str = "minecraft/file/";

pub(crate) const COLUMN_PREFIX: &str = "minecraft/column/";
pub(crate) const POI_PREFIX: &str = "minecraft/poi/";
pub(crate) const ENTITIES_PREFIX: &str = "minecraft/entities/";

/// The object of a column.
///
/// # Errors
/// [`Error::ObjectKey`] when the dimension's name is too long for a key.
pub fn column_key(dimension: &str, column: ColumnPos) -> Result<ObjectKey, Error> {
    of_column(COLUMN_PREFIX, dimension, column)
}

/// The object of a column's points of interest.
///
/// # Errors
/// As [`column_key`].
pub fn poi_key(dimension: &str, column: ColumnPos) -> Result<ObjectKey, Error> {
    of_column(POI_PREFIX, dimension, column)
}

/// The object of a column's slot of `entities/`.
///
/// # Errors
/// As [`column_key`].
pub fn entities_key(dimension: &str, column: ColumnPos) -> Result<ObjectKey, Error> {
    of_column(ENTITIES_PREFIX, dimension, column)
}

/// The objects of a column that mean nothing without its chunks.
///
/// # Errors
/// As [`column_key`].
pub fn keys_of_column(dimension: &str, column: ColumnPos) -> Result<[ObjectKey; 6], Error> {
    let [region, entities, poi] = Folder::ALL.map(|folder| slot_key(folder, dimension, column));
    let [left, points] = [column_key(dimension, column)?, poi_key(dimension, column)?];
    Ok([left, points, entities_key(dimension, column)?, region?, entities?, poi?])
}

/// Whether a key is of an object that says of an entity that it is an imported player: it holds of its own world alone.
pub fn is_of_player(key: &[u8]) -> bool {
    key.starts_with(PLAYER_PREFIX.as_bytes())
}

/// Whether a key is of an object that an import makes.
pub(crate) fn is_of_import(key: &[u8]) -> bool {
    let kept = [kept::REGION_PREFIX, kept::ENTITIES_PREFIX, kept::POI_PREFIX];
    let prefixes = [COLUMN_PREFIX, POI_PREFIX, ENTITIES_PREFIX, LAYOUT_PREFIX, PLAYER_PREFIX, FILE_PREFIX];
    prefixes.into_iter().chain(kept).any(|prefix| key.starts_with(prefix.as_bytes()))
}

/// How the keys of all columns of a dimension begin that begin with a prefix.
pub(crate) fn dimension_prefix(prefix: &str, dimension: &str) -> String {
    format!("{prefix}{}/", name::escaped(dimension))
}

/// The column of an object, from how the keys of its dimension begin.
pub(crate) fn column_of(key: &[u8], dimension_prefix: &str) -> Option<ColumnPos> {
    let rest = std::str::from_utf8(key.strip_prefix(dimension_prefix.as_bytes())?).ok()?;
    let mut parts = rest.rsplit('/');
    let (z, x) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let column = ColumnPos::new(x, z);
    let region = column.region();
    let is_own = format!("r.{}.{}/{x}/{z}", region.x(), region.z()) == rest;
    (is_own && RegionPos::new(region.x(), region.z()).is_some()).then_some(column)
}

/// The object of a file, by its path from the save's folder on with `/` between its parts.
///
/// # Errors
/// [`Error::ObjectKey`] when the path is too long for a key.
pub fn file_key(path: &str) -> Result<ObjectKey, Error> {
    ObjectKey::new(format!("{FILE_PREFIX}{path}"))
}

/// The object of a column below a prefix.
pub(super) fn of_column(prefix: &str, dimension: &str, column: ColumnPos) -> Result<ObjectKey, Error> {
    let (region, ColumnPos { x, z }) = (column.region(), column);
    let dimension = dimension_prefix(prefix, dimension);
    ObjectKey::new(format!("{dimension}r.{}.{}/{x}/{z}", region.x(), region.z()))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn keys_list_by_dimension_and_region() {
        let key = |key: Result<ObjectKey, Error>| key.map(|key| key.to_string());
        let found = [
            key(column_key("minecraft:overworld", ColumnPos::new(-1, 33))),
            key(poi_key("a:b@c", ColumnPos::new(0, -1))),
            key(entities_key("a:b", ColumnPos::new(0, -1))),
            key(file_key("data/raids.dat")),
        ];
        let found: Vec<_> = found.into_iter().map(|key| key.expect("short")).collect();
        expect![[r"
            minecraft/column/minecraft:overworld/r.-1.1/-1/33
            minecraft/poi/a:b%40c/r.0.-1/0/-1
            minecraft/entities/a:b/r.0.-1/0/-1
            minecraft/file/data/raids.dat"]]
        .assert_eq(&found.join("\n"));
        let error = file_key(&"x".repeat(512)).expect_err("too long").to_string();
        expect!["the key of an object has 527 bytes, allowed are 1 to 512"].assert_eq(&error);
    }

    #[test]
    fn only_keys_that_are_made_here_tell_a_column() {
        let prefix = dimension_prefix(ENTITIES_PREFIX, "a:b");
        let key = |rest: &str| column_of(format!("{prefix}{rest}").as_bytes(), &prefix);
        assert_eq!(key("r.-1.1/-1/33"), Some(ColumnPos::new(-1, 33)));
        let others = [
            "",
            "-1",
            "-1/33",
            "r.-1.1/-1/+33",
            "r.-1.1/-01/33",
            "r.-1.1/-1/33/",
            "r.-1.1/-1/33\0",
            "r.0.1/-1/33",
        ];
        for other in others {
            assert_eq!(key(other), None, "{other:?}");
        }
        assert_eq!(column_of(b"minecraft/entities/a:c/r.0.0/0/0", &prefix), None);
    }
}
