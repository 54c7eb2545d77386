//! Decides the conflicts between an overlay and its base, so that a merge is possible again.

use std::sync::Arc;

use cg_format::Lookup;
use cg_format::overlay::Origin;
use cg_store::error::ConflictKey;
use cg_store::layer::kind::{self, Kind};
use cg_store::layer::{Base, begin, host, origin_of, write_stored_object};
use cg_store::{Error, each_kind, kind_map};

use super::handle::Overlay;
use super::transaction::{OverlayReads, commit};
use crate::merge::{MergeKind as _, OverlayChoice};
use crate::store::{Edits, OverlayKind as _};

/// The result of [`Overlay::rebase`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct OverlayRebased {
    /// Conflicts in which the overlay's value stays.
    pub ours: u64,
    /// Conflicts in which the base's value stays.
    pub theirs: u64,
    /// Conflicts that are left.
    pub open: Vec<ConflictKey>,
}

/// A decided conflict, and the present origin of the base's value.
struct Decided<K: Kind> {
    key: K::Key,
    stays: Stays<K::Value>,
    found: Origin,
}

/// What stays of a conflict.
enum Stays<V> {
    /// The overlay's value.
    Ours,
    /// The base's value.
    Theirs(V),
    /// The overlay's value, with the base's in the parts that both have changed.
    TheirParts,
    /// The base's absence.
    Absence,
}

/// The decided conflicts of one kind.
type AllDecided<K> = Vec<Decided<K>>;

kind_map! {
    #[derive(Default)]
    struct DecidedKinds of AllDecided
}

impl<S: Base> Overlay<S> {
    /// Decides every conflict with the base: each value that both have changed, so that
    /// [`merge_into`](Self::merge_into) refuses it. `choose` says for each which value stays. Afterwards the overlay
    /// counts as written over the base's present value.
    ///
    /// Edits of different cells of one chunk are no conflict: a merge takes both. A cell with all its layers and
    /// components is one value, and so are the side data of one kind, an entity, a property, an object and a record. A
    /// chunk is one value as a whole if one side has deleted it, if both have created it, if the overlay's row or what
    /// it was written over is of an earlier version, if the base changed it while it was written, or if the base was put
    /// back from a copy that does not have what it was written over.
    ///
    /// `choose` may read the overlay and the base, for example to compare both values. To keep a value that is neither,
    /// write it into the overlay first, and choose [`OverlayChoice::Ours`].
    ///
    /// Two commits of the overlay: the values that are taken over, then the origins. After a crash between them the
    /// same conflicts are met again. If the base changes a value meanwhile, that value is in conflict again.
    ///
    /// # Errors
    /// As [`diff`](Self::diff) and [`transaction`](Self::transaction).
    pub fn rebase(
        &self,
        mut choose: impl FnMut(&ConflictKey) -> OverlayChoice,
    ) -> Result<OverlayRebased, Error> {
        let _alone = self.write()?;
        let (mut decided, mut done) = (DecidedKinds::default(), OverlayRebased::default());
        self.store().in_view(self.lease(), |rows| {
            each_kind!(mut decided, |list: K| {
                rows.for_each::<K>(|key, row| {
                    let below = K::find(&self.store().base, &key)?;
                    let found = origin_of(&below);
                    let row = rows.onto_base::<K>(&key, row, &below)?;
                    let choice = OverlayChoice::Theirs;
                    let has_parts =
                        K::merged(self.store(), self.lease(), &key, &row, &below, choice)?.is_some();
                    let theirs = match &below {
                        Lookup::Found(_) if has_parts => Stays::TheirParts,
                        Lookup::Found((value, _)) => Stays::Theirs(value.clone()),
                        Lookup::Tombstone | Lookup::NotFound => Stays::Absence,
                    };
                    let change = K::compare(Clone::clone(&key), row, below);
                    if change.is_none_or(|change| change.origin == found) {
                        return Ok(());
                    }
                    let named = K::conflict_key(&key);
                    match host(|| Ok::<_, Error>(choose(&named)))? {
                        OverlayChoice::Ours => {
                            done.ours += 1;
                            list.push(Decided { key, stays: Stays::Ours, found });
                        }
                        OverlayChoice::Theirs => {
                            done.theirs += 1;
                            list.push(Decided { key, stays: theirs, found });
                        }
                        OverlayChoice::Ask => done.open.push(named),
                    }
                    Ok(())
                })?;
            });
            Ok::<_, Error>(())
        })?;
        self.take_over(&decided)?;
        let mut edits = Edits::default();
        each_kind!(mut edits, decided, |edits, list: K| {
            for Decided { key, stays, found } in list {
                let Some(row) = K::read(self.store(), self.lease(), key)? else { continue };
                let below = K::find(&self.store().base, key)?;
                if origin_of(&below) != *found {
                    continue;
                }
                let choice = match stays {
                    Stays::Ours => Some(OverlayChoice::Ours),
                    Stays::TheirParts => Some(OverlayChoice::Theirs),
                    Stays::Theirs(_) | Stays::Absence => None,
                };
                let merged =
                    choice.map(|choice| K::merged(self.store(), self.lease(), key, &row, &below, choice));
                let value = merged.transpose()?.flatten().or_else(|| row.value.here());
                edits.push((Clone::clone(key), value, *found));
            }
        });
        if !edits.is_empty() {
            let generation = self.store().catalog()?.current_generation();
            self.store().write(self.lease(), edits, generation)?;
        }
        Ok(done)
    }

    /// Writes the base's values of decided conflicts into the overlay. Entities and references follow each other, as in
    /// every transaction.
    fn take_over(&self, decided: &DecidedKinds) -> Result<(), Error> {
        let mut tx = begin(OverlayReads::new(self), self.store().catalog()?);
        for Decided { key, stays, .. } in &decided.chunks {
            match stays {
                Stays::Theirs(chunk) => tx.save_blocks(*key, Arc::clone(chunk))?,
                Stays::Absence => tx.delete(*key),
                Stays::Ours | Stays::TheirParts => {}
            }
        }
        for Decided { key, stays, .. } in &decided.entities {
            match stays {
                Stays::Theirs(entity) => tx.put_entity(*key, entity.clone()),
                Stays::Absence => tx.delete_entity(*key),
                Stays::Ours | Stays::TheirParts => {}
            }
        }
        for Decided { key, stays, .. } in &decided.properties {
            match stays {
                Stays::Theirs(value) => tx.set_property(key.clone(), Some(value.clone())),
                Stays::Absence => tx.set_property(key.clone(), None),
                Stays::Ours | Stays::TheirParts => {}
            }
        }
        for Decided { key, stays, .. } in &decided.objects {
            match stays {
                Stays::Theirs(object) => write_stored_object(&mut tx, key.clone(), object)?,
                Stays::Absence => tx.delete_object(key)?,
                Stays::Ours | Stays::TheirParts => {}
            }
        }
        for Decided { key, stays, .. } in &decided.records {
            match stays {
                Stays::Theirs(record) => tx.put_record(*key, record.as_ref().clone()),
                Stays::Absence => tx.delete_record(*key),
                Stays::Ours | Stays::TheirParts => {}
            }
        }
        commit(tx).map(drop)
    }
}
