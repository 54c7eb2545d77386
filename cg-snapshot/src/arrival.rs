//! What came along when a snapshot arrived where other ids are used.

use std::collections::BTreeMap;

/// What could not come along when a snapshot arrived in another registry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArrivalReport {
    /// Component data that was left behind, as instances of each component: there it has another shape, or the block does
    /// not have it.
    pub components_left: BTreeMap<String, u64>,
    /// Whether ids were changed at all.
    pub is_remapped: bool,
}
