//! Block states as text: `name[key=value,…]` with the keys in ascending order.
//!
//! A palette of a save spells a state in one of four ways, which are told apart by their shape alone:
//!
//! | shape | meaning |
//! |---|---|
//! | `{Name: "…", Properties: {…}}` | the block and its properties: until 26.3 |
//! | `{id: "…", properties: {…}}` | the same since 26.3 snapshot 7 |
//! | `"…"` | the default state of the block |
//! | `{"": "…"}` | the same in a list that also has compounds |

use std::fmt::Write as _;

use cg_snapshot::nbt::{Compound, Tag, Text, Value};

/// Keys and values of a block state.
pub type Properties<'a> = Vec<(&'a str, &'a str)>;

/// Why a palette entry is no block state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Neither a string nor a compound.
    #[error("a palette entry is of kind {0:?}, and a state is a string or a compound")]
    NoState(Tag),
    /// No `Name`, `id` or string, or one that is no text.
    #[error("a palette entry has no name")]
    NoName,
    /// A compound with fields of two shapes, or with one of them twice.
    #[error("a palette entry says its state in two ways")]
    Mixed,
    /// Properties that are no compound.
    #[error("the properties of {0:?} are no compound")]
    NoProperties(String),
    /// A property that is no string.
    #[error("property {key:?} of {name:?} is no string")]
    NotText {
        /// The block.
        name: String,
        /// The property.
        key: String,
    },
    /// A name or value that the text form could not be read back from.
    #[error("{0:?} cannot stand in a block state")]
    Reserved(String),
    /// Text that is no block state.
    #[error("{0:?} is no block state of the form name[key=value,…]")]
    NotAState(String),
}

/// How a palette entry spells its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `{Name, Properties}`.
    Named,
    /// `{id, properties}`.
    Id,
    /// A string.
    Text,
    /// `{"": string}`.
    Wrapped,
}

/// A palette entry as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name and the properties that the entry says. A property that it leaves out has the value of the block's default
    /// state, see [`complete`](crate::game::complete).
    pub text: String,
    /// How it says them.
    pub shape: Shape,
    /// Whether it has a compound of properties that holds none.
    pub has_no_properties: bool,
    /// Whether all this is all that it holds.
    pub is_plain: bool,
}

/// Reads a palette entry of any shape.
///
/// # Errors
/// [`StateError`], when the entry has no name, or has parts that the text form cannot carry.
///
/// ```
/// use cg_snapshot::nbt::{self, Text, Value};
/// use cg_minecraft::state;
/// let entry = nbt::payload(|entry| {
///     entry.string("Name", "minecraft:oak_log")?;
///     entry.compound("Properties", |properties| properties.string("axis", "y"))
/// });
/// let entry = Value::Compound(nbt::Compound::parse(&entry, &nbt::Limits::default())?);
/// assert_eq!(state::from_nbt(entry)?.text, "minecraft:oak_log[axis=y]");
/// assert_eq!(state::from_nbt(Value::String(Text(b"minecraft:stone")))?.text, "minecraft:stone");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn from_nbt(entry: Value<'_>) -> Result<Entry, StateError> {
    let entry = match entry {
        Value::String(name) => {
            let text = name_of(Some(name))?;
            return Ok(Entry { text, shape: Shape::Text, has_no_properties: false, is_plain: true });
        }
        Value::Compound(entry) => entry,
        other => return Err(StateError::NoState(other.tag())),
    };
    let (shape, name, properties) = if entry.get("Name").is_some() {
        (Shape::Named, "Name", Some("Properties"))
    } else if entry.get("id").is_some() {
        (Shape::Id, "id", Some("properties"))
    } else {
        (Shape::Wrapped, "", None)
    };
    let of_shapes = [b"Name".as_slice(), b"Properties", b"id", b"properties", b""];
    let met = entry.fields().map(|field| field.name.0).filter(|met| of_shapes.contains(met));
    let own = [Some(name), properties].into_iter().flatten();
    if met.count() > own.filter(|own| entry.field(own).is_some()).count() {
        return Err(StateError::Mixed);
    }
    let mut text = name_of(entry.text(name))?;
    let inside = match properties.and_then(|properties| entry.get(properties)) {
        None => None,
        Some(Value::Compound(inside)) => Some(inside),
        Some(_) => return Err(StateError::NoProperties(text)),
    };
    let has_no_properties = inside.is_some_and(|inside| inside.fields().next().is_none());
    let is_plain = entry.fields().count() == 1 + usize::from(inside.is_some());
    if let Some(inside) = inside {
        add_properties(&mut text, inside)?;
    }
    Ok(Entry { text, shape, has_no_properties, is_plain })
}

