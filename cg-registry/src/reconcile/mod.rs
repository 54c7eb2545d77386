//! Compares a world with the offers of packs and plans the consequences.

mod claims;
mod plan;
mod report;
mod work;

use crate::catalog::Catalog;
use crate::manifest::PackManifest;

pub use crate::policy::{MissingPacks, Policy};
pub use plan::{Action, Cost, Plan, Refusal, What};

/// Plans the opening of a world with some packs. Changes nothing and reads only its arguments.
///
/// New names get ids in the order of the packs and, within a pack, of its manifest. An impossible change is refused
/// with its reason. One refusal makes the whole plan refused.
///
/// ```
/// use cg_registry::{Catalog, PackManifest, Policy, reconcile};
/// let pack = PackManifest::from_json(r#"{
///     "pack": "game", "version": "1", "namespaces": ["", "game"],
///     "blocks": [{ "name": ":air", "opaque": false }, { "name": "game:stone" }]
/// }"#)?;
/// let mut catalog = Catalog::new();
/// let plan = reconcile(&catalog, &[pack], &Policy::default());
/// assert_eq!(plan.report(), "\
/// accepted: no stored chunk is touched
///   free     pack `game` 1 is new
///   free     pack `game` registers 2 blocks: `:air`, `game:stone`; ids 0 to 1
/// ");
/// plan.apply(&mut catalog)?;
/// assert!(catalog.block_id("game:stone").is_some());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub fn reconcile(stored: &Catalog, offered: &[PackManifest], policy: &Policy) -> Plan {
    work::Work::new(stored, offered, policy).run()
}

#[cfg(test)]
mod tests;
