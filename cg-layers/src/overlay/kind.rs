//! The kinds of values, as an overlay stores them: one row for each key of a lease, and for chunks their ancestors.

mod chunks;

use std::sync::Arc;

use cg_format::entity::Entity;
use cg_format::frame::{Codec, Draft, FrameView};
use cg_format::object::ObjectView;
use cg_format::overlay::{Origin, OverlayRow, OverlayValue};
use cg_format::record::Record;
use cg_format::wire::Reader;
use cg_format::{DecodeError, EntityId, Lookup, Problem, RecordId, Section, Space, key};
use cg_store::engine::{Readable as _, Stamp};
use cg_store::error::Damage;
use cg_store::layer::kind::{Entities, Kind, Objects, Properties, Records};
use cg_store::layer::{Base, Found, decode_record, leaf_of, origin_of, upgrade_entity};
use cg_store::objects::{ObjectKey, StoredObject};
use cg_store::{Error, Property};

use super::OverlayChoice;
use super::diff::{self, Change};
use super::edits::RowWriter;
use super::merge::leaving;
use super::rows::{LeaseView, Row};
use super::store::Store;

/// A key, its new value or `None` if it is deleted, and its origin in the base.
pub(super) type Edit<K> = (<K as Kind>::Key, Option<<K as Kind>::Value>, Origin);

/// A kind of values that an overlay stores.
pub(super) trait OverlayKind: Kind + Sized {
    /// The space of the row of a key.
    const SPACE: Space;

    /// Whether its rows name the schema generation by which their values are encoded.
    const HAS_SCHEMA: bool = false;

    /// The key of the row in a lease.
    fn row_key(lease: u64, key: &Self::Key) -> Vec<u8>;

    /// The key of the value in a row.
    fn key_of(row_key: &[u8]) -> Result<Self::Key, DecodeError>;

    /// The first key of the kind's rows in a lease.
    fn first_row_key(lease: u64) -> Vec<u8> {
        key::lease(lease).to_vec()
    }

    /// Decodes the row of a key. `row_key` is the row's.
    fn decode<S: Base>(
        rows: &LeaseView<'_, S>,
        key: &Self::Key,
        row_key: &[u8],
        row: &[u8],
    ) -> Result<Row<Self::Value>, Error>;

    /// The row of a key in a lease; `None` if nothing was written there. One key read, two for a record.
    fn read<S: Base>(
        store: &Store<S>,
        lease: u64,
        key: &Self::Key,
    ) -> Result<Option<Row<Self::Value>>, Error> {
        let row_key = Self::row_key(lease, key);
        let guard = store.apply_latch.lock_shared()?;
        let row = store.engine.get(Self::SPACE, &row_key)?;
        drop(guard);
        let rows = LeaseView { store, lease, view: &*store.engine };
        row.map(|row| Self::decode(&rows, key, &row_key, &row)).transpose()
    }

    /// Appends a value as a world stores it.
    fn encode(value: &Self::Value, out: &mut Vec<u8>);

    /// Adds the rows of an edit.
    fn put_rows<S: Base>(out: &mut RowWriter<'_, S>, (key, new, origin): &Edit<Self>) -> Result<(), Error> {
        let value = new.as_ref().map(|new| |out: &mut Vec<u8>| Self::encode(new, out));
        let generation = if Self::HAS_SCHEMA { out.generation } else { 0 };
        let draft = Draft::plain(Codec::None, generation, |out| OverlayRow::encode(*origin, value, out));
        out.batch.put(Self::SPACE, Self::row_key(out.lease, key), draft, Stamp::Commit);
        Ok(())
    }

    /// The base's value of a key.
    fn find<S: Base>(base: &S, key: &Self::Key) -> Result<Found<Self::Value>, Error>;

    /// Whether the base's value is what a merge leaves of a row, or leaves until an entity is transferred.
    ///
    /// # Errors
    /// As [`read`](Self::read), and those of the base.
    fn is_merged<S: Base>(
        _: &Store<S>,
        _: u64,
        row: &Row<Self::Value>,
        below: &Found<Self::Value>,
    ) -> Result<bool, Error> {
        Ok(row.here() == value_of(below))
    }

    /// The base's present value with what a row changed beside, if a value has parts and what the row was written over
    /// is known. `choice` decides where both have changed a part; `None` if that is to be asked.
    fn merged<S: Base>(
        _: &Store<S>,
        _: u64,
        _: &Self::Key,
        _: &Row<Self::Value>,
        _: &Found<Self::Value>,
        _: OverlayChoice,
    ) -> Result<Option<Self::Value>, Error> {
        Ok(None)
    }

    /// The row to write over. A delta that fits to what the base has changed since is one over the base's present value,
    /// which is what its readers see.
    fn to_write<S: Base>(
        _: &Store<S>,
        _: u64,
        _: &Self::Key,
        row: Row<Self::Value>,
    ) -> Result<Row<Self::Value>, Error> {
        Ok(row)
    }

