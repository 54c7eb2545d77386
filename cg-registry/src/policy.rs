//! What a host wants done where there is more than one answer.

use std::collections::BTreeSet;

use crate::Name;

/// The choices of a host, each with the careful answer as default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// What to do about a pack that the world was opened with before and that is not offered now.
    pub missing: MissingPacks,
    /// Whether a component may get shorter, or lose fields, although stored bytes are cut off for good.
    /// By default that is refused unless the host has an upgrade function.
    pub allow_shrink: bool,
    /// Whether a pack may take over the namespace of another one that is not offered. By default a namespace
    /// belongs to the pack that had it first.
    pub allow_takeover: bool,
    /// The components, by name, whose instances the host can convert itself; see
    /// [`UpgradeFunctions::converted`](crate::UpgradeFunctions::converted).
    pub conversions: BTreeSet<String>,
}

/// What becomes of the blocks of a pack that is gone. Ids and stored bytes stay as they are in every case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum MissingPacks {
    /// The blocks stay under their names; the host shows what it likes.
    #[default]
    Keep,
    /// The world does not open.
    Refuse,
    /// The plan maps each of the blocks to this one, to be shown in its place.
    Placeholder(Name),
}
