//! The types of component values: what the bytes of an instance mean, and which of them are allowed.
//!
//! A type changes no stored byte and no length, so it opens no schema generation. Values that were stored before stay
//! as they are; a check finds those that today's type does not allow.

mod check;
mod narrow;
mod row;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use check::Breach;
pub(crate) use check::width;
pub use narrow::narrowed;
pub use row::TypeRow;

/// The type of a value of known width. Numbers are little-endian.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Type {
    /// Any bytes.
    #[default]
    Bytes,
    /// An integer without sign in 1 to 8 bytes.
    Unsigned {
        /// The least value. Default: 0.
        #[serde(default)]
        min: u64,
        /// The greatest value. Default: that of the width.
        #[serde(default = "most_unsigned")]
        max: u64,
    },
    /// An integer in two's complement in 1 to 8 bytes.
    Signed {
        /// The least value. Default: that of the width.
        #[serde(default = "least_signed")]
        min: i64,
        /// The greatest value. Default: that of the width.
        #[serde(default = "most_signed")]
        max: i64,
    },
    /// A finite floating-point number in 4 or 8 bytes.
    Float,
    /// A byte that is 0 or 1.
    Bool,
    /// The position of one of these names, in 1 to 8 bytes.
    Enum(Vec<String>),
    /// UTF-8 without zeros. Zeros fill the width after it.
    Text,
}

/// A part of known width: one value of a type, or an array of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypedField {
    /// Its name, unique among its neighbours.
    pub name: String,
    /// Its length in bytes, all items together.
    pub width_bytes: u32,
    /// The type of each item. Default: any bytes.
    #[serde(rename = "type", default)]
    pub of: Type,
    /// The number of items, each of an equal part of the width. Default: 1.
    #[serde(default = "one")]
    pub count: u32,
}

/// What the bytes of an instance of a component are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Content {
    /// Of a fixed-size component: fields that follow each other without gaps and fill the size.
    Fields(Vec<TypedField>),
    /// Of variable size: UTF-8.
    Text {
        /// The most bytes.
        max_bytes: u64,
    },
    /// Of variable size: any bytes.
    Bytes {
        /// The most bytes.
        max_bytes: u64,
    },
    /// Of variable size: items that follow each other, each of the same fields.
    List {
        /// The most items.
        max_items: u64,
        /// The fields of one item, without gaps.
        fields: Vec<TypedField>,
    },
}

const fn most_unsigned() -> u64 {
    u64::MAX
}

const fn least_signed() -> i64 {
    i64::MIN
}

const fn most_signed() -> i64 {
    i64::MAX
}

pub(crate) const fn one() -> u32 {
    1
}

impl Type {
    /// An integer without sign with the range of its width.
    pub const UNSIGNED: Self = Self::Unsigned { min: 0, max: u64::MAX };
    /// An integer with a sign with the range of its width.
    pub const SIGNED: Self = Self::Signed { min: i64::MIN, max: i64::MAX };

    /// The type in the range of a width, so that it can be compared and shown.
    pub(crate) fn within(&self, item_bytes: usize) -> Self {
        let bits = 8 * item_bytes.clamp(1, 8) as u32;
        match self {
            Self::Unsigned { min, max } => {
                Self::Unsigned { min: *min, max: *max.min(&(u64::MAX >> (64 - bits))) }
            }
            Self::Signed { min, max } => {
                let most = i64::MAX >> (64 - bits);
                Self::Signed { min: (*min).max(-most - 1), max: *max.min(&most) }
            }
            other => other.clone(),
        }
    }
}

impl TypedField {
    /// The bytes of one item; 0 if the field is not sound.
    pub(crate) fn item_bytes(&self) -> usize {
        self.width_bytes.checked_div(self.count).unwrap_or(0) as usize
    }
}

impl fmt::Display for Type {
    /// The allowed values, as the end of a sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes => f.write_str("any bytes"),
            Self::Unsigned { min, max } => write!(f, "{min} to {max}"),
            Self::Signed { min, max } => write!(f, "{min} to {max}"),
            Self::Float => f.write_str("a finite number"),
            Self::Bool => f.write_str("0 or 1"),
            Self::Enum(names) => {
                /// The most names that are shown.
                const SHOWN: usize = 8;
                for (at, name) in names.iter().take(SHOWN).enumerate() {
                    write!(f, "{}{at} `{name}`", if at == 0 { "" } else { ", " })?;
                }
                match names.len().saturating_sub(SHOWN) {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
            Self::Text => f.write_str("UTF-8 and zeros after it"),
        }
    }
}

#[cfg(test)]
mod tests;
