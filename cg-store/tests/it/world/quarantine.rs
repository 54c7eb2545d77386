//! Damaged rows that are quarantined: kept, and their places free.

use super::damage::{corrupt, farm};
use super::*;
use cg_format::frame;
use cg_format::{ClusterTier, Space, key};
use cg_store::Peek;
use cg_store::quarantine::CHUNK_QUARANTINED;

#[test]
fn swapped_rows_are_noticed() {
    let (disk, ids, a, b) = farm();
    let raw = disk.raw();
    let [of_a, of_b] = [a, b].map(|at| raw.get(Family::ChunkL0, key::chunk(at)));
    raw.put(Family::ChunkL0, key::chunk(a), &of_b);
    raw.put(Family::ChunkL0, key::chunk(b), &of_a);
    drop(raw);
    let world = disk.open(&[]);
    for at in [a, b] {
        corrupt(world.load(at));
        assert!(world.quarantine().chunk(at).expect("quarantines"));
        assert_eq!(world.load(at).expect("is absent"), None);
    }
    save(&world, [(a, filled(&world, ids.air))]);
    assert_eq!(world.quarantine().list().expect("lists").len(), 2);
    assert_sound(&world);
}

#[test]
fn what_is_set_aside_is_kept_and_its_place_is_free() {
    let (disk, ids, a, b) = farm();
    let row = key::chunk(a);
    disk.raw().flip(Family::ChunkL0, row, frame::LEN_BYTES + 20);
    let bytes = disk.raw().get(Family::ChunkL0, row);
    let world = disk.open(&[]);
    assert!(!world.quarantine().chunk(b).expect("a sound chunk stays"));
    assert!(!world.quarantine().chunk(ids.at(9, 9, 9)).expect("an absent one too"));
    assert_eq!(world.quarantine().list().expect("lists"), []);
    assert!(world.opacity().column(ids.overworld, 0, 0).expect("reads").runs().is_empty());
    let mark = |world: &World, tier| {
        let mark = key::change_mark(a.dimension, a.pos.cluster(tier));
        let engine = world.engine();
        let row = engine.get(Space::ChangeMark, &mark).expect("reads").expect("is there");
        frame::version_of(&row)
    };

    assert!(world.quarantine().chunk(a).expect("quarantines"));
    assert!(!world.quarantine().chunk(a).expect("once is enough"));
    assert_eq!(world.load(a).expect("is absent"), None);
    assert!(matches!(world.peek(a), Peek::Absent));
    let commit = world.last_commit();
    for tier in [ClusterTier::L1, ClusterTier::L2] {
        assert_eq!(mark(&world, tier), Some(commit.get()), "whoever asks what changed is told");
    }
    let quarantined = world.quarantine().list().expect("lists");
    let expected =
        cg_store::quarantine::Quarantined { space: Space::ChunkL0, key: row.to_vec(), commit, bytes };
    assert_eq!(quarantined, [expected]);
    // The cow lives on, with a reason.
    let cow = world.entity(uuid(1)).expect("reads").expect("is kept");
    assert!(
        matches!(&cow.owner, Owner::Detached(reason) if reason.as_str() == CHUNK_QUARANTINED),
        "{:?}",
        cow.owner
    );
    // An absent chunk hides nothing.
    let cell = LocalPos::from_index(7).expect("below 4096");
    let column = world.opacity().column(ids.overworld, cell.x().into(), cell.z().into()).expect("reads");
    assert_eq!(column.runs(), []);
    assert_sound(&world);
    drop(world);

    let world = disk.open(&[]);
    assert_eq!(world.load(a).expect("is absent after opening too"), None);
    save(&world, [(a, filled(&world, ids.glass))]);
    world.transaction(|tx| tx.move_entity(uuid(1), Owner::Chunk(a))).expect("comes home");
    assert!(!world.quarantine().delete(Space::ChunkL0, &row, commit.next()).expect("there is none"));
    assert!(world.quarantine().delete(Space::ChunkL0, &row, commit).expect("forgets"));
    assert!(!world.quarantine().delete(Space::ChunkL0, &row, commit).expect("is forgotten"));
    assert_eq!(world.quarantine().list().expect("lists"), []);
    assert_sound(&world);
}

