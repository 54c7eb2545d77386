//! Properties, as an overlay stores them.

use cg_format::wire::Reader;
use cg_format::{DecodeError, Problem, Section, Space, key};
use cg_store::layer::kind::Properties;
use cg_store::layer::{Base, Found};
use cg_store::{Error, Property};

use super::overlay_kind::{OverlayKind, decode_whole};
use crate::store::lease_view::LeaseView;
use crate::store::row::Row;

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
