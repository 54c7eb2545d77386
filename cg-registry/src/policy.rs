//! The choices of a host where several outcomes are possible.

use std::collections::BTreeSet;

use crate::Name;

/// The choices of a host. The defaults are the careful ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// The action for a pack that the world was opened with before and that is not offered now.
    pub missing: MissingPacks,
    /// Whether a component may become shorter or lose fields, so that stored bytes are lost permanently. By default
    /// that is refused unless the host has an upgrade function.
    pub allow_shrink: bool,
    /// Whether a pack may take over the namespace of another one that is not offered. By default a namespace belongs to
    /// the first pack that claimed it.
    pub allow_takeover: bool,
    /// The components, by name, whose instances the host can convert itself; see
    /// [`UpgradeFunctions::converted`](crate::UpgradeFunctions::converted).
    pub conversions: BTreeSet<String>,
}

/// The action for the blocks of a missing pack. Ids and stored bytes stay in every case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum MissingPacks {
    /// The blocks keep their names. The host decides how to display them.
    #[default]
    Keep,
    /// The world does not open.
    Refuse,
    /// The plan maps each of the blocks to this one, which is displayed instead.
    Placeholder(Name),
}
