//! States with all their properties: what a state leaves out has the value of the block's default state.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::blocks::{Block, eras, find};

/// The `DataVersion`s from which on some block has one more property, ascending.
static ERAS: LazyLock<Vec<i32>> = LazyLock::new(eras);

/// A number that is the same for `DataVersion`s between which no block got a property: a state is completed alike in them.
pub fn era(data_version: i32) -> usize {
    ERAS.partition_point(|since| *since <= data_version)
}

/// The state with all properties that its block has in the game of a `DataVersion`, keys ascending.
///
/// Properties that are missing get the value of the block's default state. A state of a block that the table does not have,
/// or with a property that its block does not have, stays as it is, and so does text that is no state.
///
/// ```
/// use cg_minecraft::game::complete;
/// let slab = "minecraft:oak_slab[type=bottom,waterlogged=false]";
/// assert_eq!(complete("minecraft:oak_slab", 4903), slab);
/// assert_eq!(complete("minecraft:oak_slab[waterlogged=false]", 4903), slab);
/// assert_eq!(complete("create:andesite_slab", 4903), "create:andesite_slab");
/// // Leaves can hold water since 1.19.
/// let leaves = "minecraft:oak_leaves[distance=7,persistent=false]";
/// assert_eq!(complete(leaves, 2975), leaves);
/// assert_eq!(complete(leaves, 3105), "minecraft:oak_leaves[distance=7,persistent=false,waterlogged=false]");
/// ```
pub fn complete(state: &str, data_version: i32) -> Cow<'_, str> {
    completed(state, data_version).map_or(Cow::Borrowed(state), Cow::Owned)
}

/// As [`complete`]; `None` if nothing changes.
fn completed(state: &str, data_version: i32) -> Option<String> {
    let (name, given) = parts(state)?;
    let block = block(name)?;
    let given = pairs(given).collect::<Option<Vec<_>>>()?;
    if !has_all(block, &given) {
        return None;
    }
    let value = |key: &str| given.iter().find(|(own, _)| *own == key).map(|(_, value)| *value);
    let mut out = name.to_owned();
    for property in &block.properties {
        let missing = || (property.since <= data_version).then_some(property.default);
        if let Some(value) = value(property.key).or_else(missing) {
            let before = if out.len() == name.len() { "[" } else { "," };
            out.extend([before, property.key, "=", value]);
        }
    }
    if out.len() > name.len() {
        out.push(']');
    }
    (out != state).then_some(out)
}

/// Whether this is the default state of its block in the game of a `DataVersion`: all properties that it has are the
/// default's. A block that the table does not have is taken to be in it where no property is said.
pub fn is_default(state: &str, data_version: i32) -> bool {
    let Some((name, given)) = parts(state) else { return false };
    let is_default = |(key, value)| default_value(name, key, data_version) == Some(value);
    pairs(given).all(|pair| pair.is_some_and(is_default))
}

/// The value of a property in a block's default state, by the block's name with its namespace; `None` if the block does not
/// have it in the game of this `DataVersion`.
pub fn default_value(name: &str, key: &str, data_version: i32) -> Option<&'static str> {
    let mut properties = block(name)?.properties.iter();
    let property = properties.find(|property| property.key == key && property.since <= data_version)?;
    Some(property.default)
}

/// Whether the default state of a state's block is known. Of a block of another namespace than `minecraft` it never is.
///
/// ```
/// use cg_minecraft::game::is_known;
/// assert!(is_known("minecraft:oak_slab[type=top,waterlogged=false]"));
/// assert!(!is_known("minecraft:straw_bed"), "it is newer than the table");
/// ```
pub fn is_known(state: &str) -> bool {
    parts(state).and_then(|(name, _)| block(name)).is_some()
}

fn block(name: &str) -> Option<&'static Block> {
    find(name.strip_prefix("minecraft:")?)
}

/// Whether a block has all these properties, and none is said twice.
fn has_all(block: &Block, given: &[(&str, &str)]) -> bool {
    let is_said = |key: &str| given.iter().filter(|(own, _)| *own == key).count();
    let own = block.properties.iter().map(|property| is_said(property.key));
    own.clone().all(|count| count <= 1) && own.sum::<usize>() == given.len()
}

/// The name of a state, and what is between its brackets.
fn parts(state: &str) -> Option<(&str, &str)> {
    match state.split_once('[') {
        None => Some((state, "")),
        Some((name, rest)) => Some((name, rest.strip_suffix(']').filter(|inside| !inside.is_empty())?)),
    }
}

