//! Saves into worlds on disk, judged after the worlds were closed and opened again.

use std::path::Path;

use cg_anvil::import::{ImportOptions, ImportReport, import};
use cg_format::Tier;
use cg_store::prelude::*;
use serde_json::Value;

use crate::long::size;
use crate::{held, round, worlds};

/// Imports into a new world and opens that again.
#[track_caller]
pub(crate) fn imported(save: &Path, dir: &Path) -> (World, ImportReport) {
    let world = World::builder().options(&WorldOptions::process()).create(dir).expect("a new world");
    let report = import(save, &world, &ImportOptions::default(), |_| {}).expect("an import");
    world.close().expect("closed");
    drop(world);
    (held::open(dir), report)
}

fn numbers(sample: &Value, from: usize) -> [i64; 3] {
    [from, from + 1, from + 2].map(|index| sample[index].as_i64().expect("a number"))
}

fn check(file: &str) {
    let Some(folder) = worlds::folder() else { return };
    let truth = &worlds::truth(&folder)[file];
    let dir = tempfile::tempdir().expect("a directory");
    let (world, report) = imported(&folder.join(file), dir.path());
    let held = held::count(&world);
    let figures = held.figures();
    if held.columns.is_empty() {
        assert_eq!(figures["entities"], truth["entities"], "{file}");
        assert_eq!(held.chunks, 0, "{file}");
    } else {
        worlds::check_figures(file, &figures, truth);
    }
    assert_eq!(report.unreadable, [], "{file}");
    assert_eq!(report.imported_columns, held.columns.len() as u64, "{file}");
    assert_eq!(report.imported_chunks, held.chunks, "{file}");
    assert_eq!(report.entities, held.entities.values().sum::<u64>() + held.riders, "{file}");
    assert_eq!(report.detached, held.detached, "{file}");
    let overworld = world.catalog().dimension("minecraft:overworld").expect("registered");
    for sample in truth["samples_xyz_state"].as_array().expect("a list") {
        let pos = numbers(sample, 0);
        let found = held::state(&world, overworld, pos);
        assert_eq!(found.as_deref(), sample[3].as_str(), "{file}: block {pos:?}");
    }
    for sample in truth["block_entity_samples_id_xyz"].as_array().expect("a list") {
        let pos = numbers(sample, 1);
        let found = held::block_entities(&world, overworld, pos);
        let wanted = sample[0].as_str().expect("text");
        assert!(found.iter().any(|kind| kind == wanted), "{file}: {pos:?} has {found:?}, not {wanted}");
    }
    if report.imported_columns + report.entities > 0 {
        round::check(file, &folder.join(file), &world);
    }
    if size(SETTLED.contains(&file), true) {
        check_settled(file, truth, dir.path(), world, &folder.join(file));
    }
}

/// The files that are settled too where the tests do not have their long form.
const SETTLED: [&str; 3] = [
    "mca_old/1.16_debugworld_17112states_r.0.0.mca",
    "mca/1.18_superflat_r.0.0.mca",
    "mca/1.20.6_prismarine_r.0.0.mca",
];

/// Lets a month pass with nobody near: all of the world lies in cold clusters, holds what it held, and is small.
#[track_caller]
fn check_settled(file: &str, truth: &Value, dir: &Path, world: World, source: &Path) {
    let (hash, chunks) = (
        world.content_hash(cg_store::view::Area::World).expect("no damage"),
        world.tiers().census().expect("counts").chunks(),
    );
    let counts = world.tiers().demote_all(30 * 24 * 60 * 60 * 20, |_| {}).expect("settles");
    assert_eq!((counts.cooled, counts.refused), (chunks, 0), "{file}");
    world.close().expect("closed");
    drop(world);
    let world = held::open(dir);
    assert_eq!(world.content_hash(cg_store::view::Area::World).expect("no damage"), hash, "{file}");
    let tiers = Tier::ALL.map(|tier| world.tiers().census().expect("counts").tier(tier).chunks);
    assert_eq!(tiers, [0, 0, chunks], "{file}");
    let held = held::count(&world);
    if !held.columns.is_empty() {
        worlds::check_figures(file, &held.figures(), truth);
    }
    let problems = world.verify(cg_store::verify::VerifyDepth::Full, |_| {}).expect("verifies").findings;
    assert_eq!(problems, [], "{file}");
    let bytes: u64 = world.tiers().census().expect("counts").tiers.iter().map(|tier| tier.bytes).sum();
    let source_bytes = std::fs::metadata(source).expect("is there").len();
    assert!(bytes < source_bytes, "{file}: {bytes} bytes of clusters, {source_bytes} in the region file");
}

