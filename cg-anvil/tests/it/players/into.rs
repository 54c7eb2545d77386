//! Players of a world who are put into a save that is there, with the columns around them.

use super::*;
use cg_anvil::export::into::{IntoOptions, IntoReport, SlotCounts, export_into};
use cg_format::{BlockBox, BlockPos};

fn options() -> IntoOptions {
    IntoOptions {
        dimension: "minecraft:overworld".to_owned(),
        boxes: vec![BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(15, 0, 15))],
        ..IntoOptions::default()
    }
}

impl Made {
    /// Puts the column at (0, 0) into a save, and gives the files of that which are no regions.
    fn put_into(&self, name: &str, options: &IntoOptions) -> (IntoReport, Files) {
        let save = self.dir.path().join(name);
        let report = export_into(&self.world, &save, options, |_| {}).expect("put");
        let mut files = Files::new();
        walk(&save, &save, &mut files);
        files.retain(|name, _| !name.ends_with(".mca") && name != "session.lock");
        assert!(!save.join("entities").exists());
        (report, files)
    }
}

/// The players who were left out, and why.
fn left(report: &IntoReport) -> Vec<(Uuid, &str)> {
    let left = &report.left_players;
    assert_eq!(left.count, left.first.len() as u64);
    left.first.iter().map(|player| (player.uuid, player.why.as_str())).collect()
}

#[test]
fn players_in_the_boxes_are_put_and_all_others_stay() {
    for version in [V1_13, V1_20, V26_2] {
        let made = Made::imported(version);
        for uuid in [IN_COLUMN, FAR, IN_NETHER] {
            made.set_health(uuid, 1);
        }
        made.write("other");
        let put = IntoOptions { allow_newer: true, ..options() };
        let dry = IntoOptions { dry_run: true, ..put.clone() };
        let kept = IntoOptions { keep_players: true, ..put.clone() };
        let replaced = SlotCounts { replaced: 1, ..SlotCounts::default() };
        for (options, counts) in [(&kept, SlotCounts::default()), (&dry, replaced)] {
            let (report, files) = made.put_into("other", options);
            assert_eq!((report.players, report.left_players.count, files), (counts, 0, made.files.clone()));
        }
        let (report, files) = made.put_into("other", &put);
        assert_eq!((report.players, report.left_players.count, report.is_whole()), (replaced, 0, true));
        let mut expected = made.files.clone();
        expected.insert(made.path(IN_COLUMN), version.file(IN_COLUMN, [5.25, 64.0, 6.5], 0, 1));
        assert_eq!(trees(&files), trees(&expected));
        // What was replaced is beside the save.
        let backup = Path::new(report.backups.last().expect("a folder"));
        let old = fs::read(backup.join("files").join(made.path(IN_COLUMN))).expect("kept");
        assert_eq!(old, made.files[&made.path(IN_COLUMN)]);
        let (report, again) = made.put_into("other", &put);
        assert_eq!((report.players, again), (SlotCounts { equal: 1, ..SlotCounts::default() }, files));
        // One whom the save does not have gets a file.
        fs::remove_file(made.dir.path().join("other").join(made.path(IN_COLUMN))).expect("there");
        let (report, files) = made.put_into("other", &put);
        assert_eq!(report.players, SlotCounts { new: 1, ..SlotCounts::default() });
        assert_eq!(trees(&files), trees(&expected));
    }
}

#[test]
fn the_player_of_level_dat_is_put_there_too() {
    for has_file in [true, false] {
        let mut files = V1_20.save();
        let level = |health| {
            V1_20.level(|data| {
                data.compound("Player", |out| V1_20.player(out, OWNER, [5.0, 64.0, 5.0], 0, health));
            })
        };
        files.insert("level.dat".to_owned(), level(3));
        if has_file {
            files.insert(V1_20.path(OWNER), V1_20.file(OWNER, [5.0, 64.0, 5.0], 0, 3));
        }
        let made = Made::new(V1_20, files);
        made.import("save", &ImportOptions::default());
        made.set_health(OWNER, 4);
        let put = IntoOptions { allow_newer: true, ..options() };
        let (report, files) = made.put_into("save", &put);
        assert_eq!(report.players, SlotCounts { replaced: 1, equal: 1, ..SlotCounts::default() });
        // What was replaced is no save that the game would list.
        let mut kept = Files::new();
        let backup = Path::new(report.backups.last().expect("a folder"));
        walk(backup, backup, &mut kept);
        kept.retain(|name, _| !name.ends_with(".mca"));
        let replaced =
            ["level.dat".to_owned(), V1_20.path(OWNER)].into_iter().take(1 + usize::from(has_file));
        let replaced = replaced.map(|name| (format!("files/{name}"), made.files[&name].clone()));
        assert_eq!(kept, replaced.collect());
        let mut expected = made.files.clone();
        expected.insert("level.dat".to_owned(), level(4));
        if has_file {
            expected.insert(V1_20.path(OWNER), V1_20.file(OWNER, [5.0, 64.0, 5.0], 0, 4));
        }
        assert_eq!(trees(&files), trees(&expected));
    }
}