    /// The change that a row makes to the base's value; `None` if there is none.
    fn compare(key: Self::Key, row: Row<Self::Value>, below: Found<Self::Value>) -> Option<Change<Self>> {
        let below = below.here().map(|(value, _)| value);
        diff::compare(key, row.value.here(), row.origin, below.as_ref())
    }
}

/// The value that was found in the base.
const fn value_of<T>(found: &Found<T>) -> Option<&T> {
    if let Lookup::Found((value, _)) = found { Some(value) } else { None }
}

/// Decodes a row that holds a value or a deletion.
fn decode_whole<K: OverlayKind>(
    key: &K::Key,
    row_key: &[u8],
    row: &[u8],
    value: impl FnOnce(&[u8]) -> Result<K::Value, Error>,
) -> Result<Row<K::Value>, Error> {
    let damaged = |problem| damaged::<K>(key, row_key, problem);
    let frame = FrameView::open(K::SPACE, row_key, row).map_err(damaged)?;
    let row = OverlayRow::decode(frame.payload()).map_err(damaged)?;
    let value = match row.value {
        OverlayValue::Deleted => Lookup::Tombstone,
        OverlayValue::Here(bytes) => Lookup::Found(value(bytes)?),
        OverlayValue::Changed(bytes) => {
            let (field, found, allowed) = ("row state", 2, "0 or 1 where there is no chunk");
            let here = Reader::new(bytes, Section::Overlay);
            return Err(damaged(here.error(Problem::OutOfRange { field, found, allowed })));
        }
    };
    Ok(Row { value, version: frame.header().version, origin: row.origin, over: None })
}

/// Damage in the row of a key.
pub(super) fn damaged<K: OverlayKind>(key: &K::Key, row_key: &[u8], problem: DecodeError) -> Error {
    Damage::of_row(K::SPACE, row_key, K::conflict_key(key).to_string(), problem)
}

impl OverlayKind for Entities {
    const SPACE: Space = Space::Entity;
    const HAS_SCHEMA: bool = true;

    fn row_key(lease: u64, id: &EntityId) -> Vec<u8> {
        key::overlay_entity(lease, *id).to_vec()
    }

    fn key_of(row_key: &[u8]) -> Result<EntityId, DecodeError> {
        key::decode_overlay_entity(row_key).map(|(_, id)| id)
    }

    fn decode<S: Base>(
        rows: &LeaseView<'_, S>,
        id: &EntityId,
        row_key: &[u8],
        row: &[u8],
    ) -> Result<Row<Entity>, Error> {
        let store = rows.store;
        decode_whole::<Self>(id, row_key, row, |value| {
            let entity = Entity::decode(value).map_err(|problem| damaged::<Self>(id, row_key, problem))?;
            upgrade_entity(&*store.catalog()?, &store.base.upgrades(), *id, entity)
        })
    }

    fn encode(entity: &Entity, out: &mut Vec<u8>) {
        entity.encode(out);
    }

    fn find<S: Base>(base: &S, id: &EntityId) -> Result<Found<Entity>, Error> {
        base.find_entity(*id)
    }

    /// The base's entity may wait for its transfer.
    fn is_merged<S: Base>(
        _: &Store<S>,
        _: u64,
        row: &Row<Entity>,
        below: &Found<Entity>,
    ) -> Result<bool, Error> {
        let (own, below) = (row.here(), value_of(below));
        Ok(own == below || below.is_some() && own.map(leaving).as_ref() == below)
    }
}

impl OverlayKind for Properties {
    const SPACE: Space = Space::WorldProperty;

    fn row_key(lease: u64, property: &Property) -> Vec<u8> {
        key::overlay_property(lease, property.row().1)
    }

    fn key_of(row_key: &[u8]) -> Result<Property, DecodeError> {
        let (_, key) = key::decode_overlay_property(row_key)?;
        let found = key.len() as u64;
        let (field, allowed) = ("property key length", "that of the name of a property");
        let no_name = || Reader::new(key, Section::Key).error(Problem::OutOfRange { field, found, allowed });
        Property::of_key(key).ok_or_else(no_name)
    }

    fn decode<S: Base>(
        _: &LeaseView<'_, S>,
        property: &Property,
        row_key: &[u8],
        row: &[u8],
    ) -> Result<Row<Vec<u8>>, Error> {
        decode_whole::<Self>(property, row_key, row, |value| Ok(value.to_vec()))
    }

    fn encode(bytes: &Vec<u8>, out: &mut Vec<u8>) {
        out.extend(bytes);
    }

    fn find<S: Base>(base: &S, property: &Property) -> Result<Found<Vec<u8>>, Error> {
        base.find_property(property)
    }
}

impl OverlayKind for Objects {
    const SPACE: Space = Space::Object;

    fn row_key(lease: u64, key: &ObjectKey) -> Vec<u8> {
        key::overlay_object(lease, key.as_bytes())
    }

