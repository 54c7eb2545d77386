//! Reading a slot's NBT.

use std::collections::BTreeSet;

use cg_minecraft::packed::Packing;
use cg_minecraft::palette::Form;

use super::section::{self, Found, Read, States};
use super::{
    BlockEntity, Column, ColumnError, ColumnProblem, EntityColumn, Fault, Lists, Payload, SectionOrder,
    stated,
};
use crate::nbt::{self, Compound, Document, Field, List, Tag, Text, Value};
use crate::region::ColumnPos;

/// The first version with states by name (17w47a).
pub(crate) const NAMED_STATES: i32 = 1451;
/// The first version whose indices do not span words (20w17a).
pub(crate) const PADDED_WORDS: i32 = 2529;
/// The first version whose sections hold `block_states` (21w37a).
pub(crate) const CONTAINERS: i32 = 2834;
/// The first version without `Level` (21w43a).
pub(crate) const NO_LEVEL: i32 = 2844;

/// Fields that stay true whatever becomes of the blocks, or that say how the others are read.
const CARRIED: [&[u8]; 5] = [b"Status", b"LastUpdate", b"InhabitedTime", b"yPos", b"Biomes"];
/// Fields of a root that are read, or follow from what is.
const MAPPED: [&[u8]; 6] = [b"DataVersion", b"xPos", b"zPos", b"sections", b"block_entities", b"entities"];
/// The same of `Level`.
const MAPPED_IN_LEVEL: [&[u8]; 5] = [b"xPos", b"zPos", b"Sections", b"TileEntities", b"Entities"];

/// Reads columns, one after the other: the texts of block states are shared between them.
///
/// One per thread. Holds at most 65,536 texts.
#[derive(Debug, Default)]
pub struct Decoder {
    limits: nbt::Limits,
    states: States,
}

impl Decoder {
    /// A decoder with these limits for each slot's NBT.
    pub fn new(limits: nbt::Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Reads what a slot holds, after decompression.
    ///
    /// # Errors
    /// [`ColumnError`], when nothing of it can be read. Damage inside a section is in [`Column::problems`] instead.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<Payload, ColumnError> {
        let Document { name, root, trailing } = Document::parse(bytes, &self.limits)?;
        let mut payload = self.root(root)?;
        let beside =
            [("the root's name", !name.0.is_empty()), ("bytes behind the root", !trailing.is_empty())];
        let mut beside = beside.into_iter().filter(|(_, is_there)| *is_there).map(|(what, _)| what);
        match &mut payload {
            Payload::Column(column) => column.not_carried.extend(beside.map(str::to_owned)),
            Payload::Entities(_) => {
                if let Some(what) = beside.next() {
                    return Err(ColumnError::Beside { what });
                }
            }
            // Their slot is kept whole.
            Payload::PointsOfInterest => {}
        }
        Ok(payload)
    }

    fn root(&mut self, root: Compound<'_>) -> Result<Payload, ColumnError> {
        let data_version = root.int("DataVersion").unwrap_or(0);
        let level = root.compound("Level");
        let is_column = is_column(root);
        // From then on no game looks into it.
        if let Some(level) = level.filter(|_| !is_column && data_version < NO_LEVEL) {
            if data_version < NAMED_STATES {
                let pos = level.int("xPos").zip(level.int("zPos")).map(|(x, z)| ColumnPos::new(x, z));
                return Err(ColumnError::TooOld { data_version, pos });
            }
            let mut column = self.column(root, level, data_version)?;
            note_doubled(root, "", &mut column.not_carried);
            let beside = root.fields().filter(|field| !matches!(field.name.0, b"DataVersion" | b"Level"));
            column.beside = compound_of(beside.map(|field| field.raw));
            return Ok(Payload::Column(column));
        }
        if let Some(Value::IntArray(position)) = root.get("Position").filter(|_| !is_column) {
            let mut position = position.values();
            let (Some(x), Some(z)) = (position.next(), position.next()) else {
                return Err(ColumnError::NoPosition);
            };
            return entities(root, ColumnPos::new(x, z), data_version).map(Payload::Entities);
        }
        if root.list("sections").is_some() || root.get("xPos").is_some() {
            // Tools that leave the version out write this layout, and it can be of no version before.
            return self.column(root, root, data_version.max(NO_LEVEL)).map(Payload::Column);
        }
        if level.is_some() {
            return Err(ColumnError::NoPosition);
        }
        if root.compound("Sections").is_some() {
            return Ok(Payload::PointsOfInterest);
        }
        Err(ColumnError::NotAColumn)
    }

