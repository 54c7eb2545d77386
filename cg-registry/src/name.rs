//! `namespace:identifier`, the only part of an entry that is valid beyond its world.
//!
//! ```text
//! name      = namespace ":" identifier [ state ] [ "@" revision ]
//! state     = "[" key "=" value { "," key "=" value } "]"      keys ascending, each once
//! revision  = decimal number from 2 on, without leading zeros  only the registry writes it
//! ```
//!
//! An empty namespace marks the engine's own entries, such as `:air`. A host can never write `@`, so no name of a pack
//! collides with a revision of the registry.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The name of a block, component, entity, structure, dimension or kind of side data.
///
/// Cheap to clone. Ordered by its UTF-8 bytes.
///
/// ```
/// use cg_registry::Name;
/// let log = Name::with_state("minecraft:oak_log", [("axis", "y")])?;
/// assert_eq!(log.as_str(), "minecraft:oak_log[axis=y]");
/// assert_eq!(log.namespace(), "minecraft");
/// assert_eq!(log.identifier(), "oak_log");
/// assert_eq!(log.state().collect::<Vec<_>>(), [("axis", "y")]);
/// # Ok::<_, cg_registry::NameError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(Arc<str>);

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The colon is missing.
    #[error("it has no namespace; write `namespace:identifier`")]
    NoNamespace,
    /// The identifier is empty.
    #[error("nothing stands between the colon and the end or the state")]
    NoIdentifier,
    /// A reserved character, or one that no terminal should print.
    #[error("{found:?} at byte {offset_bytes} is not allowed there")]
    Character {
        /// The character found.
        found: char,
        /// Its offset.
        offset_bytes: usize,
    },
    /// The name is longer than a stored name may be.
    #[error("it has {len_bytes} bytes, at most {} are allowed", Name::MAX_LEN_BYTES)]
    TooLong {
        /// The length found.
        len_bytes: usize,
    },
    /// The text in brackets is not `key=value,key=value`.
    #[error("its state is not written `[key=value,key=value]`")]
    State,
    /// The state keys are not ascending, so that one state would have two names.
    #[error("the state keys must ascend and differ, but `{second}` follows `{first}`")]
    StateOrder {
        /// The first key.
        first: String,
        /// The key after it.
        second: String,
    },
    /// The text after `@` is not a number from 2 on in its shortest form.
    #[error("`@` must be followed by a number from 2 on; packs may not use it")]
    Revision,
}

impl Name {
    /// The maximum length of a stored name.
    pub const MAX_LEN_BYTES: usize = 65_535;

    /// Checks a name from a host or a pack.
    ///
    /// # Errors
    /// A [`NameError`] with the violated rule; `@` is reserved for the registry.
    pub fn new(text: impl AsRef<str>) -> Result<Self, NameError> {
        let text = text.as_ref();
        check_unrevised(text)?;
        Ok(Self(text.into()))
    }

    /// The name of one state of a block; the keys may come in any order.
    ///
    /// # Errors
    /// As [`Name::new`], also for a repeated key.
    pub fn with_state<'a>(
        base: &str,
        state: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, NameError> {
        let mut pairs: Vec<_> = state.into_iter().collect();
        pairs.sort_unstable();
        let pairs: Vec<_> = pairs.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        if pairs.is_empty() {
            return Self::new(base);
        }
        Self::new(format!("{base}[{}]", pairs.join(",")))
    }

    /// Checks a name from a stored list, which may have a revision.
    ///
    /// # Errors
    /// A [`NameError`] with the violated rule.
    pub fn from_stored(text: &str) -> Result<Self, NameError> {
        match text.split_once('@') {
            None => check_unrevised(text)?,
            Some((base, revision)) => {
                check_unrevised(base)?;
                if text.len() > Self::MAX_LEN_BYTES {
                    return Err(NameError::TooLong { len_bytes: text.len() });
                }
                let number: u32 = revision.parse().map_err(|_| NameError::Revision)?;
                if number < 2 || number.to_string() != revision {
                    return Err(NameError::Revision);
                }
            }
        }
        Ok(Self(text.into()))
    }

    /// The name of the registration with this number: `ns:name@2`. Revision 1 is the name itself.
    ///
    /// # Errors
    /// [`NameError::TooLong`] if the suffix does not fit.
    pub fn revised(&self, revision: u32) -> Result<Self, NameError> {
        let base = self.unrevised();
        if revision < 2 {
            return Ok(Self(base.into()));
        }
        Self::from_stored(&format!("{base}@{revision}"))
    }

