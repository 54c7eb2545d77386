//! Which values a new type no longer allows.

use super::{Content, Type, TypedField};

/// The parts of a component of which stored values may no longer be allowed, each with what is allowed now: the names
/// of fields, or `its content`. Empty if the new type allows all that the old one did.
///
/// Without an old type every value was allowed.
pub fn narrowed(old: Option<&Content>, new: &Content) -> Vec<String> {
    match (old, new) {
        (_, new) if new.allows_everything() => Vec::new(),
        (Some(Content::Fields(old)), Content::Fields(new)) => narrowed_fields(old, new),
        (_, Content::Fields(new)) => narrowed_fields(&[], new),
        (Some(Content::Text { max_bytes: old }), Content::Text { max_bytes: new })
        | (
            Some(Content::Text { max_bytes: old } | Content::Bytes { max_bytes: old }),
            Content::Bytes { max_bytes: new },
        ) if old <= new => Vec::new(),
        (
            Some(Content::List { max_items: old_items, fields: old }),
            Content::List { max_items: new_items, fields: new },
        ) if is_alike(old, new) => {
            let mut out = narrowed_fields(old, new);
            if old_items > new_items {
                out.push(format!("its content (at most {new_items} items)"));
            }
            out
        }
        (_, Content::Text { max_bytes }) => vec![format!("its content (UTF-8 of at most {max_bytes} bytes)")],
        (_, Content::Bytes { max_bytes }) => vec![format!("its content (at most {max_bytes} bytes)")],
        (_, Content::List { max_items, .. }) => vec![format!("its content (at most {max_items} items)")],
    }
}

fn is_alike(old: &[TypedField], new: &[TypedField]) -> bool {
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| old.width_bytes == new.width_bytes)
}

fn narrowed_fields(old: &[TypedField], new: &[TypedField]) -> Vec<String> {
    let before = |field: &TypedField| old.iter().find(|old| old.name == field.name);
    let is_narrowed = |field: &&TypedField| match before(field) {
        Some(old) if old.item_bytes() == field.item_bytes() => {
            let item_bytes = field.item_bytes();
            !field.of.within(item_bytes).allows_all_of(&old.of.within(item_bytes))
        }
        _ => field.of != Type::Bytes,
    };
    let text = |field: &TypedField| format!("`{}` ({})", field.name, field.of.within(field.item_bytes()));
    new.iter().filter(is_narrowed).map(text).collect()
}

impl Type {
    /// Whether every item that the other type allows is allowed, in one width. An enum that gives a position another
    /// name allows other values.
    fn allows_all_of(&self, old: &Self) -> bool {
        match (self, old) {
            (Self::Bytes, _) => true,
            (Self::Unsigned { min, max }, Self::Unsigned { min: from, max: to }) => min <= from && max >= to,
            (Self::Signed { min, max }, Self::Signed { min: from, max: to }) => min <= from && max >= to,
            (Self::Unsigned { min, max }, Self::Bool) => *min == 0 && *max >= 1,
            (Self::Unsigned { min, max }, Self::Enum(names)) => *min == 0 && *max >= names.len() as u64 - 1,
            (Self::Enum(new), Self::Enum(old)) => new.starts_with(old),
            (new, old) => new == old,
        }
    }
}