    fn column(
        &mut self,
        root: Compound<'_>,
        level: Compound<'_>,
        data_version: i32,
    ) -> Result<Column, ColumnError> {
        let (Some(x), Some(z)) = (level.int("xPos"), level.int("zPos")) else {
            return Err(ColumnError::NoPosition);
        };
        let stated = stated::of_column(root, level, data_version);
        let mut column =
            Column { stated, lists: Lists::NONE, ..Column::new(ColumnPos::new(x, z), data_version) };
        note_doubled(level, "", &mut column.not_carried);
        let (mut left, mut read, mut met) = (Vec::new(), Vec::new(), Vec::new());
        column.carried = nbt::payload(|carried| {
            for field in level.fields() {
                if is_carried(field.name.0) {
                    carried.raw_fields(field.raw);
                } else if is_mapped(field.name.0, data_version) {
                    self.field(field, &mut column, &mut read, &mut met);
                } else {
                    left.push(field.raw);
                }
            }
        });
        column.left = compound_of(left.into_iter());
        take_sections(read, &mut column);
        column.order = SectionOrder::of(met);
        // Of a field that stands twice, one may hold nothing.
        let Column { sections, block_entities, entities, lists, .. } = &mut column;
        for (is_empty, kind) in [
            (sections.is_empty(), &mut lists.sections),
            (block_entities.is_empty(), &mut lists.block_entities),
            (entities.is_empty(), &mut lists.entities),
        ] {
            if !is_empty {
                *kind = Some(Tag::End);
            }
        }
        Ok(column)
    }

    /// Takes a field that is read; notes in `met` in which order sections stand.
    fn field<'a>(
        &mut self,
        field: Field<'a>,
        column: &mut Column,
        read: &mut Vec<Read<'a>>,
        met: &mut Vec<(i8, Tag)>,
    ) {
        match (field.name.0, field.value) {
            (b"DataVersion" | b"xPos" | b"zPos", _) => {}
            (b"sections" | b"Sections", Value::List(list)) if is_of_compounds(list) => {
                column.lists.sections = Some(Lists::kind(list));
                self.sections(list, column, read, met);
            }
            (b"block_entities" | b"TileEntities", Value::List(list)) if is_of_compounds(list) => {
                column.lists.block_entities = Some(Lists::kind(list));
                column.block_entities.extend(list.compounds().map(block_entity));
            }
            (b"entities" | b"Entities", Value::List(list)) if is_of_compounds(list) => {
                column.lists.entities = Some(Lists::kind(list));
                column.entities.extend(list.compounds().map(|entity| entity.raw().to_vec()));
            }
            _ => {
                column.not_carried.insert(field.name.lossy().into_owned());
            }
        }
    }

    fn sections<'a>(
        &mut self,
        list: List<'a>,
        column: &mut Column,
        read: &mut Vec<Read<'a>>,
        met: &mut Vec<(i8, Tag)>,
    ) {
        let data_version = column.data_version;
        let Column { problems, not_carried, .. } = column;
        for nbt in list.compounds() {
            let mut found = Found { problems: &mut *problems, not_carried: &mut *not_carried };
            let Some(section) = section::decode(nbt, data_version, &mut self.states, &mut found) else {
                continue;
            };
            met.extend(i8::try_from(section.section.y).map(|y| SectionOrder::note(y, nbt.get("Y"))));
            read.push(section);
        }
    }
}

/// Puts the sections into their column, in the form that most of them have.
fn take_sections(mut read: Vec<Read<'_>>, column: &mut Column) {
    // Stable: of two with the same y the first stays first.
    read.sort_by_key(|read| read.section.y);
    read.dedup_by(|second, first| {
        let doubled = second.section.y == first.section.y;
        if doubled {
            column.problems.push(ColumnProblem { y: Some(second.section.y), fault: Fault::Doubled });
        }
        doubled
    });
    let of_version = Form::of(column.data_version);
    let fitting = |form: Form| read.iter().filter(|read| read.forms.has(form)).count();
    // Of those that fit as many, that of the version, or the first.
    let form = Form::ALL.into_iter().rev().max_by_key(|form| (fitting(*form), *form == of_version));
    let form = form.unwrap_or(of_version);
    column.form = (form != of_version).then_some(form);
    column.sections = read.into_iter().map(|read| read.of_form(form)).collect();
}

