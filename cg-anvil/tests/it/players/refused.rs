//! Files of players that give no entity: reported, and back as they came.

use super::*;
use cg_format::frame::{Codec, Draft, Stamp};
use cg_format::{Space, key};
use cg_store::engine::{Batch, Engine, Level};

/// Imports a save with one more file of a player, and looks that it stays a file.
#[track_caller]
fn check(name: &str, bytes: Vec<u8>, damaged: Option<&str>, other: Option<&str>) {
    let mut files = V1_20.save();
    files.insert(name.to_owned(), bytes);
    let made = Made::new(V1_20, files);
    let report = made.import("save", &ImportOptions::default());
    let unreadable: Vec<_> =
        report.unreadable.iter().map(|lost| (lost.file.as_str(), lost.reason.as_str())).collect();
    let as_files: Vec<_> =
        report.players_as_files.iter().map(|(file, why)| (file.as_str(), why.as_str())).collect();
    assert_eq!(unreadable, damaged.map(|why| (name, why)).into_iter().collect::<Vec<_>>());
    assert_eq!(as_files, other.map(|why| (name, why)).into_iter().collect::<Vec<_>>());
    assert_eq!((report.players, report.is_whole()), (3, damaged.is_none()));
    assert_eq!(made.player(OWNER), None);
    let (report, files) = made.export("out");
    assert_eq!((report.players, report.changed_players, files), (3, 0, made.files.clone()));
}

fn owner(bytes: Vec<u8>, damaged: &str) {
    check(&V1_20.path(OWNER), bytes, Some(damaged), None);
}

#[test]
fn damaged_files_stay_files() {
    let whole = V1_20.file(OWNER, [5.0, 64.0, 5.0], 0, 1);
    owner(vec![], "the player in it cannot be read: the gzip stream ends early");
    owner(whole[..whole.len() - 9].to_vec(), "the player in it cannot be read: the gzip stream ends early");
    owner(b"Steve".to_vec(), "the player in it cannot be read: the gzip stream ends early");
    let cut = tree(&whole);
    let cut = compress_as(Compression::Gzip, &cut[..cut.len() - 1]);
    owner(cut, "the player in it cannot be read: NBT: 1 bytes are needed and 0 are left (at byte 355)");
}

#[test]
fn a_damaged_file_beside_the_player_of_level_dat_stays() {
    let whole = V1_20.file(OWNER, [900.0, 64.0, 5.0], 0, 18);
    let mut files = V1_20.save();
    let level = V1_20.level(|data| {
        data.compound("Player", |out| V1_20.player(out, OWNER, [5.0, 64.0, 5.0], 0, 3));
    });
    files.insert("level.dat".to_owned(), level);
    files.insert(V1_20.path(OWNER), whole[..whole.len() - 9].to_vec());
    let made = Made::new(V1_20, files);
    assert!(!made.import("save", &ImportOptions::default()).is_whole());
    assert!(made.player(OWNER).is_some());
    let (report, files) = made.export("same");
    assert_eq!((report.players, report.changed_players), (4, 0));
    assert_eq!(files, made.files);
    made.set_health(OWNER, 4);
    let (report, files) = made.export("changed");
    assert_eq!(report.changed_players, 1);
    assert_eq!(
        fields(&files[&V1_20.path(OWNER)])["Health"],
        fields(&V1_20.file(OWNER, [0.0; 3], 0, 4))["Health"]
    );
}