fn pairs(inside: &str) -> impl Iterator<Item = Option<(&str, &str)>> {
    inside.split(',').filter(|pair| !pair.is_empty()).map(|pair| pair.split_once('='))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::game::BLOCKS;

    const NOW: i32 = 5023;

    #[test]
    fn what_is_left_out_is_the_defaults() {
        for (state, expected) in [
            ("minecraft:stone", "minecraft:stone"),
            ("minecraft:oak_slab[type=top]", "minecraft:oak_slab[type=top,waterlogged=false]"),
            ("minecraft:oak_log[axis=x]", "minecraft:oak_log[axis=x]"),
            ("minecraft:oak_log", "minecraft:oak_log[axis=y]"),
            ("minecraft:white_wool_slab", "minecraft:white_wool_slab[type=bottom,waterlogged=false]"),
            ("minecraft:tube_coral", "minecraft:tube_coral[waterlogged=true]"),
            (
                "minecraft:oak_slab[waterlogged=true,type=top]",
                "minecraft:oak_slab[type=top,waterlogged=true]",
            ),
            // Values that the block of today does not have are what an older game wrote.
            (
                "minecraft:cobblestone_wall[east=true]",
                "minecraft:cobblestone_wall[east=true,north=none,south=none,up=true,waterlogged=false,west=none]",
            ),
        ] {
            assert_eq!(complete(state, NOW), expected);
        }
        for same in [
            "",
            "minecraft:",
            "minecraft:straw_bed",
            "minecraft:straw_bed[part=head]",
            "minecraft:oak_slab[",
            "minecraft:oak_slab[]",
            "minecraft:oak_slab[type]",
            "minecraft:oak_slab[type=top,type=bottom]",
            "minecraft:oak_slab[type=top,color=red]",
            "minecraft:cauldron[level=1]",
            "create:oak_slab",
            "oak_slab",
        ] {
            assert_eq!(complete(same, NOW), same);
        }
    }

    #[test]
    fn a_state_is_completed_with_what_its_version_has() {
        for (state, before, since, after) in [
            ("minecraft:tnt", 1519, 1631, "minecraft:tnt[unstable=false]"),
            ("minecraft:barrier", 3463, 3578, "minecraft:barrier[waterlogged=false]"),
            (
                "minecraft:rail[shape=east_west]",
                2586,
                2724,
                "minecraft:rail[shape=east_west,waterlogged=false]",
            ),
        ] {
            assert_eq!(complete(state, before), state);
            assert_eq!(complete(state, since), after);
            assert_ne!(era(before), era(since));
        }
        // What a state says stays, also in a version that did not have it yet.
        let early = "minecraft:oak_leaves[distance=7,persistent=false,waterlogged=false]";
        assert_eq!(complete(early, 1519), early);
    }

    #[test]
    fn default_states_are_told_from_others() {
        for state in [
            "minecraft:oak_slab",
            "minecraft:oak_slab[type=bottom]",
            "minecraft:oak_slab[type=bottom,waterlogged=false]",
            "minecraft:stone",
            "minecraft:straw_bed",
            "a:b",
        ] {
            assert!(is_default(state, NOW), "{state}");
        }
        for state in
            ["minecraft:oak_slab[type=top]", "minecraft:straw_bed[part=foot]", "a:b[k=v]", "a:b[", "a:b[]"]
        {
            assert!(!is_default(state, NOW), "{state}");
        }
    }

    proptest! {
        #[test]
        fn a_completed_state_stays_and_says_all_that_it_said(
            index in any::<prop::sample::Index>(), kept in any::<u16>(), version in prop::sample::select(vec![0, 1519, 2975, 4903]),
        ) {
            let block = index.get(&BLOCKS[..]);
            let has = |at: usize| kept >> (at % 16) & 1 == 1;
            let said: Vec<_> = block.properties.iter().enumerate().filter(|(at, _)| has(*at)).map(|(_, one)| (one.key, "x")).collect();
            let inside: Vec<_> = said.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let state = if inside.is_empty() { format!("minecraft:{}", block.name) } else { format!("minecraft:{}[{}]", block.name, inside.join(",")) };
            let full = complete(&state, version).into_owned();
            prop_assert_eq!(complete(&full, version), &*full);
            let (_, inside) = parts(&full).expect("a state");
            let full: Vec<_> = pairs(inside).map(|pair| pair.expect("a property")).collect();
            prop_assert!(said.iter().all(|pair| full.contains(pair)));
            for property in &block.properties {
                let is_there = full.iter().any(|(key, _)| *key == property.key);
                let must = property.since <= version || said.iter().any(|(key, _)| *key == property.key);
                prop_assert_eq!(is_there, must);
            }
        }
    }
}
