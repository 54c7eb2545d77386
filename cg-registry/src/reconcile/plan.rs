//! What would happen if a world were opened with some packs.

use std::fmt;

use cg_format::{BlockId, ComponentShape};

use crate::catalog::Catalog;
use crate::changes::Changes;
use crate::kind::ListKind;
use crate::manifest::HexBytes;
use crate::schema::shape_text;
use crate::{Conversion, Name, RegistryError};

/// The result of comparing a world with what packs offer: every consequence, and whether it can be had.
///
/// A plan is only words and numbers until [`Plan::apply`] is called; printing it is the dry run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub(super) actions: Vec<Action>,
    pub(super) changes: Changes,
    pub(super) stand_ins: Vec<(BlockId, BlockId)>,
    pub(super) generation_before: u32,
    pub(super) generation_after: u32,
}

/// One consequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// What happens.
    pub what: What,
    /// What it costs.
    pub cost: Cost,
    /// Whether every value that is stored now can still be had by opening the world with the earlier packs.
    pub reversible: bool,
}

/// What an action costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cost {
    /// A few bytes in the registry; no chunk is touched.
    Free,
    /// Each stored chunk that is concerned is converted when it is loaded next.
    RewriteOnLoad,
    /// It cannot be had, and so the whole plan cannot.
    Refused,
}

/// What an action does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// A pack comes for the first time.
    PackAdded {
        /// The pack.
        pack: String,
        /// Its version.
        version: String,
    },
    /// A pack comes with another version, or with other namespaces.
    PackUpdated {
        /// The pack.
        pack: String,
        /// The version remembered.
        from: String,
        /// The version offered.
        to: String,
    },
    /// A pack that was gone is back.
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
        /// The version remembered.
        version: String,
        /// How many names of each list are its own.
        entries: Vec<(ListKind, usize)>,
        /// The block that is shown in place of its blocks, if the policy names one.
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
    /// An entry is found by a second name.
    Renamed {
        /// The list.
        list: ListKind,
        /// The entry's id, which stays.
        id: u64,
        /// The name known so far.
        old: Name,
        /// The name added.
        new: Name,
    },
    /// Names of a pack that the world has and that the pack no longer offers. Their ids stay.
    NoLongerOffered {
        /// The pack.
        pack: String,
        /// The list.
        list: ListKind,
        /// The names.
        names: Vec<Name>,
    },
    /// A component's new instances hold something else, or its fields are described for the first time.
    ComponentDescribed {
        /// The component.
        component: Name,
        /// The default from now on.
        default_bytes: HexBytes,
    },
    /// Another registration of a component takes over.
    ComponentReplaced {
        /// The registration so far.
        old: Name,
        /// The new one.
        new: Name,
        /// The shape so far.
        from: ComponentShape,
        /// The new shape.
        to: ComponentShape,
        /// How stored instances come over.
        by: Conversion,
        /// What they lose.
        cut: Vec<String>,
        /// How many block kinds have the component.
        blocks: usize,
    },
    /// A block gains or loses components.
    BlockChanged {
        /// The block.
        block: Name,
        /// The components that it gains.
        gains: Vec<Name>,
        /// The components that it loses; their bytes are kept.
        loses: Vec<Name>,
    },
    /// A block begins or ceases to hide what is behind it.
    OpacityChanged {
        /// The block.
        block: Name,
        /// Whether it does from now on.
        opaque: bool,
    },
    /// What cannot be had.
    Refused(Refusal),
}

