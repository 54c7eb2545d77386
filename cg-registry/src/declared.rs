//! The states of blocks that packs declare: a block that is registered beside them has a state that no pack knows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::kind::ListKind;
use crate::manifest::PackManifest;
use crate::{Name, RegistryError};

/// The most values of a key, and the most keys, that an error names.
const SHOWN: usize = 16;

/// A name without its state.
fn base(name: &str) -> &str {
    name.split_once('[').map_or(name, |(base, _)| base)
}

/// The names without states of all blocks whose states these packs declare.
pub(crate) fn of_packs(packs: &[PackManifest]) -> BTreeSet<String> {
    let blocks = packs.iter().flat_map(|pack| &pack.blocks);
    let with_states = blocks.filter(|block| block.name.state().next().is_some());
    with_states.map(|block| base(block.name.unrevised()).to_owned()).collect()
}

impl Catalog {
    /// Takes over which states are declared from the catalog that this process had of the same names, as no row has that.
    pub fn keep_declared(&mut self, before: &Self) {
        self.declared = Arc::clone(&before.declared);
    }

    /// Refuses a new name of a block whose states are declared: they are registered already.
    pub(crate) fn check_state(&self, name: &Name) -> Result<(), RegistryError> {
        let text = name.unrevised();
        if !self.declared.contains(base(text)) {
            return Ok(());
        }
        let mut declared = BTreeMap::<&str, BTreeSet<&str>>::new();
        let siblings =
            self.list(ListKind::Blocks).names().iter().filter(|it| base(it.unrevised()) == base(text));
        for (key, value) in siblings.flat_map(Name::state) {
            declared.entry(key).or_default().insert(value);
        }
        let values = |values: &BTreeSet<&str>| {
            let more = if values.len() > SHOWN { "|…" } else { "" };
            values.iter().take(SHOWN).copied().collect::<Vec<_>>().join("|") + more
        };
        let key = |(key, all): (&&str, &BTreeSet<&str>)| format!("{key}={}", values(all));
        let allowed: Vec<_> = declared.iter().take(SHOWN).map(key).collect();
        Err(RegistryError::UndeclaredState { name: text.into(), allowed: allowed.join(", ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockOffer, Policy, Registration, reconcile};

    #[test]
    fn a_state_that_no_pack_declares_is_refused() {
        let pack = |json| PackManifest::from_json(json).unwrap();
        let wires = pack(
            r#"{ "pack": "wires", "version": "1", "namespaces": ["wires"], "blocks": [{ "name": "wires:wire" }] }"#,
        );
        let doors = pack(
            r#"{ "pack": "doors", "version": "1", "namespaces": ["doors"], "blocks": [
                    { "name": "doors:door", "states": { "facing": ["east", "north"], "open": ["false", "true"] } },
                    { "name": "doors:bell" } ] }"#,
        );
        let offer = |text| Registration {
            blocks: vec![BlockOffer::new(Name::new(text).unwrap())],
            ..Registration::default()
        };
        let mut catalog = Catalog::new();
        reconcile(&catalog, &[wires.clone(), doors], &Policy::default()).apply(&mut catalog).unwrap();
        let before = catalog.clone();
        for illegal in ["doors:door[facing=up,open=true]", "doors:door[open=true]", "doors:door"] {
            let refused = catalog.register(&offer(illegal)).unwrap_err();
            let allowed = "facing=east|north, open=false|true".to_owned();
            assert_eq!(refused, RegistryError::UndeclaredState { name: illegal.into(), allowed });
        }
        assert!(catalog.register(&offer("doors:door[facing=east,open=true]")).unwrap().is_empty());
        assert_eq!(catalog, before);
        // No pack says which states these have.
        for other in ["doors:bell[loud=true]", "wires:wire[powered=true]", "doors:gate[open=true]"] {
            assert!(!catalog.register(&offer(other)).unwrap().is_empty(), "{other}");
        }
        // Rows do not say what is declared.
        let rows = catalog.encode_full();
        let stored = Catalog::decode(rows.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())));
        let mut stored = stored.unwrap();
        assert!(!stored.clone().register(&offer("doors:door")).unwrap().is_empty());
        stored.keep_declared(&catalog);
        assert!(matches!(stored.register(&offer("doors:door")), Err(RegistryError::UndeclaredState { .. })));
        // A pack that is not offered declares nothing.
        reconcile(&catalog, &[wires], &Policy::default()).apply(&mut catalog).unwrap();
        assert!(!catalog.register(&offer("doors:door[facing=up,open=true]")).unwrap().is_empty());
    }
}
