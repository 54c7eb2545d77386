//! One number for what a segmented world holds.

use std::path::Path;

use cg_format::RecordId;
use cg_store::error::ConflictKey;
use cg_store::layer::ContentSum;
use cg_store::verify::ContentHash;
use cg_store::view::Area;
use cg_store::{Error, Property, World, WorldOptions};

use super::closed::ClosedWorld;
use super::departures::departures;
use super::disk::OnDisk;
use super::error::SegmentError;
use super::pos::SegmentPos;
use super::rows::{is_of_the_world, transfer_property, whole};
use super::transfer::{Transfer, decode as decode_transfers};
use super::walks::meets;
use super::world::SegmentedWorld;

impl SegmentedWorld<OnDisk> {
    /// The hash of what a segmented world holds that no process has open: [`World::content_hash`] of a world that is not
    /// segmented and holds the same, by the names of the root. The rows that say where everything is are not content. Changes
    /// nothing.
    ///
    /// Reads and decodes all that it hashes. Opens, one after the other, the segments that meet the area. `visit` gets each
    /// world that was added, the root first. `options` are those of all of them. The root is open for reading until this
    /// returns, so no process opens the segmented world for writing meanwhile. A process that opens one segment as a world of
    /// its own is not kept from it: until the hash has come to that segment, what it writes there is hashed.
    ///
    /// # Errors
    /// [`SegmentError::NotSegmented`]; why the root or a segment cannot be opened for reading;
    /// [`SegmentError::NotKnown`] if there is a segment that the root does not know, anywhere, and
    /// [`SegmentError::UnfinishedMerge`]. Of a segment that it opens [`SegmentError::Lost`], [`SegmentError::Replaced`],
    /// [`SegmentError::Names`], and [`SegmentError`] if it is not one of this root. [`Error::Corrupt`] at the first damaged
    /// row. The errors of `visit`.
    ///
    /// [`SegmentError::InTransit`] if a process died while it transferred entities. Once the world was opened for writing, none
    /// is in transit but one whose segment is lost, or whose row is damaged, until that is quarantined: the error is
    /// [`SegmentError::Lost`] then, or [`Error::Corrupt`], which names the row.
    pub fn content_hash<X: From<Error>>(
        dir: impl AsRef<Path>,
        area: Area<'_>,
        options: &WorldOptions,
        mut visit: impl FnMut(&World) -> Result<(), X>,
    ) -> Result<ContentHash, X> {
        let closed = ClosedWorld::open_whole(dir.as_ref(), options)?;
        let (root, side_chunks) = (closed.root(), closed.side_chunks());
        refuse_in_transit(&closed)?;
        let departing = departures(root)?;
        // A segment gets the root's names when it is opened for writing.
        let names = root.catalog();
        let mut sum = ContentSum::default();
        let is_engines = |key: &ConflictKey| property_of(key).is_some_and(|property| property.is_engines());
        sum.add(root, &names, area, &is_engines)?;
        visit(root)?;
        for segment in closed.segments().into_iter().filter(|segment| meets(*segment, area, side_chunks)) {
            let world = closed.segment(segment)?;
            let is_dead = |id: &RecordId| departing.get(id) == Some(&segment);
            sum.add(&world, &names, area, &|key| match key {
                ConflictKey::Record(id) => is_dead(id),
                key => is_of_a_segment(key),
            })?;
            visit(&world)?;
        }
        Ok(sum.hash())
    }
}

/// Refuses a root with a transfer that is not finished: its entities may be in two segments.
///
/// After the world was opened for writing, the first of them is one whose segment is lost or whose row is damaged, if any is in
/// transit: the error is that.
fn refuse_in_transit(closed: &ClosedWorld) -> Result<(), Error> {
    let Some(bytes) = closed.root().property(&transfer_property()?)? else { return Ok(()) };
    let transfers = whole("crossing", &bytes, decode_transfers)?;
    let Some(&Transfer { id, from, to, .. }) = transfers.first() else { return Ok(()) };
    let (to, there) = (SegmentPos::of(to, closed.side_chunks()), closed.segments());
    for segment in [from, to].into_iter().filter(|segment| there.contains(segment)) {
        closed.segment(segment)?.entity(id)?;
    }
    Err(SegmentError::InTransit { id, from, to }.into())
}

/// The property of a key, if it is one.
fn property_of(key: &ConflictKey) -> Option<Property> {
    if let ConflictKey::Property(name) = key { Property::of_key(name.as_bytes()) } else { None }
}

/// Whether a property of a segment is one that each world has for itself.
fn is_of_a_segment(key: &ConflictKey) -> bool {
    property_of(key).is_some_and(|property| property.is_engines() || is_of_the_world(&property))
}
