//! Computes a plan on a copy of the catalog, so that applying it gives exactly the planned result.

mod renames;
mod schemas;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use cg_format::BlockId;

use super::claims;
use super::plan::{Action, Cost, Plan, Refusal, What};
use crate::Name;
use crate::block::BlockState;
use crate::catalog::Catalog;
use crate::declared;
use crate::kind::ListKind;
use crate::manifest::PackManifest;
use crate::pack::PackRow;
use crate::policy::{MissingPacks, Policy};

/// A plan that is being computed.
pub(super) struct Work<'a> {
    stored: &'a Catalog,
    offered: &'a [PackManifest],
    policy: &'a Policy,
    /// The catalog after the plan.
    draft: Catalog,
    actions: Vec<Action>,
    /// The new states of existing blocks, by id.
    changed_blocks: BTreeMap<BlockId, BlockState>,
    /// Blocks that are united, each with the other one.
    united_blocks: Vec<(BlockId, BlockId)>,
    stand_ins: Vec<(BlockId, BlockId)>,
}

impl<'a> Work<'a> {
    pub(super) fn new(stored: &'a Catalog, offered: &'a [PackManifest], policy: &'a Policy) -> Self {
        let draft = stored.clone();
        let (actions, stand_ins) = (Vec::new(), Vec::new());
        let (changed_blocks, united_blocks) = (BTreeMap::new(), Vec::new());
        Self { stored, offered, policy, draft, actions, changed_blocks, united_blocks, stand_ins }
    }

    /// The order matters: a step may use what earlier steps added to the draft.
    pub(super) fn run(mut self) -> Plan {
        let refusals = claims::check(self.stored, self.offered, self.policy);
        let claims_are_sound = refusals.is_empty();
        for refusal in refusals {
            self.refuse(refusal);
        }
        if claims_are_sound {
            self.note_packs();
            self.rename();
            self.register_components();
            self.replace_components();
            self.register_blocks();
            self.change_blocks();
            self.register_plain();
            self.add_earlier_names();
            self.make_offered_names_current();
            self.note_what_is_gone();
            self.note_missing_packs();
        }
        self.actions.sort_by_key(|action| action.cost != Cost::Refused);
        Plan {
            actions: self.actions,
            changes: self.draft.since(self.stored.mark()),
            stand_ins: self.stand_ins,
            declared: Arc::new(declared::of_packs(self.offered)),
            generation_before: self.stored.current_generation(),
            generation_after: self.draft.current_generation(),
        }
    }

    fn note(&mut self, what: What, cost: Cost) {
        self.actions.push(Action::new(what, cost));
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.note(What::Refused(refusal), Cost::Refused);
    }

    /// The generation of all changes in this plan that affect stored chunks.
    fn next_generation(&self) -> u32 {
        let current = self.stored.current_generation();
        current.checked_add(1).expect("each generation takes a record, and a row holds 2^24 of them")
    }

    fn note_packs(&mut self) {
        let remembered: HashMap<&str, &PackRow> =
            self.stored.packs().into_iter().map(|row| (row.pack.as_str(), row)).collect();
        for manifest in self.offered {
            let mut namespaces = manifest.namespaces.clone();
            namespaces.sort_unstable();
            namespaces.dedup();
            let (pack, version) = (manifest.pack.clone(), manifest.version.clone());
            let row = PackRow { pack: pack.clone(), version: version.clone(), namespaces, present: true };
            let before = remembered.get(pack.as_str());
            if before.is_some_and(|before| **before == row) {
                continue;
            }
            match before {
                None => self.note(What::PackAdded { pack, version }, Cost::Free),
                Some(before) => {
                    if !before.present {
                        let (pack, version) = (pack.clone(), version.clone());
                        self.note(What::PackReturned { pack, version }, Cost::Free);
                    }
                    if before.version != row.version || before.namespaces != row.namespaces {
                        let from = before.version.clone();
                        self.note(What::PackUpdated { pack, from, to: version }, Cost::Free);
                    }
                }
            }
            self.draft.add_pack(row);
        }
    }

    /// Whether this many new names fit; otherwise adds a refusal.
    fn has_room(&mut self, pack: &PackManifest, list: ListKind, found: usize) -> bool {
        let room = list.max_len() - self.draft.list(list).len();
        if found > room {
            self.refuse(Refusal::Full { pack: pack.pack.clone(), list, found, room });
        }
        found <= room
    }

