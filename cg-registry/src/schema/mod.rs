//! The schema of a component: its size, its fields and its default.

mod compat;
mod convert;
mod diff;
mod typed;

use cg_format::ComponentShape;
use serde::{Deserialize, Serialize};

use crate::types::Breach;

pub use compat::{Verdict, judge};
pub use convert::{Conversion, convert};
pub use diff::{BlockDiff, LayoutDiff, SpecDiff, diff_blocks, diff_specs};

/// A named part of a fixed-size component.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Field {
    /// The name that identifies the part when the layout changes.
    pub name: String,
    /// Its length in bytes. Fields follow each other without gaps.
    pub width_bytes: u32,
}

/// The schema of a component.
///
/// Fields are optional. Without them the bytes are one opaque part that can only grow or shrink at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComponentSpec {
    /// Fixed width or variable length.
    pub shape: ComponentShape,
    /// The bytes of a new instance. A fixed size requires exactly this length.
    pub default_bytes: Vec<u8>,
    /// The parts in order; they fill the whole length. Empty if not described.
    pub fields: Vec<Field>,
}

/// Why a component's schema is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The width is above the maximum.
    #[error(
        "a width of {width_bytes} bytes is over the {} allowed; make it variable",
        ComponentSpec::MAX_WIDTH_BYTES
    )]
    TooWide {
        /// The width found.
        width_bytes: u32,
    },
    /// The default does not have the fixed width, or is too long for a variable component.
    #[error("its default has {found} bytes, not {expected}")]
    DefaultLength {
        /// The length found.
        found: usize,
        /// The length that the shape requires.
        expected: usize,
    },
    /// The widths of the fields do not sum up to the component's width.
    #[error("its fields have {found} bytes together, not {expected}")]
    FieldsLength {
        /// The sum found.
        found: u64,
        /// The width of the component.
        expected: u64,
    },
    /// A field name occurs twice, is empty, or is longer than 255 bytes.
    #[error("the field name {name:?} is empty, too long or there twice")]
    FieldName {
        /// The name found.
        name: String,
    },
    /// There are more fields than a record may hold.
    #[error("it has {found} fields, at most {} are allowed", ComponentSpec::MAX_FIELDS)]
    TooManyFields {
        /// The number found.
        found: usize,
    },
    /// A type does not fit its field, or the component.
    #[error("the type{} does not fit: {reason}", if .field.is_empty() { String::new() } else { format!(" of `{}`", .field) })]
    Type {
        /// The field; empty for the component itself.
        field: String,
        /// What does not fit.
        reason: String,
    },
    /// Its default is a value that its own types do not allow.
    #[error("its default breaks its own types: {breach}")]
    Default {
        /// The value found, and the allowed ones.
        breach: Breach,
    },
    /// A component of variable size has fields.
    #[error("a component of variable size cannot have fields")]
    VariableWithFields,
}

impl ComponentSpec {
    /// The maximum width of a fixed-size component, and the maximum default of a variable one.
    pub const MAX_WIDTH_BYTES: u32 = 65_536;
    /// The maximum number of fields.
    pub const MAX_FIELDS: usize = 1024;

    /// A component of fixed size with a default of zeros.
    pub fn fixed(width_bytes: u32) -> Self {
        let default_bytes = vec![0; width_bytes as usize];
        Self { shape: ComponentShape::Fixed { width_bytes }, default_bytes, fields: Vec::new() }
    }

    /// A component of variable size with an empty default.
    pub const fn variable() -> Self {
        Self { shape: ComponentShape::Variable, default_bytes: Vec::new(), fields: Vec::new() }
    }

    /// Checks that size, default and fields are consistent.
    ///
    /// # Errors
    /// The first [`SpecError`] found.
    pub fn check(&self) -> Result<(), SpecError> {
        let ComponentShape::Fixed { width_bytes } = self.shape else {
            if !self.fields.is_empty() {
                return Err(SpecError::VariableWithFields);
            }
            let (found, expected) = (self.default_bytes.len(), Self::MAX_WIDTH_BYTES as usize);
            return if found > expected { Err(SpecError::DefaultLength { found, expected }) } else { Ok(()) };
        };
        if width_bytes > Self::MAX_WIDTH_BYTES {
            return Err(SpecError::TooWide { width_bytes });
        }
        // Fields first, because an omitted default consists of their defaults.
        self.check_fields(width_bytes)?;
        let (found, expected) = (self.default_bytes.len(), width_bytes as usize);
        if found == expected { Ok(()) } else { Err(SpecError::DefaultLength { found, expected }) }
    }

    fn check_fields(&self, width_bytes: u32) -> Result<(), SpecError> {
        if self.fields.is_empty() {
            return Ok(());
        }
        if self.fields.len() > Self::MAX_FIELDS {
            return Err(SpecError::TooManyFields { found: self.fields.len() });
        }
        let mut names: Vec<&str> = self.fields.iter().map(|field| field.name.as_str()).collect();
        names.sort_unstable();
        let twice = names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        let odd = names.into_iter().find(|name| name.is_empty() || name.len() > 255);
        if let Some(name) = twice.or(odd) {
            return Err(SpecError::FieldName { name: name.into() });
        }
        let found = self.fields.iter().map(|field| u64::from(field.width_bytes)).sum();
        let expected = u64::from(width_bytes);
        if found == expected { Ok(()) } else { Err(SpecError::FieldsLength { found, expected }) }
    }

    /// The fields with their offsets.
    pub fn fields_at(&self) -> impl Iterator<Item = (usize, &Field)> {
        self.fields.iter().scan(0, |at, field| {
            let start = *at;
            *at += field.width_bytes as usize;
            Some((start, field))
        })
    }
}

/// A shape as text for messages.
pub(crate) fn shape_text(shape: ComponentShape) -> String {
    match shape {
        ComponentShape::Fixed { width_bytes: 1 } => "1 byte".into(),
        ComponentShape::Fixed { width_bytes } => format!("{width_bytes} bytes"),
        ComponentShape::Variable => "variable size".into(),
    }
}

#[cfg(test)]
mod tests;
