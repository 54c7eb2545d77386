//! The components and blocks that packs offer: new ones are registered, and changed ones get new layouts.

use std::collections::{BTreeSet, HashMap};

use cg_format::{BlockId, ComponentId};

use super::Work;
use crate::Name;
use crate::block::{BlockRow, BlockState};
use crate::component::{ComponentRow, Replaces};
use crate::kind::ListKind;
use crate::manifest::{BlockOffer, ComponentOffer, HexBytes, PackManifest};
use crate::reconcile::plan::{Action, Cost, Refusal, What};
use crate::register::checked;
use crate::schema::{
    BlockDiff, ComponentSpec, Conversion, SpecDiff, SpecError, Verdict, diff_blocks, diff_specs, judge,
};
use crate::types::narrowed;

/// Checks the schema of an offer, and its types.
fn check(spec: &ComponentSpec, offer: &ComponentOffer) -> Result<(), SpecError> {
    spec.check()?;
    offer.types().map_or(Ok(()), |types| types.check_spec(spec))
}

impl Work<'_> {
    pub(super) fn register_components(&mut self) {
        for pack in self.offered {
            let first = self.draft.list(ListKind::Components).len();
            let is_new = |offer: &&ComponentOffer| self.draft.component_id(offer.name.as_str()).is_none();
            let new: Vec<&ComponentOffer> = pack.components.iter().filter(is_new).collect();
            if !self.has_room(pack, ListKind::Components, new.len()) {
                continue;
            }
            for offer in new {
                let spec = offer.spec();
                if let Err(error) = check(&spec, offer) {
                    self.refuse_component(pack, offer, error.to_string());
                    continue;
                }
                // Records ascend, and one of this plan may have united components.
                let (name, generation) = (offer.name.clone(), self.draft.current_generation());
                let added = self.draft.register_component(name, &spec, generation, None);
                let id = added.expect("the name is new, the schema is sound, the list has room");
                self.draft.add_types(id, offer.types()).expect("the types are sound");
            }
            self.note_registered(pack, ListKind::Components, first);
        }
    }

    fn refuse_component(&mut self, pack: &PackManifest, offer: &ComponentOffer, reason: String) {
        let (pack, component) = (pack.pack.clone(), offer.name.clone());
        self.refuse(Refusal::BadComponent { pack, component, reason });
    }

    /// Compares each offered component with its registration before this plan.
    pub(super) fn replace_components(&mut self) {
        let mut seen: HashMap<ComponentId, (&Name, &str)> = HashMap::new();
        for pack in self.offered {
            for offer in &pack.components {
                // Uses the draft, because the entry may be found only through a rename of this plan.
                let Some(id) = self.draft.component_id(offer.name.as_str()) else { continue };
                if let Some((first_name, first)) = seen.insert(id, (&offer.name, &pack.pack)) {
                    self.refuse_twice(ListKind::Components, (first_name, first), (&offer.name, &pack.pack));
                } else if self.stored.component_spec(id).is_some() {
                    let spec = offer.spec();
                    match check(&spec, offer) {
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
        let mut described = id;
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
            Verdict::Refuse => {
                return self.refuse(match diff {
                    SpecDiff::Layout(layout) => Refusal::Shrinks { component, from, to, cut: layout.cut },
                    _ => Refusal::KindChanges { component, from, to },
                });
            }
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
                described = new_id;
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
        self.change_types(id, described, offer);
    }

    /// Records the offered types of a component. No stored value changes, so what narrows is said and not refused.
    fn change_types(&mut self, old: ComponentId, new: ComponentId, offer: &ComponentOffer) {
        let Some(types) = offer.types().filter(|types| self.draft.types(new) != Some(types)) else { return };
        let (component, narrowed) = (offer.name.clone(), narrowed(self.stored.types(old), &types));
        self.draft.add_types(new, Some(types)).expect("the types are sound");
        self.note(What::TypesChanged { component, narrowed }, Cost::Free);
    }

    /// Replaces a component with its new registration in every block. Returns the number of those blocks.
    pub(super) fn swap_component(&mut self, old: ComponentId, new: ComponentId) -> usize {
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

    pub(super) fn register_blocks(&mut self) {
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

    pub(super) fn change_blocks(&mut self) {
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
}
