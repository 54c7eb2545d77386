//! Checked trees as borrowed slices.

use std::borrow::Cow;

use super::cursor::{Budget, Cursor};
use super::{NbtError, NbtProblem, Tag};

/// The limits of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The nesting of compounds and lists.
    pub depth: u16,
    /// Fields and list elements together. Numbers of arrays do not count: the remaining bytes bound them.
    pub elements: u64,
}

impl Default for Limits {
    /// 512 levels, as in the game, and 8 Mi elements.
    fn default() -> Self {
        Self { depth: 512, elements: 8 << 20 }
    }
}

/// A whole tree: a named root and the bytes after it.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// The root's name, empty in every save.
    pub name: Text<'a>,
    /// The root.
    pub root: Compound<'a>,
    /// Bytes after the root; the game ignores them.
    pub trailing: &'a [u8],
}

/// Fields by name: a slice of checked bytes, without the compound's own tag and name, with its end tag.
///
/// A lookup walks over the fields before the result and allocates nothing. Equality compares bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compound<'a> {
    bytes: &'a [u8],
}

/// One field of a compound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Field<'a> {
    /// The name.
    pub name: Text<'a>,
    /// The value.
    pub value: Value<'a>,
    /// Tag, name and value as stored.
    pub raw: &'a [u8],
    /// Bytes from the start of the compound to the field's tag.
    pub offset_bytes: usize,
}

/// Modified UTF-8, not decoded: names and strings. It compares directly with ASCII text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Text<'a>(pub &'a [u8]);

/// One value.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "the kinds are those of `Tag`, described there")]
pub enum Value<'a> {
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
    ByteArray(&'a [u8]),
    String(Text<'a>),
    List(List<'a>),
    Compound(Compound<'a>),
    IntArray(Ints<'a>),
    LongArray(Longs<'a>),
}

/// Values of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct List<'a> {
    tag: Tag,
    count: usize,
    bytes: &'a [u8],
}

/// An array of i32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ints<'a>(&'a [u8]);

/// An array of i64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Longs<'a>(&'a [u8]);

impl<'a> Document<'a> {
    /// Checks a whole tree: tag, name, compound. Reads every byte once and allocates nothing.
    ///
    /// # Errors
    /// Where and why the bytes are not a tree within the limits.
    pub fn parse(bytes: &'a [u8], limits: &Limits) -> Result<Self, NbtError> {
        let mut cursor = Cursor::new(bytes);
        match cursor.tag() {
            Ok(Tag::Compound) => {}
            Ok(tag) => return Err(NbtError { at_bytes: 0, problem: NbtProblem::RootNotCompound(tag as u8) }),
            Err(NbtError { problem: NbtProblem::UnknownTag(tag), .. }) => {
                return Err(NbtError { at_bytes: 0, problem: NbtProblem::RootNotCompound(tag) });
            }
            Err(error) => return Err(error),
        }
        let name = Text(cursor.text()?);
        let header_bytes = cursor.at_bytes();
        let (root, trailing) = Compound::parse_prefix(cursor.rest(), limits)
            .map_err(|error| NbtError { at_bytes: error.at_bytes + header_bytes, ..error })?;
        Ok(Self { name, root, trailing })
    }
}

impl<'a> Compound<'a> {
    /// A compound without fields.
    pub const EMPTY: Compound<'static> = Compound { bytes: &[0] };

    /// Checks the bytes that [`Compound::raw`] returns: fields, the end tag, and nothing after it.
    ///
    /// # Errors
    /// Where and why the bytes are not a compound within the limits.
    pub fn parse(bytes: &'a [u8], limits: &Limits) -> Result<Self, NbtError> {
        let (compound, trailing) = Self::parse_prefix(bytes, limits)?;
        if trailing.is_empty() {
            return Ok(compound);
        }
        Err(NbtError { at_bytes: compound.bytes.len(), problem: NbtProblem::Trailing(trailing.len()) })
    }

    /// The compound's bytes: fields and end tag, exactly as they were read.
    pub const fn raw(self) -> &'a [u8] {
        self.bytes
    }

    /// Every field in stored order.
    pub fn fields(self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        let mut cursor = Cursor::new(self.bytes);
        // The bytes were checked, so no read fails. If one did, the iteration would end.
        std::iter::from_fn(move || {
            let (before, offset_bytes) = (cursor.rest(), cursor.at_bytes());
            let tag = cursor.tag().ok().filter(|&tag| tag != Tag::End)?;
            let name = Text(cursor.text().ok()?);
            let value = Value::read(&mut cursor, tag)?;
            let raw = before.get(..cursor.at_bytes() - offset_bytes)?;
            Some(Field { name, value, raw, offset_bytes })
        })
    }

    /// The value of a field. The last field with a name counts, as in the game.
    pub fn get(self, name: &str) -> Option<Value<'a>> {
        self.field(name).map(|field| field.value)
    }

    /// A field with its offset. The last field with a name counts, as in the game.
    pub fn field(self, name: &str) -> Option<Field<'a>> {
        self.fields().filter(|field| field.name == *name).last()
    }

    /// The number in an integer field, if an i32 holds it.
    pub fn int(self, name: &str) -> Option<i32> {
        self.long(name).and_then(|value| i32::try_from(value).ok())
    }

    /// The number in an integer field.
    pub fn long(self, name: &str) -> Option<i64> {
        self.get(name).and_then(Value::as_long)
    }

    /// The string in a field.
    pub fn text(self, name: &str) -> Option<Text<'a>> {
        self.get(name).and_then(Value::as_text)
    }

    /// The compound in a field.
    pub fn compound(self, name: &str) -> Option<Compound<'a>> {
        self.get(name).and_then(Value::as_compound)
    }

    /// The list in a field.
    pub fn list(self, name: &str) -> Option<List<'a>> {
        self.get(name).and_then(Value::as_list)
    }

    fn parse_prefix(bytes: &'a [u8], limits: &Limits) -> Result<(Self, &'a [u8]), NbtError> {
        let mut cursor = Cursor::new(bytes);
        cursor.skip(Tag::Compound, 0, &mut Budget::new(*limits))?;
        let (bytes, trailing) =
            bytes.split_at_checked(cursor.at_bytes()).expect("the walk stays inside the bytes");
        Ok((Self { bytes }, trailing))
    }
}

