//! The shared worlds, and all that a region file of theirs gives.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cg_anvil::column::{Column, EntityColumn};
use cg_anvil::region::{ReadLimits, Slot};
use cg_anvil::{ColumnError, Decoder, Payload, Region, SlotError};
use serde_json::Value;

/// The folder of the shared worlds: `$CG_WORLDS`, or `../shared/worlds` beside the workspace.
///
/// `None` when it is not there, after saying so loudly; a CI run has to have it.
pub(crate) fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("CG_WORLDS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/worlds"), PathBuf::from);
    if folder.join("TRUTH.json").is_file() {
        return Some(folder);
    }
    let message = format!("no worlds in {}: set CG_WORLDS to the folder of TRUTH.json", folder.display());
    assert!(std::env::var_os("CI").is_none(), "{message}");
    eprintln!("\n*** NOT TESTED: {message} ***\n");
    None
}

/// Findings of the other decoder, by path below the folder.
pub(crate) fn truth(folder: &Path) -> BTreeMap<String, Value> {
    let text = std::fs::read_to_string(folder.join("TRUTH.json")).expect("TRUTH.json is readable");
    serde_json::from_str(&text).expect("TRUTH.json is JSON")
}

/// All that a region file gives, slot by slot.
#[derive(Default)]
pub(crate) struct Reading {
    pub(crate) columns: Vec<(Slot, Column)>,
    pub(crate) entities: Vec<(Slot, EntityColumn)>,
    pub(crate) other: usize,
    pub(crate) lost: BTreeMap<u16, SlotError>,
    pub(crate) refused: BTreeMap<u16, ColumnError>,
    pub(crate) misplaced: BTreeMap<u16, ColumnError>,
    pub(crate) compression: BTreeMap<String, u64>,
}

pub(crate) fn read(path: &Path) -> Reading {
    let mut region = Region::open(path).expect("the file opens");
    let slots: Vec<_> = region.slots().collect();
    let (mut decoder, mut bytes) = (Decoder::default(), Vec::new());
    let mut reading = Reading::default();
    for slot in slots {
        match region.read(slot, &ReadLimits::default(), &mut bytes) {
            Ok(None) => panic!("slot {slot} was listed"),
            Ok(Some(compression)) => {
                *reading.compression.entry((compression as u8).to_string()).or_default() += 1;
            }
            Err(error) => {
                reading.lost.insert(slot.index(), error);
                continue;
            }
        }
        match decoder.decode(&bytes) {
            Ok(payload) => {
                if let Err(error) = payload.check_place(region.pos(), slot) {
                    reading.misplaced.insert(slot.index(), error);
                }
                match payload {
                    Payload::Column(column) => reading.columns.push((slot, column)),
                    Payload::Entities(entities) => reading.entities.push((slot, entities)),
                    Payload::PointsOfInterest => reading.other += 1,
                }
            }
            Err(error) => {
                reading.refused.insert(slot.index(), error);
            }
        }
    }
    reading
}