fn name_of(name: Option<Text<'_>>) -> Result<String, StateError> {
    let name = name.and_then(Text::decode).filter(|name| !name.is_empty()).ok_or(StateError::NoName)?;
    Ok(plain(&name)?.to_owned())
}

fn add_properties(out: &mut String, inside: Compound<'_>) -> Result<(), StateError> {
    let mut properties = Vec::new();
    for field in inside.fields() {
        let key = field.name.lossy();
        let Some(value) = field.value.as_text().and_then(Text::decode) else {
            return Err(StateError::NotText { name: out.clone(), key: key.into_owned() });
        };
        properties.push((plain(&key)?.to_owned(), plain(&value)?.to_owned()));
    }
    properties.sort();
    if let Some(pair) = properties.windows(2).find(|pair| matches!(pair, [a, b] if a.0 == b.0)) {
        return Err(StateError::Reserved(
            pair.iter().map(|(key, value)| format!("{key}={value};")).collect(),
        ));
    }
    for (index, (key, value)) in properties.iter().enumerate() {
        let before = if index == 0 { '[' } else { ',' };
        write!(out, "{before}{key}={value}").expect("writing to a string does not fail");
    }
    if !properties.is_empty() {
        out.push(']');
    }
    Ok(())
}

/// The name and properties of a state's text, in the order in which they stand.
///
/// # Errors
/// [`StateError::NotAState`].
pub fn parse(state: &str) -> Result<(&str, Properties<'_>), StateError> {
    let fault = || StateError::NotAState(state.to_owned());
    let Some((name, rest)) = state.split_once('[') else {
        return if is_plain(state) && !state.is_empty() { Ok((state, Vec::new())) } else { Err(fault()) };
    };
    let inside = rest.strip_suffix(']').ok_or_else(fault)?;
    let properties: Option<Vec<_>> = inside.split(',').map(|pair| pair.split_once('=')).collect();
    let properties = properties.ok_or_else(fault)?;
    let parts = properties.iter().flat_map(|(key, value)| [*key, *value]);
    if name.is_empty() || !parts.chain([name]).all(is_plain) {
        return Err(fault());
    }
    Ok((name, properties))
}

fn plain(part: &str) -> Result<&str, StateError> {
    if is_plain(part) { Ok(part) } else { Err(StateError::Reserved(part.to_owned())) }
}

fn is_plain(part: &str) -> bool {
    !part.contains(['[', ']', ',', '='])
}

