//! Whether root and segments are of one history: a world that was put back from a copy lacks transfers that the others know.
//!
//! | property | of | value |
//! |---|---|---|
//! | `:crossed/D.X.Y.Z` | the root | a commit of the segment after its newest transfer: opening u64, commit u64 |
//! | `:crossed` | a segment | a commit of the root after its newest transfer: the same |
//!
//! A world has such a commit if its [openings](cg_format::lineage) say so. Only synced commits are stored, because a power cut
//! may take others back. So with transfers that are not synced, a copy is noticed if it lacks a commit that was synced then.

use cg_format::DecodeError;
use cg_format::lineage::HistoryPoint;
use cg_format::wire::{Reader, Writer};
use cg_store::layer::newest_synced;
use cg_store::{Error, Property, World};

use super::error::SegmentError;
use super::pos::SegmentPos;
use super::rows::{crossed_property, own_crossed_property, whole};

/// A property to be set.
pub(super) type ToSet = (Property, Option<Vec<u8>>);

/// The property of a segment that says which transfer of the root it knows.
pub(super) fn crossed_of_root(root: &World) -> Result<ToSet, Error> {
    Ok((own_crossed_property()?, Some(encode(newest_synced(root)))))
}

/// The property of the root that says which transfer of a segment it knows.
pub(super) fn crossed_of_segment(segment: SegmentPos, world: &World) -> Result<ToSet, Error> {
    Ok((crossed_property(segment)?, Some(encode(newest_synced(world)))))
}

/// Refuses a segment if it, or the root, lacks a transfer that the other knows.
pub(super) fn check(root: &World, world: &World, segment: SegmentPos) -> Result<(), Error> {
    let known = |of: &World, property: Property| {
        let bytes = of.property(&property)?;
        bytes.map(|bytes| whole(format_args!("transfer of {segment}"), &bytes, decode)).transpose()
    };
    for (name, there, property, knows) in [
        ("the segment", world, crossed_property(segment)?, root),
        ("the root", root, own_crossed_property()?, world),
    ] {
        if let Some(point) = known(knows, property)?
            && !cg_store::layer::has_point(there, point)
        {
            return Err(SegmentError::Replaced { segment, what: name, commit: point.commit }.into());
        }
    }
    Ok(())
}

fn encode(HistoryPoint { opening, commit }: HistoryPoint) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    writer.u64(opening);
    writer.u64(commit);
    bytes
}

fn decode(reader: &mut Reader<'_>) -> Result<HistoryPoint, DecodeError> {
    Ok(HistoryPoint { opening: reader.u64("opening")?, commit: reader.u64("commit")? })
}