#[test]
fn hostile_files_take_bounded_memory() {
    // 64 MiB of zeros in 64 KiB.
    let bomb = compress_as(Compression::Gzip, &vec![0; 64 << 20]);
    owner(bomb, "the player in it cannot be read: more than 1048576 bytes");
    let deep = |depth: usize| {
        let mut raw = nbt::document(|out| V1_20.player(out, OWNER, [5.0, 64.0, 5.0], 0, 1));
        raw.pop();
        raw.extend(b"\x0a\0\x01a".repeat(depth));
        raw.extend(vec![0; depth + 1]);
        compress_as(Compression::Gzip, &raw)
    };
    owner(deep(600), "the player in it cannot be read: NBT: more than 512 levels deep (at byte 2403)");
    let long = nbt::payload(|out| out.int_array("a", &[]));
    let mut raw = nbt::document(|_| ());
    raw.pop();
    raw.extend(&long[..long.len() - 5]);
    raw.extend([0x7f, 0xff, 0xff, 0xff]);
    raw.push(0);
    let why = "the player in it cannot be read: NBT: 2147483647 elements of at least 4 bytes exceed the 1 bytes left (at byte 7)";
    owner(compress_as(Compression::Gzip, &raw), why);
    let large = gzip(|out| {
        V1_20.player(out, OWNER, [5.0, 64.0, 5.0], 0, 1);
        out.byte_array("large", &vec![7; (1 << 20) - 700]);
    });
    owner(large, "the player in it takes 1048753 bytes, more than the world's 1048576");
}

#[test]
fn other_players_stay_files() {
    let file = |uuid| V1_20.file(uuid, [5.0, 64.0, 5.0], 0, 1);
    let stays = |name: &str, bytes, why| check(name, bytes, None, Some(why));
    let path = V1_20.path(OWNER);
    stays(
        &path,
        file(Uuid::from_u128(5)),
        "the player in it has the UUID 00000000-0000-0000-0000-000000000005",
    );
    stays(
        &format!("players/data/{OWNER}.dat"),
        file(OWNER),
        "the game of this save looks for players elsewhere",
    );
    let nowhere = gzip(|out| out.int("Health", 3));
    stays(&path, nowhere, "the player in it is at no place that a world has");
    let far = V1_20.file(OWNER, [f64::NAN, 64.0, 5.0], 0, 1);
    stays(&path, far, "the player in it is at no place that a world has");
    let unnamed = gzip(|out| {
        out.doubles("Pos", &[1.0, 2.0, 3.0]);
        out.string("Dimension", &"x".repeat(1 << 14)).expect("short");
    });
    stays(&path, unnamed, "the player in it is in a dimension that no save can have");
    // What is named otherwise is no file of a player.
    for name in
        ["playerdata/Steve.dat", "playerdata/0123456789abcdef0011223344556677.dat", "world/playerdata/a.dat"]
    {
        check(name, file(OWNER), None, None);
    }
}

#[test]
fn an_entity_with_the_uuid_of_a_player_is_another() {
    let mut files = V1_20.save();
    files.insert(V1_20.path(OWNER), V1_20.file(OWNER, [2000.0, 64.0, 5.0], 0, 1));
    let made = Made::new(V1_20, files);
    made.write("save");
    let words = [0x0123_4567, 0x89ab_cdef_u32.cast_signed(), 0x0011_2233, 0x4455_6677];
    let cow = maker::entity("minecraft:cow", words, [3.0, 64.0, 3.0], &[]);
    let mut column = maker::column(0, 0, [patterned(4, 3)]);
    column.entities = vec![cow];
    let column = write::column(&column).expect("a column");
    maker::region(&made.dir.path().join("save/region/r.0.0.mca"), &[maker::zlib((0, 0), &column)]);
    let report = import(&made.dir.path().join("save"), &made.world, &ImportOptions::default(), |_| {})
        .expect("an import");
    let why = format!("an entity of the save has the player's UUID {OWNER}");
    assert_eq!(report.players_as_files, BTreeMap::from([(V1_20.path(OWNER), why)]));
    assert_eq!((report.players, report.entities), (3, 1));
    let (_, files) = made.export("out");
    assert_eq!(files, made.files);
}

#[test]
fn a_player_in_quarantine_keeps_their_file() {
    let made = Made::imported(V1_20);
    let id = EntityId::new(FAR);
    let mut batch = Batch::new();
    let nonsense = Draft::plain(Codec::None, 0, |out| out.push(0xee));
    batch.put(Space::Entity, key::entity(id), nonsense, Stamp::Commit);
    Engine::commit(&*made.world.engine(), batch, &[], Level::Process).expect("memory is left");
    assert!(made.world.quarantine().entity(id).expect("quarantines"));
    assert_eq!(made.player(FAR), None);
    let (report, files) = made.export("quarantined");
    assert_eq!((report.deleted_players, files), (0, made.files.clone()));
}