    /// The whole text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text before the first colon; empty for the engine's own entries.
    pub fn namespace(&self) -> &str {
        self.0.split_once(':').map_or("", |(namespace, _)| namespace)
    }

    /// The text between the first colon and the state.
    pub fn identifier(&self) -> &str {
        let rest = self.unrevised().split_once(':').map_or("", |(_, rest)| rest);
        rest.split_once('[').map_or(rest, |(identifier, _)| identifier)
    }

    /// The state's keys and values, keys ascending; empty for a name without a state.
    pub fn state(&self) -> impl Iterator<Item = (&str, &str)> {
        let state = self.unrevised().split_once('[').map_or("", |(_, rest)| rest.trim_end_matches(']'));
        state.split(',').filter_map(|pair| pair.split_once('='))
    }

    /// The number of registrations of this name up to this one, each with another shape: 1 for a name without suffix.
    pub fn revision(&self) -> u32 {
        self.0.split_once('@').and_then(|(_, number)| number.parse().ok()).unwrap_or(1)
    }

    /// The text without the registry's revision: the name of the entry for packs.
    pub fn unrevised(&self) -> &str {
        self.0.split_once('@').map_or(&self.0, |(base, _)| base)
    }
}

/// Checks a namespace: the text before the colon of a name.
///
/// # Errors
/// [`NameError::Character`] or [`NameError::TooLong`].
pub(crate) fn check_namespace(namespace: &str) -> Result<(), NameError> {
    check_characters(namespace, 0, &[':', '@', '[', ']', '=', ','])?;
    match namespace.len() {
        0..=255 => Ok(()),
        len_bytes => Err(NameError::TooLong { len_bytes }),
    }
}

fn check_unrevised(text: &str) -> Result<(), NameError> {
    if text.len() > Name::MAX_LEN_BYTES {
        return Err(NameError::TooLong { len_bytes: text.len() });
    }
    let (namespace, rest) = text.split_once(':').ok_or(NameError::NoNamespace)?;
    check_characters(namespace, 0, &['@', '[', ']', '=', ','])?;
    let rest_at = namespace.len() + 1;
    let (identifier, state) = match rest.split_once('[') {
        None => (rest, None),
        Some((identifier, state)) => (identifier, Some(state)),
    };
    if identifier.is_empty() {
        return Err(NameError::NoIdentifier);
    }
    check_characters(identifier, rest_at, &['@', ']', '=', ','])?;
    let Some(state) = state else { return Ok(()) };
    let state = state.strip_suffix(']').ok_or(NameError::State)?;
    check_characters(state, rest_at + identifier.len() + 1, &['@', '[', ']'])?;
    let mut before: Option<&str> = None;
    for pair in state.split(',') {
        let (key, value) = pair.split_once('=').ok_or(NameError::State)?;
        if key.is_empty() || value.contains('=') {
            return Err(NameError::State);
        }
        if let Some(first) = before.replace(key).filter(|first| *first >= key) {
            return Err(NameError::StateOrder { first: first.into(), second: key.into() });
        }
    }
    Ok(())
}

fn check_characters(part: &str, part_at: usize, reserved: &[char]) -> Result<(), NameError> {
    match part.char_indices().find(|(_, found)| found.is_control() || reserved.contains(found)) {
        None => Ok(()),
        Some((at, found)) => Err(NameError::Character { found, offset_bytes: part_at + at }),
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name({:?})", &*self.0)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

// Equality, order and hash of a `Name` are those of its text, so a map accepts a `&str` as the key of a lookup.
impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::new(text)
    }
}

// Stored records contain revised names. The names of a manifest are checked again when they are reconciled.
impl TryFrom<String> for Name {
    type Error = NamedError;

    fn try_from(text: String) -> Result<Self, NamedError> {
        Self::from_stored(&text).map_err(|error| NamedError { text, error })
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.as_str().into()
    }
}

