//! A block with all its states, which a manifest lists in one entry.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{BlockOffer, yes};
use crate::Name;
use crate::name::NameError;

/// The maximum number of names that the states of a manifest have, those of their components included.
const MAX_NAMES: usize = 1 << 20;

/// An entry of the list of blocks.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Name,
    /// The entry is one block kind for each combination of these values.
    #[serde(default)]
    states: States,
    #[serde(default)]
    components: Vec<Name>,
    #[serde(default = "yes")]
    opaque: bool,
}

/// The values of each state key.
#[derive(Default)]
struct States(BTreeMap<String, Vec<String>>);

/// Reads the list of blocks, with each state of an entry as a block kind of its own.
pub(super) fn blocks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<BlockOffer>, D::Error> {
    let mut blocks = Vec::new();
    let mut names = 0;
    for Entry { name, states: States(states), components, opaque } in Vec::<Entry>::deserialize(deserializer)?
    {
        let refused = |why: String| D::Error::custom(format!("the states of block `{name}`: {why}"));
        if states.is_empty() {
            blocks.push(BlockOffer { name, components, opaque });
            continue;
        }
        if name.state().next().is_some() {
            return Err(refused("its name has a state already".into()));
        }
        if let Some((key, _)) = states.iter().find(|(_, values)| values.is_empty()) {
            return Err(refused(format!("`{key}` has no values")));
        }
        let count = states.values().fold(1, |count: usize, values| count.saturating_mul(values.len()));
        names = count.saturating_mul(1 + components.len()).saturating_add(names);
        if names > MAX_NAMES {
            return Err(refused(format!("with them the manifest has more than {MAX_NAMES} names of states")));
        }
        for number in 0..count {
            let name = state(&name, &states, number).map_err(|why| refused(why.to_string()))?;
            blocks.push(BlockOffer { name, components: components.clone(), opaque });
        }
    }
    Ok(blocks)
}

/// As a map's, without keys that are there twice.
impl<'de> Deserialize<'de> for States {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StatesVisitor;

        impl<'de> Visitor<'de> for StatesVisitor {
            type Value = States;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the values of each state key")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<States, A::Error> {
                let mut states = BTreeMap::new();
                while let Some((key, values)) = map.next_entry::<String, Vec<String>>()? {
                    match states.entry(key) {
                        Slot::Vacant(slot) => drop(slot.insert(values)),
                        Slot::Occupied(slot) => {
                            return Err(A::Error::custom(format!(
                                "the state key `{}` is there twice",
                                slot.key()
                            )));
                        }
                    }
                }
                Ok(States(states))
            }
        }

        deserializer.deserialize_map(StatesVisitor)
    }
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
        check(
            r#"{"name":"p:door","states":{"open":["true"],"open":["false"]}}"#,
            expect!["not a pack manifest: the state key `open` is there twice at line 1 column 115"],
        );
        let values = vec![r#""v""#; 300].join(",");
        let keys = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|key| format!(r#""{key}":[{values}]"#));
        check(
            &format!(r#"{{"name":"p:door","states":{{{}}}}}"#, keys.join(",")),
            expect![
                "not a pack manifest: the states of block `p:door`: with them the manifest has more than 1048576 names of states at line 1 column 9733"
            ],
        );
        let values: Vec<_> = (0..1000).map(|value| format!(r#""{value}""#)).collect();
        let components: Vec<_> = (0..1100).map(|n| format!(r#""p:{n}""#)).collect();
        let [values, components] = [values, components].map(|list| list.join(","));
        check(
            &format!(r#"{{"name":"p:wire","states":{{"power":[{values}]}},"components":[{components}]}}"#),
            expect![
                "not a pack manifest: the states of block `p:wire`: with them the manifest has more than 1048576 names of states at line 1 column 14790"
            ],
        );
    }
}
