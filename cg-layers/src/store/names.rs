//! The names of an overlay: its base's, and after them its own (D9).
//!
//! In each list, the ids below `shared` are the base's and mean the same in both. An overlay without names of its own
//! follows its base when that registers more. An overlay with own names refuses to continue then, because the base
//! would issue ids that the overlay has issued already.
//!
//! What the packs of its base say of types and of states that are declared holds for an overlay too, as of when it was
//! opened.

use std::sync::Arc;

use cg_format::{BlockId, SchemaView as _};
use cg_registry::{BlockOffer, Catalog, ComponentOffer, ListKind, Registration};
use cg_store::Error;

use super::error::OverlayError;
use super::head::Shared;

/// The catalog of an overlay.
#[derive(Debug)]
pub(super) struct Names {
    /// The base's names and the overlay's own, if it has any.
    own: Option<Arc<Catalog>>,
    pub(super) shared: Shared,
}

impl Names {
    /// The names of a base and no others.
    pub(super) fn of_base(base: &Catalog) -> Self {
        Self { own: None, shared: lens(base) }
    }

    /// The stored names, if they still fit the base.
    pub(super) fn stored(mut stored: Catalog, shared: Shared, base: &Catalog) -> Result<Self, Error> {
        for (list, count) in ListKind::ALL.into_iter().zip(shared) {
            for id in 0..count {
                let (expected, found) = (stored.list(list).name(id), base.list(list).name(id));
                // A name that the base has replaced by another still has its id.
                if let Some(expected) = expected
                    && base.list(list).id(expected.as_str()) != Some(id)
                {
                    let (expected, found) = (expected.clone(), found.cloned());
                    return Err(OverlayError::BaseNames { list, id, expected, found }.into());
                }
            }
        }
        if lens(&stored) == shared {
            return Ok(Self::of_base(base));
        }
        stored.take_types(base)?;
        stored.keep_declared(base);
        if is_part_of(&stored, base) {
            // An interrupted merge had registered the own names in the base.
            return Ok(Self::of_base(base));
        }
        let names = Self { own: Some(Arc::new(stored)), shared };
        names.check(base)?;
        Ok(names)
    }

    /// The catalog, if the base still fits it.
    pub(super) fn catalog(&self, base: Arc<Catalog>) -> Result<Arc<Catalog>, OverlayError> {
        let Some(own) = &self.own else { return Ok(base) };
        if lens(&base) != self.shared && is_part_of(own, &base) {
            return Ok(base);
        }
        self.check(&base)?;
        Ok(Arc::clone(own))
    }

    /// Whether all names of the base are known here. An overlay with own names accepts no new ones from the base.
    pub(super) fn has_all(&self, base: &Catalog) -> bool {
        self.own.is_some() || self.shared == lens(base)
    }

    /// The catalog, whether or not the base still fits it.
    pub(super) fn unchecked(&self, base: Arc<Catalog>) -> Arc<Catalog> {
        self.own.as_ref().map_or(base, Arc::clone)
    }

    fn check(&self, base: &Catalog) -> Result<(), OverlayError> {
        let Some(own) = &self.own else { return Ok(()) };
        let counts = self.shared.into_iter().zip(lens(base));
        for (list, (shared, found)) in ListKind::ALL.into_iter().zip(counts) {
            if found != shared {
                return Err(OverlayError::BaseGrew { list, shared, found });
            }
        }
        let (expected, found) = (own.current_generation(), base.current_generation());
        if expected == found { Ok(()) } else { Err(OverlayError::BaseSchema { expected, found }) }
    }

    /// The names with more registered; `None` if all are known already.
    pub(super) fn grown(&self, base: Arc<Catalog>, new: &Registration) -> Result<Option<Self>, Error> {
        let shared = if self.own.is_some() { self.shared } else { lens(&base) };
        let mut grown = Catalog::clone(&*self.catalog(base)?);
        if grown.register(new)?.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self { own: Some(Arc::new(grown)), shared }))
    }

    /// The names that a base must register to have the overlay's own names under the same ids.
    pub(super) fn own_names(&self) -> Option<Registration> {
        let own = self.own.as_deref()?;
        let names = |list: ListKind| {
            let shared = self.shared.get(list as usize).copied().unwrap_or_default();
            own.list(list).names().iter().skip(shared as usize)
        };
        let schema = own.current_schema();
        let component = |id| own.component_name(id).cloned();
        let components = names(ListKind::Components).filter_map(|name| {
            let id = own.component_id(name.as_str())?;
            Some(ComponentOffer::described(name.clone(), own.component_spec(id)?, own.types(id)))
        });
        let blocks = names(ListKind::Blocks).filter_map(|name| {
            let id = own.block_id(name.as_str())?;
            let components = schema.components_of(id)?.iter().copied().filter_map(component).collect();
            Some(BlockOffer { name: name.clone(), components, opaque: schema.is_opaque(id) })
        });
        Some(Registration {
            components: components.collect(),
            blocks: blocks.collect(),
            entities: names(ListKind::Entities).cloned().collect(),
            structures: names(ListKind::Structures).cloned().collect(),
            dimensions: names(ListKind::Dimensions).cloned().collect(),
            sides: names(ListKind::Sides).cloned().collect(),
        })
    }

    /// Drops the own names, because the base has registered them.
    pub(super) fn adopted(&self, base: &Catalog) -> Result<Self, OverlayError> {
        if self.own.as_deref().is_none_or(|own| is_part_of(own, base)) {
            return Ok(Self::of_base(base));
        }
        self.check(base)?;
        Ok(Self { own: self.own.clone(), shared: self.shared })
    }
}

/// Whether `whole` has every name of `part` under the same id, with the same meaning in the schema generation of
/// `part`.
fn is_part_of(part: &Catalog, whole: &Catalog) -> bool {
    let ours = part.current_schema();
    let Some(theirs) = whole.schema(part.current_generation()) else { return false };
    let is_same_generation = part.current_generation() == whole.current_generation();
    let has_names = |list: ListKind| {
        let (ours, theirs) = (part.list(list).names(), whole.list(list).names());
        ours.len() <= theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| ours == theirs)
    };
    let mut components = part.list(ListKind::Components).names().iter();
    let mut blocks = (0..part.list(ListKind::Blocks).len() as u64).map(BlockId::new);
    ListKind::ALL.into_iter().all(has_names)
        && components.all(|name| {
            let Some(id) = part.component_id(name.as_str()) else { return false };
            let has_spec =
                || part.component_spec(id) == whole.component_spec(id) && part.types(id) == whole.types(id);
            ours.shape(id) == theirs.shape(id)
                && ours.default_bytes(id) == theirs.default_bytes(id)
                && (!is_same_generation || has_spec())
        })
        && blocks.all(|id| {
            ours.components_of(id) == theirs.components_of(id) && ours.is_opaque(id) == theirs.is_opaque(id)
        })
}

pub(super) fn lens(catalog: &Catalog) -> Shared {
    ListKind::ALL.map(|list| catalog.list(list).len() as u64)
}
