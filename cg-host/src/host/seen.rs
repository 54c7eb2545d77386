//! What a host was shown of each column, and what each looked like when it was saved or loaded last.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use cg_format::EntityId;
use foldhash::quality::RandomState;

use crate::binding::Binding;
use crate::column::Column;
use crate::place::ColumnAt;

/// The most columns without entities whose content is remembered.
const MAX_PLAIN: usize = 1 << 16;

/// A digest of 128 bits, with a seed of this process.
type Digest = [u64; 2];

/// What is known of columns.
#[derive(Debug, Default)]
pub(super) struct Seen {
    columns: HashMap<ColumnAt, Known, RandomState>,
    /// Counts saves. A load that began before a save does not hide it.
    epoch: u64,
    plain: usize,
    seeds: [RandomState; 2],
}

#[derive(Debug, Default)]
struct Known {
    digest: Option<Digest>,
    saved_at: u64,
    /// Ascending.
    entities: Box<[EntityId]>,
    damaged: Box<[i32]>,
}

impl Seen {
    /// The number of saves until now.
    pub(super) const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The digest of a column as a binding has it.
    pub(super) fn digest(&self, binding: &Arc<Binding>, column: &Column, is_part: bool) -> Digest {
        let Column { at, tick, sections, block_entities, entities, scheduled, .. } = column;
        let tick = if scheduled.is_empty() { &0 } else { tick };
        let binding = Arc::as_ptr(binding) as usize;
        let all = (binding, is_part, at, tick, sections, block_entities, entities, scheduled);
        self.seeds.each_ref().map(|seed| seed.hash_one(all))
    }

    /// Whether a column is what was saved or loaded last.
    pub(super) fn is_unchanged(&self, at: &ColumnAt, digest: Digest) -> bool {
        self.columns.get(at).is_some_and(|known| known.digest == Some(digest))
    }

    /// Takes note of a column that was loaded. `epoch`: the number of saves before that.
    pub(super) fn loaded(&mut self, binding: &Arc<Binding>, column: &Column, epoch: u64) {
        let digest = column.damaged.is_empty().then(|| self.digest(binding, column, false));
        let was_saved = self.columns.get(&column.at).is_some_and(|known| known.saved_at > epoch);
        if was_saved {
            return;
        }
        self.put(column, digest, epoch);
    }

    /// Takes note of a column that was accepted.
    pub(super) fn saved(&mut self, column: &Column, digest: Digest, is_part: bool) {
        self.epoch += 1;
        let (before, damaged) = (self.shown(&column.at), self.damaged(&column.at));
        self.put(column, Some(digest), self.epoch);
        if let Some(known) = self.columns.get_mut(&column.at) {
            known.damaged = damaged.into();
            if is_part {
                known.entities = union(&known.entities, &before);
            }
        }
    }

    fn put(&mut self, column: &Column, digest: Option<Digest>, saved_at: u64) {
        if self.plain >= MAX_PLAIN {
            // The next save of each is compared with what is stored.
            self.columns.retain(|_, known| !known.is_plain());
            self.plain = 0;
        }
        let mut entities: Vec<EntityId> = column.entities.iter().map(|entity| entity.id).collect();
        entities.sort_unstable();
        let known =
            Known { digest, saved_at, entities: entities.into(), damaged: column.damaged.as_slice().into() };
        self.plain += usize::from(known.is_plain());
        let before = self.columns.insert(column.at, known);
        self.plain -= usize::from(before.is_some_and(|known| known.is_plain()));
    }

    /// Entities that the host was shown in a column or saved in it, ascending.
    pub(super) fn shown(&self, at: &ColumnAt) -> Vec<EntityId> {
        self.columns.get(at).map_or_else(Vec::new, |known| known.entities.to_vec())
    }

    /// Heights that the host was shown as damaged.
    pub(super) fn damaged(&self, at: &ColumnAt) -> Vec<i32> {
        self.columns.get(at).map_or_else(Vec::new, |known| known.damaged.to_vec())
    }

    /// Takes note that the save of a column was refused: the host was shown these entities before it.
    pub(super) fn refused(&mut self, at: &ColumnAt, shown: &[EntityId]) {
        if let Some(known) = self.columns.get_mut(at) {
            known.digest = None;
            known.entities = union(&known.entities, shown);
        }
    }

    /// Forgets the content of all columns.
    pub(super) fn forget_content(&mut self) {
        self.epoch += 1;
        for known in self.columns.values_mut() {
            known.digest = None;
        }
    }
}

impl Known {
    fn is_plain(&self) -> bool {
        self.entities.is_empty() && self.damaged.is_empty()
    }
}

/// The ids of both, ascending.
fn union(one: &[EntityId], other: &[EntityId]) -> Box<[EntityId]> {
    let mut all: Vec<EntityId> = one.iter().chain(other).copied().collect();
    all.sort_unstable();
    all.dedup();
    all.into()
}

/// The fields that a digest covers hash their bytes, so equal columns have equal digests.
const _: fn() = || {
    const fn hashes<T: Hash>() {}
    hashes::<Column>();
};
