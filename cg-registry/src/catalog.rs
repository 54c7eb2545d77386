//! The lists of a world and all generations of its schemas.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cg_format::{BlockId, ComponentId, Dimension, EntityTypeId, SideKind, StructureId};

use crate::block::BlockRow;
use crate::component::ComponentRow;
use crate::kind::ListKind;
use crate::pack::{PackRow, RenameRow};
use crate::schema::ComponentSpec;
use crate::shared::SharedVec;
use crate::tables::Tables;
use crate::types::{Content, TypeRow};
use crate::view::Schema;
use crate::{AppendOnlyList, Name};

/// All names of a world: six lists, and the schemas of its blocks and components in each generation.
///
/// A catalog only grows. An id is the position of a name in its list and never changes its meaning. A schema
/// *generation* is a number that increases when an existing block gains or loses a component, or changes its opacity.
/// Every stored chunk contains the generation in which it was written, and [`Catalog::schema`] returns that schema
/// permanently. A component's shape never changes: another shape is another registration (`ns:name@2`) that replaces
/// it.
///
/// ```
/// use cg_format::SchemaView;
/// use cg_registry::{BlockOffer, Catalog, ComponentOffer, Name, Registration};
/// let mut catalog = Catalog::new();
/// let energy = Name::new("power:energy")?;
/// let battery = BlockOffer { components: vec![energy.clone()], ..BlockOffer::new(Name::new("power:battery")?) };
/// catalog.register(&Registration {
///     components: vec![ComponentOffer::fixed(energy, 4)],
///     blocks: vec![BlockOffer::new(Name::new(":air")?), battery],
///     ..Registration::default()
/// })?;
/// let battery = catalog.block_id("power:battery").expect("registered above");
/// assert_eq!(battery.get(), 1);
/// assert_eq!(catalog.current_schema().components_of(battery).map(<[_]>::len), Some(1));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Catalog {
    pub(crate) lists: [AppendOnlyList; 6],
    pub(crate) component_rows: SharedVec<ComponentRow>,
    pub(crate) block_rows: SharedVec<BlockRow>,
    pub(crate) renames: Vec<RenameRow>,
    pub(crate) packs: Vec<PackRow>,
    pub(crate) type_rows: Vec<TypeRow>,
    pub(crate) tables: Arc<Tables>,
    pub(crate) generation: u32,
    /// The blocks, without states, whose states the packs of this process declare. Not stored.
    pub(crate) declared: Arc<BTreeSet<String>>,
}

/// The side kind for components that a block has lost, `:lost_components`.
pub const LOST_COMPONENTS: SideKind = SideKind::new(0);

/// The side kind for component data at a place where no block can own it, `:stale`.
pub const STALE: SideKind = SideKind::new(1);

/// The names that every `sides` list starts with.
pub(crate) const INTRINSIC_SIDES: [&str; 2] = [":lost_components", ":stale"];

impl Catalog {
    /// The catalog of a new world: only the engine's own side kinds.
    pub fn new() -> Self {
        let mut new = Self::empty();
        for side in INTRINSIC_SIDES {
            let name = Name::new(side).expect("the engine's names are names");
            new.lists[ListKind::Sides.place()].issue(name).expect("they differ");
        }
        new
    }

    /// A catalog without the engine's own entries, for decoding.
    pub(crate) fn empty() -> Self {
        Self {
            lists: Default::default(),
            component_rows: SharedVec::default(),
            block_rows: SharedVec::default(),
            renames: Vec::new(),
            packs: Vec::new(),
            type_rows: Vec::new(),
            tables: Arc::default(),
            generation: 0,
            declared: Arc::default(),
        }
    }

    /// One of the lists.
    pub const fn list(&self, kind: ListKind) -> &AppendOnlyList {
        &self.lists[kind.place()]
    }

    /// The newest schema generation; 0 until a block changes for the first time.
    pub const fn current_generation(&self) -> u32 {
        self.generation
    }

    /// The schema of one generation; `None` if the world has not reached it.
    ///
    /// A handle of two words on shared tables. It does not change when the catalog grows.
    pub fn schema(&self, generation: u32) -> Option<Schema> {
        (generation <= self.generation).then(|| Schema::new(Arc::clone(&self.tables), generation))
    }

