//! Entities, and the references between them and the chunks, from both ends.

use std::collections::BTreeMap;

use cg_format::entity::Owner;
use cg_format::key::{self, Family};
use cg_format::{ChunkAt, EntityId, Space};
use cg_registry::{Catalog, ListKind};

use super::Verifier;

impl Verifier<'_> {
    /// A chunk refers to an entity exactly if that entity's owner is the chunk.
    pub(super) fn references(&mut self, catalog: &Catalog, referrers: &BTreeMap<EntityId, ChunkAt>) {
        let entities = std::mem::take(&mut self.entities);
        for (id, at) in referrers {
            if !entities.contains_key(id) {
                let what = format!("{at} refers to entity {id}, which is not stored or damaged");
                self.find(Family::ChunkL0, Some(Space::ChunkL0), &key::chunk(*at), what);
            }
        }
        let kinds = catalog.list(ListKind::Entities).len() as u64;
        for (id, entity) in &entities {
            let referrer = referrers.get(id).copied();
            let owner = match &entity.owner {
                Owner::Chunk(at) => Some(*at),
                Owner::Detached(_) => None,
            };
            let row = key::entity(*id);
            if owner != referrer {
                let name = |at: Option<ChunkAt>| at.map_or("no chunk".into(), |at| at.to_string());
                let what = format!("its owner is {}, but {} refers to it", name(owner), name(referrer));
                self.find(Family::Entity, Some(Space::Entity), &row, what);
            }
            if entity.kind.get() >= kinds {
                let what = format!("entity type {} was never issued", entity.kind.get());
                self.find(Family::Entity, Some(Space::Entity), &row, what);
            }
        }
    }
}
