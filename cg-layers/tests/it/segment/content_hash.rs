//! The hash of a segmented world is that of a world that is not segmented and holds the same.

use cg_format::record::Record;
use cg_format::{ChunkBox, RecordId};
use cg_layers::{SegmentError, SegmentedWorld};
use cg_store::Tx;
use cg_store::prelude::*;
use cg_store::verify::ContentHash;
use cg_store::view::Area;

use super::values::{property, record};
use super::{create, dir, put, save};
use crate::fixture::{Disk, Ids, filled, options, registration, uuid};

/// Where chunks are, in three segments.
const PLACES: [i64; 3] = [-20, 0, 20];

#[track_caller]
fn hash(disk: &Disk, area: Area<'_>) -> (ContentHash, usize) {
    let mut worlds = 0;
    let hash = SegmentedWorld::content_hash(dir(disk), area, &options(), |_| {
        worlds += 1;
        Ok::<_, Error>(())
    });
    (hash.expect("it is sound"), worlds)
}

fn spatial(ids: &Ids, n: u128) -> (RecordId, Record) {
    (RecordId::new(uuid::Uuid::from_u128(n)), record(ids, i64::try_from(n).expect("small"), 7))
}

/// What two worlds hold, but for chunks and entities.
fn values<S: cg_store::layer::ValueStore>(tx: &mut Tx<S>, ids: &Ids) -> Result<(), Error> {
    tx.put_object("chest/1", b"gold".to_vec())?;
    tx.set_property(property("game:weather"), Some(b"rain".to_vec()));
    let (id, record) = spatial(ids, 1);
    tx.put_record(id, record);
    Ok(())
}

fn plain(ids: &Ids) -> World {
    let world = World::builder().options(&options()).in_memory().expect("a world");
    world.registry().register(&registration()).expect("registers");
    let stored = world.transaction(|tx| {
        for x in PLACES {
            tx.save(ids.at(x, 0, 0), filled(&world, ids.stone));
        }
        tx.put_entity(uuid(1), ids.cow_in(ids.at(20, 0, 0)));
        values(tx, ids)?;
        tx.put_object("avatar/7", b"red hat".to_vec())?;
        tx.set_property(Property::Name, Some(b"Isle".to_vec()));
        Ok::<_, Error>(())
    });
    stored.expect("commits");
    world
}

#[test]
fn it_is_that_of_a_world_that_holds_the_same() {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    for x in PLACES {
        save(&world, ids.at(x, 0, 0), filled(world.root(), ids.stone));
    }
    put(&world, 1, ids.cow_in(ids.at(0, 0, 0)));
    world.transfer_entities([(uuid(1), ids.cow_in(ids.at(20, 0, 0)))]).expect("transfers");
    world.transaction(ids.at(0, 0, 0), |tx| values(tx, &ids)).expect("commits");
    let in_root = world.root().transaction(|tx| {
        tx.put_object("avatar/7", b"red hat".to_vec())?;
        tx.set_property(Property::Name, Some(b"Isle".to_vec()));
        Ok::<_, Error>(())
    });
    in_root.expect("commits");
    world.close().expect("closes");
    drop(world);

    let plain = plain(&ids);
    let all = |world: &World, area| world.content_hash(area).expect("it is sound");
    assert_eq!(hash(&disk, Area::World), (all(&plain, Area::World), 4));
    let west =
        Area::Box(ids.overworld, ChunkBox::around(ChunkPos::constant(-20, 0, 0), 3).expect("it is inside"));
    assert_eq!(hash(&disk, west), (all(&plain, west), 2), "the root and one segment");
    let everywhere = Area::Box(ids.overworld, ChunkBox::EVERYTHING);
    assert_eq!(hash(&disk, everywhere), (all(&plain, everywhere), 4));

    // One byte more in any world is another hash.
    for (n, part) in ["root", "segments/0.-2.0.0", "segments/0.0.0.0", "segments/0.1.0.0"].iter().enumerate()
    {
        let before = hash(&disk, Area::World);
        let one = World::builder().options(&options()).open(dir(&disk).join(part)).expect("opens");
        one.objects().put(format!("more/{n}"), *b"1").expect("commits");
        one.close().expect("closes");
        drop(one);
        assert_ne!(hash(&disk, Area::World), before, "{part}");
    }
}

fn put_record(world: &World, id: RecordId, record: &Record) {
    let put = world.transaction(|tx| {
        tx.put_record(id, record.clone());
        Ok::<_, Error>(())
    });
    put.expect("commits");
}

fn set(world: &World, property: Property, bytes: &[u8]) {
    let set = world.transaction(|tx| {
        tx.set_property(property, Some(bytes.to_vec()));
        Ok::<_, Error>(())
    });
    set.expect("commits");
}

/// A record that departed is the root's: the copy that its segment still has is dead.
#[test]
fn a_dead_copy_counts_once_and_an_entity_in_transit_is_refused() {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    for x in PLACES {
        save(&world, ids.at(x, 0, 0), filled(world.root(), ids.stone));
    }
    let (id, record) = spatial(&ids, 1);
    put_record(world.root(), id, &record);
    let segment = world.segment_of(ids.at(0, 0, 0));
    world.close().expect("closes");
    drop(world);
    let (once, _) = hash(&disk, Area::World);

    let open = |part: &str| World::builder().options(&options()).open(dir(&disk).join(part)).expect("opens");
    let inside = open("segments/0.0.0.0");
    put_record(&inside, id, &record);
    inside.close().expect("closes");
    drop(inside);
    assert_ne!(hash(&disk, Area::World).0, once, "nothing says that it is dead");
    let root = open("root");
    let mut place = segment.dimension.get().to_le_bytes().to_vec();
    place.extend([segment.x, segment.y, segment.z].iter().flat_map(|c| c.to_le_bytes()));
    let departure = property(&format!(":departure/{id}"));
    set(&root, departure, &place);
    root.close().expect("closes");
    drop(root);
    assert_eq!(hash(&disk, Area::World).0, once);

    let root = open("root");
    let (cow, to) = (ids.cow_in(ids.at(20, 0, 0)), ids.at(20, 0, 0));
    let mut bytes = vec![1];
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(uuid(1).to_bytes());
    bytes.extend(&place);
    let mut entity = Vec::new();
    cow.encode(&mut entity);
    bytes.extend(u32::try_from(entity.len()).expect("small").to_le_bytes());
    bytes.extend(entity);
    set(&root, property(":crossing"), &bytes);
    root.close().expect("closes");
    drop(root);
    let refused = SegmentedWorld::content_hash(dir(&disk), Area::World, &options(), |_| Ok::<_, Error>(()));
    let refused = refused.expect_err("the entity is in two segments, or in one");
    let expected = SegmentError::InTransit {
        id: uuid(1),
        from: segment,
        to: cg_layers::SegmentPos { dimension: to.dimension, x: 1, y: 0, z: 0 },
    };
    assert_eq!(refused.to_string(), expected.to_string());
}
