//! The conversion of portable chunks and values to the ids and the layouts of a catalog.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use cg_format::chunk::{CellLayer, Chunk, EditError};
use cg_format::{BlockId, ComponentId, EntityTypeId, LocalPos, SchemaView, SideKind};

use super::{NamedComponent, Names};
use crate::kept::Owner;
use crate::schema::{Conversion, Verdict, convert, diff_specs, judge};
use crate::upgrade::Gained;
use crate::{
    Catalog, ComponentSpec, Instance, KeptComponents, LOST_COMPONENTS, ListKind, Name, Policy, STALE,
    UpgradeFunctions,
};

/// The conversion from portable ids to those of a catalog that has all their names.
///
/// The bytes of a component are converted as a load converts them: along the catalog's registrations if one of them has
/// the portable layout, and directly by field names, by prefix or by a function of the host otherwise.
pub struct IdRemap {
    blocks: BTreeMap<BlockId, BlockId>,
    components: BTreeMap<ComponentId, Route>,
    /// The portable components of each component of the catalog.
    sources: BTreeMap<ComponentId, Vec<ComponentId>>,
    entities: BTreeMap<EntityTypeId, EntityTypeId>,
    sides: BTreeMap<SideKind, SideKind>,
    functions: Arc<UpgradeFunctions>,
    /// Components for which the host fills new instances, with the names of the functions.
    fills: BTreeMap<ComponentId, Name>,
}

/// A value of a portable component in the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried<'b> {
    /// The catalog's component.
    pub component: ComponentId,
    /// The converted bytes; `None` if they cannot be converted.
    pub bytes: Option<Cow<'b, [u8]>>,
    /// Whether the converted bytes have every part of the portable ones.
    pub is_whole: bool,
}

/// The way from a portable layout to that of the catalog.
struct Route {
    to: ComponentId,
    /// Empty: the bytes stay as they are. `None`: no conversion is known.
    steps: Option<Vec<Step>>,
}

struct Step {
    by: Conversion,
    from: ComponentSpec,
    to: ComponentSpec,
    /// The names under which the host may have a function.
    names: Vec<String>,
    /// Whether parts have no place in the new layout.
    cuts: bool,
}

impl IdRemap {
    /// Creates the conversion to a catalog, without functions of the host.
    ///
    /// # Errors
    /// The absent names, as [`Names::missing_in`] returns them.
    pub fn new(names: &Names, catalog: &Catalog) -> Result<Self, Vec<(ListKind, Name)>> {
        Self::with_functions(names, catalog, Arc::default())
    }

