//! Saves that have more of something than one property of a world holds.

use std::ops::ControlFlow;
use std::path::Path;

use cg_anvil::column::{Blocks, Column, Section};
use cg_anvil::import::{ImportError, ImportOptions, ImportReport, Unlisted, Unreadable, import};
use cg_anvil::{nbt, write};
use cg_store::StoreLimits;
use cg_store::prelude::*;
use expect_test::expect;

use crate::maker::{self, patterned};
use crate::saves::hopeless;

fn world() -> World {
    World::builder().in_memory().expect("a world in memory")
}

/// Imports with a stop after every third transaction, as often as it takes.
fn imported_in_parts(save: &Path, world: &World) -> ImportReport {
    let options = ImportOptions { stop_after_transactions: Some(3), ..ImportOptions::default() };
    loop {
        match import(save, world, &options, |_| {}) {
            Err(ImportError::Stopped(3)) => {}
            ended => return ended.expect("what is too much is counted, not refused"),
        }
    }
}

#[test]
fn a_report_beyond_any_property_keeps_its_counts_and_the_first_of_each_slot() {
    let save = tempfile::tempdir().expect("a directory");
    hopeless(save.path());
    let whole = import(save.path(), &world(), &ImportOptions::default(), |_| {}).expect("an import");
    assert_eq!(imported_in_parts(save.path(), &world()), whole);

    assert_eq!((whole.imported_columns, whole.entities, whole.detached), (2, 1500, 1500));
    assert_eq!(whole.unreadable_count(), 5000 + 1 + 300 + 2000);
    let (in_slots, files): (Vec<_>, Vec<_>) = whole.unreadable.iter().partition(|lost| lost.slot.is_some());
    assert_eq!((in_slots.len(), files.len()), (1024 + 1 + 1, 1024));
    assert_eq!(whole.rekeyed.len(), 1024);
    let unlisted =
        Unlisted { unreadable: 5000 - 1024 + 299 + 2000 - 1024, rekeyed: 1499 - 1024, ..Unlisted::default() };
    assert_eq!(whole.unlisted, unlisted);
    assert!(!whole.is_whole());

    let last: Vec<_> = in_slots[1023..]
        .iter()
        .map(|lost| {
            let slot = lost.slot.expect("a slot");
            let reason = lost.reason.replace(&"[".repeat(100), "<100>");
            format!("{slot}: {reason}\n")
        })
        .collect();
    expect![[r#"
        0: section ?: it has no Y from -128 to 127
        1: compression 9 does not exist
        2: section -128: "<100><100>[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[… (59790 bytes more)
    "#]]
    .assert_eq(&last.concat());
    let longest = files.iter().map(|lost| &lost.file).max_by_key(|name| name.len()).expect("there are names");
    expect!["1921<100><100>xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx/yyyyyy… (246 bytes more)"]
        .assert_eq(&longest.replace(&"x".repeat(100), "<100>"));
}

#[test]
fn entities_that_wait_for_their_chunks_need_not_fit_one_property() {
    let save = tempfile::tempdir().expect("a directory");
    // They stand in the last column, which comes after both.
    let crowded = |x: i32| {
        let pig = |number| maker::entity("minecraft:pig", [0, 0, x, number], [500.0, 70.0, 3.0], &[]);
        Column { entities: (0..4500).map(pig).collect(), ..maker::column(x, 0, [patterned(4, 2)]) }
    };
    let columns = [crowded(0), crowded(16), maker::column(31, 0, [patterned(4, 2)])];
    let slots =
        columns.map(|column| maker::zlib((column.pos.x, 0), &write::column(&column).expect("a column")));
    maker::region(&save.path().join("r.0.0.mca"), &slots);
    // Room for 6,700 of them.
    let limits = StoreLimits { property_bytes: 256 << 10, ..StoreLimits::default() };
    let options = WorldOptions { limits, ..WorldOptions::default() };
    let world = World::builder().options(&options).in_memory().expect("a world in memory");
    let report = imported_in_parts(save.path(), &world);
    assert_eq!((report.entities, report.detached), (9000, 0));
    let overworld = world.catalog().dimension("minecraft:overworld").expect("the save has it");
    let at = ChunkAt::new(overworld, ChunkPos::new(31, 4, 0).expect("in the world"));
    let chunk = world.load(at).expect("no damage").expect("stored");
    assert_eq!(chunk.entities().len(), 9000);
    let left = world.read_view(|view| {
        view.for_each_property("minecraft:", |property| {
            ControlFlow::Break(property.expect("no damage").0.to_owned())
        })
    });
    assert_eq!(left.expect("no damage"), None, "the import leaves no progress behind");
}

#[test]
fn what_stands_beside_the_sections_and_is_too_large_costs_nothing_else() {
    let save = tempfile::tempdir().expect("a directory");
    let heavy = |x, sections: Vec<Section>| {
        let mut column = maker::column(x, 0, sections);
        column.carried = nbt::payload(|out| out.int_array("Biomes", &vec![1; 17 << 18]));
        column
    };
    let stone = || Section { blocks: Some(Blocks::uniform("minecraft:stone")), ..Section::new(0) };
    let columns: [Column; 3] = [heavy(0, vec![]), heavy(1, vec![stone()]), maker::column(2, 0, [stone()])];
    let slots =
        columns.map(|column| maker::zlib((column.pos.x, 0), &write::column(&column).expect("a column")));
    maker::region(&save.path().join("r.0.0.mca"), &slots);
    let report = import(save.path(), &world(), &ImportOptions::default(), |_| {}).expect("an import");
    assert_eq!((report.imported_columns, report.imported_chunks), (3, 2));
    let reason = |lost: &Unreadable| format!("{:?}: {}\n", lost.slot, lost.reason);
    let reasons: Vec<_> = report.unreadable.iter().map(reason).collect();
    expect![[r#"
        Some(0): what stands beside the sections takes 17825887 bytes, more than the world's 16777216 allow
        Some(1): what stands beside the sections takes 17825887 bytes, more than the world's 16777216 allow
    "#]]
    .assert_eq(&reasons.concat());
}
