//! One generation of an upgrade.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use cg_format::chunk::{CellLayer, Chunk};
use cg_format::{BlockId, ComponentId, SchemaView};

use super::functions::Fill;
use super::{Gained, Upgrade, UpgradeError, Upgrader};
use crate::catalog::LOST_COMPONENTS;
use crate::kept::{KeptComponents, Owner};
use crate::view::Schema;

/// The source of an instance.
enum Source<'c> {
    Same(&'c [u8]),
    Older(ComponentId, &'c [u8]),
    Kept(Owner, &'c [u8]),
    New,
}

impl<'a> Upgrader<'a> {
    /// Converts a chunk from one generation to the next.
    pub(super) fn step(&self, done: Upgrade, generation: u32) -> Result<Upgrade, UpgradeError> {
        let Upgrade { chunk, mut converted, mut gained, kept, restored, dropped } = done;
        let schema = self.catalog.schema(generation).expect("the catalog listed this generation");
        let mut aside = match chunk.side(LOST_COMPONENTS) {
            None => KeptComponents::default(),
            Some(bytes) => KeptComponents::decode(bytes, None).map_err(UpgradeError::Kept)?,
        };
        let gone = aside.retain(|owner| chunk.layer(owner.at.cell, owner.at.layer) == Some(owner.block));

        let mut fills: HashMap<ComponentId, Option<&'a Fill>> = HashMap::new();
        let mut taken = BTreeSet::new();
        let mut failed = None;
        let result = chunk.with_components(&schema, |at, block, component| {
            let carried = match self.source(&chunk, &aside, at, block, component) {
                Source::Same(bytes) => return Some(Cow::Borrowed(bytes)),
                Source::New => {
                    gained += 1;
                    let fill = *fills.entry(component).or_insert_with(|| self.fill(component));
                    return fill?(&Gained { at, block, component, chunk: &chunk }).map(Cow::Owned);
                }
                Source::Older(older, bytes) => {
                    converted += 1;
                    self.convert(older, component, Cow::Borrowed(bytes), Some(block), generation)
                }
                Source::Kept(owner, bytes) => {
                    taken.insert(owner);
                    self.convert(owner.component, component, Cow::Borrowed(bytes), Some(block), generation)
                }
            };
            carried.map_err(|error| failed.get_or_insert(error).clone()).ok()
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let mut upgraded = result?;

        let lost = self.lost(&chunk, &schema);
        let (restored, kept) = (restored + taken.len() as u64, kept + lost.len() as u64);
        aside.retain(|owner| !taken.contains(&owner));
        for (owner, bytes) in lost {
            aside.remove(owner);
            aside.push(owner, bytes.to_vec());
        }
        if aside.is_empty() {
            upgraded.remove_side(LOST_COMPONENTS);
        } else {
            upgraded.set_side(LOST_COMPONENTS, aside.encode());
        }
        let dropped = dropped + gone as u64;
        Ok(Upgrade { chunk: upgraded, converted, gained, kept, restored, dropped })
    }

    fn source<'c>(
        &self,
        chunk: &'c Chunk,
        aside: &'c KeptComponents,
        at: CellLayer,
        block: BlockId,
        component: ComponentId,
    ) -> Source<'c> {
        if let Some(bytes) = chunk.component(at, component) {
            return Source::Same(bytes);
        }
        let older = || self.older(component);
        if let Some((id, bytes)) = older().find_map(|id| Some((id, chunk.component(at, id)?))) {
            return Source::Older(id, bytes);
        }
        let owners =
            std::iter::once(component).chain(older()).map(|component| Owner { at, block, component });
        owners
            .into_iter()
            .find_map(|owner| Some(Source::Kept(owner, aside.get(owner)?)))
            .unwrap_or(Source::New)
    }

    /// The registrations that a component replaces, the latest first.
    fn older(&self, component: ComponentId) -> impl Iterator<Item = ComponentId> {
        let before = |id: &ComponentId| Some(ComponentId::new(self.history(*id)?.replaces?.component));
        std::iter::successors(before(&component), before)
    }

    fn fill(&self, component: ComponentId) -> Option<&'a Fill> {
        self.catalog.known_as(component).into_iter().find_map(|name| self.functions.fill(name))
    }

    /// The instances whose block has neither their component nor a later registration of it.
    fn lost<'c>(&self, chunk: &'c Chunk, schema: &Schema) -> Vec<(Owner, &'c [u8])> {
        let later = |id: &ComponentId| self.history(*id)?.replaced_by;
        let stays = |block, component| {
            let has = schema.components_of(block).unwrap_or_default();
            std::iter::successors(Some(component), later).any(|id| has.binary_search(&id).is_ok())
        };
        let mut out = Vec::new();
        for (component, at, bytes) in chunk.components() {
            let block = chunk.layer(at.cell, at.layer).expect("an instance belongs to a block of the chunk");
            if !stays(block, component) {
                out.push((Owner { at, block, component }, bytes));
            }
        }
        out
    }
}
