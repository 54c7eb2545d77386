//! Entities come back to where they were, each once, wherever they went meanwhile.

use std::sync::Arc;

use cg_format::entity::{Entity, EntityPos, Owner};
use cg_format::{BlockBox, BlockId, BlockPos, ChunkAt, ChunkPos, ChunkSource, Editor, EntityId, Lookup};
use cg_registry::Catalog;
use cg_snapshot::memory::Memory;
use cg_snapshot::{RestoreJob, RestoreOptions, RestoreReport, Snapshot};

use super::made::{arena, captured, catalog, id, other_catalog};

fn at(catalog: &Catalog, x: i64) -> ChunkAt {
    ChunkAt::new(arena(catalog), ChunkPos::constant(x, 0, 0))
}

fn sheep(catalog: &Catalog, at: ChunkAt) -> Entity {
    let kind = catalog.entity_type("game:sheep").expect("registered");
    let position = EntityPos::new(at.dimension, at.pos.min_block(), [0.5; 3]).expect("a position");
    Entity::new(kind, Owner::Chunk(at), position)
}

fn put(host: &mut Memory, id: EntityId, entity: Entity) {
    host.put_entity(id, entity).unwrap_or_else(|never| match never {});
}

/// Two chunks of stone in a row.
fn row() -> BlockBox {
    BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(31, 15, 15))
}

fn meadow(catalog: &Catalog) -> Memory {
    let mut host = Memory::new(catalog);
    host.fill(arena(catalog), row(), BlockId::new(1)).expect("known");
    host
}

fn restore(
    host: &mut Memory,
    catalog: &Catalog,
    snapshot: Snapshot,
    options: RestoreOptions,
) -> RestoreReport {
    let mut job = RestoreJob::new(Arc::new(snapshot), catalog, options).expect("it fits");
    job.run(host, &mut |_| {}).expect("memory takes all")
}

fn references(host: &Memory, at: ChunkAt) -> Vec<EntityId> {
    let chunk = host.lookup(at).map_or_else(|never| match never {}, Lookup::here);
    chunk.map_or_else(Vec::new, |chunk| chunk.entities().to_vec())
}

#[test]
fn who_wandered_into_the_next_chunk_is_in_one_chunk_afterwards() {
    let catalog = catalog();
    for (from, to) in [(0, 1), (1, 0)] {
        let mut host = meadow(&catalog);
        put(&mut host, id(1), sheep(&catalog, at(&catalog, from)));
        let template = captured(&host, row());
        put(&mut host, id(1), sheep(&catalog, at(&catalog, to)));
        // The chunk that it left and the one that it is in are saved both.
        for x in [3, 20] {
            host.set_block(arena(&catalog), BlockPos::new(x, 3, 3), BlockId::new(2)).expect("known");
        }
        let report = restore(&mut host, &catalog, template.clone(), RestoreOptions::default());
        assert_eq!((report.changed, report.entities_put, report.entities_deleted), (2, 1, 0));
        assert_eq!(references(&host, at(&catalog, from)), [id(1)], "from {from} to {to}");
        assert_eq!(references(&host, at(&catalog, to)), [], "from {from} to {to}");
        assert_eq!(captured(&host, row()), template);
    }
}

#[test]
fn elsewhere_they_are_others_also_where_the_names_mean_other_ids() {
    let (home, there) = (catalog(), other_catalog());
    let mut host = meadow(&home);
    put(&mut host, id(1), sheep(&home, at(&home, 0)));
    let template = captured(&host, row());

    let mut host = Memory::new(&there);
    let report = restore(&mut host, &there, template.clone(), RestoreOptions::default());
    assert_eq!((report.created, report.entities_put), (2, 1));
    assert_eq!(references(&host, at(&there, 0)), [id(1)], "its own place, though by another number");

    let options = RestoreOptions { dimension: there.dimension("mod:moon"), ..RestoreOptions::default() };
    let report = restore(&mut host, &there, template.clone(), options);
    assert_eq!((report.created, report.entities_put), (2, 1));
    assert_eq!(references(&host, at(&there, 0)), [id(1)], "it was not taken away from there");
    assert_eq!(host.entities().len(), 2);
    let again = restore(&mut host, &there, template, options);
    assert_eq!((again.entities_put, host.entities().len()), (0, 2), "the same other one");
}
