//! Out of a world again: what an export wrote against what was imported, and imported once more.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cg_anvil::column::{CELLS, Column, Lists, Section};
use cg_anvil::export::{ExportOptions, ExportReport, export};
use cg_anvil::nbt::Tag;
use cg_anvil::save;
use cg_store::World;

use crate::import::imported;
use crate::{leftovers, worlds};

pub(crate) fn exported(world: &World, dir: &Path) -> ExportReport {
    let report = export(world, dir, &ExportOptions::default(), |_| {}).expect("an export");
    assert_eq!(report.not_exported, BTreeMap::new());
    assert_eq!(report.changed_columns, 0);
    report
}

/// A section as it looks: its palette in the order in which cells show it.
#[derive(Debug, PartialEq)]
struct Look {
    y: i32,
    palette: Vec<Arc<str>>,
    cells: Option<Vec<u16>>,
    biomes: Option<Vec<u8>>,
    block_light: Option<Vec<u8>>,
    sky_light: Option<Vec<u8>>,
    left: Option<Vec<u8>>,
}

fn look(section: &Section) -> Look {
    let (mut palette, mut cells) = (Vec::<Arc<str>>::new(), None);
    if let Some(blocks) = &section.blocks {
        let mut numbers = BTreeMap::<Arc<str>, u16>::new();
        let mut of_entry = vec![u16::MAX; blocks.palette.len()];
        let shown = (0..CELLS as u16).map(|cell| {
            let entry = usize::from(blocks.index(cell));
            if of_entry[entry] == u16::MAX {
                let state = &blocks.palette[entry];
                of_entry[entry] = *numbers.entry(Arc::clone(state)).or_insert_with(|| {
                    palette.push(Arc::clone(state));
                    (palette.len() - 1) as u16
                });
            }
            of_entry[entry]
        });
        cells = Some(shown.collect());
    }
    let Section { y, biomes, block_light, sky_light, left, .. } = section.clone();
    Look { y, palette, cells, biomes, block_light, sky_light, left }
}

/// The lists of a column; one that holds something is there, whatever was noted.
fn lists(column: &Column) -> Lists {
    let Column { sections, block_entities, entities, lists, .. } = column;
    let kind = |is_empty, noted| if is_empty { noted } else { Some(Tag::End) };
    Lists {
        sections: kind(sections.is_empty(), lists.sections),
        block_entities: kind(block_entities.is_empty(), lists.block_entities),
        entities: kind(entities.is_empty(), lists.entities),
    }
}

/// Columns are the same to every reader: cell for cell, and byte for byte what is carried as bytes.
#[track_caller]
pub(crate) fn check_columns(file: &str, before: &[&Column], after: &[&Column]) {
    let places = |columns: &[&Column]| -> Vec<_> {
        columns.iter().map(|column| (column.pos, column.data_version)).collect()
    };
    assert_eq!(places(after), places(before), "{file}");
    for (before, after) in before.iter().zip(after) {
        let what = format!("{file}: column {}", before.pos);
        assert_eq!(after.carried, before.carried, "{what}");
        assert!(after.left == before.left && after.beside == before.beside, "{what}");
        assert_eq!(after.sections.len(), before.sections.len(), "{what}");
        for (before, after) in before.sections.iter().zip(&after.sections) {
            assert!(look(before) == look(after), "{what}: section {}", before.y);
        }
        assert_eq!(after.block_entities, before.block_entities, "{what}");
        assert_eq!(after.entities, before.entities, "{what}");
        assert_eq!(lists(after), lists(before), "{what}");
    }
}

/// Exports an imported file, compares it with the file, and imports it again.
#[track_caller]
pub(crate) fn check(file: &str, source: &Path, world: &World) {
    let folder = tempfile::tempdir().expect("a directory");
    let target = folder.path().join("save");
    exported(world, &target);
    let files = save::find(&target).expect("a save").regions;
    let [found] = files.as_slice() else { panic!("{file}: {files:?}") };
    let (before, after) = (worlds::read(source), worlds::read(&found.path));
    leftovers::check_fields(file, source, &found.path);
    assert!(after.lost.is_empty() && after.refused.is_empty() && after.misplaced.is_empty(), "{file}");
    let columns = |reading: &worlds::Reading| -> Vec<Column> {
        reading.columns.iter().map(|(_, column)| column.clone()).collect()
    };
    let (before_columns, after_columns) = (columns(&before), columns(&after));
    check_columns(
        file,
        &before_columns.iter().collect::<Vec<_>>(),
        &after_columns.iter().collect::<Vec<_>>(),
    );
    assert_eq!(after.entities, before.entities, "{file}");

    let again = tempfile::tempdir().expect("a directory");
    // The file alone, for a save's world also knows the layout of its dimensions.
    let (again, report) = imported(&found.path, again.path());
    assert!(report.unreadable.is_empty(), "{file}: {report:?}");
    let hash =
        |world: &World| world.content_hash(cg_store::view::Area::World).expect("no damage").to_string();
    assert_eq!(hash(&again), hash(world), "{file}");
}
