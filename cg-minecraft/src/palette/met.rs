//! Palettes that no form would write as they were met.

use std::collections::HashMap;
use std::sync::Arc;

use cg_snapshot::nbt::{self, Compound, Field, Tag, Value};

use super::{Form, Spelling};
use crate::game;
use crate::packed::{Packing, bits_for};
use crate::section::{Blocks, CELLS};
use crate::state::{self, Entry, Shape, StateError};

/// A set of forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forms(u8);

impl Forms {
    /// Every form.
    pub const ALL: Self = Self(0b1111);
    const NONE: Self = Self(0);
    /// Those until 26.3, whose entries without a cell have no meaning.
    const OLD: Self = Self(Self::one(Form::Named).0 | Self::one(Form::Padded).0);

    /// Whether this form is in the set.
    pub const fn has(self, form: Form) -> bool {
        self.0 & Self::one(form).0 != 0
    }

    const fn one(form: Form) -> Self {
        Self(1 << form as u8)
    }

    const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// An entry of a palette: its state, and the forms that would write it as it was met.
#[derive(Debug, Clone)]
pub struct Met {
    /// With all properties that the block has in the column's version.
    pub text: Arc<str>,
    shape: Shape,
    forms: Forms,
}

impl Met {
    /// Reads an entry of a column of this version.
    ///
    /// # Errors
    /// [`StateError`], as [`state::from_nbt`] says it.
    pub fn read(entry: Value<'_>, data_version: i32) -> Result<Self, StateError> {
        let entry = state::from_nbt(entry)?;
        let text: Arc<str> = game::complete(&entry.text, data_version).into();
        let fitting =
            Form::ALL.into_iter().filter(|form| is_spelled_so(*form, (&text, data_version), &entry));
        let forms = fitting.fold(Forms::NONE, |all, form| Forms(all.0 | Forms::one(form).0));
        Ok(Self { text, shape: entry.shape, forms })
    }
}

/// Whether a form spells a state as this entry does.
fn is_spelled_so(form: Form, (text, data_version): (&str, i32), entry: &Entry) -> bool {
    let Ok(spelling) = form.spell(text, data_version) else { return false };
    let is_old = Forms::OLD.has(form);
    let shape = if is_old { Shape::Named } else { Shape::Id };
    let is_same = match spelling {
        Spelling::Text(_) => matches!(entry.shape, Shape::Text | Shape::Wrapped),
        Spelling::Compound(_, said) => {
            let has_none = form == Form::Padded && said.is_empty();
            entry.shape == shape
                && entry.has_no_properties == has_none
                && state::parse(&entry.text).is_ok_and(|(_, met)| met == said)
        }
    };
    entry.is_plain && is_same
}

/// The forms that would write a section's palette as it was met: each entry that a cell shows, and, in the forms since 26.3,
/// as a list of that kind without entries that no cell shows.
pub fn forms_of(entries: &[Met], kind: Tag, counts: impl FnOnce() -> Vec<u32>) -> Forms {
    let all = entries.iter().fold(Forms::ALL, |all, entry| all.and(entry.forms));
    if all.has(Form::Named) || all.has(Form::Padded) {
        // Most sections are of these forms, and then no entry is of another.
        return all;
    }
    let counts = counts();
    let shown = || entries.iter().zip(&counts).filter(|(_, count)| **count > 0).map(|(entry, _)| entry);
    let fit = shown().fold(Forms::ALL, |all, entry| all.and(entry.forms));
    let has_compound = shown().any(|entry| entry.shape == Shape::Id);
    let is_list_so = kind == if has_compound { Tag::Compound } else { Tag::String };
    if is_list_so && counts.iter().all(|count| *count > 0) { fit } else { fit.and(Forms::OLD) }
}

/// A section's palette as it was met, where the column's form would write it otherwise: a default state that is spelled out,
/// `{id}` beside names, fields that no form has.
///
/// It is written again while its section shows the same states, cell for cell; so it never says what is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetPalette {
    /// A compound of the list, and of the indices if two entries are of one state.
    fields: Vec<u8>,
}

impl MetPalette {
    /// Keeps a palette, and its indices if two entries are of one state; both are given as fields.
    pub fn new(entries: &[Met], palette: Field<'_>, indices: Option<Field<'_>>) -> Self {
        let mut texts: Vec<&str> = entries.iter().map(|entry| &*entry.text).collect();
        texts.sort_unstable();
        let is_doubled = texts.windows(2).any(|pair| pair.first() == pair.last());
        let fields = nbt::payload(|out| {
            out.raw_fields(palette.raw);
            indices.filter(|_| is_doubled).into_iter().for_each(|indices| out.raw_fields(indices.raw));
        });
        Self { fields }
    }

    /// The palette of a stored object's bytes. What they say is checked when it is written.
    pub fn from_raw(fields: &[u8]) -> Self {
        Self { fields: fields.to_vec() }
    }

    /// A compound, for a stored object.
    pub fn raw(&self) -> &[u8] {
        &self.fields
    }

    /// The palette as a field, its length, and the packed indices of a section's blocks into it; `None` if the section shows
    /// other states than were met, or these are no fields of these names.
    pub fn of_blocks(
        &self,
        blocks: &Blocks,
        (palette, indices): (&str, &str),
        (data_version, packing): (i32, Packing),
    ) -> Option<(&[u8], usize, Vec<i64>)> {
        let fields = Compound::parse(&self.fields, &nbt::Limits::default()).ok()?;
        let palette = fields.field(palette)?;
        let list = palette.value.as_list()?;
        let read = |entry| Met::read(entry, data_version).ok().map(|entry| entry.text);
        let texts: Vec<Arc<str>> = list.values().map(read).collect::<Option<_>>()?;
        if texts.is_empty() || texts.len() > 1 << 16 {
            return None;
        }
        let words = if let Some(Value::LongArray(words)) = fields.get(indices) {
            let met = packing.unpack(words, texts.len()).ok()?;
            let is_same = |cell: u16| {
                let met = met.get(usize::from(cell)).and_then(|index| texts.get(usize::from(*index)));
                met.is_some() && met == blocks.state(cell)
            };
            (0..CELLS as u16).all(is_same).then(|| words.values().collect())?
        } else {
            let numbers = texts.iter().enumerate().map(|(number, text)| (text, number as u16));
            let numbers: HashMap<&Arc<str>, u16> = numbers.collect();
            let shown = blocks.palette.iter().zip(blocks.counts());
            let numbers: Vec<u16> = shown
                .map(|(state, count)| numbers.get(state).copied().or((count == 0).then_some(0)))
                .collect::<Option<_>>()?;
            let mut cells = Box::new([0; CELLS]);
            for (cell, index) in cells.iter_mut().zip(0..) {
                *cell = *numbers.get(usize::from(blocks.index(index)))?;
            }
            packing.pack(&cells, bits_for(texts.len()))
        };
        Some((palette.raw, texts.len(), words))
    }
}