#[test]
fn a_player_is_left_out_who_is_newer_or_whose_vehicle_is_elsewhere() {
    let made = Made::imported(V1_20);
    made.set_health(IN_COLUMN, 1);
    let mut other = Made { version: V1_13, files: V1_13.save(), ..Made::imported(V1_20) };
    other.dir = tempfile::tempdir().expect("a folder");
    other.set_health(IN_COLUMN, 1);
    other.write("older");
    let (report, files) = other.put_into("older", &options());
    assert_eq!((report.players, report.is_whole()), (SlotCounts::default(), false));
    assert_eq!(left(&report), [(IN_COLUMN, "their game is newer than the save's")]);
    assert_eq!(files, other.files);

    // In the save another player has that pearl.
    let thief = Uuid::from_u128(5);
    made.write("stolen");
    let save = made.dir.path().join("stolen");
    let put = IntoOptions { allow_newer: true, ..options() };
    let stolen = gzip(|out| out.raw_compounds("ender_pearls", [&pearl(IN_COLUMN)[..]].into_iter()));
    fs::write(save.join(made.path(thief)), stolen).expect("written");
    let theirs = format!(
        "the save has the entity 00000007-0000-0007-0000-000700000002, which is with them, in {}",
        made.path(Uuid::from_u128(5))
    );
    for replace_entities in [false, true] {
        let (report, files) = made.put_into("stolen", &IntoOptions { replace_entities, ..put.clone() });
        assert_eq!(report.players, SlotCounts::default());
        assert_eq!(left(&report), [(IN_COLUMN, theirs.as_str())]);
        assert_eq!(files[&made.path(IN_COLUMN)], made.files[&made.path(IN_COLUMN)]);
        assert!(report.elsewhere.first.iter().any(|place| place.file == made.path(thief)));
    }
    fs::remove_file(save.join(made.path(thief))).expect("there");
    assert_eq!(made.put_into("stolen", &put).0.players.replaced, 1);
}

/// What no other player has with them.
const DONKEY: Uuid = Uuid::from_u128(9);

/// The file of a player in the column who has these entities with them.
fn holding(entities: &[Uuid]) -> Vec<u8> {
    let entities: Vec<_> = entities.iter().map(|of| pearl(*of)).collect();
    gzip(|out| {
        out.int("DataVersion", V1_20.data_version);
        out.int("Health", 20);
        out.doubles("Pos", &[5.25, 64.0, 6.5]);
        out.raw_compounds("ender_pearls", entities.iter().map(Vec::as_slice));
    })
}

/// A world with such a player, and a save with another state of them.
fn holder(in_world: &[Uuid], in_save: &[Uuid]) -> (Made, std::path::PathBuf) {
    let mut files = V1_20.save();
    files.insert(V1_20.path(IN_COLUMN), holding(in_world));
    let mut made = Made::new(V1_20, files);
    assert!(made.import("save", &ImportOptions::default()).is_whole());
    made.files.insert(V1_20.path(IN_COLUMN), holding(in_save));
    made.write("other");
    let save = made.dir.path().join("other");
    (made, save)
}

/// Gives a save a slot of `entities/` with one of them.
fn stray(save: &Path, column: (i32, i32), of: Uuid) -> Vec<u8> {
    let slot = nbt::document(|root| {
        root.int_array("Position", &[column.0, column.1]);
        root.int("DataVersion", V1_20.data_version);
        root.raw_compounds("Entities", [&pearl(of)[..]].into_iter());
    });
    let path = save.join("entities/r.0.0.mca");
    fs::create_dir_all(save.join("entities")).expect("a folder");
    maker::region(&path, &[maker::zlib(column, &slot)]);
    fs::read(path).expect("written")
}

#[test]
fn what_a_player_has_with_them_who_is_left_out_stays_where_the_save_has_it() {
    let (made, save) = holder(&[IN_COLUMN, DONKEY], &[]);
    let before = stray(&save, (1, 0), DONKEY);
    let thief = gzip(|out| out.raw_compounds("ender_pearls", [&pearl(IN_COLUMN)[..]].into_iter()));
    fs::write(save.join(made.path(Uuid::from_u128(5))), thief).expect("written");
    let theirs = format!(
        "the save has the entity 00000007-0000-0007-0000-000700000002, which is with them, in {}",
        made.path(Uuid::from_u128(5))
    );
    let put = IntoOptions { allow_newer: true, replace_entities: true, ..options() };
    let report = export_into(&made.world, &save, &put, |_| {}).expect("put");
    assert_eq!(report.players, SlotCounts::default());
    assert_eq!(left(&report), [(IN_COLUMN, theirs.as_str())]);
    assert_eq!(report.taken.count, 0);
    assert_eq!(fs::read(save.join("entities/r.0.0.mca")).expect("there"), before);
}

