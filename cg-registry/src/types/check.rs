//! Whether the bytes of an instance are what their type allows.

use std::fmt;

use super::{Content, Type, TypedField};

/// A value that its type does not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach {
    /// The field, with `[3]` for the item of an array or a list: `slots[3]`, `[3].count`. Empty for the whole instance.
    pub field: String,
    /// The value found.
    pub found: String,
    /// The allowed values.
    pub allowed: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, found, allowed } = self;
        match field.as_str() {
            "" => write!(f, "is {found}, allowed: {allowed}"),
            field => write!(f, "`{field}` is {found}, allowed: {allowed}"),
        }
    }
}

impl Content {
    /// Checks the bytes of one instance, without allocations if they are allowed.
    ///
    /// # Errors
    /// The first [`Breach`].
    pub fn check(&self, bytes: &[u8]) -> Result<(), Breach> {
        match self {
            Self::Fields(fields) => {
                let width_bytes = width(fields);
                if bytes.len() as u64 != width_bytes {
                    return Err(whole(length(bytes), format!("{width_bytes} bytes")));
                }
                check_fields(fields, bytes).map_err(|(field, found, allowed)| Breach {
                    field,
                    found,
                    allowed,
                })
            }
            Self::Text { max_bytes } => {
                if bytes.len() as u64 > *max_bytes {
                    return Err(whole(length(bytes), format!("UTF-8 of at most {max_bytes} bytes")));
                }
                let text = std::str::from_utf8(bytes);
                text.map(drop).map_err(|_| whole(hex(bytes), format!("UTF-8 of at most {max_bytes} bytes")))
            }
            Self::Bytes { max_bytes } if bytes.len() as u64 > *max_bytes => {
                Err(whole(length(bytes), format!("at most {max_bytes} bytes")))
            }
            Self::Bytes { .. } => Ok(()),
            Self::List { max_items, fields } => check_list(*max_items, fields, bytes),
        }
    }

    /// Whether any bytes that the store accepts are allowed.
    pub fn allows_everything(&self) -> bool {
        match self {
            Self::Fields(fields) => fields.iter().all(|field| field.of == Type::Bytes),
            Self::Bytes { max_bytes } => *max_bytes == u64::MAX,
            Self::Text { .. } | Self::List { .. } => false,
        }
    }
}

fn check_list(max_items: u64, fields: &[TypedField], bytes: &[u8]) -> Result<(), Breach> {
    let width_bytes = width(fields).max(1);
    if !(bytes.len() as u64).is_multiple_of(width_bytes) {
        return Err(whole(length(bytes), format!("items of {width_bytes} bytes")));
    }
    let items = bytes.len() as u64 / width_bytes;
    if items > max_items {
        return Err(whole(format!("{items} items"), format!("at most {max_items} items")));
    }
    for (at, item) in bytes.chunks_exact(width_bytes as usize).enumerate() {
        check_fields(fields, item).map_err(|(field, found, allowed)| {
            let field = format!("[{at}].{field}");
            Breach { field, found, allowed }
        })?;
    }
    Ok(())
}

/// Checks fields that fill the bytes. An error is the field, what was found, and what is allowed.
fn check_fields(fields: &[TypedField], mut bytes: &[u8]) -> Result<(), (String, String, String)> {
    for field in fields {
        let Some((value, rest)) = bytes.split_at_checked(field.width_bytes as usize) else { return Ok(()) };
        bytes = rest;
        if field.of == Type::Bytes || field.count == 1 && field.of.allows(value) {
            continue;
        }
        let item_bytes = field.item_bytes().max(1);
        for (at, item) in value.chunks_exact(item_bytes).enumerate() {
            if !field.of.allows(item) {
                let name = &field.name;
                let place = if field.count == 1 { name.clone() } else { format!("{name}[{at}]") };
                return Err((place, field.of.shown(item), field.of.within(item_bytes).to_string()));
            }
        }
    }
    Ok(())
}

impl Type {
    /// Whether an item is allowed.
    pub(super) fn allows(&self, item: &[u8]) -> bool {
        match self {
            Self::Bytes => true,
            Self::Unsigned { min, max } => (*min..=*max).contains(&unsigned(item)),
            Self::Signed { min, max } => (*min..=*max).contains(&signed(item)),
            Self::Float => float(item).is_finite(),
            Self::Bool => matches!(item, [0 | 1]),
            Self::Enum(names) => unsigned(item) < names.len() as u64,
            Self::Text => {
                let len = item.iter().position(|byte| *byte == 0).unwrap_or(item.len());
                let (text, zeros) = item.split_at(len);
                zeros.iter().all(|byte| *byte == 0) && std::str::from_utf8(text).is_ok()
            }
        }
    }

    /// An item as text for messages.
    fn shown(&self, item: &[u8]) -> String {
        match self {
            Self::Unsigned { .. } | Self::Enum(_) | Self::Bool => unsigned(item).to_string(),
            Self::Signed { .. } => signed(item).to_string(),
            Self::Float => float(item).to_string(),
            Self::Bytes | Self::Text => hex(item),
        }
    }
}

fn unsigned(item: &[u8]) -> u64 {
    if let Ok([byte]) = <[u8; 1]>::try_from(item) {
        return byte.into();
    }
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(item).for_each(|(to, from)| *to = *from);
    u64::from_le_bytes(bytes)
}

fn signed(item: &[u8]) -> i64 {
    let unused = 64 - 8 * item.len().clamp(1, 8) as u32;
    (unsigned(item) << unused).cast_signed() >> unused
}

fn float(item: &[u8]) -> f64 {
    match item.try_into() {
        Ok(bytes) => f32::from_le_bytes(bytes).into(),
        Err(_) => f64::from_bits(unsigned(item)),
    }
}

fn length(bytes: &[u8]) -> String {
    format!("{} bytes", bytes.len())
}

/// The first bytes in hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    const SHOWN: usize = 16;
    let digits: String = bytes.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect();
    digits + if bytes.len() > SHOWN { "…" } else { "" }
}

pub(crate) fn width(fields: &[TypedField]) -> u64 {
    fields.iter().map(|field| u64::from(field.width_bytes)).sum()
}

const fn whole(found: String, allowed: String) -> Breach {
    Breach { field: String::new(), found, allowed }
}
