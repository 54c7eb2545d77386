//! Objects, as an overlay stores them.

use cg_format::object::ObjectView;
use cg_format::{DecodeError, Space, key};
use cg_store::Error;
use cg_store::layer::kind::Objects;
use cg_store::layer::{Base, Found};
use cg_store::objects::{ObjectKey, StoredObject};

use super::overlay_kind::{OverlayKind, damaged, decode_whole};
use crate::store::lease_view::LeaseView;
use crate::store::row::Row;

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
}
