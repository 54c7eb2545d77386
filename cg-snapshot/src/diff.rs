//! The difference between two snapshots of one box.

use std::collections::BTreeMap;

use cg_format::EntityId;
use cg_format::chunk::Chunk;
use cg_format::entity::Entity;

use crate::error::SnapshotError;
use crate::region::Section;
use crate::restore::BlockChange;
use crate::section::all_blocks;
use crate::snapshot::{Place, Snapshot};

/// The number of differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Difference {
    /// Sections with a difference of any kind, side data included.
    pub sections: u64,
    /// Blocks of different kinds, in all layers.
    pub blocks: u64,
    /// Blocks of the same kind with different components.
    pub components: u64,
    /// Entities that only one snapshot has, or that differ.
    pub entities: u64,
}

/// Visits the blocks in which a later snapshot differs from an earlier one of the same box, section by section.
///
/// Sections with equal bytes are skipped without being decoded. Both snapshots must have the ids of one registry, see
/// [`Snapshot::arrive`]. If a section is absent or lost in one of them, all its blocks differ.
///
/// # Errors
/// [`SnapshotError::OtherRegion`], and as [`Snapshot::decode`] for a damaged section.
pub fn diff(
    earlier: &Snapshot,
    later: &Snapshot,
    observe: &mut impl FnMut(BlockChange),
) -> Result<Difference, SnapshotError> {
    if earlier.region() != later.region() {
        return Err(SnapshotError::OtherRegion);
    }
    let mut difference = Difference::default();
    for ((section, old), (_, new)) in earlier.sections().zip(later.sections()) {
        if let (Place::Kept(old), Place::Kept(new)) = (old, new)
            && old.bytes() == new.bytes()
        {
            continue;
        }
        let old = decoded(earlier, &section, old)?;
        let new = decoded(later, &section, new)?;
        if old.is_some() || new.is_some() {
            difference.sections += 1;
            compare(&section, old.as_ref(), new.as_ref(), &mut difference, observe);
        }
    }
    difference.entities = entities(earlier, later);
    Ok(difference)
}

fn decoded(snapshot: &Snapshot, section: &Section, place: Place<'_>) -> Result<Option<Chunk>, SnapshotError> {
    match place {
        Place::Kept(kept) => snapshot.decode(section.at, kept).map(Some),
        Place::Absent | Place::Lost => Ok(None),
    }
}

fn compare(
    section: &Section,
    old: Option<&Chunk>,
    new: Option<&Chunk>,
    difference: &mut Difference,
    observe: &mut impl FnMut(BlockChange),
) {
    let mut tell = |at: cg_format::CellLayer, old, new| {
        if section.contains(at.cell) {
            let pos = section.at.pos.block(at.cell);
            observe(BlockChange { dimension: section.at.dimension, pos, layer: at.layer, old, new });
            return 1;
        }
        0
    };
    match (old, new) {
        (Some(old), Some(new)) => {
            old.for_each_difference(new, |at, old, new| difference.blocks += tell(at, old, new));
            for (component, at, bytes) in new.components() {
                let kind = new.layer(at.cell, at.layer);
                if old.layer(at.cell, at.layer) == kind && old.component(at, component) != Some(bytes) {
                    difference.components += tell(at, kind, kind);
                }
            }
        }
        (Some(gone), None) => {
            for (at, block) in all_blocks(gone) {
                difference.blocks += tell(at, Some(block), None);
            }
        }
        (None, Some(come)) => {
            for (at, block) in all_blocks(come) {
                difference.blocks += tell(at, None, Some(block));
            }
        }
        (None, None) => {}
    }
}

fn entities(earlier: &Snapshot, later: &Snapshot) -> u64 {
    let old: BTreeMap<EntityId, &Entity> = earlier.entities().iter().map(|(id, it)| (*id, it)).collect();
    let mut seen = 0;
    let mut differing = 0;
    for (id, entity) in later.entities() {
        match old.get(id) {
            Some(old) => {
                seen += 1;
                differing += u64::from(*old != entity);
            }
            None => differing += 1,
        }
    }
    differing + old.len() as u64 - seen
}