/// Whether the fields of a root are those of a column of the layout without `Level`, whatever stands beside them.
pub(crate) fn is_column(root: Compound<'_>) -> bool {
    root.list("sections").is_some() && root.int("xPos").is_some() && root.int("zPos").is_some()
}

/// Whether a list holds nothing but compounds. One of another kind would vanish.
fn is_of_compounds(list: List<'_>) -> bool {
    list.is_empty() || list.tag() == Tag::Compound
}

/// Whether a field of a column is in [`Column::carried`].
pub(crate) fn is_carried(name: &[u8]) -> bool {
    CARRIED.contains(&name)
}

/// Whether a field of a column of this version is read, so that no other of its name may stand beside what is written for
/// it.
///
/// The names of the other layout are those of fields that no game of the version reads.
pub(crate) fn is_mapped(name: &[u8], data_version: i32) -> bool {
    if data_version < NO_LEVEL { MAPPED_IN_LEVEL.contains(&name) } else { MAPPED.contains(&name) }
}

/// The first field whose name stands before it in the compound.
pub(super) fn doubled(compound: Compound<'_>) -> Option<Text<'_>> {
    let mut names: Vec<_> = compound.fields().map(|field| field.name.0).collect();
    names.sort_unstable();
    names.windows(2).find_map(|pair| matches!(pair, [one, other] if one == other).then(|| Text(pair[0])))
}

/// Takes note of a name that stands twice in a compound: no game reads both.
pub(super) fn note_doubled(compound: Compound<'_>, place: &str, not_carried: &mut BTreeSet<String>) {
    not_carried.extend(doubled(compound).map(|name| format!("{place}{} (twice)", name.lossy())));
}

/// A compound of these fields, unless there are none.
pub(super) fn compound_of<'a>(fields: impl Iterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let mut fields = fields.peekable();
    fields.peek()?;
    Some(nbt::payload(|out| fields.for_each(|field| out.raw_fields(field))))
}

/// How this version packs indices.
pub(crate) const fn packing(data_version: i32) -> Packing {
    if data_version < PADDED_WORDS { Packing::Spanning } else { Packing::Padded }
}

fn entities(root: Compound<'_>, pos: ColumnPos, data_version: i32) -> Result<EntityColumn, ColumnError> {
    if let Some(name) = doubled(root) {
        return Err(ColumnError::Doubled { name: name.lossy().into_owned() });
    }
    let list = match root.get("Entities") {
        None => None,
        Some(Value::List(list)) if is_of_compounds(list) => Some(list),
        Some(_) => return Err(ColumnError::NoEntities),
    };
    let entities = list.into_iter().flat_map(List::compounds);
    let left = root.fields().filter(|field| !is_mapped_in_entities(field.name.0));
    Ok(EntityColumn {
        pos,
        data_version,
        stated: stated::of_entities(root, data_version),
        entities: entities.map(|entity| entity.raw().to_vec()).collect(),
        list: list.map(Lists::kind),
        left: compound_of(left.map(|field| field.raw)),
    })
}

/// Whether a field of a slot of `entities/` is read, so that no other of its name may stand beside what is written for it.
pub(crate) fn is_mapped_in_entities(name: &[u8]) -> bool {
    matches!(name, b"DataVersion" | b"Position" | b"Entities")
}

/// Whether a field of a root that [is no column](is_column) would make a slot of something else of it.
pub(crate) fn is_of_other_slots(field: &Field<'_>) -> bool {
    match (field.name.0, field.value) {
        (b"Level", value) => matches!(value, Value::Compound(_)),
        (b"Position", value) => matches!(value, Value::IntArray(_)),
        _ => false,
    }
}

fn block_entity(nbt: Compound<'_>) -> BlockEntity {
    let pos = (|| Some([nbt.int("x")?, nbt.int("y")?, nbt.int("z")?]))();
    let kind = nbt.text("id").map(|id| id.lossy().into_owned()).unwrap_or_default();
    BlockEntity { pos, kind, nbt: nbt.raw().to_vec() }
}
