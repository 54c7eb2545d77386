//! `cg prune` and the entities that belong to no chunk.

use std::fs;
use std::path::{Path, PathBuf};

use cg_anvil::ColumnPos;
use cg_anvil::column::EntityColumn;
use cg_anvil::nbt::{self, Tag};
use cg_anvil::write;
use cg_store::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::{Said, Sample, run, text};
use crate::maker;

/// 1.16.5, the last release that keeps entities in columns.
const OLD: i32 = 2586;

/// An imported save of one column with a section at y 0, and of one beside it. Each has a phantom high above, in no stored
/// chunk, and an item below.
struct Imported {
    dir: TempDir,
}

impl Imported {
    fn new(data_version: i32) -> Self {
        let dir = TempDir::new().expect("a directory");
        let save = dir.path().join("save");
        fs::create_dir_all(save.join("region")).expect("creates");
        let level = nbt::document(|root| root.compound("Data", |data| data.int("DataVersion", data_version)));
        fs::write(save.join("level.dat"), maker::gzip(&level)).expect("writes");
        let (mut columns, mut in_files) = (Vec::new(), Vec::new());
        for x in [20, 21] {
            let at = |y| [f64::from(x * 16) + 4.5, y, 4.5];
            let entities = vec![
                maker::entity("minecraft:phantom", [0, 0, x, 1], at(400.0), &[]),
                maker::entity("minecraft:item", [0, 0, x, 2], at(-70.0), &[]),
            ];
            let mut column = maker::column(x, 0, [maker::patterned(0, 3)]);
            column.data_version = data_version;
            if data_version == OLD {
                column.entities = entities;
            } else {
                let slot = EntityColumn {
                    pos: ColumnPos::new(x, 0),
                    data_version,
                    stated: None,
                    entities,
                    list: Some(Tag::End),
                    left: None,
                };
                in_files.push(maker::zlib((x, 0), &write::entities(&slot).expect("entities")));
            }
            columns.push(maker::zlib((x, 0), &write::column(&column).expect("a column of the game's form")));
        }
        maker::region(&save.join("region/r.0.0.mca"), &columns);
        if !in_files.is_empty() {
            fs::create_dir(save.join("entities")).expect("creates");
            maker::region(&save.join("entities/r.0.0.mca"), &in_files);
        }
        let imported = Self { dir };
        let said = run(&["import", text(&save), text(&imported.world())]);
        assert!(said.code == 0 && said.out.contains("entities 4 (detached: 4)"), "{said:?}");
        imported
    }

    fn world(&self) -> PathBuf {
        self.dir.path().join("world")
    }

    fn prune(&self, area: [&str; 6], more: &[&str]) -> Said {
        run(&[&["prune", text(&self.world()), "--box"], &area[..], more].concat())
    }

    /// Counts of chunks and entities that a prune reports.
    fn pruned(&self, area: [&str; 6]) -> Value {
        let said = self.prune(area, &["--yes", "--json"]);
        assert_eq!(said.code, 0, "{said:?}");
        let found = said.json();
        json!([found["chunks"], found["entities"], found["detached"], found["left_detached"]])
    }

    fn entities(&self) -> Value {
        run(&["info", text(&self.world()), "--json"]).json()["entities"].take()
    }

    fn export(&self) -> (PathBuf, Said) {
        let out = self.dir.path().join("out");
        let said = run(&["export", text(&self.world()), "--mca", text(&out)]);
        (out, said)
    }
}

fn is_there(save: &Path, name: &str) -> bool {
    save.join(name).is_file()
}

#[test]
fn those_of_a_column_go_with_its_last_chunk() {
    for data_version in [OLD, maker::DATA_VERSION] {
        let imported = Imported::new(data_version);
        let area = ["320", "0", "0", "335", "15", "15"];
        let dry = imported.prune(area, &["--dry-run"]).good();
        assert!(dry.starts_with("1 chunk of minecraft:overworld, 2 entities ("), "{dry}");
        assert_eq!(imported.entities(), json!(4));
        // A pack of the box would not bring back what goes with the column.
        let file = imported.dir.path().join("pack");
        let pack = |top| {
            let area = ["--box", "320", "0", "0", "335", top, "15"];
            run(&[&["pack", text(&imported.world()), text(&file)], &area[..]].concat())
        };
        let refused = "cg: the box has 2 detached entities, which a pack does not hold; nothing was written";
        assert!(pack("15").err.starts_with(refused), "{:?}", pack("15"));
        assert_eq!(imported.pruned(area), json!([1, 2, 2, 0]), "{data_version}");
        assert_eq!(imported.entities(), json!(2), "those of the other column stay");
        let (out, said) = imported.export();
        said.good();
        assert_eq!(is_there(&out, "entities/r.0.0.mca"), data_version != OLD);
        assert_eq!(run(&["verify", text(&imported.world())]).code, 0);
    }
}

#[test]
fn those_of_a_box_without_chunks_go_and_the_column_stays() {
    let imported = Imported::new(maker::DATA_VERSION);
    assert_eq!(imported.pruned(["0", "384", "0", "1000", "500", "15"]), json!([0, 2, 2, 0]));
    assert_eq!(
        imported.pruned(["320", "-80", "0", "330", "-60", "15"]),
        json!([0, 0, 0, 0]),
        "no whole chunk"
    );
    assert_eq!(imported.pruned(["300", "-2048", "0", "340", "2047", "20"]), json!([1, 1, 1, 0]));
    assert_eq!(imported.entities(), json!(1));
}

#[test]
fn an_entity_that_a_host_took_out_of_its_chunk_stays_and_is_counted() {
    let sample = Sample::new();
    let area = ["--box", "0", "64", "-16", "15", "95", "-1", "--yes"];
    let said = sample.cg("prune", &area).good();
    assert!(said.starts_with("2 chunks of game:overworld, 1 entity ("), "{said}");
    assert!(said.ends_with("1 detached entity stays that a host took out of the chunks\n"), "{said}");
    let left = sample.cg("info", &["--json"]).json();
    assert_eq!((&left["entities"], &left["detached"]), (&json!(1), &json!(1)));
}

#[test]
fn no_entities_folder_is_made_for_a_version_that_knows_none() {
    let imported = Imported::new(OLD);
    let world = World::builder().open(imported.world()).expect("opens");
    let deleted = world.transaction(|tx| {
        let objects = ["column", "poi", "entities"];
        tx.delete(ColumnPos::new(20, 0).chunk_at(Dimension::new(0), 0));
        for kind in objects {
            let key = format!("minecraft/{kind}/minecraft:overworld/r.0.0/20/0");
            tx.delete_object(cg_store::objects::ObjectKey::new(key)?)?;
        }
        Ok::<_, Error>(())
    });
    deleted.expect("deletes");
    world.close().expect("closes");
    drop(world);
    let (out, said) = imported.export();
    let lost = "not exported: entities of columns that are not stored, which versions before 1.17 have only in columns (2)\n";
    assert!(said.code == 1 && said.out.starts_with(lost), "{said:?}");
    assert!(!out.join("entities").exists());
    assert!(is_there(&out, "region/r.0.0.mca"));
}
