//! What a server tells of values other than chunks: what changed since a position, or all of them in the order of their
//! keys.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use cg_format::entity::{Entity, EntityPos};
use cg_format::object::ObjectView;
use cg_format::record::RecordView;
use cg_format::{ChunkBox, ChunkPos, ComponentId, Dimension, EntityId};
use cg_registry::portable::Used;
use cg_registry::{Catalog, ListKind, UpgradeFunctions};
use cg_store::Error;
use cg_store::engine::CommitSeq;
use cg_store::layer::upgrade_entity;
use cg_store::layer::values::{
    StoredValue, ValueKind, change_log_beginning, changed_values, list_values, values,
};
use cg_store::view::ReadView;

use crate::error::{MessageError, SyncError};
use crate::messages::{AskedBox, AskedValues, Position, Told, ValuesReply, kind_of, name};
use crate::place::wrong;
use crate::value_set::is_sent;

/// The number of values that are read together at first, and at most: what is read and does not fit any more is dropped.
const READ_AT_ONCE: [usize; 2] = [1, 16];
/// What an entry of a reply takes beside its key and its bytes.
const ENTRY_BYTES: usize = 16;

/// No world has as many components that a cache would leave out one by one.
pub(super) const MAX_WITHOUT: usize = 1024;

/// Values of one view.
pub(super) struct Values<'a> {
    pub(super) view: &'a ReadView<'a>,
    pub(super) upgrades: Arc<UpgradeFunctions>,
    /// All sets of the request.
    pub(super) sets: &'a [Set],
    /// Whether the client's positions belong to this history.
    pub(super) is_known: bool,
    /// Room in the reply.
    pub(super) left_bytes: &'a mut usize,
    /// The number of values that may be looked at.
    pub(super) left_looks: usize,
    /// The ids in what is told.
    pub(super) used: Used,
}

/// A set that a client asks about, in the server's ids.
pub(super) struct Set {
    kind: ValueKind,
    prefix: Vec<u8>,
    /// `None` if they are everywhere.
    areas: Option<Vec<(Dimension, ChunkBox)>>,
    without: BTreeSet<ComponentId>,
}

