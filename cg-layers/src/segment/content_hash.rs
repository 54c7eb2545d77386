//! One number for what a segmented world holds.

use std::path::Path;

use cg_format::RecordId;
use cg_store::error::ConflictKey;
use cg_store::layer::ContentSum;
use cg_store::verify::ContentHash;
use cg_store::view::Area;
use cg_store::{Error, Property, World, WorldOptions};

use super::archive::there;
use super::checks::check_is_segment;
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
    /// segmented and holds the same. The rows that say where everything is are not content. Changes nothing.
    ///
    /// Reads and decodes all that it hashes. Opens, one after the other, the segments that meet the area. `visit` gets each
    /// world that was added, the root first. `options` are those of all of them.
    ///
    /// # Errors
    /// [`SegmentError::NotSegmented`]; [`SegmentError::InTransit`] if a process died while it transferred entities, until the
    /// world was opened for writing; why the root or a segment cannot be opened for reading, and [`SegmentError`] if it is not
    /// one of this root; [`Error::Corrupt`] at the first damaged row; those of `visit`.
    pub fn content_hash<X: From<Error>>(
        dir: impl AsRef<Path>,
        area: Area<'_>,
        options: &WorldOptions,
        mut visit: impl FnMut(&World) -> Result<(), X>,
    ) -> Result<ContentHash, X> {
        let home = OnDisk::new(dir.as_ref());
        let (root, side_chunks) = home.read_root(options)?;
        refuse_in_transit(&root, side_chunks)?;
        let departing = departures(&root)?;
        let mut sum = ContentSum::default();
        sum.add(&root, area, &|key| property_of(key).is_some_and(|property| property.is_engines()))?;
        visit(&root)?;
        for segment in there(&root)?.into_iter().filter(|segment| meets(*segment, area, side_chunks)) {
            let world = World::builder().options(options).open_read_only(home.path(segment))?;
            check_is_segment(&root, &world, segment)?;
            let is_dead = |id: &RecordId| departing.get(id) == Some(&segment);
            sum.add(&world, area, &|key| match key {
                ConflictKey::Record(id) => is_dead(id),
                key => is_of_a_segment(key),
            })?;
            visit(&world)?;
        }
        Ok(sum.hash())
    }
}

/// Refuses a root with a transfer that is not finished: its entities may be in two segments.
fn refuse_in_transit(root: &World, side_chunks: u32) -> Result<(), Error> {
    let Some(bytes) = root.property(&transfer_property()?)? else { return Ok(()) };
    match whole("crossing", &bytes, decode_transfers)?.first() {
        Some(&Transfer { id, from, to, .. }) => {
            Err(SegmentError::InTransit { id, from, to: SegmentPos::of(to, side_chunks) }.into())
        }
        None => Ok(()),
    }
}

/// The property of a key, if it is one.
fn property_of(key: &ConflictKey) -> Option<Property> {
    if let ConflictKey::Property(name) = key { Property::of_key(name.as_bytes()) } else { None }
}

/// Whether a property of a segment is one that each world has for itself.
fn is_of_a_segment(key: &ConflictKey) -> bool {
    property_of(key).is_some_and(|property| property.is_engines() || is_of_the_world(&property))
}
