//! Records, as an overlay stores them.

use std::sync::Arc;

use cg_format::frame::{Codec, Draft};
use cg_format::overlay::OverlayRow;
use cg_format::record::Record;
use cg_format::{DecodeError, RecordId, Space, key};
use cg_store::Error;
use cg_store::engine::Stamp;
use cg_store::layer::kind::Records;
use cg_store::layer::{Base, Found, decode_record, leaf_of};

use super::overlay_kind::{Edit, OverlayKind, Rows, damaged, decode_whole};
use crate::store::lease_view::LeaseView;
use crate::store::row::Row;
use crate::store::state::Store;
use crate::store::writer::RowWriter;

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

    fn rows<S: Base>(store: &Store<S>, lease: u64, id: &RecordId, record: Option<&Arc<Record>>) -> Rows {
        let leaf = record.map(|record| leaf_of(store.base.record_shape(), record));
        let beside = leaf.map(|leaf| (Space::Record, key::overlay_record(lease, &leaf, *id)));
        [Some((Self::SPACE, Self::row_key(lease, id))), beside]
    }

    fn find<S: Base>(base: &S, id: &RecordId) -> Result<Found<Arc<Record>>, Error> {
        base.find_record(*id)
    }
}