#[test]
fn what_is_damaged_again_is_kept_beside_the_older_copy() {
    let (disk, ids, a, _) = farm();
    let row = key::chunk(a);
    let mut copies = Vec::new();
    for cell in [20_u16, 30] {
        disk.raw().flip(Family::ChunkL0, row, frame::LEN_BYTES + usize::from(cell));
        let bytes = disk.raw().get(Family::ChunkL0, row);
        let world = disk.open(&[]);
        assert!(world.quarantine().chunk(a).expect("quarantines"));
        copies.push((world.last_commit(), bytes));
        save(&world, [(a, marked(&world, &ids, cell))]);
    }
    let world = disk.open(&[]);
    let found = |world: &World| {
        let found = world.quarantine().list().expect("lists").into_iter();
        let copies = found.map(|copy| {
            assert_eq!((copy.space, copy.key.as_slice()), (Space::ChunkL0, &row[..]));
            (copy.commit, copy.bytes)
        });
        copies.collect::<Vec<_>>()
    };
    assert_eq!(found(&world), copies);
    assert_sound(&world);
    // One is forgotten, the other stays.
    assert!(world.quarantine().delete(Space::ChunkL0, &row, copies[0].0).expect("forgets"));
    assert_eq!(found(&world), copies[1..]);
}

#[test]
fn a_conflict_with_setting_aside_is_seen() {
    let (disk, ids, a, _) = farm();
    disk.raw().flip(Family::ChunkL0, key::chunk(a), frame::LEN_BYTES + 20);
    let world = disk.open(&[]);
    let error = world.transaction(|tx| {
        let cow = tx.entity(uuid(1))?.expect("is there");
        std::thread::scope(|scope| scope.spawn(|| world.quarantine().chunk(a)).join().expect("no panic"))?;
        tx.put_entity(uuid(1), cow.owned_by(Owner::Chunk(ids.at(0, 0, 1))));
        Ok::<_, Error>(())
    });
    assert!(matches!(error, Err(Error::Conflict { .. })), "{error:?}");
    assert_sound(&world);
}

/// The version of a row of the world's engine.
fn version(world: &World, space: Space, row: &[u8]) -> Option<u64> {
    frame::version_of(&world.engine().get(space, row).expect("reads")?)
}

#[test]
fn an_entity_that_is_set_aside_is_kept_and_no_chunk_refers_to_it() {
    let (disk, ids, a, b) = farm();
    let row = key::entity(uuid(1));
    disk.raw().flip(Family::Entity, row, frame::LEN_BYTES + 3);
    let bytes = disk.raw().get(Family::Entity, row);
    let world = disk.open(&[]);
    let before = [a, b].map(|at| world.load_versioned(at).expect("loads").expect("is there"));
    let opacity: Vec<_> =
        rows(&world).into_iter().filter(|((family, _), _)| *family == Family::OpacityMap).collect();
    assert!(!world.quarantine().entity(uuid(2)).expect("an absent one is left alone"));

    assert!(world.quarantine().entity(uuid(1)).expect("quarantines"));
    let commit = world.last_commit();
    assert!(!world.quarantine().entity(uuid(1)).expect("once is enough"));
    assert_eq!(world.last_commit(), commit, "one commit, and none for nothing");
    assert_eq!(world.entity(uuid(1)).expect("is absent"), None);
    let copy = cg_store::quarantine::Quarantined { space: Space::Entity, key: row.to_vec(), commit, bytes };
    assert_eq!(world.quarantine().list().expect("lists"), [copy]);
    assert_sound(&world);
    // The chunk has changed by its reference alone, and says so; the other has not.
    let [(of_a, _), (of_b, version_of_b)] = before;
    let mut alone = Chunk::clone(&of_a);
    assert!(alone.remove_entity(uuid(1)));
    let now = |at| world.load_versioned(at).expect("loads").expect("is there");
    assert_eq!(now(a), (std::sync::Arc::new(alone), commit));
    assert_eq!(now(b), (of_b, version_of_b));
    for tier in [ClusterTier::L1, ClusterTier::L2] {
        let mark = key::change_mark(a.dimension, a.pos.cluster(tier));
        assert_eq!(version(&world, Space::ChangeMark, &mark), Some(commit.get()));
    }
    let drawn = rows(&world).into_iter().filter(|((family, _), _)| *family == Family::OpacityMap);
    assert!(drawn.eq(opacity), "no block has changed");
    drop(world);

    // It is so after opening too, and the name is free.
    let world = disk.open(&[]);
    assert_eq!(world.load(a).expect("loads").expect("is there").entities(), []);
    assert_sound(&world);
    let again = world.transaction(|tx| {
        tx.put_entity(uuid(1), ids.cow_in(b));
        Ok::<_, Error>(())
    });
    again.expect("puts");
    assert!(!world.quarantine().entity(uuid(1)).expect("a sound one stays"));
    assert_eq!(world.load(b).expect("loads").expect("is there").entities(), [uuid(1)]);
    assert_sound(&world);
}

