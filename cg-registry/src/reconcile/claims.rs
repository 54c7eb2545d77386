//! Checks which pack may register which names. Every pack has namespaces of its own.

use std::collections::{HashMap, HashSet};

use super::plan::Refusal;
use crate::catalog::Catalog;
use crate::kind::ListKind;
use crate::manifest::PackManifest;
use crate::name::check_namespace;
use crate::policy::Policy;

/// The maximum length of a pack's name or version, and the maximum number of namespaces. They keep a pack's record
/// small.
const MAX_PACK_TEXT_BYTES: usize = 255;
const MAX_NAMESPACES: usize = 1024;

/// All refusals that the packs' claims cause.
pub(super) fn check(stored: &Catalog, offered: &[PackManifest], policy: &Policy) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    check_packs(offered, &mut refusals);
    check_namespaces(stored, offered, policy, &mut refusals);
    for list in ListKind::ALL {
        check_names(offered, list, &mut refusals);
    }
    refusals
}

fn check_packs(offered: &[PackManifest], refusals: &mut Vec<Refusal>) {
    let mut seen = HashSet::new();
    for pack in offered {
        if !seen.insert(&pack.pack) {
            refusals.push(Refusal::PackTwice { pack: pack.pack.clone() });
        }
        let longest = pack.pack.len().max(pack.version.len());
        let reason = if pack.pack.is_empty() {
            Some("it has no name".into())
        } else if longest > MAX_PACK_TEXT_BYTES {
            Some(format!(
                "its name or version has {longest} bytes, at most {MAX_PACK_TEXT_BYTES} are allowed"
            ))
        } else if pack.namespaces.len() > MAX_NAMESPACES {
            Some(format!("it has {} namespaces, at most {MAX_NAMESPACES} are allowed", pack.namespaces.len()))
        } else {
            let bad = |namespace: &String| {
                check_namespace(namespace).err().map(|error| format!("namespace {namespace:?}: {error}"))
            };
            pack.namespaces.iter().find_map(bad)
        };
        refusals.extend(reason.map(|reason| Refusal::PackMalformed { pack: pack.pack.clone(), reason }));
    }
}

fn check_namespaces(
    stored: &Catalog,
    offered: &[PackManifest],
    policy: &Policy,
    refusals: &mut Vec<Refusal>,
) {
    // The owner of each namespace, and whether it is offered.
    let mut owners: HashMap<&str, (&str, bool)> = HashMap::new();
    let is_offered = |pack: &str| offered.iter().any(|manifest| manifest.pack == pack);
    for pack in stored.packs().into_iter().filter(|pack| !is_offered(&pack.pack)) {
        owners.extend(pack.namespaces.iter().map(|namespace| (namespace.as_str(), (&*pack.pack, false))));
    }
    for pack in offered {
        for namespace in &pack.namespaces {
            let (name, claimant) = (namespace.clone(), pack.pack.clone());
            match owners.get(namespace.as_str()) {
                Some((owner, _)) if *owner == pack.pack => {}
                Some((owner, true)) => {
                    let owner = (*owner).into();
                    refusals.push(Refusal::NamespaceTaken { namespace: name, owner, claimant });
                }
                Some((owner, false)) if !policy.allow_takeover => {
                    let owner = (*owner).into();
                    refusals.push(Refusal::NamespaceOwned { namespace: name, owner, claimant });
                }
                _ => {
                    owners.insert(namespace, (&pack.pack, true));
                }
            }
        }
    }
}

fn check_names(offered: &[PackManifest], list: ListKind, refusals: &mut Vec<Refusal>) {
    let mut owners = HashMap::new();
    for pack in offered {
        for name in pack.names(list) {
            let (owner, name) = (pack.pack.clone(), name.clone());
            if name.revision() != 1 {
                refusals.push(Refusal::ReservedName { pack: owner, list, name });
            } else if !pack.namespaces.iter().any(|own| own == name.namespace()) {
                refusals.push(Refusal::ForeignName { pack: owner, list, name });
            } else if let Some(first) = owners.insert(name.clone(), owner.clone()) {
                refusals.push(Refusal::ClaimedTwice {
                    list,
                    name: name.clone(),
                    first,
                    again: name,
                    second: owner,
                });
            }
        }
        let renamed = pack.renamed.iter().filter(|rename| rename.list == list);
        for name in renamed.flat_map(|rename| [&rename.old, &rename.new]) {
            if !pack.namespaces.iter().any(|own| own == name.namespace()) {
                let name = name.clone();
                refusals.push(Refusal::ForeignName { pack: pack.pack.clone(), list, name });
            } else if name.revision() != 1 {
                let name = name.clone();
                refusals.push(Refusal::ReservedName { pack: pack.pack.clone(), list, name });
            }
        }
    }
}
