//! Changes the opacity of blocks without a pack.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use cg_format::BlockId;

use crate::RegistryError;
use crate::block::{BlockHistory, BlockRow};
use crate::catalog::Catalog;
use crate::changes::Changes;

impl Catalog {
    /// Changes whether some blocks hide the blocks behind them; their components stay.
    ///
    /// Opens one schema generation if a block changes, and none otherwise. This is for names without a pack. The
    /// opacity of a pack's block is changed with the pack's manifest.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use cg_format::SchemaView;
    /// use cg_registry::{BlockOffer, Catalog, Name, Registration};
    /// let mut catalog = Catalog::new();
    /// let blocks = vec![BlockOffer::new(Name::new("a:glass")?)];
    /// catalog.register(&Registration { blocks, ..Registration::default() })?;
    /// let glass = catalog.block_id("a:glass").expect("registered above");
    /// assert!(!catalog.set_opacity(&BTreeMap::from([(glass, false)]))?.is_empty());
    /// assert!(!catalog.current_schema().is_opaque(glass));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If a block was never registered; then nothing is changed.
    pub fn set_opacity(&mut self, opaque: &BTreeMap<BlockId, bool>) -> Result<Changes, RegistryError> {
        let mut grown = self.clone();
        let generation = self.generation.checked_add(1);
        let generation = generation.expect("each generation takes a record, and a row holds 2^24 of them");
        for (block, opaque) in opaque {
            let known = self.tables.blocks.get(block.get()).map(BlockHistory::newest);
            if known.is_none_or(|known| known.opaque != *opaque) {
                let components = known.map_or(&[][..], |known| &known.components);
                let components = components.iter().map(|component| component.get()).collect();
                grown.add_block_row(BlockRow {
                    generation,
                    block: block.get(),
                    opaque: *opaque,
                    components,
                })?;
            }
        }
        let changes = grown.since(self.mark());
        *self = grown;
        Ok(changes)
    }

    /// Whether a block that was registered before has had another opacity in any generation after this one.
    ///
    /// What was derived from the opacity of blocks in that generation is outdated then, also if every block has its old
    /// opacity again. A generation that the catalog has not reached counts as changed.
    pub fn opacity_changed_since(&self, generation: u32) -> bool {
        let changed = |block: &BlockHistory| {
            let (opaque, mut later) = (block.at(generation).opaque, block.later.iter());
            later.any(|state| state.generation > generation && state.opaque != opaque)
        };
        match generation.cmp(&self.generation) {
            Ordering::Less => self.tables.blocks.iter().any(changed),
            Ordering::Equal => false,
            Ordering::Greater => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use cg_format::SchemaView;

    use super::*;
    use crate::{BlockOffer, ComponentOffer, Name, Registration};

    #[test]
    fn opacity_changes_alone_and_in_one_generation() {
        let name = |text| Name::new(text).unwrap();
        let mut catalog = Catalog::new();
        let chest = BlockOffer { components: vec![name("a:items")], ..BlockOffer::new(name("a:chest")) };
        catalog
            .register(&Registration {
                components: vec![ComponentOffer::variable(name("a:items"))],
                blocks: vec![BlockOffer::new(name("a:stone")), chest, BlockOffer::new(name("a:leaves"))],
                ..Registration::default()
            })
            .unwrap();
        let [stone, chest, leaves] = [0, 1, 2].map(BlockId::new);
        let before = catalog.clone();

        let unknown = BTreeMap::from([(chest, false), (BlockId::new(3), false)]);
        assert!(catalog.set_opacity(&unknown).is_err());
        assert_eq!(catalog, before, "nothing was changed");

        let wanted = BTreeMap::from([(stone, true), (chest, false), (leaves, false)]);
        let changes = catalog.set_opacity(&wanted).unwrap();
        assert_eq!((changes.block_rows().len(), catalog.current_generation()), (2, 1));
        let (old, new) = (catalog.schema(0).unwrap(), catalog.current_schema());
        assert_eq!([stone, chest, leaves].map(|block| old.is_opaque(block)), [true; 3]);
        assert_eq!([stone, chest, leaves].map(|block| new.is_opaque(block)), [true, false, false]);
        assert_eq!(old.components_of(chest), new.components_of(chest));

        let mut stored = before;
        stored.apply(&changes).unwrap();
        assert_eq!(stored, catalog);
        assert!(catalog.set_opacity(&wanted).unwrap().is_empty(), "a second time there is nothing to do");
        assert_eq!(catalog.current_generation(), 1);
    }

    #[test]
    fn a_change_of_opacity_counts_though_it_was_taken_back() {
        let block = |text| BlockOffer::new(Name::new(text).unwrap());
        let mut catalog = Catalog::new();
        let add = |catalog: &mut Catalog, blocks| {
            catalog.register(&Registration { blocks, ..Registration::default() }).unwrap();
        };
        add(&mut catalog, vec![block("a:glass"), block("a:stone")]);
        let changed = |catalog: &Catalog| [0, 1, 2, 3].map(|since| catalog.opacity_changed_since(since));
        assert_eq!(changed(&catalog), [false, true, true, true], "only the first generation is known");
        let mut set = |opaque| catalog.set_opacity(&BTreeMap::from([(BlockId::new(0), opaque)])).unwrap();
        set(false);
        set(true);
        assert_eq!(changed(&catalog), [true, true, false, true]);
        add(&mut catalog, vec![block("a:leaves")]);
        assert!(!catalog.opacity_changed_since(2), "a new block is in no chunk");
    }
}
