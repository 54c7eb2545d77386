//! A kind of values, as a row of an overlay and the base's value are compared.

use cg_format::entity::Entity;
use cg_store::Error;
use cg_store::layer::kind::{Entities, Kind as _, Objects, Properties, Records};
use cg_store::layer::{Base, Found, origin_of};
use cg_store::objects::{ObjectKey, StoredObject};

use super::choice::OverlayChoice;
use super::difference::{Change, compare, compare_objects, is_merged_object};
use super::leaving::leaving;
use crate::store::{OverlayKind, Row, Store, value_of};

/// A kind of values whose rows are compared with the base and merged into it.
pub(crate) trait MergeKind: OverlayKind {
    /// Whether the base's value is what a merge leaves of a row, or leaves until an entity is transferred.
    ///
    /// # Errors
    /// As [`OverlayKind::read`], and those of the base.
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
        compare(key, row.value.here(), row.origin, below.as_ref())
    }
}

impl MergeKind for Entities {
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

impl MergeKind for Properties {}

impl MergeKind for Objects {
    fn is_merged<S: Base>(
        _: &Store<S>,
        _: u64,
        row: &Row<StoredObject>,
        below: &Found<StoredObject>,
    ) -> Result<bool, Error> {
        let own = row.here().filter(|own| Self::is_live(own));
        let live = value_of(below).filter(|below| Self::is_live(below));
        Ok(match (own, live) {
            (Some(own), Some(live)) => is_merged_object(own, row.origin, live, origin_of(below)),
            (own, live) => own == live,
        })
    }

    fn compare(key: ObjectKey, row: Row<StoredObject>, below: Found<StoredObject>) -> Option<Change<Self>> {
        compare_objects(key, row.value.here(), row.origin, below.here())
    }
}

impl MergeKind for Records {}
