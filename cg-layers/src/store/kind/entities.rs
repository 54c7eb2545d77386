//! Entities, as an overlay stores them.

use cg_format::entity::Entity;
use cg_format::{DecodeError, EntityId, Space, key};
use cg_store::Error;
use cg_store::layer::kind::Entities;
use cg_store::layer::{Base, Found, upgrade_entity};

use super::overlay_kind::{OverlayKind, damaged, decode_whole};
use crate::store::lease_view::LeaseView;
use crate::store::row::Row;

impl OverlayKind for Entities {
    const SPACE: Space = Space::Entity;
    const HAS_SCHEMA: bool = true;

    fn row_key(lease: u64, id: &EntityId) -> Vec<u8> {
        key::overlay_entity(lease, *id).to_vec()
    }

    fn key_of(row_key: &[u8]) -> Result<EntityId, DecodeError> {
        key::decode_overlay_entity(row_key).map(|(_, id)| id)
    }

    fn decode<S: Base>(
        rows: &LeaseView<'_, S>,
        id: &EntityId,
        row_key: &[u8],
        row: &[u8],
    ) -> Result<Row<Entity>, Error> {
        let store = rows.store;
        decode_whole::<Self>(id, row_key, row, |value| {
            let entity = Entity::decode(value).map_err(|problem| damaged::<Self>(id, row_key, problem))?;
            upgrade_entity(&*store.catalog()?, &store.base.upgrades(), *id, entity)
        })
    }

    fn encode(entity: &Entity, out: &mut Vec<u8>) {
        entity.encode(out);
    }

    fn find<S: Base>(base: &S, id: &EntityId) -> Result<Found<Entity>, Error> {
        base.find_entity(*id)
    }
}
