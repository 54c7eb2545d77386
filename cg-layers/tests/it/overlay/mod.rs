//! Overlays over worlds and over each other, in memory and on disk.

/// Properties, objects and records of a base that has another's.
macro_rules! kept_of {
    ($below:ident) => {
        fn has_origin(&self, at: ChunkAt, origin: cg_format::overlay::Origin) -> Result<bool, Error> {
            self.$below.has_origin(at, origin)
        }

        fn find_property(&self, property: &Property) -> Result<cg_layers::Found<Vec<u8>>, Error> {
            self.$below.find_property(property)
        }

        fn named_properties(&self, prefix: &str) -> Result<std::collections::BTreeMap<Name, Vec<u8>>, Error> {
            self.$below.named_properties(prefix)
        }

        fn find_object(
            &self,
            key: &cg_store::objects::ObjectKey,
        ) -> Result<cg_layers::Found<cg_store::objects::StoredObject>, Error> {
            self.$below.find_object(key)
        }

        fn list_objects(
            &self,
            prefix: &[u8],
            position: Option<&cg_store::objects::ObjectKey>,
            max_count: usize,
        ) -> Result<cg_store::objects::ObjectPage, Error> {
            self.$below.list_objects(prefix, position, max_count)
        }

        fn find_record(
            &self,
            id: cg_format::RecordId,
        ) -> Result<cg_layers::Found<std::sync::Arc<cg_format::record::Record>>, Error> {
            self.$below.find_record(id)
        }

        fn record_shape(&self) -> cg_store::records::RecordShape {
            self.$below.record_shape()
        }

        fn records_in(
            &self,
            query: &cg_store::records::RecordQuery,
        ) -> Result<Vec<(cg_format::RecordId, cg_format::record::Record)>, Error> {
            self.$below.records_in(query)
        }
    };
}

mod arena_ticks;
mod arenas;
mod cells;
mod damage;
mod drafts;
mod failed;
mod history;
mod meanwhile;
mod merge;
mod model;
mod properties;
mod rebase;
mod refuse;
mod stopped_merge;
mod submit;
mod tick_thread;
mod values;
mod verify;

use cg_layers::{Arenas, Base, Difference, Overlay};
use cg_store::engine::{MemEngine, RocksEngine};
use cg_store::prelude::*;
use cg_tiering::GameTick;

use crate::fixture::{Disk, Ids, filled, in_memory, marked, options, save, uuid};

/// A template: chunks 0 to 3 of one row, an entity in chunk 0.
pub(crate) fn template() -> (World, Ids) {
    let world = in_memory();
    let ids = Ids::register(&world);
    save(&world, (0..4).map(|x| (ids.at(x, 0, 0), marked(&world, &ids, x as u16))));
    put_cow(&world, ids.cow_in(ids.at(0, 0, 0)));
    (world, ids)
}

pub(crate) fn put_cow(world: &World, cow: Entity) {
    let put = world.transaction(|tx| {
        tx.put_entity(uuid(1), cow);
        Ok::<_, Error>(())
    });
    put.expect("puts");
}

pub(crate) fn over<S: Base>(base: &S) -> Overlay<S> {
    Overlay::in_memory(base.clone(), &options()).expect("a base like any other")
}

pub(crate) fn on_disk<S: Base>(disk: &Disk, base: &S) -> Overlay<S> {
    Overlay::create(disk.root().join("arena"), base.clone(), &options()).expect("an empty directory")
}

#[track_caller]
pub(crate) fn write<S: Base>(
    overlay: &Overlay<S>,
    chunks: impl IntoIterator<Item = (ChunkAt, Option<Chunk>)>,
) {
    let written = overlay.transaction(|tx| {
        for (at, chunk) in chunks {
            match chunk {
                Some(chunk) => tx.save(at, chunk),
                None => tx.delete(at),
            }
        }
        Ok::<_, Error>(())
    });
    written.expect("writes");
}

