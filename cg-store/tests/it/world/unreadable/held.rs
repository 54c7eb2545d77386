//! Families that are held because a compaction met damage, and when they are let go.

use super::*;

#[test]
fn a_compaction_over_damage_ends_writing_until_the_world_is_resumed() {
    let disk = Disk::new();
    let world = create(&disk, options());
    let ids = Ids::register(&world);
    let all = noisy_line(&world, &ids, 600);
    drop(world);
    let hidden = hide(&disk, Family::ChunkL0, 0.4);
    let (hidden, sound): (Vec<_>, Vec<_>) =
        all.iter().copied().partition(|at| hidden.contains(&key::chunk(*at)[..]));
    let world = open(&disk, options());
    let compacted = world.engine().compact(Family::ChunkL0, engine::ALL_KEYS);

    // It says what is wrong, and so do all commits after it.
    let try_to_save = || {
        world.transaction(|tx| {
            tx.save(ids.at(0, 50, 0), marked(&world, &ids, 1));
            Ok::<_, Error>(())
        })
    };
    let Err(EngineError::WriteFailed { cause }) = compacted else { panic!("is refused") };
    let EngineError::Corrupt { place: Place::Table(table), message } = &*cause else { panic!("{cause}") };
    let engine::Table { name, family, from, to } = &**table;
    let keys = [key::chunk(all[0]), key::chunk(all[599])];
    assert_eq!((*family, [&from[..], &to[..]]), (Family::ChunkL0, [&keys[0][..], &keys[1][..]]));
    assert!(message.contains(name.as_str()) && message.contains("resume the world"), "{message}");
    let Err(Error::Engine(EngineError::ReadOnly { cause })) = try_to_save() else { panic!("is refused") };
    assert!(is_damage(&cause), "{cause}");
    for at in [sound[0], sound[sound.len() - 1]] {
        world.cache().clear();
        assert!(world.load(at).expect("reads go on").is_some());
    }
    unreadable(world.load(hidden[0]));
    assert!(world.quarantine().chunk(hidden[0]).is_err(), "nothing can be written");

    world.resume().expect("opens again");
    drop(try_to_save().expect("saves"));
    for at in &hidden {
        unreadable(world.load(*at));
        assert!(world.quarantine().chunk(*at).expect("quarantines"), "{at}");
        assert_eq!(world.load(*at).expect("is absent"), None);
    }
    save(&world, [(hidden[0], marked(&world, &ids, 9))]);
    // Whatever is asked of the engine, it goes on writing, and so it does after the next open.
    world.tiers().demote_all(DAY, |_| {}).expect("settles");
    let fill = |world: &World| {
        for n in 0..8 {
            save(world, [(ids.at(n, 60, 0), marked(world, &ids, 3))]);
            world.engine().flush().expect("flushes");
            world.engine().compact(Family::ChunkL0, engine::ALL_KEYS).expect("leaves the family as it is");
        }
    };
    fill(&world);
    drop(world);
    assert!(fs::read_to_string(disk.path().join("db/DAMAGED")).expect("is noted").starts_with("chunkl0 "));
    let world = open(&disk, options());
    fill(&world);
    world.cache().clear();
    assert_eq!(world.load(hidden[0]).expect("loads").as_deref(), Some(&marked(&world, &ids, 9)));
    for at in hidden.iter().skip(1) {
        assert_eq!(world.load(*at).expect("is absent"), None);
    }
    for (at, n) in all.iter().zip(0..).filter(|(at, _)| !hidden.contains(at)) {
        let loaded = world.load(*at).expect("is sound");
        assert_eq!(loaded.as_deref(), Some(&super::tier::noisy(&world, &ids, n)), "{at}");
    }
}

/// The families that are rewritten no more.
fn held(world: &World) -> Vec<Family> {
    let families = world.usage().expect("counts").families.into_iter();
    families.filter(|family| family.is_held).map(|family| family.family).collect()
}

#[test]
fn what_could_not_be_noted_is_known_until_the_world_is_closed() {
    let disk = Disk::new();
    let world = create(&disk, options());
    let ids = Ids::register(&world);
    let all = noisy_line(&world, &ids, 600);
    drop(world);
    hide(&disk, Family::ChunkL0, 0.4);
    // Where the note would be written first, something else lies.
    let in_the_way = disk.path().join("db/DAMAGED.new");
    fs::create_dir(&in_the_way).expect("makes a directory");
    let world = open(&disk, options());
    world.engine().compact(Family::ChunkL0, engine::ALL_KEYS).expect_err("it met damage");
    let save_one = || {
        world.transaction(|tx| {
            tx.save(ids.at(0, 50, 0), marked(&world, &ids, 1));
            Ok::<_, Error>(())
        })
    };
    save_one().expect_err("is refused");
    world.resume().expect("opens again");
    assert_eq!(held(&world), [Family::ChunkL0]);
    world.engine().compact(Family::ChunkL0, engine::ALL_KEYS).expect("leaves the family as it is");
    drop(save_one().expect("saves"));
    let note = |db: &Path| fs::read_to_string(db.join("DAMAGED"));
    note(&disk.path().join("db")).expect_err("could not be noted");
    world.checkpoint(disk.root().join("copy"), cg_store::CheckpointFiles::Linked).expect("copies");
    assert!(note(&disk.root().join("copy/db")).expect("is noted").starts_with("chunkl0 "));
    drop(world);
    // The next to meet it notes it.
    fs::remove_dir(&in_the_way).expect("removes");
    let world = open(&disk, options());
    assert_eq!(held(&world), []);
    world.cache().clear();
    assert!(all.iter().any(|at| world.load(*at).is_err()));
    assert_eq!(held(&world), [Family::ChunkL0]);
    assert!(note(&disk.path().join("db")).expect("is noted").starts_with("chunkl0 "));
}

#[test]
fn a_note_that_nobody_can_read_holds_all_and_keeps_no_world_closed() {
    let disk = Disk::new();
    let world = create(&disk, options());
    let ids = Ids::register(&world);
    save(&world, [(ids.at(0, 0, 0), marked(&world, &ids, 1))]);
    drop(world);
    fs::create_dir(disk.path().join("db/DAMAGED")).expect("makes a directory");
    let world = disk.open(&[]);
    assert_eq!(held(&world), Family::ALL);
    save(&world, [(ids.at(1, 0, 0), marked(&world, &ids, 1))]);
    world.tiers().demote_all(DAY, |_| {}).expect("settles");
    assert_eq!(tiers(&world), [0, 0, 2]);
    world.checkpoint(disk.root().join("copy"), cg_store::CheckpointFiles::Linked).expect("copies");
    drop(world);
    let world = World::builder().options(&options()).open_read_only(disk.path()).expect("opens");
    assert!(world.load(ids.at(1, 0, 0)).expect("loads").is_some());
}
