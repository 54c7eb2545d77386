//! Computes a plan on a copy of the catalog, so that applying it gives exactly the planned result.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use cg_format::{BlockId, ComponentId};

use super::claims;
use super::plan::{Action, Cost, Plan, Refusal, What};
use crate::Name;
use crate::block::{BlockRow, BlockState};
use crate::catalog::Catalog;
use crate::component::{ComponentRow, Replaces};
use crate::kind::ListKind;
use crate::manifest::{BlockOffer, ComponentOffer, HexBytes, PackManifest};
use crate::pack::{PackRow, RenameRow};
use crate::policy::{MissingPacks, Policy};
use crate::register::checked;
use crate::schema::{
    BlockDiff, ComponentSpec, Conversion, SpecDiff, Verdict, diff_blocks, diff_specs, judge,
};

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

    fn rename(&mut self) {
        for rename in self.offered.iter().flat_map(|pack| &pack.renamed) {
            let list = rename.list;
            let entries = self.draft.list(list);
            let Some(id) = entries.id(rename.old.as_str()) else { continue };
            let (old, new) = (rename.old.clone(), rename.new.clone());
            match entries.id(new.as_str()) {
                Some(new_id) if self.draft.entry_of(list, new_id) == self.draft.entry_of(list, id) => {}
                // The packs still offer both.
                Some(_) if self.offered.iter().any(|pack| pack.names(list).contains(&&old)) => {
                    self.note(What::KeptApart { list, old, new }, Cost::Free);
                }
                Some(new_id) => self.unite(list, (old, id), (new, new_id)),
                None => {
                    let row = RenameRow { list, id, name: new.clone() };
                    self.draft.add_rename(row).expect("the entry was found and its new name was not");
                    self.note(What::Renamed { list, id, old, new }, Cost::Free);
                }
            }
        }
    }

    /// Unites the two entries of a rename that the world has.
    fn unite(&mut self, list: ListKind, (old, old_id): (Name, u64), (new, new_id): (Name, u64)) {
        let apart = What::KeptApart { list, old: old.clone(), new: new.clone() };
        let (mut cut, mut row) = (Vec::new(), RenameRow { list, id: new_id, name: old.clone() });
        let mut swapped = None;
        if list == ListKind::Components {
            let generation = self.next_generation();
            let ids = [&old, &new].map(|name| self.draft.component_id(name.as_str()));
            let [Some(before), Some(after)] = ids else { return self.note(apart, Cost::Free) };
            let [Some(from), Some(to)] = [before, after].map(|id| self.draft.component_spec(id)) else {
                return self.note(apart, Cost::Free);
            };
            let diff = diff_specs(from, to);
            let has_function =
                [&old, &new].iter().any(|name| self.policy.conversions.contains(name.as_str()));
            let by = match judge(&diff, self.policy, has_function) {
                Verdict::Refuse => return self.note(apart, Cost::Free),
                Verdict::Keep | Verdict::Describe => Conversion::Prefix,
                Verdict::Replace { by, .. } => by,
            };
            let replaces = Some(Replaces { component: before.get(), by });
            let record = ComponentRow::new(generation, after, &to.clone(), replaces);
            if self.draft.add_component_row(record).is_err() {
                return self.note(apart, Cost::Free);
            }
            match diff {
                SpecDiff::Layout(layout) if by != Conversion::Function => cut = layout.cut,
                _ => {}
            }
            // The registration into which stored instances go, whatever replaces it later.
            row.id = after.index();
            swapped = Some((before, after));
        }
        if !list.can_unite() || self.draft.add_rename(row).is_err() {
            return self.note(apart, Cost::Free);
        }
        if let Some((before, after)) = swapped {
            self.swap_component(before, after);
        }
        if list == ListKind::Blocks {
            self.united_blocks.push((BlockId::new(old_id), BlockId::new(new_id)));
        }
        let what = What::United { list, old, new, old_id, new_id, cut };
        self.actions.push(Action { what, cost: Cost::RewriteOnLoad, reversible: false });
    }

    /// Adds the old names of renames whose entries the world never had under them, so that what comes with such a name
    /// finds them.
    fn add_earlier_names(&mut self) {
        let renames: Vec<_> = self.offered.iter().flat_map(|pack| &pack.renamed).collect();
        let mut is_over = false;
        // Each round adds a name; a chain of renames takes several.
        while !is_over {
            is_over = true;
            for rename in &renames {
                let (list, entries) = (rename.list, self.draft.list(rename.list));
                let Some(id) = entries.id(rename.new.as_str()) else { continue };
                if entries.id(rename.old.as_str()).is_some() {
                    continue;
                }
                let (name, earlier) = (rename.new.clone(), rename.old.clone());
                let row = RenameRow { list, id, name: earlier.clone() };
                self.draft.add_rename(row).expect("the entry was found and its earlier name was not");
                let row = RenameRow { list, id, name: name.clone() };
                self.draft.add_rename(row).expect("it finds the entry");
                self.note(What::Aliased { list, id, name, earlier }, Cost::Free);
                is_over = false;
            }
        }
    }

    /// The name under which a pack offers an entry is the entry's current one.
    fn make_offered_names_current(&mut self) {
        for (pack, list) in self.offered.iter().flat_map(|pack| ListKind::ALL.map(|list| (pack, list))) {
            for new in pack.names(list) {
                let Some(id) = self.draft.list(list).id(new.as_str()) else { continue };
                let id = self.draft.entry_of(list, id);
                let Some(old) = self.draft.list(list).current_name(id).filter(|name| *name != new).cloned()
                else {
                    continue;
                };
                let row = RenameRow { list, id, name: new.clone() };
                self.draft.add_rename(row).expect("it finds the entry");
                if self.stored.list(list).id(new.as_str()).is_some() {
                    self.note(What::Renamed { list, id, old, new: new.clone() }, Cost::Free);
                }
            }
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

    fn register_components(&mut self) {
        for pack in self.offered {
            let first = self.draft.list(ListKind::Components).len();
            let is_new = |offer: &&ComponentOffer| self.draft.component_id(offer.name.as_str()).is_none();
            let new: Vec<&ComponentOffer> = pack.components.iter().filter(is_new).collect();
            if !self.has_room(pack, ListKind::Components, new.len()) {
                continue;
            }
            for offer in new {
                let spec = offer.spec();
                if let Err(error) = spec.check() {
                    self.refuse_component(pack, offer, error.to_string());
                    continue;
                }
                // Records ascend, and one of this plan may have united components.
                let (name, generation) = (offer.name.clone(), self.draft.current_generation());
                let added = self.draft.register_component(name, &spec, generation, None);
                added.expect("the name is new, the schema is sound, the list has room");
            }
            self.note_registered(pack, ListKind::Components, first);
        }
    }

    fn refuse_component(&mut self, pack: &PackManifest, offer: &ComponentOffer, reason: String) {
        let (pack, component) = (pack.pack.clone(), offer.name.clone());
        self.refuse(Refusal::BadComponent { pack, component, reason });
    }

    /// Compares each offered component with its registration before this plan.
    fn replace_components(&mut self) {
        let mut seen: HashMap<ComponentId, (&Name, &str)> = HashMap::new();
        for pack in self.offered {
            for offer in &pack.components {
                // Uses the draft, because the entry may be found only through a rename of this plan.
                let Some(id) = self.draft.component_id(offer.name.as_str()) else { continue };
                if let Some((first_name, first)) = seen.insert(id, (&offer.name, &pack.pack)) {
                    self.refuse_twice(ListKind::Components, (first_name, first), (&offer.name, &pack.pack));
                } else if self.stored.component_spec(id).is_some() {
                    let spec = offer.spec();
                    match spec.check() {
                        Err(error) => self.refuse_component(pack, offer, error.to_string()),
                        Ok(()) => self.compare_component(pack, id, offer, spec),
                    }
                }
            }
        }
    }

    fn refuse_twice(&mut self, list: ListKind, first: (&Name, &str), second: (&Name, &str)) {
        let (name, again) = (first.0.clone(), second.0.clone());
        let (first, second) = (first.1.into(), second.1.into());
        self.refuse(Refusal::ClaimedTwice { list, name, first, again, second });
    }

    fn compare_component(
        &mut self,
        pack: &PackManifest,
        id: ComponentId,
        offer: &ComponentOffer,
        mut spec: ComponentSpec,
    ) {
        let known = self.stored.component_spec(id).expect("the caller has found it");
        let diff = diff_specs(known, &spec);
        let old = self.draft.list(ListKind::Components).name(id.index());
        let old = old.expect("it has a schema, so it has a name").clone();
        let names = [old.unrevised(), offer.name.as_str()];
        let has_function = names.iter().any(|name| self.policy.conversions.contains(*name));
        let (component, from, to) = (offer.name.clone(), known.shape, spec.shape);
        match judge(&diff, self.policy, has_function) {
            Verdict::Keep => {}
            Verdict::Describe => {
                if spec.fields.is_empty() {
                    spec.fields.clone_from(&known.fields);
                }
                let row = ComponentRow::new(self.next_generation(), id, &spec, None);
                self.draft.add_component_row(row).expect("same shape, and once per plan");
                let default_bytes = HexBytes(spec.default_bytes);
                self.note(What::ComponentDescribed { component, default_bytes }, Cost::Free);
            }
            Verdict::Refuse => self.refuse(match diff {
                SpecDiff::Layout(layout) => Refusal::Shrinks { component, from, to, cut: layout.cut },
                _ => Refusal::KindChanges { component, from, to },
            }),
            Verdict::Replace { by, lossless } => {
                let Ok(new) = old.revised(old.revision() + 1) else {
                    let reason = "its name leaves no room for a revision".into();
                    return self.refuse_component(pack, offer, reason);
                };
                let replaces = Some(Replaces { component: id.get(), by });
                let (generation, name) = (self.next_generation(), new.clone());
                let added = self.draft.register_component(name, &spec, generation, replaces);
                let new_id = match added {
                    Ok(new_id) => new_id,
                    Err(error) => return self.refuse_component(pack, offer, error.to_string()),
                };
                let blocks = self.swap_component(id, new_id);
                let cut = match diff {
                    SpecDiff::Layout(layout) if by != Conversion::Function => layout.cut,
                    _ => Vec::new(),
                };
                let what = What::ComponentReplaced { old, new, from, to, by, cut, blocks };
                let mut action = Action::new(what, Cost::RewriteOnLoad);
                action.reversible = lossless;
                self.actions.push(action);
            }
        }
    }

    /// Replaces a component with its new registration in every block. Returns the number of those blocks.
    fn swap_component(&mut self, old: ComponentId, new: ComponentId) -> usize {
        let mut count = 0;
        for (id, history) in (0..).map(BlockId::new).zip(self.stored.tables.blocks.iter()) {
            let state = self.changed_blocks.get(&id).unwrap_or_else(|| history.newest());
            let is_united = self.stored.list(ListKind::Blocks).newest(id.get()) != id.get();
            if is_united || state.components.binary_search(&old).is_err() {
                continue;
            }
            let mut state = state.clone();
            let kept = state.components.iter().copied().filter(|component| *component != old);
            let components: BTreeSet<ComponentId> = kept.chain([new]).collect();
            state.components = components.into_iter().collect();
            self.changed_blocks.insert(id, state);
            count += 1;
        }
        count
    }

    fn register_blocks(&mut self) {
        for pack in self.offered {
            let first = self.draft.list(ListKind::Blocks).len();
            let is_new = |offer: &&BlockOffer| self.draft.block_id(offer.name.as_str()).is_none();
            let new: Vec<&BlockOffer> = pack.blocks.iter().filter(is_new).collect();
            if !self.has_room(pack, ListKind::Blocks, new.len()) {
                continue;
            }
            for offer in new {
                let Some(components) = self.resolve(pack, offer) else { continue };
                let (name, generation) = (offer.name.clone(), self.stored.current_generation());
                let added = self.draft.register_block(name, offer.opaque, &components, generation);
                added.expect("the name is new, its components are known, the list has room");
            }
            self.note_registered(pack, ListKind::Blocks, first);
        }
    }

    fn resolve(&mut self, pack: &PackManifest, offer: &BlockOffer) -> Option<Vec<ComponentId>> {
        let reserved = offer.components.iter().find_map(|name| checked(name).err());
        let (found, max) = (offer.components.len(), BlockRow::MAX_COMPONENTS);
        let reason = match (reserved, self.draft.resolve_components(offer)) {
            (None, Ok(components)) if components.len() <= max => return Some(components),
            (None, Ok(_)) => format!("it has {found} components, at most {max} are allowed"),
            (Some(error), _) | (None, Err(error)) => error.to_string(),
        };
        let (pack, block) = (pack.pack.clone(), offer.name.clone());
        self.refuse(Refusal::BadBlock { pack, block, reason });
        None
    }

    fn change_blocks(&mut self) {
        let mut seen: HashMap<BlockId, (&Name, &str)> = HashMap::new();
        for pack in self.offered {
            for offer in &pack.blocks {
                let Some(id) = self.draft.block_id(offer.name.as_str()) else { continue };
                if let Some((first_name, first)) = seen.insert(id, (&offer.name, &pack.pack)) {
                    self.refuse_twice(ListKind::Blocks, (first_name, first), (&offer.name, &pack.pack));
                } else if let Some(history) = self.stored.tables.blocks.get(id.get()) {
                    let Some(components) = self.resolve(pack, offer) else { continue };
                    let known = self.changed_blocks.get(&id).unwrap_or_else(|| history.newest()).clone();
                    self.compare_block(id, offer, &known, components);
                }
            }
        }
        let generation = self.next_generation();
        for (old, new) in std::mem::take(&mut self.united_blocks) {
            let new = BlockId::new(self.draft.list(ListKind::Blocks).newest(new.get()));
            let history = self.stored.tables.blocks.get(new.get()).expect("the world has it");
            let state = self.changed_blocks.get(&new).unwrap_or_else(|| history.newest()).clone();
            self.changed_blocks.insert(old, BlockState { generation, ..state });
        }
        for (id, state) in std::mem::take(&mut self.changed_blocks) {
            let components = state.components.iter().map(|component| component.get()).collect();
            let row = BlockRow { generation, block: id.get(), opaque: state.opaque, components };
            self.draft.add_block_row(row).expect("its components are known, and it changes once per plan");
        }
    }

    fn compare_block(
        &mut self,
        id: BlockId,
        offer: &BlockOffer,
        known: &BlockState,
        components: Vec<ComponentId>,
    ) {
        let BlockDiff { gains, loses } = diff_blocks(&known.components, &components);
        if gains.is_empty() && loses.is_empty() && known.opaque == offer.opaque {
            return;
        }
        if known.opaque != offer.opaque {
            let (block, opaque) = (offer.name.clone(), offer.opaque);
            self.note(What::OpacityChanged { block, opaque }, Cost::Free);
        }
        if !gains.is_empty() || !loses.is_empty() {
            let names = |ids: Vec<ComponentId>| -> Vec<Name> {
                ids.into_iter().filter_map(|id| self.draft.component_name(id).cloned()).collect()
            };
            let (block, gains, loses) = (offer.name.clone(), names(gains), names(loses));
            self.note(What::BlockChanged { block, gains, loses }, Cost::RewriteOnLoad);
        }
        let (generation, opaque) = (self.next_generation(), offer.opaque);
        self.changed_blocks.insert(id, BlockState { generation, opaque, components: components.into() });
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