fn reads_fall_through(overlay: &Overlay<World>, ids: &Ids) {
    let base = overlay.base().clone();
    let at = |x| ids.at(x, 0, 0);
    write(
        overlay,
        [(at(1), Some(filled(&base, ids.glass))), (at(2), None), (at(9), Some(filled(&base, ids.stone)))],
    );
    let shown = overlay.load_many(&[at(0), at(1), at(2), at(9), at(10)]);
    let shown: Vec<_> = shown.into_iter().map(|chunk| chunk.expect("loads")).collect();
    assert_eq!(shown[0], base.load(at(0)).expect("loads"), "what was not written is the base's");
    assert_eq!(shown[1].as_deref(), Some(&filled(&base, ids.glass)));
    assert_eq!((&shown[2], &shown[4]), (&None, &None));
    assert_eq!(shown[3].as_deref(), Some(&filled(&base, ids.stone)));
    let diff = overlay.diff().expect("compares");
    let expected = [(at(1), Difference::Changed), (at(2), Difference::Deleted), (at(9), Difference::Added)];
    assert_eq!(diff.chunks, expected);
    assert_eq!(
        base.load(at(1)).expect("loads").as_deref(),
        Some(&marked(&base, ids, 1)),
        "the base is as it was"
    );
    overlay.reset().expect("resets");
    assert!(overlay.diff().expect("compares").is_empty());
    assert_eq!(overlay.load(at(2)).expect("loads"), base.load(at(2)).expect("loads"));
    // What is equal again is no difference.
    write(overlay, [(at(1), None)]);
    write(overlay, [(at(1), Some(marked(&base, ids, 1)))]);
    assert!(overlay.diff().expect("compares").is_empty());
}

fn entities_follow(overlay: &Overlay<World>, ids: &Ids) {
    let base = overlay.base().clone();
    let (from, to) = (ids.at(0, 0, 0), ids.at(3, 0, 0));
    let moved = overlay.transaction(|tx| {
        tx.put_entity(uuid(2), ids.cow_in(from));
        tx.move_entity(uuid(1), Owner::Chunk(to))
    });
    assert!(moved.expect("moves"));
    assert_eq!(overlay.load(from).expect("loads").expect("is stored").entities(), [uuid(2)]);
    assert_eq!(overlay.load(to).expect("loads").expect("is stored").entities(), [uuid(1)]);
    assert_eq!(overlay.entity(uuid(1)).expect("reads").map(|cow| cow.owner), Some(Owner::Chunk(to)));
    let owners = [(uuid(1), Some(Owner::Chunk(from))), (uuid(2), None)];
    for (id, owner) in owners {
        assert_eq!(
            base.entity(id).expect("reads").map(|cow| cow.owner),
            owner,
            "the base's are as they were"
        );
    }
    write(overlay, [(to, None)]);
    assert_eq!(overlay.entity(uuid(1)).expect("reads"), None, "it went with its chunk");
    let diff = overlay.diff().expect("compares");
    assert_eq!(diff.entities, [(uuid(1), Difference::Deleted), (uuid(2), Difference::Added)]);
    let doubled = overlay.transaction(|tx| {
        let mut chunk = filled(&base, ids.air);
        chunk.add_entity(uuid(2));
        tx.save(ids.at(1, 0, 0), chunk);
        Ok::<_, Error>(())
    });
    assert!(matches!(doubled, Err(Error::EntityOwned { id, owner }) if (id, owner) == (uuid(2), from)));
    overlay.reset().expect("resets");
    assert_eq!(overlay.entity(uuid(1)).expect("reads"), base.entity(uuid(1)).expect("reads"));
    assert_eq!(overlay.entity(uuid(2)).expect("reads"), None);
}

macro_rules! in_memory_and_on_disk {
    ($($name:ident)*) => {
        mod memory {
            $(#[test] fn $name() {
                let (base, ids) = super::template();
                super::$name(&super::over(&base), &ids);
            })*
        }
        mod disk {
            $(#[test] fn $name() {
                let (base, ids) = super::template();
                let disk = super::Disk::new();
                super::$name(&super::on_disk(&disk, &base), &ids);
            })*
        }
    };
}

in_memory_and_on_disk! { reads_fall_through entities_follow }

