//! Compaction by `demote_all`, as the engine's files show it.

use super::*;
use cg_format::key::Family;

/// Families that have files above the last level of their trees.
fn uncompacted(world: &World) -> Vec<&'static str> {
    let families = world.usage().expect("reads").families;
    families.iter().filter(|held| held.upper_file_count > 0).map(|held| held.family.name()).collect()
}

#[test]
fn a_demotion_that_moves_nothing_compacts_names_and_objects() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    Ids::register(&world);
    world.objects().put("a", *b"value").expect("puts");
    assert_eq!(world.tiers().demote_all(DAY, |_| {}).expect("settles"), MoveCounts::default());
    assert_eq!(uncompacted(&world), [""; 0]);
    world.close().expect("closes");
    drop(world);
    let world = disk.open(&[]);
    assert_eq!(uncompacted(&world), [""; 0], "the end had no names left to write");
    assert!(world.objects().get("a").expect("reads").is_some());
    world.objects().put("b", *b"value").expect("puts");
    world.close().expect("closes");
    drop(world);
    let world = disk.open(&[]);
    assert!(uncompacted(&world).contains(&Family::Object.name()), "what was written since is seen");
}