#[cfg(test)]
mod tests {
    use cg_snapshot::nbt::{self, CompoundWriter, TooLong};
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(fields: impl FnOnce(&mut CompoundWriter<'_>) -> Result<(), TooLong>, expected: Expect) {
        let bytes = nbt::payload(|entry| fields(entry).expect("short"));
        let entry = Compound::parse(&bytes, &nbt::Limits::default()).expect("a compound");
        check_value(Value::Compound(entry), expected);
    }

    #[track_caller]
    fn check_value(value: Value<'_>, expected: Expect) {
        let found = match from_nbt(value) {
            Ok(Entry { text, shape, has_no_properties, is_plain }) => {
                let none = if has_no_properties { " without properties" } else { "" };
                let more = if is_plain { "" } else { ", and more" };
                format!("{shape:?} {text}{none}{more}")
            }
            Err(error) => format!("error: {error}"),
        };
        expected.assert_eq(&found);
    }

    #[test]
    fn entries_become_text_or_say_why_not() {
        check(|entry| entry.string("Name", "minecraft:air"), expect!["Named minecraft:air"]);
        check(
            |entry| {
                entry.compound("Properties", |p| {
                    p.string("waterlogged", "true")?;
                    p.string("facing", "north")
                })?;
                entry.string("Name", "minecraft:chest")
            },
            expect!["Named minecraft:chest[facing=north,waterlogged=true]"],
        );
        check(|_| Ok(()), expect!["error: a palette entry has no name"]);
        check(|entry| entry.string("Name", ""), expect!["error: a palette entry has no name"]);
        check(
            |entry| entry.string("Name", "a[b"),
            expect![[r#"error: "a[b" cannot stand in a block state"#]],
        );
        check(
            |entry| {
                entry.string("Name", "a:b")?;
                entry.compound("Properties", |p| p.byte("level", 1));
                Ok(())
            },
            expect![[r#"error: property "level" of "a:b" is no string"#]],
        );
        check(
            |entry| {
                entry.string("Name", "a:b")?;
                entry.compound("Properties", |p| {
                    p.string("k", "1")?;
                    p.string("k", "2")
                })
            },
            expect![[r#"error: "k=1;k=2;" cannot stand in a block state"#]],
        );
    }

    #[test]
    fn entries_since_26_3_become_text_or_say_why_not() {
        check_value(Value::String(Text(b"minecraft:air")), expect!["Text minecraft:air"]);
        check(|entry| entry.string("", "minecraft:air"), expect!["Wrapped minecraft:air"]);
        check(|entry| entry.string("id", "minecraft:stone"), expect!["Id minecraft:stone"]);
        check(
            |entry| {
                entry.string("id", "minecraft:oak_log")?;
                entry.compound("properties", |p| p.string("axis", "x"))
            },
            expect!["Id minecraft:oak_log[axis=x]"],
        );
        check(
            |entry| {
                entry.string("id", "a:b")?;
                entry.compound("properties", |_| ());
                Ok(())
            },
            expect!["Id a:b without properties"],
        );
        check(
            |entry| {
                entry.string("", "a:b")?;
                entry.compound("mod:data", |p| p.string("axis", "x"))
            },
            expect!["Wrapped a:b, and more"],
        );
        check(
            |entry| {
                entry.string("", "a:b")?;
                entry.compound("properties", |p| p.string("axis", "x"))
            },
            expect!["error: a palette entry says its state in two ways"],
        );
        check(
            |entry| {
                entry.string("id", "a:b")?;
                entry.int("properties", 7);
                Ok(())
            },
            expect![[r#"error: the properties of "a:b" are no compound"#]],
        );
        check(
            |entry| {
                entry.int("id", 7);
                Ok(())
            },
            expect!["error: a palette entry has no name"],
        );
        check_value(Value::String(Text(b"")), expect!["error: a palette entry has no name"]);
        check_value(Value::String(Text(b"\xff")), expect!["error: a palette entry has no name"]);
        check_value(
            Value::String(Text(b"a:b[k=v]")),
            expect![[r#"error: "a:b[k=v]" cannot stand in a block state"#]],
        );
        check_value(
            Value::Int(7),
            expect!["error: a palette entry is of kind Int, and a state is a string or a compound"],
        );
    }

    #[test]
    fn text_is_read_back() {
        assert_eq!(parse("a:b"), Ok(("a:b", vec![])));
        assert_eq!(parse("a:b[k=v,l=w]"), Ok(("a:b", vec![("k", "v"), ("l", "w")])));
        for wrong in ["", "[k=v]", "a[", "a[]", "a[k]", "a[k=v", "a[k=v]x", "a]", "a[k=v=w]", "a[k=v,]"] {
            assert_eq!(parse(wrong), Err(StateError::NotAState(wrong.to_owned())));
        }
    }
}
