//! Players that a host changed, moved, deleted or added.

use super::*;
use cg_format::entity::{Entity, EntityPos, Owner, Reason};

#[test]
fn a_changed_player_differs_in_exactly_that() {
    for version in [V1_13, V26_2] {
        let made = Made::imported(version);
        made.set_health(FAR, 1);
        let (report, files) = made.export("out");
        assert_eq!((report.players, report.changed_players), (3, 1));
        check(&made, &files, FAR, &["Health"]);
        assert_eq!(fields(&files[&made.path(FAR)])["Health"].last(), Some(&1));
        // A change that is taken back is none.
        made.set_health(FAR, 7);
        let (report, files) = made.export("again");
        assert_eq!((report.changed_players, files), (0, made.files.clone()));
    }
}

#[test]
fn a_moved_player_is_where_the_world_has_them() {
    for version in [V1_13, V1_20, V26_2] {
        let made = Made::imported(version);
        let nether = made.world.catalog().dimension("minecraft:the_nether").expect("registered");
        let overworld = made.world.catalog().dimension("minecraft:overworld").expect("registered");
        let move_to = |uuid, dimension, pos| {
            let mut player = made.player(uuid).expect("there");
            player.position = EntityPos::from_f64(dimension, pos).expect("a place");
            made.put(uuid, player);
        };
        move_to(FAR, overworld, [8.5, 65.0, -3.0]);
        move_to(IN_COLUMN, nether, [5.25, 64.0, 6.5]);
        let (report, files) = made.export("out");
        assert_eq!((report.players, report.changed_players), (3, 2));
        let mut unmoved = files.clone();
        unmoved.insert(made.path(IN_COLUMN), made.files[&made.path(IN_COLUMN)].clone());
        check(&made, &unmoved, FAR, &["Pos"]);
        let expected = version.file(IN_COLUMN, [5.25, 64.0, 6.5], -1, 20);
        assert_eq!(tree(&files[&made.path(IN_COLUMN)]), tree(&expected));
        let expected = version.file(FAR, [8.5, 65.0, -3.0], 0, 7);
        assert_eq!(tree(&files[&made.path(FAR)]), tree(&expected));
    }
}

#[test]
fn a_deleted_player_has_no_file() {
    let made = Made::imported(V1_20);
    made.delete(FAR);
    let (report, files) = made.export("out");
    assert_eq!((report.players, report.deleted_players, report.changed_players), (2, 1, 0));
    let mut expected = made.files.clone();
    assert!(expected.remove(&made.path(FAR)).is_some());
    // The game takes that where the file is missing.
    assert!(expected.remove(&format!("playerdata/{FAR}.dat_old")).is_some());
    assert_eq!(files, expected);
}

#[test]
fn an_added_player_gets_a_file_where_the_game_looks() {
    for version in [V1_20, V26_2] {
        let made = Made::imported(version);
        let uuid = Uuid::from_u128(99);
        let nbt = nbt::payload(|out| version.player(out, uuid, [1.0, 2.0, 3.0], 0, 5));
        let like = made.player(FAR).expect("there");
        let owner = Owner::Detached(Reason::new("the host put it into no chunk").expect("short"));
        let position = EntityPos::from_f64(like.position.dimension(), [1.0, 2.0, 3.0]).expect("a place");
        let mut player = Entity::new(like.kind, owner.clone(), position);
        player.set_component(made.nbt(), nbt).expect("fits");
        made.put(uuid, player);
        // One of another game.
        let mut other = Entity::new(like.kind, owner, position);
        other.set_component(made.nbt(), b"\x0a\0\0\x08\x04\0name".to_vec()).expect("fits");
        made.put(Uuid::from_u128(98), other);
        let (report, mut files) = made.export("out");
        assert_eq!((report.players, report.changed_players), (4, 1));
        let missed = BTreeMap::from([("players without NBT of Java Edition".to_owned(), 1)]);
        assert_eq!(report.not_exported, missed);
        let added = files.remove(&made.path(uuid)).expect("a file");
        assert_eq!(tree(&added), tree(&version.file(uuid, [1.0, 2.0, 3.0], 0, 5)));
        assert_eq!(files, made.files);
    }
}

/// All files are as they came, but for a player's, which differs in these fields alone.
#[track_caller]
fn check(made: &Made, files: &Files, uuid: Uuid, changed: &[&str]) {
    let path = made.path(uuid);
    let mut others = files.clone();
    let (was, is) = (fields(&made.files[&path]), fields(&others.remove(&path).expect("a file")));
    assert_eq!(was.keys().collect::<Vec<_>>(), is.keys().collect::<Vec<_>>());
    let differ: Vec<_> = was.iter().filter(|(name, raw)| is[*name] != **raw).map(|(name, _)| name).collect();
    assert_eq!(differ, changed);
    let mut expected = made.files.clone();
    expected.remove(&path);
    assert_eq!(others, expected);
}
