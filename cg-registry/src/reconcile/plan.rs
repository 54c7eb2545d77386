//! The consequences of opening a world with some packs.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use cg_format::{BlockId, ComponentShape};

use crate::catalog::Catalog;
use crate::changes::Changes;
use crate::kind::ListKind;
use crate::manifest::HexBytes;
use crate::schema::shape_text;
use crate::{Conversion, Name, RegistryError};

/// The result of comparing a world with the offers of packs: every consequence, and whether it is possible.
///
/// A plan changes nothing until [`Plan::apply`] is called. Printing it is the dry run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub(super) actions: Vec<Action>,
    pub(super) changes: Changes,
    pub(super) stand_ins: Vec<(BlockId, BlockId)>,
    pub(super) declared: Arc<BTreeSet<String>>,
    pub(super) generation_before: u32,
    pub(super) generation_after: u32,
}

/// One consequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The action.
    pub what: What,
    /// Its cost.
    pub cost: Cost,
    /// Whether opening the world with the earlier packs restores every value that is stored now.
    pub reversible: bool,
}

/// The cost of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cost {
    /// A few bytes in the registry; no chunk is touched.
    Free,
    /// Each affected stored chunk is converted when it is loaded next.
    RewriteOnLoad,
    /// The action is impossible, and so is the whole plan.
    Refused,
}

/// The kind of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// A pack is offered for the first time.
    PackAdded {
        /// The pack.
        pack: String,
        /// Its version.
        version: String,
    },
    /// A pack is offered with another version, or with other namespaces.
    PackUpdated {
        /// The pack.
        pack: String,
        /// The recorded version.
        from: String,
        /// The offered version.
        to: String,
    },
    /// A missing pack is offered again.
    PackReturned {
        /// The pack.
        pack: String,
        /// Its version.
        version: String,
    },
    /// A pack that the world knows is not offered. Its entries stay.
    PackMissing {
        /// The pack.
        pack: String,
        /// The recorded version.
        version: String,
        /// The number of its names in each list.
        entries: Vec<(ListKind, usize)>,
        /// The block that is displayed instead of its blocks, if the policy names one.
        placeholder: Option<Name>,
    },
    /// New names get the next ids.
    Register {
        /// The pack.
        pack: String,
        /// The list.
        list: ListKind,
        /// The id of the first name; the others follow.
        first_id: u64,
        /// The names.
        names: Vec<Name>,
    },
    /// An entry gets an alias.
    Renamed {
        /// The list.
        list: ListKind,
        /// The entry's id, which does not change.
        id: u64,
        /// The existing name.
        old: Name,
        /// The new name.
        new: Name,
    },
    /// An entry is also found by a name that it had earlier.
    Aliased {
        /// The list.
        list: ListKind,
        /// The entry's id, which does not change.
        id: u64,
        /// Its name.
        name: Name,
        /// The earlier name.
        earlier: Name,
    },
    /// The world has both names of a rename. What is stored of the old entry becomes the new one when it is read.
    United {
        /// The list.
        list: ListKind,
        /// The old name.
        old: Name,
        /// The new name.
        new: Name,
        /// The old name's id, which is found by no name any more.
        old_id: u64,
        /// The id that both names find.
        new_id: u64,
        /// The parts that stored instances of a component lose.
        cut: Vec<String>,
    },
    /// The world has both names of a rename, and the two entries cannot be united. Both stay as they are.
    KeptApart {
        /// The list.
        list: ListKind,
        /// The old name.
        old: Name,
        /// The new name.
        new: Name,
    },
    /// Names of a pack that are in the world and that the pack no longer offers. Their ids stay.
    NoLongerOffered {
        /// The pack.
        pack: String,
        /// The list.
        list: ListKind,
        /// The names.
        names: Vec<Name>,
    },
    /// A component gets another default, or its fields are described for the first time.
    ComponentDescribed {
        /// The component.
        component: Name,
        /// The default from now on.
        default_bytes: HexBytes,
    },
    /// A component gets other types. No stored value changes.
    TypesChanged {
        /// The component.
        component: Name,
        /// The parts of which stored values may no longer be allowed, each with what is allowed now.
        narrowed: Vec<String>,
    },
    /// A new registration replaces a component.
    ComponentReplaced {
        /// The old registration.
        old: Name,
        /// The new registration.
        new: Name,
        /// The old shape.
        from: ComponentShape,
        /// The new shape.
        to: ComponentShape,
        /// The conversion of stored instances.
        by: Conversion,
        /// The parts that stored instances lose.
        cut: Vec<String>,
        /// The number of block kinds with the component.
        blocks: usize,
    },
    /// A block gains or loses components.
    BlockChanged {
        /// The block.
        block: Name,
        /// The components that it gains.
        gains: Vec<Name>,
        /// The components that it loses; their bytes stay stored.
        loses: Vec<Name>,
    },
    /// A block starts or stops hiding the blocks behind it.
    OpacityChanged {
        /// The block.
        block: Name,
        /// The new opacity.
        opaque: bool,
    },
    /// The change is impossible.
    Refused(Refusal),
}

