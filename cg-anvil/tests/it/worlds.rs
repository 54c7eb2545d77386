//! Every region file of the shared worlds against what another decoder found in it.

#[path = "../../../testdata/worlds.rs"]
mod shared;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cg_anvil::column::Column;
use cg_anvil::region::{RegionWriter, region_pos};
use cg_anvil::{ColumnError, ColumnPos, Decoder, Payload, entity, nbt, write};
use cg_minecraft::water;
use serde_json::{Value, json};

pub(crate) use shared::{Reading, folder, read, truth};

/// The figures of a reading under the names that `TRUTH.json` gives them, layer 1 water folded back.
pub(crate) fn figures(reading: &Reading) -> Value {
    let mut states = BTreeMap::<String, u64>::new();
    let mut palettes = BTreeMap::<String, u64>::new();
    let mut block_entities = BTreeMap::<&str, u64>::new();
    let mut statuses = BTreeMap::<String, u64>::new();
    let mut versions = BTreeMap::<String, u64>::new();
    let mut entities = BTreeMap::<String, u64>::new();
    let (mut sections, mut with_blocks) = (0u64, 0u64);
    let mut heights: Option<(i32, i32)> = None;
    for (_, column) in &reading.columns {
        assert_eq!(column.problems, [], "column {}", column.pos);
        *statuses.entry(column.status().unwrap_or("-".to_owned())).or_default() += 1;
        *versions.entry(column.data_version.to_string()).or_default() += 1;
        sections += column.sections.len() as u64;
        for section in &column.sections {
            let Some(blocks) = &section.blocks else { continue };
            with_blocks += 1;
            let (low, high) = heights.unwrap_or((section.y, section.y));
            heights = Some((low.min(section.y), high.max(section.y)));
            *palettes.entry(blocks.palette.len().to_string()).or_default() += 1;
            for (state, count) in blocks.palette.iter().zip(blocks.counts()) {
                if count > 0 {
                    let folded =
                        water::split(state).map(|dry| water::join(&dry, water::WATER).expect("water"));
                    *states.entry(folded.unwrap_or_else(|| state.to_string())).or_default() +=
                        u64::from(count);
                }
            }
        }
        for entity in &column.block_entities {
            *block_entities.entry(&entity.kind).or_default() += 1;
        }
    }
    for (_, column) in &reading.entities {
        *versions.entry(column.data_version.to_string()).or_default() += 1;
        *statuses.entry("-".to_owned()).or_default() += 1;
    }
    let of_columns = reading.columns.iter().flat_map(|(_, column)| &column.entities);
    let raws = of_columns.chain(reading.entities.iter().flat_map(|(_, column)| &column.entities));
    for raw in raws {
        let records = entity::split(raw, &nbt::Limits::default()).expect("an entity");
        *entities.entry(records[0].kind.clone()).or_default() += 1;
        assert_eq!(&entity::join(&records[0], |&id| records.get(id)).expect("whole"), raw);
    }
    json!({
        "chunks": reading.columns.len() + reading.entities.len() + reading.other,
        "sections": sections,
        "sections_with_blocks": with_blocks,
        "palette_size_histogram": palettes,
        "section_y": heights.map_or(json!([null, null]), |(low, high)| json!([low, high])),
        "blocks_total": states.values().sum::<u64>(),
        "distinct_states": states.len(),
        "states": states,
        "block_entities": block_entities,
        "entities": entities,
        "status": statuses,
        "data_versions": versions,
        "compression": reading.compression,
    })
}

#[track_caller]
pub(crate) fn check_figures(file: &str, found: &Value, truth: &Value) {
    for (name, found) in found.as_object().expect("an object") {
        assert_eq!(found, &truth[name], "{file}: {name}");
    }
}

fn check_samples(file: &str, reading: &Reading, truth: &Value) {
    let columns: BTreeMap<_, _> = reading.columns.iter().map(|(_, column)| (column.pos, column)).collect();
    let number = |value: &Value| i32::try_from(value.as_i64().expect("a number")).expect("an i32");
    for sample in truth["samples_xyz_state"].as_array().expect("a list") {
        let (x, y, z) = (number(&sample[0]), number(&sample[1]), number(&sample[2]));
        let state = columns.get(&ColumnPos::new(x >> 4, z >> 4)).and_then(|column| column.state(x, y, z));
        assert_eq!(state.map(|state| &**state), sample[3].as_str(), "{file}: block ({x}, {y}, {z})");
    }
    for sample in truth["block_entity_samples_id_xyz"].as_array().expect("a list") {
        let pos = [number(&sample[1]), number(&sample[2]), number(&sample[3])];
        let column = columns[&ColumnPos::new(pos[0] >> 4, pos[2] >> 4)];
        let kinds: Vec<_> = column
            .block_entities
            .iter()
            .filter(|found| found.pos == Some(pos))
            .map(|found| &*found.kind)
            .collect();
        assert!(kinds.contains(&sample[0].as_str().expect("text")), "{file}: {pos:?} has {kinds:?}");
    }
}

