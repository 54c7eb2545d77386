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
        let united = |block: BlockId| self.catalog.block_in(block, generation);
        let mut blocks = Cow::Borrowed(&chunk);
        if chunk.kinds().into_iter().any(|block| united(block) != block) {
            blocks.to_mut().remap_blocks(united);
            let mut renamed = KeptComponents::default();
            aside.iter().for_each(|(owner, bytes)| {
                renamed.push(Owner { block: united(owner.block), ..owner }, bytes.to_vec());
            });
            aside = renamed;
        }

        let mut fills: HashMap<ComponentId, Option<&'a Fill>> = HashMap::new();
        let mut taken = BTreeSet::new();
        let mut failed = None;
        let result = blocks.with_components(&schema, |at, block, component| {
            let carried = match self.source(&chunk, &aside, Owner { at, block, component }, generation) {
                Source::Same(bytes) => return Some(Cow::Borrowed(bytes)),
                Source::New => {
                    gained += 1;
                    let fill = *fills.entry(component).or_insert_with(|| self.fill(component));
                    return fill?(&Gained { at, block, component, chunk: &chunk }).map(Cow::Owned);
                }
                Source::Older(older, bytes) => {
                    converted += 1;
                    self.convert(older, component, Cow::Borrowed(bytes), Some(block))
                }
                Source::Kept(owner, bytes) => {
                    taken.insert(owner);
                    self.convert(owner.component, component, Cow::Borrowed(bytes), Some(block))
                }
            };
            carried.map_err(|error| failed.get_or_insert(error).clone()).ok()
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let mut upgraded = result?;

        let lost = self.lost(&chunk, &blocks, &schema, generation);
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
        Owner { at, block, component }: Owner,
        generation: u32,
    ) -> Source<'c> {
        if let Some(bytes) = chunk.component(at, component) {
            return Source::Same(bytes);
        }
        let older = || self.catalog.older(component, generation).into_iter();
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

    fn fill(&self, component: ComponentId) -> Option<&'a Fill> {
        self.catalog.known_as(component).into_iter().find_map(|name| self.functions.fill(name))
    }

    /// The instances whose block has neither their component nor a later registration of it.
    fn lost<'c>(
        &self,
        chunk: &'c Chunk,
        blocks: &Chunk,
        schema: &Schema,
        generation: u32,
    ) -> Vec<(Owner, &'c [u8])> {
        let later = |id: &ComponentId| self.catalog.later(*id, generation);
        // A registration takes the instance of the nearest one that it replaces.
        let stays = |at: CellLayer, block, component| {
            let has = schema.components_of(block).unwrap_or_default();
            let taken =
                std::iter::successors(Some(component), later).find(|id| has.binary_search(id).is_ok());
            taken.is_some_and(|taken| {
                let nearest = std::iter::once(taken).chain(self.catalog.older(taken, generation));
                nearest.into_iter().find(|id| chunk.component(at, *id).is_some()) == Some(component)
            })
        };
        let mut out = Vec::new();
        for (component, at, bytes) in chunk.components() {
            let block = blocks.layer(at.cell, at.layer).expect("an instance belongs to a block of the chunk");
            if !stays(at, block, component) {
                out.push((Owner { at, block, component }, bytes));
            }
        }
        out
    }
}