    /// The schema of the newest generation.
    pub fn current_schema(&self) -> Schema {
        Schema::new(Arc::clone(&self.tables), self.generation)
    }

    /// The id of a block by its name or by an alias.
    pub fn block_id(&self, name: &str) -> Option<BlockId> {
        self.list(ListKind::Blocks).id(name).map(BlockId::new)
    }

    /// The name that a block has now: that of its last rename, or else the one under which it was registered.
    pub fn block_name(&self, id: BlockId) -> Option<&Name> {
        self.list(ListKind::Blocks).current_name(id.get())
    }

    /// The newest registration of a component, by its name or by an alias.
    ///
    /// `ns:name` finds the newest registration; a revision such as `ns:name@2` finds exactly that registration.
    pub fn component_id(&self, name: &str) -> Option<ComponentId> {
        let first = self.tables.components.get(self.list(ListKind::Components).id(name)?)?;
        if name.contains('@') { Some(first.id) } else { Some(self.newest_registration(first.id)) }
    }

    /// The name that this registration of a component has now, with its revision.
    pub fn component_name(&self, id: ComponentId) -> Option<&Name> {
        self.list(ListKind::Components).current_name(id.index())
    }

    /// The last registration in the chain of replacements; the component itself if it was never replaced.
    pub fn newest_registration(&self, id: ComponentId) -> ComponentId {
        let mut newest = id;
        // A registration becomes the next one only of the last one of another chain, so this ends.
        while let Some(next) = self.tables.components.get(newest.index()).and_then(|this| this.replaced_by) {
            newest = next;
        }
        newest
    }

    /// The schema of a component in the newest generation.
    pub fn component_spec(&self, id: ComponentId) -> Option<&ComponentSpec> {
        self.tables.components.get(id.index()).filter(|found| found.id == id).map(|it| it.at(self.generation))
    }

    /// The type of the instances of this registration of a component; `None` if any bytes of its size are allowed.
    pub fn types(&self, id: ComponentId) -> Option<&Content> {
        self.tables.components.get(id.index()).filter(|found| found.id == id)?.content.as_deref()
    }

    /// Whether a component has a type.
    pub const fn has_types(&self) -> bool {
        !self.type_rows.is_empty()
    }

    /// The id of a kind of entity.
    pub fn entity_type(&self, name: &str) -> Option<EntityTypeId> {
        self.list(ListKind::Entities).id(name).map(EntityTypeId::new)
    }

    /// The kind with which a kind of entity was united; the kind itself if it was not.
    pub fn newest_entity_type(&self, kind: EntityTypeId) -> EntityTypeId {
        EntityTypeId::new(self.list(ListKind::Entities).newest(kind.get()))
    }

    /// The block that a block is in a generation: later unions are not done yet.
    pub(crate) fn block_in(&self, id: BlockId, generation: u32) -> BlockId {
        let blocks = self.list(ListKind::Blocks);
        // The last record of a united block is that of the union.
        let is_done =
            |id: u64| self.tables.blocks.get(id).is_some_and(|block| block.newest().generation <= generation);
        let pairs = blocks.chain(id.get()).zip(blocks.chain(id.get()).skip(1));
        let done = pairs.take_while(|(before, _)| is_done(*before));
        done.last().map_or(id, |(_, after)| BlockId::new(after))
    }

