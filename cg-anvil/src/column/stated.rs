//! The version and the place that a slot states, where they do not stand as the game writes them.
//!
//! The game writes `DataVersion`, `xPos` and `zPos` as ints, and `Position` as two. Tools write other kinds, or no version.

use super::decode::NO_LEVEL;
use super::{Column, EntityColumn};
use crate::nbt::{self, Compound, Field, Value};

/// A compound of the fields of a column that do so, as they stand; `None` where all stand as the game writes them.
///
/// `level` has the place: it is the root, or `Level` in it.
pub(super) fn of_column(root: Compound<'_>, level: Compound<'_>, data_version: i32) -> Option<Vec<u8>> {
    let place = [level.field("xPos"), level.field("zPos")];
    let is_int = |field: &Option<Field<'_>>| matches!(field, Some(Field { value: Value::Int(_), .. }));
    let is_usual = states(root, data_version) && place.iter().all(is_int);
    (!is_usual).then(|| compound(root.field("DataVersion").into_iter().chain(place.into_iter().flatten())))
}

/// As [`of_column`], of a slot of `entities/`.
pub(super) fn of_entities(root: Compound<'_>, data_version: i32) -> Option<Vec<u8>> {
    let place = root.field("Position");
    let is_usual = states(root, data_version)
        && matches!(place, Some(Field { value: Value::IntArray(place), .. }) if place.len() == 2);
    (!is_usual).then(|| compound(root.field("DataVersion").into_iter().chain(place)))
}

/// Whether a column that is written with these fields is read as this one.
pub(crate) fn is_of_column(stated: &[u8], column: &Column) -> bool {
    let Some(stated) = parse(stated, &[b"DataVersion", b"xPos", b"zPos"]) else { return false };
    let version = stated.int("DataVersion").unwrap_or(0);
    let read_as = if column.data_version < NO_LEVEL { version } else { version.max(NO_LEVEL) };
    read_as == column.data_version
        && stated.int("xPos") == Some(column.pos.x)
        && stated.int("zPos") == Some(column.pos.z)
}

/// Whether a slot of entities that is written with these fields is read as this one.
pub(crate) fn is_of_entities(stated: &[u8], column: &EntityColumn) -> bool {
    let Some(stated) = parse(stated, &[b"DataVersion", b"Position"]) else { return false };
    let Some(Value::IntArray(place)) = stated.get("Position") else { return false };
    stated.int("DataVersion").unwrap_or(0) == column.data_version
        && place.values().take(2).eq([column.pos.x, column.pos.z])
}

fn states(root: Compound<'_>, data_version: i32) -> bool {
    matches!(root.get("DataVersion"), Some(Value::Int(stated)) if stated == data_version)
}

fn compound<'a>(fields: impl Iterator<Item = Field<'a>>) -> Vec<u8> {
    nbt::payload(|out| fields.for_each(|field| out.raw_fields(field.raw)))
}

/// A compound that has fields of these names only, each at most once.
fn parse<'a>(stated: &'a [u8], names: &[&[u8]]) -> Option<Compound<'a>> {
    let stated = Compound::parse(stated, &nbt::Limits::default()).ok()?;
    let count = |name: &[u8]| stated.fields().filter(|field| field.name.0 == name).count();
    let is_known = stated.fields().all(|field| names.contains(&field.name.0));
    (is_known && names.iter().all(|name| count(name) <= 1)).then_some(stated)
}