    /// As [`new`](Self::new), with the functions of the host that convert and fill components.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_functions(
        names: &Names,
        catalog: &Catalog,
        functions: Arc<UpgradeFunctions>,
    ) -> Result<Self, Vec<(ListKind, Name)>> {
        let missing = names.missing_in(catalog);
        if !missing.is_empty() {
            return Err(missing);
        }
        let mut remap = Self {
            blocks: BTreeMap::new(),
            components: BTreeMap::new(),
            sources: BTreeMap::new(),
            entities: BTreeMap::new(),
            sides: BTreeMap::new(),
            fills: functions.fills_of(catalog),
            functions,
        };
        for (id, block) in &names.blocks {
            let there = names.find(catalog, ListKind::Blocks, id.get(), &block.name);
            remap.blocks.extend(there.map(|there| (*id, BlockId::new(there))));
        }
        for (id, component) in &names.components {
            let Some(there) = names.find_component(catalog, *id, component) else { continue };
            remap.components.insert(*id, Route::find(component, catalog, there, &remap.functions));
            remap.sources.entry(there).or_default().push(*id);
        }
        for (id, name) in &names.entities {
            let there = names.find(catalog, ListKind::Entities, id.get(), name);
            remap.entities.extend(there.map(|there| (*id, EntityTypeId::new(there))));
        }
        for (kind, name) in &names.sides {
            let there = names.find(catalog, ListKind::Sides, kind.get().into(), name);
            remap.sides.extend(there.map(|there| (*kind, SideKind::new(there as u16))));
        }
        Ok(remap)
    }

    /// Converts a chunk to the ids and layouts of the catalog. References to entities, and ids without a name, stay
    /// unchanged.
    ///
    /// Also returns the number of instances of each component that have no place in the new chunk, or not with all
    /// their parts. They are kept: in `:lost_components` if only the block lacks the component, and otherwise with
    /// their portable bytes in `:stale`. Entries of these two side kinds are converted too. An entry whose component
    /// has no name is dropped and counted.
    ///
    /// # Errors
    /// [`EditError`] if the chunk's own schema does not explain its components, or they do not fit the new schema.
    pub fn chunk(
        &self,
        old: &Chunk,
        schema: &impl SchemaView,
    ) -> Result<(Chunk, BTreeMap<ComponentId, u64>), EditError> {
        if old.has_unread_components() {
            return Err(EditError::UnreadComponents { block: old.block(LocalPos::default()) });
        }
        let mut new = old.clone();
        new.remap_blocks(|block| self.blocks.get(&block).copied().unwrap_or(block));
        let lost = old.side(LOST_COMPONENTS).and_then(|bytes| KeptComponents::decode(bytes, None).ok());
        let lost = lost.unwrap_or_default();
        let returning = self.returning(old, &lost, &new);
        let new = new.with_components(schema, |at, block, component| {
            let (source, bytes) =
                self.source(old, at, component).or_else(|| returning.get(&(at, component)).copied())?;
            self.components.get(&source)?.convert(bytes, Some(block), &self.functions).bytes
        })?;
        let mut new = self.filled(old, &returning, new, schema)?;
        let mut kept = Kept::default();
        for (source, at, bytes) in old.components() {
            let (Some(route), Some(block)) = (self.components.get(&source), new.layer(at.cell, at.layer))
            else {
                kept.count(source);
                continue;
            };
            let has = schema.components_of(block).is_some_and(|all| all.binary_search(&route.to).is_ok());
            let is_taken = has && self.source(old, at, route.to).is_some_and(|(taken, _)| taken == source);
            if is_taken && route.is_same() {
                continue;
            }
            let carried = route.convert(bytes, Some(block), &self.functions);
            if is_taken && carried.is_whole {
                continue;
            }
            kept.count(source);
            let owner = Owner { at, block, component: route.to };
            kept.add(owner, carried, bytes, !has);
        }
        let has_returned = |owner: &Owner| {
            let Some(block) = new.layer(owner.at.cell, owner.at.layer) else { return false };
            let has = schema.components_of(block).unwrap_or_default();
            returning.contains_key(&(owner.at, owner.component))
                && has.binary_search(&owner.component).is_ok()
        };
        self.convert_kept(old, &new, has_returned, &mut kept);
        let sides: Vec<_> = new.sides().map(|(kind, _)| kind).collect();
        for kind in sides {
            new.remove_side(kind);
        }
        for (kind, data) in old.sides() {
            new.set_side(self.sides.get(&kind).copied().unwrap_or(kind), data.to_vec());
        }
        for (kind, entries) in [(LOST_COMPONENTS, &kept.lost), (STALE, &kept.stale)] {
            if !entries.is_empty() {
                new.set_side(kind, entries.encode());
            } else if is_readable(old, kind) {
                new.remove_side(kind);
            }
        }
        Ok((new, kept.left))
    }

    /// The catalog's kind of entity for a portable one.
    pub fn entity(&self, here: EntityTypeId) -> Option<EntityTypeId> {
        self.entities.get(&here).copied()
    }

    /// A value of a portable component outside chunks, as in entities. `None` if the component has no name.
    pub fn value<'b>(&self, here: ComponentId, bytes: &'b [u8]) -> Option<Carried<'b>> {
        Some(self.components.get(&here)?.convert(bytes, None, &self.functions))
    }

    /// The portable instance from which a component of the catalog takes its bytes at a place.
    fn source<'c>(
        &self,
        old: &'c Chunk,
        at: CellLayer,
        there: ComponentId,
    ) -> Option<(ComponentId, &'c [u8])> {
        let sources = self.sources.get(&there)?;
        sources.iter().find_map(|source| Some((*source, old.component(at, *source)?)))
    }

    /// The entries of `:lost_components` whose block is at its place, and may have the component in the catalog.
    fn returning<'k>(&self, old: &Chunk, lost: &'k KeptComponents, new: &Chunk) -> Returning<'k> {
        let mut returning = Returning::new();
        for (owner, bytes) in lost.iter() {
            let Some(route) = self.components.get(&owner.component) else { continue };
            let block = new.layer(owner.at.cell, owner.at.layer);
            if block.is_some()
                && self.blocks.get(&owner.block).copied() == block
                && self.source(old, owner.at, route.to).is_none()
                && route.convert(bytes, block, &self.functions).is_whole
            {
                returning.entry((owner.at, route.to)).or_insert((owner.component, bytes));
            }
        }
        returning
    }

    /// Calls the host's functions for the instances that blocks gain.
    fn filled(
        &self,
        old: &Chunk,
        returning: &Returning<'_>,
        new: Chunk,
        schema: &impl SchemaView,
    ) -> Result<Chunk, EditError> {
        let gains = |block: BlockId| {
            let all = schema.components_of(block).unwrap_or_default();
            all.iter().any(|component| self.fills.contains_key(component))
        };
        if self.fills.is_empty() || !new.kinds().into_iter().any(gains) {
            return Ok(new);
        }
        new.with_components(schema, |at, block, component| {
            let is_gained =
                self.source(old, at, component).is_none() && !returning.contains_key(&(at, component));
            let fill = self.fills.get(&component).filter(|_| is_gained);
            let filled = fill.and_then(|name| {
                self.functions.fill(name.as_str())?(&Gained { at, block, component, chunk: &new })
            });
            filled.map(Cow::Owned).or_else(|| new.component(at, component).map(Cow::Borrowed))
        })
    }

    /// Converts the entries that a chunk keeps without an owner.
    fn convert_kept(&self, old: &Chunk, new: &Chunk, has_returned: impl Fn(&Owner) -> bool, kept: &mut Kept) {
        for kind in [LOST_COMPONENTS, STALE] {
            let Some(Ok(entries)) = old.side(kind).map(|bytes| KeptComponents::decode(bytes, None)) else {
                continue;
            };
            for (owner, bytes) in entries.iter() {
                let Some(route) = self.components.get(&owner.component) else {
                    kept.count(owner.component);
                    continue;
                };
                let block = self.blocks.get(&owner.block).copied();
                let block = block.or_else(|| new.layer(owner.at.cell, owner.at.layer)).unwrap_or_default();
                let there = Owner { block, component: route.to, ..owner };
                if kind == STALE {
                    kept.stale.push(there, bytes.to_vec());
                    continue;
                }
                if has_returned(&there) {
                    continue;
                }
                let carried = route.convert(bytes, Some(block), &self.functions);
                if !carried.is_whole {
                    kept.count(owner.component);
                }
                kept.add(there, carried, bytes, true);
            }
        }
    }
}