    /// The id of a structure, for a host to store in an object or a component: it never changes.
    ///
    /// ```
    /// use cg_registry::{Catalog, PackManifest, Policy, reconcile};
    /// let pack = r#"{ "pack": "game", "version": "1", "namespaces": ["game"], "structures": ["game:village"] }"#;
    /// let pack = PackManifest::from_json(pack)?;
    /// let mut catalog = Catalog::new();
    /// reconcile(&catalog, &[pack], &Policy::default()).apply(&mut catalog)?;
    /// let village = catalog.structure_id("game:village").expect("the pack has it");
    /// assert_eq!((village.get(), catalog.structure_id("game:castle")), (0, None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn structure_id(&self, name: &str) -> Option<StructureId> {
        self.list(ListKind::Structures).id(name).map(StructureId::new)
    }

    /// The number of a dimension.
    pub fn dimension(&self, name: &str) -> Option<Dimension> {
        self.list(ListKind::Dimensions).id(name).map(Dimension::new)
    }

    /// The number of a kind of side data.
    pub fn side_kind(&self, name: &str) -> Option<SideKind> {
        self.list(ListKind::Sides).id(name).map(|id| SideKind::new(id as u16))
    }

    /// The last record of each pack that the world was ever opened with, in the order of their first records.
    pub fn packs(&self) -> Vec<&PackRow> {
        let mut out: Vec<&PackRow> = Vec::new();
        for row in &self.packs {
            match out.iter_mut().find(|known| known.pack == row.pack) {
                Some(known) => *known = row,
                None => out.push(row),
            }
        }
        out
    }

    /// The pack that a namespace belongs to, by the last record of each pack.
    pub fn pack_of(&self, namespace: &str) -> Option<&str> {
        let packs = self.packs();
        let owner = packs.iter().rfind(|pack| pack.namespaces.iter().any(|own| own == namespace));
        owner.map(|pack| pack.pack.as_str())
    }

    /// The aliases of entries, in the order in which they were added.
    pub fn renames(&self) -> &[RenameRow] {
        &self.renames
    }

    /// The names of a component for packs: the one in the list, then its aliases.
    pub(crate) fn known_as(&self, id: ComponentId) -> Vec<&str> {
        let newest = self.newest_registration(id);
        let renamed = self.renames.iter().filter(|row| {
            let entry = self.tables.components.get(row.id).map(|history| history.id);
            row.list == ListKind::Components && entry.is_some_and(|id| self.newest_registration(id) == newest)
        });
        let first = self.list(ListKind::Components).name(id.index()).map(Name::unrevised);
        let now = self.component_name(id).map(Name::unrevised);
        first.into_iter().chain(now).chain(renamed.map(|row| row.name.as_str())).collect()
    }

    /// The other names of each [entry](Self::entry_of) that has some, the newest first.
    pub(crate) fn aliases(&self) -> BTreeMap<(ListKind, u64), Vec<Name>> {
        let mut aliases: BTreeMap<_, Vec<Name>> = BTreeMap::new();
        for row in self.renames.iter().rev() {
            let entry = self.entry_of(row.list, row.id);
            aliases.entry((row.list, entry)).or_default().push(row.name.clone());
        }
        for ((list, entry), names) in &mut aliases {
            names.extend(self.list(*list).name(*entry).cloned());
        }
        for list in ListKind::ALL {
            for (id, _) in self.list(list).united() {
                let all = aliases.entry((list, self.entry_of(list, id))).or_default();
                all.extend(self.list(list).name(id).cloned());
            }
        }
        for ((list, entry), names) in &mut aliases {
            let mut seen: BTreeSet<Name> =
                self.list(*list).current_name(*entry).cloned().into_iter().collect();
            names.retain(|name| name.revision() == 1 && seen.insert(name.clone()));
        }
        aliases.retain(|_, names| !names.is_empty());
        aliases
    }

    /// The generations after `from` and up to `to` in which one of these blocks changed, or one that they become,
    /// ascending.
    pub(crate) fn changes_of(
        &self,
        blocks: impl IntoIterator<Item = BlockId>,
        from: u32,
        to: u32,
    ) -> Vec<u32> {
        let blocks = blocks.into_iter().flat_map(|block| self.list(ListKind::Blocks).chain(block.get()));
        let histories = blocks.filter_map(|block| self.tables.blocks.get(block));
        let mut out: Vec<u32> = histories
            .flat_map(|history| history.later.iter().map(|state| state.generation))
            .filter(|generation| *generation > from && *generation <= to)
            .collect();
        out.sort_unstable();
        out.dedup();
        out
    }
}

impl Default for Catalog {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Catalog {
    /// Two catalogs are equal if their stored bytes would be equal.
    fn eq(&self, other: &Self) -> bool {
        self.lists == other.lists
            && self.component_rows.iter().eq(other.component_rows.iter())
            && self.block_rows.iter().eq(other.block_rows.iter())
            && self.renames == other.renames
            && self.packs == other.packs
            && self.type_rows == other.type_rows
    }
}

impl Eq for Catalog {}
