//! Block states of a schematic in the one spelling that a world has for each.

use std::borrow::Cow;

use crate::anvil::state;
use crate::mapping::kind;

/// A state with its namespace and its properties in ascending order: `planks` and `minecraft:planks` are the same,
/// and so are `[a=1,b=2]` and `[b=2,a=1]`.
///
/// Text that is no state of this form stays as it is; it has a name in a world too.
pub(super) fn canonical(text: &str) -> Cow<'_, str> {
    let Ok((_, mut properties)) = state::parse(text) else { return Cow::Borrowed(text) };
    let has_namespace = kind::base(text).contains(':');
    let is_doubled = {
        let mut keys: Vec<_> = properties.iter().map(|(key, _)| key).collect();
        keys.sort_unstable();
        keys.windows(2).any(|pair| pair.first() == pair.last())
    };
    if is_doubled || has_namespace && properties.is_sorted() {
        return Cow::Borrowed(text);
    }
    properties.sort_unstable();
    let prefix = if has_namespace { "" } else { "minecraft:" };
    let mut out = format!("{prefix}{}", kind::base(text));
    for (index, (key, value)) in properties.iter().enumerate() {
        let before = if index == 0 { '[' } else { ',' };
        out.extend([before]);
        out.extend([key, "=", value]);
    }
    if !properties.is_empty() {
        out.push(']');
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_has_one_spelling() {
        for (text, expected) in [
            ("minecraft:stone", "minecraft:stone"),
            ("stone", "minecraft:stone"),
            (
                "minecraft:chest[waterlogged=true,facing=north]",
                "minecraft:chest[facing=north,waterlogged=true]",
            ),
            ("oak_log[axis=y]", "minecraft:oak_log[axis=y]"),
            ("a:b[k=1,k=2]", "a:b[k=1,k=2]"),
            ("a:b[", "a:b["),
            ("", ""),
        ] {
            assert_eq!(canonical(text), expected);
        }
    }
}
