//! The registrations of a component in their order, and the conversion from each to the next.

use cg_format::ComponentId;

use crate::Policy;
use crate::catalog::Catalog;
use crate::component::ComponentHistory;
use crate::schema::{ComponentSpec, Conversion, Verdict, diff_specs, judge};

/// A registration and the next one, with the schemas of one generation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link<'a> {
    pub(crate) from: &'a ComponentSpec,
    pub(crate) to: &'a ComponentSpec,
    /// The id of the next one.
    pub(crate) id: ComponentId,
    /// As recorded; `None` between united components.
    by: Option<Conversion>,
}

impl Link<'_> {
    /// The conversion of the bytes; `None` if they stay as they are.
    ///
    /// Between registrations of one name it was recorded. Between united components it follows from their layouts.
    pub(crate) fn conversion(&self, has_function: bool) -> Option<Conversion> {
        if let Some(by) = self.by {
            return Some(by);
        }
        let policy = Policy { allow_shrink: true, ..Policy::default() };
        match judge(&diff_specs(self.from, self.to), &policy, has_function) {
            Verdict::Keep | Verdict::Describe => None,
            Verdict::Replace { by, .. } => Some(by),
            Verdict::Refuse => Some(Conversion::Function),
        }
    }
}

impl Catalog {
    pub(crate) fn history(&self, id: ComponentId) -> Option<&ComponentHistory> {
        self.tables.components.get(id.index()).filter(|history| history.id == id)
    }

    /// The registrations that a component replaces, the nearest first: its own, and those of united components.
    pub(crate) fn older(&self, component: ComponentId) -> Vec<ComponentId> {
        let (mut found, mut at) = (vec![component], 0);
        while let Some(history) = found.get(at).and_then(|id| self.history(*id)) {
            let before = history.replaces.map(|replaces| ComponentId::new(replaces.component));
            found.extend(before.into_iter().chain(history.united.iter().copied()));
            at += 1;
        }
        found.remove(0);
        found
    }

    /// The steps from one registration to a later one.
    pub(crate) fn links(&self, from: ComponentId, to: ComponentId, generation: u32) -> Vec<Link<'_>> {
        let mut links = Vec::new();
        let mut old = from;
        while old != to {
            let link =
                self.history(old).and_then(|history| Some((history, self.history(history.replaced_by?)?)));
            let Some((before, after)) = link else { break };
            let own = after.replaces.filter(|replaces| replaces.component == old.get());
            let by = own.map(|replaces| replaces.by);
            links.push(Link { from: before.at(generation), to: after.at(generation), id: after.id, by });
            old = after.id;
        }
        links
    }
}
