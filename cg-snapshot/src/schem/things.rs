//! Block entities and entities of a schematic, in one form for both versions.

use super::SchemError;
use crate::nbt::{self, Compound, List, Tag, Text, Value};

/// A block entity, such as the content of a chest or the text of a sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockEntity {
    /// Its kind, such as `minecraft:chest`, exactly as in the file.
    pub id: String,
    /// Its position: x, y, z from the lowest corner. It may be outside.
    pub pos: [i32; 3],
    /// Its other fields: an NBT compound's bytes, fields and end tag.
    pub data: Vec<u8>,
}

/// An entity, such as an animal, a painting or a cart.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemEntity {
    /// Its kind, such as `minecraft:cow`, exactly as in the file.
    pub id: String,
    /// Its position: x, y, z from the lowest corner, in blocks. It may be outside.
    pub pos: [f64; 3],
    /// Its other fields: an NBT compound's bytes, fields and end tag. Riders are in its `Passengers`.
    pub data: Vec<u8>,
}

/// A list of compounds as stored in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Things {
    /// Element kind, count and elements; empty if there is no list.
    raw: Vec<u8>,
}

/// Fields that [`BlockEntity`] and [`SchemEntity`] have as members of their own.
const OWN: [&str; 2] = ["Id", "Pos"];

impl Things {
    /// Checks a list.
    pub(super) fn new(
        field: &'static str,
        raw: Vec<u8>,
        limits: &nbt::Limits,
        is_pos: fn(Compound<'_>) -> bool,
    ) -> Result<Self, SchemError> {
        let list = List::parse(&raw, limits).map_err(|error| SchemError::Nbt {
            field,
            at_bytes: error.at_bytes as u64,
            problem: error.problem,
        })?;
        if !list.is_empty() && list.tag() != Tag::Compound {
            return Err(SchemError::Thing { field, index: 0, problem: "it is no compound" });
        }
        for (index, thing) in list.compounds().enumerate() {
            let problem = if id(thing).is_none() {
                "it has no Id, or one that is no text"
            } else if !is_pos(thing) {
                "it has no Pos of three numbers"
            } else {
                continue;
            };
            return Err(SchemError::Thing { field, index, problem });
        }
        Ok(Self { raw })
    }

    pub(super) fn len(&self) -> usize {
        self.list().map_or(0, List::len)
    }

    fn list(&self) -> Option<List<'_>> {
        // Checked when it was read.
        List::parse(&self.raw, &nbt::Limits { depth: u16::MAX, elements: u64::MAX }).ok()
    }

    /// The kind, the whole compound and the other fields of each.
    fn each(&self, version: u8) -> impl Iterator<Item = (String, Compound<'_>, Vec<u8>)> {
        let list = self.list().into_iter().flat_map(List::compounds);
        list.map(move |thing| (id(thing).unwrap_or_default(), thing, data(thing, version)))
    }

    /// Visits the names of fields outside `Data`, which no [`BlockEntity`] or [`SchemEntity`] contains.
    pub(super) fn each_beside_data(&self, version: u8, mut show: impl FnMut(Text<'_>)) {
        let list = self.list().into_iter().flat_map(List::compounds);
        for thing in list.filter(|thing| has_data(*thing, version)) {
            let is_known = |name: Text<'_>| OWN.iter().chain(&["Data"]).any(|known| name == **known);
            thing.fields().map(|field| field.name).filter(|name| !is_known(*name)).for_each(&mut show);
        }
    }

    pub(super) fn block_entities(&self, version: u8) -> impl Iterator<Item = BlockEntity> {
        let each = self.each(version);
        each.map(|(id, thing, data)| BlockEntity { id, pos: cell(thing).unwrap_or_default(), data })
    }

    pub(super) fn entities(&self, version: u8) -> impl Iterator<Item = SchemEntity> {
        let each = self.each(version);
        each.map(|(id, thing, data)| SchemEntity { id, pos: point(thing).unwrap_or_default(), data })
    }
}

/// Whether the other fields are in a `Data` compound.
fn has_data(thing: Compound<'_>, version: u8) -> bool {
    version > 2 && thing.compound("Data").is_some()
}

fn id(thing: Compound<'_>) -> Option<String> {
    let id = thing.text("Id").or_else(|| thing.text("id"))?;
    id.decode().map(std::borrow::Cow::into_owned)
}

/// `Data` of version 3, or the fields of version 2 except `Id` and `Pos`. In version 2 `Data` is an ordinary field.
fn data(thing: Compound<'_>, version: u8) -> Vec<u8> {
    if let Some(data) = thing.compound("Data").filter(|_| has_data(thing, version)) {
        return data.raw().to_vec();
    }
    let own = |name: Text<'_>| OWN.iter().any(|own| name == **own);
    let others = thing.fields().filter(|field| !own(field.name));
    let mut data: Vec<u8> = others.flat_map(|field| field.raw).copied().collect();
    data.push(Tag::End as u8);
    data
}

/// The position of a block entity.
pub(super) fn cell(thing: Compound<'_>) -> Option<[i32; 3]> {
    let numbers: Vec<i32> = match thing.get("Pos")? {
        Value::IntArray(ints) => ints.values().collect(),
        Value::List(list) => {
            let numbers = list.values().map(|value| value.as_long().and_then(|n| i32::try_from(n).ok()));
            numbers.collect::<Option<_>>()?
        }
        _ => return None,
    };
    numbers.try_into().ok()
}

/// The position of an entity.
pub(super) fn point(thing: Compound<'_>) -> Option<[f64; 3]> {
    let numbers: Option<Vec<f64>> = thing.list("Pos")?.values().map(Value::as_double).collect();
    numbers?.try_into().ok()
}
