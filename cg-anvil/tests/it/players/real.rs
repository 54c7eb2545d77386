//! Players of saves that the game wrote.

use super::*;
use crate::worlds;

fn check(name: &str, expected: u64) {
    let Some(folder) = worlds::folder() else { return };
    let source = folder.join(name);
    let made = Made::new(V26_2, Files::new());
    let save = made.dir.path().join("save");
    // The players and what says where the game looks for them; other tests have the regions.
    let mut files = Files::new();
    walk(&source, &source.join("players"), &mut files);
    for file in ["level.dat", "level.dat_old"] {
        files.insert(file.to_owned(), fs::read(source.join(file)).expect("there"));
    }
    for (name, bytes) in &files {
        let path = save.join(name);
        fs::create_dir_all(path.parent().expect("below the save")).expect("a folder");
        fs::write(path, bytes).expect("written");
    }
    let report = import(&save, &made.world, &ImportOptions::default(), |_| {}).expect("an import");
    assert_eq!((report.players, report.players_as_files.len(), report.unreadable.len()), (expected, 0, 0));
    let players =
        files.iter().filter(|(name, _)| name.starts_with("players/data/") && name.ends_with(".dat"));
    let mut count = 0;
    for (name, bytes) in players {
        let uuid = name["players/data/".len()..].trim_end_matches(".dat").parse().expect("a UUID");
        let player = made.player(uuid).expect("is an entity");
        let raw = tree(bytes);
        let root = Document::parse(&raw, &Limits::default()).expect("NBT").root;
        assert_eq!(player.component(made.nbt()), Some(root.raw()));
        let pos: Vec<_> =
            root.list("Pos").expect("a place").values().filter_map(nbt::Value::as_double).collect();
        let off =
            pos.iter().zip(player.position.to_f64()).map(|(is, of)| (is - of).abs()).fold(0.0, f64::max);
        assert!(off < 1e-6, "{name}: {off}");
        count += 1;
    }
    assert_eq!(count, expected);
    let (report, back) = made.export("out");
    assert_eq!((report.players, report.changed_players, report.not_exported.len()), (expected, 0, 0));
    assert!(back == files, "{:?}", back.keys());
}

#[test]
fn players_of_a_server_of_26_1_1() {
    check("java26/26.1.1_paper_server", 3);
}

#[test]
fn players_of_a_map_of_26_2() {
    check("java26/26.2_upgraded_map", 5);
}
