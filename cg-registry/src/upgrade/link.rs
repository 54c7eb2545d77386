//! The registrations of a component in their order, and the conversion from each to the next.

use cg_format::ComponentId;

use super::UpgradeFunctions;
use crate::catalog::Catalog;
use crate::component::ComponentHistory;
use crate::schema::{ComponentSpec, Conversion};

/// A registration and the next one, with the schemas of one generation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link<'a> {
    pub(crate) from: &'a ComponentSpec,
    pub(crate) to: &'a ComponentSpec,
    /// The id of the next one.
    pub(crate) id: ComponentId,
    by: Conversion,
}

impl Link<'_> {
    /// The conversion of the bytes; `None` if they stay as they are.
    pub(crate) fn conversion(&self, _: &UpgradeFunctions) -> Option<Conversion> {
        Some(self.by)
    }
}

impl Catalog {
    pub(crate) fn history(&self, id: ComponentId) -> Option<&ComponentHistory> {
        self.tables.components.get(id.index()).filter(|history| history.id == id)
    }

    /// The registrations that a component replaces, the latest first.
    pub(crate) fn older(&self, component: ComponentId) -> Vec<ComponentId> {
        let before = |id: &ComponentId| Some(ComponentId::new(self.history(*id)?.replaces?.component));
        std::iter::successors(before(&component), before).collect()
    }

    /// The steps from one registration to a later one.
    pub(crate) fn links(&self, from: ComponentId, to: ComponentId, generation: u32) -> Vec<Link<'_>> {
        let mut links = Vec::new();
        let mut old = from;
        while old != to {
            let link =
                self.history(old).and_then(|history| Some((history, self.history(history.replaced_by?)?)));
            let Some((before, after)) = link else { break };
            let by = after.replaces.map_or(Conversion::Prefix, |replaces| replaces.by);
            links.push(Link { from: before.at(generation), to: after.at(generation), id: after.id, by });
            old = after.id;
        }
        links
    }
}
