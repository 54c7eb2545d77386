//! A block with all its states, which a manifest lists in one entry.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::{BlockOffer, yes};
use crate::Name;
use crate::name::NameError;

/// The maximum number of states of all entries of a manifest.
const MAX_STATES: usize = 1 << 18;

/// An entry of the list of blocks.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Name,
    /// The values of each key. The entry is one block kind for each combination of them.
    #[serde(default)]
    states: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    components: Vec<Name>,
    #[serde(default = "yes")]
    opaque: bool,
}

/// Reads the list of blocks, with each state of an entry as a block kind of its own.
pub(super) fn blocks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<BlockOffer>, D::Error> {
    let mut blocks = Vec::new();
    let mut total = 0;
    for Entry { name, states, components, opaque } in Vec::<Entry>::deserialize(deserializer)? {
        let refused = |why: String| D::Error::custom(format!("the states of block `{name}`: {why}"));
        if let Some((key, _)) = states.iter().find(|(_, values)| values.is_empty()) {
            return Err(refused(format!("`{key}` has no values")));
        }
        if !states.is_empty() && name.state().next().is_some() {
            return Err(refused("its name has a state already".into()));
        }
        let count = states.values().fold(1, |count: usize, values| count.saturating_mul(values.len()));
        total += if states.is_empty() { 0 } else { count.min(MAX_STATES + 1) };
        if total > MAX_STATES {
            return Err(refused(format!("with them the manifest has more than {MAX_STATES} states")));
        }
        for number in 0..count {
            let name = state(&name, &states, number).map_err(|why| refused(why.to_string()))?;
            blocks.push(BlockOffer { name, components: components.clone(), opaque });
        }
    }
    Ok(blocks)
}

/// The state with a number: the values of the last key change fastest.
fn state(block: &Name, states: &BTreeMap<String, Vec<String>>, number: usize) -> Result<Name, NameError> {
    let mut rest = number;
    let value = |(key, values): (&'_ String, &'_ Vec<String>)| {
        let value = values.get(rest % values.len());
        rest /= values.len();
        Some((key.clone(), value?.clone()))
    };
    let pairs: Vec<_> = states.iter().rev().filter_map(value).collect();
    Name::with_state(block.as_str(), pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())))
}

#[cfg(test)]
mod tests {
    use super::super::PackManifest;
    use expect_test::{Expect, expect};

    #[track_caller]
    fn check(block: &str, expected: Expect) {
        let json = format!(r#"{{"pack":"p","version":"1","namespaces":["p"],"blocks":[{block}]}}"#);
        let shown = match PackManifest::from_json(&json) {
            Ok(pack) => {
                assert_eq!(PackManifest::from_json(&pack.to_json()).unwrap(), pack);
                let block = |block: &super::BlockOffer| {
                    format!("{} {} {:?}", block.name.as_str(), block.opaque, block.components)
                };
                pack.blocks.iter().map(block).collect::<Vec<_>>().join("\n")
            }
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn an_entry_with_states_is_a_block_kind_for_each_combination() {
        check(
            r#"{"name":"p:door","opaque":false,"states":{"open":["false","true"],"facing":["north","east"]}}"#,
            expect![[r#"
                p:door[facing=north,open=false] false []
                p:door[facing=north,open=true] false []
                p:door[facing=east,open=false] false []
                p:door[facing=east,open=true] false []"#]],
        );
        check(r#"{"name":"p:stone","states":{}}"#, expect!["p:stone true []"]);
        check(
            r#"{"name":"p:chest","components":["p:items"],"states":{"kind":["left"]}}"#,
            expect![[r#"p:chest[kind=left] true [Name("p:items")]"#]],
        );
    }

    #[test]
    fn states_that_are_none_are_refused() {
        check(
            r#"{"name":"p:door","states":{"open":[]}}"#,
            expect![
                "not a pack manifest: the states of block `p:door`: `open` has no values at line 1 column 95"
            ],
        );
        check(
            r#"{"name":"p:door","states":{"open":["a=b"]}}"#,
            expect![
                "not a pack manifest: the states of block `p:door`: its state is not written `[key=value,key=value]` at line 1 column 100"
            ],
        );
        check(
            r#"{"name":"p:door[open=true]","states":{"facing":["north"]}}"#,
            expect![
                "not a pack manifest: the states of block `p:door[open=true]`: its name has a state already at line 1 column 115"
            ],
        );
        let values = vec![r#""v""#; 300].join(",");
        let keys = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|key| format!(r#""{key}":[{values}]"#));
        check(
            &format!(r#"{{"name":"p:door","states":{{{}}}}}"#, keys.join(",")),
            expect![
                "not a pack manifest: the states of block `p:door`: with them the manifest has more than 262144 states at line 1 column 9733"
            ],
        );
    }
}
