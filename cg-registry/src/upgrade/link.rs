//! The registrations of a component in their order, and the conversion from each to the next.

use cg_format::ComponentId;

use crate::catalog::Catalog;
use crate::component::ComponentHistory;
use crate::schema::{ComponentSpec, Conversion};

/// A registration and the next one, with the schemas that they had when it became the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link<'a> {
    pub(crate) from: &'a ComponentSpec,
    pub(crate) to: &'a ComponentSpec,
    /// The id of the next one.
    pub(crate) id: ComponentId,
    pub(crate) by: Conversion,
}

impl Catalog {
    pub(crate) fn history(&self, id: ComponentId) -> Option<&ComponentHistory> {
        self.tables.components.get(id.index()).filter(|history| history.id == id)
    }

    /// The registrations that a component replaces in a generation, the nearest first: its own, and those of components
    /// that are united by then.
    pub(crate) fn older(&self, component: ComponentId, generation: u32) -> Vec<ComponentId> {
        let (mut found, mut at) = (vec![component], 0);
        while let Some(history) = found.get(at).and_then(|id| self.history(*id)) {
            let before = history.replaces.map(|replaces| ComponentId::new(replaces.component));
            let united = history.united.iter().filter(|united| united.generation <= generation);
            found.extend(before.into_iter().chain(united.map(|united| united.component)));
            at += 1;
        }
        found.remove(0);
        found
    }

    /// The next registration of a component in a generation.
    pub(crate) fn later(&self, component: ComponentId, generation: u32) -> Option<ComponentId> {
        let next = self.history(component)?.replaced_by?;
        let united = self.history(next)?.united.iter().find(|united| united.component == component);
        // A registration of the same name is in no block before its generation.
        united.is_none_or(|united| united.generation <= generation).then_some(next)
    }

    /// The steps from one registration to a later one. Whatever is described afterwards, they stay the same: so a value
    /// is converted to the same bytes whenever that happens.
    pub(crate) fn links(&self, from: ComponentId, to: ComponentId) -> Vec<Link<'_>> {
        let mut links = Vec::new();
        let mut old = from;
        while old != to {
            let link =
                self.history(old).and_then(|history| Some((history, self.history(history.replaced_by?)?)));
            let Some((before, after)) = link else { break };
            let own = after.replaces.filter(|replaces| replaces.component == old.get());
            let united = || after.united.iter().find(|united| united.component == old);
            let own = own.map(|own| (&after.first, own.by));
            let step = own.or_else(|| united().map(|united| (after.at(united.generation), united.by)));
            let Some((to, by)) = step else { break };
            links.push(Link { from: before.newest(), to, id: after.id, by });
            old = after.id;
        }
        links
    }
}
