//! Block states as text: `name[key=value,…]` with the keys in ascending order.

use std::fmt::Write as _;

use super::nbt::{Compound, Text};

/// Keys and values of a block state.
pub type Properties<'a> = Vec<(&'a str, &'a str)>;

/// Why a palette entry is no block state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// No `Name`, or one that is no string.
    #[error("a palette entry has no name")]
    NoName,
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

/// The text of a palette entry: `{Name: "…", Properties: {…}}`.
///
/// # Errors
/// [`StateError`], when the entry has no name, or has parts that the text form cannot carry.
///
/// ```
/// use cg_cli::anvil::{nbt, state};
/// let entry = nbt::payload(|entry| {
///     entry.string("Name", "minecraft:oak_log")?;
///     entry.compound("Properties", |properties| properties.string("axis", "y"))
/// });
/// let entry = nbt::Compound::parse(&entry, &nbt::Limits::default())?;
/// assert_eq!(state::from_nbt(entry)?, "minecraft:oak_log[axis=y]");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn from_nbt(entry: Compound<'_>) -> Result<String, StateError> {
    let name = entry.text("Name").and_then(Text::decode).ok_or(StateError::NoName)?;
    if name.is_empty() {
        return Err(StateError::NoName);
    }
    let mut out = plain(&name)?.to_owned();
    let mut properties = Vec::new();
    for field in entry.compound("Properties").into_iter().flat_map(Compound::fields) {
        let key = field.name.lossy();
        let Some(value) = field.value.as_text().and_then(Text::decode) else {
            return Err(StateError::NotText { name: out, key: key.into_owned() });
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
    Ok(out)
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
    use expect_test::{Expect, expect};

    use super::*;
    use crate::anvil::nbt::{self, CompoundWriter, TooLong};

    #[track_caller]
    fn check(fields: impl FnOnce(&mut CompoundWriter<'_>) -> Result<(), TooLong>, expected: Expect) {
        let bytes = nbt::payload(|entry| fields(entry).expect("short"));
        let entry = Compound::parse(&bytes, &nbt::Limits::default()).expect("a compound");
        let found = match from_nbt(entry) {
            Ok(state) => state,
            Err(error) => format!("error: {error}"),
        };
        expected.assert_eq(&found);
    }

    #[test]
    fn entries_become_text_or_say_why_not() {
        check(|entry| entry.string("Name", "minecraft:air"), expect!["minecraft:air"]);
        check(
            |entry| {
                entry.compound("Properties", |p| {
                    p.string("waterlogged", "true")?;
                    p.string("facing", "north")
                })?;
                entry.string("Name", "minecraft:chest")
            },
            expect!["minecraft:chest[facing=north,waterlogged=true]"],
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
    fn text_is_read_back() {
        assert_eq!(parse("a:b"), Ok(("a:b", vec![])));
        assert_eq!(parse("a:b[k=v,l=w]"), Ok(("a:b", vec![("k", "v"), ("l", "w")])));
        for wrong in ["", "[k=v]", "a[", "a[]", "a[k]", "a[k=v", "a[k=v]x", "a]", "a[k=v=w]", "a[k=v,]"] {
            assert_eq!(parse(wrong), Err(StateError::NotAState(wrong.to_owned())));
        }
    }
}