    fn note_registered(&mut self, pack: &PackManifest, list: ListKind, first_id: usize) {
        let names = self.draft.list(list).names().get(first_id..).unwrap_or_default().to_vec();
        if !names.is_empty() {
            let (pack, first_id) = (pack.pack.clone(), first_id as u64);
            self.note(What::Register { pack, list, first_id, names }, Cost::Free);
        }
    }

    fn register_plain(&mut self) {
        let lists = [ListKind::Entities, ListKind::Structures, ListKind::Dimensions, ListKind::Sides];
        for (pack, list) in self.offered.iter().flat_map(|pack| lists.map(|list| (pack, list))) {
            let first = self.draft.list(list).len();
            let is_new = |name: &&Name| self.draft.list(list).id(name.as_str()).is_none();
            let new: Vec<&Name> = pack.plain_names(list).iter().filter(is_new).collect();
            if self.has_room(pack, list, new.len()) {
                for name in new {
                    self.draft.add_name(list, name.clone()).expect("the name is new and the list has room");
                }
                self.note_registered(pack, list, first);
            }
        }
    }

    fn note_what_is_gone(&mut self) {
        for (pack, list) in self.offered.iter().flat_map(|pack| ListKind::ALL.map(|list| (pack, list))) {
            let entries = self.draft.list(list);
            let ids: HashSet<u64> =
                pack.names(list).into_iter().filter_map(|name| entries.id(name.as_str())).collect();
            let own = |name: &Name| {
                let ours = pack.namespaces.iter().any(|own| own == name.namespace());
                ours && name.revision() == 1 && !crate::catalog::INTRINSIC_SIDES.contains(&name.as_str())
            };
            let names = self.stored.list(list).names().iter().zip(0..);
            let gone = names.filter(|(name, id)| own(name) && !ids.contains(&entries.newest(*id)));
            let names: Vec<Name> = gone.map(|(name, _)| name.clone()).collect();
            if !names.is_empty() {
                let pack = pack.pack.clone();
                self.note(What::NoLongerOffered { pack, list, names }, Cost::Free);
            }
        }
    }

    fn note_missing_packs(&mut self) {
        let claimed: HashSet<&str> =
            self.offered.iter().flat_map(|pack| &pack.namespaces).map(String::as_str).collect();
        let is_offered = |row: &&PackRow| self.offered.iter().any(|pack| pack.pack == row.pack);
        let missing: Vec<&PackRow> = self.stored.packs().into_iter().filter(|row| !is_offered(row)).collect();
        let placeholder = match &self.policy.missing {
            MissingPacks::Placeholder(name) => match self.draft.block_id(name.as_str()) {
                Some(id) => Some((name, id)),
                None if missing.is_empty() => None,
                None => {
                    return self.refuse(Refusal::PlaceholderUnknown { placeholder: name.clone() });
                }
            },
            MissingPacks::Keep | MissingPacks::Refuse => None,
        };
        for before in missing {
            let (pack, version) = (before.pack.clone(), before.version.clone());
            let mut row = PackRow { present: false, ..before.clone() };
            row.namespaces.retain(|namespace| !claimed.contains(namespace.as_str()));
            let own = |name: &&Name| row.namespaces.iter().any(|own| own == name.namespace());
            let entries: Vec<_> = ListKind::ALL
                .into_iter()
                .map(|list| (list, self.stored.list(list).names().iter().filter(own).count()))
                .filter(|(_, count)| *count > 0)
                .collect();
            if self.policy.missing == MissingPacks::Refuse {
                let entries = entries.iter().map(|(_, count)| count).sum();
                self.refuse(Refusal::PackMissing { pack, version, entries });
                continue;
            }
            if let Some((_, stand_in)) = placeholder {
                let names = (0..).map(BlockId::new).zip(self.stored.list(ListKind::Blocks).names());
                let theirs = names.filter(|(_, name)| own(name)).map(|(id, _)| (id, stand_in));
                self.stand_ins.extend(theirs);
            }
            let shown = placeholder.map(|(name, _)| name.clone());
            self.note(What::PackMissing { pack, version, entries, placeholder: shown }, Cost::Free);
            if row != *before {
                self.draft.add_pack(row);
            }
        }
    }
}
