//! What a world in the place of a segment must be.

use cg_registry::{Catalog, ListKind};
use cg_store::{Error, World};
use uuid::Uuid;

use super::error::SegmentError;
use super::pos::SegmentPos;
use super::rows::{own_property, whole};

/// Refuses a world that is not this segment of this root.
pub(super) fn check_is_segment(root: &World, world: &World, segment: SegmentPos) -> Result<(), Error> {
    let Some(bytes) = world.property(&own_property()?)? else {
        let why = "it does not say that it is one";
        return Err(SegmentError::NotASegment { segment, why }.into());
    };
    let (found, place) = whole(segment, &bytes, |reader| {
        let root = reader.array("root uuid").map(Uuid::from_bytes)?;
        Ok((root, SegmentPos::read(reader)?))
    })?;
    let expected = root.identity().uuid;
    if found != expected {
        return Err(SegmentError::WrongRoot { segment, expected, found }.into());
    }
    if place != segment {
        return Err(SegmentError::Misplaced { segment, found: place }.into());
    }
    Ok(())
}

/// Refuses a segment whose names differ from the root's.
pub(super) fn check_names(segment: SegmentPos, stored: &Catalog, root: &Catalog) -> Result<(), SegmentError> {
    for list in ListKind::ALL {
        for (id, name) in (0..).zip(stored.list(list).names()) {
            if root.list(list).id(name.as_str()) != Some(id) {
                return Err(SegmentError::Names { segment, list, id, name: name.clone() });
            }
        }
    }
    Ok(())
}

/// Refuses a segment of a dimension that its root has not registered.
pub(super) fn check_dimension(segment: SegmentPos, root: &Catalog) -> Result<(), Error> {
    let (found, issued) = (segment.dimension.get(), root.list(ListKind::Dimensions).names().len() as u64);
    if found < issued { Ok(()) } else { Err(Error::UnknownDimension { found, issued }) }
}