#[test]
fn an_overlay_over_an_overlay_sees_through_both() {
    let (base, ids) = template();
    let lower = over(&base);
    let upper = over(&lower);
    let at = |x| ids.at(x, 0, 0);
    write(&lower, [(at(1), None), (at(2), Some(filled(&base, ids.stone)))]);
    write(&upper, [(at(2), None), (at(1), Some(filled(&base, ids.glass)))]);
    assert_eq!(upper.load(at(0)).expect("loads"), base.load(at(0)).expect("loads"));
    assert_eq!(upper.load(at(1)).expect("loads").as_deref(), Some(&filled(&base, ids.glass)));
    assert_eq!(upper.load(at(2)).expect("loads"), None);
    assert_eq!(lower.load(at(1)).expect("loads"), None);
    let diff = upper.diff().expect("compares");
    assert_eq!(diff.chunks, [(at(1), Difference::Added), (at(2), Difference::Deleted)]);
}

#[test]
fn a_hundred_arenas_cost_one_template() {
    let (base, ids) = template();
    base.cache().clear();
    let before = base.metrics().stats;
    let arenas = Arenas::in_memory(base.clone(), &options()).expect("a base");
    let leased: Vec<_> =
        (0..100).map(|n| arenas.lease(&format!("{n}"), GameTick::new(n)).expect("leases")).collect();
    let mut in_memory = None;
    for arena in &leased {
        for x in 0..4 {
            arena.load(ids.at(x, 0, 0)).expect("loads").expect("the template has it");
        }
        write(arena, [(ids.at(0, 0, 0), Some(filled(&base, ids.glass))), (ids.at(5, 0, 0), None)]);
        let now = base.cache().stats().chunks;
        assert_eq!(*in_memory.get_or_insert(now), now, "the template's memory does not grow with the arenas");
    }
    let work = base.metrics().stats - before;
    assert_eq!(work.chunks_decoded, 4, "each of the template's chunks once, for all arenas");
    let rows = |family: cg_format::key::Family| {
        let usage = arenas.usage().expect("counts");
        usage.families.into_iter().find(|usage| usage.family == family).expect("every family").row_count
    };
    // The chunk, and the entity that went with it; a deletion of what is not there writes nothing.
    assert_eq!((rows(cg_format::key::Family::ChunkL0), rows(cg_format::key::Family::Entity)), (100, 100));
    assert_eq!(arenas.stats().chunks_decoded, 0, "what was written is in memory");
}

#[test]
fn a_reset_writes_one_row_however_much_was_written() {
    let (base, ids) = template();
    let overlay = over(&base);
    for count in [1, 500] {
        write(&overlay, (0..count).map(|x| (ids.at(x, 9, 0), Some(filled(&base, ids.glass)))));
        let engine = overlay.arenas();
        let (commits, rows) = (engine.engine().last_commit().get(), world_meta_rows(&engine));
        overlay.reset().expect("resets");
        assert_eq!(engine.engine().last_commit().get(), commits + 1, "one batch");
        assert_eq!(world_meta_rows(&engine), rows, "which replaces a row");
        assert_eq!(overlay.load(ids.at(0, 9, 0)).expect("loads"), None);
    }
    assert_eq!(overlay.arenas().sweep(300).expect("sweeps"), 300);
    assert_eq!(overlay.arenas().sweep(300).expect("sweeps"), 201);
    assert_eq!(overlay.arenas().sweep(300).expect("sweeps"), 0);
    assert_eq!(overlay.stats().rows_swept, 501);
}

fn world_meta_rows<S: Base>(arenas: &Arenas<S>) -> u64 {
    arenas.usage().expect("counts").families[0].row_count
}

#[test]
fn reads_are_counted_where_they_were_answered() {
    let (base, ids) = template();
    let overlay = over(&base);
    write(&overlay, [(ids.at(0, 0, 0), Some(filled(&base, ids.glass))), (ids.at(1, 0, 0), None)]);
    let before = overlay.stats();
    for (x, is_stored) in [(0, true), (1, false), (2, true), (3, true), (9, false)] {
        assert_eq!(overlay.load(ids.at(x, 0, 0)).expect("loads").is_some(), is_stored, "{x}");
    }
    let now = overlay.stats();
    let counted = (now.reads_here - before.reads_here, now.reads_below - before.reads_below);
    assert_eq!(counted, (2, 3), "a deletion is the overlay's own");
}
