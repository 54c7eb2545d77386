//! A kind of values, as an overlay stores them.

use cg_format::frame::{Codec, Draft, FrameView};
use cg_format::overlay::{Origin, OverlayRow, OverlayValue};
use cg_format::wire::Reader;
use cg_format::{DecodeError, Lookup, Problem, Section, Space, key};
use cg_store::Error;
use cg_store::engine::Stamp;
use cg_store::error::Damage;
use cg_store::layer::kind::Kind;
use cg_store::layer::{Base, Found};

use crate::store::lease_view::LeaseView;
use crate::store::row::Row;
use crate::store::state::Store;
use crate::store::writer::RowWriter;

/// A key, its new value or `None` if it is deleted, and its origin in the base.
pub(crate) type Edit<K> = (<K as Kind>::Key, Option<<K as Kind>::Value>, Origin);

/// The rows of a key.
pub(crate) type Rows = [Option<(Space, Vec<u8>)>; 2];

/// A kind of values that an overlay stores.
pub(crate) trait OverlayKind: Kind + Sized {
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
        let row = store.rows.get(Self::SPACE, &row_key)?;
        let rows = LeaseView { store, lease, view: store.rows.engine() };
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

    /// The rows of a key that has a value in a lease: its own, and perhaps one beside it.
    fn rows<S: Base>(_: &Store<S>, lease: u64, key: &Self::Key, _: Option<&Self::Value>) -> Rows {
        [Some((Self::SPACE, Self::row_key(lease, key))), None]
    }

    /// The base's value of a key.
    fn find<S: Base>(base: &S, key: &Self::Key) -> Result<Found<Self::Value>, Error>;
}

/// The value that was found in the base.
pub(crate) const fn value_of<T>(found: &Found<T>) -> Option<&T> {
    if let Lookup::Found((value, _)) = found { Some(value) } else { None }
}

/// Decodes a row that holds a value or a deletion.
pub(super) fn decode_whole<K: OverlayKind>(
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