#[test]
fn a_player_is_left_out_whose_column_is_not_put() {
    // The column is of a newer game than the save.
    let made = Made::imported(V1_20);
    made.set_health(IN_COLUMN, 1);
    made.write("other");
    let (report, files) = made.put_into("other", &options());
    assert_eq!((report.newer_columns.count, report.columns), (1, SlotCounts::default()));
    assert_eq!((report.players, files), (SlotCounts::default(), made.files.clone()));
    assert_eq!(left(&report), [(IN_COLUMN, "their column is not put")]);
    // The world has no such column, but the player in it.
    let mut files = V1_20.save();
    files.insert(V1_20.path(FAR), V1_20.file(FAR, [20.0, 64.0, 5.0], 0, 7));
    let made = Made::new(V1_20, files);
    made.import("save", &ImportOptions::default());
    made.set_health(FAR, 1);
    let boxes = vec![BlockBox::new(BlockPos::new(16, 0, 0), BlockPos::new(31, 0, 15))];
    let put = IntoOptions { allow_newer: true, boxes, ..options() };
    let (report, files) = made.put_into("save", &put);
    assert_eq!((report.players, files), (SlotCounts::default(), made.files.clone()));
    assert_eq!(left(&report), [(FAR, "their column is not put")]);
    assert_eq!(report.warnings, [""; 0]);
    let (report, _) = made.put_into("save", &IntoOptions { keep_players: true, ..put });
    assert_eq!(left(&report), []);
    assert_eq!(report.warnings, ["the world has nothing of minecraft:overworld in the boxes"]);
}

#[test]
fn what_is_gone_with_a_players_file_is_counted_and_what_comes_into_it_is_not() {
    let put = IntoOptions { allow_newer: true, ..options() };
    let replaced = SlotCounts { replaced: 1, ..SlotCounts::default() };
    let (made, save) = holder(&[IN_COLUMN], &[IN_COLUMN, DONKEY]);
    let report = export_into(&made.world, &save, &put, |_| {}).expect("put");
    assert_eq!((report.players, report.removed_entities), (replaced, 1));
    let report = export_into(&made.world, &save, &put, |_| {}).expect("put");
    assert_eq!((report.players.equal, report.removed_entities), (1, 0));
    // What stood in the column is the player's now.
    let (made, save) = holder(&[DONKEY], &[]);
    stray(&save, (0, 0), DONKEY);
    let report = export_into(&made.world, &save, &put, |_| {}).expect("put");
    assert_eq!((report.players, report.elsewhere.count), (replaced, 0));
    assert_eq!((report.entity_slots.removed, report.removed_entities), (1, 0));
}

#[test]
fn players_are_not_put_where_a_server_keeps_another_dimension() {
    let made = Made::new(V1_20, V1_20.save());
    let column = write::column(&maker::column(0, 0, [patterned(4, 3)])).expect("a column");
    let nether = |name: &str| {
        let folder = made.dir.path().join(name).join("DIM-1/region");
        fs::create_dir_all(&folder).expect("a folder");
        maker::region(&folder.join("r.0.0.mca"), &[maker::zlib((0, 0), &column)]);
    };
    nether("save");
    assert!(made.import("save", &ImportOptions::default()).is_whole());
    let put = IntoOptions { allow_newer: true, dimension: "minecraft:the_nether".to_owned(), ..options() };
    // One that has nothing else, and one beside the save of the overworld.
    for name in ["alone", "world_nether"] {
        let save = made.dir.path().join(name);
        fs::create_dir_all(&save).expect("a folder");
        fs::write(save.join("level.dat"), &made.files["level.dat"]).expect("written");
        if name == "alone" {
            nether(name);
        } else {
            made.write("world");
        }
        let (report, files) = made.put_into(name, &put);
        assert_eq!((report.columns.equal + report.columns.new, report.players), (1, SlotCounts::default()));
        assert_eq!(
            left(&report),
            [(IN_NETHER, "a server looks for players in the save of the overworld alone")]
        );
        assert_eq!(files.keys().collect::<Vec<_>>(), ["level.dat"]);
    }
    nether("whole");
    made.write("whole");
    fs::remove_file(made.dir.path().join("whole").join(made.path(IN_NETHER))).expect("there");
    let (report, files) = made.put_into("whole", &put);
    assert_eq!((report.players.new, report.left_players.count), (1, 0));
    assert_eq!(trees(&files), trees(&made.files));
}