impl fmt::Debug for IdRemap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdRemap")
            .field("blocks", &self.blocks)
            .field("sources", &self.sources)
            .field("entities", &self.entities)
            .field("sides", &self.sides)
            .finish_non_exhaustive()
    }
}

fn is_readable(chunk: &Chunk, kind: SideKind) -> bool {
    chunk.side(kind).is_some_and(|bytes| KeptComponents::decode(bytes, None).is_ok())
}

/// Entries of `:lost_components` by place and component of the catalog: the portable component and its bytes.
type Returning<'k> = BTreeMap<(CellLayer, ComponentId), (ComponentId, &'k [u8])>;

/// What a converted chunk keeps without an owner, and the numbers by portable component.
#[derive(Default)]
struct Kept {
    lost: KeptComponents,
    stale: KeptComponents,
    left: BTreeMap<ComponentId, u64>,
}

impl Kept {
    fn count(&mut self, component: ComponentId) {
        *self.left.entry(component).or_default() += 1;
    }

    /// Keeps an instance: converted if its block may get it back, otherwise with its own bytes.
    fn add(&mut self, owner: Owner, carried: Carried<'_>, bytes: &[u8], may_return: bool) {
        match carried.bytes {
            Some(whole) if carried.is_whole && may_return && self.lost.get(owner).is_none() => {
                self.lost.push(owner, whole.into_owned());
            }
            _ => self.stale.push(owner, bytes.to_vec()),
        }
    }
}

impl Route {
    fn find(
        component: &NamedComponent,
        catalog: &Catalog,
        there: ComponentId,
        functions: &UpgradeFunctions,
    ) -> Self {
        let mut names: Vec<String> = catalog.known_as(there).into_iter().map(str::to_owned).collect();
        names.push(component.name.as_str().into());
        let has_function = names.iter().any(|name| functions.conversion(name).is_some());
        // What a policy allows or refuses was decided when the catalog got its layout.
        let policy = Policy { allow_shrink: true, ..Policy::default() };
        let verdict = |spec: &ComponentSpec| judge(&diff_specs(&component.spec, spec), &policy, has_function);
        let is_same = |id: &ComponentId| {
            let spec = catalog.component_spec(*id);
            spec.is_some_and(|spec| matches!(verdict(spec), Verdict::Keep | Verdict::Describe))
        };
        let generation = catalog.current_generation();
        let steps = if is_same(&there) {
            Some(Vec::new())
        } else if let Some(known) = catalog.older(there, generation).into_iter().find(is_same) {
            let links = catalog.links(known, there);
            let step = |link: crate::upgrade::Link<'_>| {
                let (from, to) = (link.from.clone(), link.to.clone());
                Step { by: link.by, from, to, names: names.clone(), cuts: false }
            };
            Some(links.into_iter().map(step).collect())
        } else {
            let spec = catalog.component_spec(there).expect("the catalog returned its id");
            match verdict(spec) {
                Verdict::Keep | Verdict::Describe => Some(Vec::new()),
                Verdict::Replace { by, lossless } => {
                    let (from, to) = (component.spec.clone(), spec.clone());
                    let cuts = !lossless && by != Conversion::Function;
                    Some(vec![Step { by, from, to, names, cuts }])
                }
                Verdict::Refuse => None,
            }
        };
        Self { to: there, steps }
    }

    fn is_same(&self) -> bool {
        self.steps.as_ref().is_some_and(Vec::is_empty)
    }

    fn convert<'b>(
        &self,
        bytes: &'b [u8],
        block: Option<BlockId>,
        functions: &UpgradeFunctions,
    ) -> Carried<'b> {
        let none = Carried { component: self.to, bytes: None, is_whole: false };
        let Some(steps) = &self.steps else { return none };
        let (mut converted, mut is_whole) = (Cow::Borrowed(bytes), true);
        for Step { by, from, to, names, cuts } in steps {
            let next = convert(*by, from, to, &converted)
                .or_else(|| functions.call(names, &Instance { block, from, to, bytes: &converted })?.ok());
            let Some(next) = next else { return none };
            converted = Cow::Owned(next);
            is_whole &= !cuts;
        }
        Carried { component: self.to, bytes: Some(converted), is_whole }
    }
}
