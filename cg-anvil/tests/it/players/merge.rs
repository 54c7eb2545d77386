//! Players of a save that is imported into a world that has some.

use super::*;

fn options(merge: Merge) -> ImportOptions {
    ImportOptions { merge: Some(merge), ..ImportOptions::default() }
}

#[test]
fn the_same_save_again_changes_nothing() {
    let made = Made::imported(V1_20);
    let (hash, last) = (made.hash(), made.world.entity_version(EntityId::new(FAR)).expect("no damage"));
    for (merge, players, kept) in [(Merge::Replace, 3, 0), (Merge::Keep, 0, 3)] {
        let report = made.import("save", &options(merge));
        assert_eq!((report.players, report.kept_entities, report.is_whole()), (players, kept, true));
        assert_eq!(made.hash(), hash);
        assert_eq!(made.world.entity_version(EntityId::new(FAR)).expect("no damage"), last);
    }
    assert_eq!(made.export("out").1, made.files);
}

#[test]
fn a_merge_replaces_players_or_keeps_them() {
    let made = Made::imported(V1_20);
    for uuid in [FAR, IN_COLUMN] {
        made.set_health(uuid, 1);
    }
    made.delete(IN_NETHER);
    let report = made.import("save", &options(Merge::Keep));
    assert_eq!((report.players, report.kept_entities), (1, 2));
    let (report, files) = made.export("kept");
    assert_eq!((report.players, report.changed_players, report.deleted_players), (3, 2, 0));
    assert_eq!(fields(&files[&made.path(FAR)])["Health"].last(), Some(&1));
    assert_eq!(files[&made.path(IN_NETHER)], made.files[&made.path(IN_NETHER)]);

    let report = made.import("save", &options(Merge::Replace));
    assert_eq!((report.players, report.kept_entities), (3, 0));
    let (report, files) = made.export("replaced");
    assert_eq!((report.changed_players, files), (0, made.files.clone()));
}

#[test]
fn a_player_whom_the_world_does_not_have_comes_to_a_column_that_it_keeps() {
    let made = Made::new(V1_20, Files::from([("level.dat".to_owned(), V1_20.level(|_| ()))]));
    assert_eq!(made.import("save", &ImportOptions::default()).players, 0);
    let made = Made { files: V1_20.save(), ..made };
    let report = made.import("save", &options(Merge::Keep));
    assert_eq!((report.kept_chunks, report.players, report.kept_entities), (1, 3, 0));
    assert_eq!(made.player(IN_COLUMN).expect("came").position.to_f64()[0].to_bits(), 5.25_f64.to_bits());
    assert_eq!(made.export("out").1, made.files);
    // From then on the world has them, and their state stays.
    made.set_health(IN_COLUMN, 1);
    let report = made.import("save", &options(Merge::Keep));
    assert_eq!((report.players, report.kept_entities), (0, 3));
    assert_eq!(fields(&made.export("kept").1[&made.path(IN_COLUMN)])["Health"].last(), Some(&1));
}

#[test]
fn a_player_of_the_world_stays_beside_the_file_of_a_save() {
    // The world of a server that never was a save has a player of that UUID.
    let made = Made::imported(V1_20);
    let player = made.player(FAR).expect("there");
    let other = Made::new(V1_20, V1_20.save());
    let world = &other.world;
    let dimension = world.registry().register_dimension("minecraft:overworld").expect("registered");
    let kind = world.registry().register_entity("minecraft:player").expect("registered");
    let offer = cg_registry::ComponentOffer::variable(Name::new("minecraft:entity_nbt").expect("a name"));
    let component = world.registry().register_component(offer).expect("registered");
    let place = cg_format::entity::EntityPos::from_f64(dimension, [-1000.5, 70.0, 0.0]).expect("a place");
    let mut own = cg_format::entity::Entity::new(kind, player.owner.clone(), place);
    own.set_component(component, player.component(made.nbt()).expect("NBT").to_vec()).expect("fits");
    other.put(FAR, own);
    other.set_health(FAR, 2);
    let report = other.import("save", &options(Merge::Keep));
    assert_eq!((report.players, report.kept_entities), (2, 1));
    let (report, files) = other.export("out");
    assert_eq!((report.players, report.changed_players), (3, 1));
    assert_eq!(fields(&files[&other.path(FAR)])["Health"].last(), Some(&2));
    other.delete(FAR);
    assert!(!other.export("deleted").1.contains_key(&other.path(FAR)));
}

#[test]
fn players_go_with_the_files_of_a_save_that_is_replaced() {
    let mut made = Made::imported(V1_20);
    let gone = made.path(FAR);
    made.files.remove(&gone);
    fs::remove_file(made.dir.path().join("save").join(&gone)).expect("there");
    let replace = ImportOptions { merge_files: MergeFiles::Replace, ..options(Merge::Replace) };
    let report = made.import("save", &replace);
    assert_eq!((report.players, &report.deleted_files), (2, &BTreeMap::from([("playerdata".to_owned(), 1)])));
    assert_eq!(made.player(FAR), None);
    assert_eq!(made.export("out").1, made.files);
}

#[test]
fn a_world_that_an_earlier_release_imported_exports_its_files() {
    let mut files = V1_20.save();
    let level = V1_20.level(|data| {
        data.compound("Player", |out| V1_20.player(out, OWNER, [5.0, 64.0, 5.0], 0, 3));
    });
    files.insert("level.dat".to_owned(), level);
    let made = Made::new(V1_20, files);
    assert_eq!(made.import("save", &ImportOptions::default()).players, 4);
    // That kept the files alone.
    let all = [OWNER, IN_COLUMN, FAR, IN_NETHER];
    let done = made.world.transaction(|tx| {
        for uuid in all {
            tx.delete_entity(EntityId::new(uuid));
            tx.delete_object(cg_store::objects::ObjectKey::new(format!("minecraft/player/{uuid}"))?)?;
        }
        Ok::<_, Error>(())
    });
    done.expect("committed");
    let (report, files) = made.export("before");
    assert_eq!((report.players, report.deleted_players, files), (0, 0, made.files.clone()));
    // A further import makes entities of them, also of those whose files the world keeps.
    let report = made.import("save", &options(Merge::Keep));
    assert_eq!((report.players, report.kept_files), (4, 0));
    assert!(all.iter().all(|uuid| made.player(*uuid).is_some()));
    assert_eq!(made.export("after").1, made.files);
}

#[test]
fn a_file_of_the_other_layout_keeps_no_player() {
    for (version, other) in [(V1_20, V26_2), (V26_2, V1_20)] {
        let mut files = version.save();
        files.insert(other.path(FAR), version.file(FAR, [1.0, 2.0, 3.0], 0, 11));
        let mut made = Made::new(version, files);
        made.import("save", &ImportOptions::default());
        assert!(made.player(FAR).is_some());
        let gone = made.path(FAR);
        made.files.remove(&gone);
        fs::remove_file(made.dir.path().join("save").join(&gone)).expect("there");
        let replace = ImportOptions { merge_files: MergeFiles::Replace, ..options(Merge::Replace) };
        assert_eq!(made.import("save", &replace).players, 2);
        assert_eq!(made.player(FAR), None);
        assert_eq!(made.export("out").1, made.files);
    }
}