/// Why something cannot be had, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// One pack is offered twice.
    #[error("pack `{pack}` is offered twice; remove one of them")]
    PackTwice {
        /// The pack.
        pack: String,
    },
    /// A pack's name, version or namespaces are longer than a record takes, or no namespace.
    #[error("pack {pack:?} cannot be remembered: {reason}")]
    PackMalformed {
        /// The pack.
        pack: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Two packs say that a namespace is their own.
    #[error(
        "`{namespace}` is the namespace of pack `{owner}`, and pack `{claimant}` claims it too; remove one of them"
    )]
    NamespaceTaken {
        /// The namespace.
        namespace: String,
        /// The pack that has it.
        owner: String,
        /// The pack that wants it.
        claimant: String,
    },
    /// The namespace belongs to a pack that is not offered.
    #[error(
        "`{namespace}` is the namespace of pack `{owner}`, which is not offered; pack `{claimant}` may take it over only if the policy allows takeovers"
    )]
    NamespaceOwned {
        /// The namespace.
        namespace: String,
        /// The pack that has it.
        owner: String,
        /// The pack that wants it.
        claimant: String,
    },
    /// A pack offers a name outside its namespaces, or one that only the registry may make.
    #[error("pack `{pack}` offers {} `{name}`, which is in none of its namespaces", .list.noun(1))]
    ForeignName {
        /// The pack.
        pack: String,
        /// The list.
        list: ListKind,
        /// The name.
        name: Name,
    },
    /// A name that contains the registry's `@`.
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
    /// The new name of a rename is an entry of its own.
    #[error(
        "{list} `{old}` cannot be renamed to `{new}`: the world has both, with ids {old_id} and {new_id}"
    )]
    RenameTaken {
        /// The list.
        list: ListKind,
        /// The old name.
        old: Name,
        /// The new name.
        new: Name,
        /// The old name's id.
        old_id: u64,
        /// The new name's id.
        new_id: u64,
    },
    /// A component's description contradicts itself or its type cannot be stored.
    #[error("component `{component}` of pack `{pack}`: {reason}")]
    BadComponent {
        /// The pack.
        pack: String,
        /// The component.
        component: Name,
        /// What is wrong.
        reason: String,
    },
    /// Stored bytes would be cut off.
    #[error("component `{component}` would go from {} to {} and lose {}; register an upgrade function, or allow shrinking", shape_text(*.from), shape_text(*.to), .cut.join(", "))]
    Shrinks {
        /// The component.
        component: Name,
        /// The registered shape.
        from: ComponentShape,
        /// The offered shape.
        to: ComponentShape,
        /// What would be lost.
        cut: Vec<String>,
    },
    /// Fixed size would become variable, or the other way round.
    #[error("component `{component}` would go from {} to {}; only an upgrade function of the host can carry it over", shape_text(*.from), shape_text(*.to))]
    KindChanges {
        /// The component.
        component: Name,
        /// The registered shape.
        from: ComponentShape,
        /// The offered shape.
        to: ComponentShape,
    },
    /// A block that cannot be registered as it is offered.
    #[error("block `{block}` of pack `{pack}`: {reason}")]
    BadBlock {
        /// The pack.
        pack: String,
        /// The block.
        block: Name,
        /// What is wrong.
        reason: String,
    },
    /// The policy wants every pack that the world knows.
    #[error(
        "pack `{pack}` {version} is missing, and the policy refuses to open without it; {entries} of its names are in the world"
    )]
    PackMissing {
        /// The pack.
        pack: String,
        /// The version remembered.
        version: String,
        /// How many names it has in the world.
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
        /// How many names are new.
        found: usize,
        /// How many fit.
        room: usize,
    },
}

impl Plan {
    /// Everything that happens, in the order of the report.
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// What stands in the way.
    pub fn refusals(&self) -> impl Iterator<Item = &Refusal> {
        self.actions.iter().filter_map(|action| match &action.what {
            What::Refused(refusal) => Some(refusal),
            _ => None,
        })
    }

    /// Whether nothing stands in the way.
    pub fn is_accepted(&self) -> bool {
        self.refusals().next().is_none()
    }

    /// Whether applying it changes nothing.
    pub fn is_unchanged(&self) -> bool {
        self.is_accepted() && self.changes.is_empty()
    }

    /// For each block of a missing pack, the block to be shown in its place. Empty unless the policy names one.
    pub fn stand_ins(&self) -> &[(BlockId, BlockId)] {
        &self.stand_ins
    }

    /// The schema generation before and after.
    pub const fn generations(&self) -> (u32, u32) {
        (self.generation_before, self.generation_after)
    }

    /// Brings the catalog to what the plan describes and gives back what was added, for the store to write.
    ///
    /// # Errors
    /// [`RegistryError::Refused`] for a plan that is not accepted, [`RegistryError::Stale`] if the catalog has
    /// grown since. The catalog is unchanged then.
    pub fn apply(&self, catalog: &mut Catalog) -> Result<Changes, RegistryError> {
        if !self.is_accepted() {
            let reasons: Vec<_> = self.refusals().map(ToString::to_string).collect();
            return Err(RegistryError::Refused(reasons.join("; ")));
        }
        catalog.apply(&self.changes)?;
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
