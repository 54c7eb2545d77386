//! Merges that have written the base and could not empty the overlay. The overlay is edited, and merged again.

use cg_format::RecordId;
use cg_format::record::Record;
use cg_registry::Name;
use cg_store::engine::EngineError;
use cg_store::objects::Object;

use super::*;
use crate::fixture::assert_sound;
use crate::surviving::{Fuse, Surviving};

fn record(ids: &Ids, kind: &str) -> Record {
    let position = EntityPos::new(ids.overworld, BlockPos::new(8, 0, 0), [0.5; 3]).expect("a point");
    Record::new(position, kind, 1, Vec::new()).expect("short")
}

fn id(n: u8) -> RecordId {
    RecordId::from_bytes([n; 16])
}

fn rule(n: u8) -> Property {
    Property::Named(Name::new(format!("game:rule_{n}")).expect("a name"))
}

const OBJECTS: [&str; 3] = ["changed", "deleted", "raised"];

/// A template with values of all kinds: the second of each is to be deleted.
fn furnished() -> (World, Ids) {
    let (base, ids) = template();
    let put = base.transaction(|tx| {
        for n in 0..2 {
            tx.put_object(OBJECTS[usize::from(n)], [n])?;
            tx.put_record(id(n), record(&ids, "sign"));
            tx.set_property(rule(n), Some(vec![n]));
        }
        Ok::<_, Error>(())
    });
    put.expect("puts");
    (base, ids)
}

/// Changes the first of each kind, deletes the second and adds the third.
fn edit(overlay: &Overlay<World>, ids: &Ids) {
    let edited = overlay.transaction(|tx| {
        tx.set_block(ids.overworld, BlockPos::new(1, 1, 1), ids.glass)?;
        tx.delete(ids.at(1, 0, 0));
        tx.move_entity(uuid(1), Owner::Chunk(ids.at(2, 0, 0)))?;
        tx.put_entity(uuid(2), ids.cow_in(ids.at(3, 0, 0)));
        tx.put_object(OBJECTS[0], *b"glass")?;
        tx.delete_object(OBJECTS[1])?;
        tx.put_object(OBJECTS[2], *b"new")?;
        tx.put_record(id(0), record(ids, "grave"));
        tx.delete_record(id(1));
        tx.put_record(id(2), record(ids, "flag"));
        tx.set_property(rule(0), Some(vec![9]));
        tx.set_property(rule(1), None);
        tx.set_property(rule(2), Some(vec![7]));
        Ok::<_, Error>(())
    });
    edited.expect("edits");
}

/// Changes every value of [`edit`] again: what was deleted is there again, and what was added is not.
fn edit_again(overlay: &Overlay<World>, ids: &Ids) {
    let edited = overlay.transaction(|tx| {
        tx.set_block(ids.overworld, BlockPos::new(2, 1, 1), ids.machine)?;
        tx.save(ids.at(1, 0, 0), tx.new_chunk(ids.stone)?);
        tx.move_entity(uuid(1), Owner::Chunk(ids.at(1, 0, 0)))?;
        tx.delete_entity(uuid(2));
        tx.put_object(OBJECTS[0], *b"machine")?;
        tx.put_object(OBJECTS[1], *b"again")?;
        tx.put_object(OBJECTS[2], *b"newer")?;
        tx.put_record(id(0), record(ids, "ruin"));
        tx.put_record(id(1), record(ids, "sign"));
        tx.delete_record(id(2));
        tx.set_property(rule(0), None);
        tx.set_property(rule(1), Some(vec![1]));
        tx.set_property(rule(2), Some(vec![8]));
        Ok::<_, Error>(())
    });
    edited.expect("edits");
}

type Content =
    (Vec<Option<Chunk>>, Vec<Option<Entity>>, Vec<Option<Object>>, Vec<Option<Record>>, Vec<Option<Vec<u8>>>);

/// All values, as a world or an overlay shows them.
macro_rules! content {
    ($world:expr, $objects:expr, $record:expr, $ids:expr) => {{
        let chunk = |x| $world.load($ids.at(x, 0, 0)).expect("loads").as_deref().cloned();
        let object = |key: &&str| $objects(*key).expect("reads");
        let content: Content = (
            (0..4).map(chunk).collect(),
            (1..3).map(|n| $world.entity(uuid(n)).expect("reads")).collect(),
            OBJECTS.iter().map(object).collect(),
            (0..3).map(|n| $record(id(n)).expect("reads")).collect(),
            (0..3).map(|n| $world.property(&rule(n)).expect("reads")).collect(),
        );
        content
    }};
}

fn of_base(base: &World, ids: &Ids) -> Content {
    content!(base, |key: &str| base.objects().get(key), |id| base.records().get(id), ids)
}

fn of_overlay(overlay: &Overlay<World>, ids: &Ids) -> Content {
    content!(overlay, |key: &str| overlay.object(key), |id| overlay.record(id), ids)
}

/// Merges, and fails when the overlay is emptied. Returns the overlay, opened again if it was killed.
fn merged_and_not_emptied(is_killed: bool) -> (World, Ids, Overlay<World>) {
    merged_with(is_killed, &options())
}

