//! The changes of an overlay and of its base in one chunk, merged cell by cell.

use std::collections::{BTreeMap, BTreeSet};

use cg_format::chunk::{CellLayer, Chunk, EditError};
use cg_format::{BlockId, ComponentId, LocalPos, SchemaView};

use super::choice::OverlayChoice;

/// Merges two changes of a chunk: the base's present chunk with everything that the overlay changed in the ancestor.
///
/// A cell, with all its layers and their components, is one value. So is the side data of one kind, and each reference
/// to an entity. Where both have changed a value to different ones, `choice` decides. `None` if it is to be asked, or
/// if components could not be read.
pub(super) fn merge(
    ancestor: &Chunk,
    ours: &Chunk,
    theirs: &Chunk,
    choice: OverlayChoice,
    schema: &impl SchemaView,
) -> Option<Chunk> {
    let [before, own, other] = [ancestor, ours, theirs].map(Cells::of);
    if [ancestor, ours, theirs].into_iter().any(Chunk::has_unread_components) {
        return None;
    }
    let mut merged = theirs.clone();
    for cell in before.changed_in(&own) {
        if wins(before.at(cell), own.at(cell), other.at(cell), choice)? {
            own.copy(cell, &mut merged, schema).ok()?;
        }
    }
    let kinds: BTreeSet<_> = [ancestor, ours].into_iter().flat_map(Chunk::sides).collect();
    for kind in kinds.into_iter().map(|(kind, _)| kind) {
        if wins(ancestor.side(kind), ours.side(kind), theirs.side(kind), choice)? {
            match ours.side(kind) {
                Some(data) => drop(merged.set_side(kind, data.to_vec())),
                None => drop(merged.remove_side(kind)),
            }
        }
    }
    for id in ours.entities().iter().filter(|id| !ancestor.entities().contains(id)) {
        merged.add_entity(*id);
    }
    for id in ancestor.entities().iter().filter(|id| !ours.entities().contains(id)) {
        merged.remove_entity(*id);
    }
    Some(merged)
}

/// Whether the overlay's value is that of the merge; `None` if both have changed it and no one decided.
fn wins<T: PartialEq>(ancestor: T, ours: T, theirs: T, choice: OverlayChoice) -> Option<bool> {
    if ours == ancestor || ours == theirs {
        return Some(false);
    }
    match choice {
        _ if theirs == ancestor => Some(true),
        OverlayChoice::Ours => Some(true),
        OverlayChoice::Theirs => Some(false),
        OverlayChoice::Ask => None,
    }
}

/// The components of a cell by layer.
type Instances<'c> = BTreeMap<(u8, ComponentId), &'c [u8]>;

/// The cells of a chunk.
struct Cells<'c> {
    chunk: &'c Chunk,
    components: BTreeMap<LocalPos, Instances<'c>>,
}

impl<'c> Cells<'c> {
    fn of(chunk: &'c Chunk) -> Self {
        let mut components: BTreeMap<_, Instances<'_>> = BTreeMap::new();
        for (component, at, bytes) in chunk.components() {
            components.entry(at.cell).or_default().insert((at.layer, component), bytes);
        }
        Self { chunk, components }
    }

    fn layers(&self, cell: LocalPos) -> impl Iterator<Item = BlockId> {
        (0..self.chunk.layer_count(cell)).filter_map(move |layer| self.chunk.layer(cell, layer as u8))
    }

    /// The content of a cell.
    fn at(&self, cell: LocalPos) -> (Vec<BlockId>, Option<&Instances<'c>>) {
        (self.layers(cell).collect(), self.components.get(&cell))
    }

    fn changed_in(&self, later: &Self) -> BTreeSet<LocalPos> {
        let mut changed = BTreeSet::new();
        self.chunk.for_each_difference(later.chunk, |at, _, _| {
            changed.insert(at.cell);
        });
        let cells = self.components.keys().chain(later.components.keys());
        changed.extend(cells.filter(|cell| self.components.get(cell) != later.components.get(cell)));
        changed
    }

    /// Gives a cell of another chunk the content that it has here.
    fn copy(&self, cell: LocalPos, to: &mut Chunk, schema: &impl SchemaView) -> Result<(), EditError> {
        while to.layer_count(cell) > 1 {
            to.remove_layer(cell, to.layer_count(cell) as u8 - 1)?;
        }
        for (layer, block) in self.layers(cell).enumerate() {
            if layer == 0 {
                to.set_block(cell, block, schema)?;
            } else {
                to.push_layer(cell, block, schema)?;
            }
        }
        for ((layer, component), bytes) in self.components.get(&cell).into_iter().flatten() {
            to.set_component(CellLayer::new(cell, *layer), *component, bytes)?;
        }
        Ok(())
    }
}