macro_rules! every_file {
    ($($test:ident: $file:literal,)*) => {$(
        #[test]
        fn $test() {
            check($file);
        }
    )*};
}

every_file! {
    prismarine_1_14: "mca_old/1.14.4_prismarine_r.0.-1.mca",
    prismarine_1_16: "mca_old/1.16_prismarine_r.0.-1.mca",
    every_state_of_1_16: "mca_old/1.16_debugworld_17112states_r.0.0.mca",
    columns_without_sections: "mca_old/1.17.1_prismarine_r.0.0.mca",
    superflat_1_18: "mca/1.18_superflat_r.0.0.mca",
    prismarine_1_18: "mca/1.18.2_prismarine_r.0.0.mca",
    terrain_1_18: "mca/1.18.2_querz_terrain_r.0.0.mca",
    indices_for_one_state_1_19: "mca/1.19.2_fawe_singlepalette_with_data_r.2.2.mca",
    prismarine_1_19: "mca/1.19.4_prismarine_r.0.0.mca",
    a_modded_city_1_20: "mca/1.20.1_forge_modded_city_r.-1.0.mca",
    prismarine_1_20: "mca/1.20.6_prismarine_r.0.0.mca",
    prismarine_1_21: "mca/1.21.1_prismarine_r.0.0.mca",
    nothing_but_air_1_21: "mca/1.21.11_minestom_allair_r.-2.-2.mca",
    structures_1_21: "mca/1.21.11_minestom_structures_r.-1.0.mca",
    entities_without_columns: "mca/entities_1.18_r.0.1.mca",
    points_of_interest: "mca/poi_1.18_r.1.1.mca",
}

/// Imports a damaged file: how many columns arrive, how many are kept as bytes, how many slots are reported.
#[track_caller]
fn check_damaged(file: &str, columns: u64, old: u64, unreadable: usize) {
    let Some(folder) = worlds::folder() else { return };
    let truth = &worlds::truth(&folder)[file];
    let dir = tempfile::tempdir().expect("a directory");
    let (world, report) = imported(&folder.join(file), dir.path());
    assert_eq!(
        (report.imported_columns, report.old_slots, report.unreadable.len()),
        (columns, old, unreadable),
        "{file}: {report:?}"
    );
    let slots: std::collections::BTreeSet<_> = report.unreadable.iter().map(|lost| lost.slot).collect();
    assert_eq!(slots.len(), unreadable, "{file}: a slot is reported twice");
    let held = held::count(&world);
    assert_eq!(held.columns.len() as u64, columns, "{file}");
    if truth["chunks"] == columns {
        worlds::check_figures(file, &held.figures(), truth);
    }
}

#[test]
fn of_damaged_regions_exactly_the_readable_columns_arrive() {
    check_damaged("corrupt/made_empty.mca", 0, 0, 0);
    check_damaged("corrupt/made_header_only.mca", 0, 0, 225);
    // The other decoder reads the aliased slot's column twice; here it is refused.
    check_damaged("corrupt/made_badheader_1.21.1.mca", 221, 0, 4);
    check_damaged("corrupt/made_bitflip_1.21.1.mca", 220, 0, 5);
    check_damaged("corrupt/made_truncated_1.21.1.mca", 126, 0, 99);
    check_damaged("corrupt/natural_querz_r.2.2.mca", 0, 0, 3);
    check_damaged("corrupt/natural_twoolie_regiontest.mca", 0, 9, 12);
}