/// Where to write a region again: below `$CG_EXPORT_DIR`, where another reader looks at it, or nowhere for long.
fn target(file: &str) -> (PathBuf, Option<tempfile::TempDir>) {
    if let Some(folder) = std::env::var_os("CG_EXPORT_DIR") {
        return (Path::new(&folder).join(file).with_extension(""), None);
    }
    let folder = tempfile::tempdir().expect("a directory");
    (folder.path().to_owned(), Some(folder))
}

/// Every column written and read again is the same column.
fn check_rewritten(file: &str, reading: &Reading) {
    let mut decoder = Decoder::default();
    for (_, column) in &reading.columns {
        let bytes = write::column(column).expect("what was read can be written");
        let Ok(Payload::Column(read)) = decoder.decode(&bytes) else { panic!("{file}: no column") };
        assert!(read == *column, "{file}: column {} differs", column.pos);
        assert!(read.not_carried.is_empty(), "{:?}", read.not_carried);
    }
    for (_, column) in &reading.entities {
        let read = decoder.decode(&write::entities(column).expect("entities")).expect("entities");
        assert_eq!(read, Payload::Entities(column.clone()));
    }
}

#[test]
fn every_shared_region_is_read_as_the_other_decoder_reads_it() {
    let Some(folder) = folder() else { return };
    let mut files = 0;
    for (file, truth) in truth(&folder) {
        let old = truth["format"].get("pre-1.13").is_some();
        if !(file.starts_with("mca/") || file.starts_with("mca_old/")) || old {
            continue;
        }
        files += 1;
        let reading = read(&folder.join(&file));
        assert!(reading.lost.is_empty() && reading.refused.is_empty(), "{file}");
        assert_eq!(reading.misplaced, BTreeMap::new(), "{file}");
        let mut found = figures(&reading);
        if reading.other > 0 {
            // Points of interest: that they are there is all that is known of them.
            found = json!({ "chunks": found["chunks"], "blocks_total": found["blocks_total"] });
        }
        check_figures(&file, &found, &truth);
        check_samples(&file, &reading, &truth);
        check_rewritten(&file, &reading);
    }
    assert!(files >= 16, "only {files} files in TRUTH.json");
}

#[test]
fn numbered_blocks_are_refused_by_name() {
    let Some(folder) = folder() else { return };
    for (file, data_version) in
        [("mca_old/1.12.2_prismarine_r.0.-1.mca", 1343), ("mca_old/1.8.9_prismarine_r.-1.0.mca", 0)]
    {
        let reading = read(&folder.join(file));
        assert_eq!(reading.refused.len() as u64, truth(&folder)[file]["chunks"].as_u64().expect("a number"));
        for error in reading.refused.values() {
            let is_too_old =
                matches!(error, ColumnError::TooOld { data_version: found, .. } if *found == data_version);
            assert!(is_too_old, "{file}: {error}");
        }
    }
}

fn left_over(column: &Column) -> Vec<String> {
    let left = column.left.as_ref().expect("fields");
    let left = nbt::Compound::parse(left, &nbt::Limits::default()).expect("a compound");
    left.fields().map(|field| field.name.lossy().into_owned()).collect()
}

#[test]
fn what_has_no_place_in_a_world_is_left_over() {
    let Some(folder) = folder() else { return };
    let reading = read(&folder.join("mca/1.21.11_minestom_structures_r.-1.0.mca"));
    let names: std::collections::BTreeSet<_> =
        reading.columns.iter().flat_map(|(_, column)| left_over(column)).collect();
    let names: Vec<_> = names.into_iter().collect();
    assert!(reading.columns.iter().all(|(_, column)| column.not_carried.is_empty()));
    expect_test::expect![[r#"
        Heightmaps
        PostProcessing
        blending_data
        block_ticks
        carving_mask
        fluid_ticks
        structures"#]]
    .assert_eq(&names.join("\n"));
}

#[test]
fn exported_regions_read_as_the_imported_ones() {
    let Some(folder) = folder() else { return };
    for file in [
        "mca/1.21.1_prismarine_r.0.0.mca",
        "mca/1.20.1_forge_modded_city_r.-1.0.mca",
        "mca_old/1.14.4_prismarine_r.0.-1.mca",
        "mca/entities_1.18_r.0.1.mca",
    ] {
        let path = folder.join(file);
        let reading = read(&path);
        let (target, _kept) = target(file);
        let pos = region_pos(&path).expect("a place in the name");
        let mut writer = RegionWriter::create(&target, pos).expect("a file");
        for (slot, column) in &reading.columns {
            writer.put(*slot, &write::column(column).expect("a column"), 7).expect("written");
        }
        for (slot, column) in &reading.entities {
            writer.put(*slot, &write::entities(column).expect("entities"), 7).expect("written");
        }
        let again = read(&writer.finish().expect("finished"));
        assert!(again.lost.is_empty() && again.refused.is_empty() && again.misplaced.is_empty(), "{file}");
        assert_eq!(figures(&again), figures(&reading), "{file}");
        assert!(again.entities == reading.entities, "{file}");
    }
}
