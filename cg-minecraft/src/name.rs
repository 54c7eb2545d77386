//! Texts of a save as names of a world's registry, and back.
//!
//! A block state's text is a registry name as it stands, but for the rare ones that are none: without a namespace,
//! or with characters that mean something to the registry. Those become `escaped:` and the text with such bytes as
//! `%XX`, so that every text has one name and comes back exactly.

use std::fmt::Write as _;

use cg_format::BlockId;
use cg_registry::{Catalog, Name, NameError};

/// How the names of properties begin that hold a column without chunks.
pub const COLUMN_PROPERTY: &str = "minecraft:column/";

const ESCAPED: &str = "escaped:";
/// Name that the engine itself has for the absence of blocks, and the game's word for it.
const OUR_AIR: (&str, &str) = (":air", AIR);

/// The game's word for the absence of blocks.
pub const AIR: &str = "minecraft:air";

/// The name of a text.
///
/// # Errors
/// [`NameError::TooLong`].
///
/// ```
/// use cg_minecraft::name;
/// let plain = name::of("minecraft:oak_log[axis=y]")?;
/// assert_eq!(plain.as_str(), "minecraft:oak_log[axis=y]");
/// let odd = name::of("stone")?;
/// assert_eq!(odd.as_str(), "escaped:stone");
/// assert_eq!(name::text(odd.as_str()), "stone");
/// # Ok::<(), cg_registry::NameError>(())
/// ```
pub fn of(text: &str) -> Result<Name, NameError> {
    match Name::new(text) {
        Ok(name) if !text.starts_with(ESCAPED) => Ok(name),
        _ => Name::new(escape(text)),
    }
}

/// The name of an entity's kind. Its NBT says the kind too, so one that is too long for a name loses nothing.
pub fn of_entity_kind(kind: &str) -> Name {
    of(kind).unwrap_or_else(|_| of("").expect("the empty text has a short name"))
}

/// The text of a name that [`of`] gave. Any other name stands for itself.
pub fn text(name: &str) -> String {
    let escaped = name.strip_prefix(ESCAPED).and_then(unescape);
    escaped.filter(|text| escape(text) == name).unwrap_or_else(|| name.to_owned())
}

/// The text of a block's state; empty for an id that was never issued.
pub fn of_block(catalog: &Catalog, block: BlockId) -> String {
    let name = catalog.block_name(block).map_or("", |name| name.unrevised());
    if name == OUR_AIR.0 { OUR_AIR.1.to_owned() } else { text(name) }
}

/// The name of the property that holds a column without chunks.
///
/// # Errors
/// [`NameError::TooLong`].
pub fn column_property(dimension: &str, x: i32, z: i32) -> Result<Name, NameError> {
    let mut text = COLUMN_PROPERTY.to_owned();
    escape_into(dimension, &mut text);
    write!(text, "/{x}/{z}").expect("writing to a string does not fail");
    Name::new(text)
}

/// The dimension and position of a property that [`column_property`] named.
pub fn column_of_property(property: &str) -> Option<(String, i32, i32)> {
    let (rest, z) = property.strip_prefix(COLUMN_PROPERTY)?.rsplit_once('/')?;
    let (dimension, x) = rest.rsplit_once('/')?;
    Some((unescape(dimension)?, x.parse().ok()?, z.parse().ok()?))
}

/// A text as part of a longer name: no byte in it but `A-Z a-z 0-9 _ - . / : %`.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    escape_into(text, &mut out);
    out
}

fn escape(text: &str) -> String {
    let mut out = ESCAPED.to_owned();
    escape_into(text, &mut out);
    if text.is_empty() {
        // A name has an identifier.
        out.push('%');
    }
    out
}

fn escape_into(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"_-./:".contains(&byte) {
            out.push(byte.into());
        } else {
            write!(out, "%{byte:02X}").expect("writing to a string does not fail");
        }
    }
}

fn unescape(text: &str) -> Option<String> {
    if text == "%" {
        return Some(String::new());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_what_is_no_name_is_escaped() {
        let name = |text: &str| of(text).expect("short").as_str().to_owned();
        assert_eq!(name("create:belt[facing=north,part=end]"), "create:belt[facing=north,part=end]");
        assert_eq!(name(""), "escaped:%");
        assert_eq!(name("a:b@2"), "escaped:a:b%402");
        assert_eq!(name("escaped:stone"), "escaped:escaped:stone");
        assert_eq!(name("gehölz"), "escaped:geh%C3%B6lz");
        // Names that no import made stand for themselves.
        assert_eq!(text("escaped:%zz"), "escaped:%zz");
        assert_eq!(text(":air"), ":air");
    }

    proptest! {
        #[test]
        fn every_text_comes_back(source in "(escaped:|minecraft:)?[a-c:%@=\\[\\]\\x00é]{0,12}") {
            let name = of(&source).expect("short");
            prop_assert_eq!(text(name.as_str()), source);
        }

        #[test]
        fn a_columns_property_tells_its_column(
            dimension in "[a-c:%@=/\\[ ]{0,12}", x in any::<i32>(), z in any::<i32>(),
        ) {
            let property = column_property(&dimension, x, z).expect("short");
            prop_assert_eq!(column_of_property(property.as_str()), Some((dimension, x, z)));
        }
    }
}