impl Values<'_> {
    /// What is told of a set to a client at a position.
    ///
    /// # Errors
    /// [`SyncError::Message`] for a position after the newest commit; those of the engine.
    pub(super) fn answer(&mut self, set: &Set, known: Option<Position>) -> Result<ValuesReply, SyncError> {
        let beginning = change_log_beginning(self.view)?.filter(|_| self.is_known);
        let has = |commit: u64| beginning.is_some_and(|beginning| beginning.get() <= commit);
        // Of the commit with which the log begins it has no rows.
        let has_from =
            |commit: u64, key: &Option<Vec<u8>>| has(commit.saturating_sub(u64::from(key.is_some())));
        let newest = self.view.commit().get();
        let anew = |known| (newest, known, Vec::new());
        let (since, known, behind) = match known.filter(|_| self.is_known) {
            Some(position) if position.newest() > newest => {
                return Err(wrong("a position is after the newest commit").into());
            }
            Some(Position::Changes { commit, key: None }) if commit == newest => {
                let next = Some(Position::Changes { commit, key: None });
                return Ok(ValuesReply { next, ..ValuesReply::default() });
            }
            Some(Position::Changes { commit, key }) if has_from(commit, &key) => {
                return self.changes(set, commit, key);
            }
            // Of the commit in which the position is, not all may be known.
            Some(Position::Changes { commit, key }) => {
                anew(Some(commit.saturating_sub(u64::from(key.is_some()))))
            }
            Some(Position::Listing { since, known, key }) if has(since) => (since, known, key),
            // A world without a log: what changed since the listing began is found by another one.
            Some(Position::Listing { since, known, key }) if beginning.is_none() => (since, known, key),
            Some(Position::Listing { known, .. }) => anew(known),
            None => anew(None),
        };
        self.listing(set, since, known, behind)
    }

    /// What changed after a position, by the log.
    fn changes(&mut self, set: &Set, commit: u64, key: Option<Vec<u8>>) -> Result<ValuesReply, SyncError> {
        let newest = self.view.commit().get();
        let (mut at, mut told) = ((commit, key), Vec::new());
        let [mut at_once, most_at_once] = READ_AT_ONCE;
        loop {
            let mut page = Vec::new();
            let most = at_once.min(self.left_looks);
            if *self.left_bytes == 0 || most == 0 {
                break;
            }
            let behind = (CommitSeq::new(at.0), at.1.as_deref());
            let more = changed_values(self.view, set.kind, behind, |commit, key| {
                page.push((commit, key.to_vec()));
                if page.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            self.left_looks -= page.len();
            let room_bytes = *self.left_bytes;
            let of_set = page.iter().map(|(_, key)| key).filter(|key| set.has_key(key));
            let mut found = values(self.view, set.kind, &of_set.collect::<Vec<_>>()).into_iter();
            for (commit, key) in page {
                if *self.left_bytes == 0 {
                    break;
                }
                if set.has_key(&key) {
                    let Some(found) = found.next() else { break };
                    let value = match found {
                        Ok(Some((version, _))) if version != commit => None,
                        Ok(Some(value)) => Some(self.told(set, &key, &value)),
                        Ok(None) => Some(Told::Gone),
                        Err(Error::Corrupt(_)) => Some(Told::Damaged),
                        Err(error) => return Err(error.into()),
                    };
                    if let Some(value) = value {
                        self.count(&key, &value);
                        told.push((key.clone(), value));
                    }
                }
                at = (commit.get(), Some(key));
            }
            // As many as before take so much less than there is room for that twice as many fit too.
            let is_little = (room_bytes - *self.left_bytes) < *self.left_bytes / 2;
            at_once = if is_little { (at_once * 2).min(most_at_once) } else { (at_once / 2).max(1) };
            if more.is_none() && *self.left_bytes > 0 {
                let next = Some(Position::Changes { commit: newest, key: None });
                return Ok(ValuesReply { listed: None, values: told, next, has_more: false });
            }
        }
        let next = Some(Position::Changes { commit: at.0, key: at.1 });
        Ok(ValuesReply { listed: None, values: told, next, has_more: true })
    }

    /// All values after a key.
    fn listing(
        &mut self,
        set: &Set,
        since: u64,
        known: Option<u64>,
        behind: Vec<u8>,
    ) -> Result<ValuesReply, SyncError> {
        let (mut told, mut last, mut failed) = (Vec::new(), behind.clone(), None);
        let (view, from) = (self.view, (!behind.is_empty()).then_some(&behind[..]));
        let more = list_values(view, set.kind, &set.prefix, from, |key, found| {
            if *self.left_bytes == 0 || self.left_looks == 0 {
                return ControlFlow::Break(());
            }
            self.left_looks -= 1;
            last = key.to_vec();
            if !set.has_key(key) {
                return ControlFlow::Continue(());
            }
            let value = match found {
                Ok(value) => match self.told(set, key, &value) {
                    // In a listing, what is not told is not there.
                    Told::Gone | Told::Outside => return ControlFlow::Continue(()),
                    Told::Newer(_) if known.is_some_and(|known| value.0.get() <= known) => Told::Same,
                    told => told,
                },
                Err(Error::Corrupt(_)) => Told::Damaged,
                Err(error) => {
                    failed = Some(error);
                    return ControlFlow::Break(());
                }
            };
            self.count(key, &value);
            told.push((key.to_vec(), value));
            ControlFlow::Continue(())
        })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        let newest = self.view.commit().get();
        let (until, next, has_more) = match more {
            Some(()) => (Some(last.clone()), Position::Listing { since, known, key: last }, true),
            None => (None, Position::Changes { commit: since, key: None }, since < newest),
        };
        Ok(ValuesReply { listed: Some((behind, until)), values: told, next: Some(next), has_more })
    }

    fn count(&mut self, key: &[u8], told: &Told) {
        let len_bytes = if let Told::Newer(bytes) = told { bytes.len() } else { 0 };
        *self.left_bytes = self.left_bytes.saturating_sub(key.len() + len_bytes + ENTRY_BYTES);
    }

    /// A stored value as it is sent.
    fn told(&mut self, set: &Set, key: &[u8], (_, bytes): &StoredValue) -> Told {
        match set.kind {
            ValueKind::Properties => Told::Newer(bytes.clone()),
            ValueKind::Objects => match ObjectView::decode(bytes) {
                Ok(ObjectView { bytes: None, .. }) => Told::Gone,
                Ok(_) => Told::Newer(bytes.clone()),
                Err(_) => Told::Damaged,
            },
            ValueKind::Records => match RecordView::decode(bytes) {
                Ok(record) if !set.contains(record.position) => Told::Outside,
                Ok(record) => {
                    self.used.dimensions.insert(record.position.dimension());
                    Told::Newer(bytes.clone())
                }
                Err(_) => Told::Damaged,
            },
            ValueKind::Entities => self.entity(set, key, bytes).unwrap_or(Told::Damaged),
        }
    }

    /// An entity as it is sent; `None` if it cannot be read.
    fn entity(&mut self, set: &Set, key: &[u8], bytes: &[u8]) -> Option<Told> {
        let (id, entity) = (EntityId::from_bytes(key.try_into().ok()?), Entity::decode(bytes).ok()?);
        if !set.contains(entity.position) {
            return Some(Told::Outside);
        }
        let mut entity = upgrade_entity(self.view.catalog(), &self.upgrades, id, entity).ok()?;
        let position = entity.position;
        // A component is left out if each set that has the entity leaves it out: another one of the request may want it.
        if !set.without.is_empty() {
            let sets: Vec<_> = self
                .sets
                .iter()
                .filter(|set| set.kind == ValueKind::Entities && set.contains(position))
                .collect();
            let here: Vec<_> = entity.components().map(|(component, _)| component).collect();
            for component in here {
                if sets.iter().all(|set| set.without.contains(&component)) {
                    entity.remove_component(component);
                }
            }
        }
        self.used.dimensions.insert(entity.position.dimension());
        self.used.entities.insert(entity.kind);
        self.used.components.extend(entity.components().map(|(id, _)| id));
        let mut bytes = Vec::new();
        entity.encode(&mut bytes);
        Some(Told::Newer(bytes))
    }
}

impl Set {
    /// # Errors
    /// For a kind, a place or a name that there is not.
    pub(super) fn new(
        asked: &AskedValues,
        catalog: &Catalog,
        dimensions: &[Option<Dimension>],
    ) -> Result<Self, MessageError> {
        let Some(kind) = kind_of(asked.kind) else { return Err(wrong("a kind of values is 1 to 4")) };
        let corner = |[x, y, z]: [i64; 3]| {
            ChunkPos::new(x, y, z).map_err(|_| wrong("a box of values lies outside the world"))
        };
        let mut areas = Vec::with_capacity(asked.areas.len());
        for AskedBox { dimension, min, max } in &asked.areas {
            let dimension = dimensions.get(usize::from(*dimension));
            let Some(dimension) = dimension else {
                return Err(wrong("it has no name for a dimension"));
            };
            let area = ChunkBox::new(corner(*min)?, corner(*max)?);
            areas.extend(dimension.map(|dimension| (dimension, area)));
        }
        let without = components(catalog, &asked.without)?;
        let areas = (!asked.areas.is_empty()).then_some(areas);
        Ok(Self { kind, prefix: asked.prefix.clone(), areas, without })
    }

    /// Whether a key is one of the set, and not of the world itself.
    fn has_key(&self, key: &[u8]) -> bool {
        key.starts_with(&self.prefix) && is_sent(self.kind, key)
    }

    fn contains(&self, position: EntityPos) -> bool {
        let (dimension, chunk) = (position.dimension(), position.block().chunk());
        let mut areas = self.areas.iter().flatten();
        self.areas.is_none() || areas.any(|(at, area)| *at == dimension && area.contains(chunk))
    }
}

/// The components of these names, those of the world.
pub(super) fn components(
    catalog: &Catalog,
    names: &[Vec<u8>],
) -> Result<BTreeSet<ComponentId>, MessageError> {
    let mut found = BTreeSet::new();
    for text in names {
        let place = catalog.list(ListKind::Components).id(name(text)?.as_str());
        let of = |place| [ComponentId::fixed(place), ComponentId::variable(place)];
        found.extend(place.into_iter().flat_map(of).map(|id| catalog.newest_registration(id)));
    }
    Ok(found)
}

/// Refuses a set that is too large.
pub(super) fn check(asked: &AskedValues, max_areas: usize) -> Result<(), MessageError> {
    let (areas, without) = (asked.areas.len(), asked.without.len());
    let all = [("areas of values", areas, max_areas), ("components", without, MAX_WITHOUT)];
    match all.into_iter().find(|(_, found, limit)| found > limit) {
        Some((what, found, limit)) => Err(MessageError::TooMany { what, found, limit }),
        None => Ok(()),
    }
}