impl<'a> Value<'a> {
    /// An integer of any width.
    pub const fn as_long(self) -> Option<i64> {
        match self {
            Self::Byte(value) => Some(value as i64),
            Self::Short(value) => Some(value as i64),
            Self::Int(value) => Some(value as i64),
            Self::Long(value) => Some(value),
            _ => None,
        }
    }

    /// A floating-point number of either width.
    pub const fn as_double(self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(value as f64),
            Self::Double(value) => Some(value),
            _ => None,
        }
    }

    /// A string.
    pub const fn as_text(self) -> Option<Text<'a>> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// A compound.
    pub const fn as_compound(self) -> Option<Compound<'a>> {
        if let Self::Compound(compound) = self { Some(compound) } else { None }
    }

    /// A list.
    pub const fn as_list(self) -> Option<List<'a>> {
        if let Self::List(list) = self { Some(list) } else { None }
    }

    /// The kind of the value.
    pub const fn tag(self) -> Tag {
        match self {
            Self::Byte(_) => Tag::Byte,
            Self::Short(_) => Tag::Short,
            Self::Int(_) => Tag::Int,
            Self::Long(_) => Tag::Long,
            Self::Float(_) => Tag::Float,
            Self::Double(_) => Tag::Double,
            Self::ByteArray(_) => Tag::ByteArray,
            Self::String(_) => Tag::String,
            Self::List(_) => Tag::List,
            Self::Compound(_) => Tag::Compound,
            Self::IntArray(_) => Tag::IntArray,
            Self::LongArray(_) => Tag::LongArray,
        }
    }

    fn read(cursor: &mut Cursor<'a>, tag: Tag) -> Option<Self> {
        Some(match tag {
            Tag::End => return None,
            Tag::Byte => Self::Byte(cursor.i8().ok()?),
            Tag::Short => Self::Short(cursor.i16().ok()?),
            Tag::Int => Self::Int(cursor.i32().ok()?),
            Tag::Long => Self::Long(cursor.i64().ok()?),
            Tag::Float => Self::Float(cursor.f32().ok()?),
            Tag::Double => Self::Double(cursor.f64().ok()?),
            Tag::ByteArray => Self::ByteArray(array(cursor, 1)?),
            Tag::IntArray => Self::IntArray(Ints(array(cursor, 4)?)),
            Tag::LongArray => Self::LongArray(Longs(array(cursor, 8)?)),
            Tag::String => Self::String(Text(cursor.text().ok()?)),
            Tag::List => {
                let bytes = walked(cursor, tag)?;
                let mut inner = Cursor::new(bytes);
                let (tag, count) = inner.list_header().ok()?;
                Self::List(List { tag, count, bytes: inner.rest() })
            }
            Tag::Compound => Self::Compound(Compound { bytes: walked(cursor, tag)? }),
        })
    }
}

