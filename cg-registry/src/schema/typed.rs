//! Whether types agree with the width of what they describe.

use std::collections::BTreeSet;

use cg_format::ComponentShape;

use super::{ComponentSpec, SpecError};
use crate::types::{Content, Type, TypedField, width};

/// The maximum length of all names of the types of one component. It keeps their record small.
const MAX_NAME_BYTES: usize = 256 << 10;
const MAX_NAMES: usize = 16_384;

impl Content {
    /// Checks that the types fit the component that they describe, and that the component's default is allowed.
    ///
    /// # Errors
    /// [`SpecError::Type`] or [`SpecError::Default`].
    pub fn check_spec(&self, spec: &ComponentSpec) -> Result<(), SpecError> {
        self.check_shape(spec.shape)?;
        self.check(&spec.default_bytes).map_err(|breach| SpecError::Default { breach })
    }

    /// As [`check_spec`](Self::check_spec), without the default.
    pub(crate) fn check_shape(&self, shape: ComponentShape) -> Result<(), SpecError> {
        let all = |reason: &str| SpecError::Type { field: String::new(), reason: reason.into() };
        match (self, shape) {
            (Self::Fields(fields), ComponentShape::Fixed { width_bytes }) => {
                let (found, expected) = (width(fields), u64::from(width_bytes));
                if found != expected {
                    return Err(SpecError::FieldsLength { found, expected });
                }
                check_fields(fields)
            }
            (Self::List { fields, .. }, ComponentShape::Variable) => match width(fields) {
                0 => Err(all("an item of its list has no bytes")),
                found if found > ComponentSpec::MAX_WIDTH_BYTES.into() => {
                    Err(all("an item of its list is too wide"))
                }
                _ => check_fields(fields),
            },
            (Self::Text { .. } | Self::Bytes { .. }, ComponentShape::Variable) => Ok(()),
            (Self::Fields(_), ComponentShape::Variable) => Err(SpecError::VariableWithFields),
            (_, ComponentShape::Fixed { .. }) => Err(all("its size is fixed; describe it by fields")),
        }
    }
}

fn check_fields(fields: &[TypedField]) -> Result<(), SpecError> {
    if fields.len() > ComponentSpec::MAX_FIELDS {
        return Err(SpecError::TooManyFields { found: fields.len() });
    }
    let (mut names, mut name_bytes, mut variants) = (BTreeSet::new(), 0, 0);
    for field in fields {
        if field.name.is_empty() || field.name.len() > 255 || !names.insert(&field.name) {
            return Err(SpecError::FieldName { name: field.name.clone() });
        }
        if let Type::Enum(names) = &field.of {
            name_bytes += names.iter().map(String::len).sum::<usize>();
            variants += names.len();
        }
        let reason = match unsound(field) {
            None if name_bytes > MAX_NAME_BYTES || variants > MAX_NAMES => {
                "the names of enums are too many or too long"
            }
            None => continue,
            Some(reason) => reason,
        };
        return Err(SpecError::Type { field: field.name.clone(), reason: reason.into() });
    }
    Ok(())
}

fn unsound(field: &TypedField) -> Option<&'static str> {
    if field.count == 0 || !field.width_bytes.is_multiple_of(field.count) {
        return Some("its width is not a multiple of its count");
    }
    let item_bytes = field.item_bytes();
    let is_number = (1..=8).contains(&item_bytes);
    let capacity = if item_bytes < 8 { 1_u64 << (8 * item_bytes) } else { u64::MAX };
    match field.of.within(item_bytes) {
        Type::Unsigned { .. } | Type::Signed { .. } | Type::Enum(_) if !is_number => {
            Some("a number has 1 to 8 bytes")
        }
        Type::Unsigned { min, max } if min > max => Some("its range is empty"),
        Type::Signed { min, max } if min > max => Some("its range is empty"),
        Type::Float if !matches!(item_bytes, 4 | 8) => Some("a floating-point number has 4 or 8 bytes"),
        Type::Bool if item_bytes != 1 => Some("a boolean has 1 byte"),
        Type::Enum(names) if names.is_empty() => Some("its enum has no names"),
        Type::Enum(names) if names.len() as u64 > capacity => {
            Some("its enum has more names than its width has values")
        }
        Type::Enum(names) if names.iter().collect::<BTreeSet<_>>().len() < names.len() => {
            Some("its enum has a name twice")
        }
        Type::Text if item_bytes == 0 => Some("a text has at least 1 byte"),
        _ => None,
    }
}
