//! Names and ids.

use std::collections::BTreeMap;
use std::sync::Arc;

use cg_format::{BlockId, ComponentId, Dimension, EntityTypeId, SideKind};
use cg_registry::{BlockOffer, Catalog, ComponentOffer, Name, NameError, Registration};

use crate::admin::values::ValueReport;
use crate::api::world::World;
use crate::storage::error::Error;
use crate::storage::value_check::IllegalValue;

impl World {
    /// The registry as it is now: names, ids and schemas. Cheap; it goes on answering as it was when it grows.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.rooms().shared.registry.catalog()
    }
}

/// The names of a world, and the ids that stand for them.
#[derive(Debug, Clone, Copy)]
pub struct WorldRegistry<'w> {
    world: &'w World,
}

impl World {
    /// The registry: names get ids here, for ever.
    pub fn registry(&self) -> WorldRegistry<'_> {
        WorldRegistry { world: self }
    }
}

impl WorldRegistry<'_> {
    /// Issues ids for names that have none yet, all of them or none, and commits them before it returns.
    ///
    /// Names that are known already must be offered as they are stored. Serialised with commits; forces no sync: ids
    /// are at least as durable as the first chunk that uses them, because they are committed before it.
    ///
    /// # Errors
    /// [`Error::Registry`] if an offer does not fit what is stored; nothing was changed then.
    pub fn register(&self, new: &Registration) -> Result<Arc<Catalog>, Error> {
        self.world.applied()?.commit.grow_names(|catalog| catalog.register(new))
    }

    /// The first values that commits found and that their types do not allow, at most 100; the count of all is
    /// [`Metrics::illegal_values`](crate::metrics::Metrics::illegal_values). Empty unless the world was opened with
    /// [`ValueCheck::Report`](crate::verify::ValueCheck::Report).
    pub fn illegal_values(&self) -> Vec<IllegalValue> {
        self.world.rooms().shared.values.first()
    }

    /// Checks every stored chunk and entity by today's types, whatever
    /// [`WorldOptions::value_check`](crate::WorldOptions::value_check) says. Reads and decodes them all. `progress` is called
    /// with the number of those so far.
    ///
    /// Side data, objects, properties and records have no types.
    ///
    /// # Errors
    /// If the engine fails for another reason than a damaged row.
    pub fn check(&self, progress: impl FnMut(u64)) -> Result<ValueReport, Error> {
        self.world.applied()?.admin().check_values(progress)
    }

    /// Says anew of some blocks whether they hide what is behind them, and commits it before it returns. Opens a schema
    /// generation if one changes; no chunk is touched.
    ///
    /// If a block changes, the world has no opacity map any more:
    /// [`OpacityMap::rebuild`](crate::opacity::OpacityMap::rebuild) draws it again.
    ///
    /// # Errors
    /// [`Error::Registry`] if a block was never registered; nothing was changed then.
    pub fn set_opacity(&self, opaque: &BTreeMap<BlockId, bool>) -> Result<Arc<Catalog>, Error> {
        self.world.applied()?.commit.grow_names(|catalog| catalog.set_opacity(opaque))
    }

    /// Issues ids for blocks without components. All are opaque, except for the engine's own name `:air`.
    ///
    /// # Errors
    /// [`Error::Name`] for a name that is none, and as [`register`](Self::register).
    pub fn register_blocks<const N: usize>(&self, names: [&str; N]) -> Result<[BlockId; N], Error> {
        let blocks = names.iter().map(|name| {
            let offer = BlockOffer::new(Name::new(name)?);
            Ok(BlockOffer { opaque: *name != ":air", ..offer })
        });
        let blocks = blocks.collect::<Result<Vec<_>, NameError>>()?;
        let catalog = self.register(&Registration { blocks, ..Registration::default() })?;
        Ok(names.map(|name| catalog.block_id(name).expect("registered above")))
    }

    /// Issues an id for a component.
    ///
    /// # Errors
    /// As [`register`](Self::register).
    pub fn register_component(&self, offer: ComponentOffer) -> Result<ComponentId, Error> {
        let name = offer.name.clone();
        let catalog = self.register(&Registration { components: vec![offer], ..Registration::default() })?;
        Ok(catalog.component_id(name.as_str()).expect("registered above"))
    }

    /// Issues an id for a dimension.
    ///
    /// # Errors
    /// As [`register_blocks`](Self::register_blocks).
    pub fn register_dimension(&self, name: &str) -> Result<Dimension, Error> {
        let new = Registration { dimensions: vec![Name::new(name)?], ..Registration::default() };
        Ok(self.register(&new)?.dimension(name).expect("registered above"))
    }

    /// Issues an id for a kind of side data.
    ///
    /// # Errors
    /// As [`register_blocks`](Self::register_blocks).
    pub fn register_side(&self, name: &str) -> Result<SideKind, Error> {
        let new = Registration { sides: vec![Name::new(name)?], ..Registration::default() };
        Ok(self.register(&new)?.side_kind(name).expect("registered above"))
    }

    /// Issues an id for a kind of entity.
    ///
    /// # Errors
    /// As [`register_blocks`](Self::register_blocks).
    pub fn register_entity(&self, name: &str) -> Result<EntityTypeId, Error> {
        let new = Registration { entities: vec![Name::new(name)?], ..Registration::default() };
        Ok(self.register(&new)?.entity_type(name).expect("registered above"))
    }
}
