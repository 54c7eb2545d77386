//! The command killed before each change of a file: every slot is the old or the new one, and the same command again ends
//! as one that was not killed.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use cg_anvil::export::into::{IntoOptions, IntoProgress, export_into};
use cg_format::{BlockBox, BlockPos};
use cg_store::World;

use super::super::folder::{Slots, copy, paths, slots};
use super::super::save::{Dimensions, LATER, NETHER, NEW, OVERWORLD};
use super::super::test_dir::TestDir;
use super::{BOXES, external, files};

const STEP: &str = "CG_TEST_INTO_STEP";
const FOLDER: &str = "CG_TEST_INTO_FOLDER";

/// In a process of its own: puts columns, and ends at once before the wanted change.
#[test]
#[ignore = "the others run it as a process"]
fn child() {
    let (Ok(step), Some(folder)) = (std::env::var(STEP), std::env::var_os(FOLDER)) else { return };
    let (mut step, folder) = (step.parse::<u32>().expect("a number"), std::path::PathBuf::from(folder));
    let world = World::builder().open_read_only(folder.join("world")).expect("sound");
    let boxes = BOXES.iter().chain(&external::BOX).map(|[x0, y0, z0, x1, y1, z1]| {
        let corner = |x: &i32, y: &i32, z: &i32| BlockPos::new((*x).into(), (*y).into(), (*z).into());
        BlockBox::new(corner(x0, y0, z0), corner(x1, y1, z1))
    });
    let options = IntoOptions {
        dimension: OVERWORLD.to_owned(),
        boxes: boxes.collect(),
        replace_entities: true,
        ..IntoOptions::default()
    };
    let done = export_into(&world, &folder.join("save"), &options, |now| {
        if let IntoProgress::Changes(_) = now {
            if step == 0 {
                std::process::abort();
            }
            step -= 1;
        }
    });
    done.expect("it was not killed");
}

/// The slots of all region files of a save.
fn all_slots(dir: &TestDir, save: &str) -> BTreeMap<String, Slots> {
    let regions = paths(&dir.at(save))
        .into_iter()
        .filter(|name| std::path::Path::new(name).extension() == Some("mca".as_ref()));
    regions.map(|name| (name.clone(), slots(&dir.at(save).join(name)))).collect()
}

fn reset(dir: &TestDir, save: &str) {
    for folder in [save.to_owned(), format!("{save}.cg-replaced-1"), format!("{save}.cg-replaced-1.part")] {
        if dir.at(&folder).exists() {
            fs::remove_dir_all(dir.at(&folder)).expect("removed");
        }
    }
    copy(&dir.at("was"), &dir.at(save));
}

#[test]
fn a_kill_before_each_change_leaves_old_or_new_and_the_same_command_ends_alike() {
    let dir = TestDir::new();
    external::make(&dir);
    // Entities of the box that are elsewhere: in another dimension, and in a column beside the box.
    let overworld = Dimensions.folder(OVERWORLD);
    for name in ["before", "save"] {
        dir.save(name).blocks(Dimensions.folder(NETHER), LATER, &[(7, 7)]);
    }
    let pigs = slots(&dir.at("before").join(overworld).join("entities/r.0.0.mca"));
    let pig = &pigs[&super::index(external::SMALL)].1;
    dir.save("save").slots(&format!("{}/entities", Dimensions.folder(NETHER)), [((7, 7), pig.clone(), 5)]);
    dir.save("save").level(NEW, "world").file("session.lock", "");
    fs::remove_dir_all(dir.at("was")).expect("there");
    copy(&dir.at("save"), &dir.at("was"));

    // One that is not killed.
    let boxes: Vec<_> = BOXES.iter().chain(&external::BOX).copied().collect();
    reset(&dir, "done");
    let report = dir.put_into("world", "done", &boxes, &["--replace-entities"]).good();
    assert_eq!(report["taken"]["count"], 1);
    let [is, kept] = ["done", "done.cg-replaced-1"].map(|folder| files(&dir.at(folder)));
    let [old, new] = ["was", "done"].map(|save| all_slots(&dir, save));

    let mut steps = 0;
    loop {
        reset(&dir, "save");
        let child = Command::new(std::env::current_exe().expect("a test has a file"))
            .args(["--exact", "java26::into::killed::child", "--ignored", "--test-threads=1"])
            .env(STEP, steps.to_string())
            .env(FOLDER, dir.at(""))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("it runs");
        for (name, now) in all_slots(&dir, "save") {
            let (old, new) = (old.get(&name).cloned().unwrap_or_default(), &new[&name]);
            let is_large = |slot: &u16| *slot == super::index(external::STAYS_LARGE);
            let rest = |slots: &Slots| -> Slots {
                slots
                    .iter()
                    .filter(|(slot, _)| !is_large(slot))
                    .map(|(slot, of)| (*slot, of.clone()))
                    .collect()
            };
            // All slots of a file are old, or all are new; but for the tree of one whose `.mcc` file came first.
            assert!(rest(&now) == rest(&old) || rest(&now) == rest(new), "{name} after {steps} changes");
            for (slot, (_, nbt)) in &now {
                let is = |of: &Slots| of.get(slot).is_some_and(|(_, of)| of == nbt);
                assert!(is(&old) || is(new), "{name} slot {slot} after {steps} changes");
            }
        }
        let again = dir.put_into("world", "save", &boxes, &["--replace-entities"]).good();
        assert_eq!(
            files(&dir.at("save")).keys().collect::<Vec<_>>(),
            is.keys().collect::<Vec<_>>(),
            "{steps}"
        );
        assert!(files(&dir.at("save")) == is, "other files after {steps} changes");
        assert!(files(&dir.at("save.cg-replaced-1")) == kept, "another backup after {steps} changes");
        assert!(
            !dir.at("save.cg-replaced-2").exists() && !dir.at("save.cg-replaced-1.part").exists(),
            "{again}"
        );
        if child.success() {
            break;
        }
        steps += 1;
    }
    // A partial file and its backup, `.mcc` files of which one is deleted, and the file itself; for three files.
    assert!(steps >= 10, "only {steps} changes");
}
