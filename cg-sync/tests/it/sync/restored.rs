//! Values of a server that was put back from a backup.

use super::values::{SETS, all, follow, is_equal, put, server_of, told};
use super::*;
use cg_sync::ValueKind;

#[test]
fn a_backup_that_is_put_back_brings_lower_versions() {
    let (disk, copies) = (Disk::new(), Disk::new());
    let world = disk.create(&[]);
    let (ids, cache) = (Ids::register(&world), client());
    for kind in SETS {
        put(&world, &ids, kind, 1, Some(1));
    }
    world.checkpoint(copies.path(), cg_store::CheckpointFiles::Linked).expect("copies");
    for value in 2..6 {
        put(&world, &ids, ValueKind::Objects, 1, Some(value));
        put(&world, &ids, ValueKind::Entities, value, Some(value));
    }
    follow(&server_of(&world), &cache, &all(), u64::MAX);
    assert_eq!(cache.world().objects().version("o/1").expect("reads"), Some(4));
    drop(world);

    let world = copies.open(&[]);
    put(&world, &ids, ValueKind::Properties, 1, Some(9));
    let server = SyncServer::new(world.clone(), SyncServerLimits::default());
    let request = cache.request_values(&all()).expect("asks");
    let applied = cache.apply(&request, &told(&server, &request)).expect("applies");
    assert_eq!((applied.is_restart, applied.values_gone), (true, 4));
    assert_eq!(cache.world().objects().version("o/1").expect("reads"), Some(0));
    is_equal(&world, &cache);
    // What is known of this life is known when the cache is opened again.
    let again = SyncClient::open(cache.world().clone()).expect("opens");
    assert_eq!(follow(&server, &again, &all(), u64::MAX), [0, 0, 1]);
}