/// Why a change is impossible, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// One pack is offered twice.
    #[error("pack `{pack}` is offered twice; remove one of them")]
    PackTwice {
        /// The pack.
        pack: String,
    },
    /// A pack's name, version or list of namespaces is too long for a record, or a namespace is invalid.
    #[error("pack {pack:?} cannot be remembered: {reason}")]
    PackMalformed {
        /// The pack.
        pack: String,
        /// The problem.
        reason: String,
    },
    /// Two packs claim the same namespace.
    #[error(
        "`{namespace}` is the namespace of pack `{owner}`, and pack `{claimant}` claims it too; remove one of them"
    )]
    NamespaceTaken {
        /// The namespace.
        namespace: String,
        /// The owner.
        owner: String,
        /// The pack that claims it.
        claimant: String,
    },
    /// The namespace belongs to a pack that is not offered.
    #[error(
        "`{namespace}` is the namespace of pack `{owner}`, which is not offered; pack `{claimant}` may take it over only if the policy allows takeovers"
    )]
    NamespaceOwned {
        /// The namespace.
        namespace: String,
        /// The owner.
        owner: String,
        /// The pack that claims it.
        claimant: String,
    },
    /// A pack offers a name outside its namespaces, or one that only the registry may create.
    #[error("pack `{pack}` offers {} `{name}`, which is in none of its namespaces", .list.noun(1))]
    ForeignName {
        /// The pack.
        pack: String,
        /// The list.
        list: ListKind,
        /// The name.
        name: Name,
    },
    /// A name contains the registry's `@`.
    #[error("pack `{pack}` offers {} `{name}`; `@` is the registry's own", .list.noun(1))]
    ReservedName {
        /// The pack.
        pack: String,
        /// The list.
        list: ListKind,
        /// The name.
        name: Name,
    },
    /// One name, or two names of one entry, are offered twice.
    #[error(
        "{list} `{name}` of pack `{first}` is offered again as `{again}` by pack `{second}`; an entry has one owner"
    )]
    ClaimedTwice {
        /// The list.
        list: ListKind,
        /// The name offered first.
        name: Name,
        /// The pack that offers it first.
        first: String,
        /// The name offered again.
        again: Name,
        /// The pack that offers it again.
        second: String,
    },
    /// A component's description contradicts itself, or it cannot be stored.
    #[error("component `{component}` of pack `{pack}`: {reason}")]
    BadComponent {
        /// The pack.
        pack: String,
        /// The component.
        component: Name,
        /// The problem.
        reason: String,
    },
    /// Stored bytes would be lost.
    #[error("component `{component}` would go from {} to {} and lose {}; register an upgrade function, or allow shrinking", shape_text(*.from), shape_text(*.to), .cut.join(", "))]
    Shrinks {
        /// The component.
        component: Name,
        /// The registered shape.
        from: ComponentShape,
        /// The offered shape.
        to: ComponentShape,
        /// The parts that would be lost.
        cut: Vec<String>,
    },
    /// Fixed size would become variable, or the reverse.
    #[error("component `{component}` would go from {} to {}; only an upgrade function of the host can carry it over", shape_text(*.from), shape_text(*.to))]
    KindChanges {
        /// The component.
        component: Name,
        /// The registered shape.
        from: ComponentShape,
        /// The offered shape.
        to: ComponentShape,
    },
    /// A block cannot be registered as offered.
    #[error("block `{block}` of pack `{pack}`: {reason}")]
    BadBlock {
        /// The pack.
        pack: String,
        /// The block.
        block: Name,
        /// The problem.
        reason: String,
    },
    /// The policy requires every pack that the world knows.
    #[error(
        "pack `{pack}` {version} is missing, and the policy refuses to open without it; {entries} of its names are in the world"
    )]
    PackMissing {
        /// The pack.
        pack: String,
        /// The recorded version.
        version: String,
        /// The number of its names in the world.
        entries: usize,
    },
    /// The placeholder of the policy is not a block.
    #[error("the placeholder `{placeholder}` is neither in the world nor offered; choose a block that is")]
    PlaceholderUnknown {
        /// The placeholder.
        placeholder: Name,
    },
    /// A list would overflow.
    #[error("pack `{pack}` brings {found} new {}; the list has room for {room}", .list.noun(*.found))]
    Full {
        /// The pack.
        pack: String,
        /// The list.
        list: ListKind,
        /// The number of new names.
        found: usize,
        /// The number of names that fit.
        room: usize,
    },
}