    fn key_of(row_key: &[u8]) -> Result<ObjectKey, DecodeError> {
        let (_, key) = key::decode_overlay_object(row_key)?;
        // Any bytes are an object's key.
        Ok(ObjectKey::new(key).expect("decoding checked its length"))
    }

    fn decode<S: Base>(
        _: &LeaseView<'_, S>,
        key: &ObjectKey,
        row_key: &[u8],
        row: &[u8],
    ) -> Result<Row<StoredObject>, Error> {
        decode_whole::<Self>(key, row_key, row, |value| {
            let object = ObjectView::decode(value);
            Ok(object.map_err(|problem| damaged::<Self>(key, row_key, problem))?.into())
        })
    }

    fn encode(object: &StoredObject, out: &mut Vec<u8>) {
        object.view().encode(out);
    }

    fn find<S: Base>(base: &S, key: &ObjectKey) -> Result<Found<StoredObject>, Error> {
        base.find_object(key)
    }

    fn is_merged<S: Base>(
        _: &Store<S>,
        _: u64,
        row: &Row<StoredObject>,
        below: &Found<StoredObject>,
    ) -> Result<bool, Error> {
        let own = row.here().filter(|own| Self::is_live(own));
        let live = value_of(below).filter(|below| Self::is_live(below));
        Ok(match (own, live) {
            (Some(own), Some(live)) => diff::is_merged_object(own, row.origin, live, origin_of(below)),
            (own, live) => own == live,
        })
    }

    fn compare(key: ObjectKey, row: Row<StoredObject>, below: Found<StoredObject>) -> Option<Change<Self>> {
        diff::compare_objects(key, row.value.here(), row.origin, below.here())
    }
}

/// A record has two rows. Its place stores the leaf, and the record is stored under the leaf.
impl OverlayKind for Records {
    const SPACE: Space = Space::RecordPlace;

    fn row_key(lease: u64, id: &RecordId) -> Vec<u8> {
        key::overlay_record_place(lease, *id).to_vec()
    }

    fn key_of(row_key: &[u8]) -> Result<RecordId, DecodeError> {
        key::decode_overlay_record_place(row_key).map(|(_, id)| id)
    }

    fn first_row_key(lease: u64) -> Vec<u8> {
        key::overlay_record_places(lease).to_vec()
    }

    fn decode<S: Base>(
        rows: &LeaseView<'_, S>,
        id: &RecordId,
        row_key: &[u8],
        row: &[u8],
    ) -> Result<Row<Arc<Record>>, Error> {
        decode_whole::<Self>(id, row_key, row, |place| {
            let leaf = key::decode_record_leaf(place);
            let leaf = leaf.map_err(|problem| damaged::<Self>(id, row_key, problem))?;
            let row_key = key::overlay_record(rows.lease, &leaf, *id);
            // A place without its record is damage. An empty row makes the decoding report it.
            let row = rows.view.get(Space::Record, &row_key)?;
            let record = decode_record(*id, &row_key, row.as_deref().unwrap_or_default())?;
            Ok(Arc::new(record.to_record()))
        })
    }

    fn encode(record: &Arc<Record>, out: &mut Vec<u8>) {
        record.encode(out);
    }

    /// Reads both rows from one state.
    fn read<S: Base>(store: &Store<S>, lease: u64, id: &RecordId) -> Result<Option<Row<Arc<Record>>>, Error> {
        store.in_view(lease, |rows| {
            let row_key = Self::row_key(lease, id);
            let row = rows.view.get(Self::SPACE, &row_key)?;
            row.map(|row| Self::decode(rows, id, &row_key, &row)).transpose()
        })
    }

    fn put_rows<S: Base>(out: &mut RowWriter<'_, S>, (id, new, origin): &Edit<Self>) -> Result<(), Error> {
        let (store, lease, batch) = (out.store, out.lease, &mut out.batch);
        let shape = store.base.record_shape();
        let leaf = |record: &Arc<Record>| leaf_of(shape, record);
        let old = Self::read(store, lease, id)?.and_then(|row| row.value.here());
        let [old, leaf] = [old.as_ref().map(leaf), new.as_ref().map(leaf)];
        if let Some(old) = old.filter(|old| Some(*old) != leaf) {
            batch.delete(Space::Record, key::overlay_record(lease, &old, *id));
        }
        if let (Some(leaf), Some(record)) = (&leaf, new) {
            let draft = Draft::plain(Codec::None, 0, |out| Self::encode(record, out));
            batch.put(Space::Record, key::overlay_record(lease, leaf, *id), draft, Stamp::Commit);
        }
        let value = leaf.map(|leaf| move |out: &mut Vec<u8>| out.extend(key::record_leaf(&leaf)));
        let draft = Draft::plain(Codec::None, 0, |out| OverlayRow::encode(*origin, value, out));
        batch.put(Self::SPACE, Self::row_key(lease, id), draft, Stamp::Commit);
        Ok(())
    }

    fn find<S: Base>(base: &S, id: &RecordId) -> Result<Found<Arc<Record>>, Error> {
        base.find_record(*id)
    }
}
