//! What a host was shown of each column, and what each looked like when it was saved or loaded last.

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::LazyLock;

use cg_format::{Dimension, EntityId};
use foldhash::quality::RandomState;

use crate::binding::Binding;
use crate::column::Column;
use crate::place::ColumnAt;

/// Columns whose content is remembered.
const MAX_DIGESTS: usize = 1 << 16;

/// A digest of 128 bits, with a seed of this process.
pub(super) type Digest = [u64; 2];

/// A column in any heights.
type Place = (Dimension, i64, i64);

/// What is known of columns.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// What columns looked like, in the heights of their last save or load.
    digests: HashMap<Place, Known, RandomState>,
    shown: HashMap<Place, Shown, RandomState>,
    /// The column in which each entity was seen last.
    homes: HashMap<EntityId, Place, RandomState>,
    /// Counts saves, and writes past the columns.
    epoch: u64,
    /// The epoch of the last write past the columns.
    forgotten_at: u64,
}

#[derive(Debug)]
struct Known {
    /// `None` if it is not known what is stored.
    digest: Option<Digest>,
    saved_at: u64,
}

/// What a host was shown of a column, in all heights that it asked for.
#[derive(Debug, Clone, Default)]
pub(super) struct Shown {
    heights: (i32, i32),
    /// Ascending.
    pub(super) entities: Vec<EntityId>,
    /// Heights that were damaged, ascending.
    pub(super) damaged: Vec<i32>,
}

/// The digest of a column as a binding has it. Equal columns have equal digests; what has no order must be sorted.
pub(super) fn digest(binding: &Binding, column: &Column, is_part: bool) -> Digest {
    static SEEDS: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);
    let Column { at, tick, sections, block_entities, entities, scheduled, .. } = column;
    let tick = if scheduled.is_empty() { &0 } else { tick };
    let all = (binding.own_number(), is_part, at, tick, sections, block_entities, entities, scheduled);
    SEEDS.each_ref().map(|seed| seed.hash_one(all))
}

const fn place(at: &ColumnAt) -> Place {
    (at.dimension, at.x, at.z)
}

impl Seen {
    /// The number of saves until now.
    pub(super) const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether a column is what was saved or loaded last.
    pub(super) fn is_unchanged(&self, at: &ColumnAt, digest: Digest) -> bool {
        self.digests.get(&place(at)).is_some_and(|known| known.digest == Some(digest))
    }

    /// Takes note of a column that was loaded. `epoch`: the number of saves before that; `None` if it is not what is stored.
    pub(super) fn loaded(&mut self, binding: &Binding, column: &Column, epoch: Option<u64>) {
        let saved_at = self.digests.get(&place(&column.at)).map_or(0, |known| known.saved_at);
        let is_newest = epoch.is_some_and(|epoch| saved_at.max(self.forgotten_at) <= epoch);
        if is_newest {
            let digest = column.damaged.is_empty().then(|| digest(binding, column, false));
            self.put_digest(&column.at, Known { digest, saved_at });
        }
        self.show(column, is_newest, &column.damaged);
    }

    /// Takes note of a column that was accepted. `digest`: `None` if something newer may be stored.
    pub(super) fn saved(&mut self, column: &Column, digest: Option<Digest>, is_part: bool) {
        self.epoch += 1;
        self.put_digest(&column.at, Known { digest, saved_at: self.epoch });
        let damaged = self.shown(&column.at).damaged;
        self.show(column, digest.is_some() && !is_part, &damaged);
    }

    /// Whether a column was saved since an epoch.
    pub(super) fn is_saved_since(&self, at: &ColumnAt, epoch: u64) -> bool {
        let saved_at = self.digests.get(&place(at)).map_or(0, |known| known.saved_at);
        saved_at.max(self.forgotten_at) > epoch
    }

    fn put_digest(&mut self, at: &ColumnAt, known: Known) {
        if self.digests.len() >= MAX_DIGESTS {
            // The next save of each is compared with what is stored. A load that began before must not come after it.
            self.digests.clear();
            self.epoch += 1;
            self.forgotten_at = self.epoch;
        }
        self.digests.insert(place(at), known);
    }

    /// Takes note of what a host was shown of a column that waits.
    pub(super) fn also_shown(&mut self, column: &Column) {
        self.show(column, false, &column.damaged);
    }

    /// Takes note that an entity was written past the columns: the one that had it looks otherwise.
    pub(super) fn moved(&mut self, id: EntityId) {
        if let Some(home) = self.homes.remove(&id) {
            self.forget_digest(home);
        }
    }

    fn forget_digest(&mut self, of: Place) {
        if let Some(known) = self.digests.get_mut(&of) {
            known.digest = None;
        }
    }

    /// Takes note of where the entities of a column are, and that the columns that had them look otherwise.
    fn note_homes(&mut self, column: &Column, before: &[EntityId]) {
        let here = place(&column.at);
        for id in before {
            if self.homes.get(id) == Some(&here) {
                self.homes.remove(id);
            }
        }
        for entity in &column.entities {
            if let Some(home) = self.homes.insert(entity.id, here).filter(|home| *home != here) {
                self.forget_digest(home);
            }
        }
    }

    /// Adds what a host has seen of a column. `is_all`: it has seen nothing else in these heights.
    fn show(&mut self, column: &Column, is_all: bool, damaged: &[i32]) {
        let heights = (column.at.min_y, column.at.max_y);
        let entities = column.entities.iter().map(|entity| entity.id);
        let before = self.shown.remove(&place(&column.at));
        self.note_homes(column, before.as_ref().map_or(&[], |before| &before.entities));
        let mut shown = Shown { heights, entities: entities.collect(), damaged: damaged.to_vec() };
        if let Some(before) = before {
            let has_all = heights.0 <= before.heights.0 && heights.1 >= before.heights.1;
            if !(is_all && has_all) {
                shown.entities.extend(before.entities);
            }
            let elsewhere = |y: &i32| *y < heights.0 || *y > heights.1;
            shown.damaged.extend(before.damaged.into_iter().filter(elsewhere));
            shown.heights = (heights.0.min(before.heights.0), heights.1.max(before.heights.1));
        }
        shown.entities.sort_unstable();
        shown.entities.dedup();
        shown.damaged.sort_unstable();
        shown.damaged.dedup();
        if !(shown.entities.is_empty() && shown.damaged.is_empty()) {
            self.shown.insert(place(&column.at), shown);
        }
    }

    /// What the host was shown of a column.
    pub(super) fn shown(&self, at: &ColumnAt) -> Shown {
        self.shown.get(&place(at)).cloned().unwrap_or_default()
    }

    /// Takes note that the save of a column was refused: the host was shown these entities before it.
    pub(super) fn refused(&mut self, at: &ColumnAt, before: &Shown) {
        self.epoch += 1;
        self.put_digest(at, Known { digest: None, saved_at: self.epoch });
        let shown = self.shown.entry(place(at)).or_default();
        shown.entities.extend(&before.entities);
        shown.entities.sort_unstable();
        shown.entities.dedup();
    }

    /// Forgets the content of all columns.
    pub(super) fn forget_content(&mut self) {
        self.epoch += 1;
        self.forgotten_at = self.epoch;
        self.digests.clear();
    }
}
