//! The names that packs have changed: entries are renamed, united, or found under their earlier names.

use cg_format::BlockId;

use super::Work;
use crate::Name;
use crate::component::{ComponentRow, Replaces};
use crate::kind::ListKind;
use crate::pack::RenameRow;
use crate::reconcile::plan::{Action, Cost, What};
use crate::schema::{Conversion, SpecDiff, Verdict, diff_specs, judge};

impl Work<'_> {
    pub(super) fn rename(&mut self) {
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
    pub(super) fn add_earlier_names(&mut self) {
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
    pub(super) fn make_offered_names_current(&mut self) {
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
}
