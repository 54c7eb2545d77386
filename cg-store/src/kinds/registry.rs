//! The world's registry: ids are issued here, committed before anything uses them, and never moved.

use std::collections::BTreeMap;
use std::sync::Arc;

use cg_format::frame::{Codec, Draft};
use cg_format::{BlockId, ComponentId, Dimension, EntityTypeId, SideKind, Space};
use cg_registry::{
    BlockOffer, Catalog, Changes, ComponentOffer, Name, NameError, PackManifest, Plan, Policy, Registration,
    RegistryError, reconcile,
};

use crate::api::world::{Inner, World};
use crate::commit::commit_log::Committing;
use crate::engine::{Batch, Engine, Level, Stamp};
use crate::rt::lock_order::{RwLock, rank};
use crate::storage::error::{Error, OpenError};
use crate::storage::meta;

/// The current catalog, shared with every reader as it was when they asked.
#[derive(Debug)]
pub(crate) struct Registry {
    current: RwLock<Arc<Catalog>, rank::Catalog>,
}

impl Registry {
    /// The catalog as it is now.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.current.read())
    }

    /// Takes a catalog that was read again.
    pub(crate) fn replace(&self, catalog: Catalog) {
        *self.current.write() = Arc::new(catalog);
    }

    /// What packs would change in a catalog, if they are accepted.
    pub(crate) fn accept(
        catalog: &Catalog,
        packs: &[PackManifest],
        policy: &Policy,
    ) -> Result<Plan, OpenError> {
        let plan = reconcile(catalog, packs, policy);
        if plan.is_accepted() { Ok(plan) } else { Err(OpenError::NeedsPlan { report: plan.report() }) }
    }

    /// Grows a catalog by what packs offer, in memory.
    ///
    /// No packs at all means that the host brings none to compare; nothing is reconciled then.
    pub(crate) fn grow(catalog: &mut Catalog, packs: &[PackManifest], policy: &Policy) -> Result<(), Error> {
        if !packs.is_empty() {
            Self::accept(catalog, packs, policy)?.apply(catalog)?;
        }
        Ok(())
    }

    /// Begins with a catalog: what is stored of it is folded into whole rows, and what is new is stored.
    pub(crate) fn begin(engine: &dyn Engine, catalog: Catalog) -> Result<Self, Error> {
        let registry = Self { current: RwLock::new(Arc::new(catalog)) };
        if !engine.caps().read_only {
            registry.fold(engine)?;
        }
        Ok(registry)
    }

    /// Folds the rows of names issued since the world was opened into the whole rows.
    pub(crate) fn fold(&self, engine: &dyn Engine) -> Result<(), Error> {
        let batch = folded(engine, &self.catalog())?;
        if !batch.is_empty() {
            engine.commit(batch, &[], Level::Process)?;
        }
        Ok(())
    }
}

/// A batch that leaves exactly the catalog's whole rows; empty if they are there already.
fn folded(engine: &dyn Engine, catalog: &Catalog) -> Result<Batch, Error> {
    let mut stored = meta::registry_rows(engine)?;
    let mut batch = Batch::new();
    for (name, bytes) in catalog.encode_full() {
        if stored.remove(&name).as_ref() != Some(&bytes) {
            put(&mut batch, &name, bytes);
        }
    }
    for tail in stored.keys() {
        batch.delete(Space::WorldMeta, tail);
    }
    Ok(batch)
}

fn put(batch: &mut Batch, name: &str, bytes: Vec<u8>) {
    batch.put(Space::WorldMeta, name, Draft::plain(Codec::None, 0, |out| out.extend(bytes)), Stamp::Commit);
}

impl World {
    /// The registry as it is now: names, ids and schemas. Cheap; it goes on answering as it was when it grows.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.unsettled().registry.catalog()
    }

    /// The number of a dimension, or `None` if its name is not registered.
    pub fn dimension(&self, name: &str) -> Option<Dimension> {
        self.catalog().dimension(name)
    }

    /// Issues ids for names that have none yet, all of them or none, and commits them before it returns.
    ///
    /// Names that are known already must be offered as they are stored. Serialised with commits; forces no sync: ids
    /// are at least as durable as the first chunk that uses them, because they are committed before it.
    ///
    /// # Errors
    /// [`Error::Registry`] if an offer does not fit what is stored; nothing was changed then.
    pub fn register(&self, new: &Registration) -> Result<Arc<Catalog>, Error> {
        self.grow_names(|catalog| catalog.register(new))
    }

    /// Says anew of some blocks whether they hide what is behind them, and commits it before it returns. Opens a schema
    /// generation if one changes; no chunk is touched.
    ///
    /// The opacity map stays as it is drawn: call [`rebuild_opacity`](Self::rebuild_opacity) afterwards. A transaction
    /// that has begun before this call may still draw its chunks by what was said until then, so no transaction should
    /// be under way.
    ///
    /// # Errors
    /// [`Error::Registry`] if a block was never registered; nothing was changed then.
    pub fn set_opacity(&self, opaque: &BTreeMap<BlockId, bool>) -> Result<Arc<Catalog>, Error> {
        self.grow_names(|catalog| catalog.set_opacity(opaque))
    }

    /// Commits what a function adds to the catalog.
    fn grow_names(
        &self,
        grow: impl FnOnce(&mut Catalog) -> Result<Changes, RegistryError>,
    ) -> Result<Arc<Catalog>, Error> {
        let inner = self.settled()?;
        inner.check_open()?;
        let mut committing = inner.commit_alone()?;
        let before = inner.registry.catalog();
        let mut grown = Catalog::clone(&before);
        let changes = grow(&mut grown)?;
        if changes.is_empty() {
            return Ok(before);
        }
        let mut batch = Batch::new();
        for (name, bytes) in changes.encode_tail() {
            put(&mut batch, &name, bytes);
        }
        let seq = inner.commit_past_queue(batch, [])?;
        let grown = Arc::new(grown);
        *inner.registry.current.write() = Arc::clone(&grown);
        if grown.current_generation() != before.current_generation() {
            inner.cache.clear();
        }
        committing.publish(seq, []);
        Ok(grown)
    }

    /// Takes over the names of a world that issues them for this one too, which are at least those that it has.
    pub(crate) fn adopt_names(&self, names: &Arc<Catalog>) -> Result<(), Error> {
        let inner = self.settled()?;
        inner.check_open()?;
        let mut committing = inner.commit_alone()?;
        let batch = folded(&*inner.engine()?, names)?;
        if batch.is_empty() {
            return Ok(());
        }
        let seq = inner.commit_past_queue(batch, [])?;
        let before = std::mem::replace(&mut *inner.registry.current.write(), Arc::clone(names));
        if names.current_generation() != before.current_generation() {
            inner.cache.clear();
        }
        committing.publish(seq, []);
        Ok(())
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

impl Inner {
    /// Folds the registry's rows for the last time. The caller holds the commit lock: a registration under way would
    /// find its rows folded away before it is in the catalog.
    pub(crate) fn fold_registry(&self, _held: &Committing<'_>) -> Result<(), Error> {
        self.registry.fold(&*self.engine()?)
    }
}