/// A text that is not a name, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a name: {error}")]
pub struct NamedError {
    /// The text found.
    pub text: String,
    /// The violated rule.
    pub error: NameError,
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: Expect) {
        let shown = match Name::new(text) {
            Ok(name) => format!(
                "{:?} {:?} {:?}",
                name.namespace(),
                name.identifier(),
                name.state().collect::<Vec<_>>()
            ),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn names_that_are_taken() {
        check("minecraft:stone", expect![[r#""minecraft" "stone" []"#]]);
        check(":air", expect![[r#""" "air" []"#]]);
        check("minecraft:oak_log[axis=y]", expect![[r#""minecraft" "oak_log" [("axis", "y")]"#]]);
        check("a:b[c=d,e=]", expect![[r#""a" "b" [("c", "d"), ("e", "")]"#]]);
        check("gregtech:machine:furnace", expect![[r#""gregtech" "machine:furnace" []"#]]);
        check("minecraft:x[ns:key=va:lue]", expect![[r#""minecraft" "x" [("ns:key", "va:lue")]"#]]);
        check("Größe:Ähre ☃", expect![[r#""Größe" "Ähre ☃" []"#]]);
    }

    #[test]
    fn names_that_are_refused_say_why() {
        check("stone", expect!["it has no namespace; write `namespace:identifier`"]);
        check("", expect!["it has no namespace; write `namespace:identifier`"]);
        check("minecraft:", expect!["nothing stands between the colon and the end or the state"]);
        check("minecraft:[axis=y]", expect!["nothing stands between the colon and the end or the state"]);
        check("mine\0craft:stone", expect![[r#"'\0' at byte 4 is not allowed there"#]]);
        check("a:b\u{1b}[2J", expect![[r#"'\u{1b}' at byte 3 is not allowed there"#]]);
        check("a:b@2", expect!["'@' at byte 3 is not allowed there"]);
        check("a@b:c", expect!["'@' at byte 1 is not allowed there"]);
        check("a:b[c=d@2]", expect!["'@' at byte 7 is not allowed there"]);
        check("a:b[]", expect!["its state is not written `[key=value,key=value]`"]);
        check("a:b[c]", expect!["its state is not written `[key=value,key=value]`"]);
        check("a:b[c=d", expect!["its state is not written `[key=value,key=value]`"]);
        check("a:b[c=d]e", expect!["its state is not written `[key=value,key=value]`"]);
        check("a:b[c=d=e]", expect!["its state is not written `[key=value,key=value]`"]);
        check("a:b[c=d,c=e]", expect!["the state keys must ascend and differ, but `c` follows `c`"]);
        check("a:b[d=1,c=1]", expect!["the state keys must ascend and differ, but `c` follows `d`"]);
        check(&format!("a:{}", "b".repeat(65_534)), expect!["it has 65536 bytes, at most 65535 are allowed"]);
    }

    #[test]
    fn a_revision_is_written_by_the_registry_alone() {
        let name = Name::new("a:b").unwrap();
        let second = name.revised(2).unwrap();
        assert_eq!(second.as_str(), "a:b@2");
        assert_eq!((second.revision(), second.unrevised(), second.identifier()), (2, "a:b", "b"));
        assert_eq!(second.revised(3).unwrap().as_str(), "a:b@3");
        assert_eq!(second.revised(1).unwrap(), name);
        assert_eq!(Name::from_stored("a:b@2").unwrap(), second);
        for text in ["a:b@1", "a:b@02", "a:b@", "a:b@x", "a:b@2@2", "a:b@+2", "@2", "a@2:b"] {
            assert!(Name::from_stored(text).is_err(), "{text}");
        }
    }

    #[test]
    fn one_state_has_one_name() {
        let sorted = Name::with_state("a:b", [("x", "1"), ("y", "2")]).unwrap();
        assert_eq!(Name::with_state("a:b", [("y", "2"), ("x", "1")]).unwrap(), sorted);
        assert_eq!(Name::with_state("a:b", []).unwrap().as_str(), "a:b");
        assert!(Name::with_state("a:b", [("x", "1"), ("x", "2")]).is_err());
    }

    proptest! {
        #[test]
        fn a_name_is_put_together_from_its_parts(text in "\\PC{0,12}:?\\PC{0,12}(\\[[a-c]=\\PC?\\])?") {
            if let Ok(name) = Name::new(&text) {
                let base = format!("{}:{}", name.namespace(), name.identifier());
                prop_assert_eq!(&Name::with_state(&base, name.state()).unwrap(), &name);
                prop_assert_eq!(Name::from_stored(&text).unwrap(), name);
            }
        }
    }
}