impl<'a> List<'a> {
    /// Checks the bytes of a list: element kind, count, elements, and nothing after them.
    ///
    /// # Errors
    /// Where and why the bytes are not a list within the limits.
    pub fn parse(bytes: &'a [u8], limits: &Limits) -> Result<Self, NbtError> {
        let mut cursor = Cursor::new(bytes);
        cursor.skip(Tag::List, 0, &mut Budget::new(*limits))?;
        if !cursor.rest().is_empty() {
            return Err(cursor.error(NbtProblem::Trailing(cursor.rest().len())));
        }
        let mut cursor = Cursor::new(bytes);
        let (tag, count) = cursor.list_header()?;
        Ok(Self { tag, count, bytes: cursor.rest() })
    }

    /// The number of values.
    pub const fn len(self) -> usize {
        self.count
    }

    /// Whether there is no value.
    pub const fn is_empty(self) -> bool {
        self.count == 0
    }

    /// The kind of every value.
    pub const fn tag(self) -> Tag {
        self.tag
    }

    /// Every value in stored order.
    pub fn values(self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let mut cursor = Cursor::new(self.bytes);
        (0..self.count).map_while(move |_| Value::read(&mut cursor, self.tag))
    }

    /// Every compound in stored order; empty for a list of another kind.
    pub fn compounds(self) -> impl Iterator<Item = Compound<'a>> + use<'a> {
        self.values().filter_map(Value::as_compound)
    }
}

impl<'a> Ints<'a> {
    /// The number of values.
    pub const fn len(self) -> usize {
        self.0.len() / 4
    }

    /// Whether there is no number.
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Every number in order.
    pub fn values(self) -> impl Iterator<Item = i32> + use<'a> {
        let mut cursor = Cursor::new(self.0);
        std::iter::from_fn(move || cursor.i32().ok())
    }
}

impl<'a> Longs<'a> {
    /// The number of values.
    pub const fn len(self) -> usize {
        self.0.len() / 8
    }

    /// Whether there is no number.
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Every number in order.
    pub fn values(self) -> impl Iterator<Item = i64> + use<'a> {
        let mut cursor = Cursor::new(self.0);
        std::iter::from_fn(move || cursor.i64().ok())
    }
}

impl<'a> Text<'a> {
    /// The text. It is borrowed if it has neither NUL nor characters beyond the basic plane.
    ///
    /// `None` if the bytes are not modified UTF-8.
    pub fn decode(self) -> Option<Cow<'a, str>> {
        simd_cesu8::mutf8::decode(self.0).ok()
    }

    /// The text for a message: invalid sequences are replaced.
    pub fn lossy(self) -> Cow<'a, str> {
        simd_cesu8::mutf8::decode_lossy(self.0)
    }
}

impl PartialEq<str> for Text<'_> {
    /// Compares bytes. That is exact for ASCII, and all names of the game are ASCII.
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

fn array<'a>(cursor: &mut Cursor<'a>, element_bytes: usize) -> Option<&'a [u8]> {
    let count = cursor.count(element_bytes).ok()?;
    cursor.take(count * element_bytes).ok()
}

fn walked<'a>(cursor: &mut Cursor<'a>, tag: Tag) -> Option<&'a [u8]> {
    let (before, from) = (cursor.rest(), cursor.at_bytes());
    cursor.skip(tag, 0, &mut Budget::checked_before()).ok()?;
    before.get(..cursor.at_bytes() - from)
}
