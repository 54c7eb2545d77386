//! Block states of a schematic in the one spelling that a world has for each.

use std::borrow::Cow;

use cg_minecraft::{game, kind, state};

/// A state of a schematic of this version with its namespace and all its properties in ascending order: `planks` and
/// `minecraft:planks` are the same, so are `[a=1,b=2]` and `[b=2,a=1]`, and `oak_slab` is the slab's default state.
///
/// Text that is no state of this form stays as it is; it has a name in a world too.
pub(crate) fn canonical(text: &str, data_version: i32) -> Cow<'_, str> {
    match in_order(text) {
        Cow::Borrowed(text) => game::complete(text, data_version),
        Cow::Owned(text) => Cow::Owned(game::complete(&text, data_version).into_owned()),
    }
}

fn in_order(text: &str) -> Cow<'_, str> {
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
                "minecraft:chest[facing=north,type=single,waterlogged=true]",
            ),
            ("oak_log[axis=y]", "minecraft:oak_log[axis=y]"),
            ("oak_slab[waterlogged=true]", "minecraft:oak_slab[type=bottom,waterlogged=true]"),
            ("minecraft:oak_slab", "minecraft:oak_slab[type=bottom,waterlogged=false]"),
            ("oak_leaves", "minecraft:oak_leaves[distance=7,persistent=false]"),
            ("a:b[k=1,k=2]", "a:b[k=1,k=2]"),
            ("a:b[", "a:b["),
            ("", ""),
        ] {
            assert_eq!(canonical(text, 2975), expected);
        }
    }
}
