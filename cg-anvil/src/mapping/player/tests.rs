//! Names of files of players, marks, and dimensions.

use super::*;

#[test]
fn only_names_of_the_game_are_files_of_players() {
    let uuid = Uuid::from_u128(0xab << 120 | 1);
    let name = |folder: &str, ending: &str| format!("{folder}{uuid}{ending}");
    let found = |name: &str| PlayerFile::of(name);
    for (layout, folder) in FOLDERS {
        for (ending, is_backup) in [(".dat", false), (".dat_old", true)] {
            let file = PlayerFile { uuid, layout, is_backup };
            assert_eq!(found(&name(folder, ending)), Some(file));
        }
        assert_eq!(PlayerFile::path(uuid, layout), name(folder, ".dat"));
    }
    let others = [
        name("", ".dat"),
        name("world/playerdata/", ".dat"),
        name("playerdata/old/", ".dat"),
        name("playerdata/", ""),
        name("playerdata/", ".dat_old2"),
        name("playerdata/", ".dat").replace("ab", "AB"),
        format!("playerdata/{}.dat", uuid.simple()),
        "playerdata/.dat".to_owned(),
    ];
    for other in others {
        assert_eq!(found(&other), None, "{other}");
    }
}

#[test]
fn a_mark_comes_back_and_nothing_else_is_one() {
    for (nbt, is_of_level) in [(None, false), (Some([7; 16]), true), (Some([0; 16]), false)] {
        let mark = PlayerMark { nbt, is_of_level };
        assert_eq!(PlayerMark::decode(&mark.encode()), Some(mark));
    }
    let short = nbt::payload(|out| {
        begin(out);
        out.byte_array("nbt", &[7; 15]);
    });
    for other in [vec![], b"spoilt".to_vec(), nbt::payload(|_| ()), short] {
        assert_eq!(PlayerMark::decode(&other), None, "{other:?}");
    }
}

#[test]
fn a_dimension_is_a_name_or_a_number() {
    let place = |write: &dyn Fn(&mut nbt::CompoundWriter<'_>)| {
        let nbt = nbt::payload(|out| {
            out.doubles("Pos", &[1.0, 2.0, 3.0]);
            write(out);
        });
        Place::of(Compound::parse(&nbt, &nbt::Limits::default()).expect("NBT")).map(|place| place.dimension)
    };
    let number = |number| place(&|out| out.int(DIMENSION, number));
    let name = |name: &str| place(&|out| out.string(DIMENSION, name).expect("short"));
    for (dimension, found) in [
        ("minecraft:overworld", place(&|_| ())),
        ("minecraft:overworld", number(0)),
        ("minecraft:the_nether", number(-1)),
        ("minecraft:the_end", number(1)),
        ("dim:7", number(7)),
        ("minecraft:the_end", name("the_end")),
        ("twilight:forest/deep", name("twilight:forest/deep")),
    ] {
        assert_eq!(found.as_deref(), Some(dimension));
    }
    assert_eq!(place(&|out| out.compound(DIMENSION, |_| ())), None);
    for name in ["minecraft:overworld", "minecraft:the_nether", "dim:-7"] {
        let number = number_of_dimension(name).expect("has a number");
        assert_eq!(dimension_of_number(number.into()), name);
    }
    assert_eq!(number_of_dimension("twilight:forest"), None);
}