impl Plan {
    /// All actions, in the order of the report.
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// The refusals.
    pub fn refusals(&self) -> impl Iterator<Item = &Refusal> {
        self.actions.iter().filter_map(|action| match &action.what {
            What::Refused(refusal) => Some(refusal),
            _ => None,
        })
    }

    /// Whether there are no refusals.
    pub fn is_accepted(&self) -> bool {
        self.refusals().next().is_none()
    }

    /// Whether applying it changes nothing.
    pub fn is_unchanged(&self) -> bool {
        self.is_accepted() && self.changes.is_empty()
    }

    /// For each block of a missing pack, the block to display instead. Empty unless the policy names one.
    ///
    /// ```
    /// use cg_registry::{Catalog, MissingPacks, PackManifest, Policy, reconcile};
    /// let pack = |name: &str, block| {
    ///     let blocks = format!(r#"[{{ "name": "{name}:{block}" }}]"#);
    ///     PackManifest::from_json(&format!(
    ///         r#"{{ "pack": "{name}", "version": "1", "namespaces": ["{name}"], "blocks": {blocks} }}"#
    ///     ))
    /// };
    /// let (game, pipes) = (pack("game", "crate")?, pack("pipes", "pipe")?);
    /// let mut catalog = Catalog::new();
    /// reconcile(&catalog, &[game.clone(), pipes], &Policy::default()).apply(&mut catalog)?;
    /// // The pack of pipes is not installed any more.
    /// let missing = MissingPacks::Placeholder("game:crate".parse()?);
    /// let plan = reconcile(&catalog, &[game], &Policy { missing, ..Policy::default() });
    /// let [pipe, game_crate] = ["pipes:pipe", "game:crate"].map(|name| catalog.block_id(name).expect("is known"));
    /// assert_eq!(plan.stand_ins(), [(pipe, game_crate)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stand_ins(&self) -> &[(BlockId, BlockId)] {
        &self.stand_ins
    }

    /// The schema generation before and after.
    pub const fn generations(&self) -> (u32, u32) {
        (self.generation_before, self.generation_after)
    }

    /// Changes the catalog as planned and returns the new entries, which the store must write. From then on
    /// [`Catalog::register`] refuses a state of a block that the packs do not declare, though they declare others of it.
    ///
    /// # Errors
    /// [`RegistryError::Refused`] for a plan that is not accepted, [`RegistryError::Stale`] if the catalog has grown
    /// since. Then the catalog is unchanged.
    pub fn apply(&self, catalog: &mut Catalog) -> Result<Changes, RegistryError> {
        if !self.is_accepted() {
            let reasons: Vec<_> = self.refusals().map(ToString::to_string).collect();
            return Err(RegistryError::Refused(reasons.join("; ")));
        }
        catalog.apply(&self.changes)?;
        catalog.declared = Arc::clone(&self.declared);
        Ok(self.changes.clone())
    }
}

impl Action {
    pub(super) const fn new(what: What, cost: Cost) -> Self {
        Self { what, cost, reversible: true }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Free => "free",
            Self::RewriteOnLoad => "on load",
            Self::Refused => "REFUSED",
        })
    }
}