fn merged_with(is_killed: bool, options: &WorldOptions) -> (World, Ids, Overlay<World>) {
    let (base, ids) = furnished();
    let fuse = Fuse::new();
    let engine = Surviving::new(&fuse);
    let arenas = Arenas::over(engine.clone(), base.clone(), options).expect("a base");
    let overlay = arenas.lease("ada", GameTick::new(0)).expect("leases");
    edit(&overlay, &ids);
    // The base's versions of this object are higher than the overlay's.
    for _ in 0..3 {
        base.objects().put(OBJECTS[2], *b"other").expect("writes");
        base.objects().delete(OBJECTS[2]).expect("deletes");
    }
    let before = of_overlay(&overlay, &ids);
    // The overlay notes the merge, and is emptied after it.
    fuse.set(1);
    let failed = overlay.merge_into(&base);
    fuse.set(i64::MAX);
    assert!(
        matches!(&failed, Err(Error::Engine(EngineError::NoSpace { message })) if message == "the power is gone"),
        "{failed:?}"
    );
    let mut merged = of_base(&base, &ids);
    let raised = merged.2[2].as_mut().expect("is merged");
    assert_eq!(raised.version, 3);
    raised.version = 0;
    assert_eq!(merged, before);
    if !is_killed {
        return (base, ids, overlay);
    }
    drop((overlay, arenas));
    let arenas = Arenas::over(engine, base.clone(), options).expect("the same base");
    let overlay = arenas.resume(0).expect("is leased");
    (base, ids, overlay)
}

#[test]
fn a_merge_whose_overlay_was_not_emptied_changes_nothing_again() {
    for is_killed in [false, true] {
        let (base, ids, overlay) = merged_and_not_emptied(is_killed);
        let before = of_base(&base, &ids);
        assert!(overlay.diff().expect("compares").is_empty());
        assert_eq!(overlay.merge_into(&base).expect("goes on").changes, 0);
        assert_eq!(of_base(&base, &ids), before);
    }
}

#[test]
fn an_overlay_that_was_not_emptied_is_edited_and_merged() {
    for is_killed in [false, true] {
        let (base, ids, overlay) = merged_and_not_emptied(is_killed);
        edit_again(&overlay, &ids);
        let mut after = of_overlay(&overlay, &ids);
        overlay.merge_into(&base).expect("goes on");
        // No version of the base goes back.
        assert_eq!(after.2[2].as_ref().map(|object| object.version), Some(1));
        after.2[2].as_mut().expect("is there").version = 4;
        assert_eq!(of_base(&base, &ids), after);
        assert!(overlay.diff().expect("compares").is_empty());
        assert_sound(&base);
    }
}

/// An edit does not hide a change of the base that the overlay has not seen.
#[test]
fn what_the_base_changed_after_a_merge_is_a_conflict_of_an_edited_overlay() {
    let (base, ids, overlay) = merged_and_not_emptied(true);
    save(&base, [(ids.at(0, 0, 0), filled(&base, ids.stone))]);
    edit_again(&overlay, &ids);
    let before = of_base(&base, &ids);
    assert_refused(&overlay, &base, ids.at(0, 0, 0));
    assert_eq!(of_base(&base, &ids), before);
}

/// A merge is refused because of a chunk of the base.
fn assert_refused(overlay: &Overlay<World>, base: &World, at: ChunkAt) {
    let refused = overlay.merge_into(base);
    let key = cg_store::error::ConflictKey::Chunk(at);
    assert!(
        matches!(refused.as_ref().err().and_then(Error::layer), Some(cg_layers::OverlayError::BaseChanged { key: found, .. }) if *found == key),
        "{refused:?}"
    );
}

#[test]
fn an_entity_that_was_merged_and_deleted_since_does_not_come_back() {
    for is_edited in [false, true] {
        let (base, ids, overlay) = merged_and_not_emptied(true);
        let deleted = base.transaction(|tx| {
            tx.delete_entity(uuid(2));
            Ok::<_, Error>(())
        });
        deleted.expect("deletes");
        if is_edited {
            let edited =
                overlay.transaction(|tx| tx.set_block(ids.overworld, BlockPos::new(49, 1, 1), ids.glass));
            edited.expect("edits");
        }
        let before = of_base(&base, &ids);
        assert_refused(&overlay, &base, ids.at(3, 0, 0));
        assert_eq!(of_base(&base, &ids), before);
    }
}

/// A delta has its value over the base's present chunk, so what the base changes meanwhile looks like a part of it.
#[test]
fn what_the_base_changes_during_an_edit_of_a_merged_delta_is_not_lost() {
    let options = WorldOptions { deltas: true, ..options() };
    let (base, ids, overlay) = merged_with(true, &options);
    let edited = overlay.transaction(|tx| {
        tx.load(ids.at(0, 0, 0))?;
        base.transaction(|tx| tx.set_block(ids.overworld, BlockPos::new(9, 9, 9), ids.machine))?;
        tx.set_block(ids.overworld, BlockPos::new(2, 1, 1), ids.machine)
    });
    edited.expect("edits");
    let before = of_base(&base, &ids);
    assert_refused(&overlay, &base, ids.at(0, 0, 0));
    assert_eq!(of_base(&base, &ids), before);
}