#[test]
fn an_entity_of_a_cold_chunk_and_one_of_no_chunk_are_set_aside() {
    let (disk, ids, a, b) = farm();
    let world = disk.open(&[]);
    let put = world.transaction(|tx| {
        let away = Owner::Detached(cg_format::entity::Reason::new("offline")?);
        tx.put_entity(uuid(2), ids.cow_in(b).owned_by(away));
        tx.put_entity(uuid(3), ids.cow_in(a));
        Ok::<_, Error>(())
    });
    put.expect("puts");
    demote(&world, ClusterTier::L2, &[a, b], false);
    drop(world);
    for n in [1, 2] {
        disk.raw().flip(Family::Entity, key::entity(uuid(n)), frame::LEN_BYTES + 3);
    }
    let world = disk.open(&[]);
    for n in [1, 2] {
        assert!(world.quarantine().entity(uuid(n)).expect("quarantines"));
    }
    assert_eq!(world.load(a).expect("loads").expect("is there").entities(), [uuid(3)]);
    assert_eq!(
        version(&world, Space::ChunkL0, &key::chunk(a)),
        Some(world.last_commit().get() - 1),
        "above the cold copy"
    );
    assert_eq!(version(&world, Space::ChunkL0, &key::chunk(b)), None, "no chunk referred to the other");
    assert_sound(&world);
}

#[test]
fn a_chunk_that_needs_an_upgrade_lets_go_of_an_entity_as_it_is_stored() {
    // A chunk stored before its kind of block changed in a way that needs a function of the host.
    let offer = |components: &str, block: &str| {
        let text = format!(
            r#"{{ "pack": "mill", "version": "1", "namespaces": ["mill"], "components": [{components}],
                "blocks": [{{ "name": "mill:stone", "components": ["{block}"] }}] }}"#
        );
        PackManifest::from_json(&text).expect("a manifest")
    };
    let old = offer(r#"{ "name": "mill:grain", "size": 4 }"#, "mill:grain");
    let new = offer(r#"{ "name": "mill:grain", "size": "variable" }"#, "mill:grain");
    let disk = Disk::new();
    let world = disk.create(std::slice::from_ref(&old));
    let ids = Ids::register(&world);
    let a = ids.at(0, 0, 0);
    let stone = world.catalog().block_id("mill:stone").expect("offered");
    save(&world, [(a, filled(&world, stone))]);
    let put = world.transaction(|tx| {
        tx.put_entity(uuid(1), ids.cow_in(a));
        Ok::<_, Error>(())
    });
    put.expect("puts");
    drop(world);
    let mut functions = cg_registry::UpgradeFunctions::default();
    functions.converted(name("mill:grain"), |old| Some(old.bytes.to_vec()));
    let packs =
        cg_registry::Policy { conversions: functions.conversions(), ..cg_registry::Policy::default() };
    drop(
        World::builder()
            .packs(&[new])
            .options(&WorldOptions { packs, ..options() })
            .open(disk.path())
            .expect("opens"),
    );
    disk.raw().flip(Family::Entity, key::entity(uuid(1)), frame::LEN_BYTES + 3);
    let world = disk.open(&[]);
    let error = world.load(a).expect_err("the function is missing");
    assert!(matches!(error, Error::NotUpgraded { .. }), "{error}");
    assert!(world.quarantine().entity(uuid(1)).expect("quarantines"));
    let left = world.tiers().with_stored_bytes(a, |stored| {
        let schema = world.catalog().schema(stored.schema_generation).expect("is known");
        let chunk = Chunk::decode(stored.value, &schema).expect("is sound");
        Ok((stored.schema_generation, chunk.entities().len(), chunk.components().count()))
    });
    assert_eq!(left.expect("reads"), Some((0, 0, 4096)), "nothing but the reference is gone");
}
